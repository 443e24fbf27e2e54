"""JSON lines (and arrays) as a lazy frame with all columns, whose errors name file and line.

Polars infers a schema from the first rows: a column that starts later is lost silently, and errors
never name the line. So each file is inspected once, in chunks and on all cores, before it is scanned
with an explicit schema. A chunk that Polars refuses is halved until a few rows remain, which Python
parses. The first value of a repeated key counts; a column of mixed types becomes String and holds JSON
text; `null` and a missing key are both null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from ttsframe.errors import SourceError
from ttsframe.readers.engine.chunks import (
    Chunk,
    Span,
    count_ends,
    cut_spans,
    read_chunks,
    read_span,
)
from ttsframe.readers.engine.dtypes import (
    as_instance,
    column_dtypes,
    merge_dtypes,
    resolve_dtype,
)
from ttsframe.readers.engine.json_rows import (
    FILE,
    LONE_SURROGATE,
    ROW,
    BadRowError,
    Fault,
    fit_value,
    parse_row,
    rows_to_frame,
)
from ttsframe.readers.engine.parallel import on_all_cores
from ttsframe.readers.engine.sniff import DataFile
from ttsframe.readers.engine.unpacked import read_unpacked

_SLOW_LINES = 32
_SMALL = 1 << 16
"""Bytes up to which a query costs more than its work: such files are parsed together."""
_JOINED_BYTES = 1 << 21
_JOINED_FILES = 256
_FRAMES_AT_ONCE = 3
"""Chunks per batch: fewer and larger batches are cheaper for the rest of the query."""
_SPACE = r"[ \t\r\n]*"
_LINE = pl.col("line")
_IS_COMPLETE = pl.element().str.contains("[,}]$")
_PLAIN_NAME = re.compile(r"[\w@.-]+", re.ASCII)


class Inspection(NamedTuple):
    """The result of one pass over a file."""

    dtypes: dict[str, pl.DataType]
    n_rows: int
    faults: list[Fault]
    has_lone_surrogates: bool
    spans: Sequence[Span] = ()
    """The bytes of each chunk, of uncompressed JSON lines."""


class JsonFile(NamedTuple):
    """A file of JSON rows, and how to read it."""

    file: DataFile
    has_lone_surrogates: bool
    skipped: frozenset[int]
    """Numbers of the rows to leave out."""
    spans: tuple[Span, ...] = ()
    """The bytes to read, of uncompressed JSON lines; if empty, the complete file."""


_Job: TypeAlias = tuple[JsonFile, Chunk | Span]
_Parsed: TypeAlias = tuple[JsonFile | None, pl.DataFrame, list[Fault]]
"""A part of a file with its faults; without a file, rows of several that name theirs."""


def locate(file: DataFile, row: int) -> str:
    """Name a row of a file by its line, by its element in an array, or by its place."""
    if file.unpack is not None:
        one = next(islice(file.unpack(file), row - 1, None), None)
        return f"{file.name}, {one.place if one else f'row {row}'}"
    return f"{file.name}, {file.row_word} {row}"


def inspect_file(file: DataFile, known: frozenset[str]) -> Inspection:
    """Find the columns of a file, their dtypes, and its malformed rows."""
    if file.container != "json" and file.compression is None:
        return _inspect_spans(file, known)
    return _combine(list(on_all_cores(lambda chunk: _inspect(chunk, known), read_chunks(file))))


def _inspect_spans(file: DataFile, known: frozenset[str]) -> Inspection:
    """Inspect a file whose spans can be read independently, by the workers themselves."""

    def inspect_span(span: Span) -> tuple[Span, int, Inspection | None]:
        read = read_span(file, span)
        n_ends = count_ends(read.data)
        chunk = read._replace(n_ends=n_ends)
        inspection = None if chunk.data.isspace() else _inspect(chunk, known)
        return span._replace(n_ends=n_ends), n_ends, inspection

    spans: list[Span] = []
    parts: list[Inspection] = []
    n_before = 0
    cut = cut_spans(file)
    # A pool for a single span would cost more than the work.
    done = on_all_cores(inspect_span, cut) if len(cut) > 1 else map(inspect_span, cut)
    for span, n_ends, inspection in done:
        if inspection is not None:
            faults = [fault._replace(row=fault.row + n_before) for fault in inspection.faults]
            parts.append(inspection._replace(faults=faults))
            spans.append(span._replace(first=span.first + n_before))
        n_before += n_ends
    return _combine(parts)._replace(spans=spans)


def _inspect(chunk: Chunk, known: frozenset[str]) -> Inspection:
    try:
        inferred = pl.scan_ndjson(chunk.data, infer_schema_length=None).collect_schema()
        columns = tuple(inferred.items())
        try:
            dtypes, doubtful = _resolve_once(columns, known)
        except RecursionError:  # the hash of a deep tree needs a deeper stack than its resolution
            dtypes, doubtful = _resolve_once.__wrapped__(columns, known)
        is_small = len(chunk.data) <= _SMALL
        look = _search_small if is_small else search
        searched = look(chunk.data, doubtful)
        if doubtful.keys() - searched.confirmed:
            pl.read_ndjson(chunk.data, schema=doubtful)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        halves = chunk.halves() if chunk.n_lines > _SLOW_LINES else None
        if halves is not None:
            return _combine([_inspect(half, known) for half in halves])
        return _inspect_rows(chunk)
    is_lone = searched.may_hold_surrogates and bool(LONE_SURROGATE.search(chunk.data))
    return Inspection(dtypes, chunk.n_lines, [], is_lone)


@lru_cache(maxsize=64)
def _resolve_once(
    inferred: tuple[tuple[str, pl.DataType], ...], known: frozenset[str]
) -> tuple[dict[str, pl.DataType], dict[str, pl.DataType]]:
    """Return the dtypes of inferred columns, and those to check: files of one run have the same."""
    dtypes = {name: resolve_dtype(dtype, unseen=pl.Null()) for name, dtype in inferred}
    # Inference takes true for 1 and ignores lists within lists: a search or a read checks them.
    return dtypes, {
        name: resolve_dtype(dtype, unseen=pl.String())
        for name, dtype in dtypes.items()
        if name not in known and dtype not in {pl.String(), pl.List(pl.String())}
    }


class SearchResult(NamedTuple):
    """The result of a text search through some rows."""

    may_hold_surrogates: bool
    """Whether an escape belongs to a surrogate pair, or to half of one."""
    confirmed: frozenset[str]
    """Columns whose values are all written like their dtype."""


def search(data: bytes, columns: Mapping[str, pl.DataType]) -> SearchResult:
    """Search the text of JSON rows, several times faster than parsing them."""
    # Raises a PolarsError if the rows are not UTF-8.
    patterns = {name: _column_pattern(name, dtype) for name, dtype in columns.items()}
    # One query, because each query releases and reacquires the interpreter's lock.
    matches = (
        pl
        .scan_lines(data)
        .select(
            pl.any_horizontal(
                _LINE.str.contains(half, literal=True).any() for half in (r"\ud", r"\uD")
            ).alias("half"),
            *(
                _LINE.str
                .extract_all(pattern)
                .list.eval(_IS_COMPLETE)
                .list.all()
                .all()
                .alias(f"in {name}")
                for name, pattern in patterns.items()
                if pattern is not None
            ),
        )
        .collect()
        .row(0, named=True)
    )
    confirmed = frozenset(name for name in columns if matches.get(f"in {name}"))
    return SearchResult(matches["half"], confirmed)


def _search_small(data: bytes, columns: Mapping[str, pl.DataType]) -> SearchResult:
    """Search the text of a few rows, of which a query costs more than the work."""
    data.decode()
    confirmed = []
    for name, dtype in columns.items():
        pattern = _compiled_pattern(name, dtype)
        if pattern is not None and all(
            match[0].endswith((b",", b"}")) for match in pattern.finditer(data)
        ):
            confirmed.append(name)
    return SearchResult(rb"\ud" in data or rb"\uD" in data, frozenset(confirmed))


@lru_cache(maxsize=1024)
def _compiled_pattern(name: str, dtype: pl.DataType) -> re.Pattern[bytes] | None:
    pattern = _column_pattern(name, dtype)
    return None if pattern is None else re.compile(pattern.encode())


def _column_pattern(name: str, dtype: pl.DataType) -> str | None:
    """Return a pattern for a key, with its value if that fits a dtype; None without a pattern."""
    value = _pattern(dtype)
    if value is None or not _PLAIN_NAME.fullmatch(name):
        return None
    # Inside a string the second quote would be escaped, so a match is a key.
    return rf'"{re.escape(name)}"{_SPACE}:(?:{_SPACE}(?:{value}|null){_SPACE}[,}}])?'


def _pattern(dtype: pl.DataType) -> str | None:
    """Return a pattern for values of a dtype; integers of 19 digits may be too large for Int64."""
    if isinstance(dtype, pl.List):
        inner = _pattern(as_instance(dtype.inner))
        if inner is None:
            return None
        item = rf"{_SPACE}(?:{inner}|null){_SPACE}"
        return rf"\[(?:{_SPACE}|{item}(?:,{item})*)\]"
    return {
        pl.Null: "null",
        pl.Boolean: "(?:true|false)",
        pl.Int64: "-?[0-9]{1,18}",
        pl.Float64: r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?",
    }.get(type(dtype))


def _inspect_rows(chunk: Chunk) -> Inspection:
    rows, faults = [], []
    for number, line, is_tail in chunk.rows():
        try:
            rows.append(parse_row(line, is_tail=is_tail))
        except BadRowError as reason:
            faults.append(Fault(number, str(reason)))
    return Inspection(
        column_dtypes(rows), len(rows), faults, bool(LONE_SURROGATE.search(chunk.data))
    )


def _combine(parts: Sequence[Inspection]) -> Inspection:
    if len(parts) == 1:
        return parts[0]
    dtypes: dict[str, list[pl.DataType]] = {}
    for part in parts:
        for name, dtype in part.dtypes.items():
            dtypes.setdefault(name, []).append(dtype)
    return Inspection(
        {name: merge_dtypes(listed) for name, listed in dtypes.items()},
        sum(part.n_rows for part in parts),
        [fault for part in parts for fault in part.faults],
        any(part.has_lone_surrogates for part in parts),
    )


def scan(
    files: Sequence[JsonFile],
    schema: Mapping[str, pl.DataType],
    as_text: frozenset[str] = frozenset(),
) -> pl.LazyFrame:
    """Scan files as one lazy frame, with the number and file of each row as added columns."""
    # Python parses the rows if a column is kept as JSON text: Polars would not escape its strings.
    full = {**schema, ROW: pl.UInt32(), FILE: pl.String()}

    def source(with_columns: list[str] | None, *_: pl.Expr | int | None) -> Iterator[pl.DataFrame]:
        wanted = list(full) if with_columns is None else with_columns
        columns = {name: schema[name] for name in wanted if name in schema}
        frames = _read_frames(files, columns or dict(islice(schema.items(), 1)), as_text)
        while batch := list(islice(frames, _FRAMES_AT_ONCE)):
            yield pl.concat(batch).select(wanted)

    scanned = register_io_source(source, schema=full, is_pure=True)
    # To push a filter with a Python function down to the source, Polars would pickle it. Only
    # projections pass this point, so such a filter runs where it was written.
    return scanned.map_batches(_unchanged, projection_pushdown=True, streamable=True)


def _unchanged(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def _read_frames(
    files: Sequence[JsonFile], columns: Mapping[str, pl.DataType], as_text: frozenset[str]
) -> Iterator[pl.DataFrame]:
    for item, frame, faults in _parse_files(files, columns, as_text):
        if item is None:
            yield frame
            continue
        for fault in faults:
            if fault.row not in item.skipped:
                raise fault_error(item.file, fault)
        is_kept = ~pl.col(ROW).is_in(sorted(item.skipped))
        kept = frame.filter(is_kept) if item.skipped else frame
        yield kept.with_columns(pl.lit(item.file.name).alias(FILE))


def find_misfits(
    item: JsonFile, columns: Mapping[str, pl.DataType], as_text: frozenset[str]
) -> list[Fault]:
    """Read a complete file and list the rows that do not fit the schema."""
    return [fault for _, _, faults in _parse_files([item], columns, as_text) for fault in faults]


def _parse_files(
    files: Sequence[JsonFile], columns: Mapping[str, pl.DataType], as_text: frozenset[str]
) -> Iterator[_Parsed]:
    in_python = not as_text.isdisjoint(columns)

    def parse(jobs: Sequence[_Job]) -> list[_Parsed]:
        chunks = [
            (item, read_span(item.file, part) if isinstance(part, Span) else part)
            for item, part in jobs
        ]
        if len(chunks) > 1 and not in_python:
            joined = _parse_together(chunks, columns)
            if joined is not None:
                return [(None, joined, [])]
        return [
            (
                item,
                *_parse(chunk, columns, has_lone=item.has_lone_surrogates, in_python=in_python),
            )
            for item, chunk in chunks
        ]

    for is_unpacked, group in groupby(files, lambda item: item.file.unpack is not None):
        if is_unpacked:
            for item in group:
                for frame, faults in read_unpacked(item.file, columns):
                    yield item, frame, faults
        else:
            for parsed in on_all_cores(parse, _join_small(group)):
                yield from parsed


def _join_small(files: Iterable[JsonFile]) -> Iterator[list[_Job]]:
    """Yield the parts of files in order, small files together."""
    joined: list[_Job] = []
    size = 0
    for item in files:
        for part in item.spans or read_chunks(item.file):
            n_bytes = part.end - part.start if isinstance(part, Span) else len(part.data)
            is_plain = not (item.skipped or item.has_lone_surrogates)
            is_full = size + n_bytes > _JOINED_BYTES or len(joined) == _JOINED_FILES
            if joined and (n_bytes > _SMALL or not is_plain or is_full):
                yield joined
                joined, size = [], 0
            joined.append((item, part))
            size += n_bytes
            if n_bytes > _SMALL or not is_plain:
                yield joined
                joined, size = [], 0
    if joined:
        yield joined


def _parse_together(
    chunks: Sequence[tuple[JsonFile, Chunk]], columns: Mapping[str, pl.DataType]
) -> pl.DataFrame | None:
    """Parse small files at once; None if one of them needs a closer look."""
    texts = [
        chunk.data if chunk.data.endswith(b"\n") else chunk.data + b"\n" for _, chunk in chunks
    ]
    joined = Chunk(b"".join(texts), 1)
    sizes = [chunk.n_lines for _, chunk in chunks]
    try:
        frame = pl.read_ndjson(joined.data, schema=columns)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != sum(sizes) or _holds_json(frame, joined):
        return None
    starts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    firsts = np.repeat([chunk.first for _, chunk in chunks], sizes)
    names = pl.Series([item.file.name for item, _ in chunks], dtype=pl.String)
    return frame.with_columns(
        pl.Series(ROW, np.arange(len(starts)) - starts + firsts, dtype=pl.UInt32),
        names.gather(np.repeat(np.arange(len(chunks)), sizes)).alias(FILE),
    )


def row_error(place: str, reason: str) -> SourceError:
    """Build the error for a row that cannot be read."""
    return SourceError(
        f"{place}: {reason}. Hint: repair the row, or "
        f'on_error="skip" leaves such rows out and counts them.'
    )


def fault_error(file: DataFile, fault: Fault) -> SourceError:
    """Build the error for a faulty row of a file."""
    return row_error(locate(file, fault.row), fault.reason)


def _parse(
    chunk: Chunk, columns: Mapping[str, pl.DataType], *, has_lone: bool, in_python: bool
) -> tuple[pl.DataFrame, list[Fault]]:
    """Parse a chunk; one that Polars refuses is halved, and a few rows are parsed in Python."""
    if not (in_python or (has_lone and LONE_SURROGATE.search(chunk.data))):
        try:
            frame = pl.read_ndjson(chunk.data, schema=columns)
        except pl.exceptions.PolarsError:
            pass
        else:
            if not _holds_json(frame, chunk):
                return frame.with_columns(_line_numbers(chunk, frame.height)), []
            in_python = True
    halves = chunk.halves() if chunk.n_lines > _SLOW_LINES and not in_python else None
    if halves is not None:
        parsed = [_parse(half, columns, has_lone=has_lone, in_python=in_python) for half in halves]
        return pl.concat([frame for frame, _ in parsed]), [
            fault for _, faults in parsed for fault in faults
        ]
    rows, faults = [], []
    for number, line, is_tail in chunk.rows():
        try:
            row = parse_row(line, is_tail=is_tail)
            fitted = {
                name: fit_value(row.get(name), dtype, name) for name, dtype in columns.items()
            }
        except BadRowError as reason:
            faults.append(Fault(number, str(reason)))
        else:
            rows.append({**fitted, ROW: number})
    return rows_to_frame(rows, {**columns, ROW: pl.UInt32()}), faults


def _holds_json(frame: pl.DataFrame, chunk: Chunk) -> bool:
    """Return whether a text may be JSON text from Polars, which escapes nothing in it."""
    opens = pl.col(pl.String).str.contains(r"^[\[{]").any()
    names = [column.name for column in frame.select(opens) if column.item()]
    written = {
        json.dumps(name, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
        for name in names
        for is_ascii in (True, False)
    }
    keys = b"|".join(re.escape(name) for name in sorted(written))
    return bool(names) and bool(re.search(rb"(?:%b)\s*:\s*[\[{]" % keys, chunk.data))


def _line_numbers(chunk: Chunk, height: int) -> pl.Series:
    """Return the line number of each row; blank lines are numbered but have no row."""
    if height == chunk.n_lines:
        return pl.int_range(chunk.first, chunk.first + height, dtype=pl.UInt32, eager=True).alias(
            ROW
        )
    return pl.Series(ROW, [number for number, _, _ in chunk.rows()], pl.UInt32)
