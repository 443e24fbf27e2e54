"""Recognize the kind of a file by its first bytes, never by its name."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeAlias, cast

from ttsframe.errors import SourceError

Container: TypeAlias = Literal["parquet", "arrow", "arrow_stream", "jsonl", "json", "text"]
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
}
_HEAD = 1 << 16


class DataFile(NamedTuple):
    """A file, and how its bytes are encoded."""

    path: Path
    container: Container
    compression: Compression | None


def sniff(path: Path) -> DataFile:
    """Recognize a file by its beginning; an unknown file counts as `text`."""
    with open_binary(DataFile(path, "text", None)) as raw:
        magic = raw.read(6)
    if not magic:
        raise SourceError(
            f"{path}: is empty (0 bytes), must hold at least one row. Hint: the run that wrote it may "
            f"have stopped early."
        )
    compression = next((kind for key, kind in _COMPRESSIONS.items() if magic.startswith(key)), None)
    file = DataFile(path, "text", compression)
    with open_binary(file) as stream:
        head = stream.read(_HEAD)
        for key, container in _BINARY.items():
            if head.startswith(key):
                return file._replace(container=container)
        if head.startswith(_UTF_16):
            raise SourceError(
                f"{path}: is UTF-16 text, must be UTF-8. Hint: iconv -f UTF-16 -t UTF-8."
            )
        text = head.removeprefix(codecs.BOM_UTF8).lstrip()
        if not text:
            raise SourceError(f"{path}: holds no rows, only white space.")
        if text.startswith(b"["):
            return file._replace(container="json")
        if text.startswith(b"{"):
            first = text if b"\n" in text else text + stream.readline()
            return file._replace(container=_lines_or_document(first.partition(b"\n")[0]))
    return file


def _lines_or_document(first_line: bytes) -> Container:
    """Distinguish one object per line from one object spread over several lines."""
    try:
        json.loads(first_line)
    except (ValueError, RecursionError):
        # A broken line of JSONL hardly ever ends where a pretty-printer breaks lines.
        return "json" if first_line.rstrip().endswith((b"{", b"[", b",")) else "jsonl"
    return "jsonl"


@contextmanager
def open_binary(file: DataFile) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed; errors of the disk or codec name the file."""
    try:
        if file.compression is None:
            with file.path.open("rb") as handle:
                yield handle
        else:
            import pyarrow as pa  # slow to import, and only needed here

            with pa.input_stream(str(file.path), compression=file.compression) as stream:
                yield cast("BinaryIO", io.BufferedReader(stream, _HEAD))
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{file.path}: cannot be read ({reason}).") from error
