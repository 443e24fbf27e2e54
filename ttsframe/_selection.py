"""How each selector ranks the answers of a tally, and the winners that come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import polars as pl

from ttsframe._packing import ATTEMPT_BITS, attempt_of, is_correct_of
from ttsframe._tally import Reading, Tally, of_line
from ttsframe._typing import SelectorName

TIE_TOLERANCE: Final = 1e-9
"""Totals nearer than this share of the sum of weights are a tie."""


PROBLEM_COLUMNS: Final = (
    "budget",
    "subsets",
    "selector",
    "reduction",
    "attempt",
    "answer",
    "answer_key",
    "is_correct",
    "value",
    "status",
    "n_attempts",
    "n_valid",
    "n_votes",
    "weight",
    "agreement",
)


class Selector(NamedTuple):
    """One row of the registry.

    `rank` and `weight` are expressions over a row of the tally (one distinct answer of a problem at
    a budget), given the index of the reading. The row with the smallest rank wins; rows without a
    rank are not in the running. The last bits of a rank are the packed attempt that stands for the
    answer, so the smallest rank alone tells whether the winner is right.
    """

    summary: str
    reads_score: bool
    weighs_votes: bool
    rank: Callable[[int], pl.Expr]
    weight: Callable[[int], pl.Expr]


def _answered(expr: pl.Expr) -> pl.Expr:
    """Keep an expression where the row of the tally is an answer, not an abstention."""
    return pl.when("is_answer").then(expr)


def _majority_rank(_: int) -> pl.Expr:
    return _answered(pl.col("first") - pl.col("n") * 2**ATTEMPT_BITS)


def _first_valid_rank(_: int) -> pl.Expr:
    return _answered(pl.col("first"))


def _oracle_rank(_: int) -> pl.Expr:
    # Any right attempt comes before the first attempt that has an answer at all.
    return pl.coalesce(pl.col("first_correct"), _answered(pl.col("first")) + 2**ATTEMPT_BITS)


def _no_weight(_: int) -> pl.Expr:
    return pl.lit(None, pl.Float64)


SELECTORS: Final[Mapping[SelectorName, Selector]] = MappingProxyType({
    "majority_vote": Selector(
        summary="the answer that most attempts gave (self-consistency, maj@n)",
        reads_score=False,
        weighs_votes=False,
        rank=_majority_rank,
        weight=lambda _: pl.col("n").cast(pl.Float64),
    ),
    "weighted_vote": Selector(
        summary="the answer whose attempts' scores add up to most",
        reads_score=True,
        weighs_votes=True,
        rank=lambda i: pl.col(f"leading{i}"),
        weight=lambda i: pl.col(f"weight{i}"),
    ),
    "best_of_n": Selector(
        summary="the answer of the attempt with the highest score, if it has one (rm@n)",
        reads_score=True,
        weighs_votes=False,
        rank=lambda i: pl.col(f"top{i}"),
        weight=lambda i: pl.col(f"top_score{i}"),
    ),
    "first_valid": Selector(
        summary="the answer of the first attempt that has one",
        reads_score=False,
        weighs_votes=False,
        rank=_first_valid_rank,
        weight=_no_weight,
    ),
    "oracle": Selector(
        summary="a right answer if any attempt gave one (pass@n), else first_valid's",
        reads_score=False,
        weighs_votes=False,
        rank=_oracle_rank,
        weight=_no_weight,
    ),
})
"""Every selector: the registry that the command line, the charts and the tests read."""


class Pick(NamedTuple):
    """One selector with one reading of the scores, or with none."""

    selector: SelectorName
    reading: Reading | None

    @property
    def number(self) -> int:
        """Index of the reading; 0 where it does not matter."""
        return 0 if self.reading is None else self.reading.number

    def column(self, name: str) -> str:
        """Name a column of this pick.

        Parameters
        ----------
        name
            What it holds.

        Returns
        -------
        str
            The name.
        """
        return f"{name}_{self.selector}{self.number}"


def pick_winners(tally: Tally, picks: Sequence[Pick]) -> pl.LazyFrame:
    """Reduce a tally to its winners.

    Parameters
    ----------
    tally
        Votes and weights.
    picks
        What to choose by.

    Returns
    -------
    pl.LazyFrame
        `problems`, one row per problem, budget and pick.
    """
    weighing = sorted({pick.number for pick in picks if SELECTORS[pick.selector].weighs_votes})
    scoring = sorted({pick.number for pick in picks if SELECTORS[pick.selector].reads_score})
    slots = (
        tally.rows
        .with_columns(_leading(i) for i in weighing)
        .group_by("slot")
        .agg(
            pl.col("n").sum().alias("n_attempts"),
            _answered(pl.col("n")).sum().alias("n_valid"),
            pl.col("n_graded", *tally.checked).sum(),
            pl.col("first", *[f"first{i}" for i in scoring]).min(),
            *[pl.col(f"weight{i}").sum() for i in weighing],
            *[column for pick in picks for column in _winner(pick)],
        )
        .pipe(tally.name_slots)
        .with_columns(line=pl.lit(list(range(len(picks)))))
        .explode("line")
    )
    lines = slots.select(
        *tally.key_columns,
        "budget",
        pl.lit("prefix").alias("subsets"),
        "n_attempts",
        pl.col("n_valid", "n_graded").fill_null(0),
        *[of_line([_facts(pick)[name] for pick in picks]).alias(name) for name in _facts(picks[0])],
    )
    return lines.pipe(tally.name_answers).pipe(_judge).select(*tally.named_keys, *PROBLEM_COLUMNS)


def _leading(index: int) -> pl.Expr:
    """Return the packed attempt of each answer that leads the weighted vote, or ties."""
    first = pl.col(f"first{index}")
    weight = _answered(pl.when(first.is_not_null()).then(f"weight{index}"))
    highest = weight.max().over("slot")
    tolerance = TIE_TOLERANCE * weight.sum().over("slot")
    return pl.when(weight >= highest - tolerance).then(first).alias(f"leading{index}")


def _winner(pick: Pick) -> list[pl.Expr]:
    """Return the smallest rank and what is kept of its row of the tally."""
    selector = SELECTORS[pick.selector]
    rank = selector.rank(pick.number)
    kept = {
        "answer_id": pl.col("answer_id"),
        "n_votes": _answered(pl.col("n")),
        "weight": selector.weight(pick.number),
    }
    return [
        rank.min().alias(pick.column("rank")),
        *[expr.min_by(rank).alias(pick.column(name)) for name, expr in kept.items()],
    ]


def _facts(pick: Pick) -> dict[str, pl.Expr]:
    """Return what is known of a slot under one pick."""
    selector = SELECTORS[pick.selector]
    is_short = pl.col("n_attempts") < pl.coalesce(pl.col("budget").cast(pl.Int64), 1)
    flaws = [pl.when(is_short).then(pl.lit("short"))]
    if selector.reads_score:
        is_unscored = pl.col(f"first{pick.number}").is_null()
        flaws.append(pl.when(is_unscored).then(pl.lit("unscored")))
    if selector.weighs_votes:
        is_undefined = ~pl.col(f"weight{pick.number}").is_finite()
        flaws.append(pl.when(is_undefined).then(pl.lit("undefined")))
    return {
        "selector": pl.lit(pick.selector),
        "reduction": pl.lit(pick.reading and pick.reading.name, pl.String),
        "flaw": pl.coalesce(flaws),
        "packed": (pl.col(pick.column("rank")) % 2**ATTEMPT_BITS).cast(pl.Int64),
        **{name: pl.col(pick.column(name)) for name in ("answer_id", "n_votes", "weight")},
    }


def _judge(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Turn what is known of each pick into the columns of `problems`."""
    is_shown = pl.col("flaw").is_null()
    is_wrong = pl.col("packed").is_null() & (pl.col("n_graded") > 0)
    is_correct = (
        pl.when(is_wrong).then(pl.lit(value=False)).otherwise(is_correct_of(pl.col("packed")))
    )
    verdict = pl.when(is_correct.is_null()).then(pl.lit("ungraded")).otherwise(pl.lit("ok"))
    n_votes = pl.col("n_votes").fill_null(0)
    shown = {
        "attempt": attempt_of(pl.col("packed")),
        "answer": pl.when(pl.col("answer_key").is_not_null()).then("answer"),
        "answer_key": pl.col("answer_key"),
        "is_correct": is_correct,
        "value": is_correct.cast(pl.Float64),
        "n_votes": n_votes.cast(pl.UInt32),
        "weight": pl.col("weight"),
        "agreement": n_votes / pl.col("n_attempts"),
    }
    return lines.with_columns(
        pl.coalesce("flaw", verdict).alias("status"),
        pl.col("n_attempts", "n_valid").cast(pl.UInt32),
        **{name: pl.when(is_shown).then(expr) for name, expr in shown.items()},
    )
