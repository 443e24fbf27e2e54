"""Tables to files, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe._files import replacing
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
_SPELLINGS: Final = {".ndjson": ".jsonl", ".ipc": ".arrow", ".feather": ".arrow"}
TABLE_SUFFIXES: Final = (*_SINKS, *_SPELLINGS)


def check_output(target: Path, suffixes: Sequence[str], sources: Sequence[str] = ()) -> None:
    """Refuse a file that could not be written, before any work is done.

    Parameters
    ----------
    target
        File to write.
    suffixes
        What its name may end in.
    sources
        What is read; no file of it may be replaced.

    Raises
    ------
    ParameterError
        When its suffix stands for no format.
    SourceError
        When it is a folder, in no folder, in one that cannot be written to, or among the sources.
    """
    if target.is_dir():
        raise SourceError(f"{target}: is a folder, must be a file. Hint: name the file to write.")
    if target.suffix.lower() not in suffixes:
        found = f"ends in {target.suffix!r}" if target.suffix else "has no suffix"
        raise ParameterError(
            f"{target}: {found}, must end in {' or '.join(suffixes)}. Hint: the suffix says what is "
            f"written."
        )
    check_folder(target)
    if sources and target.exists():
        read = {candidate.path.resolve() for candidate in expand(sources)}
        if target.resolve() in read:
            raise SourceError(
                f"{target}: is one of the sources, and would be replaced. Hint: give the output "
                f"another name, outside of a folder that is read."
            )


def check_folder(target: Path) -> None:
    """Refuse a file or folder whose place could not be written to.

    Parameters
    ----------
    target
        What is to be written.

    Raises
    ------
    SourceError
        When it is in no folder, or in one that cannot be written to.
    """
    folder = target.parent
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder, so {target.name} cannot be written there.")
    if not os.access(folder, os.W_OK):
        raise SourceError(f"{folder}: cannot be written to, so {target.name} has no place there.")


def save(frame: pl.DataFrame | pl.LazyFrame, target: Path, console: Console) -> dict[str, object]:
    """Write a table in the format that the target's suffix says, and say what was written.

    Parameters
    ----------
    frame
        The table; of a LazyFrame nothing more is held in memory than the writing needs.
    target
        File to write, replaced if it exists.
    console
        Where to say it.

    Returns
    -------
    dict[str, object]
        What was written, as values for JSON.

    Raises
    ------
    ColumnsError
        When the format cannot hold lists and the table has some.
    """
    lazy = frame.lazy()
    suffix = target.suffix.lower()
    kind = _SPELLINGS.get(suffix, suffix)
    schema = lazy.collect_schema()
    nested = [name for name, dtype in schema.items() if dtype.is_nested()]
    if kind == ".csv" and nested:
        raise ColumnsError(
            f"{target}: CSV cannot hold lists, which the columns {nested} are. Hint: write "
            f"{target.with_suffix('.parquet').name}."
        )
    n_problems = pl.col("problem_id").n_unique() if "problem_id" in schema else pl.lit(0)
    sizes = lazy.select(n_rows=pl.len(), n_problems=n_problems)
    with console.stage(f"Writing {target}") as stage, replacing(target) as temporary:
        sink = _SINKS[kind](lazy, temporary)
        _, counts = pl.collect_all([sink, sizes], engine="streaming")
        size: dict[str, int] = counts.row(0, named=True)
        stage.note = counted([size["n_rows"]], "row")
    rows, problems = counted([size["n_rows"]], "row"), counted([size["n_problems"]], "problem")
    of_problems = f" for {problems}" if "problem_id" in schema else ""
    console.say(f"Wrote {target}: {rows}{of_problems}; columns: {', '.join(schema.names())}")
    return {"output": str(target), **size, "columns": schema.names()}
