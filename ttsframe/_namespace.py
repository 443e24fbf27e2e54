"""The expression namespace `tts`: functions on one column as methods, for interactive work.

Type checkers do not see namespaces, so the functions are the API.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

import polars as pl

from ttsframe import answers, estimators, statistics, steps, verifier
from ttsframe._typing import IntoExprColumn

P = ParamSpec("P")


def _method(
    function: Callable[Concatenate[IntoExprColumn, P], pl.Expr],
) -> Callable[Concatenate[TtsExpressions, P], pl.Expr]:
    """Make a method of a function on a column, with its parameters and its docstring."""

    @wraps(function)
    def method(self: TtsExpressions, /, *args: P.args, **kwargs: P.kwargs) -> pl.Expr:
        return function(self._expr, *args, **kwargs)

    return method


@pl.api.register_expr_namespace("tts")
class TtsExpressions:
    """Functions of ttsframe on one column, as `pl.col("step_scores").tts.step_last()`.

    Parameters
    ----------
    expr
        The column.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.5, 0.25]]})
    >>> frame.select(pl.col("step_scores").tts.step_min()).item()
    0.25
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    extract_answer = _method(answers.extract_answer)
    normalize_answer = _method(answers.normalize_answer)
    answer_key = _method(answers.answer_key)
    gold_key = _method(answers.gold_key)
    answer_kind = _method(answers.answer_kind)
    is_equivalent = _method(answers.is_equivalent)
    is_same_key = _method(answers.is_same_key)

    first_error = _method(verifier.first_error)

    pass_at_k = _method(estimators.pass_at_k)
    pass_hat_k = _method(estimators.pass_hat_k)
    g_pass_at_k = _method(estimators.g_pass_at_k)
    mean_g_pass_at_k = _method(estimators.mean_g_pass_at_k)
    best_of_k = _method(estimators.best_of_k)

    standard_error = _method(statistics.standard_error)
    bootstrap_interval = _method(statistics.bootstrap_interval)


for name, reduction in steps.STEP_REDUCTIONS.items():
    setattr(TtsExpressions, f"step_{name}", _method(reduction))
