"""Efficiency gain: how many times less one method spends than another for the same accuracy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import (
    check_fraction,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.problem_values import describe_row, value_and_severity

__all__ = ["efficiency_gain"]

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_MATCHED: Final = ("selector", "reduction", "subsets")
"""Columns of `problems` that must agree, unless they are what is compared."""

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
_CELLS: Final = 1 << 22
"""Resamples are drawn in blocks of about so many numbers."""


class _Crossing(NamedTuple):
    """Where curves, one per row, first reach an accuracy."""

    budget: Floats
    """Smallest budget, interpolated; the first where it is reached at once, the last where never."""
    is_before: Flags
    """Reached with something to spare at the first budget: the true place is below it."""
    is_beyond: Flags
    """Never reached."""


class _Line(NamedTuple):
    """One curve: problems that have status "ok" throughout, and all it was asked about."""

    budgets: list[float]
    table: pl.DataFrame
    n_problems: int


def efficiency_gain(
    problems: FrameT,
    /,
    *,
    column: str = "selector",
    baseline: str | float | bool = "majority_vote",
    accuracy: float | None = None,
    by: ColumnNames = (),
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> FrameT:
    r"""Give the ratio of budgets at equal accuracy: the baseline's over the other's.

    "Four times more efficient" is a statement about two curves read from left to right at one
    height, which a table of accuracies at equal budgets does not make.

    Parameters
    ----------
    problems
        `problems` at several budgets, as `select_answers` or `add_costs` makes it: with `cost`
        and `cost_unit` the mean of what problems cost is the budget, else `budget`.
    column
        Column whose values are compared. Where it is none of these, a pair agrees in `selector`,
        `reduction` and `subsets`; where it is `selector`, a baseline that reads no score is compared
        with every reduction of the other.
    baseline
        The value of `column` that the others are compared with.
    accuracy
        Height at which curves are read, in (0, 1); None: the highest that the baseline reaches.
    by
        Columns in which a pair agrees and that get rows of their own, such as the model.
    n_resamples
        How often problems are drawn with replacement for the interval, at least 1.
    confidence_level
        Coverage of the interval, in (0, 1).
    seed
        Seed of these draws.

    Returns
    -------
    FrameT
        One row per (by, `column`, `selector`, `reduction`, `subsets`), sorted, which has:

        - `budget_unit` (String): "attempts", or `cost_unit`;
        - `accuracy` (Float64): the height;
        - `baseline_budget`, `budget` (Float64): smallest budgets that reach it; null where that is
          beyond the budgets there are;
        - `gain` (Float64): the first over the second; null unless `status` is "ok";
        - `ci_low`, `ci_high` (Float64): percentile interval; an end is null where the resamples at
          it say no more than a bound;
        - `status` (String): "ok"; "at_least", the other is above it at its smallest budget, or the
          baseline never reaches it; "at_most", the other way round; "unknown", both never reach it
          or both are above it from the start;
        - `bound` (Float64): what the gain is then at least, or at most;
        - `n_problems`, `n_left_out` (UInt32): problems with status "ok" at all budgets of both, over
          which all this is, and the others.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible, or `by` names a column of the result.
    DataError
        On collection, when no row has the baseline, a problem has several rows at one budget, or a
        budget is not above 0.

    See Also
    --------
    compare : The difference in accuracy at equal budgets.

    Notes
    -----
    Curves are interpolated linearly over the logarithm of the budget, and read where they first
    reach the height. A resample draws problems, each with all its values and costs on both curves,
    and where `accuracy` is None reads them at the height of its own baseline.

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
    taken = {*_RESULT, "problem_id", "value", "cost", "cost_unit"}
    check_names(column, "column", taken=taken)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    if column in groups:
        raise ParameterError(f"by names {column!r}, which is what is compared. Hint: leave it out.")
    needed = [*groups, column, "problem_id", "budget", "value", "status"]
    schema: pl.Schema = require_columns(
        problems,
        needed,
        where="problems",
        hint="tts.select_answers(trajectories, budgets=[...]) makes this table.",
    )
    matched: list[str] = [
        name for name in _MATCHED if name in schema and name not in {column, *groups}
    ]
    names: list[str] = [*groups, column, *matched]
    line: dict[str, str] = {f"part{i}": name for i, name in enumerate(names)}
    has_cost = "cost" in schema and "cost_unit" in schema
    question = _Question(
        line=line,
        compared=f"part{len(groups)}",
        free=f"part{names.index('reduction')}"
        if column == "selector" and "reduction" in matched
        else None,
        baseline=baseline,
        accuracy=accuracy,
        n_resamples=n_resamples,
        level=level,
        seed=seed,
    )
    budget = pl.col("budget").cast(pl.Float64)
    unit = pl.col("cost_unit") if has_cost else pl.lit("attempts")
    if "budget_unit" in schema and not has_cost:
        unit = pl.col("budget_unit")

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        narrow = lazy.select(
            *[pl.col(name).alias(part) for part, name in line.items()],
            "problem_id",
            **value_and_severity(),
            nominal=budget,
            cost=pl.col("cost").cast(pl.Float64) if has_cost else budget,
            budget_unit=unit.cast(pl.String),
        )
        dtypes = {**{part: schema[name] for part, name in line.items()}, **_RESULT}
        return narrow.map_batches(
            lambda rows: _table(rows, question, dtypes), schema=dtypes
        ).select(*[pl.col(part).alias(name) for part, name in line.items()], *_RESULT)

    return run_plan(problems, plan)


class _Question(NamedTuple):
    """What is compared, at which height, and how the interval is made."""

    line: dict[str, str]
    compared: str
    free: str | None
    baseline: str | float | bool
    accuracy: float | None
    n_resamples: int
    level: float
    seed: int


def _table(
    rows: pl.DataFrame, question: _Question, dtypes: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Make the row of each pair."""
    lines = rows.sort(*question.line, "problem_id").partition_by(
        *question.line, as_dict=True, maintain_order=True
    )
    parts = [*question.line]
    place_of = parts.index(question.compared)
    found = []
    for key, of_line in lines.items():
        if key[place_of] == question.baseline:
            continue
        wanted = [*key]
        wanted[place_of] = question.baseline
        base = lines.get(tuple(wanted))
        if base is None and question.free is not None:
            wanted[parts.index(question.free)] = None
            base = lines.get(tuple(wanted))
        if base is None:
            raise DataError(
                f"{describe_row(dict(zip(parts, key, strict=True)), question.line)}: no row with "
                f"{question.line[question.compared]} {question.baseline!r} to compare it with. Hint: "
                "baseline=... names a value that is there."
            )
        gain = _gain(_line_of(base, question), _line_of(of_line, question), question)
        unit = of_line["budget_unit"][0]
        found.append(dict(zip(parts, key, strict=True)) | {"budget_unit": unit} | gain)
    return pl.DataFrame(found, schema=dict(dtypes))


def _line_of(rows: pl.DataFrame, question: _Question) -> _Line:
    """Collect each problem's values and costs in the order of budgets."""
    budgets = rows["nominal"].unique().sort().drop_nulls().to_list()
    of_problem = (
        rows
        .group_by("problem_id")
        .agg(
            pl.col("value", "cost").sort_by("nominal"),
            pl.len().alias("n_rows"),
            ((pl.col("severity") == 0) & pl.col("cost").is_not_null()).all().alias("is_ok"),
        )
        .sort("problem_id")
    )
    twice = of_problem.filter(pl.col("n_rows") > len(budgets))
    if twice.height:
        row = rows.row(0, named=True)
        raise DataError(
            f"{describe_row(row, question.line)}, problem_id {twice['problem_id'][0]!r}: "
            f"{twice['n_rows'][0]} rows at {len(budgets)} budgets, expected one each. Hint: name the "
            "column that tells runs apart in by=(...)."
        )
    complete = of_problem.filter("is_ok", pl.col("n_rows") == len(budgets))
    return _Line(budgets, complete.drop("n_rows", "is_ok"), of_problem.height)


def _gain(base: _Line, other: _Line, question: _Question) -> dict[str, object]:
    """Compare two lines on the problems that both have."""
    both = base.table.join(other.table, on="problem_id", suffix="_other").sort("problem_id")
    n_all = max(base.n_problems, other.n_problems)
    counts: dict[str, object] = {"n_problems": both.height, "n_left_out": n_all - both.height}
    if not both.height:
        return {"status": "unknown", **counts}
    names = ("value", "cost", "value_other", "cost_other")
    sides = [
        both[name].explode(empty_as_null=False).cast(pl.Float64).to_numpy().reshape(both.height, -1)
        for name in names
    ]
    if min(sides[1].min(), sides[3].min()) <= 0:
        raise DataError(
            "a budget or cost is not above 0, and has no logarithm. Hint: filter it out."
        )
    means = [side.mean(axis=0, keepdims=True) for side in sides]
    height, from_base, from_other = _read(means, question.accuracy)
    gain = from_base.budget / from_other.budget
    low, high = _limits(from_base, from_other, gain)
    status = "unknown"
    if np.isfinite(low[0]) or np.isfinite(high[0]):
        status = "ok" if low[0] == high[0] else "at_least" if np.isfinite(low[0]) else "at_most"
    ends = _interval(sides, question)
    return {
        **counts,
        "accuracy": float(height[0]),
        "baseline_budget": _known(from_base),
        "budget": _known(from_other),
        "gain": float(gain[0]) if status == "ok" else None,
        "status": status,
        "bound": float(gain[0]) if status in {"at_least", "at_most"} else None,
        "ci_low": ends[0],
        "ci_high": ends[1],
    }


def _read(curves: Sequence[Floats], accuracy: float | None) -> tuple[Floats, _Crossing, _Crossing]:
    """Read both curves of each resample at its height."""
    base, base_cost, other, other_cost = curves
    height = base.max(axis=1) if accuracy is None else np.full(len(base), accuracy)
    return height, _cross(base, base_cost, height), _cross(other, other_cost, height)


def _cross(curve: Floats, cost: Floats, height: Floats) -> _Crossing:
    """Find where curves first reach their height."""
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


def _limits(base: _Crossing, other: _Crossing, gain: Floats) -> tuple[Floats, Floats]:
    """Return what each gain is at least and at most; infinite where nothing is known."""
    low = np.where(base.is_before | other.is_beyond, -np.inf, gain)
    return low, np.where(base.is_beyond | other.is_before, np.inf, gain)


def _known(crossing: _Crossing) -> float | None:
    """Return the budget of the only row, if it is within the budgets there are."""
    is_known = not (crossing.is_before[0] or crossing.is_beyond[0])
    return float(crossing.budget[0]) if is_known else None


def _interval(sides: Sequence[Floats], question: _Question) -> tuple[float | None, float | None]:
    """Resample problems, and take the percentiles of the gain."""
    n_problems = len(sides[0])
    if n_problems < 2:
        return None, None
    widths = np.cumsum([0, *[side.shape[1] for side in sides]])
    stacked = np.concatenate(sides, axis=1)
    rng = np.random.default_rng(question.seed)
    lows, highs, n_left = [], [], question.n_resamples
    while n_left:
        n_drawn = min(n_left, max(1, _CELLS // n_problems))
        weights = rng.multinomial(n_problems, np.full(n_problems, 1 / n_problems), n_drawn)
        means = weights.astype(np.float64) @ stacked / n_problems
        curves = [means[:, a:b] for a, b in itertools.pairwise(widths)]
        _, base, other = _read(curves, question.accuracy)
        low, high = _limits(base, other, base.budget / other.budget)
        lows.append(low)
        highs.append(high)
        n_left -= n_drawn
    tail = (1.0 - question.level) / 2.0
    # No interpolation: an end between a number and no bound is no bound.
    ends = (
        np.quantile(np.concatenate(lows), tail, method="lower"),
        np.quantile(np.concatenate(highs), 1.0 - tail, method="higher"),
    )
    low_end, high_end = (float(end) if np.isfinite(end) else None for end in ends)
    return low_end, high_end
