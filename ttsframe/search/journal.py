"""What servers answered, kept in a file as it comes: a search that was stopped goes on from there.

A search is a function of the answers: its policy has no state and its draws no stream. So the journal
holds nothing else, one record per problem and round, each with its length and checksum.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ttsframe._files import check_parent_folder, open_own, replacing
from ttsframe._typing import Integers
from ttsframe.errors import SourceError
from ttsframe.search.engine import ANSWER_SCHEMA, Record
from ttsframe.search.nodes import FINISH_REASONS
from ttsframe.search.policies import Policy

_FORMAT: Final = 2
_FRAME: Final = struct.Struct("<II")
"""Length and checksum, before each record."""
_HEAD: Final = struct.Struct("<IIIH")
"""Problem, round, rows, and which nullable columns are there."""
_NULL: Final = np.uint64(0x7FF8_7474_7366_6E75)
"""A NaN that stands for null among the scores of a list."""
_NO_INT: Final = np.iinfo(np.int64).min

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

Part: TypeAlias = tuple[npt.NDArray[Any], Integers | None]


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
            if any(self._folder.iterdir()):
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
        return pl.read_parquet(self._nodes) if self._nodes.exists() else None

    def recorded(self) -> pl.DataFrame | None:
        """Return all whole records, and prepare to add more; what is behind them is dropped."""
        # Opened once for reading and writing, and locked: a second process would spoil it.
        self._handle = os.fdopen(open_own(self._file, os.O_RDWR | os.O_APPEND), "a+b")
        _lock(self._handle, self._folder)
        self._handle.seek(0)
        content = self._handle.read()
        records, n_good = [], 0
        for payload, end in _payloads(content):
            records.append(payload)
            n_good = end
        if n_good < len(content):
            self._handle.truncate(n_good)
        return _decode(records)

    def keep(self, record: Record) -> None:
        """Add the answers of a round."""
        if self._handle is not None:
            self._handle.write(b"".join(_encode(record)))
            self._handle.flush()

    def close(self) -> None:
        """Close the journal; it stays for a later run."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def finish(self, nodes: pl.DataFrame) -> None:
        """Replace the journal by the nodes."""
        with replacing(self._nodes) as temporary:
            # Each second counts here, for servers may be fast: the default of Polars takes twice as long.
            nodes.write_parquet(temporary, compression="lz4", statistics=False)
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


def _payloads(content: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each whole record, up to the first that is cut or damaged."""
    start = 0
    while start + _FRAME.size <= len(content):
        length, checksum = _FRAME.unpack_from(content, start)
        start += _FRAME.size
        payload = content[start : start + length]
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        start += length
        yield payload, start


def _encode(record: Record) -> list[bytes | memoryview]:
    """Return the pieces of the records of a round, one record for each problem."""
    answers = record.answers
    problems = answers["problem"].to_numpy()
    bounds = np.flatnonzero(problems[1:] != problems[:-1]) + 1
    bounds = np.concatenate(([0], bounds, [len(problems)]))
    there = sum(
        1 << bit
        for bit, name in enumerate(_LEFT_OUT_IF_EMPTY)
        if answers[name].null_count() < answers.height
    )
    rows = np.empty(answers.height, dtype=_row_type(there))
    parts: list[Part] = [(rows, None)]
    for name in _names(there):
        part = _CODECS[name].write(answers[name], rows, name)
        if part is not None:
            parts.append(part)
    columns = [_cut(part, bounds) for part in parts]
    sizes = np.diff(bounds).tolist()
    pieces: list[bytes | memoryview] = []
    for row, (problem, n) in enumerate(zip(problems[bounds[:-1]].tolist(), sizes, strict=True)):
        head = _HEAD.pack(problem, record.round, n, there)
        checksum, length = zlib.crc32(head), len(head)
        payload: list[bytes | memoryview] = [head]
        for data, at in columns:
            piece = data[at[row] : at[row + 1]]
            checksum = zlib.crc32(piece, checksum)
            length += len(piece)
            payload.append(piece)
        pieces.append(_FRAME.pack(length, checksum))
        pieces += payload
    return pieces


def _cut(part: Part, bounds: Integers) -> tuple[memoryview, list[int]]:
    """Return the bytes of a buffer, and where those of each problem begin."""
    values, places = part
    rows = bounds if places is None else places[bounds]
    return np.ascontiguousarray(values).view(np.uint8).data, (rows * values.itemsize).tolist()


def _names(there: int) -> list[str]:
    """Return the columns that a record has."""
    return [
        name
        for name in ANSWER_SCHEMA
        if name != "problem"
        and (name not in _LEFT_OUT_IF_EMPTY or there >> _LEFT_OUT_IF_EMPTY.index(name) & 1)
    ]


def _row_type(there: int) -> np.dtype[np.void]:
    """Return what a record holds of each row, before the texts and lists of all its rows."""
    return np.dtype([
        (name + suffix, dtype)
        for name in _names(there)
        for suffix, dtype in _CODECS[name].fields.items()
    ])


class _Reader:
    """Reads a record: its rows, then texts and lists, one column after the other."""

    def __init__(self, payload: bytes) -> None:
        self.problem, self.round, self.n, self.there = _HEAD.unpack_from(payload)
        dtype = _row_type(self.there)
        self._payload = payload
        self.rows = np.frombuffer(payload, dtype=dtype, count=self.n, offset=_HEAD.size)
        self._at = _HEAD.size + self.n * dtype.itemsize

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        found = self._payload[self._at : self._at + size]
        self._at += size
        return found


def _decode(payloads: list[bytes]) -> pl.DataFrame | None:
    """Return records as one frame, with `round`."""
    if not payloads:
        return None
    columns: dict[str, list[pl.Series]] = {name: [] for name in ["round", *ANSWER_SCHEMA]}
    for payload in payloads:
        reader = _Reader(payload)
        n, names = reader.n, _names(reader.there)
        columns["round"].append(pl.Series([reader.round], dtype=pl.Int64).new_from_index(0, n))
        columns["problem"].append(pl.Series([reader.problem], dtype=pl.Int64).new_from_index(0, n))
        for name, dtype in ANSWER_SCHEMA.items():
            if name == "problem":
                continue
            column = (
                _CODECS[name].read(reader, name)
                if name in names
                else pl.Series([None], dtype=dtype).new_from_index(0, n)
            )
            columns[name].append(column.cast(dtype))
    return pl.DataFrame([pl.concat(parts).rename(name) for name, parts in columns.items()])


class _Codec(NamedTuple):
    """How a column is kept: fields of each row, and perhaps the bytes of texts or lists."""

    fields: dict[str, str]
    """Suffix of the field's name, and its numpy type."""
    write: Callable[[pl.Series, npt.NDArray[np.void], str], Part | None]
    """Fills the fields; returns the buffer of texts or lists with the places where rows begin."""
    read: Callable[[_Reader, str], pl.Series]


def _write_texts(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> Part:
    array = column.fill_null("").to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    rows[name] = np.where(column.is_null().to_numpy(), -1, np.diff(places))
    return np.frombuffer(data or b"", dtype=np.uint8), places


def _read_texts(reader: _Reader, name: str) -> pl.Series:
    lengths = reader.rows[name]
    places = _places(lengths)
    data = pa.py_buffer(reader.take(int(places[-1])))
    array = pa.LargeStringArray.from_buffers(reader.n, pa.py_buffer(places), data)
    return pl.Series(values=array).set(pl.Series(lengths < 0), None)


def _write_lists(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> Part:
    inner = column.explode(empty_as_null=False, keep_nulls=False)
    bits = inner.fill_null(0.0).to_numpy().copy().view(np.uint64)
    bits[inner.is_null().to_numpy()] = _NULL
    rows[name] = column.list.len().cast(pl.Int32).fill_null(-1).to_numpy()
    return bits, _places(rows[name])


def _read_lists(reader: _Reader, name: str) -> pl.Series:
    lengths = reader.rows[name]
    places = _places(lengths)
    bits = np.frombuffer(reader.take(8 * int(places[-1])), dtype=np.uint64)
    values = pl.Series(bits.view(np.float64)).set(pl.Series(bits == _NULL), None)
    lists = pa.LargeListArray.from_arrays(pa.array(places), values.to_arrow())
    return pl.Series(values=lists).set(pl.Series(lengths < 0), None)


def _places(lengths: npt.NDArray[np.int32]) -> Integers:
    return np.append(0, np.cumsum(np.maximum(lengths, 0))).astype(np.int64)


def _write_reasons(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> None:
    codes = range(len(FINISH_REASONS))
    rows[name] = column.replace_strict(FINISH_REASONS, codes, return_dtype=pl.UInt8).to_numpy()


def _read_reasons(reader: _Reader, name: str) -> pl.Series:
    return pl.Series(FINISH_REASONS).gather(_field(reader, name))


def _write_scores(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> None:
    rows[name] = column.fill_null(float("nan")).to_numpy()


def _read_scores(reader: _Reader, name: str) -> pl.Series:
    return pl.Series(_field(reader, name)).fill_nan(None)


def _write_words(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> None:
    rows[name + "?"] = column.is_null().cast(pl.UInt8).to_numpy()
    rows[name] = column.fill_null(0).to_numpy()


def _read_words(reader: _Reader, name: str) -> pl.Series:
    return pl.Series(_field(reader, name)).set(pl.Series(_field(reader, name + "?") == 1), None)


def _write_integers(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> None:
    rows[name] = column.fill_null(_NO_INT).to_numpy()


def _read_integers(reader: _Reader, name: str) -> pl.Series:
    values = _field(reader, name)
    return pl.Series(values).set(pl.Series(values == _NO_INT), None)


def _write_plain(column: pl.Series, rows: npt.NDArray[np.void], name: str) -> None:
    rows[name] = column.to_numpy()


def _read_plain(reader: _Reader, name: str) -> pl.Series:
    return pl.Series(_field(reader, name))


def _field(reader: _Reader, name: str) -> npt.NDArray[Any]:
    return np.ascontiguousarray(reader.rows[name])


_INDEXES: Final = _Codec({"": "<i4"}, _write_plain, _read_plain)
_TEXTS: Final = _Codec({"": "<i4"}, _write_texts, _read_texts)
_INTEGERS: Final = _Codec({"": "<i8"}, _write_integers, _read_integers)

_CODECS: Final = {
    "request": _INDEXES,
    "child": _INDEXES,
    "text": _TEXTS,
    "lookahead_text": _TEXTS,
    "finish_reason": _Codec({"": "u1"}, _write_reasons, _read_reasons),
    "n_tokens": _INTEGERS,
    "n_lookahead_tokens": _INTEGERS,
    "n_prompt_tokens_new": _INTEGERS,
    "node_id": _Codec({"": "<u8"}, _write_plain, _read_plain),
    "state": _Codec({"": "<u8", "?": "u1"}, _write_words, _read_words),
    "step_score": _Codec({"": "<f8"}, _write_scores, _read_scores),
    "score_vector": _Codec({"": "<i4"}, _write_lists, _read_lists),
}
