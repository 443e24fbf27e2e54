"""What is read of graded and scored attempts, group by group, and tables of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._draws import Purpose, problem_bits
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.errors import ColumnsError
from ttsframe.schema import require_columns
from ttsframe.verifier.marks import Attempts, Marks
from ttsframe.verifier.ordered import Flags, Floats, Ints, ordinal_codes
from ttsframe.votes.engine.pools import Reading, make_readings

Columns: TypeAlias = Mapping[str, Sequence[object] | Floats | Ints]

Schema: TypeAlias = Mapping[str, type[pl.DataType]]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

LENGTHS: Final[tuple[str, ...]] = ("steps", "tokens")
"""What an attempt is long in."""


class Part(NamedTuple):
    """One group of attempts: a row of what names it, and its scores by reading, NaN for none."""

    name: pl.DataFrame
    attempts: Attempts
    scores: Mapping[str, Floats]


class Table(NamedTuple):
    """One question to each reading of each group.

    - `schema`: columns of the answer, without those that name a group;
    - `rows`: what there is to say of one reading, on any thread; it must not touch Polars;
    - `finish`: fills in what can be said in expressions.
    """

    schema: Schema
    rows: Callable[[Marks], Columns]
    finish: Callable[[pl.DataFrame], pl.DataFrame] = lambda table: table


class Sheet(NamedTuple):
    """All attempts, group by group, the number of problems over all groups, and of threads."""

    parts: tuple[Part, ...]
    n_problems: int
    n_threads: int

    def spans(self) -> dict[str, tuple[float, float]]:
        """Give the range that the finite scores of each reading lie in, over all groups.

        Returns
        -------
        dict[str, tuple[float, float]]
            (0, 1) where that holds them all; else the smallest and the largest.
        """

        def ends(source: tuple[Part, str]) -> tuple[float, float]:
            part, reading = source
            score = part.scores[reading]
            is_used = part.attempts.is_graded & np.isfinite(score)
            used = score if is_used.all() else score[is_used]
            return used.min(initial=np.inf), used.max(initial=-np.inf)

        sources = [(part, reading) for part in self.parts for reading in part.scores]
        spans: dict[str, tuple[float, float]] = {}
        for (_, reading), (low, high) in zip(
            sources, in_threads(ends, sources, self.n_threads), strict=True
        ):
            lowest, highest = spans.get(reading, (np.inf, -np.inf))
            spans[reading] = min(low, lowest), max(high, highest)
        for reading, (low, high) in spans.items():
            if low >= 0.0 and high <= 1.0:
                spans[reading] = 0.0, 1.0
            elif low == high:
                spans[reading] = low - 0.5, high + 0.5
        return spans

    def tables(self, tables: Sequence[Table]) -> list[pl.DataFrame]:
        """Ask each reading of each group, which is sorted once for all questions.

        Parameters
        ----------
        tables
            Questions.

        Returns
        -------
        list[pl.DataFrame]
            All rows of each, behind the columns that name their group; NaN is null.
        """
        sources = [(part, reading) for part in self.parts for reading in part.scores]

        def answer(source: tuple[Part, str]) -> list[Columns]:
            part, reading = source
            marks = Marks(reading, part.attempts, part.scores[reading])
            return [table.rows(marks) for table in tables]

        answers = in_threads(answer, sources, self.n_threads)
        made = []
        for i, table in enumerate(tables):
            schema = dict(table.schema)
            found = [pl.DataFrame(columns[i], schema=schema, strict=False) for columns in answers]
            named = [
                # A frame without columns has no row that could be joined.
                part.name.join(rows, how="cross") if part.name.width else rows
                for (part, _), rows in zip(sources, found, strict=True)
            ]
            rows = pl.concat(named or [pl.DataFrame(schema=schema)])
            made.append(table.finish(rows.with_columns(pl.col(pl.Float64).fill_nan(None))))
        return made


def in_threads(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], n_threads: int
) -> list[ResultT]:
    """Do some work on each item.

    Parameters
    ----------
    work
        What to do, on any thread; it must not touch Polars.
    items
        On what.
    n_threads
        Number of threads.

    Returns
    -------
    list[ResultT]
        What came out, in the order of the items.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(n_threads) as threads:
        return [*threads.map(work, items)]


def name_numbers(names: pl.Series) -> pl.Series:
    """Give names numbers from 0 in their order, a missing one first.

    Parameters
    ----------
    names
        Such as the problem of each attempt.

    Returns
    -------
    pl.Series
        Int64, under the same name.
    """
    # Equal names mostly stand together, so that few have to be compared.
    run = names.rle_id()
    heads = names.filter(run != run.shift(fill_value=2**32 - 1))
    rank = heads.rank("dense").cast(pl.Int64).fill_null(0)
    numbers = rank - int(rank.to_numpy().min(initial=1))
    return numbers.gather(run).alias(names.name)


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
    n_threads: int

    def tabulate(
        self,
        trajectories: FrameT,
        make_table: Callable[[Sheet], Table],
        result: Schema,
    ) -> FrameT:
        """Plan to make one table.

        Parameters
        ----------
        trajectories
            Attempts.
        make_table
            What to ask of the attempts.
        result
            Columns of the answer, without those that name a group.

        Returns
        -------
        FrameT
            The table; a plan of it for a LazyFrame.
        """
        schema = {name: self.schema[name] for name in self.groups} | dict(result)

        def apply(frame: pl.DataFrame) -> pl.DataFrame:
            sheet = self.sheet(frame)
            return self.named(sheet.tables([make_table(sheet)])[0], result)

        return run_plan(
            trajectories, lambda lazy: self.narrow(lazy).map_batches(apply, schema=schema)
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
            pl.col("is_correct").cast(pl.Boolean).alias("is_correct"),
            *lengths,
            *[
                reading.score
                .cast(pl.Float64)
                .fill_null(float("nan"))
                .alias(f"score{reading.number}")
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
        problem = name_numbers(frame["problem"])
        numbered = frame.with_columns(problem)
        if self.groups:
            parts = numbered.partition_by([*self._keys])
        else:
            parts = [numbered] if frame.height else []
        return Sheet(
            tuple(
                Part(
                    part.select(*self._keys).head(1),
                    self._attempts(part),
                    {
                        reading.name: part[f"score{reading.number}"].to_numpy()
                        for reading in self.readings
                    },
                )
                for part in parts
            ),
            1 + int(problem.to_numpy().max(initial=-1)),
            self.n_threads,
        )

    def named(self, table: pl.DataFrame, result: Schema) -> pl.DataFrame:
        """Sort a table by group and reduction, and give its groups the caller's names.

        Parameters
        ----------
        table
            What `Sheet.tables` made.
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

    def _attempts(self, part: pl.DataFrame) -> Attempts:
        """Return the attempts of one group as arrays."""
        numbers = part["problem"].to_numpy()
        problems = np.arange(int(numbers.max()) + 1)
        if self.groups:
            problems, numbers = np.unique(numbers, return_inverse=True)
        is_correct, lengths = part["is_correct"], {}
        for unit in LENGTHS:
            if unit in part.columns:
                lengths[unit] = np.full(part.height, -1)
                is_known = part[unit].is_not_null().to_numpy()
                lengths[unit][is_known] = ordinal_codes(part[unit].drop_nulls().to_numpy())
        is_right, is_graded = is_correct.fill_null(value=False), is_correct.is_not_null()
        tag = numbers * 2 + is_right.to_numpy()
        return Attempts(tag, is_right.to_numpy(), is_graded.to_numpy(), problems, lengths)


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
    readings = make_readings(schema, reductions, is_score_needed=True)
    # Polars is asked for its number of threads here: inside of a query it says 1.
    return Request(schema, groups, readings, pl.thread_pool_size())
