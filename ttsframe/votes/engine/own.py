"""Selectors of the user: an expression over the attempts at a problem gives the attempt to pick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from ttsframe._own import call, describe, failed
from ttsframe._typing import Integers, OwnSelector
from ttsframe.errors import DataError, ParameterError, TtsframeError
from ttsframe.schema import require_columns
from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.winners import Winners

FORBIDDEN: Final = (
    "is_correct",
    "is_correct_recorded",
    "gold",
    "gold_key",
    "solution",
)
"""Columns that no selector may read: they hold the gold answer, or what was graded with it."""

_TEXTS: Final = frozenset({"problem", "completion"})
_TEXT_HINT: Final = "a job keeps texts after tts.batch.Score(texts=True)."
_MOST_ATTEMPTS: Final = np.iinfo(np.uint32).max
_PROBLEM: Final = "own:problem"
_SHAPE: Final = "selector()"
_HINT: Final = (
    "it is computed over the attempts at one problem, as in group_by('problem_id').agg(...)."
)


@dataclass(frozen=True)
class OwnPicker:
    """Picks the attempt that an expression gives for each problem."""

    function: OwnSelector
    pick: pl.Expr
    reads: tuple[str, ...]

    @property
    def what(self) -> str:
        """The selector as messages name it."""
        return describe(self.function, "selectors")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, but for those that every selector may read."""
        return tuple(name for name in self.reads if name not in {"attempt", "score"})

    def check(self, schema: pl.Schema) -> None:
        """Check that the columns exist, and that the expression gives one integer per problem."""
        require_columns(
            pl.LazyFrame(schema=schema),
            self.columns,
            where=f"trajectories, which {self.what} reads",
            hint=_TEXT_HINT if set(self.columns) & _TEXTS else None,
        )
        columns = {
            **{name: schema[name] for name in self.columns},
            "attempt": pl.UInt32(),
            "score": pl.Float64(),
        }
        frame = pl.LazyFrame(schema={_PROBLEM: pl.Int64(), **columns})
        try:
            dtype = frame.group_by(_PROBLEM).agg(self.pick).collect_schema()["pick"]
        except pl.exceptions.PolarsError as error:
            raise failed(self.what, error, _HINT) from error
        if isinstance(dtype, pl.List):
            raise ParameterError(
                f"{self.what} gives a list for each problem, must give one attempt. Hint: .first(), or "
                "another aggregation, at the end."
            )
        if not (dtype.is_integer() or dtype == pl.Null):
            raise ParameterError(
                f"{self.what} gives values of dtype {dtype}, must give the picked attempt, an integer. "
                "Hint: pl.col('attempt').sort_by(...).first() gives the attempt that sorts first."
            )

    def __call__(self, ballots: Ballots, reading: int) -> Winners:
        """Pick an attempt of each problem at each budget; the number is that of the reading."""
        columns = {_PROBLEM: ballots.problem, "attempt": ballots.attempt.astype(np.uint32)}
        frame = pl.DataFrame(columns)
        if "score" in self.reads:
            score = pl.Series("score", ballots.scores[reading], nan_to_null=True)
            frame = frame.with_columns(score)
        if ballots.columns is not None:
            frame = frame.hstack(ballots.columns.select(self.columns))
        row = np.stack([self._rows(frame, ballots, int(budget)) for budget in ballots.budgets])
        return Winners(row, np.full(row.shape, np.nan))

    def _rows(self, frame: pl.DataFrame, ballots: Ballots, budget: int) -> Integers:
        """Return the row that is picked of each problem within a budget."""
        within = frame.lazy().filter(pl.col("attempt") < budget)
        picks = within.group_by(_PROBLEM, maintain_order=True).agg(self.pick)
        try:
            picked = picks.drop_nulls("pick").collect()
        except TtsframeError:
            raise
        except Exception as error:
            raise failed(self.what, error, _HINT) from error
        problem = picked[_PROBLEM].to_numpy()
        attempt = picked["pick"].cast(pl.Int64, strict=False).fill_null(NONE).to_numpy()
        rows = np.full(len(ballots.problems), NONE)
        # Rows are sorted by problem and attempt, and an attempt has 32 bits.
        found = np.searchsorted(ballots.problem << 32 | ballots.attempt, problem << 32 | attempt)
        nearest = np.minimum(found, len(ballots.attempt) - 1)
        is_there = (ballots.problem[nearest] == problem) & (ballots.attempt[nearest] == attempt)
        is_there &= (attempt < budget) & (attempt >= 0)
        if not is_there.all():
            wrong = int(attempt[~is_there][0])
            raise DataError(
                f"{self.what} gives {wrong} for a problem that has no such attempt"
                f"{'' if budget > _MOST_ATTEMPTS else f' among its first {budget}'}, must give a value of the column 'attempt', or null for no pick."
            )
        rows[problem] = nearest
        return rows


def make_own(function: OwnSelector) -> OwnPicker:
    """Call a selector of the user for its expression, and check what it reads."""
    made = call(function, "selectors", _SHAPE)
    reads = tuple(dict.fromkeys(made.meta.root_names()))
    if seen := [name for name in FORBIDDEN if name in reads]:
        raise ParameterError(
            f"{describe(function, 'selectors')} reads {seen[0]!r}, which is known only after grading. "
            "Hint: 'oracle' is the selector that knows the right answer."
        )
    return OwnPicker(function, made.alias("pick"), reads)
