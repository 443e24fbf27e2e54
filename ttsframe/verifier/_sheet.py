"""Graded and scored attempts as arrays, sorted once per reading for every table that is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ttsframe._ballots.pools import Reading, make_readings
from ttsframe._checks import check_frame, check_names
from ttsframe._draws import Purpose, problem_bits
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.errors import ColumnsError
from ttsframe.schema import require_columns
from ttsframe.verifier._cells import Flags, Floats, Ints

Columns: TypeAlias = Mapping[str, Sequence[object] | Floats | Ints]

Schema: TypeAlias = Mapping[str, type[pl.DataType]]

LENGTHS: Final[tuple[str, ...]] = ("steps", "tokens")
"""What an attempt is long in."""


class Marks:
    """What one reading of the scores gives the attempts of one group.

    Parameters
    ----------
    reduction
        Name of the reading.
    score
        Score of every attempt, null where there is none.
    is_correct
        Grade of every attempt, null where there is none.
    problem
        Number of every attempt's problem among all problems.
    lengths
        Length of every attempt by unit.
    """

    def __init__(
        self,
        reduction: str,
        score: pl.Series,
        is_correct: pl.Series,
        problem: pl.Series,
        lengths: Mapping[str, pl.Series],
    ) -> None:
        self.reduction = reduction
        is_graded, is_scored = is_correct.is_not_null(), score.is_not_null()
        is_used = is_graded & is_scored
        self.n_ungraded = int((~is_graded).sum())
        self.n_unscored = int((is_graded & ~is_scored).sum())
        self.score: Floats = score.filter(is_used).to_numpy()
        self.is_correct: Flags = is_correct.filter(is_used).to_numpy()
        self.all_problem: Ints = problem.filter(is_used).to_numpy()
        # Each attempt's length by unit, 0 where unknown, and whether it is known.
        self.lengths: dict[str, tuple[Ints, Flags]] = {}
        for unit, length in lengths.items():
            used = length.filter(is_used)
            self.lengths[unit] = used.fill_null(0).to_numpy(), used.is_not_null().to_numpy()

    @cached_property
    def _ranked(self) -> tuple[Floats, Ints]:
        """Distinct scores in ascending order, and the place of each attempt's among them."""
        order = np.argsort(self.score)
        ascending = self.score[order]
        is_new = np.ones(len(order), dtype=np.bool_)
        np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.cumsum(is_new) - 1
        return ascending[is_new], rank

    @property
    def values(self) -> Floats:
        """Distinct scores in ascending order, (n_values,)."""
        return self._ranked[0]

    @property
    def rank(self) -> Ints:
        """Place of each attempt's score in `values`."""
        return self._ranked[1]

    @cached_property
    def problem(self) -> Ints:
        """Problem of each attempt, numbered from 0 without gaps."""
        if not len(self.all_problem):
            return self.all_problem
        is_there = np.bincount(self.all_problem) > 0
        return (np.cumsum(is_there) - 1)[self.all_problem]

    @cached_property
    def n_problems(self) -> int:
        """Number of problems with an attempt that is graded and scored."""
        return int(self.problem.max(initial=-1)) + 1

    @cached_property
    def n_right(self) -> Ints:
        """Right attempts of each distinct score."""
        return np.bincount(self.rank[self.is_correct], minlength=len(self.values))

    @cached_property
    def counts(self) -> Ints:
        """Attempts of each distinct score."""
        return np.bincount(self.rank, minlength=len(self.values))

    @cached_property
    def n_wrong(self) -> Ints:
        """Wrong attempts of each distinct score."""
        return self.counts - self.n_right

    @property
    def n_out_of_range(self) -> int:
        """Number of scores that are no probabilities."""
        return int(self.counts[(self.values < 0.0) | (self.values > 1.0)].sum())


class Part(NamedTuple):
    """One group of attempts: a row of what names it, and its marks under each reading."""

    name: pl.DataFrame
    marks: tuple[Marks, ...]


class Sheet(NamedTuple):
    """All attempts, group by group, and the number of problems over all groups."""

    parts: tuple[Part, ...]
    n_problems: int

    def range_of(self, reduction: str) -> tuple[float, float]:
        """Give the range that the finite scores of a reading lie in, over all groups.

        Parameters
        ----------
        reduction
            Name of the reading.

        Returns
        -------
        tuple[float, float]
            (0, 1) where that holds them all; else the smallest and the largest.
        """
        read = [m.values for part in self.parts for m in part.marks if m.reduction == reduction]
        found = [values[np.isfinite(values)] for values in read]
        low = min((float(values[0]) for values in found if len(values)), default=0.0)
        high = max((float(values[-1]) for values in found if len(values)), default=1.0)
        if low >= 0.0 and high <= 1.0:
            return 0.0, 1.0
        return (low, high) if low < high else (low - 0.5, high + 0.5)

    def table(self, rows_of: Callable[[Marks], Columns], schema: Schema) -> pl.DataFrame:
        """Make a table of what there is to say of each group under each reading.

        Parameters
        ----------
        rows_of
            Gives the rows of one reading in one group, on any thread; it must not touch Polars.
        schema
            Columns of the table, without those that name a group.

        Returns
        -------
        pl.DataFrame
            All rows, behind the columns that name their group; NaN is null.
        """
        listed = [(part.name, marks) for part in self.parts for marks in part.marks]
        all_marks = [marks for _, marks in listed]
        if len(listed) < 2:
            found = [rows_of(marks) for marks in all_marks]
        else:
            with ThreadPoolExecutor(pl.thread_pool_size()) as threads:
                found = [*threads.map(rows_of, all_marks)]
        tables = []
        for (name, _), columns in zip(listed, found, strict=True):
            rows = pl.DataFrame(columns, schema=dict(schema), strict=False)
            # A frame without columns has no row that could be joined.
            tables.append(name.join(rows, how="cross") if name.width else rows)
        if not tables:
            return pl.DataFrame(schema=dict(schema))
        return pl.concat(tables).with_columns(pl.col(pl.Float64).fill_nan(None))


def problem_numbers(problem: pl.Series) -> pl.Series:
    """Give problems numbers from 0 in the order of their names, one without a name first.

    Parameters
    ----------
    problem
        Name of each attempt's problem.

    Returns
    -------
    pl.Series
        Int64, under the same name.
    """
    # Attempts at a problem mostly stand together, so that few names have to be compared.
    run = problem.rle_id()
    names = problem.filter(run != run.shift(fill_value=2**32 - 1))
    rank = names.rank("dense").cast(pl.Int64).fill_null(0)
    numbers = rank - int(rank.to_numpy().min(initial=1))
    return numbers.gather(run).alias(problem.name)


def held_out(n_problems: int, seed: int) -> Flags:
    """Draw one half of some problems.

    Parameters
    ----------
    n_problems
        Number of problems.
    seed
        Seed of the draw.

    Returns
    -------
    Flags
        (n_problems,); of an odd number the larger half.
    """
    bits = problem_bits(seed, Purpose.HALF, np.arange(n_problems))
    position = np.empty(n_problems, dtype=np.int64)
    position[np.argsort(bits, kind="stable")] = np.arange(n_problems)
    return position >= n_problems // 2


class Request(NamedTuple):
    """Which columns of some trajectories are read, and how."""

    schema: pl.Schema
    groups: tuple[str, ...]
    readings: tuple[Reading, ...]

    def tabulate(
        self,
        trajectories: FrameT,
        make_table: Callable[[Sheet], pl.DataFrame],
        result: Schema,
    ) -> FrameT:
        """Plan to make one table.

        Parameters
        ----------
        trajectories
            Attempts.
        make_table
            Makes it of the attempts, with `Sheet.table`.
        result
            Its columns, without those that name a group.

        Returns
        -------
        FrameT
            The table; a plan of it for a LazyFrame.
        """
        schema = {name: self.schema[name] for name in self.groups} | dict(result)
        return run_plan(
            trajectories,
            lambda lazy: self.narrow(lazy).map_batches(
                lambda frame: self.named(make_table(self.sheet(frame)), result), schema=schema
            ),
        )

    def narrow(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Select what is read, under names that collide with none of the caller's.

        Parameters
        ----------
        lazy
            Attempts.

        Returns
        -------
        pl.LazyFrame
            A plan.
        """
        lengths = []
        if "step_scores" in self.schema:
            lists = pl.col("step_scores").cast(pl.List(pl.Float64))
            lengths.append(lists.list.len().cast(pl.Int64).alias("steps"))
        if "n_tokens" in self.schema:
            lengths.append(pl.col("n_tokens").cast(pl.Int64).alias("tokens"))
        return lazy.select(
            *[pl.col(name).alias(key) for key, name in self._keys.items()],
            pl.col("problem_id").alias("problem"),
            pl.col("is_correct").cast(pl.Boolean),
            *lengths,
            *[
                reading.score.cast(pl.Float64).fill_nan(None).alias(f"score{reading.number}")
                for reading in self.readings
            ],
        )

    def sheet(self, frame: pl.DataFrame) -> Sheet:
        """Lay out what `narrow` selected.

        Parameters
        ----------
        frame
            The selected columns.

        Returns
        -------
        Sheet
            The attempts of each group.
        """
        problem = problem_numbers(frame["problem"])
        numbered = frame.with_columns(problem)
        if self.groups:
            parts = numbered.partition_by([*self._keys])
        else:
            parts = [numbered] if frame.height else []
        return Sheet(
            tuple(Part(part.select(*self._keys).head(1), self._marks(part)) for part in parts),
            1 + int(problem.to_numpy().max(initial=-1)),
        )

    def named(self, table: pl.DataFrame, result: Schema) -> pl.DataFrame:
        """Sort a table by group and reduction, and give its groups the caller's names.

        Parameters
        ----------
        table
            What `Sheet.table` made.
        result
            Its columns, without those that name a group.

        Returns
        -------
        pl.DataFrame
            The table.
        """
        if not table.height:
            names = {name: self.schema[name] for name in self.groups}
            return pl.DataFrame(schema=names | dict(result))
        return table.sort(*self._keys, "reduction", maintain_order=True).rename(self._keys)

    @property
    def _keys(self) -> dict[str, str]:
        """The caller's columns under the names used on the way."""
        return {f"key{i}": name for i, name in enumerate(self.groups)}

    def _marks(self, part: pl.DataFrame) -> tuple[Marks, ...]:
        """Return what each reading gives a group."""
        lengths = {unit: part[unit] for unit in LENGTHS if unit in part.columns}
        return tuple(
            Marks(
                reading.name,
                part[f"score{reading.number}"],
                part["is_correct"],
                part["problem"],
                lengths,
            )
            for reading in self.readings
        )


def request(
    trajectories: pl.DataFrame | pl.LazyFrame,
    reductions: StepReduction | Sequence[StepReduction] | None,
    by: ColumnNames,
    result: Iterable[str],
) -> Request:
    """Check what a caller gave and say what is to be read of it.

    Parameters
    ----------
    trajectories
        What was given.
    reductions
        Names in `STEP_REDUCTIONS`, or None for the column `score`.
    by
        Columns that get rows of their own.
    result
        Columns that the result has for itself.

    Returns
    -------
    Request
        What to read.

    Raises
    ------
    ColumnsError
        When a column is missing or has a dtype that cannot be used.
    """
    check_frame(trajectories, "trajectories")
    groups = check_names(by, "by", taken={*result, "problem_id"})
    schema = require_columns(trajectories, [*groups, "problem_id", "is_correct"])
    if schema["is_correct"] not in {pl.Boolean, pl.Null}:
        raise ColumnsError(
            f"trajectories: 'is_correct' is {schema['is_correct']}, must be Boolean."
        )
    return Request(schema, groups, make_readings(schema, reductions, is_score_needed=True))
