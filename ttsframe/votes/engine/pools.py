"""Attempts as flat arrays, a stretch of rows to each problem, and work on them in blocks.

Grouping, ranking and cumulating attempts inside many small problems is what a streaming group_by is
worst at: it hashes and moves every attempt once per stage. Here the few columns that matter are laid
out problem by problem; numpy works on blocks of problems, a thread to each core. Texts stay in Arrow:
keys are numbers here, and those that win are looked up at the end.

What a curve costs, in bytes and passes over the attempts, whatever the number of budgets, selectors
and reductions:

1. One scan decodes the columns that are named in the plan, and no other. Of lists of step scores, 8
   bytes a step, this is most of the time. What stays of an attempt is 13 bytes (4 each for problem,
   key and number, 1 for the grade), 4 for its spelling if there is a column `answer`, and 8 for each
   reading of a score.
2. One pass over the problems' numbers tells whether each problem's attempts stand together. Where
   they do not, one sort of 8 bytes an attempt and one gather of the rest bring them together.
3. Blocks: one sort of 8 bytes an attempt brings the attempts with equal answers together; then each
   selector takes a few passes over columns of 8 bytes, in the cache. Sums over buckets of attempts
   leave tables of answers by budgets, which are several times smaller.
4. What is picked is one row per problem, budget and selector: a fifth of the attempts at 5 selectors
   and 9 budgets of 256.

A bare ``group_by(problem_id, answer_key).len()`` decodes two columns of dictionary numbers, a
twentieth of the bytes of step 1, and hashes them once: the scan of step 1 alone takes as long as two
or three of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import check_choices
from ttsframe._typing import StepReduction
from ttsframe.errors import DataError
from ttsframe.schema import require_columns
from ttsframe.steps import STEP_REDUCTIONS
from ttsframe.votes.engine.runs import attempt_order, run_lengths, run_starts
from ttsframe.votes.engine.tokens import Tokens, tokenize

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
ResultT = TypeVar("ResultT")

UNGRADED: Final = 2
"""Code of a null `is_correct`; 0 is false, 1 is true."""

_BLOCK_ROWS: Final = 1 << 18
_BLOCK_CELLS: Final = 1 << 22
"""A block has at most so many rows, and so many pairs of row and budget, or is a single problem.

Smaller ones wait for the interpreter's lock: at 2^16 a curve takes 1.4 times as long."""


class Reading(NamedTuple):
    """One way of reading a score from an attempt."""

    number: int
    name: str
    score: pl.Expr


class Block(NamedTuple):
    """Attempts of some problems, problem by problem, in any order within one.

    - `first_problem`, `first_row`: where the block begins among all problems and rows;
    - `starts` (n_problems + 1,): where each problem's rows begin, counted from `first_row`;
    - `attempt` (n_rows,): UInt32;
    - `key` (n_rows,): UInt32, one for each answer key, 0 for no answer;
    - `grade` (n_rows,): Int8, 0, 1 or `UNGRADED`;
    - `scores`, one (n_rows,) per reading: Float64, NaN for no score;
    - `texts`: what answers say, where a selector reads it.
    """

    first_problem: int
    first_row: int
    starts: Integers
    attempt: npt.NDArray[np.uint32]
    key: npt.NDArray[np.uint32]
    grade: npt.NDArray[np.int8]
    scores: tuple[Floats, ...]
    texts: Tokens | None = None


class Pools(NamedTuple):
    """All attempts, problem by problem.

    - `rows`, one per attempt: `attempt`, `key`, `grade`, `score0`, `score1`, ..., and `answer` where
      the source has spellings beside its keys; both of these are categories;
    - `problems`, one per problem: `key0`, `key1`, ..., which stand for the columns that name it;
    - `starts` (n_problems + 1,): where each problem's rows begin;
    - `order` (n_problems,): the problems in ascending order of what names them;
    - `position` (n_problems,): where each stands in that order;
    - `key_dtype`: what keys are in a result;
    - `n_threads`: how many threads may work on blocks;
    - `texts`: what answers say, once they are read.
    """

    rows: pl.DataFrame
    problems: pl.DataFrame
    starts: Integers
    order: Integers
    position: Integers
    key_dtype: pl.DataType
    n_threads: int
    texts: Tokens | None = None

    def with_texts(self) -> Pools:
        """Read what answers say: their spelling, and where there is none, their key.

        Returns
        -------
        Pools
            The same attempts, with `texts`.
        """
        key = self.rows["key"]
        spelling = self.rows["answer"] if "answer" in self.rows.columns else key
        if spelling.null_count() > key.null_count():
            spelling = spelling.cast(pl.String).zip_with(
                spelling.is_not_null(), key.cast(pl.String)
            )
        if spelling.dtype == pl.String:
            spelling = spelling.cast(_new_category())
        return self._replace(texts=tokenize(spelling))

    def in_blocks(self, n_budgets: int, work: Callable[[Block], ResultT]) -> list[ResultT]:
        """Do some work on all attempts, on all cores.

        Parameters
        ----------
        n_budgets
            Number of budgets that an attempt may count for.
        work
            What to do with a block; it must not touch Polars.

        Returns
        -------
        list[ResultT]
            What came out, in the order of `problems`.
        """
        blocks = [*self._blocks(n_budgets)]
        if len(blocks) < 2:
            return [work(block) for block in blocks]
        # Polars is not asked for its number of threads here: inside of a query it says 1.
        with ThreadPoolExecutor(self.n_threads) as threads:
            return [*threads.map(work, blocks)]

    def _blocks(self, n_budgets: int) -> Iterator[Block]:
        """Cut into blocks of whole problems."""
        attempt = self.rows["attempt"].to_numpy()
        key = (self.rows["key"].to_physical().cast(pl.UInt32) + 1).fill_null(0).to_numpy()
        grade = self.rows["grade"].to_numpy()
        scores = [column.to_numpy() for column in self.rows.select("^score[0-9]+$")]
        n_rows = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // n_budgets))
        first, n_problems = 0, len(self.starts) - 1
        while first < n_problems:
            start = int(self.starts[first])
            fitting = int(np.searchsorted(self.starts, start + n_rows, side="right")) - 1
            last = max(fitting, first + 1)
            rows = slice(start, int(self.starts[last]))
            yield Block(
                first_problem=first,
                first_row=start,
                starts=self.starts[first : last + 1] - start,
                attempt=attempt[rows],
                key=key[rows],
                grade=grade[rows],
                scores=tuple(score[rows] for score in scores),
                texts=self.texts and self.texts.take(rows),
            )
            first = last


def make_readings(
    schema: pl.Schema,
    reductions: StepReduction | Sequence[StepReduction] | None,
    *,
    is_score_needed: bool,
) -> tuple[Reading, ...]:
    """Return the readings of scores that a caller asked for.

    Parameters
    ----------
    schema
        Schema of the trajectories.
    reductions
        Names in `STEP_REDUCTIONS`, or None for the column `score`.
    is_score_needed
        Whether a missing column `score` is an error.

    Returns
    -------
    tuple[Reading, ...]
        One per reduction; none where there is no score and none is needed.
    """
    frame = pl.LazyFrame(schema=schema)
    if reductions is not None:
        chosen = check_choices(reductions, "reductions", STEP_REDUCTIONS)
        require_columns(frame, ["step_scores"])
        named: list[tuple[str, pl.Expr]] = [
            (name, STEP_REDUCTIONS[name]("step_scores")) for name in chosen
        ]
    else:
        if is_score_needed:
            require_columns(frame, ["score"])
        named = [("score", pl.col("score"))] if "score" in schema else []
    return tuple(Reading(number, name, score) for number, (name, score) in enumerate(named))


def key_dtype(schema: pl.Schema) -> pl.DataType:
    """Return the dtype of the keys in a result: a caller's categories are kept.

    Parameters
    ----------
    schema
        Schema of the trajectories.

    Returns
    -------
    pl.DataType
        String, or what the source has.
    """
    dtype = schema["answer_key"]
    return dtype if isinstance(dtype, pl.Categorical | pl.Enum) else pl.String()


def _new_category() -> pl.Categorical:
    """Return a dtype in which one number stands for a text."""
    # It is of its own kind, so that the texts are forgotten with the plan.
    return pl.Categorical(pl.Categories.random("ttsframe", physical=pl.UInt32))


def map_pools(
    trajectories: pl.LazyFrame,
    schema: pl.Schema,
    *,
    keys: Sequence[str],
    readings: Sequence[Reading],
    work: Callable[[Pools], pl.DataFrame],
    made: Mapping[str, pl.DataType | type[pl.DataType]],
    result: Mapping[str, pl.Expr] | None = None,
) -> pl.LazyFrame:
    """Plan to lay attempts out by problem and make a table of them.

    Parameters
    ----------
    trajectories
        Attempts.
    schema
        Their schema.
    keys
        Columns that name a problem of a run, `problem_id` last.
    readings
        Scores that are read.
    work
        Makes a table that begins with the columns of `Pools.problems`. Within it Polars has one
        thread, so what can be said in expressions is better said in `result`.
    made
        Schema of the other columns of that table.
    result
        Columns that are made from these; None: the same columns.

    Returns
    -------
    pl.LazyFrame
        `keys` and the columns of the result. A plan; nothing is collected, and no column is read
        but those that are needed.
    """
    named = {f"key{i}": name for i, name in enumerate(keys)}
    category = _new_category()

    def column(name: str) -> pl.Expr:
        return pl.col(name).cast(category) if schema[name] == pl.String else pl.col(name)

    # A source without answers or grades may well give a column of nulls that is of no dtype yet.
    key, answer, grade = pl.col("answer_key"), pl.col("answer"), pl.lit(None, pl.Boolean)
    if key_dtype(schema) == pl.String:
        key = key.cast(pl.String).cast(category)
    if "is_correct" in schema:
        grade = pl.col("is_correct").cast(pl.Boolean)
    narrow = trajectories.select(
        *[column(name).alias(key) for key, name in named.items()],
        pl.col("attempt").cast(pl.UInt32),
        key.alias("key"),
        *([answer.cast(pl.String).cast(category)] if "answer" in schema else []),
        grade.cast(pl.Int8).fill_null(UNGRADED).alias("grade"),
        *[
            reading.score.cast(pl.Float64).fill_null(float("nan")).alias(f"score{reading.number}")
            for reading in readings
        ],
    )
    dtypes = {name: schema[name] for name in keys}

    n_threads = pl.thread_pool_size()

    def apply(frame: pl.DataFrame) -> pl.DataFrame:
        problems, rows, starts = _lay_out(frame, [*named], n_threads)
        problems = problems.cast({key: dtypes[name] for key, name in named.items()})
        order = problems.select(pl.arg_sort_by(*named)).to_series().cast(pl.Int64).to_numpy()
        position = np.argsort(order)
        pools = Pools(rows, problems, starts, order, position, key_dtype(schema), n_threads)
        _check_numbered(pools, [*named.values()])
        return work(pools)

    of_problem = {key: dtypes[name] for key, name in named.items()}
    return narrow.map_batches(apply, schema={**of_problem, **made}).select(
        *[pl.col(key).alias(name) for key, name in named.items()],
        **(result or {name: pl.col(name) for name in made}),
    )


def _lay_out(
    frame: pl.DataFrame, keys: list[str], n_threads: int
) -> tuple[pl.DataFrame, pl.DataFrame, Integers]:
    """Return problems, attempts, and where each problem's begin, once they stand together."""
    first = np.flatnonzero(_is_first_of_run(frame, keys).to_numpy())
    heads, attempts = frame.select(keys)[first], frame.drop(keys)
    number = _numbers(heads)
    if np.bincount(number, minlength=1).max() <= 1:
        return heads, attempts.rechunk(), np.append(first, frame.height)
    attempt = attempts["attempt"].fill_null(0).to_numpy()
    of_row = np.repeat(number, run_lengths(first, frame.height))
    row = attempt_order(of_row, attempt)
    starts = run_starts(of_row[row])
    problems = heads[np.searchsorted(first, row[starts], side="right") - 1]
    rows = _gather(attempts.rechunk(), row, n_threads)
    return problems, rows, np.append(starts, frame.height)


def _gather(frame: pl.DataFrame, rows: Integers, n_threads: int) -> pl.DataFrame:
    """Gather rows, plain numbers in threads of their own, which must not wait for Polars'."""
    plain = [column for column in frame if column.dtype.is_numeric() and not column.null_count()]
    with ThreadPoolExecutor(n_threads) as threads:
        taken = [threads.submit(column.to_numpy().take, rows) for column in plain]
        others = frame.drop([column.name for column in plain])
        gathered = others.select(pl.all().gather(rows))
    return gathered.with_columns(
        pl.Series(column.name, values.result()) for column, values in zip(plain, taken, strict=True)
    )


def _numbers(names: pl.DataFrame) -> Integers:
    """Give rows numbers from 0, equal rows the same."""
    single = names.to_series()
    if names.width == 1 and isinstance(single.dtype, pl.Categorical):
        return single.to_physical().cast(pl.Int64).fill_null(-1).to_numpy() + 1
    distinct = names.unique().with_row_index("number")
    numbered = names.join(
        distinct, on=names.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return numbered["number"].cast(pl.Int64).to_numpy()


def _is_first_of_run(frame: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """Return whether a row names another problem than the row before it."""
    names = pl.col(*keys).to_physical()
    is_new = pl.any_horizontal(names.ne_missing(names.shift()), pl.int_range(pl.len()) == 0)
    return frame.select(is_new.alias("is_first")).to_series()


def _check_numbered(pools: Pools, names: Sequence[str]) -> None:
    """Raise where an attempt has no number."""
    attempt = pools.rows["attempt"]
    if not attempt.null_count():
        return
    rows = np.flatnonzero(attempt.is_null().to_numpy())
    unnumbered = np.zeros(len(pools.order), bool)
    unnumbered[np.searchsorted(pools.starts, rows, side="right") - 1] = True
    problem = next(problem for problem in pools.order if unnumbered[problem])
    raise DataError(
        f"{name_problem(pools, int(problem), names)}: 'attempt' is null in a row, expected 0..n-1. Hint: "
        "tts.renumber_attempts(trajectories) numbers attempts in row order."
    )


def name_problem(pools: Pools, problem: int, names: Sequence[str]) -> str:
    """Name a problem by its columns.

    Parameters
    ----------
    pools
        All attempts.
    problem
        Row of `pools.problems`.
    names
        The caller's names of its columns.

    Returns
    -------
    str
        For messages, such as ``seed 3, problem_id 'p'``.
    """
    values = pools.problems.row(problem)
    return ", ".join(f"{name} {value!r}" for name, value in zip(names, values, strict=True))
