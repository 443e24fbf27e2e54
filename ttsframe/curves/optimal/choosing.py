"""The strategy of each level and budget: chosen on some problems, to be judged on others."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import polars as pl

from ttsframe._exprs import raise_where
from ttsframe._typing import ProblemSet
from ttsframe.errors import DataError
from ttsframe.statistics.problem_values import SEVERITY, raise_if_repeated, value_and_severity

_TIE: Final = 1e-9
"""Means, and costs in proportion, that are nearer than this are equal."""


class Columns(NamedTuple):
    """Names on the way, each with the caller's: none of theirs collides with one used here.

    - `line`: columns that get choices of their own;
    - `seeds`: columns that number replicates;
    - `parts`: columns that define a strategy;
    - `shared`: those of `line` that `levels` has too.
    """

    line: dict[str, str]
    seeds: dict[str, str]
    parts: dict[str, str]
    shared: list[str]


class Folding(NamedTuple):
    """How problems are dealt into folds, and which count."""

    n_folds: int
    seed: int
    include: ProblemSet


def levels_of(
    levels: pl.LazyFrame, columns: Columns, folding: Folding, *, has_fold: bool
) -> pl.LazyFrame:
    """Give each problem its fold, and each half of its attempts its level.

    Parameters
    ----------
    levels
        The caller's table, under the caller's names.
    columns
        Names on the way.
    folding
        How to deal problems into folds.
    has_fold
        Whether `levels` says which half of the attempts a level is for.

    Returns
    -------
    pl.LazyFrame
        One row per (shared, `problem_id`, `for_half`), with `level` and `problem_fold`.
    """
    half = pl.col("fold").cast(pl.UInt32) if has_fold else pl.lit(None, pl.UInt32)
    named = {key: columns.line[key] for key in columns.shared} | {"problem_id": "problem_id"}
    of_problem = (
        levels
        .select(*[pl.col(name).alias(key) for key, name in named.items()], "level", for_half=half)
        # A constant to group by, where nothing is shared.
        .with_columns(everything=0)
        .group_by("everything", *named)
        .agg(
            pl.col("level", "for_half"),
            hardest=pl.col("level").max(),
            n_rows=pl.len(),
            n_expected=pl.col("for_half").n_unique(),
        )
        .filter(
            raise_if_repeated(
                named, "of levels", "name their runs in by=(...), or filter to one of them."
            )
        )
    )
    # Dealt out in order of level, so that every fold gets its share of each; both halves of a
    # problem go to one fold, since what is chosen on one would know the other.
    order = [pl.col("hardest"), _hashed("problem_id", folding.seed), pl.col("problem_id")]
    dealt = pl.int_range(pl.len()).over("everything", *columns.shared, order_by=order)
    return (
        of_problem
        .with_columns(problem_fold=(dealt % folding.n_folds).cast(pl.UInt32))
        .select(*named, "problem_fold", "level", "for_half")
        .explode("level", "for_half", empty_as_null=False)
    )


def placed_problems(
    rows: pl.LazyFrame, levels: pl.LazyFrame, columns: Columns, folding: Folding
) -> pl.LazyFrame:
    """Average replicates, and say of every value whether it counts, and at which level.

    Parameters
    ----------
    rows
        Rows of `problems` under the names used here, with `half` and `cost`.
    levels
        What `levels_of` gives.
    columns
        Names on the way.
    folding
        Which problems count.

    Returns
    -------
    pl.LazyFrame
        One row per (line, `problem_id`, `half`, `budget`, strategy) with `value`, `cost`, `level`,
        `problem_fold` and `severity`, which is the same under every strategy.
    """
    line, seeds, parts = [*columns.line], [*columns.seeds], [*columns.parts]
    is_common = folding.include == "common"
    severity = pl.col("severity")
    place_of = columns.line | {"problem_id": "problem_id", "half": "fold", "budget": "budget"}
    averaged = (
        rows
        .select(*place_of, *parts, *seeds, "cost", **value_and_severity())
        .group_by(*place_of, *parts)
        .agg(
            pl.len().alias("n_rows"),
            (pl.struct(seeds).n_unique() if seeds else pl.lit(1)).alias("n_expected"),
            pl.col("value", "cost").mean(),
            severity.max() if is_common else severity.min(),
        )
        .filter(
            raise_if_repeated(
                place_of | columns.parts,
                "of one strategy",
                "name the column that tells strategies apart in strategy=(...), the one that tells "
                "runs apart in by=(...), and the one that numbers seeds in replicates=(...).",
            )
        )
    )
    cell = line if is_common else [*line, "half", "budget"]
    unit = [*cell, "problem_id"]
    # A problem counts if it is there under all strategies: they are compared on the same ones.
    short = pl.when(pl.len().over(unit) < pl.col("n_cells").first().over(unit))
    judged_alike = (
        averaged
        .group_by(*line, "half", "budget", *parts)
        .agg("problem_id", "value", "cost", "severity")
        .with_columns(n_cells=pl.len().over(cell))
        .explode("problem_id", "value", "cost", "severity", empty_as_null=False)
        .with_columns(
            short.then(SEVERITY["short"]).otherwise(severity.max().over(unit)).alias("severity")
        )
    )
    on = [*columns.shared, "problem_id"]
    half, for_half = pl.col("half"), pl.col("for_half")
    is_whole = (for_half.is_not_null() & half.is_null()).alias("broken")
    undefined = pl.when(pl.col("level").is_null()).then(SEVERITY["undefined"])
    return (
        judged_alike
        .join(levels, on=on, how="left", nulls_equal=True)
        .filter(
            raise_where(pl.struct(is_whole, "problem_id"), _not_halved),
            for_half.is_null() | (for_half == half),
        )
        .with_columns(severity=pl.max_horizontal(severity, undefined))
    )


def choose(placed: pl.LazyFrame, columns: Columns, names: tuple[str, str]) -> pl.LazyFrame:
    """Choose a strategy for each level, budget and fold.

    Parameters
    ----------
    placed
        What `placed_problems` gives.
    columns
        Names on the way.
    names
        What to call the choice on the other folds, and the one on all.

    Returns
    -------
    pl.LazyFrame
        One row per (line, `level`, `budget`, `problem_fold`, `name`): the strategy; `total` and
        `cost` of its `n` values and `n_problems` in the fold, the same over all folds and over
        those that it was chosen on (`_all`, `_seen`); `n_strategies` there were, `n_tied` at the
        best; and `of_problem`, the fold's values and costs with their problems and halves.
    """
    line, parts = [*columns.line], [*columns.parts]
    level = [*line, "level", "budget"]
    cell = [*level, "problem_fold", "name"]
    sums = ["n", "n_problems", "total", "cost"]
    value, cost = pl.col("value"), pl.col("cost").cast(pl.Float64).fill_nan(None)
    totals = (
        placed
        .filter(pl.col("severity") == 0)
        .group_by(*level, "problem_fold", *parts)
        .agg(
            n=pl.len().cast(pl.Int64),
            n_problems=pl.col("problem_id").n_unique().cast(pl.Int64),
            total=value.sum(),
            # Of unknown cost is dearest.
            cost=pl.when(cost.count() == pl.len()).then(cost.sum()).otherwise(float("inf")),
            of_problem=pl.struct("problem_id", "half", "value", "cost"),
        )
        .with_columns(pl.col(sums).sum().over(*level, *parts).name.suffix("_all"))
        .with_columns(name=pl.lit([*names], pl.List(pl.String)))
        .explode("name", empty_as_null=False)
    )
    is_honest = pl.col("name") == names[0]
    seen = [
        pl
        .when(is_honest)
        .then(_others(name))
        .otherwise(pl.col(f"{name}_all"))
        .alias(f"{name}_seen")
        for name in sums
    ]
    total, dearness = pl.col("total_seen"), pl.col("cost_seen")
    # One that reads no score needs no verifier, which is the cheaper where no cost is known.
    reads = [
        pl.col(key).is_not_null() for key, name in columns.parts.items() if name == "reduction"
    ]
    return (
        totals
        .with_columns(seen)
        .with_columns(n_strategies=pl.len().over(cell))
        .filter(total >= total.max().over(cell) - _TIE * pl.col("n_seen"))
        .with_columns(n_tied=pl.len().over(cell))
        .filter(dearness <= dearness.min().over(cell) * (1.0 + _TIE))
        .sort(*reads, *parts)
        .unique(cell, keep="first", maintain_order=True)
    )


def _others(name: str) -> pl.Expr:
    """Return a sum over the other folds; infinity less infinity stays infinite."""
    every = pl.col(f"{name}_all")
    if name != "cost":
        return every - pl.col(name)
    return pl.when(every.is_infinite()).then(every).otherwise(every - pl.col(name))


def _hashed(name: str, seed: int) -> pl.Expr:
    """Return 64 bits for each name, the same under every version of everything."""

    def digests(names: pl.Series) -> pl.Series:
        bits = [
            hashlib.blake2b(f"{seed} {each!r}".encode(), digest_size=8).digest() for each in names
        ]
        return pl.Series(names.name, [int.from_bytes(each, "little") for each in bits], pl.UInt64)

    return pl.col(name).map_batches(digests, return_dtype=pl.UInt64, is_elementwise=True)


def _not_halved(rows: pl.DataFrame) -> DataError:
    """Describe answers that were picked among the attempts that decided the level."""
    problem = rows.sort("problem_id")["problem_id"][0]
    return DataError(
        f"problem_id {problem!r}: its levels are for halves of the attempts (column 'fold'), and the "
        "answers were picked among all. Hint: tts.select_answers(tts.curves.halve_attempts(run), "
        "by='fold', ...), or levels from another run: tts.difficulty_levels(run, reference=...)."
    )
