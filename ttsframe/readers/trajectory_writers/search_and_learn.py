"""search-and-learn: a row per problem with lists of completions and step scores.

What the format cannot say is left out and named: extracted answers and grades of attempts, gaps in their
numbers, and whether attempts are exchangeable, unless they come from a tree search without token counts.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ttsframe.errors import ColumnsError, DataError
from ttsframe.readers.trajectory_writers.writer import (
    Writer,
    group_problems,
    holds_numbers,
    one_run,
    write_lines,
)
from ttsframe.schema import require_columns

_LISTS = {
    "completion": "completions",
    "step_scores": "scores",
    "agg_scores": "agg_scores",
    "n_tokens": "completion_tokens",
}
_TEXTS = {"problem": "problem", "gold": "answer", "solution": "solution"}
_TAKEN = ("answer", "completions", "scores", "completion_tokens")


def _write(attempts: pl.LazyFrame, path: Path) -> list[str]:
    require_columns(
        attempts,
        ["problem", "completion"],
        hint="the format identifies problems by their texts; format='long_form' needs none.",
    )
    rows = one_run(attempts)
    lost = [name for name in _TAKEN if name in rows.columns]
    if not holds_numbers(rows):
        lost.append("attempt")
    if "n_tokens" in rows.columns or "is_exchangeable" in rows.columns:
        rows, more = _encode_tokens(rows)
        lost += more
    if rows["problem"].null_count():
        raise ColumnsError(
            "trajectories: 'problem' is null in some rows, must be the problem's text."
        )
    lists = [name for name in _LISTS if name in rows.columns]
    problems = group_problems(rows, lists, ("attempt", *_TAKEN))
    for name in _TEXTS:
        if name in problems.lost:
            raise DataError(
                f"trajectories: {name!r} differs within a problem. Hint: tts.validate_trajectories names it."
            )
    frame = problems.frame.rename(_LISTS | _TEXTS, strict=False)
    write_lines(frame, path)
    return [*lost, *problems.lost]


def _encode_tokens(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Say by the token counts that attempts come from a tree, as the tool does: all are 0."""
    lost = []
    columns = rows.columns
    n = pl.col("n_tokens") if "n_tokens" in columns else pl.lit(None, pl.Int64)
    flag = pl.col("is_exchangeable") if "is_exchangeable" in columns else pl.lit(None, pl.Boolean)
    found = rows.select(
        of_tree=((flag == False) & n.is_null()).all().over("problem_id"),  # noqa: E712
        is_unknown=flag.is_null().all().over("problem_id"),
        is_counted=((n > 0).any() | n.is_null().all()).over("problem_id"),
    )
    if not (found["of_tree"] | found["is_unknown"]).fill_null(value=False).all():
        lost.append("is_exchangeable")
        found = found.with_columns(of_tree=pl.lit(value=False))
    if not found["is_counted"].all():
        lost.append("n_tokens")
        rows = rows.with_columns(n_tokens=pl.lit(None, pl.Int64))
    coded = rows.hstack([found["of_tree"].fill_null(value=False).alias("__of_tree")]).with_columns(
        n_tokens=pl
        .when("__of_tree")
        .then(0)
        .otherwise(pl.col("n_tokens") if "n_tokens" in columns else None)
        .cast(pl.Int64)
    )
    return coded.drop("__of_tree", "is_exchangeable", strict=False), lost


WRITER = Writer("search-and-learn: a row per problem (JSON lines)", _write, ".jsonl")
