"""JSON rows in chunks of a few megabytes, each with the number of its first row."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from io import SEEK_END
from typing import NamedTuple

import numpy as np

from ttsframe.errors import SourceError
from ttsframe.readers.engine.json_rows import ARRAY_END
from ttsframe.readers.engine.sniff import (
    DataFile,
    content_of,
    most_line_bytes,
    open_binary,
    read_line,
    read_whole,
    too_long,
)

CHUNK_BYTES = 6 << 20
_SEARCHED = 1 << 16
_LINE_END = ord("\n")
_SPACE = " \t\r\n"


class Span(NamedTuple):
    """A range of bytes of a file that holds complete lines."""

    start: int
    end: int
    first: int
    """Number of the first line, from 1."""
    n_ends: int | None = None
    """Number of line ends, once they were counted."""


class Chunk(NamedTuple):
    """Some consecutive rows, one JSON object per line."""

    data: bytes
    first: int
    """Number of the first line (of the first element, in an array), from 1."""
    n_ends: int | None = None
    """Number of line ends, where they were counted: each count is a pass over the bytes."""

    @property
    def n_lines(self) -> int:
        n_ends = count_ends(self.data) if self.n_ends is None else self.n_ends
        return n_ends + (not self.data.endswith(b"\n"))

    def halves(self) -> tuple[Chunk, Chunk] | None:
        """Cut at the line end nearest to the middle; None if the chunk is a single line."""
        middle = len(self.data) // 2
        cut = self.data.find(b"\n", middle) + 1
        if cut in {0, len(self.data)}:
            cut = self.data.rfind(b"\n", 0, middle) + 1
        if cut == 0:
            return None
        left = Chunk(self.data[:cut], self.first)
        return left, Chunk(self.data[cut:], self.first + left.data.count(b"\n"))

    def rows(self) -> Iterator[tuple[int, bytes, bool]]:
        """Yield the number and bytes of each row, and whether it ends the chunk without a line end."""
        lines = self.data.split(b"\n")
        for offset, line in enumerate(lines):
            if line.strip():
                yield self.first + offset, line, offset == len(lines) - 1


def count_ends(data: bytes) -> int:
    """Count line ends; unlike `bytes.count`, this does not block other threads."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == _LINE_END))


def read_chunks(file: DataFile) -> Iterator[Chunk]:
    """Yield the rows of JSON lines, or of a JSON document (an array or one object)."""
    return _from_document(file) if file.container == "json" else _from_lines(file)


def _from_lines(file: DataFile) -> Iterator[Chunk]:
    with open_binary(file) as stream:
        start = stream.read(CHUNK_BYTES).removeprefix(codecs.BOM_UTF8)
        first = 1
        while start:
            data = start
            if not start.endswith(b"\n"):
                data += read_line(stream, file, first + start.count(b"\n"))
            if not data.isspace():
                yield Chunk(data, first)
            first += data.count(b"\n")
            start = stream.read(CHUNK_BYTES)


def cut_spans(file: DataFile) -> list[Span]:
    """Cut uncompressed JSON lines into spans while reading only a few bytes."""
    # The lines are not counted yet, so each span claims to begin at line 1.
    content = content_of(file)
    if content is not None:
        return [Span(0, len(content), 1)]
    spans: list[Span] = []
    most = CHUNK_BYTES + most_line_bytes()
    with open_binary(file) as stream:
        size = stream.seek(0, SEEK_END)
        start = 0
        while start < size:
            end = start + CHUNK_BYTES - 1
            stream.seek(end)
            while piece := stream.readline(_SEARCHED):
                end += len(piece)
                if end - start > most:
                    raise too_long(f"{file.name}, a line after byte {start:,}", most)
                if piece.endswith(b"\n"):
                    break
            end = min(end, size)
            spans.append(Span(start, end, 1))
            start = end
    return spans


def read_span(file: DataFile, span: Span) -> Chunk:
    """Read the lines of a span."""
    data = content_of(file)
    if data is None:
        with open_binary(file) as stream:
            stream.seek(span.start)
            data = stream.read(span.end - span.start)
    if len(data) < span.end - span.start:
        raise SourceError(
            f"{file.name}: has {file.path.stat().st_size:,} bytes, had at least {span.end:,} when it was "
            f"scanned. Hint: scan it again once it is no longer being written."
        )
    whole = data if span.start else data.removeprefix(codecs.BOM_UTF8)
    return Chunk(whole, span.first, span.n_ends)


def _from_document(file: DataFile) -> Iterator[Chunk]:
    with open_binary(file) as stream:
        content = read_whole(stream, file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{file.name}, byte {error.start}: is not UTF-8 ({error.reason})."
        ) from error
    pending: list[bytes] = []
    size, first = 0, 1
    for count, element in enumerate(_split_elements(text), 1):
        # A line end inside a valid value separates tokens, and a space does the same.
        pending.append(element.replace("\n", " ").encode())
        size += len(pending[-1]) + 1
        if size >= CHUNK_BYTES:
            yield Chunk(b"\n".join(pending) + b"\n", first)
            pending, size, first = [], 0, count + 1
    if pending:
        yield Chunk(b"\n".join(pending), first)


def _split_elements(text: str) -> Iterator[str]:
    """Yield the text of each element; text that cannot be decoded is yielded last, as it is."""
    decode = json.JSONDecoder().raw_decode
    position = len(text) - len(text.lstrip())
    is_array = text.startswith("[", position)
    position += is_array
    while (position := _skip_spaces(text, position)) < len(text):
        if is_array and text[position] == "]":
            if trailing := text[position + 1 :].strip():
                yield trailing
            return
        try:
            _, end = decode(text, position)
        except (ValueError, RecursionError):
            break
        yield text[position:end]
        position = _skip_spaces(text, end)
        if is_array and text[position : position + 1] == ",":
            position += 1
        elif is_array and text[position : position + 1] != "]":
            break
    if is_array or position < len(text):
        yield text[position:] or ARRAY_END


def _skip_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position
