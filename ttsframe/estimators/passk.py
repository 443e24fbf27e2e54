"""pass@k and pass^k: any or all of k attempts correct, as aggregating expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_draws, check_positive
from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import IntoExprColumn
from ttsframe.errors import ParameterError

__all__ = ["closed_form_passatk", "pass_at_k", "pass_hat_k"]

NBelowK: TypeAlias = Literal["null", "any_correct"]


def pass_at_k(is_correct: IntoExprColumn, k: int | Sequence[int]) -> pl.Expr:
    r"""Estimate the chance that at least one of k attempts at a problem is correct.

    Without bias, from all n attempts of the problem: the share of the subsets of k of them that
    hold a correct one. Fewer than k attempts say nothing about k, so the result is null there, not
    1 as in many tools.

    Parameters
    ----------
    is_correct
        Boolean column, one row per attempt, or the same as numbers 0 and 1; attempts with a null
        are left out of n. Graded values between 0 and 1 count as that part of a correct attempt.
    k
        Number of attempts drawn, at least 1, or several such numbers.

    Returns
    -------
    pl.Expr
        Aggregating expression, one value per group, in [0, 1], named as the input. For an int k
        Float64, null where n < k; for a sequence a Struct with one such field per k, named
        ``pass@1``, ``pass@8``.

    Raises
    ------
    ParameterTypeError
        At once, when k is neither an int nor a sequence of them, or the column is no column.
    ParameterError
        At once, when a k is below 1 or there is none.

    Notes
    -----
    With c correct ones among n attempts,

    .. math::

        \mathrm{pass@}k = 1 - \frac{\binom{n-c}{k}}{\binom{n}{k}}
        = 1 - \prod_{i=0}^{k-1} \frac{n - c - i}{n - i}

    The product has no large numbers in it: within 1e-12 for n up to 100,000, and all k come from
    one cumulative product.

    References
    ----------
    Chen et al. (2021), Evaluating Large Language Models Trained on Code, arXiv:2107.03374,
    equation 1.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({
    ...     "problem_id": ["a"] * 4 + ["b"] * 2,
    ...     "is_correct": [True, True, False, False, True, None],
    ... })
    >>> by_problem = frame.group_by("problem_id", maintain_order=True)
    >>> by_problem.agg(tts.pass_at_k("is_correct", k=2).round(4)).rows()
    [('a', 0.8333), ('b', None)]
    >>> by_problem.agg(tts.pass_at_k("is_correct", k=[1, 2])).unnest("is_correct").columns
    ['problem_id', 'pass@1', 'pass@2']
    """
    source = into_expr(is_correct, "is_correct")
    n_correct = source.cast(pl.Float64).sum()
    return keep_name(_of_all_draws(source, k, n_correct, "pass@", lambda none: 1.0 - none), source)


def pass_hat_k(is_correct: IntoExprColumn, k: int | Sequence[int]) -> pl.Expr:
    r"""Estimate the chance that all of k attempts at a problem are correct.

    pass@k says what a problem's best attempt can do, pass^k how far every attempt can be relied on:
    it falls with k. Without bias, unlike the plug-in form (c/n)^k, which is too high.

    Parameters
    ----------
    is_correct
        Boolean column, one row per attempt, or the same as numbers 0 and 1; attempts with a null
        are left out of n. Graded values between 0 and 1 count as that part of a correct attempt.
    k
        Number of attempts drawn, at least 1, or several such numbers.

    Returns
    -------
    pl.Expr
        Aggregating expression, one value per group, in [0, 1], named as the input. For an int k
        Float64, null where n < k; for a sequence a Struct with one such field per k, named
        ``pass^1``, ``pass^8``.

    Raises
    ------
    ParameterTypeError
        At once, when k is neither an int nor a sequence of them, or the column is no column.
    ParameterError
        At once, when a k is below 1 or there is none.

    Notes
    -----
    With c correct ones among n attempts,

    .. math::

        \mathrm{pass}\hat{\ }k = \binom{c}{k} \Big/ \binom{n}{k}
        = \prod_{i=0}^{k-1} \frac{c - i}{n - i}

    References
    ----------
    Yao et al. (2024), tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains,
    arXiv:2406.12045, section 4.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"is_correct": [True, True, True, False]})
    >>> frame.select(tts.pass_hat_k("is_correct", k=2)).item()
    0.5
    """
    source = into_expr(is_correct, "is_correct")
    n_wrong = source.count() - source.cast(pl.Float64).sum()
    return keep_name(_of_all_draws(source, k, n_wrong, "pass^", lambda none: none), source)


def closed_form_passatk(n: int, c: int, k: int, *, n_below_k: NBelowK = "null") -> float | None:
    r"""Give pass@k of one problem from its counts.

    The scalar that `pass_at_k` computes for columns, in exact integer arithmetic rounded once.

    Parameters
    ----------
    n
        Number of attempts, at least 0.
    c
        Number of correct ones among them, in [0, n].
    k
        Number of attempts drawn, at least 1.
    n_below_k
        What to give where n < k: ``"null"`` gives None, ``"any_correct"`` 1 where c > 0 and else
        0, the convention of eval-framework.

    Returns
    -------
    float or None
        The probability, in [0, 1]; None where n < k, unless ``n_below_k`` says otherwise.

    Raises
    ------
    ParameterTypeError
        When k is not an int.
    ParameterError
        When k is below 1, c is not in [0, n], or ``n_below_k`` is not one of its choices.

    Notes
    -----
    .. math:: 1 - \binom{n-c}{k} \Big/ \binom{n}{k}

    References
    ----------
    Chen et al. (2021), Evaluating Large Language Models Trained on Code, arXiv:2107.03374,
    equation 1.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.closed_form_passatk(4, 1, 2)
    0.5
    >>> tts.closed_form_passatk(4, 1, 5) is None
    True
    >>> tts.closed_form_passatk(4, 1, 5, n_below_k="any_correct")
    1.0
    """
    check_positive(k, "k")
    check_choice(n_below_k, "n_below_k", get_args(NBelowK))
    if not 0 <= c <= n:
        raise ParameterError(f"c == {c}, must be between 0 and n == {n}.")
    if n < k:
        return None if n_below_k == "null" else float(c > 0)
    # C(n-c, k) / C(n, k) == C(n-k, c) / C(n, c): the form with the smaller integers.
    few, many = sorted((c, k))
    subsets = math.comb(n, few)
    return (subsets - math.comb(n - many, few)) / subsets


def _of_all_draws(
    source: pl.Expr,
    k: int | Sequence[int],
    n_marked: pl.Expr,
    prefix: str,
    estimate: Callable[[pl.Expr], pl.Expr],
) -> pl.Expr:
    """Estimate from the chance that k draws hold none of the marked attempts, for each k."""
    draws = check_draws(k)
    n = source.count().cast(pl.Int64)
    remaining = pl.int_ranges(n, pl.max_horizontal(n - max(draws), 0), -1)
    none = ((remaining - n_marked) / remaining).list.eval(
        pl.element().clip(lower_bound=0.0).cum_prod()
    )
    estimates = estimate(none).list.gather([draw - 1 for draw in draws], null_on_oob=True)
    if isinstance(k, Sequence):
        return estimates.list.to_struct(fields=[f"{prefix}{draw}" for draw in draws])
    return estimates.list.first()
