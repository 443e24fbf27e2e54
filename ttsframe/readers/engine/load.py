"""Open files and recognise the one format that they share: how to read them, before any is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ttsframe._settings import BY_FILE, setting
from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers.engine.attempts import (
    Survey,
    SurveyedFile,
    first_line,
    renamed,
    scan_table,
    text_columns,
)
from ttsframe.readers.engine.chunks import Span
from ttsframe.readers.engine.jsonl import (
    JsonFile,
    fault_error,
    find_misfits,
    inspect,
    on_all_cores,
    place,
)
from ttsframe.readers.engine.rows import Fault, instance, merged, settled
from ttsframe.readers.engine.sniff import DataFile, sniff
from ttsframe.readers.engine.sources import Candidate
from ttsframe.readers.engine.table import OnError, Reader
from ttsframe.schema import TRAJECTORY_COLUMNS

_MADE_FROM = {
    "answer": {"completion"},
    "answer_key": {"completion", "answer"},
    "gold_key": {"gold", "solution"},
    "is_correct": {"gold", "solution", "gold_key"},
    "score": {"step_scores"},
}
"""Columns that can be made from others, in a file that does not have them yet."""


class OpenFile(NamedTuple):
    """A file whose columns are known."""

    file: DataFile
    schema: dict[str, pl.DataType]
    """Under the file's own names; Null for what no row of a JSON file has a value of."""
    is_json: bool
    """Whether it is read with a schema that the format decides."""
    faults: list[Fault]
    has_lone_surrogates: bool
    is_document: bool
    """One JSON object or an array, as a run's config is; never so for tables."""
    spans: tuple[Span, ...] = ()
    """Of JSON lines, where reading may begin and end."""
    n_rows: int | None = None
    """Known of JSON, which was looked through."""


def open_file(path: Path, known: Collection[str]) -> OpenFile | None:
    """Find the columns of a file; None when it holds no table that can be read."""
    file = sniff(path)
    if file.container == "text":
        return None
    if file.container in {"jsonl", "json"}:
        found = inspect(file, known)
        if not found.dtypes and not found.faults:
            raise SourceError(f"{path}: holds no rows, must hold one or more.")
        is_document = file.container == "json" or found.n_rows == 1
        return OpenFile(
            file,
            found.dtypes,
            is_json=True,
            faults=found.faults,
            has_lone_surrogates=found.has_lone_surrogates,
            is_document=is_document,
            spans=tuple(found.spans),
            n_rows=found.n_rows,
        )
    try:
        schema = dict(scan_table(file).collect_schema())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(
            f"{path}: cannot be read as {file.container} ({first_line(error)}). Hint: the file may be cut off."
        ) from error
    return OpenFile(
        file, schema, is_json=False, faults=[], has_lone_surrogates=False, is_document=False
    )


def survey(
    candidates: Sequence[Candidate],
    readers: Mapping[str, Reader],
    *,
    format: str,  # noqa: A002 - the name callers write
    rename: Mapping[str, str],
    on_error: OnError,
    row: str = "attempt",
) -> tuple[Survey, list[str]]:
    """Look all files over; return how to read them, and a message for each JSON row left out."""
    known = {name for reader in readers.values() for name in reader.dtypes}
    opened: list[OpenFile] = []
    chosen: list[str] = []
    others: list[str] = []
    files = on_all_cores(lambda candidate: open_file(candidate.path, known), candidates)
    for candidate, one in zip(candidates, files, strict=True):
        columns = {} if one is None else renamed(one.schema, rename)
        name = _recognise(columns, readers, format)
        if one is not None and name is not None:
            opened.append(one)
            chosen.append(name)
        elif one is not None and one.faults and on_error == "raise":
            raise fault_error(one.file, one.faults[0])
        elif candidate.is_named or (one is not None and not one.is_document):
            if one is None:
                raise _not_a_table(candidate.path, row)
            raise _unrecognised(candidate.path, columns, readers, format)
        else:
            others.append(candidate.path.name)
    if not opened:
        raise SourceError(
            f"{candidates[0].path.parent}: holds no file of {row}s; found: {_some(others)}. "
            f"{_expectations(readers)}"
        )
    if len(set(chosen)) > 1:
        raise _mixed(opened, chosen, row)
    reader = readers[chosen[0]]
    for one in opened:
        _check_rename(one, rename)
        if one.faults and on_error == "raise":
            raise fault_error(one.file, one.faults[0])
    _refuse_half_made(opened, reader, rename)
    return _surveyed(opened, reader, rename, on_error)


def _surveyed(
    opened: Sequence[OpenFile], reader: Reader, rename: Mapping[str, str], on_error: OnError
) -> tuple[Survey, list[str]]:
    """Decide what all files share, and which rows of JSON do not fit it."""
    runs = _runs([one.file.path for one in opened], reader)
    json_schema = _json_schema(opened, reader, rename)
    files: list[SurveyedFile] = []
    skipped: list[str] = []
    for one in opened:
        misfits: list[Fault] = []
        if one.is_json and on_error == "skip":
            item = JsonFile(one.file, one.has_lone_surrogates, frozenset(), one.spans)
            misfits = find_misfits(item, json_schema, text_columns(json_schema, reader, rename))
            skipped.extend(f"{place(one.file, fault.row)}: {fault.reason}" for fault in misfits)
        files.append(
            SurveyedFile(
                one.file,
                one.schema,
                runs[str(one.file.path)],
                one.has_lone_surrogates,
                frozenset(fault.row for fault in misfits),
                spans=one.spans,
                n_rows=one.n_rows,
            )
        )
    is_several = len(set(runs.values())) > 1
    return Survey(reader, tuple(files), json_schema, dict(rename), on_error, is_several), skipped


def _recognise(
    columns: Mapping[str, pl.DataType],
    readers: Mapping[str, Reader],
    format: str,  # noqa: A002
) -> str | None:
    likely = {name: reader for name, reader in readers.items() if reader.has_shapes(columns)}
    if format != "auto":
        return format if format in likely and readers[format].accepts(columns) else None
    return next((name for name, reader in likely.items() if reader.recognises(columns)), None)


def _not_a_table(path: Path, row: str) -> SourceError:
    return SourceError(
        f"{path}: is neither Parquet, Arrow IPC nor JSON, by its first bytes. Hint: "
        f"polars.read_csv(...).write_parquet(...) makes a table of one row per {row} readable."
    )


def _unrecognised(
    path: Path,
    columns: Collection[str],
    readers: Mapping[str, Reader],
    format: str,  # noqa: A002
) -> SourceError:
    found = f"found columns: {_some(columns)}"
    if format != "auto":
        return SourceError(
            f"{path}: is not in format {format!r}; {found}; expected: {readers[format].expects}. "
            f"Hint: {setting('rename', {'yours': 'expected'})} maps names."
        )
    return SourceError(f"{path}: in no known format; {found}. {_expectations(readers)}")


def _expectations(readers: Mapping[str, Reader]) -> str:
    listed = "; ".join(f"{name}: {reader.expects}" for name, reader in readers.items())
    return (
        f"Expected columns, by format: {listed}. Hint: {setting('rename', {'yours': 'expected'})} maps names, "
        f"and {setting('format')} names the format."
    )


def _some(names: Collection[str]) -> str:
    listed = list(names)
    return f"{listed[:20]}" + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")


def _mixed(opened: Sequence[OpenFile], chosen: Sequence[str], row: str) -> SourceError:
    by_format: dict[str, list[str]] = {}
    for one, name in zip(opened, chosen, strict=True):
        by_format.setdefault(name, []).append(str(one.file.path))
    listed = "; ".join(
        f"{name}: {len(paths)} (such as {paths[0]})" for name, paths in by_format.items()
    )
    return SourceError(
        f"{len(opened)} files in {len(by_format)} formats, must be one; found {listed}. Hint: "
        f"'ttsframe {'steps' if row == 'step' else 'score'} SOURCE -o run.parquet' brings each format into one, {BY_FILE} tells them apart."
    )


def _check_rename(one: OpenFile, rename: Mapping[str, str]) -> None:
    path, names = one.file.path, one.schema.keys()
    missing = [name for name in rename if name not in names]
    if missing:
        raise ColumnsError.missing(
            missing,
            list(names),
            where=f"rename in {path}",
            hint="rename maps the file's names to ttsframe's: {'yours': 'completion'}.",
        )
    kept = {name for name in names if name not in rename}
    for name, target in rename.items():
        if target in kept:
            raise ColumnsError(
                f"{path}: rename gives {name!r} the name {target!r}, which another column has. Hint: "
                f"rename that one as well: {{{target!r}: 'source_{target}'}}."
            )


def _refuse_half_made(
    opened: Sequence[OpenFile], reader: Reader, rename: Mapping[str, str]
) -> None:
    """Raise where a column is recorded in one file and still to be made in another."""
    # Read together, the other's would be null: no answer, not graded, no score.
    if not _MADE_FROM.keys() <= reader.dtypes.keys() | {"is_correct"}:
        return
    columns = {str(one.file.path): set(renamed(one.schema, rename)) for one in opened}
    for name, sources in _MADE_FROM.items():
        having = next((path for path, names in columns.items() if name in names), None)
        for path, names in columns.items():
            if having is not None and name not in names and sources & names:
                raise ColumnsError(
                    f"{path}: has no column {name!r}, which {having} has; read together it would be null "
                    f"here, not made from {sorted(sources & names)}. Hint: 'ttsframe score SOURCE -o "
                    f"scored.parquet' makes it; score each by itself and read what was written."
                )


def _runs(paths: Sequence[Path], reader: Reader) -> dict[str, str]:
    """Name the run of each file: the file itself, or the folder of a run in pieces."""
    runs, folders = {}, set()
    for path in paths:
        match = reader.piece and re.search(rf"(^|/){reader.piece}$", path.as_posix())
        folder = str(Path(path.as_posix()[: match.start()] or ".")) if match else None
        runs[str(path)] = folder or str(path)
        folders.add(folder)
    for path in paths:
        if str(path.parent) in folders and runs[str(path)] == str(path):
            raise SourceError(
                f"{path.parent}: holds a whole run ({path.name}) and a run's pieces, file by file; reading "
                f"both would count attempts twice. Hint: name the file, or the pieces by a glob."
            )
    return runs


def _json_schema(
    opened: Sequence[OpenFile], reader: Reader, rename: Mapping[str, str]
) -> dict[str, pl.DataType]:
    """Return the one schema that all JSON files are read with."""
    discovered: dict[str, pl.DataType] = {}
    for one in opened:
        for name, dtype in one.schema.items() if one.is_json else ():
            before = discovered.get(name, dtype)
            discovered[name] = before if before == dtype else merged([before, dtype])
    return {
        name: _decided(dtype, rename.get(name, name), reader) for name, dtype in discovered.items()
    }


def _decided(found: pl.DataType, name: str, reader: Reader) -> pl.DataType:
    """Return the dtype to read a JSON column with."""
    if isinstance(found, pl.Null) and name in TRAJECTORY_COLUMNS:
        return reader.dtypes.get(name, TRAJECTORY_COLUMNS[name].dtype)
    if name in reader.as_text:
        return pl.String()
    dtype = settled(found, unseen=pl.String())
    return _known_over(dtype, reader.dtypes.get(name, dtype))


def _known_over(found: pl.DataType, known: pl.DataType) -> pl.DataType:
    """Return the known dtype, with the fields that only the file knows of."""
    if isinstance(found, pl.List) and isinstance(known, pl.List):
        return pl.List(_known_over(instance(found.inner), instance(known.inner)))
    if isinstance(found, pl.Struct) and isinstance(known, pl.Struct):
        fields = {field.name: instance(field.dtype) for field in known.fields}
        return pl.Struct({
            field.name: _known_over(
                instance(field.dtype), fields.get(field.name, instance(field.dtype))
            )
            for field in found.fields
        })
    # a list or object in place of a text stays what it is, to be refused by name
    return found if isinstance(known, pl.String) and found.is_nested() else known
