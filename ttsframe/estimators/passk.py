"""pass@k and its relatives: estimates over all subsets of k attempts, as aggregating expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_between, check_choice, check_draws, check_positive
from ttsframe._exprs import as_numbers, into_expr, keep_name
from ttsframe._typing import Flags, Floats, Integers, IntoExprColumn
from ttsframe.errors import DataError, ParameterError
from ttsframe.estimators.counting import best_of_draws, mean_excess

__all__ = [
    "best_of_k",
    "closed_form_passatk",
    "g_pass_at_k",
    "mean_g_pass_at_k",
    "pass_at_k",
    "pass_hat_k",
]

NBelowK: TypeAlias = Literal["null", "any_correct"]

_ROUNDING: Final = 1e-12
"""Largest share of tau * k that rounding may have added."""


def pass_at_k(
    is_correct: IntoExprColumn,
    k: int | Sequence[int],
    *,
    n_attempts: IntoExprColumn | None = None,
) -> pl.Expr:
    r"""Estimate the chance that at least one of k attempts at a problem is correct.

    The estimate is unbiased: the share of all subsets of k of the problem's n attempts that have a
    correct one. With n < k it is null, not 1 as in many tools.

    Parameters
    ----------
    is_correct
        Boolean column, one row per attempt, or the same as numbers 0 and 1; attempts with a null
        are left out of n (`grade_failures` says which of them failed). A value between 0 and 1 counts as that part of a correct attempt.
    k
        Number of attempts drawn, at least 1, or several such numbers.
    n_attempts
        Column with the number of graded attempts, for a table of counts: one row per problem, with
        the number of correct attempts in `is_correct`. None: one row per attempt.

    Returns
    -------
    pl.Expr
        Aggregating expression, one value per group (one per row with `n_attempts`), in [0, 1], named
        as the input. For an int k
        Float64, null where n < k; for a sequence a Struct with one such field per k, named
        ``pass@1``, ``pass@8``.

    Raises
    ------
    ParameterTypeError
        At once, if k is neither an int nor a sequence of ints, or the column is not a column.
    ParameterError
        At once, if a k is below 1 or the sequence is empty.

    Notes
    -----
    With c correct ones among n attempts,

    .. math::

        \mathrm{pass@}k = 1 - \frac{\binom{n-c}{k}}{\binom{n}{k}}
        = 1 - \prod_{i=0}^{k-1} \frac{n - c - i}{n - i}

    The product has no large factors, so the error is below 1e-12 for n up to 100,000. One cumulative
    product serves all k.

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

    Of a table of counts:

    >>> counts = pl.DataFrame({"n_attempts": [4, 2], "n_correct": [2, 1]})
    >>> passes = tts.pass_at_k("n_correct", k=2, n_attempts="n_attempts")
    >>> counts.select(passes.round(4)).to_series().to_list()
    [0.8333, 1.0]
    """
    if n_attempts is not None:
        return _of_counts(is_correct, k, "pass@", _chance_of_any, n_attempts=n_attempts)
    source = into_expr(is_correct, "is_correct")
    n_correct = as_numbers(source, "is_correct").sum()
    return keep_name(_of_marked(source, k, n_correct, "pass@", lambda none: 1.0 - none), source)


def pass_hat_k(
    is_correct: IntoExprColumn,
    k: int | Sequence[int],
    *,
    n_attempts: IntoExprColumn | None = None,
) -> pl.Expr:
    r"""Estimate the chance that all of k attempts at a problem are correct.

    pass@k measures the best of k attempts, pass^k the reliability of all of them; it falls with k.
    The estimate is unbiased, unlike the plug-in form (c/n)^k, which is too high.

    Parameters
    ----------
    is_correct
        As in `pass_at_k`.
    k, n_attempts
        As in `pass_at_k`.

    Returns
    -------
    pl.Expr
        As in `pass_at_k`, with fields named ``pass^1``, ``pass^8``.

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
    if n_attempts is not None:
        return _of_counts(is_correct, k, "pass^", _chance_of_all, n_attempts=n_attempts)
    source = into_expr(is_correct, "is_correct")
    n_wrong = source.count() - as_numbers(source, "is_correct").sum()
    return keep_name(_of_marked(source, k, n_wrong, "pass^", lambda none: none), source)


def closed_form_passatk(n: int, c: int, k: int, *, n_below_k: NBelowK = "null") -> float | None:
    r"""Return pass@k of one problem from its counts.

    The scalar form of `pass_at_k`, in exact integer arithmetic, rounded once.

    Parameters
    ----------
    n
        Number of attempts, at least 0.
    c
        Number of correct ones among them, in [0, n].
    k
        Number of attempts drawn, at least 1.
    n_below_k
        Result for n < k: ``"null"`` gives None, ``"any_correct"`` gives 1 if c > 0 and else 0, the
        convention of eval-framework.

    Returns
    -------
    float or None
        The probability, in [0, 1], or None.

    Raises
    ------
    ParameterTypeError
        If k is not an int.
    ParameterError
        If k is below 1, c is not in [0, n], or `n_below_k` is not one of its choices.

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


def g_pass_at_k(
    is_correct: IntoExprColumn,
    k: int | Sequence[int],
    *,
    tau: float = 0.5,
    n_attempts: IntoExprColumn | None = None,
) -> pl.Expr:
    r"""Estimate the chance that at least a share tau of k attempts at a problem is correct.

    Between pass@k (one correct attempt suffices, tau near 0) and pass^k (all must be, tau 1).

    Parameters
    ----------
    is_correct
        As in `pass_at_k`, but only 0 and 1.
    k
        As in `pass_at_k`.
    tau
        Share of the k attempts that must be correct, in [0, 1]; at least one must.
    n_attempts
        As in `pass_at_k`.

    Returns
    -------
    pl.Expr
        As in `pass_at_k`, with fields named ``g_pass@1``, ``g_pass@8``.

    Raises
    ------
    ParameterError
        At once, if tau lies outside [0, 1].
    DataError
        On collection, if a value is neither 0 nor 1, so correct attempts cannot be counted.

    Notes
    -----
    With c correct ones among n attempts and :math:`m = \max(\lceil \tau k \rceil, 1)`,

    .. math::

        \text{G-Pass@}k_\tau = \sum_{j=m}^{\min(c, k)}
        \binom{c}{j} \binom{n-c}{k-j} \Big/ \binom{n}{k}

    A product tau k that rounding puts just above a whole number counts as that number: 0.28 of 25
    is 7. The error is below 1e-12 for n up to 100,000.

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

    def chance(n: Integers, c: Integers, k: Integers) -> Floats:
        least = np.maximum(np.ceil(share * k), 1).astype(np.int64)
        return mean_excess(n, c, k, above=least - 1, most=np.ones_like(k))

    return _of_counts(is_correct, k, "g_pass@", chance, n_attempts=n_attempts)


def mean_g_pass_at_k(
    is_correct: IntoExprColumn,
    k: int | Sequence[int],
    *,
    n_attempts: IntoExprColumn | None = None,
) -> pl.Expr:
    r"""Average G-Pass@k over the shares above one half: mG-Pass@k.

    One number for how reliably a majority of k attempts is correct.

    Parameters
    ----------
    is_correct
        As in `pass_at_k`, but only 0 and 1.
    k, n_attempts
        As in `pass_at_k`.

    Returns
    -------
    pl.Expr
        As in `pass_at_k`, with fields named ``mg_pass@2``, ``mg_pass@8``; also null for k = 1, where
        there is nothing to average.

    Raises
    ------
    DataError
        On collection, if a value is neither 0 nor 1, so correct attempts cannot be counted.

    Notes
    -----
    With J correct ones among the k attempts drawn,

    .. math::

        \text{mG-Pass@}k
        = \frac{2}{k} \sum_{i=\lceil k/2 \rceil + 1}^{k} \text{G-Pass@}k_{i/k}
        = \frac{2}{k} \mathrm{E} \max(J - \lceil k/2 \rceil, 0)

    This is the paper's form, whose largest value for an odd k is (k - 1)/k, not 1: compare only
    equal or even k.

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

    def mean(n: Integers, c: Integers, k: Integers) -> Floats:
        return mean_excess(n, c, k, above=(k + 1) // 2, most=k) * 2.0 / k

    return _of_counts(is_correct, k, "mg_pass@", mean, least_k=2, n_attempts=n_attempts)


def best_of_k(is_correct: IntoExprColumn, score: IntoExprColumn, k: int | Sequence[int]) -> pl.Expr:
    r"""Estimate the accuracy of the best-scored of k attempts at a problem.

    The estimate is the exact mean over all subsets of k of the problem's n attempts. The first k
    attempts are only one subset, and resampling with replacement is biased.

    Parameters
    ----------
    is_correct
        As in `pass_at_k`, or any numbers, whose mean is estimated. Attempts with a null are left out
        of n whatever their score.
    score
        Numeric column, one row per attempt, any range; higher is better. An attempt without a score
        (null or NaN) is drawn like the others but never wins; a subset without any score counts 0.
        Equal scores win equally often.
    k
        As in `pass_at_k`.

    Returns
    -------
    pl.Expr
        As in `pass_at_k`, named as `is_correct`, with fields named ``best_of@1``, ``best_of@8``;
        also null where no graded attempt has a score.

    See Also
    --------
    best_of_n : Picks the best-scored of the first n attempts, with its answer.
    expected_accuracy : Estimates this for a run, beside other selectors.

    Notes
    -----
    With the attempts sorted by falling score, the one of rank r (from 0) wins in

    .. math:: w_r = \binom{n-1-r}{k-1} \Big/ \binom{n}{k}

    of the subsets; tied attempts share the sum of their weights equally. The estimate is the sum of
    the weights of the correct attempts; its error is below 1e-12 for n up to 100,000. With a score
    that ranks every correct attempt above every wrong one it equals pass@k. Rows are sorted once for
    all k.

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
        as_numbers(source, "is_correct").alias("value"),
        as_numbers(into_expr(score, "score"), "score").alias("score"),
    ).implode()

    def estimate(groups: pl.Series) -> pl.Series:
        return _as_column(groups.name, *_best_of(groups, np.array(draws)), fields)

    dtype = pl.Struct(dict.fromkeys(fields, pl.Float64)) if fields else pl.Float64
    # Elementwise on one list per group, so it is called once for all groups.
    best = attempts.map_batches(estimate, return_dtype=dtype, is_elementwise=True)
    return keep_name(best, source)


def _of_marked(
    source: pl.Expr,
    k: int | Sequence[int],
    n_marked: pl.Expr,
    prefix: str,
    estimate: Callable[[pl.Expr], pl.Expr],
) -> pl.Expr:
    """Estimate from the chance that k draws have none of the marked attempts, for each k."""
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


def _chance_of_any(n: Integers, c: Integers, k: Integers) -> Floats:
    return mean_excess(n, c, k, above=np.zeros_like(k), most=np.ones_like(k))


def _chance_of_all(n: Integers, c: Integers, k: Integers) -> Floats:
    return mean_excess(n, c, k, above=k - 1, most=np.ones_like(k))


def _counted(n_correct: pl.Expr, n_attempts: pl.Expr) -> pl.Expr:
    """Check the counts of a table; without one of them, no attempt is graded."""

    def check(rows: pl.Series) -> pl.Series:
        counts = rows.struct.unnest()
        n, c = pl.col("n"), pl.col("c")
        is_whole = (n == n.floor()) & (c == c.floor())
        broken = counts.filter(~(is_whole & c.is_between(0, n) & n.is_finite()))
        if broken.height:
            found_n, found_c = broken.row(0)
            raise DataError(
                f"{n_correct} is {found_c:g} of {found_n:g} attempts, must be a whole number from 0 to "
                "their number. Hint: a table of counts has one row per problem; of attempts, leave n_attempts out."
            )
        known = pl.all_horizontal(pl.all().is_not_null())
        return counts.select(
            pl.struct(
                pl.when(known).then(n).otherwise(0).cast(pl.Int64).alias("n"),
                pl.when(known).then(c).otherwise(0.0).alias("c"),
                pl.lit(value=False).alias("is_fractional"),
            ).alias(rows.name)
        ).to_series()

    both = pl.struct(n_attempts.cast(pl.Float64).alias("n"), n_correct.cast(pl.Float64).alias("c"))
    dtype = pl.Struct({"n": pl.Int64, "c": pl.Float64, "is_fractional": pl.Boolean})
    return both.map_batches(check, return_dtype=dtype, is_elementwise=True)


def _of_counts(
    is_correct: IntoExprColumn,
    k: int | Sequence[int],
    prefix: str,
    estimate: Callable[[Integers, Integers, Integers], Floats],
    *,
    least_k: int = 1,
    n_attempts: IntoExprColumn | None = None,
) -> pl.Expr:
    """Estimate from n, c and k, once per combination of them."""
    draws = np.array(check_draws(k))
    fields = [f"{prefix}{draw}" for draw in draws] if isinstance(k, Sequence) else None
    source = into_expr(is_correct, "is_correct")
    value = as_numbers(source, "is_correct")
    counts = (
        pl.struct(
            source.count().cast(pl.Int64).alias("n"),
            value.sum().alias("c"),
            ((value != 0.0) & (value != 1.0) & value.is_not_nan()).any().alias("is_fractional"),
        )
        if n_attempts is None
        else _counted(source, into_expr(n_attempts, "n_attempts"))
    )

    def estimates(groups: pl.Series) -> pl.Series:
        if n_fractional := groups.struct.field("is_fractional").sum():
            raise DataError(
                f"{source} has values other than 0 and 1 in {n_fractional} of {len(groups)} groups, "
                "so correct attempts cannot be counted. Hint: pl.col(...) >= 1 makes them Boolean."
            )
        n, c = groups.struct.field("n").to_numpy(), groups.struct.field("c").to_numpy()
        is_unknown = np.isnan(c)
        c = np.where(is_unknown, 0, c).astype(np.int64)
        _, chosen, group = np.unique(
            n * (n.max(initial=0) + 1) + c, return_index=True, return_inverse=True
        )
        is_null = (n[chosen] < draws[:, None]) | (draws < least_k)[:, None]
        values = np.full(is_null.shape, np.nan)
        of_k, of_group = np.nonzero(~is_null)
        values[of_k, of_group] = estimate(n[chosen[of_group]], c[chosen[of_group]], draws[of_k])
        values, is_null = values[:, group], is_null[:, group]
        values[:, is_unknown] = np.nan
        return _as_column(groups.name, values, is_null, fields)

    dtype = pl.Struct(dict.fromkeys(fields, pl.Float64)) if fields else pl.Float64
    return keep_name(counts.map_batches(estimates, return_dtype=dtype, is_elementwise=True), source)


def _best_of(groups: pl.Series, draws: Integers) -> tuple[Floats, Flags]:
    """Return the estimates, (n_k, n_groups), and where they are null."""
    attempts = groups.explode(empty_as_null=False, keep_nulls=False).struct
    value, score = attempts.field("value"), attempts.field("score")
    ends = groups.list.len().cast(pl.Int64).cum_sum().to_numpy()
    if value.null_count():
        is_graded = value.is_not_null()
        n_graded = is_graded.cast(pl.Int64).cum_sum().to_numpy()
        ends = np.concatenate(([0], n_graded))[ends]
        value, score = value.filter(is_graded), score.filter(is_graded)
    return best_of_draws(value.to_numpy(), score.to_numpy(), ends, draws)


def _as_column(
    name: str, values: Floats, is_null: Flags, fields: Sequence[str] | None
) -> pl.Series:
    """Return estimates, (n_k, n_groups), as a column, or as a struct of one field per k."""
    columns = [pl.Series(name, of_k) for of_k in values]
    for column, missing in zip(columns, is_null, strict=True):
        if missing.any():
            column[missing.nonzero()[0]] = None
    if fields is None:
        return columns[0]
    return pl.DataFrame(dict(zip(fields, columns, strict=True))).to_struct(name)
