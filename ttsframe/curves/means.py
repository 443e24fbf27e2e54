"""Means of problems at the points of a curve, on arrays of budgets by problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._typing import Flags, Floats, Integers, ProblemSet
from ttsframe.curves.lines import LEFT_OUT, CurveLines
from ttsframe.statistics.clusters import cluster_interval, cluster_spread
from ttsframe.statistics.problem_values import SEVERITY, mean_interval

_SHORT: Final = SEVERITY["short"]
_ABSENT: Final = -1


class _Units(NamedTuple):
    """Problems of a line, in one half and level: columns of arrays (n_budgets, n_units), sorted by group."""

    names: pl.DataFrame
    """One row per group: the columns of the line, and `level`."""
    line: Integers
    """(n_groups,), the first group of the same line."""
    group: Integers
    problem: Integers
    """The problem among those of all groups, ascending."""
    fold: Integers
    budgets: pl.Series
    severity: Integers
    """-1: no row."""
    values: dict[str, Floats]
    """`value`, and what is averaged beside it; NaN for none."""
    caveats: pl.Series
    caveat: Integers
    """(n_units,): 0 for none, 1 for the first of `caveats`."""
    cluster: Integers | None


def average_points(
    rows: pl.LazyFrame,
    lines: CurveLines,
    include: ProblemSet,
    confidence_level: float,
    *,
    also: Sequence[str] = (),
    has_levels: bool = False,
) -> pl.LazyFrame:
    """Average the rows of `CurveLines.select` at each point: each half, and then the halves."""
    # With levels, rows have `fold`, `level` and `caveat`. `accuracy` is the mean of `value`, and a column
    # of `also` is averaged over the same problems.
    numbers = ["accuracy", "total", "n_each", "standard_error", *also]
    counts = ["n_problems", *LEFT_OUT]
    levels = {"level": pl.UInt32()} if has_levels else {}
    schema = {
        **{key: lines.schema[name] for key, name in lines.columns.items()},
        **levels,
        "budget": lines.schema["budget"],
        **dict.fromkeys(numbers, pl.Float64()),
        "is_fractional": pl.Boolean(),
        **dict.fromkeys(counts, pl.UInt32()),
        "caveat": pl.String(),
    }
    if lines.cluster is None:
        interval = mean_interval("n_each", confidence_level)
    else:
        interval = cluster_interval("n_each", confidence_level)
        schema |= {"df": pl.Float64(), "most_share": pl.Float64(), "n_clusters": pl.UInt32()}

    def average(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.is_empty():
            return pl.DataFrame(schema=schema)
        averaged = _average(_lay_out(frame, lines, include, also, [*levels]), include, also)
        return averaged.select(pl.col(name).cast(dtype) for name, dtype in schema.items())

    averages = lines.in_clusters(rows).map_batches(average, schema=schema)
    has_two = pl.col("n_problems") > 1
    return averages.with_columns(pl.when(has_two).then(interval).struct.field("ci_low", "ci_high"))


def _numbers(column: pl.Series) -> Integers:
    """Return numbers of the values of a column, 0 for null; those of texts and numbers in their order."""
    if column.null_count() == len(column):
        return np.zeros(len(column), dtype=np.int64)
    if column.dtype.is_numeric():
        ranks: Integers = column.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        return ranks
    if column.dtype == pl.String:
        # With categories of its own, so that the texts are freed with the plan.
        column = column.cast(pl.Categorical(pl.Categories.random("ttsframe", pl.UInt32)))
    distinct = column.drop_nulls().unique(maintain_order=True)
    if isinstance(column.dtype, pl.Categorical):
        distinct = distinct.gather(distinct.cast(pl.String).arg_sort())
        codes = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy() + 1
        number: Integers = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        number[distinct.to_physical().cast(pl.Int64).to_numpy() + 1] = np.arange(len(distinct)) + 1
        of_row: Integers = number[codes]
        return of_row
    known = pl.DataFrame({"value": distinct}).with_row_index("number", 1)
    rows = column.alias("value").to_frame()
    numbered = rows.join(known, on="value", how="left", maintain_order="left")
    numbers: Integers = numbered["number"].cast(pl.Int64).fill_null(0).to_numpy()
    return numbers


def _compress(keys: Integers) -> tuple[Integers, int]:
    """Return numbers from 0 in the order of the keys, equal ones for equal keys, and how many there are."""
    size = int(keys.max()) + 1
    if _is_sparse(keys, size):
        distinct, numbers = np.unique(keys, return_inverse=True)
        return numbers, len(distinct)
    occurs = np.bincount(keys, minlength=size) > 0
    if occurs.all():
        return keys, size
    number: Integers = np.cumsum(occurs) - 1
    return number[keys], int(number[-1]) + 1


def _is_sparse(keys: Integers, size: int) -> bool:
    return size > 8 * len(keys) + 1_000_000


def has_repeated(keys: Integers) -> bool:
    """Return whether two keys are equal."""
    size = int(keys.max()) + 1
    if _is_sparse(keys, size):
        return len(np.unique(keys)) < len(keys)
    return bool((np.bincount(keys) > 1).any())


def first_rows(numbers: Integers, n: int) -> Integers:
    """Return a row of each number."""
    first = np.empty(n, dtype=np.int64)
    first[numbers] = np.arange(len(numbers))
    return first


def number_rows(
    frame: pl.DataFrame, names: Iterable[str], within: Integers | None = None
) -> tuple[Integers, int]:
    """Return numbers from 0 of the distinct values of some columns, within earlier numbers, and how many."""
    numbers, n = (np.zeros(frame.height, dtype=np.int64), 1) if within is None else (within, 0)
    for name in names:
        codes = _numbers(frame[name])
        numbers, n = _compress(numbers * (int(codes.max()) + 1) + codes)
    return numbers, n


def _lay_out(
    frame: pl.DataFrame,
    lines: CurveLines,
    include: ProblemSet,
    also: Sequence[str],
    levels: Sequence[str],
) -> _Units:
    """Put the rows into arrays, replicates averaged."""
    line, n_groups = number_rows(frame, lines.columns)
    group = line
    if levels:
        group, n_groups = number_rows(frame, levels, line)
    problem = _numbers(frame["problem_id"])
    fold = (
        frame["fold"].cast(pl.Int64).fill_null(-1).to_numpy() + 1
        if levels
        else np.zeros(frame.height, dtype=np.int64)
    )
    n_folds = int(fold.max()) + 1
    unit, n_units = _compress((group * (int(problem.max()) + 1) + problem) * n_folds + fold)
    budget, n_budgets = _compress(_numbers(frame["budget"]))
    cell = budget * n_units + unit
    seed, n_seeds = number_rows(frame, lines.seeds)
    if has_repeated(cell * n_seeds + seed):
        # This raises, and names the problem.
        folds = ["fold"] if levels else []
        lines.units(frame.lazy(), include, pl.lit(0), halves=folds, levels=levels).collect()
    shape = (n_budgets, n_units)
    severity = np.full(n_budgets * n_units, _ABSENT)
    ranks = frame["severity"].to_numpy()
    severity[cell] = ranks
    if n_seeds > 1:
        # "common" leaves a problem out for one replicate, "available" only for all.
        (np.maximum if include == "common" else np.minimum).at(severity, cell, ranks)
    # In the order of replicates, so that a sum does not depend on the order of rows.
    order = np.argsort(seed, kind="stable") if n_seeds > 1 else None
    values = {
        name: _means(frame[name], cell, n_budgets * n_units, order).reshape(shape)
        for name in ("value", *also)
    }
    of_unit = first_rows(unit, n_units)
    of_group = first_rows(group, n_groups)
    of_line = line[of_group]
    group = group[of_unit]
    caveats = (
        frame["caveat"]
        if levels
        else pl.Series([None], dtype=pl.String).new_from_index(0, frame.height)
    )
    return _Units(
        names=frame.select(*lines.columns, *levels)[of_group],
        line=np.searchsorted(of_line, of_line),
        group=group,
        problem=_compress(group * (int(problem.max()) + 1) + problem[of_unit])[0],
        fold=fold[of_unit],
        budgets=frame["budget"][first_rows(budget, n_budgets)],
        severity=severity.reshape(shape),
        values=values,
        caveats=caveats.drop_nulls().unique().sort(),
        caveat=_numbers(caveats)[of_unit],
        cluster=None if lines.cluster is None else _numbers(frame["cluster"])[of_unit],
    )


def _means(column: pl.Series, cell: Integers, n_cells: int, order: Integers | None) -> Floats:
    """Return the mean of each cell, NaN for none; `order` is None where a cell has one value at most."""
    numbers = column.fill_null(float("nan")).to_numpy()
    if order is None:
        values = np.full(n_cells, np.nan)
        values[cell] = numbers
        return values
    number, of_number = numbers[order], cell[order]
    is_known = ~np.isnan(number)
    total = np.bincount(of_number[is_known], number[is_known], minlength=n_cells)
    with np.errstate(invalid="ignore"):
        means: Floats = total / np.bincount(of_number[is_known], minlength=n_cells)
    return means


def _average(units: _Units, include: ProblemSet, also: Sequence[str]) -> pl.DataFrame:
    """Average each half and then the halves, and count the problems left out by status."""
    starts, problem_starts = (_starts(of) for of in (units.group, units.problem))
    group_of_problem = units.group[problem_starts]
    starts_of_groups = _starts(group_of_problem)
    severity = _judge(units, starts, include)
    is_present = units.severity != _ABSENT
    value = units.values["value"]
    is_used = is_present & (severity == 0) & ~np.isnan(value)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, share = _average_halves(units, value, is_used, starts)
        others = {
            name: _average_halves(
                units, units.values[name], is_used & ~np.isnan(units.values[name]), starts
            )[0].mean
            for name in also
        }
        of_unit = mean.of_half[units.fold, :, units.group].T
        pull = np.where(is_used, share * (value - of_unit), 0.0)
        pulls = np.add.reduceat(pull, problem_starts, axis=1)
        is_averaged = np.logical_or.reduceat(is_used, problem_starts, axis=1)
        n = np.add.reduceat(is_averaged, starts_of_groups, axis=1, dtype=np.int64)
        squares = np.add.reduceat(pulls**2, starts_of_groups, axis=1)
        error = np.where(n > 1, np.sqrt(n / (n - 1) * squares), np.nan)
    is_here = np.logical_or.reduceat(is_present, problem_starts, axis=1)
    n_here = np.add.reduceat(is_here, starts_of_groups, axis=1, dtype=np.int64)
    n_problems = np.diff(starts_of_groups, append=len(group_of_problem))
    left_out = {
        name: np.add.reduceat(
            np.logical_or.reduceat(is_present & (severity == rank), problem_starts, axis=1),
            starts_of_groups,
            axis=1,
            dtype=np.int64,
        )
        for name, rank in LEFT_OUT.items()
    }
    left_out["n_short"] += n_problems - n_here
    is_fraction = is_used & (value != 0.0) & (value != 1.0)
    is_fractional = np.logical_or.reduceat(is_fraction, starts, axis=1) | (mean.n_halves > 1)
    has_fraction: Flags = np.logical_or.reduce(is_fractional, axis=0)
    caveat = np.maximum.reduceat(np.where(is_present, units.caveat, 0), problem_starts, axis=1)
    caveat = np.maximum.reduceat(np.where(is_averaged, caveat, 0), starts_of_groups, axis=1)
    # Shares of 1 may add up to slightly more. Costs have no bound.
    accuracy = np.where(np.abs(mean.mean - 1.0) < 1e-12, 1.0, mean.mean)
    budget, group = np.nonzero(n_here)
    at = (budget, group)
    table = units.names[group].with_columns(
        units.budgets[budget].alias("budget"),
        pl.Series("accuracy", accuracy[at]),
        pl.Series("total", (accuracy * mean.n_each)[at]),
        pl.Series("n_each", mean.n_each[at]),
        pl.Series("standard_error", error[at]),
        pl.Series("is_fractional", has_fraction[group]),
        pl.Series("n_problems", n[at]),
        *[pl.Series(name, counts[at]) for name, counts in left_out.items()],
        *[pl.Series(name, means[at]) for name, means in others.items()],
        pl.Series("caveat", [None, *units.caveats], dtype=pl.String).gather(caveat[at]),
    )
    if units.cluster is not None:
        shares = np.add.reduceat(np.where(is_used, share, 0.0), problem_starts, axis=1)
        cluster = units.cluster[problem_starts]
        spread = _spread(pulls, shares, group_of_problem, cluster)
        point = pl.DataFrame({"budget": budget, "group": group})
        joined = point.join(spread, on=["budget", "group"], how="left", maintain_order="left")
        table = table.with_columns(joined.drop("budget", "group"))
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def _starts(numbers: Integers) -> Integers:
    """Return where each of some ascending numbers begins."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _judge(units: _Units, starts: Integers, include: ProblemSet) -> Integers:
    """Return the severity of each problem at each budget, under "common" that of its worst budget."""
    if include != "common":
        return units.severity
    severity, line = units.severity, units.line
    is_present = severity != _ABSENT
    # A budget that no problem of the run reaches would leave all of them out of every budget.
    firsts, line_of_group = np.unique(line, return_inverse=True)
    line_of_unit = line_of_group[units.group]
    starts_of_lines = starts[firsts]
    is_long = is_present & (severity != _SHORT)
    is_reached = np.logical_or.reduceat(is_long, starts_of_lines, axis=1)[:, line_of_unit]
    worst = np.where(is_present & is_reached, severity, _ABSENT).max(axis=0)
    n_rows = is_present.sum(axis=0)
    is_short = n_rows < np.maximum.reduceat(n_rows, starts_of_lines)[line_of_unit]
    worst[is_short | (worst == _ABSENT)] = _SHORT
    return np.where(is_reached, worst, _SHORT)


class _Mean(NamedTuple):
    """Means of groups, arrays of (n_budgets, n_groups)."""

    mean: Floats
    n_each: Floats
    """Mean number of values of a half."""
    n_halves: Integers
    of_half: Floats
    """(n_folds, n_budgets, n_groups)."""


def _average_halves(
    units: _Units, value: Floats, is_used: Flags, starts: Integers
) -> tuple[_Mean, Floats]:
    """Return the means, and the share of each unit in that of its group."""
    counts, means = [], []
    for fold in range(int(units.fold.max()) + 1):
        is_in = is_used & (units.fold == fold)
        n = np.add.reduceat(is_in, starts, axis=1, dtype=np.int64)
        counts.append(n)
        means.append(np.add.reduceat(np.where(is_in, value, 0.0), starts, axis=1) / n)
    n_values, of_half = np.stack(counts), np.stack(means)
    n_halves = (n_values > 0).sum(axis=0)
    mean = np.where(n_values > 0, of_half, 0.0).sum(axis=0) / n_halves
    share = 1.0 / (n_values * n_halves)
    found = _Mean(mean, n_values.sum(axis=0) / n_halves, n_halves, of_half)
    return found, share[units.fold, :, units.group].T


def _spread(pulls: Floats, shares: Floats, group: Integers, cluster: Integers) -> pl.DataFrame:
    """Return the error over clusters at each budget of each group."""
    number, n = _compress(group * (int(cluster.max()) + 1) + cluster)
    of_cluster = group[first_rows(number, n)]
    parts = [
        pl.DataFrame({
            "budget": np.full(n, i),
            "group": of_cluster,
            "pull": np.bincount(number, pull, minlength=n),
            "share": np.bincount(number, share, minlength=n),
        })
        for i, (pull, share) in enumerate(zip(pulls, shares, strict=True))
    ]
    return (
        pl
        .concat(parts)
        .group_by("budget", "group")
        .agg(
            **cluster_spread(pl.col("pull"), pl.col("share")),
            n_clusters=(pl.col("share") > 0).sum(),
        )
        .select("budget", "group", "standard_error", "df", "most_share", "n_clusters")
    )
