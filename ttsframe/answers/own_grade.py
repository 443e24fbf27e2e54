"""A grade of the user, in place of comparing answers with the gold answer."""

from __future__ import annotations

import polars as pl

from ttsframe._own import call, describe, failed
from ttsframe._typing import Grader
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError
from ttsframe.schema import require_columns


def grade_expr(grade: Grader) -> pl.Expr:
    """Return the expression of a user's grade."""
    if isinstance(grade, pl.Expr):
        return grade
    if not callable(grade):
        raise ParameterTypeError(
            "grade must be a polars expression, or a function that returns one, got "
            f"{type(grade).__name__}."
        )
    return call(grade, "grade", "grader()")


def name_grade(grade: Grader) -> str:
    """Name a user's grade in a message."""
    return "the expression in grade" if isinstance(grade, pl.Expr) else describe(grade, "grade")


def own_grade(grade: Grader, frame: pl.LazyFrame) -> tuple[pl.Expr, tuple[str, ...]]:
    """Return the expression of a user's grade of the attempts in a frame, and the columns it reads."""
    expr, what = grade_expr(grade), name_grade(grade)
    reads = tuple(dict.fromkeys(expr.meta.root_names()))
    schema = require_columns(frame, reads, where=f"trajectories, which {what} reads")
    hint = "it is computed as in trajectories.select(...)."
    try:
        dtype = frame.select(expr.alias("is_correct")).collect_schema()["is_correct"]
    except pl.exceptions.PolarsError as error:
        raise failed(what, error, hint) from error
    if dtype not in (pl.Boolean, pl.Null):
        raise ColumnsError(
            f"{what} has the dtype {dtype}, must be Boolean: whether an attempt is right. Hint: compare, "
            "as in pl.col('reward') > 0.5; a Python function in it needs return_dtype=pl.Boolean."
        )
    try:
        n_rows = pl.DataFrame(schema=schema).select(expr).height
    except Exception as error:
        raise failed(what, error, f"on no attempts; {hint}") from error
    if n_rows:
        raise ParameterError(
            f"{what} has one value for all attempts, must have one for each. Hint: an aggregation within "
            "a problem ends with .over('problem_id')."
        )
    keys = ("answer_key", "gold_key")
    if schema.keys() >= set(keys):
        is_failure = pl.col("answer_key").is_null() & pl.col("gold_key").is_not_null()
        expr = expr.fill_null(pl.when(is_failure).then(pl.lit(value=False)))
        reads = tuple(dict.fromkeys([*reads, *keys]))
    return expr, reads
