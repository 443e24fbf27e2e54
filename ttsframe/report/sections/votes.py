"""The vote on one problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._typing import Reduction
from ttsframe._wording import counted, shorten
from ttsframe.report.parts import Context, Figure, Part, Terms
from ttsframe.report.runs import RunData
from ttsframe.votes.tally import tally_votes

_TEXT_MAX: Final = 1_200
_ANSWER_MAX: Final = 60

_LOST: Final = (
    "Of the problems that majority vote got wrong although an attempt was right, this is the one where "
    "the right answer came closest to winning."
)
_DIVIDED: Final = "This is the problem with the most divided vote."


@dataclass(frozen=True, kw_only=True)
class Example:
    """One problem's votes, and why this problem is shown.

    Parameters
    ----------
    votes
        `votes` of the problem, at one budget and reduction.
    problem
        Text of the problem; None where the run has none.
    gold
        Reference answer; None where there is none.
    reason
        The rule that chose the problem, in a sentence.
    """

    votes: pl.DataFrame
    problem: str | None
    gold: str | None
    reason: str


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Choose a vote that was lost by little, or else the most divided one, and tally it."""
    keys = [*data.keys, "problem_id"]
    problems = pl.concat([
        table.filter(pl.col("budget") == pl.col("budget").max()) for table in data.problems
    ])
    majority = problems.filter(pl.col("selector") == "majority_vote", pl.col("n_votes") > 0)
    right = problems.filter(pl.col("selector") == "oracle", pl.col("is_correct")).select(
        *keys, pl.col("n_votes").cast(pl.Int64).alias("n_right")
    )
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
        return {"example": None}
    order = ["is_lost", "margin", "size", *keys]
    chosen = ranked.sort(order, descending=[True, *[False] * (len(order) - 1)]).head(1)
    attempts = data.attempts.join(chosen.select(keys), on=keys, how="semi", nulls_equal=True)
    reductions = data.options.reductions
    reduction: Reduction | None = (
        reductions if reductions is None or isinstance(reductions, str) else reductions[0]
    )
    votes = tally_votes(
        attempts,
        budgets=chosen["budget"].to_list(),
        reductions=reduction,
        weights=data.options.weights,
        by=data.keys,
    )
    example = Example(
        votes=votes,
        problem=_first_text(attempts, "problem"),
        gold=_first_text(attempts, "gold"),
        reason=_LOST if chosen["is_lost"].item() else _DIVIDED,
    )
    return {"example": example}


def _first_text(attempts: pl.DataFrame, name: str) -> str | None:
    """Return the first text of a column, if any."""
    if name not in attempts.columns or attempts[name].count() == 0:
        return None
    return str(attempts[name].drop_nulls()[0])


def answer(_: Context, example: Example) -> list[str]:
    """Name the winner of the vote, and the votes for the right answer."""
    votes = example.votes.drop_nulls("answer_key").sort(
        "n_votes", "first_attempt", descending=[True, False]
    )
    winner = votes.row(0, named=True)
    right = votes.filter("is_correct")
    won = (
        f"The most frequent answer, {_name_answer(winner)}, has "
        f"{counted([winner['n_votes']], 'vote')}"
    )
    if winner["is_correct"] is None:
        return [f"{won} of {example.votes['n_votes'].sum():,}."]
    if winner["is_correct"]:
        return [f"{won} and is right."]
    if right.is_empty():
        return [f"{won} and is wrong; no attempt is right."]
    row = right.row(0, named=True)
    return [f"{won} and is wrong; the right one, {_name_answer(row)}, has {row['n_votes']:,}."]


def _name_answer(row: dict[str, Any]) -> str:
    """Return an answer, or its key where the answer was not kept."""
    text = row["answer_key"] if row["answer"] is None else row["answer"]
    return shorten(str(text), _ANSWER_MAX)


def draw(_: Context, example: Example) -> list[Part]:
    """Draw the votes under the text of the problem."""
    from ttsframe import charts

    caption = f"{example.reason} Each bar is an answer; equivalent spellings vote together."
    if example.votes["weight"].count():
        caption += " The weight of an answer is the sum of its attempts' weights."
    texts = [
        (name, shorten(text, _TEXT_MAX))
        for name, text in (("Problem", example.problem), ("Gold answer", example.gold))
        if text is not None
    ]
    terms: list[Part] = [Terms(texts)] if texts else []
    return [
        *terms,
        Figure(
            "votes-of-one", caption, partial(charts.answer_votes, example.votes, gold=example.gold)
        ),
    ]
