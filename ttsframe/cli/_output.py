"""Write tables to files, completely or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click
import polars as pl

from ttsframe._files import check_parent_folder, replacing
from ttsframe._wording import counted
from ttsframe.cli._console import Console
from ttsframe.errors import ColumnsError, ParameterError, SourceError
from ttsframe.readers.engine import expand

_SINKS: Final[dict[str, Callable[[pl.LazyFrame, Path], pl.LazyFrame]]] = {
    ".parquet": lambda frame, path: frame.sink_parquet(path, lazy=True),
    ".jsonl": lambda frame, path: frame.sink_ndjson(path, lazy=True),
    ".arrow": lambda frame, path: frame.sink_ipc(path, lazy=True),
    ".csv": lambda frame, path: frame.sink_csv(path, lazy=True),
}
_FORMULA: Final = "^[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_NUMBER: Final = r"^[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_SPELLINGS: Final = {".ndjson": ".jsonl", ".ipc": ".arrow", ".feather": ".arrow"}
TABLE_SUFFIXES: Final = (*_SINKS, *_SPELLINGS)


def _guard_formulas(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Console).guards_formulas = value


guard_option = click.option(
    "--guard-formulas",
    is_flag=True,
    callback=_guard_formulas,
    expose_value=False,
    help="In CSV for a spreadsheet, put an apostrophe before texts that it would run as formulas.",
)


def without_formulas(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before texts and names that a spreadsheet would run as formulas."""
    texts = [name for name, dtype in frame.collect_schema().items() if dtype == pl.String]
    guarded = [
        pl
        .when(pl.col(name).str.contains(_FORMULA) & ~pl.col(name).str.contains(_NUMBER))
        .then("'" + pl.col(name))
        .otherwise(name)
        .alias(name)
        for name in texts
    ]
    return frame.with_columns(guarded).rename(
        lambda name: f"'{name}" if re.match(_FORMULA, name) else name
    )


def check_output(target: Path, suffixes: Sequence[str], sources: Sequence[str] = ()) -> None:
    """Check that a file can be written, before any work is done; no file of `sources` is replaced."""
    if target.is_dir():
        raise SourceError(f"{target}: is a folder, must be a file. Hint: name the file to write.")
    if target.suffix.lower() not in suffixes:
        found = f"ends in {target.suffix!r}" if target.suffix else "has no suffix"
        listed = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise ParameterError(
            f"{target}: {found}, must end in {listed}. Hint: the suffix decides the format."
        )
    check_parent_folder(target)
    if sources and target.exists():
        from ttsframe.batch.job import check_not_replaced

        check_not_replaced(target, [candidate.path for candidate in expand(sources)])


def save(frame: pl.DataFrame | pl.LazyFrame, target: Path, console: Console) -> dict[str, object]:
    """Write a table in the format of the target's suffix, and return what was written for JSON."""
    lazy = frame.lazy()
    suffix = target.suffix.lower()
    kind = _SPELLINGS.get(suffix, suffix)
    schema = lazy.collect_schema()
    nested = [name for name, dtype in schema.items() if dtype.is_nested()]
    if kind == ".csv" and nested:
        raise ColumnsError(
            f"{target}: CSV cannot hold lists, as in the columns {nested}. Hint: write "
            f"{target.with_suffix('.parquet').name}."
        )
    n_problems = pl.col("problem_id").n_unique() if "problem_id" in schema else pl.lit(0)
    sizes = lazy.select(n_rows=pl.len(), n_problems=n_problems)
    if console.guards_formulas and kind == ".csv":
        lazy = without_formulas(lazy)
    with console.status(f"Writing {target}"), replacing(target) as temporary:
        _, counts = pl.collect_all([_SINKS[kind](lazy, temporary), sizes], engine="streaming")
    size: dict[str, int] = counts.row(0, named=True)
    rows, problems = counted([size["n_rows"]], "row"), counted([size["n_problems"]], "problem")
    of_problems = f" for {problems}" if "problem_id" in schema else ""
    console.say(f"Wrote {target}: {rows}{of_problems}; columns: {', '.join(schema.names())}")
    return {"output": str(target), **size, "columns": schema.names()}
