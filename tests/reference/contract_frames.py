"""Small frames of attempts, written out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

ATTEMPT_SCHEMA = {
    "answer_key": pl.String,
    "is_correct": pl.Boolean,
    "score": pl.Float64,
}


def one_problem(
    keys: Sequence[str | None],
    *,
    is_correct: Sequence[bool | None] | None = None,
    scores: Sequence[float | None] | None = None,
    problem_id: str = "p",
) -> pl.DataFrame:
    """Return the attempts of one problem, in the order given."""
    columns: dict[str, Any] = {"answer_key": keys}
    if is_correct is not None:
        columns["is_correct"] = is_correct
    if scores is not None:
        columns["score"] = scores
    return pl.DataFrame(
        columns, schema_overrides={name: ATTEMPT_SCHEMA[name] for name in columns}
    ).select(
        pl.lit(problem_id).alias("problem_id"),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("attempt"),
        pl.all(),
    )


def only(frame: pl.DataFrame) -> dict[str, Any]:
    """Return the one row of a frame."""
    assert frame.height == 1, frame
    return frame.row(0, named=True)
