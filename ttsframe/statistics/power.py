"""Planning a paired comparison: what difference it can show, and what a difference takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import polars as pl

from ttsframe._checks import check_between, check_fraction, check_frame, check_positive
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns

__all__ = ["PairedDesign"]

_MOST: Final = 10**9
"""Problems or attempts beyond which no number is sought."""


@dataclass(frozen=True, kw_only=True)
class PairedDesign:
    r"""What decides how precisely two models are compared on the same problems.

    Parameters
    ----------
    variance_between
        Variance over problems of the difference of the two models' true accuracies, at least 0.
    variance_within
        Variance of one attempt of the first model about its true accuracy at the problem, averaged
        over problems, at least 0; at most 0.25 for grades.
    variance_within_baseline
        The same of the second model.

    Raises
    ------
    ParameterError
        When a variance is negative, NaN or infinite, or all are 0.

    Notes
    -----
    With K attempts of each model at each of Q problems, the difference of accuracies has

    .. math:: \mathrm{SE}^2 = \frac{1}{Q} \Big(\omega^2 + \frac{\sigma_A^2 + \sigma_B^2}{K}\Big)

    and the paired t-test the power of the noncentral t-distribution. Miller's formula has normal
    quantiles in place of t's, and so needs one or two problems less.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 5.

    Examples
    --------
    >>> import ttsframe as tts
    >>> design = tts.statistics.PairedDesign(
    ...     variance_between=1 / 9, variance_within=0, variance_within_baseline=0
    ... )
    >>> design.n_problems_needed(0.03)
    971
    >>> round(design.minimum_detectable_effect(n_problems=971), 4)
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
                f"{', '.join(variances)} are all 0: any difference would show. Hint: estimate them "
                "with PairedDesign.from_attempts(...)."
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
            Unbiased estimates over the problems at which both models have two values or more, but
            for a variance between problems that comes out below 0, which is taken as 0.

        Raises
        ------
        ParameterTypeError
            When the frame is none.
        ColumnsError
            When a column is missing.
        DataError
            When fewer than two problems have two values of both models.
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
                *[values.filter(side).mean().alias(f"{name}_mean") for name, side in sides.items()],
                *[values.filter(side).var().alias(f"{name}_var") for name, side in sides.items()],
                *[values.filter(side).count().alias(f"{name}_n") for name, side in sides.items()],
            )
            .drop_nulls(["contender_var", "baseline_var"])
            .collect()
        )
        if pairs.height < 2:
            raise DataError(
                f"{pairs.height} problems have two or more attempts of both {contender!r} and "
                f"{baseline!r} in {column!r}, need at least 2. Hint: the spread within problems "
                "shows only where a problem is tried twice."
            )
        total, sampling, ours, theirs = pairs.select(
            (pl.col("contender_mean") - pl.col("baseline_mean")).var(),
            sum(
                ((pl.col(f"{name}_var") / pl.col(f"{name}_n")).mean() for name in sides),
                start=pl.lit(0.0),
            ).alias("sampling"),
            pl.col("contender_var").mean(),
            pl.col("baseline_var").mean(),
        ).row(0)
        return cls(
            variance_between=max(0.0, total - sampling),
            variance_within=ours,
            variance_within_baseline=theirs,
        )

    def standard_error(self, *, n_problems: int, n_attempts: int = 1) -> float:
        """Give the standard error of the difference of accuracies.

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
            When a number is below 1.
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
        significance_level: float = 0.05,
    ) -> float:
        """Give the chance that the two-sided paired t-test finds a true difference.

        Parameters
        ----------
        effect
            True difference of accuracies.
        n_problems
            Problems that both models try, at least 2.
        n_attempts
            Attempts of each model at each problem.
        significance_level
            Size of the test, in (0, 1).

        Returns
        -------
        float
            In (0, 1]; the significance level at an effect of 0.

        Raises
        ------
        ParameterError
            When a parameter is impossible.
        """
        from scipy.special import nctdtr, stdtrit

        check_fraction(significance_level, "significance_level")
        error = self.standard_error(n_problems=n_problems, n_attempts=n_attempts)
        if n_problems < 2:
            raise ParameterError("n_problems == 1, must be at least 2: one pair has no spread.")
        shift = abs(effect) / error
        limit = stdtrit(n_problems - 1, 1.0 - significance_level / 2.0)
        # scipy's series does not converge where a tail is too small to show in a float: below the
        # normal one at the shift for a difference that is found with the wrong sign.
        missed = float(np.nan_to_num(nctdtr(n_problems - 1, shift, limit)))
        turned = float(nctdtr(n_problems - 1, shift, -limit)) if shift < 7.0 else 0.0
        return 1.0 - missed + turned

    def minimum_detectable_effect(
        self,
        *,
        n_problems: int,
        n_attempts: int = 1,
        power: float = 0.8,
        significance_level: float = 0.05,
    ) -> float:
        """Give the smallest true difference that is found with a given chance.

        Parameters
        ----------
        n_problems
            Problems that both models try, at least 2.
        n_attempts
            Attempts of each model at each problem.
        power
            Chance of finding it, above the significance level.
        significance_level
            Size of the test, in (0, 1).

        Returns
        -------
        float
            In units of accuracy; above 1 where no difference of accuracies is found that often.

        Raises
        ------
        ParameterError
            When a parameter is impossible.
        """
        from scipy.optimize import brentq

        _check_power(power, significance_level)
        error = self.standard_error(n_problems=n_problems, n_attempts=n_attempts)

        def lacking(shift: float) -> float:
            reached = self.power(
                shift * error,
                n_problems=n_problems,
                n_attempts=n_attempts,
                significance_level=significance_level,
            )
            return reached - power

        most = 4.0
        while lacking(most) < 0.0:
            most *= 2.0
        return float(brentq(lacking, 0.0, most, xtol=1e-12)) * error

    def n_problems_needed(
        self,
        effect: float,
        *,
        n_attempts: int = 1,
        power: float = 0.8,
        significance_level: float = 0.05,
    ) -> int:
        """Give the smallest number of problems at which a difference is found with a given chance.

        Parameters
        ----------
        effect
            True difference of accuracies, not 0.
        n_attempts
            Attempts of each model at each problem.
        power
            Chance of finding it, above the significance level.
        significance_level
            Size of the test, in (0, 1).

        Returns
        -------
        int
            At least 2.

        Raises
        ------
        ParameterError
            When a parameter is impossible, or the effect takes more than a billion problems.
        """
        _check_power(power, significance_level)

        def reached(n_problems: int) -> float:
            sizes = {"n_problems": n_problems, "n_attempts": n_attempts}
            return self.power(effect, **sizes, significance_level=significance_level)

        found = _smallest(lambda n: reached(n) >= power, 2)
        if found is None:
            raise ParameterError(f"effect == {effect}, takes more than a billion problems to find.")
        return found

    def n_attempts_needed(
        self,
        effect: float,
        *,
        n_problems: int,
        power: float = 0.8,
        significance_level: float = 0.05,
    ) -> int | None:
        """Give the smallest number of attempts at which a difference is found with a given chance.

        Parameters
        ----------
        effect
            True difference of accuracies.
        n_problems
            Problems that both models try, at least 2.
        power
            Chance of finding it, above the significance level.
        significance_level
            Size of the test, in (0, 1).

        Returns
        -------
        int or None
            Attempts of each model at each problem, at least 1. None where no number is enough: the
            spread between problems stays, however many attempts there are, and more problems are
            needed.

        Raises
        ------
        ParameterError
            When a parameter is impossible.
        """
        _check_power(power, significance_level)

        def reached(n_attempts: int) -> float:
            sizes = {"n_problems": n_problems, "n_attempts": n_attempts}
            return self.power(effect, **sizes, significance_level=significance_level)

        return _smallest(lambda n: reached(n) >= power, 1)


def _check_power(power: float, significance_level: float) -> None:
    """Raise unless the power is one that an effect can have."""
    check_fraction(power, "power")
    check_fraction(significance_level, "significance_level")
    if power <= significance_level:
        raise ParameterError(
            f"power == {power}, must be above significance_level == {significance_level}, which a "
            "test has without any effect."
        )


def _smallest(is_enough: Callable[[int], bool], least: int) -> int | None:
    """Return the smallest number from `least` that is enough, or None beyond a billion."""
    low, high = least - 1, least
    while not is_enough(high):
        if high >= _MOST:
            return None
        low, high = high, min(2 * high, _MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
