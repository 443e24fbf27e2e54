"""Labelled steps in the formats of other tools: read, written, and turned into one another."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe._checks import check_between, check_choice, check_frame
from ttsframe._files import replacing
from ttsframe._settings import found
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.readers.engine.sources import Source
from ttsframe.readers.engine.table import OnError
from ttsframe.readers.step_formats import (
    math_aps,
    math_aps_tree,
    math_shepherd,
    openr,
    prm800k,
    table,
    trl,
)
from ttsframe.readers.step_formats.nodes import step_paths
from ttsframe.readers.step_formats.reading import canonical
from ttsframe.readers.step_formats.step_format import (
    STEP_COLUMNS,
    Labels,
    StepFormat,
    StepFormatName,
)
from ttsframe.readers.step_formats.writing import ordered, refuse_beyond_json
from ttsframe.readers.trajectories import plan_table

__all__ = [
    "STEP_COLUMNS",
    "STEP_FORMATS",
    "StepFormatName",
    "read_steps",
    "scan_steps",
    "step_paths",
    "write_steps",
]

Format: TypeAlias = Literal["auto"] | StepFormatName

STEP_FORMATS: Final[Mapping[StepFormatName, StepFormat]] = MappingProxyType({
    "math_shepherd": math_shepherd.FORMAT,
    "math_aps": math_aps.FORMAT,
    "math_aps_tree": math_aps_tree.FORMAT,
    "prm800k": prm800k.FORMAT,
    "openr": openr.FORMAT,
    "trl": trl.FORMAT,
    "table": table.FORMAT,
})
"""The formats, by the name that ``format`` takes; the first one that recognises a file reads it."""

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
    """Scan labelled steps, in whatever format a tool wrote them, as one lazy row per step.

    The format is recognised by content, never by file name, and files are looked through once at the
    call, as `scan_trajectories` does.

    Parameters
    ----------
    source
        Path of a file or folder, a glob, or a sequence of these, all in one format. JSON may be
        compressed (gzip, bzip2, zstd).
    format
        Key of `STEP_FORMATS`, or ``"auto"``.
    rename
        The file's column names to the names that the format expects, such as
        ``{"steps": "completions"}``; applied before the format is recognised.
    on_error
        ``"raise"`` stops at the first row that cannot be read. ``"skip"`` leaves such rows out and
        says how many in a `SkippedRowsWarning`; to count them, the source is read through at the call.

    Returns
    -------
    pl.LazyFrame
        The table `steps`: ``problem_id`` (the source's own, else 16 hex digits of a BLAKE2b hash of the
        problem's text; for MATH-APS always that, since its ids repeat), ``solution_id`` (String, the source's own, else
        such a hash of the texts of its steps; of equal solutions to a problem the second has ``-2`` behind it), ``step``
        (Int64; -1 is the problem before any step, which MATH-APS has a value for, and which stands
        alone for a solution without steps), then of ``node`` and ``parent`` (Int64, MATH-APS), ``alternative``
        (Int64) and ``is_on_path`` (Boolean, PRM800K), ``problem``, ``gold``, ``text`` (of this step alone), ``is_correct``
        (Boolean, null where there is no label), ``rating`` (Int8, -1, 0 or 1) and ``soft`` (Float64) what
        the source has, then its other columns, those of a solution repeated for each step, and
        ``source_file`` when several files were read.

    Raises
    ------
    SourceError
        At the call, when a file is missing, empty, in no known format, of another format than the
        rest, or malformed; at collection, naming file and line, when a row breaks the rules of its
        format, such as labels that do not match the steps.
    ColumnsError
        At the call, when a column's type cannot be used or ``rename`` does not fit.
    ParameterError
        At the call, when ``format`` or ``on_error`` is none of the choices.

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
    readers = {str(name): one.reader for name, one in STEP_FORMATS.items()}
    frame, _, said = plan_table(
        source, readers, format=format, rename=rename, on_error=on_error, row="step"
    )
    for warning in said:
        warnings.warn(warning, stacklevel=2)
    return canonical(frame)


def read_steps(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
) -> pl.DataFrame:
    """Read labelled steps, in whatever format a tool wrote them, as one row per step.

    The same as `scan_steps`, collected: for what fits in memory.

    Parameters
    ----------
    source
        Path of a file or folder, a glob, or a sequence of these.
    format
        Key of `STEP_FORMATS`, or ``"auto"``.
    rename
        The file's column names to the names that the format expects.
    on_error
        ``"raise"``, or ``"skip"`` to leave rows out that cannot be read, and count them in a warning.

    Returns
    -------
    pl.DataFrame
        The table `steps`; see `scan_steps`.

    Raises
    ------
    SourceError
        When a file is missing, empty, in no known format, or holds a row that cannot be read.
    ColumnsError
        When a column's type cannot be used or ``rename`` does not fit.
    ParameterError
        When ``format`` or ``on_error`` is none of the choices.

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
    return scan_steps(source, format=format, rename=rename, on_error=on_error).collect()


def write_steps(
    steps: pl.DataFrame | pl.LazyFrame,
    target: str | os.PathLike[str],
    *,
    format: StepFormatName,  # noqa: A002 - the word users know
    neutral: bool | None = None,
    threshold: float | None = None,
) -> None:
    """Write labelled steps in the format of another tool, or as ttsframe's own table.

    What a format cannot hold is an error, never left out: drop a column by name to leave it out.
    Columns with one value for all steps of a solution become further keys of its row. The file appears
    whole or not at all.

    Parameters
    ----------
    steps
        Table of steps, as `read_steps` makes it; a LazyFrame is collected. Solutions are written in the
        order in which they first appear, steps by their number, whatever the order of the rows.
    target
        File to write, replaced if it exists. For the format ``"table"`` the suffix says how: ``.parquet``,
        ``.arrow`` or ``.jsonl``; any other format is JSON lines.
    format
        Key of `STEP_FORMATS`.
    neutral
        What ``rating`` 0 counts as, for formats that know right and wrong alone; OpenR counts it as right.
    threshold
        ``soft`` values above it count as right, for formats of labels, in [0, 1]; OpenR takes 0.5. The
        values themselves are left out then.

    Raises
    ------
    DataError
        When a step cannot be represented: it names problem, solution and step. So it is with a text
        that holds what ends a step, a missing label, steps that are not numbered 0, 1, 2, and labels
        that contradict one another.
    ColumnsError
        When a column is missing, or holds what the format has no place for.
    ParameterError
        When ``format`` is none of the choices, a suffix stands for nothing, or ``neutral`` or ``threshold``
        is given for a format that needs none.
    ParameterTypeError
        When ``steps`` is not a Polars frame, or ``neutral`` not a bool.
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
    ...     tts.write_steps(steps.drop("problem_id", "solution_id").with_columns(
    ...         problem_id=pl.lit("p"), solution_id=pl.lit("s")), path, format="trl", threshold=0.5)
    ...     tts.read_steps(path).select("problem_id", "step", "is_correct").rows()
    [('p', 0, True), ('p', 1, False)]
    """
    check_frame(steps, "steps")
    check_choice(format, "format", STEP_FORMATS)
    chosen = STEP_FORMATS[format]
    given = {"neutral": neutral, "threshold": threshold}
    for name, value in given.items():
        if value is not None and name not in chosen.takes:
            why = "holds neutral ratings" if format == "prm800k" else "holds values as they are"
            raise ParameterError(f"{found(name, value)}, but format {format!r} {why}.")
    if neutral is not None and not isinstance(neutral, bool):
        raise ParameterTypeError(f"neutral is a {type(neutral).__name__}, must be a bool.")
    if threshold is not None:
        check_between(threshold, "threshold", 0.0, 1.0)
    path = Path(target)
    write = _TABLES.get(path.suffix.lower())
    if chosen.to_lines is None and write is None:
        raise ParameterError(
            f"target == {str(path)!r}, must end in {', '.join(_TABLES)}, which says how format 'table' is "
            f"written."
        )
    frame = steps.lazy().collect()
    if chosen.to_lines is not None or path.suffix.lower() == ".jsonl":
        refuse_beyond_json(frame)
    if chosen.to_lines is None:
        ordered(frame, [])
    else:
        lines = chosen.to_lines(frame, Labels(neutral, threshold))
    with replacing(path) as temporary:
        if chosen.to_lines is not None:
            lines.to_frame().write_csv(temporary, include_header=False, quote_style="never")
        elif write is not None:
            write(frame, temporary)
