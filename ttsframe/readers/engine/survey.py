"""Open files and recognize their common format, before any row is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from ttsframe._checks import check_choice, check_mapping
from ttsframe._forks import check_not_stuck
from ttsframe._settings import hide_secrets, setting
from ttsframe.errors import (
    ColumnsError,
    ParameterError,
    SkippedRowsWarning,
    SourceError,
    SourceWarning,
)
from ttsframe.readers.engine.chunks import Span
from ttsframe.readers.engine.csv_table import csv_names, csv_schema
from ttsframe.readers.engine.dtypes import as_instance, merge_dtypes, resolve_dtype, struct_fields
from ttsframe.readers.engine.faults import unreadable
from ttsframe.readers.engine.json_rows import Fault
from ttsframe.readers.engine.jsonl import (
    JsonFile,
    fault_error,
    find_misfits,
    inspect_file,
    locate,
)
from ttsframe.readers.engine.layouts import advise
from ttsframe.readers.engine.memory import hold
from ttsframe.readers.engine.parallel import on_all_cores
from ttsframe.readers.engine.remote import open_url
from ttsframe.readers.engine.scan import (
    Survey,
    SurveyedFile,
    open_table,
    rename_schema,
    scan_survey,
    text_columns,
)
from ttsframe.readers.engine.sniff import Container, DataFile, sniff
from ttsframe.readers.engine.sources import Candidate, Source, expand
from ttsframe.readers.engine.table import FileFormat, OnError
from ttsframe.readers.engine.unpacked import inspect_unpacked
from ttsframe.schema import TRAJECTORY_COLUMNS

_DERIVED_FROM = {
    "answer": {"completion"},
    "answer_key": {"completion", "answer"},
    "gold_key": {"gold", "solution"},
    "is_correct": {"gold", "solution", "gold_key"},
    "score": {"step_scores"},
}
"""Columns that can be derived, and the columns that they are derived from."""

_N_LISTED = 5
_N_NAMES = 20
_N_EXPLAINED = 12
"""Of more formats than this, a message names only the names."""


class OpenFile(NamedTuple):
    """A file with known columns."""

    file: DataFile
    schema: dict[str, pl.DataType]
    """Under the names of the file; Null for a JSON column without any value."""
    is_json: bool
    """Whether the file is JSON, whose schema the format decides."""
    faults: list[Fault]
    has_lone_surrogates: bool
    is_document: bool
    """Whether it is one JSON object or an array, like the config of a run."""
    spans: tuple[Span, ...] = ()
    """The ranges of bytes that can be read independently, of JSON lines."""
    n_rows: int | None = None
    """Number of rows, known of JSON only."""
    format: FileFormat | None = None
    """The format that unpacks the file, if it is no table."""


class Room:
    """How many bytes of unpacked rows may still be held, over all files of a source."""

    def __init__(self) -> None:
        self.n_bytes = 1 << 28


def open_file(
    candidate: Candidate,
    formats: Iterable[FileFormat],
    known: frozenset[str],
    rename: Mapping[str, str],
    room: Room,
) -> OpenFile | None:
    """Find the columns of a file, some known to the formats; None if it is no table in a known container."""
    file = _recognize_file(candidate)
    unpacker = next((each for each in formats if _unpacks(each, file)), None)
    if unpacker is not None and unpacker.unpacking is not None:
        file = file._replace(unpack=unpacker.unpacking.rows, head=None)
    elif file.container in {"text", "zip"}:
        return None
    if file.is_json:
        if unpacker is not None:
            unpacked, file = inspect_unpacked(file, room.n_bytes)
            room.n_bytes -= file.rows.n_bytes if file.rows else 0
            return OpenFile(
                file,
                # A log may hold no attempts yet, and gives an empty table with these columns.
                unpacked.dtypes or {name: pl.Null() for name in unpacker.dtypes},
                is_json=True,
                faults=unpacked.faults,
                has_lone_surrogates=False,
                is_document=False,
                n_rows=unpacked.n_rows,
                format=unpacker,
            )
        inspection = inspect_file(file, known)
        file = file._replace(head=None)
        if not inspection.dtypes and not inspection.faults:
            raise SourceError(f"{file.name}: holds no rows, must hold at least one.")
        is_document = file.container == "json" or inspection.n_rows == 1
        return OpenFile(
            file,
            inspection.dtypes,
            is_json=True,
            faults=inspection.faults,
            has_lone_surrogates=inspection.has_lone_surrogates,
            is_document=is_document,
            spans=tuple(inspection.spans),
            n_rows=inspection.n_rows,
        )
    try:
        if file.container == "csv":
            schema = _csv_schema(file, formats, rename)
        else:
            schema = dict(open_table(file, {}).collect_schema())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise unreadable(file, error) from error
    # A folder of runs may hold other tables as CSV, but as a rule no other Parquet.
    is_document = file.container == "csv"
    return OpenFile(
        file, schema, is_json=False, faults=[], has_lone_surrogates=False, is_document=is_document
    )


def _unpacks(file_format: FileFormat, file: DataFile) -> bool:
    return file_format.unpacking is not None and file_format.unpacking.recognizes(file)


def _recognize_file(candidate: Candidate) -> DataFile:
    """Recognize the bytes of a file; what is in memory is taken as it is."""
    if candidate.kind == "file":
        return sniff(candidate.path)
    if candidate.kind == "pipe":
        return sniff(candidate.path, candidate.path.read_bytes())
    if candidate.kind == "url":
        return open_url(candidate.name)
    if candidate.kind == "standard input":
        # In a notebook there is no stream of bytes.
        if not hasattr(sys.stdin, "buffer") or sys.stdin.isatty():
            raise SourceError(
                "standard input is no file and no pipe. Hint: cat run.jsonl | ttsframe report -"
            )
        return sniff(candidate.path, sys.stdin.buffer.read())
    held = hold(candidate.source, candidate.name)
    container: Container = "frame" if isinstance(held, pl.LazyFrame) else "rows"
    return DataFile(candidate.path, container, None, held)


def _csv_schema(
    file: DataFile, formats: Iterable[FileFormat], rename: Mapping[str, str]
) -> dict[str, pl.DataType]:
    """Return the columns of CSV, with their dtypes if a format may recognize them."""
    names = csv_names(file)
    columns = {rename.get(name, name) for name in names}
    chosen = next((each for each in formats if each.recognizes(columns)), None)
    if chosen is None:
        return dict.fromkeys(names, pl.String())
    return csv_schema(file, chosen.dtypes, rename)


def scan_source(
    source: Source,
    formats: Mapping[str, FileFormat],
    *,
    format: str,  # noqa: A002
    rename: Mapping[str, str] | None,
    on_error: OnError,
    row: str,
    elsewhere: Mapping[str, FileFormat] = MappingProxyType({}),
) -> tuple[pl.LazyFrame, Survey, list[UserWarning]]:
    """Survey a source in one of some formats and scan it; `row` names a row: attempt or step."""
    # `elsewhere` has the formats of the other kind of row, which only messages name.
    check_not_stuck()
    check_choice(format, "format", ["auto", *formats])
    check_choice(on_error, "on_error", ["raise", "skip"])
    checked = check_mapping(rename, "rename")
    if len(set(checked.values())) != len(checked):
        raise ParameterError(f"rename == {checked} gives two columns the same name.")
    survey, json_skipped = survey_files(
        expand(source),
        formats,
        format=format,
        rename=checked,
        on_error=on_error,
        row=row,
        elsewhere=elsewhere,
    )
    frame, table_skipped = scan_survey(survey)
    notices: list[UserWarning] = [SourceWarning(text) for text in _notices(survey)]
    skipped = [*json_skipped, *table_skipped]
    if not skipped:
        return frame, survey, notices
    more = f" and {len(skipped) - _N_LISTED:,} more" if len(skipped) > _N_LISTED else ""
    rows = f"{len(skipped):,} row{'s' if len(skipped) > 1 else ''}"
    message = f"{rows} skipped: {'; '.join(skipped[:_N_LISTED])}{more}."
    return frame, survey, [*notices, SkippedRowsWarning(message, len(skipped))]


def _notices(survey: Survey) -> list[str]:
    """List what the format has to say about the files; the same of many files once."""
    notices = survey.format.notices
    if notices is None:
        return []
    files: dict[str, list[str]] = {}
    for one in survey.files:
        for text in notices(one.file, rename_schema(one.schema, survey.rename)):
            files.setdefault(text, []).append(one.file.name)
    return [
        f"{names[0]}{f' and {len(names) - 1:,} more' if len(names) > 1 else ''}: {text}"
        for text, names in files.items()
    ]


def survey_files(
    candidates: Sequence[Candidate],
    formats: Mapping[str, FileFormat],
    *,
    format: str,  # noqa: A002 - the name callers write
    rename: Mapping[str, str],
    on_error: OnError,
    row: str = "attempt",
    elsewhere: Mapping[str, FileFormat] = MappingProxyType({}),
) -> tuple[Survey, list[str]]:
    """Decide how to read the files; return this and a message for each JSON row to leave out."""
    possible = list(formats.values()) if format == "auto" else [formats[format]]
    opened: list[OpenFile] = []
    chosen: list[str] = []
    others: list[str] = []
    room = Room()
    known = frozenset(name for file_format in possible for name in file_format.dtypes)
    files = on_all_cores(
        lambda candidate: open_file(candidate, possible, known, rename, room), candidates
    )
    for candidate, file in zip(candidates, files, strict=True):
        columns = {} if file is None else rename_schema(file.schema, rename)
        unpacker = None if file is None else file.format
        name = _recognize(columns, unpacker, formats, format)
        if file is not None and name is not None:
            opened.append(file)
            chosen.append(name)
        elif file is not None and file.faults and on_error == "raise":
            raise fault_error(file.file, file.faults[0])
        elif candidate.is_named or (file is not None and not file.is_document):
            if file is None:
                named = formats if format == "auto" else {format: formats[format]}
                raise _not_a_table(candidate.name, row, named)
            raise _unrecognized(
                candidate.name, columns, formats, format=format, row=row, elsewhere=elsewhere
            )
        else:
            others.append(candidate.path.name)
    if not opened:
        raise SourceError(
            f"{candidates[0].path.parent}: holds no file of {row}s; found: {_list_names(others)}. "
            f"{_expectations(formats)}"
        )
    if len(set(chosen)) > 1:
        raise _mixed(opened, chosen, row)
    for file in opened:
        _check_rename(file, rename)
        if file.faults and on_error == "raise":
            raise fault_error(file.file, file.faults[0])
    chosen_format = formats[chosen[0]]
    _refuse_partly_derived(opened, chosen_format, rename)
    return _make_survey(opened, chosen_format, rename, on_error)


def _make_survey(
    opened: Sequence[OpenFile],
    file_format: FileFormat,
    rename: Mapping[str, str],
    on_error: OnError,
) -> tuple[Survey, list[str]]:
    """Find the schema that all JSON files share, and the rows that do not fit it."""
    runs = _name_runs([file.file for file in opened], file_format)
    json_schema = _json_schema(opened, file_format, rename)
    files: list[SurveyedFile] = []
    skipped: list[str] = []
    for file in opened:
        misfits: list[Fault] = []
        if file.is_json and on_error == "skip":
            item = JsonFile(file.file, file.has_lone_surrogates, frozenset(), file.spans)
            misfits = find_misfits(
                item, json_schema, text_columns(json_schema, file_format, rename)
            )
            skipped.extend(f"{locate(file.file, fault.row)}: {fault.reason}" for fault in misfits)
        files.append(
            SurveyedFile(
                file.file,
                file.schema,
                runs[file.file.name],
                file.has_lone_surrogates,
                frozenset(fault.row for fault in misfits),
                spans=file.spans,
                n_rows=file.n_rows,
            )
        )
    is_several = len(set(runs.values())) > 1
    survey = Survey(file_format, tuple(files), json_schema, dict(rename), on_error, is_several)
    return survey, skipped


def _recognize(
    columns: Mapping[str, pl.DataType],
    unpacker: FileFormat | None,
    formats: Mapping[str, FileFormat],
    format: str,  # noqa: A002
) -> str | None:
    """Return the name of the format that unpacks a file, else of the first, or named, that recognizes its columns."""
    if unpacker is not None:
        return next(name for name, file_format in formats.items() if file_format is unpacker)
    if format != "auto":
        named = formats[format]
        fits = named.unpacking is None and named.has_shapes(columns) and named.accepts(columns)
        return format if fits else None
    # Names tell most formats apart, and cost less to compare than dtypes.
    return next(
        (
            name
            for name, each in formats.items()
            if each.unpacking is None and each.recognizes(columns) and each.has_shapes(columns)
        ),
        None,
    )


def _not_a_table(name: str, row: str, formats: Mapping[str, FileFormat]) -> SourceError:
    unpacked = "; ".join(
        f"{key}: {each.unpacking.expects}" for key, each in formats.items() if each.unpacking
    )
    if unpacked:
        return SourceError(
            f"{name}: is neither Parquet, Arrow IPC, JSON nor CSV, judging by its first bytes, and none of the "
            f"files that are no tables ({unpacked}). Hint: write a table with one row per {row}, as Parquet or "
            "JSON lines; unpack an archive first."
        )
    return SourceError(
        f"{name}: is neither Parquet, Arrow IPC, JSON nor CSV, judging by its first bytes. Hint: write a "
        f"table with one row per {row}, as Parquet or JSON lines."
    )


def _unrecognized(
    name: str,
    columns: Mapping[str, pl.DataType],
    formats: Mapping[str, FileFormat],
    *,
    format: str,  # noqa: A002
    row: str,
    elsewhere: Mapping[str, FileFormat],
) -> SourceError:
    """Build the error for a table without the columns of a format."""
    columns_found = f"found columns: {_list_names(columns)}"
    if format != "auto":
        return SourceError(
            f"{name}: is not in format {format!r}; {columns_found}; expected: {formats[format].expects}. "
            f"Hint: {setting('rename', {'yours': 'expected'})} maps names."
        )
    advice = advise(name, columns, formats, elsewhere, row) or _expectations(formats)
    return SourceError(f"{name}: in no known format; {columns_found}. {advice}")


def _expectations(formats: Mapping[str, FileFormat]) -> str:
    if len(formats) <= _N_EXPLAINED:
        listed = "; ".join(f"{name}: {each.expects}" for name, each in formats.items())
        expected = f"Expected columns, by format: {listed}."
    else:
        least = f" (of its own: {formats['long_form'].expects})" if "long_form" in formats else ""
        expected = f"Known formats: {', '.join(formats)}{least}."
    return (
        f"{expected} Hint: {setting('rename', {'yours': 'expected'})} maps names, "
        f"and {setting('format')} names the format and then says what it expects."
    )


def _list_names(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _N_NAMES} more" if len(listed) > _N_NAMES else ""
    return f"{listed[:_N_NAMES]}{more}"


def _mixed(opened: Sequence[OpenFile], chosen: Sequence[str], row: str) -> SourceError:
    by_format: dict[str, list[str]] = {}
    for file, name in zip(opened, chosen, strict=True):
        by_format.setdefault(name, []).append(file.file.name)
    listed = "; ".join(
        f"{name}: {len(paths)} (for example {paths[0]})" for name, paths in by_format.items()
    )
    return SourceError(
        f"{len(opened)} files in {len(by_format)} formats, must be in one; found {listed}. Hint: "
        f"'ttsframe {'steps' if row == 'step' else 'score'} SOURCE -o run.parquet' converts each format; by='source_file' then keeps the runs apart."
    )


def _check_rename(file: OpenFile, rename: Mapping[str, str]) -> None:
    path, names = file.file.name, file.schema.keys()
    missing = [name for name in rename if name not in names]
    if missing:
        raise ColumnsError.missing(
            missing,
            list(names),
            where=f"rename in {path}",
            hint=f"{setting('rename', {'yours': 'completion'})} reads the column 'yours' as 'completion'.",
        )
    kept = {name for name in names if name not in rename}
    for name, target in rename.items():
        if target in kept:
            raise ColumnsError(
                f"{path}: rename gives {name!r} the name {target!r}, which another column has. Hint: "
                f"rename that one as well: {{{target!r}: 'source_{target}'}}."
            )


def _refuse_partly_derived(
    opened: Sequence[OpenFile], file_format: FileFormat, rename: Mapping[str, str]
) -> None:
    """Raise if one file has a column that would still have to be derived in another."""
    # Read together, the column of the other file would be null: no answer, not graded, no score.
    if not _DERIVED_FROM.keys() <= file_format.dtypes.keys() | {"is_correct"}:
        return
    columns = {file.file.name: set(rename_schema(file.schema, rename)) for file in opened}
    for name, sources in _DERIVED_FROM.items():
        having = next((path for path, names in columns.items() if name in names), None)
        for path, names in columns.items():
            if having is not None and name not in names and sources & names:
                raise ColumnsError(
                    f"{path}: has no column {name!r}, but {having} has one. Read together, it would be null "
                    f"here instead of derived from {sorted(sources & names)}. Hint: score each file with "
                    f"'ttsframe score SOURCE -o scored.parquet', and read the scored files."
                )


def _name_runs(files: Sequence[DataFile], file_format: FileFormat) -> dict[str, str]:
    """Name the run of each file: the file itself, or the folder of a run with several files."""
    runs = {file.name: file.name for file in files}
    remote = [file.name for file in files if file.url is not None]
    hidden = {name: hide_secrets(name) for name in remote}
    for i, name in enumerate(remote):
        # Addresses that differ in what is hidden are runs of their own.
        n_before = [hidden[other] for other in remote[:i]].count(hidden[name])
        runs[name] = f"{hidden[name]} ({n_before + 1})" if n_before else hidden[name]
    folders = set()
    paths = [file.path for file in files if file.held is None and file.url is None]
    for path in paths:
        match = file_format.piece and re.search(rf"(^|/){file_format.piece}$", path.as_posix())
        folder = str(Path(path.as_posix()[: match.start()] or ".")) if match else None
        runs[str(path)] = folder or str(path)
        folders.add(folder)
    for path in paths:
        if str(path.parent) in folders and runs[str(path)] == str(path):
            raise SourceError(
                f"{path.parent}: holds both a complete run ({path.name}) and the files of a run per problem; "
                f"reading both would count attempts twice. Hint: name the file, or the others by a glob."
            )
    return runs


def _json_schema(
    opened: Sequence[OpenFile], file_format: FileFormat, rename: Mapping[str, str]
) -> dict[str, pl.DataType]:
    """Return the schema with which all JSON files are read."""
    discovered: dict[str, pl.DataType] = {}
    for file in opened:
        for name, dtype in file.schema.items() if file.is_json else ():
            before = discovered.setdefault(name, dtype)
            if before is not dtype and before != dtype:
                discovered[name] = merge_dtypes([before, dtype])
    return {
        name: _choose_dtype(dtype, rename.get(name, name), file_format)
        for name, dtype in discovered.items()
    }


def _choose_dtype(inferred: pl.DataType, name: str, file_format: FileFormat) -> pl.DataType:
    """Return the dtype with which a JSON column is read."""
    if isinstance(inferred, pl.Null) and name in TRAJECTORY_COLUMNS:
        return file_format.dtypes.get(name, TRAJECTORY_COLUMNS[name].dtype)
    if name in file_format.as_text:
        return pl.String()
    dtype = resolve_dtype(inferred, unseen=pl.String())
    return _prefer_known(dtype, file_format.dtypes.get(name, dtype))


def _prefer_known(inferred: pl.DataType, known: pl.DataType) -> pl.DataType:
    """Return the known dtype, plus the fields that only the file has."""
    if isinstance(inferred, pl.List) and isinstance(known, pl.List):
        return pl.List(_prefer_known(as_instance(inferred.inner), as_instance(known.inner)))
    if isinstance(inferred, pl.Struct) and isinstance(known, pl.Struct):
        fields = struct_fields(known)
        return pl.Struct({
            name: _prefer_known(dtype, fields.get(name, dtype))
            for name, dtype in struct_fields(inferred).items()
        })
    # A list or object in place of a text keeps its dtype, so that the error can name it.
    return inferred if isinstance(known, pl.String) and inferred.is_nested() else known
