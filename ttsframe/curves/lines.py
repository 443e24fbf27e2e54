"""The lines of a curve: the columns that tell them apart, and the problems that count on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import in_order, n_distinct, raise_where, safe_names, to_safe
from ttsframe._typing import ColumnNames, ProblemSet
from ttsframe.errors import ColumnsError, DataError, ParameterError
from ttsframe.schema import CLUSTER_COLUMNS, CURVE_SCHEMA, require_columns
from ttsframe.statistics.clusters import check_cluster, in_one_cluster
from ttsframe.statistics.problem_values import (
    SEVERITY,
    describe_row,
    raise_if_repeated,
    value_and_severity,
)

ORACLE: Final = "oracle"
"""The selector that no method can beat: a bound, not a method."""

PROBLEM_COLUMNS: Final = ("problem_id", "budget", "selector", "reduction", "value", "status")
"""Columns of `problems` that every curve reads."""

DEFAULTS: Final[Mapping[str, str]] = {"subsets": "prefix", "budget_unit": "attempts"}
"""Columns of `problems` that may be missing, with the value that they have then."""

LEFT_OUT: Final[Mapping[str, int]] = {
    f"n_{status}": SEVERITY[status] for status in SEVERITY if status != "ok"
}
"""Columns of a curve that count the problems left out, with the severity of the status counted."""

PROVENANCE: Final = ("basis", "caveat")
"""Columns of levels that say how far they can be trusted; every table made from levels has them."""

SELECT_HINT: Final = "tts.select_answers(trajectories, budgets=[...]) makes this table."

LEVELS_HINT: Final = "tts.difficulty_levels(trajectories) makes this table."


class CurveLines(NamedTuple):
    """The columns that tell the lines of a curve apart, the caller's under safe names."""

    schema: pl.Schema
    """Schema of `problems`."""
    groups: dict[str, str]
    """Columns of `by`, safe name to the caller's."""
    seeds: dict[str, str]
    """Columns of `replicates`."""
    cluster: str | None = None
    """Column of the clusters of problems, the caller's name."""

    @property
    def columns(self) -> dict[str, str]:
        """Every column that tells lines apart."""
        own = ("selector", "reduction", *[name for name in DEFAULTS if name in self.schema])
        return self.groups | {name: name for name in own}

    @property
    def clusters(self) -> dict[str, str]:
        """The column of clusters, if there is one."""
        return {} if self.cluster is None else {"cluster": self.cluster}

    @property
    def shown(self) -> tuple[str, ...]:
        """Columns that a curve has where clusters are named."""
        return () if self.cluster is None else CLUSTER_COLUMNS

    @property
    def defaults(self) -> dict[str, pl.Expr]:
        """Constants for the columns that `problems` lacks."""
        return {name: pl.lit(value) for name, value in DEFAULTS.items() if name not in self.schema}

    def select(self, lazy: pl.LazyFrame, **more: pl.Expr) -> pl.LazyFrame:
        """Select the columns of a line, `problem_id`, `budget`, `value` and `severity`."""
        named = to_safe(self.columns | self.seeds | self.clusters)
        return lazy.select(*named, "problem_id", "budget", **value_and_severity(), **more)

    def in_clusters(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Plan the check that a problem is in one cluster, if there are clusters."""
        if self.cluster is None:
            return rows
        named = self.columns | {"problem_id": "problem_id"}
        n_clusters = pl.col("cluster").n_unique().over(*named)
        return (
            rows
            .with_columns(n_clusters=n_clusters)
            .filter(in_one_cluster(named, self.cluster))
            .drop("n_clusters")
        )

    def units(
        self,
        rows: pl.LazyFrame,
        include: ProblemSet,
        n_units: pl.Expr,
        *,
        halves: Sequence[str] = (),
        levels: Sequence[str] = (),
        caveats: Sequence[str] = (),
        also: Sequence[str] = (),
    ) -> pl.LazyFrame:
        """Average replicates, and return each problem once per budget with its severity."""
        # `also` names columns that are averaged as `value` is.
        values = ["value", *also]
        line = self.columns
        unit = line | {name: name for name in (*halves, "problem_id")}
        severity = pl.col("severity")
        is_common = include == "common"
        of_cluster = [pl.col(name).first() for name in self.clusters]
        rows = self.in_clusters(rows)
        # In alphabetical order the more serious caveat comes last.
        worst_caveat = [pl.col(name).max() for name in caveats]
        if self.seeds:
            rows = (
                rows
                .group_by(*unit, *levels, "budget")
                .agg(
                    *of_cluster,
                    pl.len().alias("n_rows"),
                    n_distinct(self.seeds).alias("n_expected"),
                    *[in_order(pl.col(name)).list.mean().alias(name) for name in values],
                    *worst_caveat,
                    # "common" leaves a problem out for one replicate, "available" only for all.
                    severity.max() if is_common else severity.min(),
                )
                .filter(raise_if_repeated(unit | {"budget": "budget"}))
            )
        counted = ["budget", *values]
        if is_common:
            # A budget that no problem of the run reaches would leave all of them out of every budget.
            rows = rows.with_columns(
                is_reached=(severity != SEVERITY["short"]).any().over(*line, "budget")
            )
            counted.append("is_reached")
            severity = severity.filter("is_reached").max().fill_null(SEVERITY["short"])
        problems = (
            rows
            .group_by(*unit, *levels)
            .agg(
                *of_cluster,
                pl.len().alias("n_rows"),
                pl.col("budget").n_unique().alias("n_expected"),
                pl.col(counted),
                *worst_caveat,
                severity,
            )
            .filter(raise_if_repeated(unit))
            .with_columns(n_units=n_units)
        )
        if not is_common:
            return problems.explode("budget", *values, "severity", empty_as_null=False)
        is_short = pl.col("n_rows") < pl.col("n_rows").max().over([*line])
        return problems.explode(counted, empty_as_null=False).with_columns(
            severity=pl
            .when(is_short | ~pl.col("is_reached"))
            .then(SEVERITY["short"])
            .otherwise("severity")
        )


def curve_lines(
    problems: pl.DataFrame | pl.LazyFrame,
    *,
    by: ColumnNames,
    replicates: ColumnNames = (),
    cluster: str | None = None,
    taken: Iterable[str] = (),
    hint: str = SELECT_HINT,
) -> CurveLines:
    """Check a table of problems and the columns that tell its lines apart."""
    check_frame(problems, "problems")
    own = {*PROBLEM_COLUMNS, *CURVE_SCHEMA, *taken, *CLUSTER_COLUMNS}
    groups = check_names(by, "by", taken=own)
    repeats = check_names(replicates, "replicates", taken=own)
    if both := set(groups) & set(repeats):
        raise ParameterError(
            f"by and replicates both name {sorted(both)}; a column either gets curves of its own "
            "(by) or is averaged over (replicates)."
        )
    clusters = check_cluster(cluster, own, [*groups, *repeats])
    schema = require_columns(
        problems, [*groups, *repeats, *clusters, *PROBLEM_COLUMNS], where="problems", hint=hint
    )
    return CurveLines(schema, safe_names(groups), safe_names(repeats, "seed"), cluster)


def refuse_where(
    is_broken: pl.Expr, names: Mapping[str, str], message: str, *columns: str | pl.Expr
) -> pl.Expr:
    """Build the filter that raises `message`, formatted with the first row that is broken."""

    def describe(rows: pl.DataFrame) -> DataError:
        row = rows.sort(rows.columns).row(0, named=True)
        return DataError(f"{describe_row(row, names)}: {message.format(**row)}")

    described = pl.struct(is_broken.alias("broken"), *names, *columns)
    return raise_where(described, describe, sees_all_rows=True)


def check_same_dtypes(
    schema: pl.Schema, names: Iterable[str], where: str, expected: pl.Schema, like: str
) -> None:
    """Raise where two tables identify problems with different dtypes."""
    for name in names:
        if schema[name] != expected[name]:
            raise ColumnsError(
                f"{where}: {name!r} is {schema[name]}, must be {expected[name]} as in {like}. Hint: "
                "cast it."
            )
