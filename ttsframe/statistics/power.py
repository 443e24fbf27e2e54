"""Planning a paired comparison: its power, and the sample that a difference needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_between,
    check_choice,
    check_fraction,
    check_frame,
    check_positive,
)
from ttsframe._exprs import in_order
from ttsframe._typing import Integers
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.paired import mcnemar_p

__all__ = ["PairedDesign"]

PairedTest: TypeAlias = Literal["mcnemar_mid_p", "mcnemar_exact", "paired_t"]

_MOST: Final = 10**9
"""Largest number of problems or attempts that is tried."""


@dataclass(frozen=True, kw_only=True)
class PairedDesign:
    r"""The variances that determine how precisely two models are compared on the same problems.

    Parameters
    ----------
    variance_between
        Variance over problems of the difference of the two models' true accuracies, at least 0.
    variance_within
        Variance of one attempt of the first model around its true accuracy at the problem, averaged
        over problems, at least 0; at most 0.25 for grades.
    variance_within_baseline
        The same of the second model.

    Raises
    ------
    ParameterError
        If a variance is negative, NaN or infinite, or all are 0.

    Notes
    -----
    With K attempts of each model at each of Q problems, the difference of accuracies has

    .. math:: \mathrm{SE}^2 = \frac{1}{Q} \Big(\omega^2 + \frac{\sigma_A^2 + \sigma_B^2}{K}\Big)

    and the power of the paired t-test is that of the noncentral t-distribution. Miller's formula has
    normal quantiles instead, and so needs one or two problems less. Problems are taken as independent:
    clusters of them need more.

    `compare` tests single attempts, whose grades are 0 or 1, by McNemar's test, which finds fewer
    differences than the t-test promises. Its power is summed over the binomial numbers of problems that
    differ, with chance :math:`\psi = Q \, \mathrm{SE}^2 + \delta^2` for a difference :math:`\delta`, and of
    those won, with chance :math:`(1 + \delta / \psi) / 2`. It is not quite monotone in Q, so that the
    numbers needed are those from which the power is reached but for a step of the binomial.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 5. Fagerland, Lydersen and
    Laake (2013), The McNemar test for binary matched-pairs data: mid-p and asymptotic are better than
    exact conditional, BMC Medical Research Methodology 13, 91.

    Examples
    --------
    >>> import ttsframe as tts
    >>> design = tts.statistics.PairedDesign(
    ...     variance_between=1 / 9, variance_within=0, variance_within_baseline=0
    ... )
    >>> design.n_problems_needed(0.03, test="paired_t")
    971
    >>> design.n_problems_needed(0.03, test="mcnemar_mid_p")
    967
    >>> round(design.minimum_detectable_effect(n_problems=971, test="paired_t"), 4)
    0.03
    """

    variance_between: float
    variance_within: float
    variance_within_baseline: float

    def __post_init__(self) -> None:
        variances = {
            "variance_between": self.variance_between,
            "variance_within": self.variance_within,
            "variance_within_baseline": self.variance_within_baseline,
        }
        for name, value in variances.items():
            check_between(value, name, 0.0, 1e300)
        if not any(variances.values()):
            raise ParameterError(
                f"{', '.join(variances)} are all 0, expected one above 0. Hint: "
                "PairedDesign.from_attempts(...) estimates them."
            )

    @classmethod
    def from_attempts(
        cls,
        trajectories: pl.DataFrame | pl.LazyFrame,
        /,
        *,
        column: str,
        contender: str | float | bool,
        baseline: str | float | bool,
        value: str = "is_correct",
    ) -> Self:
        """Estimate the design from a pilot: attempts of both models at the same problems.

        Parameters
        ----------
        trajectories
            One row per attempt, with `problem_id`, the column that tells the models apart and the
            column `value`.
        column
            Column that tells the models apart, such as ``"model"``.
        contender
            The value of `column` for the first model.
        baseline
            The value of `column` for the second model.
        value
            Boolean or numeric column; nulls are left out.

        Returns
        -------
        PairedDesign
            Unbiased estimates over the problems at which both models have two or more values, except
            that a negative variance between problems is set to 0.

        Raises
        ------
        ParameterTypeError
            If the argument is not a frame.
        ColumnsError
            If a column is missing.
        DataError
            If fewer than two problems have two values of both models.
        """
        check_frame(trajectories, "trajectories")
        require_columns(trajectories, ["problem_id", column, value])
        values = pl.col("value")
        sides = {"contender": pl.col("side") == contender, "baseline": pl.col("side") == baseline}
        pairs = (
            trajectories
            .lazy()
            .select(
                "problem_id",
                pl.col(column).alias("side"),
                pl.col(value).cast(pl.Float64).fill_nan(None).alias("value"),
            )
            .group_by("problem_id")
            .agg(
                *[
                    in_order(values.filter(side)).list.mean().alias(f"{name}_mean")
                    for name, side in sides.items()
                ],
                *[
                    in_order(values.filter(side)).list.var().alias(f"{name}_var")
                    for name, side in sides.items()
                ],
                *[values.filter(side).count().alias(f"{name}_n") for name, side in sides.items()],
            )
            .drop_nulls(["contender_var", "baseline_var"])
            .sort("problem_id")
            .collect()
        )
        if pairs.height < 2:
            raise DataError(
                f"{pairs.height} problems have two or more attempts of both {contender!r} and "
                f"{baseline!r} in {column!r}, need at least 2. Hint: the variance within problems "
                "needs several attempts at a problem."
            )
        total, sampling, within, within_baseline = pairs.select(
            in_order(pl.col("contender_mean") - pl.col("baseline_mean")).list.var(),
            sum(
                (
                    in_order(pl.col(f"{name}_var") / pl.col(f"{name}_n")).list.mean()
                    for name in sides
                ),
                start=pl.lit(0.0),
            ).alias("sampling"),
            in_order(pl.col("contender_var")).list.mean(),
            in_order(pl.col("baseline_var")).list.mean(),
        ).row(0)
        return cls(
            variance_between=max(0.0, total - sampling),
            variance_within=within,
            variance_within_baseline=within_baseline,
        )

    def standard_error(self, *, n_problems: int, n_attempts: int = 1) -> float:
        """Return the standard error of the difference of accuracies.

        Parameters
        ----------
        n_problems
            Problems that both models try.
        n_attempts
            Attempts of each model at each problem.

        Returns
        -------
        float
            In units of accuracy.

        Raises
        ------
        ParameterError
            If a number is below 1.
        """
        check_positive(n_problems, "n_problems")
        check_positive(n_attempts, "n_attempts")
        within = (self.variance_within + self.variance_within_baseline) / n_attempts
        error: float = ((self.variance_between + within) / n_problems) ** 0.5
        return error

    def power(
        self,
        effect: float,
        *,
        n_problems: int,
        n_attempts: int = 1,
        confidence_level: float = 0.95,
        test: PairedTest | None = None,
    ) -> float:
        """Return the chance that the two-sided test of `compare` finds a true difference.

        Parameters
        ----------
        effect
            True difference of accuracies.
        n_problems
            Problems that both models try, at least 2.
        n_attempts
            Attempts of each model at each problem.
        confidence_level
            One minus the size of the test, in (0, 1).
        test
            The test of `compare`; None: its default, McNemar's mid-p test of single attempts, and the
            paired t-test of several.

        Returns
        -------
        float
            In (0, 1]; the size of the test at an effect of 0.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        """
        from scipy.special import nctdtr, stdtrit

        check_fraction(confidence_level, "confidence_level")
        error = self.standard_error(n_problems=n_problems, n_attempts=n_attempts)
        if n_problems < 2:
            raise ParameterError("n_problems == 1, must be at least 2: a spread needs two pairs.")
        used = _used_test(test, n_attempts)
        variance = error**2 * n_problems
        # Where many problems differ, the two tests find the same.
        if used != "paired_t" and n_problems * variance < _MANY:
            return _mcnemar_power(abs(effect), variance, n_problems, confidence_level, used)
        shift = abs(effect) / error
        limit = stdtrit(n_problems - 1, (1.0 + confidence_level) / 2.0)
        # scipy's series does not converge for tails too small for a float. From a shift of 7 on, the
        # chance to find the difference with the wrong sign is such a tail.
        missed = float(np.nan_to_num(nctdtr(n_problems - 1, shift, limit)))
        wrong_sign = float(nctdtr(n_problems - 1, shift, -limit)) if shift < 7.0 else 0.0
        return 1.0 - missed + wrong_sign

    def minimum_detectable_effect(
        self,
        *,
        n_problems: int,
        n_attempts: int = 1,
        power: float = 0.8,
        confidence_level: float = 0.95,
        test: PairedTest | None = None,
    ) -> float:
        """Return the smallest true difference that the test finds with a given chance.

        Parameters
        ----------
        n_problems
            Problems that both models try, at least 2.
        n_attempts
            Attempts of each model at each problem.
        power
            Chance of finding it, above the size of the test.
        confidence_level
            One minus the size of the test, in (0, 1).
        test
            The test of `compare`; None: its default, McNemar's mid-p test of single attempts, and the
            paired t-test of several.

        Returns
        -------
        float
            In units of accuracy; above 1 if no possible difference reaches the power.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        """
        from scipy.optimize import brentq

        _check_power(power, confidence_level)
        error = self.standard_error(n_problems=n_problems, n_attempts=n_attempts)

        def excess(shift: float) -> float:
            reached = self.power(
                shift * error,
                n_problems=n_problems,
                n_attempts=n_attempts,
                confidence_level=confidence_level,
                test=test,
            )
            return reached - power

        is_bounded = _used_test(test, n_attempts) != "paired_t"
        most = 1.0 / error if is_bounded else 4.0
        while excess(most) < 0.0:
            if is_bounded:
                return math.inf
            most *= 2.0
        return float(brentq(excess, 0.0, most, xtol=1e-12)) * error

    def n_problems_needed(
        self,
        effect: float,
        *,
        n_attempts: int = 1,
        power: float = 0.8,
        confidence_level: float = 0.95,
        test: PairedTest | None = None,
    ) -> int:
        """Return the smallest number of problems that give a difference a given power.

        Parameters
        ----------
        effect
            True difference of accuracies, not 0.
        n_attempts
            Attempts of each model at each problem.
        power
            Chance of finding it, above the size of the test.
        confidence_level
            One minus the size of the test, in (0, 1).
        test
            The test of `compare`; None: its default, McNemar's mid-p test of single attempts, and the
            paired t-test of several.

        Returns
        -------
        int
            At least 2.

        Raises
        ------
        ParameterError
            If a parameter is invalid, or more than a billion problems are needed.
        """
        _check_power(power, confidence_level)

        def reached(n_problems: int) -> float:
            sizes = {"n_problems": n_problems, "n_attempts": n_attempts}
            return self.power(effect, **sizes, confidence_level=confidence_level, test=test)

        n_problems = _smallest(lambda n: reached(n) >= power, 2)
        if n_problems is None:
            raise ParameterError(f"effect == {effect}, needs more than a billion problems.")
        return n_problems

    def n_attempts_needed(
        self,
        effect: float,
        *,
        n_problems: int,
        power: float = 0.8,
        confidence_level: float = 0.95,
        test: PairedTest | None = None,
    ) -> int | None:
        """Return the smallest number of attempts that give a difference a given power.

        Parameters
        ----------
        effect
            True difference of accuracies.
        n_problems
            Problems that both models try, at least 2.
        power
            Chance of finding it, above the size of the test.
        confidence_level
            One minus the size of the test, in (0, 1).
        test
            The test of `compare`; None: its default, McNemar's mid-p test of single attempts, and the
            paired t-test of several.

        Returns
        -------
        int or None
            Attempts of each model at each problem, at least 1. None if no number is enough: more
            attempts do not reduce the variance between problems, so more problems are needed.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        """
        _check_power(power, confidence_level)

        def reached(n_attempts: int) -> float:
            sizes = {"n_problems": n_problems, "n_attempts": n_attempts}
            return self.power(effect, **sizes, confidence_level=confidence_level, test=test)

        return _smallest(lambda n: reached(n) >= power, 1)


_MANY: Final = 50_000
"""From so many problems that differ on, McNemar's test has the power of the t-test."""


def _used_test(test: PairedTest | None, n_attempts: int) -> PairedTest:
    """Return the test of `compare` for a number of attempts a side."""
    if test is None:
        return "mcnemar_mid_p" if n_attempts == 1 else "paired_t"
    check_choice(test, "test", get_args(PairedTest))
    if n_attempts > 1 and test != "paired_t":
        raise ParameterError(
            f"test == {test!r} with n_attempts == {n_attempts}, must be 'paired_t': McNemar's test is "
            "of single attempts."
        )
    return test


def _mcnemar_power(
    effect: float, variance: float, n_problems: int, confidence_level: float, test: PairedTest
) -> float:
    """Return the chance that McNemar's test finds a difference between single attempts."""
    from scipy.special import bdtr
    from scipy.stats import binom

    differ = min(max(variance + effect**2, effect), 1.0)
    win = min(0.5 * (1.0 + effect / differ), 1.0)
    # Numbers of differing problems beyond these have no chance that a float can hold a sum with.
    spread = 9.0 * (n_problems * differ * (1.0 - differ)) ** 0.5 + 9.0
    first = max(0, int(n_problems * differ - spread))
    n = np.arange(first, min(n_problems, int(n_problems * differ + spread)) + 1)
    limit = _critical(n, confidence_level, is_mid_p=test == "mcnemar_mid_p")
    is_reached = limit >= 0
    n, k = n[is_reached], limit[is_reached].astype(np.float64)
    found = bdtr(k, n, win) + bdtr(k, n, 1.0 - win)
    return float(min(1.0, (binom.pmf(n, n_problems, differ) * found).sum()))


def _critical(n: Integers, confidence_level: float, *, is_mid_p: bool) -> Integers:
    """Return the most wins of the side with fewer at which McNemar's test rejects; -1: at none."""
    low, high = np.full(n.shape, -1), n // 2
    while (low < high).any():
        middle = (low + high + 1) // 2
        p_value = mcnemar_p(np.maximum(middle, 0.0), n.astype(np.float64), is_mid_p=is_mid_p)
        rejects = (p_value <= 1.0 - confidence_level) & (middle >= 0)
        low, high = np.where(rejects, middle, low), np.where(rejects, high, middle - 1)
        high = np.maximum(low, high)
    return low


def _check_power(power: float, confidence_level: float) -> None:
    """Raise unless the power is above the size of the test."""
    check_fraction(power, "power")
    check_fraction(confidence_level, "confidence_level")
    if power <= 1.0 - confidence_level:
        raise ParameterError(
            f"power == {power}, must be above 1 - confidence_level == {1.0 - confidence_level:g}, the "
            "power without any effect."
        )


def _smallest(is_enough: Callable[[int], bool], least: int) -> int | None:
    """Return the smallest number from `least` on that is enough, None beyond a billion."""
    low, high = least - 1, least
    while not is_enough(high):
        if high >= _MOST:
            return None
        low, high = high, min(2 * high, _MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
