"""From files to attempts: open each, recognise the one format they share, read them as one table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers._jsonl import (
    FILE,
    ROW,
    JsonFile,
    fault_error,
    find_misfits,
    inspect,
    on_all_cores,
    place,
    scan,
)
from ttsframe.readers._rows import Fault, instance, merged, settled
from ttsframe.readers._sniff import DataFile, sniff
from ttsframe.readers._sources import Candidate
from ttsframe.readers._table import OnError, Reader, Table, canonical
from ttsframe.schema import TRAJECTORY_COLUMNS

_MADE_FROM = {
    "answer": {"completion"},
    "answer_key": {"completion", "answer"},
    "gold_key": {"gold", "solution"},
    "is_correct": {"gold", "solution", "gold_key"},
    "score": {"step_scores"},
}
"""Columns that can be made from others, in a file that does not have them yet."""

_ROW_WORDS = {"jsonl": "line", "json": "element"}


class OpenFile(NamedTuple):
    """A file whose columns are known."""

    file: DataFile
    schema: dict[str, pl.DataType]
    """Under the file's own names; Null for what no row of a JSON file has a value of."""
    frame: pl.LazyFrame | None
    """None for JSON, which is read with a schema that the format decides."""
    faults: list[Fault]
    has_lone_surrogates: bool
    is_document: bool
    """One JSON object or an array, as a run's config is; never so for tables."""


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
            file, found.dtypes, None, found.faults, found.has_lone_surrogates, is_document
        )
    try:
        frame = _scan_binary(file)
        schema = dict(frame.collect_schema())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(
            f"{path}: cannot be read as {file.container} ({_first_line(error)}). Hint: the file may be cut off."
        ) from error
    return OpenFile(file, schema, frame, [], has_lone_surrogates=False, is_document=False)


def _scan_binary(file: DataFile) -> pl.LazyFrame:
    if file.container == "parquet":
        return pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
    if file.container == "arrow":
        return pl.scan_ipc(file.path, glob=False, hive_partitioning=False)
    return pl.read_ipc_stream(file.path).lazy()


def load(
    candidates: Sequence[Candidate],
    readers: Mapping[str, Reader],
    *,
    format: str,  # noqa: A002 - the name callers write
    rename: Mapping[str, str],
    on_error: OnError,
) -> tuple[pl.LazyFrame, list[str]]:
    """Return all attempts of the files, lazily, and a message for each row that was left out."""
    known = {name for reader in readers.values() for name in reader.dtypes}
    opened: list[OpenFile] = []
    chosen: list[str] = []
    others: list[str] = []
    files = on_all_cores(lambda candidate: open_file(candidate.path, known), candidates)
    for candidate, one in zip(candidates, files, strict=True):
        columns = () if one is None else _renamed(one.schema, rename)
        name = _recognise(columns, readers, format)
        if one is not None and name is not None:
            opened.append(one)
            chosen.append(name)
        elif one is not None and one.faults and on_error == "raise":
            raise fault_error(one.file, one.faults[0])
        elif candidate.is_named or (one is not None and not one.is_document):
            raise _unrecognised(candidate.path, columns, readers, format, is_table=one is not None)
        else:
            others.append(candidate.path.name)
    if not opened:
        raise SourceError(
            f"{candidates[0].path.parent}: holds no file of attempts; found: {_some(others)}. "
            f"{_expectations(readers)}"
        )
    if len(set(chosen)) > 1:
        raise _mixed(opened, chosen)
    reader = readers[chosen[0]]
    for one in opened:
        _check_rename(one, rename)
        if one.faults and on_error == "raise":
            raise fault_error(one.file, one.faults[0])
    _refuse_half_made(opened, reader, rename)
    runs = _runs([one.file.path for one in opened], reader)
    return _attempts(opened, reader, rename, runs, on_error)


def _recognise(
    columns: Collection[str],
    readers: Mapping[str, Reader],
    format: str,  # noqa: A002
) -> str | None:
    if format != "auto":
        return format if readers[format].accepts(columns) else None
    return next((name for name, reader in readers.items() if reader.recognises(columns)), None)


def _unrecognised(
    path: Path,
    columns: Collection[str],
    readers: Mapping[str, Reader],
    format: str,  # noqa: A002
    *,
    is_table: bool,
) -> SourceError:
    if not is_table:
        return SourceError(
            f"{path}: is neither Parquet, Arrow IPC nor JSON, by its first bytes. Hint: "
            f"polars.read_csv(...).write_parquet(...) makes a table of one row per attempt readable."
        )
    found = f"found columns: {_some(columns)}"
    if format != "auto":
        return SourceError(
            f"{path}: is not in format {format!r}; {found}; expected: {readers[format].expects}. "
            f"Hint: rename={{'yours': 'expected'}} maps names."
        )
    return SourceError(f"{path}: in no known format; {found}. {_expectations(readers)}")


def _expectations(readers: Mapping[str, Reader]) -> str:
    listed = "; ".join(f"{name}: {reader.expects}" for name, reader in readers.items())
    return (
        f"Expected columns, by format: {listed}. Hint: rename={{'yours': 'expected'}} maps names, "
        f"and format=... names the format."
    )


def _some(names: Collection[str]) -> str:
    listed = list(names)
    return f"{listed[:20]}" + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")


def _mixed(opened: Sequence[OpenFile], chosen: Sequence[str]) -> SourceError:
    by_format: dict[str, list[str]] = {}
    for one, name in zip(opened, chosen, strict=True):
        by_format.setdefault(name, []).append(str(one.file.path))
    listed = "; ".join(
        f"{name}: {len(paths)} (such as {paths[0]})" for name, paths in by_format.items()
    )
    return SourceError(
        f"{len(opened)} files in {len(by_format)} formats, must be one; found {listed}. Hint: "
        f"'ttsframe score SOURCE -o run.parquet' brings each format into one, by='source_file' tells them apart."
    )


def _renamed(
    schema: Mapping[str, pl.DataType], rename: Mapping[str, str]
) -> dict[str, pl.DataType]:
    return {rename.get(name, name): dtype for name, dtype in schema.items()}


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
    columns = {str(one.file.path): set(_renamed(one.schema, rename)) for one in opened}
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


def _attempts(
    opened: Sequence[OpenFile],
    reader: Reader,
    rename: Mapping[str, str],
    runs: Mapping[str, str],
    on_error: OnError,
) -> tuple[pl.LazyFrame, list[str]]:
    skipped: list[str] = []
    tables: list[Table] = []
    json = [one for one in opened if one.frame is None]
    if json:
        tables.append(_json_table(json, reader, rename, on_error, skipped))
    for one in opened:
        if one.frame is not None:
            numbered = one.frame.with_row_index(ROW, offset=1).with_columns(
                pl.lit(str(one.file.path)).alias(FILE)
            )
            words = {str(one.file.path): "row"}
            schema = _renamed(one.schema, rename)
            tables.append(Table(numbered.rename(rename), schema, words, on_error, skipped))
    is_several = len(set(runs.values())) > 1
    frames = [
        reader.to_attempts(_with_source(table, runs) if is_several else table).drop(
            ROW, FILE, strict=False
        )
        for table in tables
    ]
    joined = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal_relaxed")
    try:
        result = canonical(joined)
        result.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise ColumnsError(
            f"{', '.join(list(runs)[:3])}: the columns cannot be put into one table "
            f"({_first_line(error)}). Hint: "
            f"rename={{'yours': 'other'}} moves a column out of the way."
        ) from error
    return result, skipped


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


def _json_table(
    opened: Sequence[OpenFile],
    reader: Reader,
    rename: Mapping[str, str],
    on_error: OnError,
    skipped: list[str],
) -> Table:
    discovered: dict[str, pl.DataType] = {}
    for one in opened:
        for name, dtype in one.schema.items():
            before = discovered.get(name, dtype)
            discovered[name] = before if before == dtype else merged([before, dtype])
    schema = {
        name: _decided(dtype, rename.get(name, name), reader) for name, dtype in discovered.items()
    }
    files = []
    for one in opened:
        item = JsonFile(one.file, one.has_lone_surrogates, frozenset())
        if on_error == "skip":
            faults = find_misfits(item, schema)
            skipped.extend(f"{place(one.file, fault.row)}: {fault.reason}" for fault in faults)
            item = item._replace(skipped=frozenset(fault.row for fault in faults))
        files.append(item)
    words = {str(one.file.path): _ROW_WORDS[one.file.container] for one in opened}
    frame = scan(files, schema).rename(rename)
    return Table(frame, _renamed(schema, rename), words, on_error, skipped)


def _decided(found: pl.DataType, name: str, reader: Reader) -> pl.DataType:
    """Return the dtype to read a JSON column with."""
    if isinstance(found, pl.Null) and name in TRAJECTORY_COLUMNS:
        return reader.dtypes.get(name, TRAJECTORY_COLUMNS[name].dtype)
    dtype = settled(found, unseen=pl.String())
    return _known_over(dtype, reader.dtypes.get(name, dtype))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


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
