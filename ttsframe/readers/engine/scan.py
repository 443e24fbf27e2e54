"""From surveyed files, or slices of them, to one lazy table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.chunks import Span
from ttsframe.readers.engine.csv_table import scan_csv
from ttsframe.readers.engine.dtypes import without_null
from ttsframe.readers.engine.faults import first_line
from ttsframe.readers.engine.json_rows import FILE, ROW
from ttsframe.readers.engine.jsonl import JsonFile, scan
from ttsframe.readers.engine.remote import remote_options
from ttsframe.readers.engine.sniff import DataFile
from ttsframe.readers.engine.table import FileFormat, OnError, Table, order_columns
from ttsframe.schema import TRAJECTORY_COLUMNS


class SurveyedFile(NamedTuple):
    """A file or a slice of one, and everything needed to read it."""

    file: DataFile
    schema: dict[str, pl.DataType]
    """Under the column names of the file."""
    run: str
    """The value of `source_file` for its rows."""
    has_lone_surrogates: bool = False
    skipped: frozenset[int] = frozenset()
    """Numbers of the JSON rows to leave out."""
    rows: tuple[int, int] | None = None
    """Of a table, the first row, from 0, and the number of rows to read; None for all."""
    spans: tuple[Span, ...] = ()
    """Of JSON lines, the consecutive ranges of bytes to read; empty for all."""
    n_rows: int | None = None
    """Of JSON, the number of rows of the complete file."""

    @property
    def is_json(self) -> bool:
        """Whether the file is read with the schema shared by all JSON files."""
        return self.file.is_json


class Survey(NamedTuple):
    """How to read files, or slices of them, as one table; can be pickled."""

    format: FileFormat
    files: tuple[SurveyedFile, ...]
    json_schema: dict[str, pl.DataType]
    rename: dict[str, str]
    on_error: OnError
    has_several_runs: bool
    """Whether to add `source_file`: there are several, or a caller tells runs apart by it."""


def scan_survey(survey: Survey) -> tuple[pl.LazyFrame, list[str]]:
    """Return all rows lazily, and a message for each row of a binary table that is left out."""
    skipped: list[str] = []
    tables: list[Table] = []
    json_files = [file for file in survey.files if file.is_json]
    if json_files:
        tables.append(_json_table(json_files, survey, skipped))
    tables += [_binary_table(file, survey, skipped) for file in survey.files if not file.is_json]
    runs = {file.file.name: file.run for file in survey.files}
    frames = [
        survey.format.to_rows(
            _with_source_file(table, runs) if survey.has_several_runs else table
        ).drop(ROW, FILE, strict=False)
        for table in tables
    ]
    joined = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal_relaxed")
    try:
        result = order_columns(joined, TRAJECTORY_COLUMNS)
        result.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise ColumnsError(
            f"{', '.join(list(runs)[:3])}: the columns cannot be put into one table "
            f"({first_line(error)}). Hint: "
            f"{setting('rename', {'yours': 'other'})} moves a column out of the way."
        ) from error
    return result, skipped


def scan_table(one: SurveyedFile) -> pl.LazyFrame:
    """Scan a table, not JSON; only the requested rows are read."""
    frame = open_table(one.file, one.schema)
    return frame if one.rows is None else frame.slice(*one.rows)


def open_table(file: DataFile, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Open a table lazily; `schema` has the dtypes of the columns of CSV."""
    if isinstance(file.held, pl.LazyFrame):
        return file.held
    source = file.held or file.url or file.path
    if file.container == "csv":
        return scan_csv(file, schema)
    if file.container == "parquet":
        return pl.scan_parquet(source, glob=False, hive_partitioning=False, **remote_options(file))
    if file.container == "arrow":
        return pl.scan_ipc(source, glob=False, hive_partitioning=False, **remote_options(file))
    return pl.read_ipc_stream(source).lazy()


def rename_schema(
    schema: Mapping[str, pl.DataType], rename: Mapping[str, str]
) -> dict[str, pl.DataType]:
    """Give columns the names that the format expects."""
    return {rename.get(name, name): dtype for name, dtype in schema.items()}


def text_columns(
    names: Iterable[str], file_format: FileFormat, rename: Mapping[str, str]
) -> frozenset[str]:
    """Return the columns, under the names of the file, that are kept as JSON text."""
    return frozenset(name for name in names if rename.get(name, name) in file_format.as_text)


def _binary_table(file: SurveyedFile, survey: Survey, skipped: list[str]) -> Table:
    path = file.file.name
    first = 1 if file.rows is None else 1 + file.rows[0]
    numbered = (
        scan_table(file).with_row_index(ROW, offset=first).with_columns(pl.lit(path).alias(FILE))
    )
    schema = rename_schema(file.schema, survey.rename)
    frame = numbered.rename(survey.rename)
    if file.file.container == "frame":
        # As JSON is read, so that a run means the same in a file and in memory.
        known = {*survey.format.dtypes, *TRAJECTORY_COLUMNS}
        seen = {
            name: dtype if name in known and dtype == pl.Null else without_null(dtype)
            for name, dtype in schema.items()
        }
        frame = frame.cast({name: seen[name] for name in seen if seen[name] != schema[name]})
        schema = seen
    return Table(frame, schema, {path: "row"}, survey.on_error, skipped)


def _with_source_file(table: Table, runs: Mapping[str, str]) -> Table:
    """Add the run of each row as `source_file`; existing values are kept."""
    run = pl.col(FILE).replace_strict(
        list(runs), pl.Series(list(runs.values()), dtype=pl.String), return_dtype=pl.String
    )
    if "source_file" in table.schema:
        run = pl.coalesce("source_file", run)
    return table._replace(
        frame=table.frame.with_columns(run.alias("source_file")),
        schema={**table.schema, "source_file": pl.String()},
    )


def _json_table(files: Sequence[SurveyedFile], survey: Survey, skipped: list[str]) -> Table:
    words = {file.file.name: file.file.row_word for file in files}
    items = [
        JsonFile(file.file, file.has_lone_surrogates, file.skipped, file.spans) for file in files
    ]
    as_text = text_columns(survey.json_schema, survey.format, survey.rename)
    frame = scan(items, survey.json_schema, as_text).rename(survey.rename)
    schema = rename_schema(survey.json_schema, survey.rename)
    unpacked = {file.file.name: file.file for file in files if file.file.unpack is not None}
    return Table(frame, schema, words, survey.on_error, skipped, unpacked)
