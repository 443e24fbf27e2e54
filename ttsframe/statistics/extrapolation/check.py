"""A check of extrapolation on the held-out attempts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_budgets, check_choices, check_fraction, check_positive
from ttsframe._typing import ColumnNames, Floats
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import holds_counts, require_columns
from ttsframe.statistics.extrapolation.attempts import (
    count_attempts,
    distinct_counts,
    read_attempts,
    with_attempts,
)
from ttsframe.statistics.extrapolation.model import ExtrapolationModel
from ttsframe.statistics.extrapolation.power_law import unbiased_passes
from ttsframe.statistics.extrapolation.registry import MODELS, predict_range

__all__ = ["check_extrapolation"]

_N_HALVINGS: Final = 4

_CHECK_SCHEMA: Final = {
    "model": pl.String(),
    "n_fitted": pl.UInt32(),
    "budget": pl.UInt32(),
    "ratio": pl.Float64(),
    "predicted": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "is_moved": pl.Boolean(),
    "observed": pl.Float64(),
    "error": pl.Float64(),
    "is_covered": pl.Boolean(),
    "n_problems": pl.UInt32(),
    "n_short": pl.UInt32(),
}


def check_extrapolation(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    n_fitted: int | Sequence[int] | None = None,
    n_attempts: int | None = None,
    models: ExtrapolationModel | Sequence[ExtrapolationModel] = (
        "nonparametric",
        "beta_binomial",
        "zero_inflated",
        "power_law",
    ),
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> pl.DataFrame:
    """Fit on the first attempts, predict pass@k for up to all of them, and report the error.

    This is the only evidence on extrapolation within a run: before extrapolating from 64 attempts to
    1,000, see how well 4 attempts predict 64.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` and `is_correct`, or a table of counts, as
        for `fit_pass_at_k`. Counts have no first attempts; a seeded draw puts theirs in an order.
    n_fitted
        Numbers of first attempts to fit on, each at least 2; None: 1/16, 1/8, 1/4 and 1/2 of
        `n_attempts`.
    n_attempts
        Number of graded attempts that a problem needs to be used; None: the smallest number that
        any problem has.
    models
        Models to try, as for `fit_pass_at_k`.
    by
        Columns that tell runs apart; each run gets a check of its own.
    confidence_level
        Nominal coverage of the intervals, in (0, 1).

    Returns
    -------
    pl.DataFrame
        One row per (by, `model`, `n_fitted`, `budget`), sorted:

        - `budget` (UInt32): k, twice `n_fitted`, four times, and so on up to `n_attempts`;
        - `ratio` (Float64): `budget / n_fitted`;
        - `predicted`, `ci_low`, `ci_high` (Float64): pass@k of the fit on the first attempts; null
          without a fit; `is_moved` (Boolean): as `PassAtKFit.predict` returns it;
        - `observed` (Float64): unbiased pass@k from the first `n_attempts`, the mean over the same
          problems;
        - `error` (Float64): `predicted - observed`; `is_covered` (Boolean): whether `observed` lies
          in the interval;
        - `n_problems`, `n_short` (UInt32): problems used, and problems with too few attempts.

    Raises
    ------
    ColumnsError
        If a column is missing, or `is_correct` is not Boolean.
    ParameterError
        If a parameter is invalid, or `by` names a column of the result.
    DataError
        If attempts are not exchangeable, an attempt appears twice, or a run has too few attempts.

    Notes
    -----
    The fitted attempts are among the observed ones, and the problems are the same. An interval allows
    for other problems, so it should cover `observed` more often than its nominal level.

    References
    ----------
    Schaeffer et al. (2025), How Do Large Language Monkeys Get Their Power (Laws)?,
    arXiv:2502.17578, section 5, which backtests estimators of the power law.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 64, seed=0, accuracy=(0.5, 2), keys=True)
    >>> check = tts.statistics.check_extrapolation(run, n_fitted=8, models="beta_binomial")
    >>> check.select("budget", pl.col("predicted", "observed", "error").round(3), "is_covered")
    shape: (3, 5)
    ┌────────┬───────────┬──────────┬───────┬────────────┐
    │ budget ┆ predicted ┆ observed ┆ error ┆ is_covered │
    │ ---    ┆ ---       ┆ ---      ┆ ---   ┆ ---        │
    │ u32    ┆ f64       ┆ f64      ┆ f64   ┆ bool       │
    ╞════════╪═══════════╪══════════╪═══════╪════════════╡
    │ 16     ┆ 0.73      ┆ 0.713    ┆ 0.017 ┆ true       │
    │ 32     ┆ 0.811     ┆ 0.794    ┆ 0.017 ┆ true       │
    │ 64     ┆ 0.87      ┆ 0.86     ┆ 0.01  ┆ true       │
    └────────┴───────────┴──────────┴───────┴────────────┘
    """
    chosen = check_choices(models, "models", get_args(ExtrapolationModel))
    check_fraction(confidence_level, "confidence_level")
    sizes = check_budgets(n_fitted)
    if sizes and sizes[0] < 2:
        raise ParameterError(f"n_fitted == {sizes[0]}, must be at least 2.")
    if n_attempts is not None:
        check_positive(n_attempts, "n_attempts")
    attempts = read_attempts(trajectories, by, taken=("problem_id", *_CHECK_SCHEMA))
    if not holds_counts(trajectories.collect_schema()):
        require_columns(trajectories, ["attempt"])
    groups = attempts.groups()
    tables = [
        _check(
            with_attempts(group),
            sizes=sizes,
            n_attempts=n_attempts,
            models=chosen,
            confidence_level=confidence_level,
        )
        for group in groups
    ]
    return attempts.combine(groups, tables, _CHECK_SCHEMA)


def _check(
    rows: pl.DataFrame,
    *,
    sizes: tuple[int, ...] | None,
    n_attempts: int | None,
    models: Sequence[ExtrapolationModel],
    confidence_level: float,
) -> pl.DataFrame:
    """Check one group."""
    graded = rows.drop_nulls("is_correct")
    counted = count_attempts(graded)
    most = n_attempts or min(counted["n"].to_list(), default=0)
    used = counted.filter(pl.col("n") >= most)
    fitted = sizes or [size for i in range(_N_HALVINGS, 0, -1) if (size := most >> i) > 1]
    if not fitted or 2 * fitted[0] > most or used.is_empty():
        raise DataError(
            f"{counted.height} problems, {used.height} with at least {most} graded attempts: too "
            f"few to fit on {list(fitted) or 2} and predict twice as many. Hint: a larger n_attempts=... "
            "leaves out problems with fewer attempts."
        )
    position = pl.int_range(pl.len()).over("problem", order_by="attempt")
    first = graded.join(used, on="problem", how="semi", nulls_equal=True).with_columns(
        position=position
    )
    counts = distinct_counts(count_attempts(first.filter(pl.col("position") < most)))
    tables = []
    for model in models:
        for size in fitted:
            ratios = [2.0**i for i in range(1, (most // size).bit_length())]
            k: Floats = np.array(ratios) * size
            some = distinct_counts(count_attempts(first.filter(pl.col("position") < size)))
            predicted = predict_range(model, MODELS[model].fit(some, confidence_level), k)
            observed = counts.weight @ unbiased_passes(counts, k) / counts.weight.sum()
            table = pl.DataFrame({
                "budget": k,
                "ratio": ratios,
                "predicted": predicted.passes,
                "ci_low": predicted.low,
                "ci_high": predicted.high,
                "is_moved": predicted.is_moved,
                "observed": observed,
            })
            tables.append(table.with_columns(model=pl.lit(model), n_fitted=size))
    known = pl.concat(tables).with_columns(pl.col("predicted", "ci_low", "ci_high").fill_nan(None))
    return known.with_columns(
        error=pl.col("predicted") - pl.col("observed"),
        is_covered=pl.col("observed").is_between("ci_low", "ci_high"),
        n_problems=used.height,
        n_short=rows["problem"].n_unique() - used.height,
    ).select(pl.col(name).cast(dtype) for name, dtype in _CHECK_SCHEMA.items())
