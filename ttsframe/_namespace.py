"""The expression namespace `tts`: the functions on one column, as methods.

Type checkers do not see namespaces, so the functions are the API; these methods are for
interactive work.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ttsframe._typing import AnswerStyle, IntoExprColumn
from ttsframe.answers import (
    AnswerPolicy,
    answer_key,
    answer_kind,
    extract_answer,
    gold_key,
    is_equivalent,
    is_same_key,
    normalize_answer,
)
from ttsframe.answers.lookup.table import KeyMethod
from ttsframe.estimators.bestofk import best_of_k
from ttsframe.estimators.gpassk import g_pass_at_k, mean_g_pass_at_k
from ttsframe.estimators.passk import pass_at_k, pass_hat_k
from ttsframe.statistics.resampling import BootstrapMethod
from ttsframe.statistics.uncertainty import bootstrap_interval, standard_error
from ttsframe.steps import (
    step_first,
    step_geometric_mean,
    step_last,
    step_max,
    step_mean,
    step_min,
    step_prod,
    step_sum,
)
from ttsframe.verifier import first_error


@pl.api.register_expr_namespace("tts")
class TtsExpressions:
    """Functions of ttsframe on one column, as ``pl.col("step_scores").tts.step_last()``.

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

    def extract_answer(self, *, style: AnswerStyle = "auto") -> pl.Expr:
        """See `ttsframe.extract_answer`."""
        return extract_answer(self._expr, style=style)

    def normalize_answer(self) -> pl.Expr:
        """See `ttsframe.normalize_answer`."""
        return normalize_answer(self._expr)

    def answer_key(
        self,
        *,
        policy: AnswerPolicy | None = None,
        method: KeyMethod = "auto",
    ) -> pl.Expr:
        """See `ttsframe.answer_key`."""
        return answer_key(self._expr, policy=policy, method=method)

    def gold_key(
        self,
        *,
        policy: AnswerPolicy | None = None,
        method: KeyMethod = "auto",
    ) -> pl.Expr:
        """See `ttsframe.gold_key`."""
        return gold_key(self._expr, policy=policy, method=method)

    def answer_kind(
        self,
        *,
        policy: AnswerPolicy | None = None,
        method: KeyMethod = "auto",
    ) -> pl.Expr:
        """See `ttsframe.answers.answer_kind`."""
        return answer_kind(self._expr, policy=policy, method=method)

    def is_equivalent(
        self,
        gold: IntoExprColumn,
        *,
        policy: AnswerPolicy | None = None,
        method: KeyMethod = "auto",
        rel_tol: float | None = None,
        abs_tol: float | None = None,
        options: IntoExprColumn | None = None,
    ) -> pl.Expr:
        """See `ttsframe.is_equivalent`."""
        return is_equivalent(
            self._expr,
            gold,
            policy=policy,
            method=method,
            rel_tol=rel_tol,
            abs_tol=abs_tol,
            options=options,
        )

    def is_same_key(self, gold_key: IntoExprColumn) -> pl.Expr:
        """See `ttsframe.answers.is_same_key`."""
        return is_same_key(self._expr, gold_key)

    def step_last(self) -> pl.Expr:
        """See `ttsframe.step_last`."""
        return step_last(self._expr)

    def step_min(self) -> pl.Expr:
        """See `ttsframe.step_min`."""
        return step_min(self._expr)

    def step_mean(self) -> pl.Expr:
        """See `ttsframe.step_mean`."""
        return step_mean(self._expr)

    def step_prod(self) -> pl.Expr:
        """See `ttsframe.step_prod`."""
        return step_prod(self._expr)

    def step_max(self) -> pl.Expr:
        """See `ttsframe.step_max`."""
        return step_max(self._expr)

    def step_sum(self) -> pl.Expr:
        """See `ttsframe.step_sum`."""
        return step_sum(self._expr)

    def step_first(self) -> pl.Expr:
        """See `ttsframe.step_first`."""
        return step_first(self._expr)

    def step_geometric_mean(self) -> pl.Expr:
        """See `ttsframe.step_geometric_mean`."""
        return step_geometric_mean(self._expr)

    def first_error(self, threshold: float = 0.5) -> pl.Expr:
        """See `ttsframe.verifier.first_error`."""
        return first_error(self._expr, threshold)

    def pass_at_k(self, k: int | Sequence[int]) -> pl.Expr:
        """See `ttsframe.pass_at_k`."""
        return pass_at_k(self._expr, k)

    def pass_hat_k(self, k: int | Sequence[int]) -> pl.Expr:
        """See `ttsframe.pass_hat_k`."""
        return pass_hat_k(self._expr, k)

    def g_pass_at_k(self, k: int | Sequence[int], *, tau: float = 0.5) -> pl.Expr:
        """See `ttsframe.g_pass_at_k`."""
        return g_pass_at_k(self._expr, k, tau=tau)

    def mean_g_pass_at_k(self, k: int | Sequence[int]) -> pl.Expr:
        """See `ttsframe.mean_g_pass_at_k`."""
        return mean_g_pass_at_k(self._expr, k)

    def best_of_k(self, score: IntoExprColumn, k: int | Sequence[int]) -> pl.Expr:
        """See `ttsframe.best_of_k`."""
        return best_of_k(self._expr, score, k)

    def standard_error(self, *, cluster: IntoExprColumn | None = None) -> pl.Expr:
        """See `ttsframe.standard_error`."""
        return standard_error(self._expr, cluster=cluster)

    def bootstrap_interval(
        self,
        *,
        cluster: IntoExprColumn | None = None,
        method: BootstrapMethod = "bca",
        n_resamples: int = 10_000,
        confidence_level: float = 0.95,
        seed: int = 0,
    ) -> pl.Expr:
        """See `ttsframe.bootstrap_interval`."""
        return bootstrap_interval(
            self._expr,
            cluster=cluster,
            method=method,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            seed=seed,
        )
