"""The one pass over attempts behind votes and selectors.

An attempt's bucket is the first budget that includes it. Attempts are grouped once by (problem,
answer, bucket); what comes out is several times smaller, and each bucket of it is added to the
budgets that include it. So the work over attempts does not grow with the number of budgets, and no
attempt is kept in memory.

Attempts are packed with their grades, and scores with their attempts (`_packing`). Problems and
answers are numbered once they are few: one integer groups and joins several times faster than the
strings that it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ttsframe._checks import check_choices
from ttsframe._exprs import raise_where
from ttsframe._packing import pack_attempt, pack_score
from ttsframe._typing import StepReduction, Weights
from ttsframe.errors import DataError
from ttsframe.schema import require_columns
from ttsframe.steps import STEP_REDUCTIONS


class Reading(NamedTuple):
    """One way of reading a score from an attempt; its columns end in its number."""

    number: int
    name: str
    score: pl.Expr


class Tally(NamedTuple):
    """Votes and weights of numbered answers, and the names behind the numbers.

    - `rows`, one per (`slot`, `answer_id`), where `slot` numbers problem and budget: `is_answer`,
      false for abstentions; `n` votes, `n_graded` of them graded, the columns `checked`; packed
      attempts (null: none) `first`, `first_correct`, and `first{i}`, the first with a score under
      reading i;
      `weight{i}`, infinite where a weight is none; `top_score{i}`; and `top{i}`, the same packed
      with its attempt. A slot without any attempt has no row.
    - `problems`: `problem_number` and `key0`, `key1`, ..., which stand for the columns `keys`.
    - `answers`: `answer_id`, `answer_key` and `answer`, its earliest spelling.
    """

    rows: pl.LazyFrame
    problems: pl.LazyFrame
    answers: pl.LazyFrame
    budgets: tuple[int | None, ...]
    readings: tuple[Reading, ...]
    keys: tuple[str, ...]

    @property
    def checked(self) -> list[str]:
        """`sum`, that of the attempts, where it is needed to see whether numbers repeat."""
        return _checked(self.budgets)

    @property
    def key_columns(self) -> list[str]:
        """The internal names of the columns that name a problem of a run."""
        return _key_columns(self.keys)

    @property
    def named_keys(self) -> list[pl.Expr]:
        """The same columns under the caller's names."""
        return [pl.col(f"key{i}").alias(name) for i, name in enumerate(self.keys)]

    def name_slots(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Give every problem a row per budget, and raise where several runs were taken for one.

        Parameters
        ----------
        frame
            One row per slot, with its `n_attempts`, `first` and `checked`; slots without any
            attempt may be missing.

        Returns
        -------
        pl.LazyFrame
            With `key0`, `key1`, ... and `budget` (UInt32, null: all attempts), sorted by them;
            `n_attempts` is 0 in slots that were missing.
        """
        return (
            self.problems
            .join(_budget_frame(self.budgets), how="cross", maintain_order="left_right")
            .with_columns(slot=_slot(len(self.budgets)))
            .join(frame, on="slot", how="left", maintain_order="left")
            .with_columns(pl.col("n_attempts").fill_null(0))
            .filter(self._one_run_only())
        )

    def name_answers(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Add the names behind `answer_id`.

        Parameters
        ----------
        frame
            Rows with `answer_id`.

        Returns
        -------
        pl.LazyFrame
            With `answer_key` and `answer`, null for abstentions and where `answer_id` is null.
        """
        return frame.join(self.answers, on="answer_id", how="left", maintain_order="left")

    def _one_run_only(self) -> pl.Expr:
        """Build the filter that raises where attempts of several runs were taken for one."""
        n, budget = pl.col("n_attempts"), pl.col("budget").cast(pl.Int64)
        is_repeated = (n > budget).fill_null(value=False)
        if self.checked:
            # The sum is at least that of 0..n-1, and exactly that where n fill the budget.
            surplus = pl.col("sum") - n * (n - 1) // 2
            is_repeated |= (surplus < 0) | ((n == budget) & (surplus != 0)).fill_null(value=False)
        is_unnumbered = (pl.col("first") < 0).fill_null(value=False)
        described = pl.struct(
            (is_repeated | is_unnumbered).alias("broken"),
            *self.key_columns,
            "budget",
            "n_attempts",
            is_unnumbered.alias("is_unnumbered"),
        )
        return raise_where(described, lambda rows: _several_runs(rows, self.keys))


def _slot(n_budgets: int) -> pl.Expr:
    """Return the number of each problem and budget."""
    return pl.col("problem_number") * n_budgets + pl.col("index")


def _budget_frame(budgets: tuple[int | None, ...]) -> pl.LazyFrame:
    """Return the budgets as a frame with their `index`."""
    return pl.LazyFrame(
        {"index": range(len(budgets)), "budget": budgets},
        schema={"index": pl.Int64, "budget": pl.UInt32},
    )


def _checked(budgets: tuple[int | None, ...]) -> list[str]:
    """Return `sum`, unless the first budget shows by its count alone that runs were mixed."""
    return [] if budgets[0] == 1 else ["sum"]


def _key_columns(keys: Sequence[str]) -> list[str]:
    """Return internal names, which no column of the caller's can collide with."""
    return [f"key{i}" for i in range(len(keys))]


def _several_runs(rows: pl.DataFrame, keys: Sequence[str]) -> DataError:
    """Describe the first problem whose attempts cannot be those of one run."""
    columns = _key_columns(keys)
    row = rows.sort(*columns, "budget").row(0, named=True)
    where = ", ".join(f"{name} {row[key]!r}" for key, name in zip(columns, keys, strict=True))
    if row["is_unnumbered"]:
        return DataError(
            f"{where}: 'attempt' is null in a row, expected 0..n-1. Hint: "
            "tts.renumber_attempts(trajectories) numbers attempts in row order."
        )
    found = (
        "several rows with the same 'attempt', expected one"
        if row["n_attempts"] <= (row["budget"] or row["n_attempts"])
        else f"{row['n_attempts']} rows with attempt < {row['budget']}, expected {row['budget']}"
    )
    return DataError(
        f"{where}: {found}. Hint: rows of several runs, models or seeds are told apart with "
        f"by=(...), such as by='source_file' where files were read together; now {list(keys[:-1])}; tts.validate_trajectories(trajectories) lists repeated "
        "attempts, tts.renumber_attempts(trajectories) numbers them anew."
    )


def of_line(values: Sequence[pl.Expr]) -> pl.Expr:
    """Choose among expressions by the number in the column `line`.

    Parameters
    ----------
    values
        What to take where `line` is 0, 1, ...

    Returns
    -------
    pl.Expr
        One expression.
    """
    chosen = values[0]
    for line, value in enumerate(values[1:], start=1):
        chosen = pl.when(pl.col("line") == line).then(value).otherwise(chosen)
    return chosen


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


def tally_attempts(
    trajectories: pl.LazyFrame,
    schema: pl.Schema,
    *,
    readings: tuple[Reading, ...],
    budgets: tuple[int, ...] | None,
    weights: Weights,
    keys: Sequence[str],
) -> Tally:
    """Make the one pass over attempts.

    Parameters
    ----------
    trajectories
        Attempts.
    schema
        Their schema.
    readings
        Scores to add up.
    budgets
        Ascending budgets, or None for all attempts.
    weights
        Kind of weight.
    keys
        Columns that name a problem of a run, `problem_id` last.

    Returns
    -------
    Tally
        A plan; nothing is collected.
    """
    steps: tuple[int | None, ...] = budgets or (None,)
    columns = _key_columns(keys)
    buckets = (
        trajectories
        .select(
            *[pl.col(name).alias(column) for column, name in zip(columns, keys, strict=True)],
            *_attempt_columns(schema, budgets),
            *[_finite(reading.score).alias(f"score{reading.number}") for reading in readings],
        )
        .with_columns(
            # Beyond the last budget only the existence of the problem matters, not its answers.
            pl.when(pl.col("bucket") < len(steps)).then("answer_key").name.keep(),
            *[column for reading in readings for column in _weights(reading, weights, columns)],
        )
        .group_by(*columns, "answer_key", "bucket")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("is_correct").count().cast(pl.Int64).alias("n_graded"),
            pl.col("packed").min().alias("first"),
            *[pl.col("attempt").sum().alias(name) for name in _checked(steps)],
            pl.when("is_correct").then("packed").min().alias("first_correct"),
            pl.col("answer").min_by("packed"),
            *[total for reading in readings for total in _score_totals(reading, weights)],
        )
    )
    numbered = _number(buckets, columns)
    return Tally(
        rows=_add_buckets(numbered, steps, weights, len(readings)),
        problems=numbered.filter("is_new_problem").select("problem_number", *columns),
        # The earliest bucket holds the earliest attempt, so its spelling stands for all budgets.
        answers=numbered.filter("is_new_answer").select("answer_id", "answer_key", "answer"),
        budgets=steps,
        readings=readings,
        keys=tuple(keys),
    )


def _attempt_columns(schema: pl.Schema, budgets: tuple[int, ...] | None) -> list[pl.Expr]:
    """Return answer, grade, bucket and packed number of each attempt."""
    # A source without answers or grades may well give a column of nulls that is of no dtype yet.
    is_correct = pl.col("is_correct") if "is_correct" in schema else pl.lit(None)
    is_correct = is_correct.cast(pl.Boolean)
    key = pl.col("answer_key")
    if not isinstance(schema["answer_key"], pl.Categorical | pl.Enum):
        key = key.cast(pl.String)
    bucket = pl.lit(0, pl.UInt32)
    if budgets:
        is_beyond = [pl.col("attempt").cast(pl.UInt32) >= budget for budget in budgets]
        bucket = pl.sum_horizontal([beyond.cast(pl.UInt32) for beyond in is_beyond])
    return [
        key,
        pl.col("answer" if "answer" in schema else "answer_key").cast(pl.String).alias("answer"),
        is_correct.alias("is_correct"),
        bucket.alias("bucket"),
        pl.col("attempt").cast(pl.Int64),
        pack_attempt(pl.col("attempt"), is_correct).alias("packed"),
    ]


def _finite(score: pl.Expr) -> pl.Expr:
    """Return a Float64 score in which NaN is null and minus zero is zero."""
    number = score.cast(pl.Float64).fill_nan(None)
    # Adding 0.0 would do, but the optimiser drops that.
    return pl.when(number == 0.0).then(0.0).otherwise(number)


def _weights(reading: Reading, weights: Weights, columns: Sequence[str]) -> list[pl.Expr]:
    """Return what each attempt's vote weighs; of a softmax, the shift that it leaves to undo."""
    i = reading.number
    score = pl.col(f"score{i}")
    if weights == "sigmoid":
        return [(1.0 / (1.0 + (-score).exp())).alias(f"weight{i}")]
    if weights == "softmax":
        # The highest score of the bucket, not of the run: attempts beyond a budget must not
        # push the weights within it below the smallest float.
        shift = score.max().over(*columns, "bucket")
        return [(score - shift).exp().alias(f"weight{i}"), shift.alias(f"shift{i}")]
    # An infinite weight survives any sum, so that a negative one within the budget shows there.
    return [pl.when(score < 0).then(math.inf).otherwise(score).alias(f"weight{i}")]


def _score_totals(reading: Reading, weights: Weights) -> list[pl.Expr]:
    """Return what a group of attempts needs to know of one reading."""
    i = reading.number
    score = pl.col(f"score{i}")
    totals = [
        pl.col(f"weight{i}").sum(),
        pl.when(score.is_not_null()).then("packed").min().alias(f"first{i}"),
        pack_score(score, pl.col("packed")).min().alias(f"top{i}"),
        score.max().alias(f"top_score{i}"),
    ]
    return [*totals, pl.col(f"shift{i}").max()] if weights == "softmax" else totals


def _number(buckets: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """Sort by problem, answer and bucket; number problems, and answers oddly, abstentions evenly."""
    names = pl.col(*columns)
    is_first_row = pl.int_range(pl.len()) == 0
    is_new_problem = pl.any_horizontal(names.ne_missing(names.shift()), is_first_row)
    is_new_answer = pl.col("answer_key").ne_missing(pl.col("answer_key").shift())
    is_answer = pl.col("answer_key").is_not_null().cast(pl.Int64)
    return (
        buckets
        .sort(*columns, "answer_key", "bucket")
        .with_columns(is_new_problem=is_new_problem)
        .with_columns(is_new_answer=pl.col("is_new_problem") | is_new_answer)
        .with_columns(
            problem_number=pl.col("is_new_problem").cast(pl.Int64).cum_sum(),
            answer_id=2 * pl.col("is_new_answer").cast(pl.Int64).cum_sum() + is_answer,
        )
    )


def _add_buckets(
    numbered: pl.LazyFrame,
    budgets: tuple[int | None, ...],
    weights: Weights,
    n_readings: int,
) -> pl.LazyFrame:
    """Add each bucket of an answer to the budgets that include it."""
    n_budgets, indices = len(budgets), range(n_readings)
    sums = ["n", "n_graded", *_checked(budgets), *[f"weight{i}" for i in indices]]
    lows = ["first", "first_correct", *[f"{name}{i}" for i in indices for name in ("first", "top")]]
    highs = [f"top_score{i}" for i in indices]
    shifts = [f"shift{i}" for i in indices] if weights == "softmax" else []
    rows = (
        numbered
        .select(
            "problem_number",
            "answer_id",
            *sums,
            *lows,
            *highs,
            *shifts,
            index=pl.int_ranges("bucket", n_budgets, dtype=pl.Int64),
        )
        # Nothing is left of a bucket beyond the last budget.
        .explode("index", empty_as_null=False)
        .with_columns(slot=_slot(n_budgets))
        .with_columns(
            pl.col(f"weight{i}") * (pl.col(shift) - pl.col(shift).max().over("slot")).exp()
            for i, shift in enumerate(shifts)
        )
        .group_by(cell=pl.col("answer_id") * n_budgets + pl.col("index"))
        .agg(
            pl.col("slot").first(),
            pl.col(sums).sum(),
            pl.col(lows).min(),
            pl.col(highs).max(),
        )
    )
    answer_id = pl.col("cell") // n_budgets
    return rows.with_columns(
        answer_id.alias("answer_id"),
        (answer_id % 2 == 1).alias("is_answer"),
        *[
            pl.col(f"weight{i}") / pl.col(f"weight{i}").sum().over("slot")
            for i in range(len(shifts))
        ],
    )
