"""Write trajectories in the formats of other tools."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe._checks import check_choice, check_frame
from ttsframe._files import replacing
from ttsframe.errors import LostColumnsWarning, ParameterError
from ttsframe.readers.trajectory_writers import (
    every_eval_ever,
    lm_eval,
    parquet,
    search_and_learn,
)
from ttsframe.readers.trajectory_writers.writer import Writer

__all__ = ["WRITERS", "write_trajectories"]

WritableFormat: TypeAlias = Literal[
    "long_form", "datasets", "search_and_learn", "lm_eval", "every_eval_ever"
]

WRITERS: Final[Mapping[str, Writer]] = MappingProxyType({
    "long_form": parquet.LONG_FORM,
    "datasets": parquet.DATASETS,
    "search_and_learn": search_and_learn.WRITER,
    "lm_eval": lm_eval.WRITER,
    "every_eval_ever": every_eval_ever.WRITER,
})
"""The formats that `write_trajectories` writes, by name."""


def write_trajectories(
    trajectories: pl.DataFrame | pl.LazyFrame,
    target: str | os.PathLike[str],
    *,
    format: WritableFormat = "long_form",  # noqa: A002 - the word users know
) -> None:
    """Write a run in the format of another tool, or as Parquet that holds everything.

    The file is written completely or not at all. Columns that the format cannot hold are left out and
    named in a `LostColumnsWarning`; the others come back equal from `read_trajectories`.

    Parameters
    ----------
    trajectories
        A `trajectories` table. A LazyFrame is streamed into Parquet and collected for JSON lines.
    target
        File to write; an existing file is replaced. JSON lines end in `.jsonl`, Parquet in `.parquet`.
    format
        A key of `WRITERS`:

        - `"long_form"`: Parquet, one row per attempt. The key `ttsframe` of its metadata is JSON
          with the version, the meaning of the columns and the source files.
        - `"datasets"`: the same rows, with the features that `datasets.load_dataset("parquet", ...)`
          reads.
        - `"search_and_learn"`: JSON lines, one row per problem, with `completions` and `scores`.
        - `"lm_eval"`: JSON lines as in `samples_*.jsonl`, one row per problem, all attempts in `resps`;
          other columns of the problem go into `doc`, where they are when it is read.
        - `"every_eval_ever"`: JSON lines, one instance per attempt, all of them graded.

        Formats in JSON lines hold one run, without NaN.

    Raises
    ------
    ColumnsError
        When a column is missing that the format needs.
    DataError
        When the rows are of several runs, or a value has no place in the format.
    ParameterError
        When the format is unknown, or the suffix of the file is that of another one.
    SourceError
        When the file cannot be written.

    Warns
    -----
    LostColumnsWarning
        When the format does not hold all columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["p", "p"],
    ...     "attempt": [0, 1],
    ...     "problem": "6 x 7?",
    ...     "completion": ["42", "48"],
    ...     "gold": "42",
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.jsonl")
    ...     tts.write_trajectories(run, path, format="search_and_learn")
    ...     tts.read_trajectories(path).select("problem_id", "attempt", "completion", "gold").rows()
    [('p', 0, '42', '42'), ('p', 1, '48', '42')]
    """
    check_frame(trajectories, "trajectories", takes_any_dtype=True)
    check_choice(format, "format", WRITERS)
    writer = WRITERS[format]
    path = Path(target)
    if path.suffix.lower() != writer.suffix:
        raise ParameterError(
            f"{path}: format {format!r} writes {writer.suffix}. Hint: {path.with_suffix(writer.suffix).name}."
        )
    with replacing(path) as temporary:
        lost = writer.write(trajectories.lazy(), temporary)
    if lost:
        listed = ", ".join(map(repr, sorted(set(lost))))
        message = f"{path}: format {format!r} does not hold {listed}. Hint: format 'long_form' holds all columns."
        warnings.warn(LostColumnsWarning(message), stacklevel=2)
