"""Labeled steps in the formats of other tools: read, written and converted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_between, check_choice, check_frame
from ttsframe._files import replacing
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.readers.engine.faults import DAMAGED, naming
from ttsframe.readers.engine.sources import Source
from ttsframe.readers.engine.survey import scan_source
from ttsframe.readers.engine.table import OnError, order_columns
from ttsframe.readers.step_formats.nodes import step_paths
from ttsframe.readers.step_formats.registry import STEP_FORMATS, StepFormatName
from ttsframe.readers.step_formats.step_format import STEP_COLUMNS, Labels
from ttsframe.readers.step_formats.writing import refuse_nonfinite, sort_steps
from ttsframe.readers.trajectories import READERS

__all__ = [
    "STEP_COLUMNS",
    "STEP_FORMATS",
    "StepFormatName",
    "WritableStepFormat",
    "read_steps",
    "scan_steps",
    "step_paths",
    "write_steps",
]

WritableStepFormat: TypeAlias = Literal["math_shepherd", "openr", "trl", "table"]
Format: TypeAlias = Literal["auto"] | StepFormatName

_TABLES: Final[Mapping[str, Callable[[pl.DataFrame, Path], None]]] = MappingProxyType({
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".arrow": lambda frame, path: frame.write_ipc(path),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
})


def scan_steps(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
) -> pl.LazyFrame:
    """Scan labeled steps in any known format as one lazy row per step.

    The format is recognized by content, never by file name. Files are inspected once at the call, as
    in `scan_trajectories`.

    Parameters
    ----------
    source
        As in `scan_trajectories`, files or in memory; all have the same format.
    format
        Key of `STEP_FORMATS`, or `"auto"`.
    rename, on_error
        As in `scan_trajectories`.

    Returns
    -------
    pl.LazyFrame
        The table `steps`, with

        - `problem_id`: that of the source, else 16 hex digits of a BLAKE2b hash of the problem's text;
          for MATH-APS always the hash, since its ids repeat;
        - `solution_id` (String): that of the source, else a hash of the texts of its steps; of equal
          solutions to a problem, the second has the suffix `-2`;
        - `step` (Int64): 0 is the first step; -1 is the problem before any step, which has a value in
          MATH-APS, and is the only row of a solution without steps;
        - as far as the source has them, `node` and `parent` (Int64, MATH-APS), `alternative` (Int64)
          and `is_on_path` (Boolean, PRM800K), `problem`, `gold`, `text` (of this step alone),
          `is_correct` (Boolean, null without a label), `rating` (Int8: -1, 0 or 1), `soft` (Float64);
        - the other columns of the source, with those of a solution repeated for each step, and
          `source_file` if several files were read.

    Raises
    ------
    SourceError
        At the call, when a file is missing, empty, malformed, in no known format, or not in the format
        of the others. At collection, naming file and line, when a row breaks the rules of its format,
        for example if its labels do not match its steps.
    ColumnsError
        At the call, when a column has an unusable type or `rename` does not match the columns.
    ParameterError
        At the call, when `format` or `on_error` is not among its choices.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import ttsframe as tts
    >>> row = {"question": "6 x 7?", "final_answer": "42", "reasoning_steps": [
    ...     {"solution_prefix": "6 x 7?", "mc_value": 0.5},
    ...     {"solution_prefix": "6 x 7? 42", "mc_value": 1.0}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "aps.jsonl")
    ...     _ = path.write_text(json.dumps(row))
    ...     steps = tts.scan_steps(path).select("step", "node", "parent", "text", "soft").collect()
    >>> steps.rows()
    [(-1, 0, None, None, 0.5), (0, 1, 0, ' 42', 1.0)]
    """
    frame, _ = _plan(source, format=format, rename=rename, on_error=on_error)
    return frame


def _plan(
    source: Source,
    *,
    format: Format,  # noqa: A002
    rename: Mapping[str, str] | None,
    on_error: OnError,
) -> tuple[pl.LazyFrame, list[str]]:
    """Scan labeled steps, and name the files."""
    formats = {str(name): step_format.reader for name, step_format in STEP_FORMATS.items()}
    frame, survey, skipped = scan_source(
        source,
        formats,
        format=format,
        rename=rename,
        on_error=on_error,
        row="step",
        elsewhere=READERS,
    )
    for warning in skipped:
        warnings.warn(warning, stacklevel=3)
    return order_columns(frame, STEP_COLUMNS), [file.file.name for file in survey.files]


def read_steps(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
) -> pl.DataFrame:
    """Read labeled steps in any known format as one row per step.

    The same as `scan_steps`, collected; for data that fit into memory.

    Parameters
    ----------
    source, format, rename, on_error
        As in `scan_steps`.

    Returns
    -------
    pl.DataFrame
        The table `steps`, as in `scan_steps`.

    Raises
    ------
    SourceError
        When a file is missing, empty, malformed, or in no known format.
    ColumnsError
        When a column has an unusable type or `rename` does not match the columns.
    ParameterError
        When `format` or `on_error` is not among its choices.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import ttsframe as tts
    >>> row = {"input": "6 x 7? Step 1: It is 42. ки", "label": "6 x 7? Step 1: It is 42. +", "task": "GSM8K"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "shepherd.jsonl")
    ...     _ = path.write_text(json.dumps(row))
    ...     steps = tts.read_steps(path)
    >>> steps.select("step", "problem", "text", "is_correct", "task").rows()
    [(0, '6 x 7?', 'Step 1: It is 42.', True, 'GSM8K')]
    """
    frame, names = _plan(source, format=format, rename=rename, on_error=on_error)
    with naming(names, DAMAGED):
        return frame.collect()


def write_steps(
    steps: pl.DataFrame | pl.LazyFrame,
    target: str | os.PathLike[str],
    *,
    format: WritableStepFormat,  # noqa: A002 - the word users know
    neutral: bool | None = None,
    right_above: float | None = None,
) -> None:
    """Write labeled steps in the format of Math-Shepherd, OpenR or TRL, or as a plain table.

    Columns that are constant within each solution become keys of its row. Any other column without a
    place in the format is an error; drop it to leave it out. The file is written completely or not at
    all.

    Parameters
    ----------
    steps
        Table of steps, as in `read_steps`; a LazyFrame is collected. Solutions are written in the order
        of their first row, and their steps by number, regardless of the order of rows.
    target
        File to write; an existing file is replaced. For the format `"table"`, the suffix decides how:
        `.parquet`, `.arrow` or `.jsonl`. The other formats are JSON lines.
    format
        `"math_shepherd"`, `"openr"`, `"trl"` or `"table"`. The other formats of `STEP_FORMATS` can only
        be read.
    neutral
        Label of `rating` 0 in formats that only know right and wrong; OpenR counts it as right.
    right_above
        In formats of labels, `soft` values above it, in [0, 1], count as right; OpenR uses 0.5. The
        values themselves are not written.

    Raises
    ------
    DataError
        When the format cannot represent a step; the message names problem, solution and step. Examples
        are a text that contains the end mark of a step, a missing label, steps that are not numbered
        0, 1, 2, ..., and contradictory labels.
    ColumnsError
        When a column is missing, or has no place in the format.
    ParameterError
        When the format cannot be written, the suffix of a table is unknown, `right_above` is outside
        its range, or `neutral` or `right_above` is given for a table.
    ParameterTypeError
        When `steps` is not a Polars frame, or `neutral` is not a bool.
    SourceError
        When the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> steps = pl.DataFrame({
    ...     "problem_id": "p", "solution_id": "s", "step": [0, 1], "problem": "6 x 7 + 5?",
    ...     "text": ["6 x 7 is 42.", "42 + 5 is 49."], "soft": [0.6, 0.0],
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "trl.jsonl")
    ...     tts.write_steps(steps, path, format="trl", right_above=0.5)
    ...     tts.read_steps(path).select("problem_id", "step", "is_correct").rows()
    [('p', 0, True), ('p', 1, False)]
    """
    check_frame(steps, "steps")
    check_choice(format, "format", STEP_FORMATS)
    if format not in get_args(WritableStepFormat):
        raise ParameterError(
            f"format == {format!r} can only be read, must be one of "
            f"{', '.join(map(repr, get_args(WritableStepFormat)))} to be written."
        )
    to_lines = STEP_FORMATS[format].to_lines
    if neutral is not None and not isinstance(neutral, bool):
        raise ParameterTypeError(f"neutral must be a bool, got {type(neutral).__name__}.")
    if right_above is not None:
        check_between(right_above, "right_above", 0.0, 1.0)
    path = Path(target)
    frame = steps.lazy().collect()
    if to_lines is not None:
        refuse_nonfinite(frame)
        lines = to_lines(frame, Labels(neutral, right_above)).to_frame()
        with replacing(path) as temporary:
            lines.write_csv(temporary, include_header=False, quote_style="never")
        return
    for name, value in {"neutral": neutral, "right_above": right_above}.items():
        if value is not None:
            raise ParameterError(
                f"{name} == {value}, but format 'table' keeps all values as they are."
            )
    write = _TABLES.get(path.suffix.lower())
    if write is None:
        raise ParameterError(
            f"target == {str(path)!r}, must end in {', '.join(_TABLES)} for format 'table'."
        )
    if path.suffix.lower() == ".jsonl":
        refuse_nonfinite(frame)
    sort_steps(frame, [])  # only checks the structure; a table keeps the order of its rows
    with replacing(path) as temporary:
        write(frame, temporary)
