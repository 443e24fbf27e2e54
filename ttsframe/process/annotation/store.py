"""Storage of completions: in memory, or in a folder from which a later run resumes."""

from __future__ import annotations

import json
import secrets
import time
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

import polars as pl

from ttsframe._files import TEMPORARY, check_no_link, remove_folder, replacing
from ttsframe.errors import SourceError

_SCHEMA: Final = pl.Schema({
    "prefix_id": pl.String(),
    "rollout": pl.UInt32(),
    "completion": pl.String(),
    "finish_reason": pl.String(),
})
_WITHOUT_FAILURES: Final = pl.Schema({
    name: dtype for name, dtype in _SCHEMA.items() if name != "finish_reason"
})
"""Files of version 0.7 and before, in which no completion was given up."""
_FORMAT: Final = 1
_ABANDONED: Final = 3600.0
"""Seconds after which an unfinished file is removed."""


class Store(Protocol):
    """Keeps completions: `prefix_id`, `rollout`, `completion`, `finish_reason` of those that were given up."""

    def add(self, completions: pl.DataFrame) -> None:
        """Keep a batch."""

    def scan(self) -> pl.LazyFrame:
        """Return all completions, each rollout of a prefix once."""


class Memory:
    """Keeps completions until the process ends."""

    def __init__(self) -> None:
        self._batches = [pl.DataFrame(schema=_SCHEMA)]

    def add(self, completions: pl.DataFrame) -> None:
        self._batches.append(completions)

    def scan(self) -> pl.LazyFrame:
        return pl.concat(self._batches).lazy()


class Folder:
    """Keeps completions in a folder, each batch in a Parquet file that is written completely or not at all.

    Each completer, identified by `keys`, has a folder of its own. Several processes may use one
    folder: if two sample the same rollout, one sample is used.
    """

    def __init__(self, folder: Path, keys: list[str]) -> None:
        about = json.dumps({"format": _FORMAT, "key": keys}, ensure_ascii=False)
        digest = blake2b(about.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self._parts = folder / digest
        described = self._parts / "key.json"
        check_no_link(self._parts)
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(self._parts)
            is_described = described.is_file()
        except OSError as error:
            raise SourceError(
                f"{folder}: cannot be used as a cache ({error.strerror or error}). Hint: choose a folder "
                "that can be written to."
            ) from error
        if not is_described:
            with replacing(described) as temporary:
                temporary.write_text(about + "\n", encoding="utf-8", errors="backslashreplace")

    def add(self, completions: pl.DataFrame) -> None:
        with replacing(self._parts / f"part-{secrets.token_hex(8)}.parquet") as temporary:
            completions.write_parquet(temporary)

    def scan(self) -> pl.LazyFrame:
        """Return all completions; if two processes sampled a rollout, the first file's."""
        parts = sorted(self._parts.glob("part-*.parquet"))
        if not parts:
            return pl.LazyFrame(schema=_SCHEMA)
        for part in parts:
            try:
                schema = pl.read_parquet_schema(part)
            except (OSError, pl.exceptions.PolarsError) as error:
                reason = str(error).partition("\n")[0]
                raise SourceError(
                    f"{part}: cannot be read ({reason}). Hint: delete it; its batch is sampled again."
                ) from error
            if schema not in (_SCHEMA, _WITHOUT_FAILURES):
                raise SourceError(
                    f"{part}: has the columns {dict(schema)}, must have {dict(_SCHEMA)}. Hint: delete "
                    "it; its batch is sampled again."
                )
        return pl.scan_parquet(parts, schema=_SCHEMA, missing_columns="insert").unique(
            ["prefix_id", "rollout"], keep="first", maintain_order=True
        )


def _remove_abandoned(folder: Path) -> None:
    """Remove the unfinished files of killed processes."""
    for file in folder.glob(f".*{TEMPORARY}"):
        if time.time() - file.stat().st_mtime > _ABANDONED:
            remove_folder(file)
