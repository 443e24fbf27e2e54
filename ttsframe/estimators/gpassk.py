"""G-Pass@k: a share of k attempts correct, as aggregating expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_between, check_draws
from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import IntoExprColumn
from ttsframe.errors import DataError
from ttsframe.estimators.counting import Floats, Ints, mean_excess, series_of_draws

__all__ = ["g_pass_at_k", "mean_g_pass_at_k"]

_ROUNDING: Final = 1e-12
"""What rounding may have added to tau * k, as a share of it."""


def g_pass_at_k(is_correct: IntoExprColumn, k: int | Sequence[int], *, tau: float = 0.5) -> pl.Expr:
    r"""Estimate the chance that at least a share tau of k attempts at a problem is correct.

    Between pass@k (one correct attempt suffices, tau near 0) and pass^k (all must be, tau 1).

    Parameters
    ----------
    is_correct
        Boolean column, one row per attempt, or the same as numbers 0 and 1; attempts with a null
        are left out of n.
    k
        Number of attempts drawn, at least 1, or several such numbers.
    tau
        Share of the k attempts that must be correct, in [0, 1]; at least one must.

    Returns
    -------
    pl.Expr
        Aggregating expression, one value per group, in [0, 1], named as the input. For an int k
        Float64, null where n < k; for a sequence a Struct with one such field per k, named
        ``g_pass@1``, ``g_pass@8``.

    Raises
    ------
    ParameterTypeError
        At once, when k is neither an int nor a sequence of them, or the column is no column.
    ParameterError
        At once, when a k is below 1 or there is none, or tau lies outside [0, 1].
    DataError
        When the query runs, where a value is neither 0 nor 1: such values have no count.

    Notes
    -----
    With c correct ones among n attempts and :math:`m = \max(\lceil \tau k \rceil, 1)`,

    .. math::

        \text{G-Pass@}k_\tau = \sum_{j=m}^{\min(c, k)}
        \binom{c}{j} \binom{n-c}{k-j} \Big/ \binom{n}{k}

    A product tau k that rounding put just above a whole number counts as that number: 0.28 of 25
    is 7. Within 1e-12 for n up to 100,000.

    References
    ----------
    Liu et al. (2024), Are Your LLMs Capable of Stable Reasoning?, arXiv:2412.13147, equation 3.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"is_correct": [True, True, True, False]})
    >>> frame.select(tts.g_pass_at_k("is_correct", k=[1, 2, 4], tau=0.75)).item()
    {'g_pass@1': 0.75, 'g_pass@2': 0.5, 'g_pass@4': 1.0}
    """
    share = check_between(tau, "tau", 0.0, 1.0) * (1.0 - _ROUNDING)

    def chance(n: Ints, c: Ints, k: Ints) -> Floats:
        least = np.maximum(np.ceil(share * k), 1).astype(np.int64)
        return mean_excess(n, c, k, above=least - 1, most=np.ones_like(k))

    return _of_counts(is_correct, k, "g_pass@", chance)


def mean_g_pass_at_k(is_correct: IntoExprColumn, k: int | Sequence[int]) -> pl.Expr:
    r"""Average G-Pass@k over the shares above one half: mG-Pass@k.

    One number for how stable a majority of k attempts is correct.

    Parameters
    ----------
    is_correct
        Boolean column, one row per attempt, or the same as numbers 0 and 1; attempts with a null
        are left out of n.
    k
        Number of attempts drawn, at least 1, or several such numbers.

    Returns
    -------
    pl.Expr
        Aggregating expression, one value per group, in [0, 1], named as the input. For an int k
        Float64, null where n < k and for k = 1, where there is nothing to average; for a sequence a
        Struct with one such field per k, named ``mg_pass@2``, ``mg_pass@8``.

    Raises
    ------
    ParameterTypeError
        At once, when k is neither an int nor a sequence of them, or the column is no column.
    ParameterError
        At once, when a k is below 1 or there is none.
    DataError
        When the query runs, where a value is neither 0 nor 1: such values have no count.

    Notes
    -----
    With J correct ones among the k attempts drawn,

    .. math::

        \text{mG-Pass@}k
        = \frac{2}{k} \sum_{i=\lceil k/2 \rceil + 1}^{k} \text{G-Pass@}k_{i/k}
        = \frac{2}{k} \mathrm{E} \max(J - \lceil k/2 \rceil, 0)

    This is the paper's form, whose largest value for an odd k is (k - 1)/k, not 1: compare equal k,
    or use even ones.

    References
    ----------
    Liu et al. (2024), Are Your LLMs Capable of Stable Reasoning?, arXiv:2412.13147, equation 5.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"is_correct": [True, True, True, False]})
    >>> frame.select(tts.mean_g_pass_at_k("is_correct", k=[1, 2, 3])).item()
    {'mg_pass@1': None, 'mg_pass@2': 0.5, 'mg_pass@3': 0.16666666666666666}
    """

    def mean(n: Ints, c: Ints, k: Ints) -> Floats:
        return mean_excess(n, c, k, above=(k + 1) // 2, most=k) * 2.0 / k

    return _of_counts(is_correct, k, "mg_pass@", mean, least_k=2)


def _of_counts(
    is_correct: IntoExprColumn,
    k: int | Sequence[int],
    prefix: str,
    estimate: Callable[[Ints, Ints, Ints], Floats],
    *,
    least_k: int = 1,
) -> pl.Expr:
    """Estimate from n, c and k, once for each combination of them."""
    draws = np.array(check_draws(k))
    fields = [f"{prefix}{draw}" for draw in draws] if isinstance(k, Sequence) else None
    source = into_expr(is_correct, "is_correct")
    value = source.cast(pl.Float64)
    counts = pl.struct(
        source.count().cast(pl.Int64).alias("n"),
        value.sum().alias("c"),
        ((value != 0.0) & (value != 1.0) & value.is_not_nan()).any().alias("is_part"),
    )

    def estimates(groups: pl.Series) -> pl.Series:
        if n_partly := groups.struct.field("is_part").sum():
            raise DataError(
                f"{source} has values other than 0 and 1 in {n_partly} of {len(groups)} groups, and "
                "they have no count of correct attempts. Hint: pl.col(...) >= 1 makes them Boolean."
            )
        n, c = groups.struct.field("n").to_numpy(), groups.struct.field("c").to_numpy()
        is_unknown = np.isnan(c)
        c = np.where(is_unknown, 0, c).astype(np.int64)
        _, chosen, place = np.unique(
            n * (n.max(initial=0) + 1) + c, return_index=True, return_inverse=True
        )
        is_null = (n[chosen] < draws[:, None]) | (draws < least_k)[:, None]
        values = np.full(is_null.shape, np.nan)
        of_k, of_group = np.nonzero(~is_null)
        values[of_k, of_group] = estimate(n[chosen[of_group]], c[chosen[of_group]], draws[of_k])
        values, is_null = values[:, place], is_null[:, place]
        values[:, is_unknown] = np.nan
        return series_of_draws(groups.name, values, is_null, fields)

    dtype = pl.Struct(dict.fromkeys(fields, pl.Float64)) if fields else pl.Float64
    return keep_name(counts.map_batches(estimates, return_dtype=dtype, is_elementwise=True), source)
