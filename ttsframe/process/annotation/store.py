"""Where completions are kept: in memory, or as the parts of a folder that a later run goes on with."""

from __future__ import annotations

import json
import secrets
import time
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

import polars as pl

from ttsframe._files import TEMPORARY, remove_folder, replacing
from ttsframe.errors import SourceError

_SCHEMA: Final = pl.Schema({
    "prefix_id": pl.String(),
    "rollout": pl.UInt32(),
    "completion": pl.String(),
})
_FORMAT: Final = 1
_ABANDONED: Final = 3600.0
"""Seconds after which a file that was begun and not finished belongs to nobody."""


class Store(Protocol):
    """Keeps completions: `prefix_id`, `rollout`, `completion`."""

    def add(self, completions: pl.DataFrame) -> None:
        """Keep a batch; once this returns it is never asked for again."""

    def scan(self) -> pl.LazyFrame:
        """Return all that is kept, each number of a prefix once."""


class Memory:
    """Keeps completions until the process ends."""

    def __init__(self) -> None:
        self._batches = [pl.DataFrame(schema=_SCHEMA)]

    def add(self, completions: pl.DataFrame) -> None:
        """Keep a batch.

        Parameters
        ----------
        completions
            The batch.
        """
        self._batches.append(completions)

    def scan(self) -> pl.LazyFrame:
        """Return all that is kept.

        Returns
        -------
        pl.LazyFrame
            The completions.
        """
        return pl.concat(self._batches).lazy()


class Folder:
    """Keeps completions in a folder, each batch in a Parquet file that is there whole or not at all.

    Each completer has a folder of its own in it, so that what one wrote is never taken for what
    another one did. Several processes may use one folder at once: at worst two of them sample the
    same prefix, and one sample is used.

    Parameters
    ----------
    folder
        The folder; made if it is not there.
    keys
        What tells the completer from another one.

    Raises
    ------
    SourceError
        When the folder cannot be made or read, or is in another form.
    """

    def __init__(self, folder: Path, keys: list[str]) -> None:
        about = json.dumps({"format": _FORMAT, "key": keys}, ensure_ascii=False)
        digest = blake2b(about.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self._parts = folder / digest
        described = self._parts / "key.json"
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(self._parts)
            is_described = described.is_file()
        except OSError as error:
            raise SourceError(
                f"{folder}: cannot be used as a cache ({error.strerror or error}). Hint: name a folder "
                "that can be written to."
            ) from error
        if not is_described:
            with replacing(described) as temporary:
                temporary.write_text(about + "\n", encoding="utf-8", errors="backslashreplace")

    def add(self, completions: pl.DataFrame) -> None:
        """Write a batch.

        Parameters
        ----------
        completions
            The batch.
        """
        with replacing(self._parts / f"part-{secrets.token_hex(8)}.parquet") as temporary:
            completions.write_parquet(temporary)

    def scan(self) -> pl.LazyFrame:
        """Return all that is there, of a rollout that two processes sampled the first file's.

        Returns
        -------
        pl.LazyFrame
            The completions.

        Raises
        ------
        SourceError
            When a file is not one of these.
        """
        parts = sorted(self._parts.glob("part-*.parquet"))
        if not parts:
            return pl.LazyFrame(schema=_SCHEMA)
        for part in parts:
            try:
                found = pl.read_parquet_schema(part)
            except (OSError, pl.exceptions.PolarsError) as error:
                reason = str(error).partition("\n")[0]
                raise SourceError(
                    f"{part}: cannot be read ({reason}). Hint: remove it; its batch is sampled again."
                ) from error
            if found != _SCHEMA:
                raise SourceError(
                    f"{part}: has the columns {dict(found)}, must have {dict(_SCHEMA)}. Hint: remove "
                    "it; its batch is sampled again."
                )
        return pl.scan_parquet(parts).unique(
            ["prefix_id", "rollout"], keep="first", maintain_order=True
        )


def _remove_abandoned(folder: Path) -> None:
    """Remove what processes left behind that were killed as they wrote."""
    for left in folder.glob(f".*{TEMPORARY}"):
        if time.time() - left.stat().st_mtime > _ABANDONED:
            remove_folder(left)
