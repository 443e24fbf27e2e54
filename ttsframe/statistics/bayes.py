"""Bayes@N: the posterior mean of a run's score, with a credible interval."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names
from ttsframe._counts import read_counts
from ttsframe._exprs import from_safe, in_order, raise_where, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import holds_counts, require_columns

__all__ = ["bayes_at_n"]

_COLUMNS: Final = (
    "posterior_mean",
    "posterior_deviation",
    "credible_low",
    "credible_high",
    "mean",
    "n_attempts",
    "n_problems",
    "n_left_out",
)


def bayes_at_n(
    trajectories: FrameT,
    /,
    *,
    value: str = "is_correct",
    outcomes: Sequence[float] = (0.0, 1.0),
    prior: float = 1.0,
    by: ColumnNames = (),
    credible_level: float = 0.95,
) -> FrameT:
    r"""Average the posterior means of the problems' scores: Bayes@N, with a credible interval.

    Every problem starts from the same prior, by default the uniform one, which pulls its mean towards
    the middle of the outcomes. That orders models as accuracy does, but it is no estimate of accuracy:
    of 30 problems with chances from Beta(1, 9), which are solved in a tenth of the attempts, it is too
    high by .133 at 4 attempts and .044 at 16. `scaling_curve` estimates accuracy.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id` and the column `value`; or a table of counts, one row per
        problem with `n_attempts` and `n_correct`.
    value
        Boolean or numeric column with the outcome of an attempt; nulls and NaN are left out. Counts are
        of "is_correct".
    outcomes
        Scores that an attempt can have, at least two, all different: (0, 1) for right and wrong, or the
        grades of a rubric such as (0, 0.5, 1).
    prior
        Attempts with each outcome that the prior is worth, greater than 0; 1 is the uniform prior.
    by
        Columns that tell runs apart; each run gets a row.
    credible_level
        Posterior probability of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per combination of `by`, sorted:

        - `posterior_mean` (Float64): Bayes@N;
        - `posterior_deviation` (Float64): its standard deviation under the posterior, due to sampling
          attempts at these problems alone;
        - `credible_low`, `credible_high` (Float64): normal approximation, within the outcomes;
        - `mean` (Float64): mean over problems of the mean outcome, without a prior;
        - `n_attempts` (Float64): mean number of attempts at a problem;
        - `n_problems`, `n_left_out` (UInt32): problems with an outcome, and the others.

        All but the counts are null where no problem has an outcome.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.
    DataError
        On collection, when a value is none of the outcomes.

    See Also
    --------
    scaling_curve : With target="these_problems", the interval of the mean itself for these problems.

    Notes
    -----
    Of :math:`N_q` attempts at problem q, :math:`n_{qj}` had outcome :math:`w_j`, of which there are
    :math:`C + 1`. With the prior a, :math:`T_q = N_q + (C + 1) a`, and chances
    :math:`p_{qj} = (n_{qj} + a) / T_q`,

    .. math::

        \mu = \frac{1}{Q} \sum_q \sum_j p_{qj} w_j, \qquad
        \sigma^2 = \frac{1}{Q^2} \sum_q \frac{\sum_j p_{qj} w_j^2 - (\sum_j p_{qj} w_j)^2}{T_q + 1}

    and the interval is :math:`\mu \pm z \sigma`. The mean is pulled by
    :math:`(C + 1) a / T_q \, (\bar w - x_q)` towards the mean outcome :math:`\bar w`: with the uniform
    prior and 0 and 1, by a third of the way at 4 attempts and a ninth at 16. The interval does not
    cover the accuracy where that is larger than :math:`\sigma`: at 30 problems of Beta(1, 9) 0 % of the
    time at 4 attempts (`benchmarks/results/estimators_at_k.txt`).

    References
    ----------
    Hariri et al., "Don't Pass@k: A Bayesian Framework for Large Language Model Evaluation",
    arXiv:2510.04265, equations for mu and sigma, without earlier results as a prior.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["a"] * 5 + ["b"] * 5,
    ...     "grade": [0.0, 0.5, 1.0, 1.0, 0.5, 0.5, 0.5, 0.0, 1.0, 1.0],
    ... })
    >>> found = tts.statistics.bayes_at_n(run, value="grade", outcomes=(0.0, 0.5, 1.0))
    >>> found.select(pl.col("posterior_mean", "posterior_deviation", "mean").round(6)).row(0)
    (0.5625, 0.091998, 0.6)
    """
    check_frame(trajectories, "trajectories")
    level = check_fraction(credible_level, "credible_level")
    scores = _check_outcomes(outcomes)
    if not 0.0 < prior < float("inf"):
        raise ParameterError(f"prior == {prior}, must be greater than 0 and finite.")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_COLUMNS, "problem_id", value})
    keys: dict[str, str] = safe_names(groups)
    of_counts: bool = value == "is_correct" and holds_counts(trajectories.collect_schema())
    if not of_counts:
        require_columns(trajectories, [*groups, "problem_id", value])
    elif scores != (0.0, 1.0):
        raise ParameterError(
            "outcomes of a table of counts must be (0, 1): it says how many attempts are correct."
        )
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        counted = _of_counts(lazy, keys) if of_counts else _of_attempts(lazy, keys, value, scores)
        n = pl.sum_horizontal([f"n{j}" for j in range(len(scores))]).cast(pl.Float64)
        total = n + len(scores) * prior
        chances = [(pl.col(f"n{j}") + prior) / total for j in range(len(scores))]
        mean = pl.sum_horizontal([p * w for p, w in zip(chances, scores, strict=True)])
        square = pl.sum_horizontal([p * w**2 for p, w in zip(chances, scores, strict=True)])
        plain = pl.sum_horizontal([pl.col(f"n{j}") * w for j, w in enumerate(scores)]) / n
        known = n > 0
        of_problem = counted.select(
            *keys,
            "run",
            n=n,
            known=known,
            posterior=pl.when(known).then(mean),
            variance=pl.when(known).then((square - mean**2).clip(0.0) / (total + 1.0)),
            mean=pl.when(known).then(plain),
        )
        n_problems = pl.col("n_problems").cast(pl.Float64)
        half = z * pl.col("posterior_deviation")
        return (
            of_problem
            .group_by(*keys, "run")
            .agg(
                in_order(pl.col("posterior")).list.mean().alias("posterior_mean"),
                in_order(pl.col("variance")).list.sum().alias("square"),
                in_order(pl.col("mean")).list.mean().alias("mean"),
                in_order(pl.col("n").filter("known")).list.mean().alias("n_attempts"),
                pl.col("known").sum().cast(pl.UInt32).alias("n_problems"),
                (~pl.col("known")).sum().cast(pl.UInt32).alias("n_left_out"),
            )
            .with_columns(
                posterior_deviation=pl.when(n_problems > 0).then(
                    pl.col("square").sqrt() / n_problems
                )
            )
            .with_columns(
                credible_low=(pl.col("posterior_mean") - half).clip(min(scores), max(scores)),
                credible_high=(pl.col("posterior_mean") + half).clip(min(scores), max(scores)),
            )
            .sort(*keys, "run")
            .select(*from_safe(keys), *_COLUMNS)
        )

    return run_plan(trajectories, plan)


def _check_outcomes(outcomes: Sequence[float]) -> tuple[float, ...]:
    """Return the outcomes as floats, checked."""
    scores = tuple(float(one) for one in outcomes)
    if len(scores) < 2 or len({*scores}) < len(scores):
        raise ParameterError(f"outcomes == {scores}, must be at least two different numbers.")
    if not all(abs(one) < float("inf") for one in scores):
        raise ParameterError(f"outcomes == {scores}, must be finite.")
    return scores


def _of_counts(lazy: pl.LazyFrame, keys: dict[str, str]) -> pl.LazyFrame:
    """Return how many attempts at each problem are wrong and right."""
    counts = read_counts(lazy, keys | {"problem_id": "problem_id"})
    return counts.select(*keys, run=pl.lit(0), n0=pl.col("n") - pl.col("c"), n1=pl.col("c"))


def _of_attempts(
    lazy: pl.LazyFrame, keys: dict[str, str], value: str, scores: tuple[float, ...]
) -> pl.LazyFrame:
    """Return how many attempts at each problem have each outcome."""
    outcome = pl.col("outcome")

    def unknown(rows: pl.DataFrame) -> DataError:
        found = rows.sort("outcome")["outcome"][0]
        return DataError(
            f"{value!r} holds {found}, expected one of the outcomes {scores}. Hint: name all scores that "
            "an attempt can have in outcomes=(...)."
        )

    is_unknown = outcome.is_not_null() & ~outcome.is_in([*scores])
    return (
        lazy
        .select(
            *to_safe(keys),
            "problem_id",
            pl.lit(0).alias("run"),
            pl.col(value).cast(pl.Float64).fill_nan(None).alias("outcome"),
        )
        .filter(raise_where(pl.struct(is_unknown.alias("broken"), "outcome"), unknown))
        .group_by(*keys, "run", "problem_id")
        .agg(*[(outcome == w).sum().cast(pl.Int64).alias(f"n{j}") for j, w in enumerate(scores)])
    )
