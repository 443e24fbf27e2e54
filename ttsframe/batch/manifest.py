"""The manifest of a job: its sources, settings and versions, stored in every file that it writes."""

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
from ttsframe.batch.stages import Score, Stage, functions_of, stage_settings
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
    """Fingerprint of a source file, by which a change is noticed.

    Parameters
    ----------
    path
        Absolute path.
    size
        Number of bytes.
    mtime_ns
        Time of the last change, in nanoseconds; not compared.
    digest
        BLAKE2b of all bytes up to 2 MiB; of a longer file, of 32 blocks of 64 KiB including the first
        and the last. Rewriting, truncating or appending changes it, as does a new Parquet footer. A
        few bytes changed in place between the blocks of a long file are not noticed.

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
        """Return whether path, size and digest are equal.

        Parameters
        ----------
        other
            Another fingerprint.

        Returns
        -------
        bool
            The time of the change is not compared.
        """
        return replace(self, mtime_ns=0) == replace(other, mtime_ns=0)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Sources, settings and versions of a job.

    Parameters
    ----------
    format
        Version of the manifest's format.
    versions
        Of ttsframe, Polars and, if answers are keyed, of the packages that decide the keys; of
        functions of your own, a digest of the file that defines them.
    source
        Files that were read, in order.
    gold
        File of gold answers.
    reading
        `format`, `rename` and `on_error`.
    by
        Columns that tell runs apart.
    stages
        Name and options of each stage.
    parts
        Requested rows and bytes of a part.
    layout
        How the rows were divided; see `ttsframe.batch`.

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
        """Return the manifest as one line of JSON, always the same for the same manifest.

        Returns
        -------
        str
            JSON.
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
        """List the differences to another job, except for its layout and the times of files.

        Parameters
        ----------
        now
            The other job.

        Returns
        -------
        list[str]
            One phrase per difference, the old value before the new one.
        """
        old, new = self._settings(), now._settings()
        return [
            *_changed_files("source file", self.source, now.source),
            *_changed_files("gold file", *[[of.gold] if of.gold else [] for of in (self, now)]),
            *(
                f"{name}: {old[name]!r} -> {new[name]!r}"
                for name in old
                if name in new and old[name] != new[name]
            ),
        ]

    def _settings(self) -> dict[str, object]:
        """Return all settings and versions in one table, by the name that a message gives them."""
        stages = {str(stage["stage"]): stage for stage in self.stages}
        tables = {"reading": self.reading, **stages, "parts": self.parts}
        return {
            "by": list(self.by),
            "stages": list(stages),
            **{
                f"{of} {name}": value
                for of, table in tables.items()
                for name, value in table.items()
            },
            "manifest format": self.format,
            **{f"version of {name}": self.versions[name] for name in sorted(self.versions)},
        }


def make_manifest(
    source: Sequence[Path],
    *,
    gold: Path | None,
    reading: Settings,
    by: Sequence[str],
    stages: Sequence[Stage],
    parts: Settings,
) -> Manifest:
    """Describe a job whose layout is not yet known."""
    packages = ["ttsframe", "polars"]
    versions: dict[str, str] = {}
    for stage in stages:
        if isinstance(stage, Score):
            versions["keys"] = (stage.policy or AnswerPolicy()).prefix
            packages += ["sympy", "python-flint"]
    versions |= {function.text: function.version for function in functions_of(stages)}
    manifest = Manifest(
        format=_FORMAT,
        versions={name: package_version(name) for name in packages} | versions,
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
    """Take the fingerprint of a file."""
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
    """Yield the starts of the blocks of a digest."""
    if size <= _BLOCK * _N_BLOCKS:
        yield from range(0, size, _BLOCK)
    else:
        yield from (i * (size - _BLOCK) // (_N_BLOCKS - 1) for i in range(_N_BLOCKS))


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a file or folder that `transform` wrote.

    Parameters
    ----------
    path
        Parquet file, or the folder of its parts.

    Returns
    -------
    Manifest
        Its sources, settings and versions.

    Raises
    ------
    SourceError
        If it does not exist, or no job has written it.

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
            f"{found}: has no manifest, because no Parquet file can be read ({reason})."
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{found}: has a manifest that this version of ttsframe cannot read ({error})."
        ) from error
    if manifest is None:
        raise SourceError(
            f"{found}: has no manifest; the Parquet metadata of a file that a ttsframe job has written "
            f"holds the key {METADATA_KEY!r}."
        )
    return manifest


def _changed_files(
    what: str, old: Sequence[Fingerprint], new: Sequence[Fingerprint], *, n_shown: int = 3
) -> list[str]:
    """List the first files that are missing, new, changed or in another order."""
    before, after = {file.path: file for file in old}, {file.path: file for file in new}
    changes = [f"{what} {path} is missing" for path in before if path not in after]
    changes += [f"{what} {path} is new" for path in after if path not in before]
    for path, file in before.items():
        now = after.get(path, file)
        if not file.is_same(now):
            sizes = f" ({file.size:,} -> {now.size:,} bytes)" if file.size != now.size else ""
            changes.append(f"{what} {path} changed{sizes}")
    if not changes and list(before) != list(after):
        changes = [f"{what}s are in another order"]
    rest = len(changes) - n_shown
    return changes[:n_shown] + ([f"and {rest:,} more"] if rest > 0 else [])


def package_version(name: str) -> str:
    """Return the version of a package, or "none" if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
