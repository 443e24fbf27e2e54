"""The columns of the tables: what they mean, their dtypes, and the check that they are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe.errors import ColumnsError

__all__ = ["TRAJECTORY_COLUMNS", "Column", "require_columns"]


class Column(NamedTuple):
    """One column of a table: its canonical dtype and its meaning."""

    dtype: pl.DataType
    meaning: str


TRAJECTORY_COLUMNS: Final[dict[str, Column]] = {
    "problem_id": Column(pl.String(), "the source's own id, else a hash of the problem's text"),
    "attempt": Column(pl.UInt32(), "0..n-1 within (by, problem_id), in the order sampled"),
    "problem": Column(pl.String(), "text of the problem"),
    "completion": Column(pl.String(), "text that the model wrote"),
    "solution": Column(pl.String(), "reference solution, which may hide the gold answer"),
    "step_scores": Column(pl.List(pl.Float64()), "PRM score after each step, in order"),
    "answer": Column(pl.String(), "extracted final answer; null = none found"),
    "answer_key": Column(pl.String(), "canonical key: equal keys = equivalent answers"),
    "gold": Column(pl.String(), "reference answer"),
    "gold_key": Column(pl.String(), "canonical key of the reference answer"),
    "is_correct": Column(pl.Boolean(), "graded; null only where nothing can be graded"),
    "score": Column(pl.Float64(), "one score for the whole attempt; higher is better"),
    "n_tokens": Column(pl.Int64(), "generated tokens"),
    "is_exchangeable": Column(pl.Boolean(), "attempts are independent samples"),
    "source_file": Column(pl.String(), "where it came from, when several files were read"),
}
"""The columns of `trajectories` that have a meaning; any other column passes through untouched."""

_HINTS: Final[dict[str, str]] = {
    "problem_id": "ttsframe convert, or tts.read_trajectories(..., rename={'yours': 'problem_id'}).",
    "attempt": "tts.renumber_attempts(frame) numbers the attempts of a problem in row order.",
    "answer_key": "tts.score_trajectories(trajectories) adds answer, answer_key, is_correct and score.",
    "is_correct": "tts.score_trajectories(trajectories) grades against the column 'gold'.",
    "score": "tts.score_trajectories(trajectories, reduction=...) reduces 'step_scores' to 'score'.",
    "step_scores": "name reductions=None to use the column 'score', or read a run that has step scores.",
}


def require_columns(
    frame: pl.DataFrame | pl.LazyFrame,
    names: Sequence[str],
    *,
    where: str = "trajectories",
    hint: str | None = None,
) -> pl.Schema:
    """Check that a frame has the columns that a function reads.

    Parameters
    ----------
    frame
        Table to look at; a LazyFrame's schema is resolved, its rows are not.
    names
        Columns that must be there.
    where
        What the frame is, for the message.
    hint
        Way out, for the message; by default one for the first missing column.

    Returns
    -------
    pl.Schema
        Schema of the frame.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    """
    schema = frame.collect_schema()
    missing = [name for name in names if name not in schema]
    if missing:
        way_out = hint or _HINTS.get(missing[0], "rename your column with frame.rename({...}).")
        raise ColumnsError.missing(missing, schema.names(), where=where, hint=way_out)
    return schema
