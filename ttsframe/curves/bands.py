"""Bands that hold a whole curve at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_positive, check_seed
from ttsframe._exprs import run_plan, to_safe
from ttsframe._typing import ColumnNames, Floats, FrameT
from ttsframe.curves.lines import CurveLines, curve_lines
from ttsframe.curves.scaling import scaling_curve
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.clusters import cluster_error, cluster_interval
from ttsframe.statistics.intervals import FLAT

__all__ = ["simultaneous_curve"]

_NO_BAND: Final[dict[str, pl.Expr]] = {
    **dict.fromkeys(("quantile", "df", "most_share"), pl.lit(None, pl.Float64)),
    "is_fractional": pl.lit(value=False),
}


def simultaneous_curve(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
    n_draws: int = 10_000,
    seed: int = 0,
) -> FrameT:
    r"""Average problems into a curve whose intervals hold at all budgets at once.

    The intervals of `scaling_curve` hold at each budget alone. Whoever reads the shape of a curve, such as
    where it flattens, reads all budgets at once, and needs wider ones.

    Parameters
    ----------
    problems, by, replicates, cluster
        As in `scaling_curve`, of which this takes ``include="common"``: the same problems at all budgets.
    confidence_level
        Chance, in (0, 1), that the intervals at all budgets of a line hold at once.
    n_draws
        Number of curves that are drawn, at least 1.
    seed
        Seed of the draws.

    Returns
    -------
    FrameT
        `curve`, as in `scaling_curve`, with simultaneous `ci_low` and `ci_high`, and last

        - `quantile` (Float64): how many standard errors they are wide on each side, the same at all budgets
          of a line; null below two problems (or clusters).

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range.
    ParameterTypeError
        At once, when `n_draws` or `seed` is not an int.
    DataError
        On collection, as `scaling_curve`.

    See Also
    --------
    scaling_curve : Intervals at each budget alone.

    Notes
    -----
    The means at the budgets have standard errors :math:`s_b` and correlations R. The quantile is that of
    :math:`\max_b |T_b|` for T from the multivariate t distribution with correlations R and the degrees of
    freedom of the standard errors, computed from draws, and not below the quantile of a single budget.
    The intervals follow the rules of `scaling_curve` with this quantile.

    References
    ----------
    Montiel Olea and Plagborg-Møller (2019), Simultaneous confidence bands: theory, implementation, and an
    application to SVARs, Journal of Applied Econometrics 34, 1-17, on the plug-in sup-t band.

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
    check_positive(n_draws, "n_draws")
    check_seed(seed)
    lines: CurveLines = curve_lines(
        problems, by=by, replicates=replicates, cluster=cluster, taken=("quantile",)
    )
    names = lines.columns | lines.seeds | lines.clusters
    dtypes = {name: lines.schema[name] for name in lines.groups.values()}
    result = {
        **dtypes,
        **CURVE_SCHEMA,
        **dict(zip(lines.shown, (pl.UInt32(), pl.Float64()), strict=False)),
        "quantile": pl.Float64(),
    }
    result |= {name: lines.schema[name] for name in ("selector", "reduction", "budget")}

    def apply(rows: pl.DataFrame) -> pl.DataFrame:
        options: dict[str, Any] = {"by": [*lines.groups], "replicates": [*lines.seeds]}
        options["cluster"] = None if cluster is None else "cluster"
        curve = scaling_curve(rows, confidence_level=confidence_level, **options)
        own: CurveLines = curve_lines(rows, **options)
        n_units = pl.len().over([*own.columns])
        units = own.units(own.select(rows.lazy()), "common", n_units=n_units).collect()
        line = [*own.columns]
        found = [
            part.select(line).head(1).with_columns(**_band(part, confidence_level, n_draws, seed))
            for part in units.filter(pl.col("severity") == 0).partition_by(line)
        ]
        inputs = pl.concat(found) if found else units.select(line).head(0).with_columns(**_NO_BAND)
        banded = curve.drop("df", strict=False).join(
            inputs, on=line, how="left", nulls_equal=True, maintain_order="left"
        )
        interval = cluster_interval("n_problems", confidence_level, quantile=pl.col("quantile"))
        shown = [*lines.groups, *CURVE_SCHEMA, *lines.shown, "quantile"]
        ends = interval.struct.field("ci_low", "ci_high")
        return banded.with_columns(ends).select(shown).rename(lines.groups)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        read = lazy.select(*to_safe(names), "problem_id", "budget", "value", "status")
        return lines.in_clusters(read).map_batches(
            lambda rows: apply(rows).select(pl.col(name).cast(of) for name, of in result.items()),
            schema=result,
        )

    return run_plan(problems, plan)


def _band(
    units: pl.DataFrame, confidence_level: float, n_draws: int, seed: int
) -> dict[str, pl.Expr]:
    """Return the quantile of one line, and what else `cluster_interval` reads."""
    unit = "cluster" if "cluster" in units.columns else "problem_id"
    index = [*dict.fromkeys((unit, "problem_id"))]
    known = units.sort("budget").pivot(on="budget", index=index, values="value").drop_nulls()
    budgets = [name for name in known.columns if name not in index]
    is_fraction = ~pl.col(budgets).is_in([0.0, 1.0])
    # In an order of their own: sums follow it.
    sums = (
        known
        .sort(budgets)
        .group_by(unit, maintain_order=True)
        .agg(pl.len().cast(pl.Float64), pl.col(budgets).sum())
        .drop(unit)
        .pipe(lambda totals: totals.sort(totals.columns))
        .to_numpy()
    )
    sizes, totals = sums[:, 0], sums[:, 1:]
    _, df, most_share = cluster_error(totals[:, 0], sizes)
    found = {"quantile": float("nan"), "df": df, "most_share": most_share}
    if len(sizes) > 1:
        correlation = _correlation(totals, sizes)
        found["quantile"] = _quantile(correlation, df, confidence_level, n_draws, seed)
    numbers = {name: pl.lit(value, pl.Float64).fill_nan(None) for name, value in found.items()}
    is_fractional = known.select(pl.any_horizontal(is_fraction).any()).item()
    return {**numbers, "is_fractional": pl.lit(is_fractional)}


def _correlation(totals: Floats, sizes: Floats) -> Floats:
    """Correlate the means at the budgets, by CR2, where they vary; of an (n_units, n_budgets) matrix of sums."""
    share = sizes[:, None] / sizes.sum()
    pulls = (totals - totals.sum(axis=0) * share) / sizes.sum() / np.sqrt(1.0 - share)
    error = np.sqrt((pulls**2).sum(axis=0))
    pulls = pulls[:, error > FLAT] / error[error > FLAT]
    correlation: Floats = pulls.T @ pulls
    return correlation


def _quantile(
    correlation: Floats, df: float, confidence_level: float, n_draws: int, seed: int
) -> float:
    """Return how many standard errors hold all means at once."""
    from scipy.special import stdtrit

    single = float(stdtrit(df, (1.0 + confidence_level) / 2.0))
    if not len(correlation):
        return single
    rng = np.random.default_rng(seed)
    normal = rng.multivariate_normal(np.zeros(len(correlation)), correlation, n_draws)
    largest = np.abs(normal).max(axis=1) / np.sqrt(rng.chisquare(df, n_draws) / df)
    return max(single, float(np.quantile(largest, confidence_level)))
