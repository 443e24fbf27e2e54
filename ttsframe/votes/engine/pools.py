"""Attempts as flat arrays, sorted by problem, and work on them in blocks of problems.

Grouping, ranking and cumulating attempts within many small problems is the worst case of a streaming
group_by: it hashes and moves every attempt once per stage. So the few columns needed are laid out
problem by problem, and numpy works on blocks of problems, one thread per core. Texts stay in Arrow:
keys are numbers here, and the texts of the winners are looked up at the end.

The cost of a curve in bytes and passes over the attempts, for any number of budgets, selectors and
reductions:

1. One scan decodes the columns of the plan. Lists of step scores, 8 bytes a step, take most of the
   time. An attempt keeps 13 bytes (4 each for problem, key and number, 1 for the grade), 4 for its
   spelling if there is a column `answer`, and 8 for each reading of a score.
2. One pass checks whether the rows of each problem are adjacent. If not, one sort of 8 bytes an
   attempt and one gather of the rest bring them together.
3. Per block, one sort of 8 bytes an attempt brings equal answers together; then each selector takes a
   few passes over columns of 8 bytes, in the cache. Sums over buckets of attempts give tables of
   answers by budgets, which are several times smaller.
4. The result has one row per problem, budget and selector: a fifth of the attempts at 5 selectors and
   9 budgets of 256.

A bare `group_by(problem_id, answer_key).len()` decodes two columns of dictionary numbers, a twentieth
of the bytes of step 1, and hashes them once: step 1 alone takes as long as two or three of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._exprs import from_safe, safe_names
from ttsframe._typing import Flags, Floats, Integers, Reduction
from ttsframe._waits import Threads
from ttsframe.errors import DataError
from ttsframe.schema import require_columns
from ttsframe.steps import SCORE, named_reductions
from ttsframe.votes.engine.runs import attempt_order, run_lengths, run_starts
from ttsframe.votes.engine.tokens import Tokens, tokenize

ResultT = TypeVar("ResultT")

UNGRADED: Final = 2
"""Code of a null `is_correct`; 0 is false, 1 is true."""

_OWN: Final = "own:"
"""Begins the names of columns that are there for selectors of the user."""

_BLOCK_ROWS: Final = 1 << 18
_BLOCK_CELLS: Final = 1 << 22
"""Limits of a block in rows, and in pairs of row and budget, unless it is a single problem.

Smaller blocks wait for the interpreter's lock: at 2^16 a curve takes 1.4 times as long."""


class Reading(NamedTuple):
    """One way of reading a score from an attempt."""

    number: int
    name: str
    score: pl.Expr


class Block(NamedTuple):
    """Attempts of some problems, problem by problem, in any order within one."""

    first_problem: int
    """Number of the first problem among all."""
    first_row: int
    """Number of the first row among all."""
    starts: Integers
    """(n_problems + 1,): where the rows of each problem begin, counted from `first_row`."""
    attempt: npt.NDArray[np.uint32]
    key: npt.NDArray[np.uint32]
    """One number per answer key, 0 for no answer."""
    grade: npt.NDArray[np.int8]
    """0, 1 or `UNGRADED`."""
    scores: tuple[Floats, ...]
    """One array per reading, NaN for no score."""
    texts: Tokens | None = None
    """Texts of the answers, where a selector reads them."""
    columns: pl.DataFrame | None = None
    """What selectors of the user read, under its names."""
    is_answerless: Flags | None = None
    """(n_problems,): no attempt at the problem has an answer, and none a gold answer; None: no problem."""

    def take(self, rows: Integers | slice, starts: Integers) -> Block:
        """Return some rows as a block of its own."""
        return Block(
            first_problem=0,
            first_row=0,
            starts=starts,
            attempt=self.attempt[rows],
            key=self.key[rows],
            grade=self.grade[rows],
            scores=tuple(score[rows] for score in self.scores),
            texts=self.texts and self.texts.take(rows),
            columns=None if self.columns is None else self.columns[rows],
        )


class Pools(NamedTuple):
    """All attempts, problem by problem."""

    rows: pl.DataFrame
    """One row per attempt: `attempt`, `key`, `grade`, `score0`, `score1`, ..., and `answer` where the
    source has spellings beside its keys. `key` and `answer` are categorical."""
    problems: pl.DataFrame
    """One row per problem: `key0`, `key1`, ..., the columns that identify it."""
    starts: Integers
    """(n_problems + 1,): where the rows of each problem begin."""
    order: Integers
    """(n_problems,): the problems sorted by the columns that identify them."""
    position: Integers
    """(n_problems,): the position of each problem in this order."""
    key_dtype: pl.DataType
    """Dtype of the keys in a result."""
    n_threads: int
    """Number of threads for blocks."""
    is_answerless: Flags
    """(n_problems,): no attempt at the problem has an answer, and none a gold answer."""
    texts: Tokens | None = None
    """Texts of the answers, once they are read."""

    def with_texts(self) -> Pools:
        """Read the text of each answer: its spelling, or its key where it has none."""
        key = self.rows["key"]
        spelling = self.rows["answer"] if "answer" in self.rows.columns else key
        if spelling.null_count() > key.null_count():
            spelling = spelling.cast(pl.String).zip_with(
                spelling.is_not_null(), key.cast(pl.String)
            )
        if spelling.dtype == pl.String:
            spelling = spelling.cast(new_category())
        return self._replace(texts=tokenize(spelling))

    def in_blocks(
        self, n_budgets: int, work: Callable[[Block], ResultT], *, uses_polars: bool = False
    ) -> list[ResultT]:
        """Call `work` on every block, on all cores, or here if it uses Polars."""
        blocks = [*self._blocks(n_budgets)]
        # In another thread Polars could wait for this one, which would wait for it.
        if len(blocks) < 2 or uses_polars:
            return [work(block) for block in blocks]
        # Inside a query pl.thread_pool_size() returns 1, so the number was read before.
        with Threads(self.n_threads) as threads:
            return threads.each(work, blocks)

    def _blocks(self, n_budgets: int) -> Iterator[Block]:
        """Split into blocks; no problem is split."""
        attempt = self.rows["attempt"].to_numpy()
        key = (self.rows["key"].to_physical().cast(pl.UInt32) + 1).fill_null(0).to_numpy()
        grade = self.rows["grade"].to_numpy()
        scores = [column.to_numpy() for column in self.rows.select("^score[0-9]+$")]
        own = {name: name[len(_OWN) :] for name in self.rows.columns if name.startswith(_OWN)}
        columns = self.rows.select([*own]).rename(own) if own else None
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
                columns=None if columns is None else columns[rows],
                is_answerless=self.is_answerless[first:last],
            )
            first = last


def make_readings(
    schema: pl.Schema,
    reductions: Reduction | Sequence[Reduction] | None,
    *,
    is_score_needed: bool,
) -> tuple[Reading, ...]:
    """Return one reading per reduction, or that of `score`; none if it is missing and not needed."""
    frame = pl.LazyFrame(schema=schema)
    if reductions is not None:
        named = named_reductions(reductions)
        require_columns(frame, ["step_scores"])
    else:
        if is_score_needed:
            require_columns(frame, ["score"])
        named = {SCORE: pl.col("score")} if "score" in schema else {}
    return tuple(Reading(number, name, named[name]) for number, name in enumerate(named))


def key_dtype(schema: pl.Schema) -> pl.DataType:
    """Return the dtype of the keys in a result: String, or the caller's categories."""
    dtype = schema["answer_key"]
    return dtype if isinstance(dtype, pl.Categorical | pl.Enum) else pl.String()


def new_category() -> pl.Categorical:
    """Return a new categorical dtype."""
    # With categories of its own, so that the texts are freed with the plan.
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
    read: Iterable[str] = (),
) -> pl.LazyFrame:
    """Plan a table made from attempts: columns `keys`, then `result`, by default as `made`."""
    # `read` are columns that blocks carry for selectors of the user.
    # `work` returns a table with the columns of `Pools.problems` and then those of the schema `made`.
    # Polars runs it on one thread, so expressions belong in `result`.
    named = safe_names(keys)
    category = new_category()

    def column(name: str) -> pl.Expr:
        return pl.col(name).cast(category) if schema[name] == pl.String else pl.col(name)

    # In a source without answers or grades these columns may have the dtype Null.
    key, answer, grade = pl.col("answer_key"), pl.col("answer"), pl.lit(None, pl.Boolean)
    if key_dtype(schema) == pl.String:
        key = key.cast(pl.String).cast(category)
    if "is_correct" in schema:
        grade = pl.col("is_correct").cast(pl.Boolean)
    gold = next((name for name in ("gold_key", "gold") if name in schema), None)
    narrow = trajectories.select(
        *[column(name).alias(key) for key, name in named.items()],
        pl.col("attempt").cast(pl.UInt32),
        key.alias("key"),
        *([answer.cast(pl.String).cast(category)] if "answer" in schema else []),
        grade.cast(pl.Int8).fill_null(UNGRADED).alias("grade"),
        *([] if gold is None else [pl.col(gold).is_not_null().alias("has_gold")]),
        *[
            reading.score.cast(pl.Float64).fill_null(float("nan")).alias(f"score{reading.number}")
            for reading in readings
        ],
        *[pl.col(name).alias(f"{_OWN}{name}") for name in read],
    )
    dtypes = {name: schema[name] for name in keys}
    n_threads = pl.thread_pool_size()

    def apply(frame: pl.DataFrame) -> pl.DataFrame:
        problems, rows, starts = _lay_out(frame, [*named], n_threads)
        problems = problems.cast({key: dtypes[name] for key, name in named.items()})
        order = problems.select(pl.arg_sort_by(*named)).to_series().cast(pl.Int64).to_numpy()
        position = np.argsort(order)
        rows, is_answerless = _settle_grades(rows, starts)
        pools = Pools(
            rows, problems, starts, order, position, key_dtype(schema), n_threads, is_answerless
        )
        _check_numbered(pools, [*named.values()])
        return work(pools)

    of_problem = {key: dtypes[name] for key, name in named.items()}
    return narrow.map_batches(apply, schema={**of_problem, **made}).select(
        *from_safe(named),
        **(result or {name: pl.col(name) for name in made}),
    )


def _lay_out(
    frame: pl.DataFrame, keys: list[str], n_threads: int
) -> tuple[pl.DataFrame, pl.DataFrame, Integers]:
    """Sort attempts by problem; return the problems, the attempts, and where each problem begins."""
    first = np.flatnonzero(_is_first_of_run(frame, keys).to_numpy())
    firsts, attempts = frame.select(keys)[first], frame.drop(keys)
    number = _numbers(firsts)
    if np.bincount(number, minlength=1).max() <= 1:
        return firsts, attempts.rechunk(), np.append(first, frame.height)
    attempt = attempts["attempt"].fill_null(0).to_numpy()
    of_row = np.repeat(number, run_lengths(first, frame.height))
    row = attempt_order(of_row, attempt)
    starts = run_starts(of_row[row])
    problems = firsts[np.searchsorted(first, row[starts], side="right") - 1]
    rows = _gather(attempts.rechunk(), row, n_threads)
    return problems, rows, np.append(starts, frame.height)


def _settle_grades(rows: pl.DataFrame, starts: Integers) -> tuple[pl.DataFrame, Flags]:
    """Grade attempts without an answer; return which problems have neither answers nor a gold answer."""
    has_answer = rows["key"].is_not_null().to_numpy()
    first = starts[:-1]
    if has_answer.all() or not len(first):
        return rows.drop("has_gold", strict=False), np.zeros(len(first), bool)
    grade = rows["grade"].to_numpy()
    is_graded = np.repeat(np.logical_or.reduceat(grade != UNGRADED, first), np.diff(starts))
    is_wrong = (grade == UNGRADED) & is_graded
    is_known = np.logical_or.reduceat(has_answer, first)
    if "has_gold" in rows.columns:
        has_gold = rows["has_gold"].to_numpy()
        is_wrong |= has_gold & (grade != UNGRADED)
        is_known |= np.logical_or.reduceat(has_gold, first)
    settled = np.where(is_wrong & ~has_answer, np.int8(0), grade)
    return rows.drop("has_gold", strict=False).with_columns(grade=settled), ~is_known


def _gather(frame: pl.DataFrame, rows: Integers, n_threads: int) -> pl.DataFrame:
    """Gather rows; numbers in separate threads, which do not wait for those of Polars."""
    plain = [column for column in frame if column.dtype.is_numeric() and not column.null_count()]
    with Threads(n_threads) as threads:
        taken = [threads.submit(column.to_numpy().take, rows) for column in plain]
        others = frame.drop([column.name for column in plain])
        gathered = others.select(pl.all().gather(rows))
    return gathered.with_columns(
        pl.Series(column.name, values.result()) for column, values in zip(plain, taken, strict=True)
    )


def _numbers(names: pl.DataFrame) -> Integers:
    """Return numbers from 0, the same for equal rows."""
    single = names.to_series()
    if names.width == 1 and isinstance(single.dtype, pl.Categorical):
        return single.to_physical().cast(pl.Int64).fill_null(-1).to_numpy() + 1
    distinct = names.unique().with_row_index("number")
    numbered = names.join(
        distinct, on=names.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return numbered["number"].cast(pl.Int64).to_numpy()


def _is_first_of_run(frame: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """Return which rows belong to another problem than the row before them."""
    names = pl.col(*keys).to_physical()
    is_new = pl.any_horizontal(names.ne_missing(names.shift()), pl.int_range(pl.len()) == 0)
    return frame.select(is_new.alias("is_first")).to_series()


def _check_numbered(pools: Pools, names: Sequence[str]) -> None:
    """Raise if an attempt has no number."""
    attempt = pools.rows["attempt"]
    if not attempt.null_count():
        return
    rows = np.flatnonzero(attempt.is_null().to_numpy())
    has_null = np.zeros(len(pools.order), bool)
    has_null[np.searchsorted(pools.starts, rows, side="right") - 1] = True
    problem = next(problem for problem in pools.order if has_null[problem])
    raise DataError(
        f"{name_problem(pools, int(problem), names)}: 'attempt' is null in a row, expected 0..n-1. Hint: "
        "tts.renumber_attempts(trajectories) numbers attempts in row order."
    )


def name_problem(pools: Pools, problem: int, names: Sequence[str]) -> str:
    """Name a problem in a message, such as `seed 3, problem_id 'p'`."""
    values = pools.problems.row(problem)
    return ", ".join(f"{name} {value!r}" for name, value in zip(names, values, strict=True))
