"""Curation: the attempts of a run that are worth training on."""

from __future__ import annotations

import math

import polars as pl

from ttsframe._checks import check_frame, check_names, check_positive
from ttsframe._exprs import raise_where, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns, require_kind

__all__ = ["best_trajectories"]


def best_trajectories(
    trajectories: FrameT,
    /,
    *,
    n_per_problem: int,
    min_score: float | None = None,
    only_correct: bool = False,
    distinct: ColumnNames = (),
    by: ColumnNames = (),
) -> FrameT:
    """Keep the highest-scored attempts at each problem, for example for a training set.

    Used for rejection sampling and expert iteration: keeps the attempts that the verifier scores
    highest, or that are correct, with a limit per problem.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `score` (higher is better).
    n_per_problem
        Largest number of attempts to keep per problem, at least 1.
    min_score
        Smallest score that is kept; None keeps any.
    only_correct
        Keep only attempts with a true `is_correct`; ungraded ones are not kept.
    distinct
        Columns whose equal values are kept once per problem, from the best such attempt:
        "completion", or "answer_key" for one attempt per answer. Nulls are never equal.
    by
        Columns that tell runs, models or seeds apart; each gets its own attempts.

    Returns
    -------
    FrameT
        The rows kept, with all columns, sorted by (by, `problem_id`), then by falling `score` and
        rising `attempt`. Attempts without a score (null or NaN) are never kept. Attempt numbers do
        not change; `renumber_attempts` closes the gaps.

    Raises
    ------
    ColumnsError
        At once, if a column is missing, or `score` or `is_correct` has an unusable dtype.
    ParameterTypeError
        At once, if `n_per_problem` is not an int.
    ParameterError
        At once, if `n_per_problem` is below 1 or `min_score` is NaN.
    DataError
        On collection, if a scored attempt appears twice: `by` does not name the column that tells
        runs apart.

    References
    ----------
    Yuan et al., "Scaling Relationship on Learning Mathematical Reasoning with Large Language
    Models", arXiv:2308.01825, section 3.3, on keeping distinct correct attempts.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a", "a", "a", "b"],
    ...     "attempt": [0, 1, 2, 0],
    ...     "completion": ["so 2", "so 3", "thus 2", "no idea"],
    ...     "score": [0.5, 0.75, 0.5, None],
    ... })
    >>> tts.votes.best_trajectories(trajectories, n_per_problem=2)
    shape: (2, 4)
    ┌────────────┬─────────┬────────────┬───────┐
    │ problem_id ┆ attempt ┆ completion ┆ score │
    │ ---        ┆ ---     ┆ ---        ┆ ---   │
    │ str        ┆ i64     ┆ str        ┆ f64   │
    ╞════════════╪═════════╪════════════╪═══════╡
    │ a          ┆ 1       ┆ so 3       ┆ 0.75  │
    │ a          ┆ 0       ┆ so 2       ┆ 0.5   │
    └────────────┴─────────┴────────────┴───────┘
    """
    check_frame(trajectories, "trajectories")
    check_positive(n_per_problem, "n_per_problem")
    if min_score is not None and math.isnan(min_score):
        raise ParameterError("min_score == nan, must be a number or None.")
    keys: list[str] = [*check_names(by, "by"), "problem_id"]
    compared: tuple[str, ...] = check_names(distinct, "distinct")
    grades: list[str] = ["is_correct"] if only_correct else []
    schema: pl.Schema = require_columns(
        trajectories, [*keys, "attempt", "score", *grades, *compared]
    )
    require_kind(schema, "a number", "score")
    if only_correct:
        require_kind(schema, "Boolean", "is_correct")
    score = pl.col("score").cast(pl.Float64).fill_nan(None)
    is_kept = score.is_not_null()
    if min_score is not None:
        is_kept &= score >= min_score
    if only_correct:
        is_kept &= pl.col("is_correct").cast(pl.Boolean).fill_null(value=False)
    order = [-score, pl.col("attempt")]
    position = pl.int_range(pl.len())
    n_rows, n_attempts = pl.len().over(keys), pl.col("attempt").n_unique().over(keys)
    described = pl.struct(
        (n_attempts < n_rows).alias("broken"),
        n_rows.alias("n_rows"),
        n_attempts.alias("n_attempts"),
        *to_safe(safe_names(keys)),
    )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        best = lazy.filter(is_kept).filter(
            raise_where(described, lambda rows: _repeated(rows, keys))
        )
        if compared:
            is_compared = pl.all_horizontal(pl.col(compared).is_not_null())
            is_first = position.over([*keys, *compared], order_by=order) == 0
            best = best.filter(~is_compared | is_first)
        return best.filter(position.over(keys, order_by=order) < n_per_problem).sort(*keys, *order)

    return run_plan(trajectories, plan)


def _repeated(rows: pl.DataFrame, keys: list[str]) -> DataError:
    """Describe the first problem in which an attempt appears twice."""
    names = safe_names(keys)
    row = rows.sort(*names).row(0, named=True)
    problem = ", ".join(f"{name} {row[key]!r}" for key, name in names.items())
    return DataError(
        f"{problem}: {row['n_rows']} rows with {row['n_attempts']} different attempts. Hint: name "
        "the column that tells runs, models or seeds apart in by=(...)."
    )
