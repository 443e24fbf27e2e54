"""The expression namespace `tts`: functions on one column as methods, for interactive work.

Type checkers do not see namespaces, so the functions are the API.
"""

from __future__ import annotations

from importlib import import_module
from types import MethodType

import polars as pl


class _Method:
    """The function of its own name as a method; the module of the function loads on first use."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, expressions: TtsExpressions | None, _: type) -> object:
        function = getattr(import_module(f"ttsframe.{self._module}"), self._name)
        if expressions is None:
            return function
        return MethodType(function, expressions._expr)  # noqa: SLF001 (the class below)


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

    extract_answer = _Method("answers")
    normalize_answer = _Method("answers")
    answer_key = _Method("answers")
    gold_key = _Method("answers")
    answer_kind = _Method("answers")
    is_equivalent = _Method("answers")
    is_same_key = _Method("answers")

    step_last = _Method("steps")
    step_min = _Method("steps")
    step_mean = _Method("steps")
    step_prod = _Method("steps")
    step_max = _Method("steps")
    step_sum = _Method("steps")
    step_first = _Method("steps")
    step_geometric_mean = _Method("steps")
    first_error = _Method("verifier")

    pass_at_k = _Method("estimators")
    pass_hat_k = _Method("estimators")
    g_pass_at_k = _Method("estimators")
    mean_g_pass_at_k = _Method("estimators")
    best_of_k = _Method("estimators")

    standard_error = _Method("statistics")
    bootstrap_interval = _Method("statistics")
