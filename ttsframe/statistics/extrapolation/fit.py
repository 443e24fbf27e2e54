"""Fits of pass@k: a run in, a model out that predicts pass@k for more attempts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

import numpy as np
import polars as pl

from ttsframe import _html
from ttsframe._checks import check_budgets, check_choice, check_fraction, check_positive
from ttsframe._typing import ColumnNames
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.extrapolation.attempts import (
    count_attempts,
    distinct_counts,
    read_attempts,
)
from ttsframe.statistics.extrapolation.beta import beta_passes
from ttsframe.statistics.extrapolation.model import ExtrapolationModel, Fit
from ttsframe.statistics.extrapolation.registry import MODELS, attempts_needed, predict_range

__all__ = ["PassAtKFit", "fit_pass_at_k"]

_SHOWN_FACTORS: Final = (2, 10, 100)
"""How far beyond the sampled attempts a notebook shows predictions."""
_MOST_DRAWS: Final = 2**32 - 1

_FIT_SCHEMA: Final = {
    "status": pl.String(),
    "alpha": pl.Float64(),
    "beta": pl.Float64(),
    "never_solved": pl.Float64(),
    "scale": pl.Float64(),
    "exponent": pl.Float64(),
    "log_likelihood": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
    "n_attempts_min": pl.UInt32(),
    "n_attempts_max": pl.UInt32(),
}
_TAKEN: Final = (
    "problem_id",
    "target",
    "n_attempts",
    "interval_for",
    "is_moved",
    *CURVE_SCHEMA,
    *_FIT_SCHEMA,
)


@dataclass(frozen=True, eq=False)
class PassAtKFit:
    """A model of pass@k, fitted by `fit_pass_at_k`.

    Parameters
    ----------
    model
        Name of the model.
    by
        Columns that tell runs apart; each run has a fit of its own.
    confidence_level
        Nominal coverage of the intervals.
    parameters
        One row per group of `by`, sorted:

        - `status` (String): "ok"; "equal", the problems do not differ by more than chance, so alpha
          and beta are infinite; "all_or_none", each problem is always or never solved, so both are
          0; "all_wrong", "all_correct", no correct or no wrong attempt, so both are null; "too_few",
          no problem has two graded attempts; "ungraded";
        - `alpha`, `beta` (Float64 >= 0), `never_solved` (Float64 in [0, 1]): the Beta distribution
          and the share of problems that are never solved; null in the others;
        - `scale`, `exponent` (Float64): a and b of the power law, also that of "nonparametric";
        - `log_likelihood` (Float64), without terms that depend on no parameter; for "nonparametric"
          that of the likeliest mixture, which no Beta distribution exceeds. If "zero_inflated"
          exceeds "beta_binomial" by more than 1.35, some problems are never solved, at the 5 % level;
        - `n_problems`, `n_ungraded` (UInt32): problems fitted, and problems without a grade;
        - `n_attempts_min`, `n_attempts_max` (UInt32): graded attempts per problem.
    fits
        The estimate of each row, and the members of its confidence region.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 64, seed=0, accuracy=(0.5, 2), keys=True)
    >>> fit = tts.fit_pass_at_k(run)
    >>> curve = fit.predict([16, 160])
    >>> curve.select("budget", pl.col("accuracy", "ci_low", "ci_high").round(3)).rows()
    [(16, 0.714, 0.659, 0.762), (160, 0.908, 0.848, 0.976)]
    """

    model: ExtrapolationModel
    by: tuple[str, ...]
    confidence_level: float
    parameters: pl.DataFrame
    fits: tuple[Fit, ...] = field(repr=False)

    def _repr_html_(self) -> str:
        """Return parameters and predictions as tables for notebooks."""
        most: int = max([1, *self.parameters["n_attempts_max"].drop_nulls().to_list()])
        budgets = sorted({1, most, *(most * factor for factor in _SHOWN_FACTORS)})
        level = f"{100 * self.confidence_level:g}%"
        curve = self.predict([budget for budget in budgets if budget <= _MOST_DRAWS])
        shown = [*self.by, "budget", "accuracy", "ci_low", "ci_high", "is_moved"]
        return _html.fragment(
            _html.heading(f"pass@k by {self.model}"),
            _html.table(self.parameters),
            _html.table(
                curve.select(shown).rename({"budget": "k", "accuracy": "pass@k"}),
                f"Predictions, with {level} intervals for new problems of the same kind; attempts sampled: "
                f"up to {most:,}",
            ),
        )

    def predict(self, k: int | Sequence[int]) -> pl.DataFrame:
        """Return pass@k at any k, below or above the number of sampled attempts.

        Parameters
        ----------
        k
            Number of attempts, at least 1, or several such numbers.

        Returns
        -------
        pl.DataFrame
            `curve`, one row per (by, `budget`), which `charts.scaling_curve` draws, alone or
            concatenated to a measured curve: `selector` is the model's name, `subsets` "all",
            `accuracy` pass@k, `ci_low` and `ci_high` its interval (null without a fit),
            `standard_error` null since the interval is not symmetric. Two more columns, so a measured
            curve is concatenated with ``how="diagonal"``:

            - `interval_for` (String): "new_problems"; the interval is for pass@k over new problems of
              the same kind, and so wider than one for these problems would be. It takes problems as
              independent: with clusters of them it is too narrow;
            - `is_moved` (Boolean): the model's pass@k is outside of the interval, and `accuracy` is
              the nearer end. Only "nonparametric" moves: its power law disagrees with what any
              distribution of chances allows.

        Raises
        ------
        ParameterTypeError
            If k is neither an int nor a sequence of ints.
        ParameterError
            If a k is below 1 or above 2^32 - 1, or the sequence is empty.
        """
        draws = check_budgets(k)
        if draws is None:
            raise ParameterTypeError("k is None, must be a number of attempts or several.")
        if draws[-1] > _MOST_DRAWS:
            raise ParameterError(f"k == {draws[-1]}, must be at most {_MOST_DRAWS}.")
        at = np.array(draws, dtype=np.float64)
        ends = [np.stack(predict_range(self.model, fit, at)) for fit in self.fits]
        accuracy, low, high, moved = np.concatenate([np.empty((4, 0)), *ends], axis=1)
        return (
            self
            ._repeated(len(draws))
            .with_columns(
                pl.Series("accuracy", accuracy),
                pl.Series("ci_low", low),
                pl.Series("ci_high", high),
                pl.Series("budget", draws * len(ends), dtype=pl.UInt32),
                pl.Series("is_moved", moved > 0.0),
                selector=pl.lit(self.model),
                interval_for=pl.lit("new_problems"),
                budget_unit=pl.lit("attempts"),
                subsets=pl.lit("all"),
                **dict.fromkeys(("reduction", "standard_error")),
                **dict.fromkeys(("n_short", "n_unscored", "n_undefined"), 0),
            )
            .select(
                *self.by,
                *[pl.col(name).cast(to) for name, to in CURVE_SCHEMA.items()],
                "interval_for",
                "is_moved",
            )
            .with_columns(pl.col("accuracy", "ci_low", "ci_high").fill_nan(None))
        )

    def attempts_for(self, target: float | Sequence[float]) -> pl.DataFrame:
        """Return the number of attempts at which pass@k reaches a target.

        Parameters
        ----------
        target
            Value of pass@k, strictly between 0 and 1, or several.

        Returns
        -------
        pl.DataFrame
            One row per (by, `target`), with `n_attempts`, `ci_low` and `ci_high`: whole numbers as
            Float64, infinite if 10^15 attempts do not reach the target, null without a fit.

        Raises
        ------
        ParameterError
            If a target is not strictly between 0 and 1, or the sequence is empty.
        """
        targets = [target] if isinstance(target, int | float) else list(target)
        if not targets:
            raise ParameterError("target is empty, must hold at least one value of pass@k.")
        goals = np.array([check_fraction(value, "target") for value in targets])
        ranges = [attempts_needed(self.model, fit, goals) for fit in self.fits]
        n_attempts, low, high = np.concatenate([np.empty((3, 0)), *ranges], axis=1)
        return (
            self
            ._repeated(len(targets))
            .with_columns(
                pl.Series("target", targets * len(ranges), dtype=pl.Float64),
                pl.Series("n_attempts", n_attempts),
                pl.Series("ci_low", low),
                pl.Series("ci_high", high),
            )
            .select(*self.by, "target", pl.col("n_attempts", "ci_low", "ci_high").fill_nan(None))
        )

    @staticmethod
    def beta_binomial(alpha: float, beta: float, k: int) -> float:
        r"""Return pass@k for chances that have a Beta distribution.

        The scalar form of `predict` for given parameters.

        Parameters
        ----------
        alpha, beta
            Parameters of the distribution, greater than 0.
        k
            Number of attempts, at least 1.

        Returns
        -------
        float
            The probability that at least one of k attempts at a random problem is correct, in
            [0, 1].

        Raises
        ------
        ParameterTypeError
            If k is not an int.
        ParameterError
            If k is below 1, or a parameter is not positive and finite.

        Notes
        -----
        .. math:: 1 - \frac{B(\alpha, \beta + k)}{B(\alpha, \beta)}

        References
        ----------
        Griffiths (1973), Maximum likelihood estimation for the beta-binomial distribution,
        Biometrics 29, 637-648.

        Examples
        --------
        >>> import ttsframe as tts
        >>> round(tts.statistics.PassAtKFit.beta_binomial(1, 1, 3), 12)
        0.75
        """
        check_positive(k, "k")
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not 0.0 < value < math.inf:
                raise ParameterError(f"{name} == {value}, must be positive and finite.")
        parameters = np.array([alpha / (alpha + beta), alpha + beta, 0.0])
        return float(beta_passes(parameters, np.array(k, dtype=np.float64)))

    def _repeated(self, n_rows: int) -> pl.DataFrame:
        """Repeat the columns of `by` and the counts of problems."""
        rows = np.repeat(np.arange(self.parameters.height), n_rows)
        return self.parameters.select(*self.by, "n_problems", "n_ungraded")[rows]


def fit_pass_at_k(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    model: ExtrapolationModel = "nonparametric",
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> PassAtKFit:
    r"""Fit a model of the chances to solve problems, to predict pass@k beyond the sampled attempts.

    A run of 64 attempts measures pass@64. How many problems 10,000 attempts would solve depends on
    the problems that were rarely or never solved, so a prediction is only as good as the model:
    `check_extrapolation` measures how good it is.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id` and `is_correct` (Boolean; attempts with a null are
        left out); problems may differ in their number of attempts. Or a table of counts: one row per
        problem with `n_attempts` and `n_correct`. Collected if lazy.
    model
        "nonparametric": the interval is for chances to solve a problem that have any distribution,
        the estimate is the power law's, moved to the nearer end of the interval if it is outside.
        "beta_binomial": the chances to solve a problem have a Beta distribution. "zero_inflated": in
        addition, a share of the problems is never solved; takes about a second. "power_law":
        log(pass@k) = a k^b, fitted to the unbiased pass@k up to the smallest number of attempts.
    by
        Columns that tell runs apart; each run gets a fit of its own.
    confidence_level
        Nominal coverage of the intervals, in (0, 1).

    Returns
    -------
    PassAtKFit
        The fits: `parameters`, `predict(k)` and `attempts_for(target)`.

    Raises
    ------
    ColumnsError
        If a column is missing, or `is_correct` is not Boolean.
    ParameterError
        If the model is unknown, the level is not in (0, 1), or `by` names a column of a result.
    DataError
        If attempts are not exchangeable (`is_exchangeable` is false), or an attempt appears twice:
        `by` does not name the column that tells runs apart.

    Notes
    -----
    The default: chances are a mixture on a grid in [0, 1], with 0 and 1 among it and logarithmic steps
    near both, and its log-likelihood :math:`\sum_q \log \sum_g w_g p_g^{c_q} (1 - p_g)^{n_q - c_q}` is
    concave in the weights. The interval is the range of :math:`\sum_g w_g (1 - (1 - p_g)^k)` over all
    weights whose log-likelihood is within half a chi-squared quantile (1 degree of freedom) of the
    highest. Its ends are searched, to .001, at numbers of attempts in steps of 4, and are those of the
    mixtures found there for other k. 64 attempts cannot tell a chance of 0 from one of 1/1000, so the
    interval for many times the attempts is wide. Without a power law, where all attempts are right or
    wrong, the estimate is the likeliest mixture's.

    With c of n attempts correct, the beta-binomial model maximizes the product over problems of
    :math:`B(\alpha + c, \beta + n - c) / B(\alpha, \beta)`, and

    .. math::

        \mathrm{pass@}k = (1 - \pi) \left( 1 - \frac{B(\alpha, \beta + k)}{B(\alpha, \beta)} \right)

    with :math:`\pi = 0` unless zero-inflated. Intervals are profile-likelihood intervals: the range
    of pass@k over all parameters whose log-likelihood is within the same distance of the highest. The
    search needs no start and no gradient, since the likelihood is log-concave in the
    mean at each alpha + beta. All intervals are for new problems of the same kind.

    On real models thinned to 64 attempts a problem (HumanEval+ and AIME 2024, 46 to 49 models each,
    three thinnings; `benchmarks/results/extrapolation_noises.txt`), where the truth is the mean over
    the same problems:

    - "nonparametric": coverage 99.3 and 100 % at k = 256 and 1,024 on HumanEval+ (mean width .176 and
      .265, mean error .029 and .041), 98.6 and 100 % on AIME 2024 (.477 and .724; .062 and .105);
    - "beta_binomial": 62 and 51 % on HumanEval+ (.093 and .086; .037 and .044), 99 and 94 % on AIME;
    - "power_law": 75 and 58 % on HumanEval+ (.101 and .091; .029 and .041), 97 and 91 % on AIME (.336
      and .380; .062 and .100). It has no fit where no attempt is right; where it has one on AIME, the
      default's estimates are the same.

    On simulated runs of 50 to 1,000 problems with 16 or 64 attempts, and k up to 100 times as many,
    the coverage of 95 % intervals was (`benchmarks/results/extrapolation_coverage.txt`):

    - "nonparametric": 93 to 100 % beyond the sampled attempts and 92 to 98 % at them, in all these
      cases (50 and 200 problems, 60 runs; `benchmarks/results/extrapolation_nonparametric.txt`).
    - "beta_binomial": 92.8 to 96.7 % if chances have a Beta distribution. If 30 % of the problems are
      never solved, it takes them for hard ones, its pass@k goes to 1, and at 100 times the attempts
      its coverage was 0 to 6 %.
    - "zero_inflated": 92 to 99 % in all these cases (200 problems, 100 runs). Its intervals are wider,
      and its estimate is too low if every problem can be solved.
    - "power_law": 82 to 96 % for Beta(0.5, 0.5), down to 0 for Beta(0.2, 2): its pass@k rises faster
      than that of any Beta distribution, and its interval does not allow for that.

    References
    ----------
    Koenker and Mizera (2014), Convex optimization, shape constraints, compound decisions, and
    empirical Bayes rules, Journal of the American Statistical Association 109, 674-685, for the
    likelihood of mixtures. Owen (2001), Empirical likelihood, Chapman & Hall, for intervals from its
    ratio.
    Griffiths (1973), Maximum likelihood estimation for the beta-binomial distribution, Biometrics
    29, 637-648. Brown et al. (2024), Large Language Monkeys, arXiv:2407.21787, section 3, for the
    power law. Schaeffer et al. (2025), How Do Large Language Monkeys Get Their Power (Laws)?,
    arXiv:2502.17578, for the effect of the left tail of the chances.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 64, seed=0, accuracy=(0.5, 2), keys=True)
    >>> fit = tts.fit_pass_at_k(run)
    >>> curve = fit.predict([64, 640])
    >>> curve.select("budget", pl.col("accuracy", "ci_low", "ci_high").round(3), "is_moved").rows()
    [(64, 0.854, 0.807, 0.903, False), (640, 0.956, 0.852, 1.0, False)]
    >>> fit = tts.fit_pass_at_k(run, model="beta_binomial")
    >>> fit.parameters.select("status", "alpha", "beta", "n_problems")
    shape: (1, 4)
    ┌────────┬─────────┬──────────┬────────────┐
    │ status ┆ alpha   ┆ beta     ┆ n_problems │
    │ ---    ┆ ---     ┆ ---      ┆ ---        │
    │ str    ┆ f64     ┆ f64      ┆ u32        │
    ╞════════╪═════════╪══════════╪════════════╡
    │ ok     ┆ 0.54789 ┆ 1.964844 ┆ 200        │
    └────────┴─────────┴──────────┴────────────┘
    >>> fit.attempts_for([0.5, 0.9])
    shape: (2, 4)
    ┌────────┬────────────┬────────┬─────────┐
    │ target ┆ n_attempts ┆ ci_low ┆ ci_high │
    │ ---    ┆ ---        ┆ ---    ┆ ---     │
    │ f64    ┆ f64        ┆ f64    ┆ f64     │
    ╞════════╪════════════╪════════╪═════════╡
    │ 0.5    ┆ 5.0        ┆ 4.0    ┆ 6.0     │
    │ 0.9    ┆ 116.0      ┆ 65.0   ┆ 248.0   │
    └────────┴────────────┴────────┴─────────┘
    """
    check_choice(model, "model", get_args(ExtrapolationModel))
    check_fraction(confidence_level, "confidence_level")
    attempts = read_attempts(trajectories, by, taken=_TAKEN)
    groups = attempts.groups()
    problems = [count_attempts(group) for group in groups]
    fits = [MODELS[model].fit(distinct_counts(counted), confidence_level) for counted in problems]
    tables = [
        pl.DataFrame([_parameters(model, fit) | _coverage(counted)], schema=_FIT_SCHEMA)
        for fit, counted in zip(fits, problems, strict=True)
    ]
    parameters = attempts.combine(groups, tables, _FIT_SCHEMA)
    return PassAtKFit(model, attempts.names, confidence_level, parameters, tuple(fits))


def _parameters(model: ExtrapolationModel, fit: Fit) -> dict[str, str | float | None]:
    """Return the estimates of a fit under their names in the literature."""
    shown: dict[str, str | float | None] = {
        "status": fit.status,
        "log_likelihood": fit.log_likelihood,
    }
    estimate = fit.estimate[:, 0].tolist()
    if model in {"nonparametric", "power_law"}:
        intercept, slope = estimate
        return shown | {"scale": -math.exp(intercept), "exponent": slope}
    mean, concentration, never = estimate
    if fit.status not in {"all_wrong", "all_correct"}:
        shown |= {"alpha": mean * concentration, "beta": (1.0 - mean) * concentration}
    return shown | {"never_solved": never}


def _coverage(problems: pl.DataFrame) -> dict[str, int | None]:
    """Count the problems and attempts of a fit."""
    n = problems["n"].to_list()
    graded = [count for count in n if count]
    return {
        "n_problems": len(graded),
        "n_ungraded": len(n) - len(graded),
        "n_attempts_min": min(graded, default=None),
        "n_attempts_max": max(graded, default=None),
    }
