"""Efficiency gain: the ratio of budgets that two methods need for the same accuracy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_fraction,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._exprs import from_safe, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers
from ttsframe.curves.lines import SELECT_HINT
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.clusters import check_cluster
from ttsframe.statistics.problem_values import describe_row, value_and_severity

__all__ = ["efficiency_gain"]

_MATCHED: Final = ("selector", "reduction", "subsets")
"""Columns of `problems` in which a pair agrees, unless they are compared."""

_RESULT: Final[dict[str, pl.DataType]] = {
    "budget_unit": pl.String(),
    "accuracy": pl.Float64(),
    "baseline_budget": pl.Float64(),
    "budget": pl.Float64(),
    "gain": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "status": pl.String(),
    "bound": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
}

_TOLERANCE: Final = 1e-12
_BLOCK_SIZE: Final = 1 << 22
"""Numbers that are drawn at a time for resamples, which bounds memory."""


class _Crossing(NamedTuple):
    """The budgets at which curves, one per row, first reach an accuracy."""

    budget: Floats
    """Interpolated; the first budget if it is reached there, the last if never."""
    is_before: Flags
    """Whether the curve is above the accuracy at the first budget."""
    is_beyond: Flags
    """Whether the accuracy is never reached."""


class _Line(NamedTuple):
    """One curve."""

    table: pl.DataFrame
    """Values and costs in the order of budgets, of the problems that have status "ok" at all."""
    n_problems: int
    """Number of all problems."""
    budget_unit: str | None


def efficiency_gain(
    problems: FrameT,
    /,
    *,
    column: str = "selector",
    baseline: str | float | bool = "majority_vote",
    accuracy: float | None = None,
    by: ColumnNames = (),
    cluster: str | None = None,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> FrameT:
    r"""Measure the ratio of budgets at equal accuracy: the baseline's over the other's.

    "Four times more efficient" compares the budgets at which two curves reach one accuracy, which a
    table of accuracies at equal budgets does not show.

    Parameters
    ----------
    problems
        `problems` at several budgets, as `select_answers` or `add_costs` returns it. With `cost`
        and `cost_unit` the budget is the mean cost of the problems, otherwise `budget`.
    column
        Column whose values are compared. A pair agrees in `selector`, `reduction` and `subsets`,
        except in `column`. If `column` is "selector", a baseline that reads no score is compared
        with every reduction of the other.
    baseline
        The value of `column` that the others are compared with.
    accuracy
        Accuracy at which the curves are compared, in (0, 1); None: the highest of the baseline.
    by
        Columns in which a pair agrees and that define separate rows, for example the model.
    cluster
        Column that groups problems that were drawn together; clusters are then resampled whole. None:
        problems are independent.
    n_resamples
        Number of resamples of the problems for the interval, at least 1.
    confidence_level
        Coverage of the interval, in (0, 1).
    seed
        Seed of the resamples.

    Returns
    -------
    FrameT
        One row per (by, `column`, `selector`, `reduction`, `subsets`), sorted, with

        - `budget_unit` (String): "attempts", or `cost_unit`;
        - `accuracy` (Float64): the accuracy at which the curves are compared;
        - `baseline_budget`, `budget` (Float64): smallest budgets that reach it; null where that is
          outside the range of budgets;
        - `gain` (Float64): `baseline_budget` over `budget`; null unless `status` is "ok";
        - `ci_low`, `ci_high` (Float64): percentile interval; an end is null where the resamples
          give only a bound, and both where all resamples agree, which says nothing about problems
          that were not drawn;
        - `status` (String): "ok"; "at_least" if the other is above the accuracy at its smallest
          budget, or the baseline never reaches it; "at_most" in the opposite case; "unknown" if
          neither reaches it or both are above it at their smallest budgets;
        - `bound` (Float64): the bound of the gain if `status` is "at_least" or "at_most";
        - `n_problems`, `n_left_out` (UInt32): problems with status "ok" at all budgets of both
          curves, which are used, and the others;
        - `n_clusters` (UInt32): clusters of the problems used; only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range, or `by` names a column of the result.
    DataError
        On collection, when no row has the baseline, a problem has several rows at one budget or is in
        several clusters, or a budget is not positive.

    See Also
    --------
    compare : Difference in accuracy at equal budgets.

    Notes
    -----
    Curves are interpolated linearly over the logarithm of the budget, and the first crossing of the
    accuracy counts. A resample draws problems, each with all its values and costs on both curves;
    if `accuracy` is None, it uses the highest accuracy of its own baseline. With clusters it
    draws clusters, and averages over the problems in them.

    References
    ----------
    Snell et al., arXiv:2408.03314, section 5.3, and Liu et al., "Can 1B LLM Surpass 405B LLM?",
    arXiv:2502.06703, on such ratios. Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
    section 13.3.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> problems = pl.DataFrame({
    ...     "problem_id": ["a", "b"] * 6,
    ...     "selector": ["majority_vote"] * 6 + ["best_of_n"] * 6,
    ...     "reduction": [None] * 6 + ["score"] * 6,
    ...     "budget": [1, 1, 4, 4, 16, 16] * 2,
    ...     "value": [0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.2, 0.2, 0.6, 0.6, 0.8, 0.8],
    ...     "status": ["ok"] * 12,
    ... })
    >>> gain = tts.curves.efficiency_gain(problems)
    >>> gain.select("selector", "accuracy", "baseline_budget", "budget", "gain").rows()
    [('best_of_n', 0.6, 16.0, 4.0, 4.0)]
    """
    check_frame(problems, "problems")
    check_positive(n_resamples, "n_resamples")
    check_seed(seed)
    level = check_fraction(confidence_level, "confidence_level")
    if accuracy is not None:
        check_fraction(accuracy, "accuracy")
    taken: set[str] = {*_RESULT, "problem_id", "value", "cost", "cost_unit"}
    check_names(column, "column", taken=taken)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    if column in groups:
        raise ParameterError(f"by names {column!r}, which is compared. Hint: omit it.")
    clusters: tuple[str, ...] = check_cluster(
        cluster, {*taken, "budget", "status", "n_clusters"}, [*groups, column]
    )
    needed = [*groups, *clusters, column, "problem_id", "budget", "value", "status"]
    schema: pl.Schema = require_columns(problems, needed, where="problems", hint=SELECT_HINT)
    matched: list[str] = [
        name for name in _MATCHED if name in schema and name not in {column, *groups}
    ]
    names: list[str] = [*groups, column, *matched]
    line: dict[str, str] = safe_names(names)
    safe = {name: key for key, name in line.items()}
    has_cost = "cost" in schema and "cost_unit" in schema
    comparison = _Comparison(
        line=line,
        compared=safe[column],
        free=safe["reduction"] if column == "selector" and "reduction" in matched else None,
        baseline=baseline,
        accuracy=accuracy,
        n_resamples=n_resamples,
        level=level,
        seed=seed,
        cluster=cluster,
    )
    budget = pl.col("budget").cast(pl.Float64)
    unit = pl.lit("attempts")
    if has_cost:
        unit = pl.col("cost_unit")
    elif "budget_unit" in schema:
        unit = pl.col("budget_unit")
    result = _RESULT if cluster is None else {**_RESULT, "n_clusters": pl.UInt32()}
    dtypes = {**{key: schema[name] for key, name in line.items()}, **result}
    of_cluster = pl.lit(None) if cluster is None else pl.col(cluster)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return (
            lazy
            .select(
                *to_safe(line),
                "problem_id",
                **value_and_severity(),
                nominal=budget,
                cost=pl.col("cost").cast(pl.Float64) if has_cost else budget,
                budget_unit=unit.cast(pl.String),
                cluster=of_cluster,
            )
            .map_batches(lambda rows: _compare_lines(rows, comparison, dtypes), schema=dtypes)
            .select(*from_safe(line), *result)
        )

    return run_plan(problems, plan)


class _Comparison(NamedTuple):
    """What is compared, and how."""

    line: dict[str, str]
    """Columns of a line, safe name to the caller's."""
    compared: str
    """The one whose values are compared."""
    free: str | None
    """The one that is null for a baseline which reads no score, if there is any."""
    baseline: str | float | bool
    accuracy: float | None
    n_resamples: int
    level: float
    seed: int
    cluster: str | None


def _compare_lines(
    rows: pl.DataFrame, comparison: _Comparison, dtypes: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Make the row of each pair."""
    keys = [*comparison.line]
    parts = rows.partition_by(*keys, as_dict=True)
    key_dtypes = {key: dtypes[key] for key in keys}
    order = pl.DataFrame([*parts], schema=key_dtypes, orient="row").sort(keys).rows()
    lines = {key: _line_of(parts[key], comparison) for key in order}
    pairs, compared = [], []
    for key, line in lines.items():
        columns = dict(zip(keys, key, strict=True))
        if columns[comparison.compared] == comparison.baseline:
            continue
        wanted = columns | {comparison.compared: comparison.baseline}
        baseline = lines.get(tuple(wanted.values()))
        if baseline is None and comparison.free is not None:
            baseline = lines.get(tuple((wanted | {comparison.free: None}).values()))
        if baseline is None:
            raise DataError(
                f"{describe_row(columns, comparison.line)}: no row with "
                f"{comparison.line[comparison.compared]} {comparison.baseline!r} to compare it with. "
                "Hint: baseline=... must be an existing value."
            )
        gain, sides = _gain(baseline, line, comparison)
        pairs.append(columns | {"budget_unit": line.budget_unit} | gain)
        compared.append(sides)
    ends = _intervals(compared, comparison)
    gains = [
        pair | {"ci_low": low, "ci_high": high}
        for pair, (low, high) in zip(pairs, ends, strict=True)
    ]
    return pl.DataFrame(gains, schema=dict(dtypes))


def _line_of(rows: pl.DataFrame, comparison: _Comparison) -> _Line:
    """Collect the values and costs of each problem in the order of budgets."""
    n_budgets = rows["nominal"].drop_nulls().n_unique()
    of_problem = (
        rows
        .group_by("problem_id")
        .agg(
            pl.col("value", "cost").sort_by("nominal"),
            pl.len().alias("n_rows"),
            ((pl.col("severity") == 0) & pl.col("cost").is_not_null()).all().alias("is_ok"),
            pl.col("cluster").first(),
            pl.col("cluster").n_unique().alias("n_clusters"),
        )
        .sort("problem_id")
    )
    repeated = of_problem.filter(pl.col("n_rows") > n_budgets)
    if repeated.height:
        row = rows.row(0, named=True)
        raise DataError(
            f"{describe_row(row, comparison.line)}, problem_id {repeated['problem_id'][0]!r}: "
            f"{repeated['n_rows'][0]} rows at {n_budgets} budgets, expected one each. Hint: name the "
            "column that identifies the run in by=(...)."
        )
    several = of_problem.filter(pl.col("n_clusters") > 1)
    if several.height:
        raise DataError(
            f"problem_id {several['problem_id'][0]!r}: in {several['n_clusters'][0]} values of "
            f"{comparison.cluster!r}, expected one. Hint: all rows of a problem must be in one cluster."
        )
    complete = of_problem.filter("is_ok", pl.col("n_rows") == n_budgets)
    return _Line(
        complete.drop("n_rows", "is_ok", "n_clusters"), of_problem.height, rows["budget_unit"][0]
    )


def _gain(
    base: _Line, other: _Line, comparison: _Comparison
) -> tuple[dict[str, object], list[Floats]]:
    """Compare two lines on the problems that both have, and return what the interval resamples."""
    both = base.table.join(other.table, on="problem_id", suffix="_other").sort("problem_id")
    n_all = max(base.n_problems, other.n_problems)
    counts: dict[str, object] = {"n_problems": both.height, "n_left_out": n_all - both.height}
    if not both.height:
        return {"status": "unknown", **counts}, []
    names = ("value", "cost", "value_other", "cost_other")
    sides = [
        both[name].explode(empty_as_null=False).cast(pl.Float64).to_numpy().reshape(both.height, -1)
        for name in names
    ]
    if min(sides[1].min(), sides[3].min()) <= 0:
        raise DataError(
            "a budget or cost is not positive, so it has no logarithm. Hint: filter it out."
        )
    means = [side.mean(axis=0, keepdims=True) for side in sides]
    height, from_base, from_other = _cross_both(means, comparison.accuracy)
    gain = from_base.budget / from_other.budget
    low, high = _bounds(from_base, from_other, gain)
    status = _status(low[0], high[0])
    gains = {
        **counts,
        "accuracy": float(height[0]),
        "baseline_budget": _budget_of(from_base),
        "budget": _budget_of(from_other),
        "gain": float(gain[0]) if status == "ok" else None,
        "status": status,
        "bound": float(gain[0]) if status in {"at_least", "at_most"} else None,
    }
    codes = np.arange(both.height)
    if comparison.cluster is not None:
        _, codes = np.unique(
            both["cluster"].rank("dense").fill_null(0).to_numpy(), return_inverse=True
        )
        gains["n_clusters"] = int(codes.max()) + 1
    return gains, [_by_cluster(side, codes) for side in (*sides, np.ones((both.height, 1)))]


def _by_cluster(values: Floats, codes: Integers) -> Floats:
    """Add up the rows of each cluster, in the order of problems."""
    sums = np.zeros((int(codes.max()) + 1, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums


def _status(low: float, high: float) -> str:
    """Return what is known of a gain from its bounds."""
    if np.isfinite(low):
        return "ok" if np.isfinite(high) else "at_least"
    return "at_most" if np.isfinite(high) else "unknown"


def _cross_both(
    curves: Sequence[Floats], accuracy: float | None
) -> tuple[Floats, _Crossing, _Crossing]:
    """Find where both curves of each resample reach its accuracy."""
    base, base_cost, other, other_cost = curves
    height = base.max(axis=1) if accuracy is None else np.full(len(base), accuracy)
    return height, _cross(base, base_cost, height), _cross(other, other_cost, height)


def _cross(curve: Floats, cost: Floats, height: Floats) -> _Crossing:
    """Find where curves first reach an accuracy."""
    reached = curve >= height[:, None] - _TOLERANCE
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), curve.shape[1] - 1)
    rows = np.arange(len(curve))
    before = np.maximum(first - 1, 0)
    rise = curve[rows, first] - curve[rows, before]
    part = np.ones(len(curve))
    np.divide(height - curve[rows, before], rise, out=part, where=(rise > 0))
    is_beyond: Flags = np.logical_not(reached.any(axis=1))
    part = np.where(is_beyond, 1.0, np.minimum(part, 1.0))
    logs = np.log(cost)
    between = np.exp(logs[rows, before] + part * (logs[rows, first] - logs[rows, before]))
    budget = np.where(part == 1.0, cost[rows, first], between)
    is_before: Flags = (first == 0) & ~is_beyond & (curve[:, 0] > height + _TOLERANCE)
    return _Crossing(budget, is_before, is_beyond)


def _bounds(base: _Crossing, other: _Crossing, gain: Floats) -> tuple[Floats, Floats]:
    """Return the lower and upper bound of each gain, infinite if there is none."""
    low = np.where(base.is_before | other.is_beyond, -np.inf, gain)
    return low, np.where(base.is_beyond | other.is_before, np.inf, gain)


def _budget_of(crossing: _Crossing) -> float | None:
    """Return the budget of the only row, None outside the range of budgets."""
    is_known = not (crossing.is_before[0] or crossing.is_beyond[0])
    return float(crossing.budget[0]) if is_known else None


def _intervals(
    pairs: Sequence[Sequence[Floats]], comparison: _Comparison
) -> list[tuple[float | None, float | None]]:
    """Resample problems, or clusters, and return the percentiles of the gain of each pair."""
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(pairs)
    sizes = [len(sides[0]) if sides else 0 for sides in pairs]
    # The draws depend on the number of units alone, so pairs with equal numbers share them.
    for n_units in {size for size in sizes if size > 1}:
        alike = [i for i, size in enumerate(sizes) if size == n_units]
        found = _resample([pairs[i] for i in alike], n_units, comparison)
        for i, pair_ends in zip(alike, found, strict=True):
            ends[i] = pair_ends
    return ends


def _resample(
    pairs: Sequence[Sequence[Floats]], n_units: int, comparison: _Comparison
) -> list[tuple[float | None, float | None]]:
    """Return the percentiles of the gains of pairs of lines, all on as many units."""
    # The last side of a pair holds the sizes of its units.
    widths = [np.cumsum([0, *[side.shape[1] for side in sides]]) for sides in pairs]
    stacked = [np.concatenate(sides, axis=1) for sides in pairs]
    rng = np.random.default_rng(comparison.seed)
    bounds: list[list[tuple[Floats, Floats]]] = [[] for _ in pairs]
    n_left = comparison.n_resamples
    while n_left:
        n_drawn = min(n_left, max(1, _BLOCK_SIZE // n_units))
        draws = rng.multinomial(n_units, np.full(n_units, 1 / n_units), n_drawn)
        weights = draws.astype(np.float64)
        for i, values in enumerate(stacked):
            sums = weights @ values
            means = sums[:, :-1] / sums[:, -1:]
            curves = [means[:, a:b] for a, b in itertools.pairwise(widths[i][:-1])]
            _, base, other = _cross_both(curves, comparison.accuracy)
            bounds[i].append(_bounds(base, other, base.budget / other.budget))
        n_left -= n_drawn
    return [_percentiles(of_pair, comparison.level) for of_pair in bounds]


def _percentiles(
    bounds: Sequence[tuple[Floats, Floats]], level: float
) -> tuple[float | None, float | None]:
    """Return the percentiles of lower and of upper bounds; None: no bound, or none but one value."""
    lows, highs = (np.concatenate(side) for side in zip(*bounds, strict=True))
    tail = (1.0 - level) / 2.0
    # No interpolation between a number and an infinite bound.
    ends = (
        np.quantile(lows, tail, method="lower"),
        np.quantile(highs, 1.0 - tail, method="higher"),
    )
    if ends[0] == ends[1]:
        return None, None
    low_end, high_end = (float(end) if np.isfinite(end) else None for end in ends)
    return low_end, high_end
