"""Bands that hold a whole curve at once."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_positive, check_seed
from ttsframe._exprs import run_plan, to_safe
from ttsframe._typing import ColumnNames, Floats, FrameT
from ttsframe.curves.lines import CurveLines, curve_lines
from ttsframe.curves.scaling import scaling_curve
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.intervals import FEW, FLAT, wilson_ends

__all__ = ["simultaneous_curve"]

_DRAWS: Final = 1 << 22
"""Numbers in memory at a time."""


def simultaneous_curve(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    confidence_level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> FrameT:
    r"""Average problems into a curve whose intervals hold at all budgets at once.

    The intervals of `scaling_curve` hold at each budget alone. Whoever reads the shape of a curve, such as
    where it flattens, reads all budgets at once, and needs wider ones.

    Parameters
    ----------
    problems, by, replicates
        As in `scaling_curve`, of which this takes ``include="common"``: the same problems at all budgets.
    confidence_level
        Chance, in (0, 1), that the intervals at all budgets of a line hold at once.
    n_resamples
        Number of resamples of the problems, at least 1.
    seed
        Seed of the resamples.

    Returns
    -------
    FrameT
        `curve`, as in `scaling_curve`, with simultaneous `ci_low` and `ci_high`, and last

        - `quantile` (Float64): how many standard errors they are wide on each side, the same at all budgets
          of a line; null below two problems.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range.
    ParameterTypeError
        At once, when `n_resamples` or `seed` is not an int.
    DataError
        On collection, as `scaling_curve`.

    See Also
    --------
    scaling_curve : Intervals at each budget alone.

    Notes
    -----
    With means :math:`m_b` and standard errors :math:`s_b` at the budgets, the quantile is that of
    :math:`\max_b |m^*_b - m_b| / s_b` over resamples of the problems, times :math:`t_{Q-1} / z` for few
    problems, and not below the quantile of a single budget. The intervals follow the rules of
    `scaling_curve` with this quantile.

    References
    ----------
    Montiel Olea and Plagborg-Møller (2019), Simultaneous confidence bands: theory, implementation, and an
    application to SVARs, Journal of Applied Econometrics 34, 1-17, section 3.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 16, seed=0, keys=True)
    >>> problems = tts.select_answers(run, selectors="majority_vote", budgets=[1, 4, 16])
    >>> curve = tts.curves.simultaneous_curve(problems)
    >>> curve.select("budget", "accuracy", "quantile").row(0)[:2]
    (1, 0.59)
    >>> bool((curve["ci_low"] < tts.scaling_curve(problems)["ci_low"]).all())
    True
    """
    check_fraction(confidence_level, "confidence_level")
    check_positive(n_resamples, "n_resamples")
    check_seed(seed)
    lines: CurveLines = curve_lines(problems, by=by, replicates=replicates, taken=("quantile",))
    names = lines.columns | lines.seeds
    dtypes = {name: lines.schema[name] for name in lines.groups.values()}
    result = {**dtypes, **CURVE_SCHEMA, "quantile": pl.Float64()}
    result |= {name: lines.schema[name] for name in ("selector", "reduction", "budget")}

    def apply(rows: pl.DataFrame) -> pl.DataFrame:
        by, seeds = [*lines.groups], [*lines.seeds]
        curve = scaling_curve(rows, by=by, replicates=seeds, confidence_level=confidence_level)
        own: CurveLines = curve_lines(rows, by=by, replicates=seeds)
        n_units = pl.len().over([*own.columns])
        units = own.units(own.select(rows.lazy()), "common", n_units=n_units).collect()
        line = [*own.columns]
        found = [
            part
            .select(line)
            .head(1)
            .with_columns(**_band(part, confidence_level, n_resamples, seed))
            for part in units.filter(pl.col("severity") == 0).partition_by(line)
        ]
        inputs = (
            pl.concat(found)
            if found
            else units
            .select(line)
            .head(0)
            .with_columns(quantile=pl.lit(None, pl.Float64), is_fractional=pl.lit(value=False))
        )
        banded = curve.join(inputs, on=line, how="left", nulls_equal=True, maintain_order="left")
        return _with_ends(banded).drop("is_fractional").rename(lines.groups)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        read = lazy.select(*to_safe(names), "problem_id", "budget", "value", "status")
        return read.map_batches(
            lambda rows: apply(rows).select(pl.col(name).cast(of) for name, of in result.items()),
            schema=result,
        )

    return run_plan(problems, plan)


def _band(
    units: pl.DataFrame, confidence_level: float, n_resamples: int, seed: int
) -> dict[str, pl.Expr]:
    """Return the quantile of one line, and whether it has fractions."""
    wide = units.sort("budget").pivot(on="budget", index="problem_id", values="value")
    # In an order of their own: sums follow it.
    values = (
        wide.drop("problem_id").drop_nulls().pipe(lambda kept: kept.sort(kept.columns)).to_numpy()
    )
    quantile = _quantile(values, confidence_level, n_resamples, seed)
    is_fractional = bool(((values != 0.0) & (values != 1.0)).any())
    return {"quantile": pl.lit(quantile, pl.Float64), "is_fractional": pl.lit(is_fractional)}


def _quantile(values: Floats, confidence_level: float, n_resamples: int, seed: int) -> float | None:
    """Return how many standard errors hold all columns of an (n_problems, n_budgets) matrix at once."""
    from scipy.special import stdtrit

    n_problems = len(values)
    if n_problems < 2:
        return None
    # Equal rows are drawn as one, in their order, so that the order of problems does not matter.
    rows, copies = np.unique(values, axis=0, return_counts=True)
    spread = values.std(axis=0, ddof=1) / np.sqrt(n_problems)
    is_spread = spread > FLAT
    upper = (1.0 + confidence_level) / 2.0
    single = float(stdtrit(n_problems - 1, upper))
    if not is_spread.any():
        return single
    rows, spread = rows[:, is_spread], spread[is_spread]
    mean = copies @ rows / n_problems
    rng = np.random.default_rng(seed)
    largest = np.empty(n_resamples)
    step = max(1, _DRAWS // len(rows))
    for start in range(0, n_resamples, step):
        part = largest[start : start + step]
        counts = rng.multinomial(n_problems, copies / n_problems, size=part.size)
        part[:] = np.abs((counts @ rows / n_problems - mean) / spread).max(axis=1)
    scale = single / NormalDist().inv_cdf(upper)
    return max(single, float(np.quantile(largest, confidence_level)) * scale)


def _with_ends(banded: pl.DataFrame) -> pl.DataFrame:
    """Replace the interval by one as many standard errors wide as the quantile."""
    n, mean, quantile = (
        pl.col("n_problems").cast(pl.Float64),
        pl.col("accuracy"),
        pl.col("quantile"),
    )
    low, high = wilson_ends(mean * n, n, quantile)
    half = quantile * pl.col("standard_error")
    is_student = pl.col("is_fractional") & (pl.min_horizontal(mean, 1.0 - mean) * n >= FEW)
    ends = {
        "ci_low": pl.when(is_student).then(mean - half).otherwise(low),
        "ci_high": pl.when(is_student).then(mean + half).otherwise(high),
    }
    return banded.with_columns(**{name: end.clip(0.0, 1.0) for name, end in ends.items()})
