"""The problem whose votes a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from ttsframe._typing import StepReduction
from ttsframe.defaults.tables import Options
from ttsframe.votes.tally import tally_votes

_LOST: Final = (
    "Of the problems that majority vote got wrong although an attempt was right, the one in which "
    "the right answer came closest to winning."
)
_DIVIDED: Final = "The problem whose vote is the most divided."


@dataclass(frozen=True, kw_only=True)
class Example:
    """One problem's votes, and why it is the one that is shown.

    Parameters
    ----------
    votes
        `votes` of the problem, at one budget and reduction.
    problem
        Text of the problem; None where the run has none.
    gold
        Reference answer; None where there is none.
    reason
        The rule that chose it, in a sentence.
    """

    votes: pl.DataFrame
    problem: str | None
    gold: str | None
    reason: str


def choose_example(
    attempts: pl.DataFrame, picked: Sequence[pl.DataFrame], options: Options
) -> Example | None:
    """Choose the problem that says most about voting, and tally its votes."""
    keys = [*options.groups, *options.repeats, "problem_id"]
    problems = pl.concat([
        table.filter(pl.col("budget") == pl.col("budget").max()) for table in picked
    ])
    majority = problems.filter(pl.col("selector") == "majority_vote", pl.col("n_votes") > 0)
    right = problems.filter(pl.col("selector") == "oracle", pl.col("is_correct")).select(
        *keys, pl.col("n_votes").cast(pl.Int64).alias("n_right")
    )
    # A vote that was lost by little shows most; without one, the vote that is most divided.
    is_lost = (~pl.col("is_correct") & pl.col("n_right").is_not_null()).fill_null(value=False)
    n_votes = pl.col("n_votes").cast(pl.Int64)
    ranked = majority.join(right, on=keys, how="left", nulls_equal=True).select(
        *keys,
        "budget",
        is_lost.alias("is_lost"),
        pl.when(is_lost).then(n_votes - pl.col("n_right")).otherwise("agreement").alias("margin"),
        pl.when(is_lost).then(-n_votes).alias("size"),
    )
    if ranked.is_empty():
        return None
    order = ["is_lost", "margin", "size", *keys]
    chosen = ranked.sort(order, descending=[True, *[False] * (len(order) - 1)]).head(1)
    rows = attempts.join(chosen.select(keys), on=keys, how="semi", nulls_equal=True)
    votes = tally_votes(
        rows,
        budgets=chosen["budget"].to_list(),
        reductions=_first(options.reductions),
        weights=options.weights,
        by=keys[:-1],
    )
    return Example(
        votes=votes,
        problem=_text(rows, "problem"),
        gold=_text(rows, "gold"),
        reason=_LOST if chosen["is_lost"].item() else _DIVIDED,
    )


def _text(rows: pl.DataFrame, name: str) -> str | None:
    """Return the first text of a column, where there is one."""
    if name not in rows.columns or rows[name].count() == 0:
        return None
    return str(rows[name].drop_nulls()[0])


def _first(reductions: StepReduction | Sequence[StepReduction] | None) -> StepReduction | None:
    """Return the first reduction."""
    if reductions is None or isinstance(reductions, str):
        return reductions
    return reductions[0]
