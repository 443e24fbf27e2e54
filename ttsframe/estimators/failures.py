"""Grades of attempts that have neither an answer nor a grade."""

from __future__ import annotations

import polars as pl

from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import IntoExprColumn

__all__ = ["grade_failures"]


def grade_failures(is_correct: IntoExprColumn, answer_key: IntoExprColumn) -> pl.Expr:
    """Grade attempts with neither answer nor grade as wrong, where the problem is graded otherwise.

    Estimators such as `pass_at_k` leave attempts without a grade out of n. A request that failed in a
    run without gold answers (code, proofs) has no grade, and counts there as if it had not been made;
    selectors and `expected_accuracy` count it as wrong. Through this expression the estimators do too.

    Parameters
    ----------
    is_correct
        Boolean column, the grades.
    answer_key
        Column that is null where an attempt has no answer.

    Returns
    -------
    pl.Expr
        Boolean, one value per attempt, named as `is_correct`. False where both columns are null and
        another attempt of the group is graded, else `is_correct`. Use it in the aggregation of a
        problem, or with ``.over("problem_id")``.

    See Also
    --------
    score_trajectories : Grades attempts without an answer where there is a gold answer.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b"],
    ...     "answer_key": ["7", None, None],
    ...     "is_correct": [True, None, None],
    ... })
    >>> by_problem = frame.group_by("problem_id", maintain_order=True)
    >>> grades = tts.grade_failures("is_correct", "answer_key")
    >>> by_problem.agg(tts.pass_at_k(grades, k=1)).rows()
    [('a', 0.5), ('b', None)]
    """
    source = into_expr(is_correct, "is_correct")
    has_neither = source.is_null() & into_expr(answer_key, "answer_key").is_null()
    is_failure = has_neither & source.is_not_null().any()
    grade = pl.when(is_failure).then(pl.lit(value=False)).otherwise(source)
    return keep_name(grade, source)
