"""The budget from which the accuracy of selection by a score declines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._exprs import name_numbers, run_plan, to_safe
from ttsframe._typing import ColumnNames, Floats, FrameT, Integers
from ttsframe.curves.lines import DEFAULTS, PROBLEM_COLUMNS, CurveLines, curve_lines
from ttsframe.curves.scaling import scaling_curve
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.clusters import cluster_error, sum_by_cluster
from ttsframe.statistics.paired import TIE, paired_inference
from ttsframe.statistics.problem_values import SEVERITY, value_and_severity
from ttsframe.verifier.tables import CLUSTERED, Schema

__all__ = ["over_optimization"]

_DROP: Final[Schema] = {
    "peak_budget": pl.UInt32,
    "drop": pl.Float64,
    "drop_standard_error": pl.Float64,
    "drop_ci_low": pl.Float64,
    "drop_ci_high": pl.Float64,
    "drop_p_value": pl.Float64,
    "is_turned_down": pl.Boolean,
}


def over_optimization(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Find the budget from which more attempts reduce accuracy.

    With more attempts to choose from, an imperfect verifier is more likely to find a wrong one with
    a high score, so best-of-N accuracy first rises and then declines. By chance, the highest point
    of a curve is always somewhat above its end; the interval shows whether the decline exceeds that.

    Parameters
    ----------
    problems
        `problems`, as in `scaling_curve`, at several budgets, for example from
        ``select_answers(trajectories, selectors="best_of_n", budgets=[1, 4, 16])``.
    by
        Columns that define separate curves, for example the model or the difficulty level.
    cluster
        As in `scaling_curve`.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, as in `scaling_curve` with `include="common"`, one row per (by, `selector`,
        `reduction`, `budget`, `subsets`), sorted, with

        - `peak_budget` (dtype of `budget`): the best budget up to this one, the smallest of equally
          good ones;
        - `drop` (Float64 in [0, 1]): accuracy at the peak minus accuracy at this budget;
        - `drop_standard_error` (Float64): over problems, paired;
        - `drop_ci_low`, `drop_ci_high` (Float64 in [-1, 1]), `drop_p_value` (Float64 in [0, 1]):
          interval of the drop and two-sided test, by the rules of `compare`, corrected for the
          choice of the peak;
        - `is_turned_down` (Boolean): whether that interval is above 0, so accuracy declines. The row
          of the largest budget is the result for the curve.

        Error, interval and test of a drop are null at a peak and below two problems.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.
    DataError
        On collection, when a problem has several rows at one budget of a curve.

    Notes
    -----
    With budgets :math:`b_1 < \dots < b_m` and values :math:`x_{qb}` of problem q, the drop at b is
    the mean of :math:`x_{q b^*} - x_{qb}` with :math:`b^*` the best budget up to b. Intervals have
    the level :math:`1 - \alpha / (m - 1)` and p-values are multiplied by :math:`m - 1`
    (Bonferroni), so a row is valid for any budget of the peak, including the one chosen. In the
    simulations of flat curves in the tests, the last row reports a decline in less than 2.5 %.

    References
    ----------
    Cobbe et al. (2021), Training Verifiers to Solve Math Word Problems, arXiv:2110.14168, section
    4.2, where best-of-N accuracy declines beyond 400 attempts. Gao et al. (2023), Scaling Laws for Reward
    Model Overoptimization, arXiv:2210.10760.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> values = {1: [0.0] * 8 + [1.0] * 4, 2: [1.0] * 12, 4: [0.0] * 10 + [1.0] * 2}
    >>> problems = pl.DataFrame([
    ...     {"problem_id": q, "budget": budget, "value": value, "status": "ok"}
    ...     for budget, of_budget in values.items()
    ...     for q, value in enumerate(of_budget)
    ... ]).with_columns(selector=pl.lit("best_of_n"), reduction=pl.lit("last"))
    >>> curve = tts.verifier.over_optimization(problems)
    >>> curve.select("budget", "peak_budget", pl.col("drop").round(3), "is_turned_down").rows()
    [(1, 1, 0.0, False), (2, 2, 0.0, False), (4, 2, 0.833, True)]
    """
    check_fraction(confidence_level, "confidence_level")
    lines: CurveLines = curve_lines(problems, by=by, cluster=cluster, taken=_DROP)
    schema: pl.Schema = lines.schema
    groups: dict[str, str] = lines.groups
    optional: list[str] = [name for name in DEFAULTS if name in schema]
    own = ("selector", "reduction", "budget", *optional)
    result: dict[str, pl.DataType | type[pl.DataType]] = {
        **{name: schema[name] for name in groups.values()},
        **CURVE_SCHEMA,
        **(CLUSTERED if cluster is not None else {}),
        **_DROP,
        **{name: schema[name] for name in own},
        "peak_budget": schema["budget"],
    }

    own_cluster: str | None = next(iter(lines.clusters), None)

    def apply(rows: pl.DataFrame) -> pl.DataFrame:
        line: list[str] = [*lines.columns]
        return (
            scaling_curve(
                rows.lazy(), by=[*groups], cluster=own_cluster, confidence_level=confidence_level
            )
            .collect()
            .join(
                _drops(rows, line, schema["budget"], confidence_level),
                on=[*line, "budget"],
                how="left",
                nulls_equal=True,
                maintain_order="left",
            )
            .rename(groups)
            .select(pl.col(name).cast(dtype) for name, dtype in result.items())
        )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        read = lazy.select(*to_safe(groups | lines.clusters), *PROBLEM_COLUMNS, *optional)
        return read.map_batches(apply, schema=result)

    return run_plan(problems, plan)


def _drops(
    rows: pl.DataFrame, line: list[str], budget: pl.DataType, confidence_level: float
) -> pl.DataFrame:
    """Return the drop at each budget of each line from the best budget up to it."""
    # `scaling_curve` has checked that each problem has one row per budget.
    clusters = [name for name in ("cluster",) if name in rows.columns]
    # As in the curve, a budget that no problem reaches is left out of what all must have.
    is_reached = (pl.col("severity") != SEVERITY["short"]).any().over(*line, "budget")
    valued = rows.select(*line, *clusters, "problem_id", "budget", **value_and_severity()).filter(
        is_reached
    )
    sums: dict[str, pl.DataType | type[pl.DataType]] = {
        "budget": budget,
        "peak_budget": budget,
        **dict.fromkeys(("difference", "standard_error", "df", "gained", "lost"), pl.Float64),
        **dict.fromkeys(("n_pairs", "n_units", "n_unequal", "n_wins", "n_losses"), pl.Int64),
        "n_others": pl.Int64,
        "is_fractional": pl.Boolean,
    }
    tables = [pl.DataFrame(schema={**{name: valued.schema[name] for name in line}, **sums})]
    for part in valued.partition_by(line, maintain_order=True):
        budgets = part["budget"].unique().sort()
        row, column = (name_numbers(part[name]).to_numpy() for name in ("problem_id", "budget"))
        values = np.full((int(row.max()) + 1, len(budgets)), np.nan)
        values[row, column] = part["value"].to_numpy()
        of_problem = np.arange(len(values))
        if clusters:
            of_problem[row] = name_numbers(part["cluster"]).to_numpy()
        is_known = ~np.isnan(values).any(axis=1)
        values, of_problem = values[is_known], of_problem[is_known]
        if not len(values):
            continue
        table = pl.DataFrame([*_sums(values, of_problem, budgets.to_list())], schema=sums)
        tables.append(part.select(line).head(1).join(table, how="cross"))
    drops = pl.concat(tables)
    parts = drops.partition_by("n_others") or [drops]
    inferred = pl.concat([
        _with_inference(part, confidence_level, is_clustered=bool(clusters)) for part in parts
    ])
    return inferred.select(*line, "budget", *_DROP)


def _sums(values: Floats, clusters: Integers, budgets: list[object]) -> Iterator[dict[str, object]]:
    """Yield the input of `paired_inference` for each budget of an (n_problems, n_budgets) matrix."""
    n_problems, n_budgets = values.shape
    accuracy = values.mean(axis=0)
    is_fractional = bool(((values != 0.0) & (values != 1.0)).any())
    peak = 0
    for i in range(n_budgets):
        # Equal means can differ by rounding.
        if accuracy[i] > accuracy[peak] + TIE:
            peak = i
        drop = values[:, peak] - values[:, i]
        drop[np.abs(drop) <= TIE] = 0.0
        totals, sizes = sum_by_cluster(drop, clusters)
        spread = cluster_error(totals, sizes)
        has_two = len(sizes) > 1
        yield {
            "budget": budgets[i],
            "peak_budget": budgets[peak],
            "difference": max(float(drop.mean()), 0.0),
            "standard_error": spread.standard_error if has_two else None,
            "df": spread.df if has_two else None,
            "gained": float(drop[drop > 0].sum()),
            "lost": float(-drop[drop < 0].sum()),
            "n_pairs": n_problems,
            "n_units": len(sizes),
            "n_unequal": int((np.abs(totals) > TIE).sum()),
            "n_wins": int((drop > 0).sum()),
            "n_losses": int((drop < 0).sum()),
            "n_others": n_budgets - 1,
            "is_fractional": is_fractional,
        }


def _with_inference(
    sums: pl.DataFrame, confidence_level: float, *, is_clustered: bool
) -> pl.DataFrame:
    """Add interval and test of the drops of curves with equally many budgets."""
    n_others = max(sums["n_others"].to_list(), default=1) or 1
    level = 1.0 - (1.0 - confidence_level) / n_others
    inference = paired_inference(confidence_level=level, is_clustered=is_clustered)
    is_drop = pl.col("budget") != pl.col("peak_budget")
    return sums.with_columns(
        pl.col("difference").alias("drop"),
        *[
            pl.when(is_drop).then(expression).alias(name)
            for name, expression in {
                "drop_standard_error": pl.col("standard_error"),
                "drop_ci_low": inference["ci_low"],
                "drop_ci_high": inference["ci_high"],
                "drop_p_value": (inference["p_value"] * n_others).clip(upper_bound=1.0),
            }.items()
        ],
    ).with_columns(is_turned_down=is_drop & (pl.col("drop_ci_low") > 0.0))
