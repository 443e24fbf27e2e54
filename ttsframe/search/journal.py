"""What servers answered, kept in a file as it comes: a search that was stopped goes on from there.

A search is a function of the answers: its policy has no state and its draws no stream. So the journal
holds nothing else, one record for each round of the problems that are searched together, with its lengths
and checksum. A record is handed to the operating system before the next round begins, so it outlives the
process; what a failure of the machine cuts off is asked again.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import polars as pl
import pyarrow as pa

from ttsframe._files import TEMPORARY, check_parent_folder, open_own, remove_folder, replacing
from ttsframe.errors import SourceError
from ttsframe.search.engine import ANSWER_SCHEMA, Record
from ttsframe.search.policies import Policy

_FORMAT: Final = 4
_FRAME: Final = struct.Struct("<IHH")
"""Checksum, round and number of parts; their lengths and the parts follow."""
_OLDEST: Final = pl.CompatLevel.oldest()
_PAGE_WORDS: Final = 512
_ROW_GROUP: Final = 1 << 15
"""Rows that Parquet packs at a time: few enough for the cache of a processor."""


class Journal:
    """The folder of a search: what it is, its journal, and at the end its nodes."""

    def __init__(self, folder: str | os.PathLike[str], key: dict[str, object]) -> None:
        self._folder = Path(folder)
        self._about = self._folder / "search.json"
        self._file = self._folder / "journal.bin"
        self._nodes = self._folder / "nodes.parquet"
        self._handle: BinaryIO | None = None
        try:
            self._open(key)
        except OSError as error:
            raise SourceError(
                f"{self._folder}: cannot be used as a checkpoint ({error.strerror or error}). Hint: choose a "
                "folder that can be written to."
            ) from error

    def _open(self, key: dict[str, object]) -> None:
        if not self._folder.is_dir():
            check_parent_folder(self._folder)
            self._folder.mkdir()
        if not self._about.exists():
            if set(self._folder.iterdir()) - self._unfinished():
                raise SourceError(
                    f"{self._folder}: holds other files, must be an empty folder or the checkpoint of a search."
                )
            with replacing(self._about) as temporary:
                temporary.write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")
        self._check(key)

    def _check(self, key: dict[str, object]) -> None:
        try:
            found = json.loads(self._about.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SourceError(
                f"{self._about}: is damaged ({error}). Hint: delete the folder."
            ) from error
        if self._nodes.exists():  # the format is that of the journal
            found["format"] = _FORMAT
        different = [name for name in key if found.get(name) != key[name]]
        if different:
            name = different[0]
            before, now = _what_differs(str(found.get(name)), str(key[name]))
            raise SourceError(
                f"{self._folder}: is the checkpoint of another search: {name} was {before}, is "
                f"{now}. Hint: name another folder, or repeat the search with what it began with."
            )

    def finished(self) -> pl.DataFrame | None:
        """Return the nodes if the search has come to its end."""
        if not self._nodes.exists():
            return None
        # The process that wrote them may have been killed before it did.
        self._file.unlink(missing_ok=True)
        return pl.read_parquet(self._nodes)

    def _unfinished(self) -> set[Path]:
        """Return what a process that was killed did not finish."""
        return set(self._folder.glob(f".*{TEMPORARY}"))

    def recorded(self) -> pl.DataFrame | None:
        """Return all whole records, and prepare to add more; what is behind them is dropped."""
        # Opened once for reading and writing, and locked: a second process would spoil it.
        self._handle = os.fdopen(open_own(self._file, os.O_RDWR | os.O_APPEND), "a+b")
        _lock(self._handle, self._folder)
        self._handle.seek(0)
        content = self._handle.read()
        records, n_good = [], 0
        for answers, end in _decoded(content):
            records.append(answers)
            n_good = end
        if n_good < len(content):
            self._handle.truncate(n_good)
        return pl.concat(records, rechunk=True) if records else None

    def keep(self, record: Record) -> None:
        """Add the answers of a round."""
        if self._handle is not None:
            self._handle.writelines(_encode(record))
            self._handle.flush()

    def close(self) -> None:
        """Close the journal; it stays for a later run."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def finish(self, nodes: pl.DataFrame) -> None:
        """Replace the journal by the nodes."""
        for unfinished in self._unfinished():
            remove_folder(unfinished)  # of a process that was killed: the journal is locked
        with replacing(self._nodes) as temporary:
            # Each second counts here, for servers may be fast: the default of Polars takes twice as long.
            nodes.write_parquet(
                temporary, compression="lz4", statistics=False, row_group_size=_ROW_GROUP
            )
        self.close()
        self._file.unlink(missing_ok=True)


def key_of(problems: pl.DataFrame, policy: Policy, seed: int) -> dict[str, object]:
    """Return what a search is, apart from its servers."""
    digest = blake2b(digest_size=16)
    for name in ("problem_id", "text"):
        column = problems[name].cast(pl.String)
        digest.update(json.dumps([str(problems[name].dtype), column.to_list()]).encode())
    return {
        "format": _FORMAT,
        "seed": seed,
        "policy": repr(policy),
        "n_problems": problems.height,
        "problems": digest.hexdigest(),
    }


def _what_differs(before: str, now: str) -> tuple[str, str]:
    """Leave out the parameters that two policies share."""
    (name, _, parameters), (other, _, others) = before.partition("("), now.partition("(")
    if name != other or not parameters:
        return name, other
    pairs = zip(parameters.rstrip(")").split(", "), others.rstrip(")").split(", "), strict=False)
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    return ", ".join(pair[0] for pair in changed), ", ".join(pair[1] for pair in changed)


def _lock(handle: BinaryIO, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise SourceError(
            f"{folder}: another process writes this checkpoint. Hint: wait for it, or name another folder."
        ) from error


class _Parts(list[bytes]):
    """The parts of an Arrow stream, collected where they lie: to put them together would copy them."""

    closed = False
    write = list.append

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _encode(record: Record) -> list[bytes]:
    """Return the bytes of a record: its head, and its columns as an Arrow stream."""
    answers, parts = record.answers, _Parts()
    is_told = [column.null_count() < max(answers.height, 1) for column in answers]
    told = answers.select(compress(answers.columns, is_told))
    narrow = told.cast({"problem": pl.Int32, "request": pl.Int32, "child": pl.Int32})
    table = narrow.to_arrow(compat_level=_OLDEST)
    with pa.ipc.new_stream(pa.PythonFile(parts, "w"), table.schema) as stream:
        stream.write_table(table)
    lengths = struct.pack(f"<{len(parts)}Q", *map(len, parts))
    head = _FRAME.pack(0, record.round, len(parts)) + lengths
    return [_FRAME.pack(_checksum([head, *parts]), record.round, len(parts)), lengths, *parts]


def _decoded(content: bytes) -> Iterator[tuple[pl.DataFrame, int]]:
    """Yield each whole record and where it ends, up to the first that is cut or damaged."""
    start = 0
    while start + _FRAME.size <= len(content):
        checksum, number, n_parts = _FRAME.unpack_from(content, start)
        begin = start + _FRAME.size + 8 * n_parts
        if begin > len(content):
            return
        lengths = content[start + _FRAME.size : begin]
        ends = list(accumulate(struct.unpack(f"<{n_parts}Q", lengths), initial=begin))
        if ends[-1] > len(content):
            return
        parts = [content[first:end] for first, end in pairwise(ends)]
        if _checksum([_FRAME.pack(0, number, n_parts) + lengths, *parts]) != checksum:
            return
        start = ends[-1]
        there = pl.DataFrame(pa.ipc.open_stream(content[begin:start]).read_all())
        missing = [pl.lit(None).alias(name) for name in ANSWER_SCHEMA if name not in there.columns]
        answers = there.with_columns(missing).select(list(ANSWER_SCHEMA))
        whole = answers.cast(pl.Schema(ANSWER_SCHEMA))
        yield whole.with_columns(round=pl.lit(number, pl.Int64)), start


def _checksum(parts: list[bytes]) -> int:
    """Return the CRC of the sums of all pages of a few kilobytes; that of each byte takes five times as long."""
    found = 0
    for part in parts:
        n_pages = len(part) // (8 * _PAGE_WORDS)
        words = np.frombuffer(part, np.uint64, n_pages * _PAGE_WORDS)
        sums = words.reshape(n_pages, _PAGE_WORDS).sum(axis=1)
        rest = memoryview(part)[words.nbytes :]
        found = zlib.crc32(rest, zlib.crc32(sums, found))
    return found
