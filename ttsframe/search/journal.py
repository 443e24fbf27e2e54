"""What servers answered, kept in a file as it comes: a search that was stopped goes on from there.

A search is a function of the answers: its policy has no state and its draws no stream. So the journal
holds nothing else, one record for each round of the problems that are searched together, with its length
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
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl
import pyarrow as pa

from ttsframe._files import TEMPORARY, check_parent_folder, open_own, remove_folder, replacing
from ttsframe.errors import SourceError
from ttsframe.search.engine import ANSWER_SCHEMA, Record
from ttsframe.search.policies import Policy

_FORMAT: Final = 3
_FRAME: Final = struct.Struct("<QI")
"""Length and checksum, before each record."""
_HEAD: Final = struct.Struct("<HH")
"""Round, and which columns are left out; with the frame 16 bytes, so that what follows stays aligned."""
_OLDEST: Final = pl.CompatLevel.oldest()
_ROW_GROUP: Final = 1 << 15
"""Rows that Parquet packs at a time: few enough for the cache of a processor."""

_LEFT_OUT_IF_EMPTY: Final = (
    "lookahead_text",
    "n_tokens",
    "n_lookahead_tokens",
    "n_prompt_tokens_new",
    "state",
    "step_score",
    "score_vector",
)
"""Columns that a record has only if they hold more than nulls; the bit is their position."""

_DTYPES_IN_A_RECORD: Final[dict[str, pl.DataType]] = {
    "problem": pl.Int32(),
    "request": pl.Int32(),
    "child": pl.Int32(),
}
"""Columns that need fewer bytes there than in the frame."""


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
        self._file.unlink(
            missing_ok=True
        )  # the process that wrote them may have been killed before it did
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
            for piece in _encode(record):
                self._handle.write(piece)
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


def _encode(record: Record) -> tuple[bytes, pa.Buffer]:
    """Return the head of a record, and its columns as an Arrow record batch."""
    answers = record.answers
    left_out = [name for name in _LEFT_OUT_IF_EMPTY if answers[name].null_count() == answers.height]
    bits = sum(1 << _LEFT_OUT_IF_EMPTY.index(name) for name in left_out)
    # One plan for all columns: with fast servers each costs more than what it computes.
    narrow = answers.select(pl.col(name).cast(dtype) for name, dtype in _dtypes(left_out).items())
    block = narrow.to_arrow(compat_level=_OLDEST).combine_chunks().to_batches()[0].serialize()
    head = _HEAD.pack(record.round, bits)
    return _FRAME.pack(block.size, zlib.crc32(block, zlib.crc32(head))) + head, block


def _decoded(content: bytes) -> Iterator[tuple[pl.DataFrame, int]]:
    """Yield each whole record and where it ends, up to the first that is cut or damaged."""
    whole, start = pa.py_buffer(content), 0
    while (begin := start + _FRAME.size + _HEAD.size) <= len(content):
        length, checksum = _FRAME.unpack_from(content, start)
        end = begin + length
        head = content[begin - _HEAD.size : begin]
        if end > len(content):
            return
        block = whole[begin:end]
        if zlib.crc32(block, zlib.crc32(head)) != checksum:
            return
        number, bits = _HEAD.unpack(head)
        yield _decode(block, bits).with_columns(round=pl.lit(number, pl.Int64)), end
        start = end


def _decode(block: pa.Buffer, bits: int) -> pl.DataFrame:
    """Return the columns of a record."""
    left_out = [name for bit, name in enumerate(_LEFT_OUT_IF_EMPTY) if bits >> bit & 1]
    schema = pl.DataFrame(schema=_dtypes(left_out)).to_arrow(compat_level=_OLDEST).schema
    there = pl.DataFrame(pa.ipc.read_record_batch(block, schema))
    missing = [pl.lit(None).alias(name) for name in left_out]
    return there.with_columns(missing).select(list(ANSWER_SCHEMA)).cast(pl.Schema(ANSWER_SCHEMA))


def _dtypes(left_out: list[str]) -> pl.Schema:
    """Return the columns of a record and their dtypes there."""
    return pl.Schema({
        name: _DTYPES_IN_A_RECORD.get(name, dtype)
        for name, dtype in ANSWER_SCHEMA.items()
        if name not in left_out
    })
