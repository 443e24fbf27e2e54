"""Best-of-k over all subsets of a problem's attempts, as an aggregating expression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttsframe._checks import check_draws
from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import IntoExprColumn
from ttsframe.estimators.counting import Bools, Floats, Ints, best_of_draws, series_of_draws

__all__ = ["best_of_k"]


def best_of_k(is_correct: IntoExprColumn, score: IntoExprColumn, k: int | Sequence[int]) -> pl.Expr:
    r"""Estimate the accuracy of the best-scored of k attempts at a problem.

    The exact mean over all subsets of k of the problem's n attempts, where a prefix of them is one
    subset and resampling with replacement is biased.

    Parameters
    ----------
    is_correct
        Boolean column, one row per attempt, or numbers, of which the mean is then estimated.
        Attempts with a null are left out of n, as `pass_at_k` does, whatever their score.
    score
        Numeric column, one row per attempt, any range; higher is better. An attempt whose score is
        null or NaN is drawn like the others but never wins; a subset in which all are so counts 0.
        Equal scores win equally often.
    k
        Number of attempts drawn, at least 1, or several such numbers.

    Returns
    -------
    pl.Expr
        Aggregating expression, one value per group, in [0, 1], named as ``is_correct``. For an int
        k Float64, null where n < k and where no graded attempt has a score; for a sequence a Struct
        with one such field per k, named ``best_of@1``, ``best_of@8``.

    Raises
    ------
    ParameterTypeError
        At once, when k is neither an int nor a sequence of them, or a column is no column.
    ParameterError
        At once, when a k is below 1 or there is none.

    Notes
    -----
    With the attempts sorted by falling score, the one of rank r (from 0) wins in

    .. math:: w_r = \binom{n-1-r}{k-1} \Big/ \binom{n}{k}

    of the subsets; tied attempts share the sum of their weights equally. The estimate is the sum of
    the weights of the correct attempts, within 1e-12 for n up to 100,000. A score that ranks every
    correct attempt above every wrong one makes it pass@k.

    The grouped rows are sorted once, whatever the number of k.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({
    ...     "problem_id": ["a"] * 3 + ["b"] * 2,
    ...     "is_correct": [True, False, False, True, False],
    ...     "score": [0.9, 0.5, None, 0.5, 0.5],
    ... })
    >>> best = tts.best_of_k("is_correct", "score", k=2).round(4)
    >>> frame.group_by("problem_id", maintain_order=True).agg(best).rows()
    [('a', 0.6667), ('b', 0.5)]
    >>> several = tts.best_of_k("is_correct", "score", k=[1, 2])
    >>> frame.group_by("problem_id").agg(several).unnest("is_correct").columns
    ['problem_id', 'best_of@1', 'best_of@2']
    """
    draws = check_draws(k)
    fields = [f"best_of@{draw}" for draw in draws] if isinstance(k, Sequence) else None
    source = into_expr(is_correct, "is_correct")
    attempts = pl.struct(
        source.cast(pl.Float64).alias("value"),
        into_expr(score, "score").cast(pl.Float64).alias("score"),
    ).implode()

    def estimate(groups: pl.Series) -> pl.Series:
        return series_of_draws(groups.name, *_estimate(groups, np.array(draws)), fields)

    dtype = pl.Struct(dict.fromkeys(fields, pl.Float64)) if fields else pl.Float64
    # Elementwise on one list per group: called once for all groups, not once for each.
    best = attempts.map_batches(estimate, return_dtype=dtype, is_elementwise=True)
    return keep_name(best, source)


def _estimate(groups: pl.Series, draws: Ints) -> tuple[Floats, Bools]:
    """Return the estimates, (n_k, n_groups), and where there is none."""
    attempts = groups.explode(empty_as_null=False, keep_nulls=False).struct
    value, score = attempts.field("value"), attempts.field("score")
    ends = groups.list.len().cast(pl.Int64).cum_sum().to_numpy()
    if value.null_count():
        is_graded = value.is_not_null()
        n_graded = is_graded.cast(pl.Int64).cum_sum().to_numpy()
        ends = np.concatenate(([0], n_graded))[ends]
        value, score = value.filter(is_graded), score.filter(is_graded)
    return best_of_draws(value.to_numpy(), score.to_numpy(), ends, draws)
