"""JSON lines (and arrays) as a lazy frame: every column found, every fault named by file and line.

Polars infers a schema from the first rows; a column that starts later disappears without a word, and
its errors never name the line. So the whole of a file is looked at once, in chunks and on all cores,
before it is scanned with an explicit schema; a chunk that Polars refuses is halved until a few rows
remain, which Python reads. Of a key that comes twice in an object the first value counts; a column
that mixes types becomes String and holds JSON text; ``null`` and a missing key are both null.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from ttsframe._settings import SKIP_ROWS
from ttsframe.errors import SourceError
from ttsframe.readers.engine.chunks import Chunk, Span, count_ends, cut, read_chunks, read_span
from ttsframe.readers.engine.rows import (
    LONE_SURROGATE,
    BadRowError,
    Fault,
    column_dtypes,
    fit,
    merged,
    parse_row,
    settled,
    to_frame,
)
from ttsframe.readers.engine.searches import search
from ttsframe.readers.engine.sniff import DataFile

ROW = "\ue000row"
FILE = "\ue000file"
"""Names of further columns; no source has a column with a private character."""
_SLOW_LINES = 32
_FRAMES_AT_ONCE = 3
"""Chunks that are handed on together: fewer and larger pieces cost the query that follows less."""
_S = TypeVar("_S")
_T = TypeVar("_T")


class Inspected(NamedTuple):
    """What one pass over a file found."""

    dtypes: dict[str, pl.DataType]
    n_rows: int
    faults: list[Fault]
    has_lone_surrogates: bool
    spans: Sequence[Span] = ()
    """Of JSON lines that are not compressed, where each chunk stands."""


class JsonFile(NamedTuple):
    """A file of JSON rows and what is to be known of it for reading."""

    file: DataFile
    has_lone_surrogates: bool
    skipped: frozenset[int]
    """Numbers of the rows to leave out."""
    spans: tuple[Span, ...] = ()
    """Of JSON lines, the ranges of bytes to read; none: the whole file."""


def place(file: DataFile, row: int) -> str:
    """Name a row of a file the way an editor finds it."""
    return f"{file.path}, {'element' if file.container == 'json' else 'line'} {row}"


def inspect(file: DataFile, known: Collection[str]) -> Inspected:
    """Find the columns, their dtypes and the malformed rows of a file."""
    if file.container == "jsonl" and file.compression is None:
        return _inspect_spans(file, known)
    return _combined(list(on_all_cores(lambda chunk: _inspect(chunk, known), read_chunks(file))))


def _inspect_spans(file: DataFile, known: Collection[str]) -> Inspected:
    """Inspect a file that can be read from the middle: each worker reads what it looks at."""

    def look(span: Span) -> tuple[Span, int, Inspected | None]:
        chunk = read_span(file, span)
        found = None if chunk.data.isspace() else _inspect(chunk, known)
        return span, count_ends(chunk.data), found

    spans: list[Span] = []
    parts: list[Inspected] = []
    n_before = 0
    for span, n_ends, found in on_all_cores(look, cut(file)):
        if found is not None:
            faults = [fault._replace(row=fault.row + n_before) for fault in found.faults]
            parts.append(found._replace(faults=faults))
            spans.append(span._replace(first=span.first + n_before))
        n_before += n_ends
    return _combined(parts)._replace(spans=spans)


def on_all_cores(function: Callable[[_S], _T], items: Iterable[_S]) -> Generator[_T, None, None]:
    """Apply a function to items in order, a few ahead: Polars parses one chunk on one core."""
    workers = pl.thread_pool_size()
    pool = ThreadPoolExecutor(workers)
    ahead: deque[Future[_T]] = deque()
    try:
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # whoever drops a scan that was not read to its end may be a thread of this very pool
        pool.shutdown(wait=False, cancel_futures=True)


def _inspect(chunk: Chunk, known: Collection[str]) -> Inspected:
    try:
        inferred = pl.scan_ndjson(chunk.data, infer_schema_length=None).collect_schema()
        dtypes = {name: settled(dtype, unseen=pl.Null()) for name, dtype in inferred.items()}
        # Inference takes true for 1 and looks into no list of lists: searching or reading tells.
        doubtful = {
            name: settled(dtype, unseen=pl.String())
            for name, dtype in dtypes.items()
            if name not in known and dtype not in {pl.String(), pl.List(pl.String())}
        }
        found = search(chunk.data, doubtful)
        if doubtful.keys() - found.fitting:
            pl.read_ndjson(chunk.data, schema=doubtful)
    except pl.exceptions.PolarsError:
        halves = chunk.halves() if chunk.n_lines > _SLOW_LINES else None
        if halves is not None:
            return _combined([_inspect(half, known) for half in halves])
        return _inspect_rows(chunk)
    is_lone = found.may_hold_surrogates and bool(LONE_SURROGATE.search(chunk.data))
    return Inspected(dtypes, chunk.n_lines, [], is_lone)


def _inspect_rows(chunk: Chunk) -> Inspected:
    rows, faults = [], []
    for number, line, is_tail in chunk.rows():
        try:
            rows.append(parse_row(line, is_tail=is_tail))
        except BadRowError as reason:
            faults.append(Fault(number, str(reason)))
    return Inspected(
        column_dtypes(rows), len(rows), faults, bool(LONE_SURROGATE.search(chunk.data))
    )


def _combined(found: Sequence[Inspected]) -> Inspected:
    dtypes: dict[str, list[pl.DataType]] = {}
    for one in found:
        for name, dtype in one.dtypes.items():
            dtypes.setdefault(name, []).append(dtype)
    return Inspected(
        {name: merged(parts) for name, parts in dtypes.items()},
        sum(one.n_rows for one in found),
        [fault for one in found for fault in one.faults],
        any(one.has_lone_surrogates for one in found),
    )


def scan(
    files: Sequence[JsonFile],
    schema: Mapping[str, pl.DataType],
    as_text: frozenset[str] = frozenset(),
) -> pl.LazyFrame:
    """Scan files as one lazy frame with the row's number and file as further columns."""
    # Rows of a column that is handed on as JSON text are parsed by Python: Polars would not escape
    # what must be escaped in a text.
    full = {**schema, ROW: pl.UInt32(), FILE: pl.String()}

    def source(with_columns: list[str] | None, *_: pl.Expr | int | None) -> Iterator[pl.DataFrame]:
        wanted = list(full) if with_columns is None else with_columns
        columns = {name: schema[name] for name in wanted if name in schema}
        frames = _frames(files, columns or dict(islice(schema.items(), 1)), as_text)
        while some := list(islice(frames, _FRAMES_AT_ONCE)):
            yield pl.concat(some).select(wanted)

    scanned = register_io_source(source, schema=full, is_pure=True)
    # Polars would pickle a filter with a Python function in it to hand it to the source. Only
    # projections pass this point, so such a filter runs where it was written.
    return scanned.map_batches(_unchanged, projection_pushdown=True, streamable=True)


def _unchanged(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def _frames(
    files: Sequence[JsonFile], columns: Mapping[str, pl.DataType], as_text: frozenset[str]
) -> Iterator[pl.DataFrame]:
    for item, frame, faults in _parsed(files, columns, as_text):
        for fault in faults:
            if fault.row not in item.skipped:
                raise fault_error(item.file, fault)
        is_kept = ~pl.col(ROW).is_in(sorted(item.skipped))
        kept = frame.filter(is_kept) if item.skipped else frame
        yield kept.with_columns(pl.lit(str(item.file.path)).alias(FILE))


def find_misfits(
    item: JsonFile, columns: Mapping[str, pl.DataType], as_text: frozenset[str]
) -> list[Fault]:
    """Read a file whole and list the rows that do not fit the schema."""
    return [fault for _, _, faults in _parsed([item], columns, as_text) for fault in faults]


def _parsed(
    files: Sequence[JsonFile], columns: Mapping[str, pl.DataType], as_text: frozenset[str]
) -> Iterator[tuple[JsonFile, pl.DataFrame, list[Fault]]]:
    in_python = not as_text.isdisjoint(columns)

    def parse(job: tuple[JsonFile, Chunk | Span]) -> tuple[JsonFile, pl.DataFrame, list[Fault]]:
        item, part = job
        chunk = read_span(item.file, part) if isinstance(part, Span) else part
        is_mended = item.has_lone_surrogates
        return item, *_parse(chunk, columns, is_mended=is_mended, in_python=in_python)

    return on_all_cores(
        parse, ((item, part) for item in files for part in item.spans or read_chunks(item.file))
    )


def fault_error(file: DataFile, fault: Fault) -> SourceError:
    """Build the error for the first row that cannot be read."""
    return SourceError(
        f"{place(file, fault.row)}: {fault.reason}. Hint: repair the row, or "
        f"{SKIP_ROWS} leaves such rows out and counts them."
    )


def _parse(
    chunk: Chunk, columns: Mapping[str, pl.DataType], *, is_mended: bool, in_python: bool
) -> tuple[pl.DataFrame, list[Fault]]:
    """Parse a chunk, in halves where Polars refuses it, row by row where a few rows are left."""
    if not (in_python or (is_mended and LONE_SURROGATE.search(chunk.data))):
        try:
            frame = pl.read_ndjson(chunk.data, schema=columns)
        except pl.exceptions.PolarsError:
            pass
        else:
            if not _holds_json(frame, chunk):
                return frame.with_columns(_numbers(chunk, frame.height)), []
            in_python = True
    halves = chunk.halves() if chunk.n_lines > _SLOW_LINES and not in_python else None
    if halves is not None:
        parsed = [
            _parse(half, columns, is_mended=is_mended, in_python=in_python) for half in halves
        ]
        return pl.concat([frame for frame, _ in parsed]), [
            fault for _, faults in parsed for fault in faults
        ]
    rows, faults = [], []
    for number, line, is_tail in chunk.rows():
        try:
            row = parse_row(line, is_tail=is_tail)
            fitted = {name: fit(row.get(name), dtype, name) for name, dtype in columns.items()}
        except BadRowError as reason:
            faults.append(Fault(number, str(reason)))
        else:
            rows.append({**fitted, ROW: number})
    return to_frame(rows, {**columns, ROW: pl.UInt32()}), faults


def _holds_json(frame: pl.DataFrame, chunk: Chunk) -> bool:
    """Whether a text may be JSON text of Polars, which escapes nothing in it."""
    opens = pl.col(pl.String).str.contains(r"^[\[{]").any()
    names = [column.name for column in frame.select(opens) if column.item()]
    written = {
        json.dumps(name, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
        for name in names
        for is_ascii in (True, False)
    }
    keys = b"|".join(re.escape(name) for name in sorted(written))
    return bool(names) and bool(re.search(rb"(?:%b)\s*:\s*[\[{]" % keys, chunk.data))


def _numbers(chunk: Chunk, height: int) -> pl.Series:
    """Return the line number of each row; blank lines have a number and no row."""
    if height == chunk.n_lines:
        return pl.int_range(chunk.first, chunk.first + height, dtype=pl.UInt32, eager=True).alias(
            ROW
        )
    return pl.Series(ROW, [number for number, _, _ in chunk.rows()], pl.UInt32)
