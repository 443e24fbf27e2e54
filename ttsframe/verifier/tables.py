"""From trajectories to groups of scored attempts, and from these to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._draws import Purpose, problem_bits
from ttsframe._exprs import name_numbers, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers, Reduction
from ttsframe._waits import Threads
from ttsframe.schema import CLUSTER_COLUMNS, require_columns, require_kind
from ttsframe.statistics.clusters import check_cluster, in_one_cluster
from ttsframe.verifier.sorted_scores import Group, SortedScores, ordinal_codes
from ttsframe.votes.engine.pools import Reading, make_readings

Columns: TypeAlias = Mapping[str, Sequence[object] | Floats | Integers]

Schema: TypeAlias = Mapping[str, type[pl.DataType]]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

LENGTHS: Final[tuple[str, ...]] = ("steps", "tokens")
"""Units of the length of an attempt."""

CLUSTERED: Final[Schema] = {"n_clusters": pl.UInt32, "df": pl.Float64}
"""Further columns of a table where clusters are named."""

CLUSTERED_ALSO: Final[Schema] = {"most_share": pl.Float64}
"""What `cluster_interval` reads of a table besides."""


class Table(NamedTuple):
    """A table with rows for each reduction of the scores of each group."""

    schema: Schema
    """Its columns, without those of the group."""
    rows: Callable[[SortedScores], Columns]
    """Makes the rows of one reduction. Runs in any thread, so it must not use Polars."""
    finish: Callable[[pl.DataFrame], pl.DataFrame] = lambda table: table
    """Adds what Polars expressions compute."""


class AttemptColumns(NamedTuple):
    """The columns that are read of trajectories."""

    schema: pl.Schema
    groups: tuple[str, ...]
    readings: tuple[Reading, ...]
    n_threads: int
    cluster: str | None = None

    @property
    def keys(self) -> dict[str, str]:
        """The columns of `by`, safe name to the caller's."""
        return safe_names(self.groups)

    def tabulate(
        self,
        trajectories: FrameT,
        make_table: Callable[[Sequence[Group]], Table],
        schema: Schema,
    ) -> FrameT:
        """Make one table of trajectories."""
        dtypes = {name: self.schema[name] for name in self.groups} | dict(schema)

        def apply(frame: pl.DataFrame) -> pl.DataFrame:
            groups = self.split(frame)
            return self.tables(groups, [make_table(groups)])[0]

        return run_plan(
            trajectories, lambda lazy: self.select(lazy).map_batches(apply, schema=dtypes)
        )

    def select(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Select the columns under safe names."""
        lengths = []
        if "step_scores" in self.schema:
            steps = pl.col("step_scores").cast(pl.List(pl.Float64))
            lengths.append(steps.list.len().cast(pl.Int64).alias("steps"))
        if "n_tokens" in self.schema:
            lengths.append(pl.col("n_tokens").cast(pl.Int64).alias("tokens"))
        scores = [
            reading.score.cast(pl.Float64).fill_null(float("nan")).alias(f"score{reading.number}")
            for reading in self.readings
        ]
        clusters = [] if self.cluster is None else [pl.col(self.cluster).alias("cluster")]
        return lazy.select(
            *to_safe(self.keys),
            *clusters,
            pl.col("problem_id").alias("problem"),
            pl.col("is_correct").cast(pl.Boolean).alias("is_correct"),
            *lengths,
            *scores,
        )

    def split(self, selected: pl.DataFrame) -> list[Group]:
        """Split the selected columns into groups."""
        names = ["problem"] if self.cluster is None else ["problem", "cluster"]
        numbered = selected.with_columns(name_numbers(selected[name]) for name in names)
        if self.cluster is not None:
            self._check_clusters(selected, numbered)
        if self.groups:
            return [self._group(part) for part in numbered.partition_by([*self.keys])]
        return [self._group(numbered)] if numbered.height else []

    def _group(self, part: pl.DataFrame) -> Group:
        """Return the attempts of one group as arrays."""
        numbers = part["problem"].to_numpy()
        problems = np.arange(int(numbers.max()) + 1)
        if self.groups:
            problems, numbers = np.unique(numbers, return_inverse=True)
        clusters = None
        if self.cluster is not None:
            clusters = np.empty(len(problems), dtype=np.int64)
            clusters[numbers] = np.unique(part["cluster"].to_numpy(), return_inverse=True)[1]
        lengths = {}
        for unit in LENGTHS:
            if unit in part.columns:
                lengths[unit] = np.full(part.height, -1)
                is_known = part[unit].is_not_null().to_numpy()
                lengths[unit][is_known] = ordinal_codes(part[unit].drop_nulls().to_numpy())
        is_right = part["is_correct"].fill_null(value=False).to_numpy()
        return Group(
            columns=part.select(*self.keys).head(1),
            cell=numbers * 2 + is_right,
            is_right=is_right,
            is_graded=part["is_correct"].is_not_null().to_numpy(),
            problems=problems,
            clusters=clusters,
            lengths=lengths,
            scores={
                reading.name: part[f"score{reading.number}"].to_numpy() for reading in self.readings
            },
        )

    def _check_clusters(self, selected: pl.DataFrame, numbered: pl.DataFrame) -> None:
        """Raise where a problem of a group is in several clusters."""
        unit = [*self.keys, "problem"]
        counts = numbered.select(*unit, pl.col("cluster").n_unique().over(unit).alias("n"))
        if (counts["n"] > 1).any():
            names = self.keys | {"problem": "problem_id"}
            rows = selected.select(*unit).with_columns(n_clusters=counts["n"]).lazy()
            rows.filter(in_one_cluster(names, str(self.cluster))).collect()

    def tables(self, groups: Sequence[Group], tables: Sequence[Table]) -> list[pl.DataFrame]:
        """Make tables of all groups, sorting the scores of a reduction once; NaN becomes null."""
        sources = [(group, reduction) for group in groups for reduction in group.scores]

        def rows_of(source: tuple[Group, str]) -> list[Columns]:
            scores = SortedScores(*source)
            return [table.rows(scores) for table in tables]

        rows = in_threads(rows_of, sources, self.n_threads)
        return [
            self._table(table, [group.columns for group, _ in sources], [of[i] for of in rows])
            for i, table in enumerate(tables)
        ]

    def _table(
        self, table: Table, groups: Sequence[pl.DataFrame], rows: Sequence[Columns]
    ) -> pl.DataFrame:
        """Join the rows of a table with the columns of their groups, sorted."""
        schema = dict(table.schema)
        if not rows:
            names = {name: self.schema[name] for name in self.groups}
            return table.finish(pl.DataFrame(schema={**names, **schema}))
        parts = [pl.DataFrame(columns, schema=schema, strict=False) for columns in rows]
        if self.groups:
            parts = [
                group.join(part, how="cross") for group, part in zip(groups, parts, strict=True)
            ]
        joined = table.finish(pl.concat(parts).with_columns(pl.col(pl.Float64).fill_nan(None)))
        return joined.sort(*self.keys, "reduction", maintain_order=True).rename(self.keys)


def attempt_columns(
    trajectories: pl.DataFrame | pl.LazyFrame,
    reductions: Reduction | Sequence[Reduction] | None,
    by: ColumnNames,
    taken: Iterable[str],
    cluster: str | None = None,
) -> AttemptColumns:
    """Check trajectories and the columns that are read of them."""
    check_frame(trajectories, "trajectories")
    own = {*taken, "problem_id", *CLUSTER_COLUMNS}
    groups = check_names(by, "by", taken=own)
    clusters = check_cluster(cluster, own, groups)
    schema = require_columns(trajectories, [*groups, *clusters, "problem_id", "is_correct"])
    require_kind(schema, "Boolean", "is_correct")
    readings = make_readings(schema, reductions, is_score_needed=True)
    # The number of threads is asked for here, because it is 1 inside of a query.
    return AttemptColumns(schema, groups, readings, pl.thread_pool_size(), cluster)


def in_threads(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], n_threads: int
) -> list[ResultT]:
    """Apply a function that does not use Polars to each item, and return the results in order."""
    if len(items) < 2:
        return [work(item) for item in items]
    with Threads(n_threads) as threads:
        return threads.each(work, items)


def is_held_out(n_problems: int, seed: int) -> Flags:
    """Draw which half of the problems is held out, (n_problems,), the larger half of an odd number."""
    bits = problem_bits(seed, Purpose.HALF, np.arange(n_problems))
    position = np.empty(n_problems, dtype=np.int64)
    position[np.argsort(bits, kind="stable")] = np.arange(n_problems)
    return position >= n_problems // 2
