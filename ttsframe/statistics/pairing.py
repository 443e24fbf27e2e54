"""From the rows of two sides to the differences of their problems, line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ttsframe._exprs import raise_where
from ttsframe.errors import DataError
from ttsframe.statistics.paired import TIE, paired_inference
from ttsframe.statistics.units import SEVERITY, once, place


def both_sides(
    rows: pl.LazyFrame, level: pl.Expr, keys: Sequence[str], column: str, *, is_free: bool
) -> pl.LazyFrame:
    """Give every row of either side its line, the baseline's once for each line it belongs to."""
    reductions = ["reduction"] if is_free else []
    is_baseline = pl.col("level") == level
    lines = (
        rows
        .select(*keys, "level", *reductions)
        .unique()
        # The values are gathered here, since filters below are applied before the check is made.
        .with_columns(has_baseline=is_baseline.any(), levels=pl.col("level").unique().implode())
        .filter(
            raise_where(
                pl.struct(~pl.col("has_baseline").alias("broken"), "levels"),
                lambda found: _no_baseline(found, level, column),
            )
        )
    )
    renamed = {"reduction": "baseline_reduction"} if is_free else {}
    baselines = lines.filter(is_baseline).select(*keys, *reductions).rename(renamed)
    contenders = lines.filter(~is_baseline).select(*keys, "level", *reductions)
    # With a constant among the keys the join needs no case of its own where nothing must agree.
    on = [*keys, "all"]
    lines = contenders.with_columns(all=0).join(
        baselines.with_columns(all=0), on=on, how="left", nulls_equal=True
    )
    if is_free:
        ours, theirs = pl.col("reduction"), pl.col("baseline_reduction")
        lines = lines.filter(ours.is_null() | theirs.is_null() | (ours == theirs))
    lines = lines.drop("all")
    contending = rows.join(lines, on=[*keys, "level", *reductions], nulls_equal=True)
    standing = (
        rows
        .filter(is_baseline)
        .drop("level")
        .rename(renamed)
        .with_columns(all=0)
        .join(
            lines.with_columns(all=0),
            on=[*on, *renamed.values()],
            nulls_equal=True,
        )
        .drop("all")
    )
    return pl.concat(
        [
            contending.with_columns(is_baseline=pl.lit(value=False)),
            standing.with_columns(is_baseline=pl.lit(value=True)),
        ],
        how="diagonal",
    )


def pairs_of(
    rows: pl.LazyFrame, line: Mapping[str, str], seeds: Sequence[str], cluster: str | None
) -> pl.LazyFrame:
    """Return the difference of each problem of each line, or why it has none."""
    ours = ~pl.col("is_baseline")
    n_clusters = pl.col("cluster").n_unique().alias("n_clusters")
    unit = {**line, "problem_id": "problem_id"}
    pairs = (
        rows
        .group_by([*unit])
        .agg(
            pl.len().alias("n_rows"),
            pl.struct("is_baseline", *seeds).n_unique().alias("n_expected"),
            pl.when(ours).then("value").mean().alias("value"),
            pl.when(~ours).then("value").mean().alias("baseline_value"),
            pl.col("severity").max(),
            (ours.any() & ~ours.all()).alias("is_pair"),
            *([] if cluster is None else [pl.col("cluster").first(), n_clusters]),
        )
        .filter(once(unit, "on one side of a pair"))
    )
    if cluster is not None:
        pairs = pairs.filter(_in_one_cluster(unit, cluster))
    is_counted = pl.col("is_pair") & (pl.col("severity") == 0)
    difference = pl.col("value") - pl.col("baseline_value")
    return pairs.with_columns(
        is_counted=is_counted,
        difference=pl.when(is_counted).then(
            pl.when(difference.abs() > TIE).then(difference).otherwise(0.0)
        ),
    )


def differences_of(
    pairs: pl.LazyFrame, line: Sequence[str], confidence_level: float, *, is_clustered: bool
) -> pl.LazyFrame:
    """Sum the pairs by unit and the units by line, and say what the sums show."""
    difference, is_counted = pl.col("difference"), pl.col("is_counted")
    counts = {
        "n_pairs": is_counted,
        "n_wins": difference > 0.0,
        "n_ties": difference == 0.0,
        "n_losses": difference < 0.0,
        **{
            f"n_{status}": pl.col("is_pair") & (pl.col("severity") == severity)
            for status, severity in SEVERITY.items()
            if severity
        },
        "n_unpaired": ~pl.col("is_pair"),
    }
    sums = {
        "difference": difference,
        "gained": difference.clip(lower_bound=0.0),
        "lost": -difference.clip(upper_bound=0.0),
        "value": pl.when(is_counted).then("value"),
        "baseline_value": pl.when(is_counted).then("baseline_value"),
    }
    fractions = [
        ((pl.col(name) != 0.0) & (pl.col(name) != 1.0)) for name in ("value", "baseline_value")
    ]
    # Before anything is summed: what a sum is called is what it is the sum of.
    units = pairs.select(
        *line,
        *(["cluster"] if is_clustered else []),
        *[value.cast(pl.Int64).fill_null(0).alias(name) for name, value in counts.items()],
        *[value.fill_null(0.0).alias(name) for name, value in sums.items()],
        is_fractional=is_counted & pl.any_horizontal(fractions),
    )
    if is_clustered:
        units = units.group_by(*line, "cluster").agg(
            pl.col(*counts, *sums).sum(), pl.col("is_fractional").any()
        )
    n_pairs = pl.col("n_pairs")
    n_units, size = pl.col("n_units").cast(pl.Float64), n_pairs.cast(pl.Float64)
    mean = difference.sum() / n_pairs.sum()
    is_unit = n_pairs > 0
    return (
        units
        .group_by(line)
        .agg(
            *[pl.col(name).sum() for name in counts],
            *[pl.col(name).sum() for name in sums if name != "difference"],
            pl.col("is_fractional").any(),
            is_unit.sum().cast(pl.Int64).alias("n_units"),
            (is_unit & (difference.abs() > TIE)).sum().cast(pl.Int64).alias("n_unequal"),
            mean.alias("difference"),
            ((difference - mean * n_pairs) ** 2).sum().alias("pulls"),
        )
        .with_columns(
            pl.when(n_pairs > 0).then("difference"),
            accuracy=pl.when(n_pairs > 0).then(pl.col("value") / size),
            baseline_accuracy=pl.when(n_pairs > 0).then(pl.col("baseline_value") / size),
            standard_error=pl.when(n_units > 1.0).then(
                (pl.col("pulls") * (n_units / (n_units - 1.0))).sqrt() / size
            ),
        )
        .with_columns(
            **paired_inference(confidence_level=confidence_level, is_clustered=is_clustered)
        )
        .with_columns(pl.col(*counts).cast(pl.UInt32), n_clusters=pl.col("n_units").cast(pl.UInt32))
    )


def _in_one_cluster(unit: Mapping[str, str], cluster: str) -> pl.Expr:
    """Build the filter that raises where a problem is in several clusters."""

    def error(rows: pl.DataFrame) -> DataError:
        row = rows.sort([*unit]).row(0, named=True)
        return DataError(
            f"{place(row, unit)}: in {row['n_clusters']} values of {cluster!r}, expected one. Hint: a "
            "cluster is a set of whole problems."
        )

    is_broken = (pl.col("n_clusters") > 1).alias("broken")
    return raise_where(pl.struct(is_broken, *unit, "n_clusters"), error)


def _no_baseline(found: pl.DataFrame, level: pl.Expr, column: str) -> DataError:
    """Say which values there are instead of the baseline."""
    there = found["levels"][0].sort().to_list()
    return DataError(
        f"no row of problems has {column} == {pl.select(level).item()!r}, the baseline; found: "
        f"{there}. Hint: name another with baseline=..."
    )
