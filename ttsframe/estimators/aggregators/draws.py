"""Aggregators that estimate what k attempts at a problem hold."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_between, check_choice, check_positive
from ttsframe.estimators.aggregators.protocol import PerProblem, nan_where_any_is, of_attempts
from ttsframe.estimators.gpassk import g_pass_at_k
from ttsframe.estimators.passk import NBelowK, pass_at_k, pass_hat_k

NullOrZero: TypeAlias = Literal["null", "zero"]


@dataclass(frozen=True)
class PassAtK(PerProblem):
    """Estimate pass@k of each problem without bias, as `pass_at_k`.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1.
    n_below_k
        What to give a problem with n < k attempts: ``"null"``, or by ``"any_correct"`` 1 where one
        of the n is correct and else 0, the convention of eval-framework, which mixes different k
        under one name.

    Raises
    ------
    ParameterTypeError
        When k is not an int.
    ParameterError
        When k is below 1, or ``n_below_k`` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 0, 0, 0, 1]})
    >>> tts.PassAtK(k=2)(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 0.5), ('b', None)]
    """

    k: int = 1
    _: KW_ONLY
    n_below_k: NBelowK = "null"

    def __post_init__(self) -> None:
        check_positive(self.k, "k")
        check_choice(self.n_below_k, "n_below_k", get_args(NBelowK))

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            Such as ``"Pass@8"``.
        """
        return f"Pass@{self.k}"

    def _value(self) -> pl.Expr:
        value = pass_at_k("value", self.k)
        if self.n_below_k == "any_correct":
            value = pl.coalesce(value, (of_attempts() > 0).any())
        return value.cast(pl.Float64)


@dataclass(frozen=True)
class PassHatK(PerProblem):
    """Estimate pass^k of each problem without bias, as `pass_hat_k`.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1, all of which must be correct.
    n_below_k
        What to give a problem with n < k attempts: ``"null"`` or ``"zero"``.

    Raises
    ------
    ParameterTypeError
        When k is not an int.
    ParameterError
        When k is below 1, or ``n_below_k`` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 1, 1, 0, 1]})
    >>> tts.aggregators.PassHatK(k=2)(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 0.5), ('b', None)]
    """

    k: int = 1
    _: KW_ONLY
    n_below_k: NullOrZero = "null"

    def __post_init__(self) -> None:
        _check(self.k, self.n_below_k)

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            Such as ``"Pass^8"``.
        """
        return f"Pass^{self.k}"

    def _value(self) -> pl.Expr:
        return _where_short(pass_hat_k("value", self.k), self.n_below_k)


@dataclass(frozen=True)
class GPassAtK(PerProblem):
    """Estimate G-Pass@k of each problem without bias, as `g_pass_at_k`.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1.
    tau
        Share of them that must be correct, in [0, 1]; at least one must.
    n_below_k
        What to give a problem with n < k attempts: ``"null"``, or ``"zero"``, the convention of
        OpenCompass.

    Raises
    ------
    ParameterTypeError
        When k is not an int.
    ParameterError
        When k is below 1, tau lies outside [0, 1], or ``n_below_k`` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 1, 0, 0, 1]})
    >>> half = tts.aggregators.GPassAtK(k=3, tau=0.5)
    >>> half(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 0.5), ('b', None)]
    """

    k: int = 1
    tau: float = 0.5
    _: KW_ONLY
    n_below_k: NullOrZero = "null"

    def __post_init__(self) -> None:
        _check(self.k, self.n_below_k)
        check_between(self.tau, "tau", 0.0, 1.0)

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            Such as ``"G-Pass@8_0.5"``.
        """
        return f"G-Pass@{self.k}_{self.tau}"

    def _value(self) -> pl.Expr:
        return _where_short(g_pass_at_k("value", self.k, tau=self.tau), self.n_below_k)


@dataclass(frozen=True)
class AtLeastK(PerProblem):
    """Say of each problem whether at least k of its attempts are correct: 1 or 0.

    It counts all n attempts and so rises with n; problems of different n do not compare, and
    `GPassAtK` is what estimates it for a fixed number of draws.

    Parameters
    ----------
    k
        Number of attempts that must be correct, at least 1.
    threshold
        Smallest ``value`` of a correct attempt.
    n_below_k
        What to give a problem with n < k attempts, of which k cannot be correct: ``"null"``, or
        ``"zero"``, the convention of inspect_ai.

    Raises
    ------
    ParameterTypeError
        When k is not an int.
    ParameterError
        When k is below 1, or ``n_below_k`` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 1, 0, 0, 1]})
    >>> tts.aggregators.AtLeastK(k=2)(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 1.0), ('b', None)]
    """

    k: int = 1
    _: KW_ONLY
    threshold: float = 1.0
    n_below_k: NullOrZero = "null"

    def __post_init__(self) -> None:
        _check(self.k, self.n_below_k)

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            Such as ``"AtLeast4"``.
        """
        return f"AtLeast{self.k}"

    def _value(self) -> pl.Expr:
        n_correct = (of_attempts() >= self.threshold).sum()
        is_enough = pl.when(of_attempts().count() >= self.k).then(n_correct >= self.k)
        return nan_where_any_is(_where_short(is_enough.cast(pl.Float64), self.n_below_k))


def _check(k: int, n_below_k: str) -> None:
    """Raise unless the parameters can be."""
    check_positive(k, "k")
    check_choice(n_below_k, "n_below_k", get_args(NullOrZero))


def _where_short(value: pl.Expr, n_below_k: NullOrZero) -> pl.Expr:
    """Return the value, which is null where n < k, by the convention that was named."""
    return value.fill_null(0.0) if n_below_k == "zero" else value
