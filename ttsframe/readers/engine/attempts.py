"""From files that were looked over to attempts: all of them, or a slice of rows or bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.chunks import Span
from ttsframe.readers.engine.jsonl import FILE, ROW, JsonFile, scan
from ttsframe.readers.engine.sniff import DataFile
from ttsframe.readers.engine.table import OnError, Reader, Table, canonical

_ROW_WORDS = {"jsonl": "line", "json": "element"}


class SurveyedFile(NamedTuple):
    """A file, or a slice of one, and all that reading it takes."""

    file: DataFile
    schema: dict[str, pl.DataType]
    """Under the file's own names."""
    run: str
    """What `source_file` calls it."""
    has_lone_surrogates: bool = False
    skipped: frozenset[int] = frozenset()
    """Of JSON, numbers of the rows to leave out."""
    rows: tuple[int, int] | None = None
    """Of a table, the first row to read, from 0, and how many; None: all."""
    spans: tuple[Span, ...] = ()
    """Of JSON lines, the consecutive ranges of bytes to read; none: all."""
    n_rows: int | None = None
    """Of JSON, how many rows the whole file has."""

    @property
    def is_json(self) -> bool:
        """Whether it is read with the schema that the JSON files share."""
        return self.file.container in _ROW_WORDS


class Survey(NamedTuple):
    """How some files, or slices of them, become one table; plain values, which can be pickled."""

    reader: Reader
    files: tuple[SurveyedFile, ...]
    json_schema: dict[str, pl.DataType]
    rename: dict[str, str]
    on_error: OnError
    has_several_runs: bool
    """Whether rows say in `source_file` where they came from."""


def scan_attempts(survey: Survey) -> tuple[pl.LazyFrame, list[str]]:
    """Return the attempts, lazily, and a message for each row of a table that was left out."""
    skipped: list[str] = []
    tables: list[Table] = []
    json = [one for one in survey.files if one.is_json]
    if json:
        tables.append(_json_table(json, survey, skipped))
    tables += [_binary_table(one, survey, skipped) for one in survey.files if not one.is_json]
    runs = {str(one.file.path): one.run for one in survey.files}
    frames = [
        survey.reader.to_attempts(
            _with_source(table, runs) if survey.has_several_runs else table
        ).drop(ROW, FILE, strict=False)
        for table in tables
    ]
    joined = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal_relaxed")
    try:
        result = canonical(joined)
        result.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise ColumnsError(
            f"{', '.join(list(runs)[:3])}: the columns cannot be put into one table "
            f"({first_line(error)}). Hint: "
            f"{setting('rename', {'yours': 'other'})} moves a column out of the way."
        ) from error
    return result, skipped


def scan_table(file: DataFile, rows: tuple[int, int] | None = None) -> pl.LazyFrame:
    """Scan a table of any container but JSON; only the rows asked for are read."""
    if file.container == "parquet":
        frame = pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
    elif file.container == "arrow":
        frame = pl.scan_ipc(file.path, glob=False, hive_partitioning=False)
    else:
        frame = pl.read_ipc_stream(file.path).lazy()
    return frame if rows is None else frame.slice(*rows)


def renamed(schema: Mapping[str, pl.DataType], rename: Mapping[str, str]) -> dict[str, pl.DataType]:
    """Give columns the names that the format expects."""
    return {rename.get(name, name): dtype for name, dtype in schema.items()}


def text_columns(names: Iterable[str], reader: Reader, rename: Mapping[str, str]) -> frozenset[str]:
    """Return the file's own names of the columns that are handed on as JSON text."""
    return frozenset(name for name in names if rename.get(name, name) in reader.as_text)


def first_line(error: Exception) -> str:
    """Return the line of an error of Polars that says what is wrong."""
    return str(error).partition("\n")[0]


def _binary_table(one: SurveyedFile, survey: Survey, skipped: list[str]) -> Table:
    path = str(one.file.path)
    first = 1 if one.rows is None else 1 + one.rows[0]
    numbered = (
        scan_table(one.file, one.rows)
        .with_row_index(ROW, offset=first)
        .with_columns(pl.lit(path).alias(FILE))
    )
    schema = renamed(one.schema, survey.rename)
    return Table(numbered.rename(survey.rename), schema, {path: "row"}, survey.on_error, skipped)


def _with_source(table: Table, runs: Mapping[str, str]) -> Table:
    """Add the run of each row; a source that says where its rows came from keeps saying so."""
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
    words = {str(one.file.path): _ROW_WORDS[one.file.container] for one in files}
    items = [JsonFile(one.file, one.has_lone_surrogates, one.skipped, one.spans) for one in files]
    as_text = text_columns(survey.json_schema, survey.reader, survey.rename)
    frame = scan(items, survey.json_schema, as_text).rename(survey.rename)
    schema = renamed(survey.json_schema, survey.rename)
    return Table(frame, schema, words, survey.on_error, skipped)
