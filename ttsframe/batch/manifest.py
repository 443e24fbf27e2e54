"""What a job was asked to do, of what, and with which versions: a value kept in all that it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypeAlias

import polars as pl

from ttsframe.answers import AnswerPolicy
from ttsframe.batch.stages import Score, Stage, stage_settings
from ttsframe.errors import SourceError

__all__ = ["METADATA_KEY", "Fingerprint", "Manifest", "read_manifest"]

METADATA_KEY: Final = "ttsframe.batch"
"""Key of the manifest in the metadata of a Parquet file."""

_FORMAT: Final = 1
_BLOCK: Final = 1 << 16
_N_BLOCKS: Final = 32

Settings: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What tells a source file from the file that it becomes when it changes.

    Parameters
    ----------
    path
        Absolute path.
    size
        Number of bytes.
    mtime_ns
        Time of the last change, in nanoseconds. Only shown: a file that was touched is the same.
    digest
        BLAKE2b of the whole file up to 2 MiB, of a longer one of 32 blocks of 64 KiB, the first and
        the last among them: a file that was written anew, cut off or added to differs, as does any
        Parquet file whose footer does. A few bytes changed in place, between the blocks of a long
        file, are not seen.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.batch.Fingerprint(path="/runs/a.parquet", size=4, mtime_ns=0, digest="ab").size
    4
    """

    path: str
    size: int
    mtime_ns: int
    digest: str

    def is_same(self, other: Fingerprint) -> bool:
        """Tell whether two fingerprints are those of one content at one place.

        Parameters
        ----------
        other
            The other one.

        Returns
        -------
        bool
            Whether all but the time is equal.
        """
        return replace(self, mtime_ns=0) == replace(other, mtime_ns=0)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a job was asked to do, of what, and with which versions.

    Parameters
    ----------
    format
        Version of this form.
    versions
        Of ttsframe, Polars and, where answers get keys, of what decides these.
    source
        Files that were read, in their order.
    gold
        File of reference answers.
    reading
        How they were read: `format`, `rename`, `on_error`.
    by
        Columns that tell runs apart.
    stages
        Name and options of each stage.
    parts
        How the rows were to be divided: rows and bytes of a part.
    layout
        How they were: see `ttsframe.batch`. Empty before the source was looked over.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(2, 4, seed=0, keys=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, sink = pathlib.Path(folder, "run.parquet"), pathlib.Path(folder, "out.parquet")
    ...     run.write_parquet(source)
    ...     done = tts.batch.transform(source, sink, stages=[tts.batch.Select(budgets=[1, 4])])
    >>> done.manifest.stages[0]["budgets"]
    [1, 4]
    """

    format: int
    versions: Mapping[str, str]
    source: tuple[Fingerprint, ...]
    gold: Fingerprint | None
    reading: Settings
    by: tuple[str, ...]
    stages: tuple[Settings, ...]
    parts: Settings
    layout: Settings

    def to_json(self) -> str:
        """Return the manifest as JSON, the same text for the same manifest.

        Returns
        -------
        str
            One line.
        """
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Read a manifest back.

        Parameters
        ----------
        text
            What `to_json` returned.

        Returns
        -------
        Manifest
            The manifest.
        """
        found: dict[str, Any] = json.loads(text)
        return Manifest(**{
            **found,
            "source": tuple(Fingerprint(**one) for one in found["source"]),
            "gold": None if found["gold"] is None else Fingerprint(**found["gold"]),
            "by": tuple(found["by"]),
            "stages": tuple(found["stages"]),
        })

    def changes(self, now: Manifest) -> list[str]:
        """Say what differs in another job, except for its layout and times of files.

        Parameters
        ----------
        now
            The other job.

        Returns
        -------
        list[str]
            One phrase per difference, the old value before the new one.
        """
        return [
            *_changed_source(self.source, now.source),
            *_changed("gold", self.gold and self.gold.path, now.gold and now.gold.path),
            *(
                [f"gold {self.gold.path} changed"]
                if self.gold and now.gold and self.gold.digest != now.gold.digest
                else []
            ),
            *_changed("reading", dict(self.reading), dict(now.reading)),
            *_changed("by", list(self.by), list(now.by)),
            *_changed_stages(self.stages, now.stages),
            *_changed("parts", dict(self.parts), dict(now.parts)),
            *_changed("format of the manifest", self.format, now.format),
            *[
                change
                for name in sorted(self.versions.keys() & now.versions.keys())
                for change in _changed(
                    f"version of {name}", self.versions[name], now.versions[name]
                )
            ],
        ]


def make_manifest(
    source: Sequence[Path],
    *,
    gold: Path | None,
    reading: Settings,
    by: Sequence[str],
    stages: Sequence[Stage],
    parts: Settings,
) -> Manifest:
    """Describe a job; the layout follows once the source was looked over.

    Parameters
    ----------
    source
        Files to read.
    gold
        File of reference answers.
    reading
        How to read them.
    by
        Columns that tell runs apart.
    stages
        The stages.
    parts
        How to divide the rows.

    Returns
    -------
    Manifest
        Without a layout.
    """
    packages = ["ttsframe", "polars"]
    versions: dict[str, str] = {}
    for stage in stages:
        if isinstance(stage, Score):
            versions["keys"] = (stage.policy or AnswerPolicy()).prefix
            packages += ["sympy", "python-flint"]
    manifest = Manifest(
        format=_FORMAT,
        versions={name: _version(name) for name in packages} | versions,
        source=tuple(fingerprint(path) for path in source),
        gold=None if gold is None else fingerprint(gold),
        reading=reading,
        by=tuple(by),
        stages=tuple(stage_settings(stage) for stage in stages),
        parts=parts,
        layout={},
    )
    return Manifest.from_json(manifest.to_json())


def fingerprint(path: Path) -> Fingerprint:
    """Take the fingerprint of a file.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Fingerprint
        Its fingerprint.

    Raises
    ------
    SourceError
        When it cannot be read.
    """
    digest = blake2b(digest_size=16)
    try:
        with path.open("rb") as handle:
            found = os.fstat(handle.fileno())
            for start in _blocks(found.st_size):
                handle.seek(start)
                digest.update(handle.read(_BLOCK))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return Fingerprint(
        path=str(path.absolute()),
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        digest=digest.hexdigest(),
    )


def _blocks(size: int) -> Iterator[int]:
    """Yield where the blocks of a digest begin."""
    if size <= _BLOCK * _N_BLOCKS:
        yield from range(0, size, _BLOCK)
    else:
        yield from (i * (size - _BLOCK) // (_N_BLOCKS - 1) for i in range(_N_BLOCKS))


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read what made a file or folder that `transform` wrote.

    Parameters
    ----------
    path
        Parquet file, or the folder of its parts.

    Returns
    -------
    Manifest
        What it was made of, how, and with which versions.

    Raises
    ------
    SourceError
        When it is not there, or no job wrote it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(2, 4, seed=0, keys=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, sink = pathlib.Path(folder, "run.parquet"), pathlib.Path(folder, "out.parquet")
    ...     run.write_parquet(source)
    ...     _ = tts.batch.transform(source, sink)
    ...     manifest = tts.batch.read_manifest(sink)
    >>> pathlib.Path(manifest.source[0].path).name
    'run.parquet'
    """
    found = Path(path)
    file = next(iter(sorted(found.glob("*.parquet"))), found) if found.is_dir() else found
    try:
        text = pl.read_parquet_metadata(file).get(METADATA_KEY)
        manifest = None if text is None else Manifest.from_json(text)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(
            f"{found}: has no manifest, no Parquet can be read ({reason})."
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{found}: has a manifest that this version of ttsframe cannot read ({error})."
        ) from error
    if manifest is None:
        raise SourceError(
            f"{found}: has no manifest, so tts.batch.transform did not write it; its Parquet metadata "
            f"must hold the key {METADATA_KEY!r}."
        )
    return manifest


def _changed(what: str, old: object, new: object) -> list[str]:
    """Say how a setting differs; of several, each that does."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            f"{what} {name}: {old.get(name)!r} -> {new.get(name)!r}"
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]
    return [f"{what}: {old!r} -> {new!r}"]


def _changed_source(
    old: Sequence[Fingerprint], new: Sequence[Fingerprint], *, n_shown: int = 3
) -> list[str]:
    """Say which files are gone, new or changed."""
    before, after = {one.path: one for one in old}, {one.path: one for one in new}
    changes = [f"source file {path} is gone" for path in before if path not in after]
    changes += [f"source file {path} is new" for path in after if path not in before]
    for path, one in before.items():
        other = after.get(path, one)
        if not one.is_same(other):
            sizes = f"{one.size:,} -> {other.size:,} bytes"
            of_same_size = f"other content in {one.size:,} bytes"
            how = sizes if one.size != other.size else of_same_size
            changes.append(f"source file {path} changed ({how})")
    if not changes and list(before) != list(after):
        changes = ["source files are in another order"]
    more = [f"and {len(changes) - n_shown:,} source files more"] if len(changes) > n_shown else []
    return changes[:n_shown] + more


def _changed_stages(old: Sequence[Settings], new: Sequence[Settings]) -> list[str]:
    """Say how the stages differ."""
    names = [[str(stage["stage"]) for stage in stages] for stages in (old, new)]
    if names[0] != names[1]:
        return [
            f"stages: {' then '.join(names[0]) or 'none'} -> {' then '.join(names[1]) or 'none'}"
        ]
    return [
        change
        for before, after in zip(old, new, strict=True)
        for change in _changed(str(before["stage"]), dict(before), dict(after))
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
