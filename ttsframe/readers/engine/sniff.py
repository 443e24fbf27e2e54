"""Recognize the kind of a file, or of bytes in memory, by its beginning, never by its name."""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, cast

import polars as pl

from ttsframe.errors import SourceError

Container: TypeAlias = Literal[
    "parquet", "arrow", "arrow_stream", "jsonl", "json", "csv", "text", "rows", "frame", "zip"
]
Compression: TypeAlias = Literal["gzip", "zstd", "bz2"]

_COMPRESSIONS: dict[bytes, Compression] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
}
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BINARY: dict[bytes, Container] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow_stream",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
_HEAD = 1 << 16
_MOST_LINE_BYTES = 1 << 28
_LINES_PER_DOCUMENT = 8
_LIMIT = "TTSFRAME_MAX_LINE_BYTES"


class Unpacked(NamedTuple):
    """A row of a file that is no table, or the reason why it cannot be read."""

    place: str
    """Where it is in the file, for messages: a member of an archive, a path into a document."""
    row: Mapping[str, Any] = {}
    fault: str | None = None


class HeldRows:
    """Unpacked rows as frames, held while they are few; they are not pickled."""

    def __init__(self, chunks: Sequence[Any] = (), n_bytes: int = 0) -> None:
        self.chunks = tuple(chunks)
        self.n_bytes = n_bytes

    def __reduce__(self) -> tuple[type[HeldRows], tuple[()]]:
        """Leave the chunks behind: another process unpacks the file again."""
        return HeldRows, ()


class DataFile(NamedTuple):
    """A file or what stands for one, and how its bytes are encoded."""

    path: Path
    """Of what is in memory, the words that name it."""
    container: Container
    compression: Compression | None
    held: bytes | pl.LazyFrame | None = None
    """The content, if it is in memory."""
    url: str | None = None
    unpack: Callable[[DataFile], Iterator[Unpacked]] | None = None
    """How its rows are found, if it is no table."""
    rows: HeldRows | None = None
    """The rows that were found, where they are few."""
    head: bytes | None = None
    """Its first bytes, while it is being recognized."""

    @property
    def name(self) -> str:
        """The path, URL or words, for messages and `source_file`."""
        return self.url or str(self.path)

    @property
    def row_word(self) -> str:
        """What a row is called in messages."""
        if self.unpack is not None:
            return "row"
        return {"jsonl": "line", "json": "element"}.get(self.container, "row")

    @property
    def is_json(self) -> bool:
        """Whether its rows are JSON objects, whose columns need not be the same in all rows."""
        return self.unpack is not None or self.container in {"jsonl", "json", "rows"}


def sniff(path: Path, held: bytes | None = None, url: str | None = None) -> DataFile:
    """Recognize a file by its beginning; an unknown file counts as `text`."""
    unknown = DataFile(path, "text", None, held, url)
    with open_binary(unknown) as raw:
        start = raw.read(_HEAD)
        if not start:
            raise SourceError(
                f"{unknown.name}: is empty (0 bytes), must hold at least one row. Hint: the run that wrote it may "
                f"have stopped early."
            )
        compression = next(
            (kind for key, kind in _COMPRESSIONS.items() if start.startswith(key)), None
        )
        if compression is None:
            return _recognize_head(unknown, start, raw)
    file = unknown._replace(compression=compression)
    with open_binary(file) as stream:
        return _recognize_head(file, stream.read(_HEAD), stream)


def _recognize_head(file: DataFile, head: bytes, stream: BinaryIO) -> DataFile:
    """Recognize a file by its first bytes, and the rest of its first line where that is needed."""
    for key, container in _BINARY.items():
        if head.startswith(key):
            return file._replace(container=container)
    if head.startswith(_UTF_16):
        raise SourceError(
            f"{file.name}: is UTF-16 text, must be UTF-8. Hint: iconv -f UTF-16 -t UTF-8."
        )
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if not text:
        raise SourceError(f"{file.name}: holds no rows, only white space.")
    if text.startswith(b"["):
        return file._replace(container="json", head=head)
    first, end, _ = text.partition(b"\n")
    if text.startswith(b"{"):
        if not end:
            first += read_line(stream, file, 1)
        return file._replace(container=_lines_or_document(first), head=head)
    return file._replace(container="csv") if csv_separator(first) is not None else file


def most_line_bytes() -> int:
    """Return how long a line may be: reading it takes about nine times the memory."""
    given = os.environ.get(_LIMIT, "")
    return int(given) if given.isascii() and given.isdigit() else _MOST_LINE_BYTES


def read_line(stream: BinaryIO, file: DataFile, number: int) -> bytes:
    """Read the rest of a line, or raise where it is too long."""
    most = most_line_bytes()
    line = stream.readline(most + 1)
    if len(line) > most:
        raise too_long(f"{file.name}, line {number:,}", most)
    return line


def read_whole(stream: BinaryIO, file: DataFile) -> bytes:
    """Read all that is left, or raise where a compressed file holds too much."""
    if file.compression is None:
        return stream.read()
    most = _LINES_PER_DOCUMENT * most_line_bytes()
    content = stream.read(most + 1)
    if len(content) > most:
        raise too_long(file.name, most)
    return content


def too_long(place: str, most: int) -> SourceError:
    """Build the error for a line or document that would take too much memory."""
    return SourceError(
        f"{place}: holds more than {most:,} bytes, which are read at once and take about nine times the memory. "
        f"Hint: if that is right, the environment variable {_LIMIT} sets how many bytes a line may have."
    )


def content_of(file: DataFile) -> bytes | None:
    """Return the whole content of a small file that is being recognized; None if it is not at hand."""
    is_whole = file.compression is None and file.head is not None and len(file.head) < _HEAD
    return file.head if is_whole else None


def head_of(file: DataFile) -> bytes:
    """Return the first 64 KiB of a file, decompressed, without a byte order mark."""
    head = file.head
    if head is None:
        with open_binary(file) as stream:
            head = stream.read(_HEAD)
    return head.removeprefix(codecs.BOM_UTF8)


def csv_separator(first_line: bytes) -> str | None:
    """Return the separator if a line can be the header of a CSV file: several distinct names."""
    try:
        line = first_line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    separator = max("\t,;", key=line.count)
    names = next(csv.reader([line], delimiter=separator), [])
    is_header = 1 < len(names) == len(set(names)) and all(name.strip() for name in names)
    return separator if is_header else None


def _lines_or_document(first_line: bytes) -> Container:
    """Distinguish one object per line from one object spread over several lines."""
    # No object ends so, and a broken line of JSONL hardly ever ends where a pretty-printer breaks lines.
    return "json" if first_line.rstrip().endswith((b"{", b"[", b",")) else "jsonl"


@contextmanager
def open_binary(file: DataFile) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed; errors of the disk or codec name the file."""
    try:
        if file.compression is not None:
            import pyarrow as pa  # slow to import, and only needed here

            source = pa.py_buffer(file.held) if isinstance(file.held, bytes) else str(file.path)
            with pa.input_stream(source, compression=file.compression) as stream:
                yield cast("BinaryIO", io.BufferedReader(stream, _HEAD))
        elif isinstance(file.held, bytes):
            yield io.BytesIO(file.held)
        else:
            with file.path.open("rb") as handle:
                yield handle
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{file.name}: cannot be read ({reason}).") from error
