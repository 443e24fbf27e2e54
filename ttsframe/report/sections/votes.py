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
from ttsframe.report.wording import name_run
from ttsframe.votes.tally import tally_votes

_TEXT_MAX: Final = 1_200
_ANSWER_MAX: Final = 60

_LOST: Final = (
    "Of the problems that majority vote got wrong although another answer was right, this is the one "
    "where the right answer came closest to winning."
)
_DIVIDED: Final = "This is the problem with the most divided vote."
_FIRST: Final = "No vote is divided; this is the first problem."


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
        Gold answer; None where there is none.
    reason
        The rule that chose the problem, in a sentence.
    n_right
        Number of its attempts that are graded as right.
    """

    votes: pl.DataFrame
    problem: str | None
    gold: str | None
    reason: str
    n_right: int = 0


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Choose a vote that was lost by little, or else the most divided one, and tally it."""
    keys = [*data.keys, "problem_id"]
    problems = pl.concat([
        table.filter(pl.col("budget") == pl.col("budget").max()) for table in data.problems
    ])
    majority = problems.filter(pl.col("selector") == "majority_vote", pl.col("n_votes") > 0)
    right = problems.filter(pl.col("selector") == "oracle", pl.col("is_correct")).select(
        *keys, pl.col("n_votes").cast(pl.Int64).alias("n_right"), right_key="answer_key"
    )
    # Attempts with the winning answer may be graded differently: then no other answer is right.
    is_other = pl.col("right_key") != pl.col("answer_key")
    is_lost = (~pl.col("is_correct") & is_other).fill_null(value=False)
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
    is_divided = votes["answer_key"].drop_nulls().n_unique() > 1
    within = attempts.filter(pl.col("attempt") < chosen["budget"].item())
    example = Example(
        votes=votes,
        problem=_first_text(attempts, "problem"),
        gold=_first_text(attempts, "gold"),
        reason=_LOST if chosen["is_lost"].item() else _DIVIDED if is_divided else _FIRST,
        n_right=int(within["is_correct"].sum()) if "is_correct" in within.columns else 0,
    )
    return {"example": example}


def _first_text(attempts: pl.DataFrame, name: str) -> str | None:
    """Return the first text of a column, if any."""
    if name not in attempts.columns or attempts[name].count() == 0:
        return None
    return str(attempts[name].drop_nulls()[0])


def answer(context: Context, example: Example) -> list[str]:
    """Name the winner of the vote, and the votes for the right answer."""
    run = name_run(example.votes, context.by)
    return [f"{run}: {text[:1].lower()}{text[1:]}" if run else text for text in _describe(example)]


def _describe(example: Example) -> list[str]:
    """Describe the vote without the name of its run."""
    votes = example.votes.drop_nulls("answer_key").sort(
        "n_votes", "first_attempt", descending=[True, False]
    )
    winner = votes.row(0, named=True)
    n_votes, name = winner["n_votes"], _name_answer(winner)
    tied = votes.filter(n_votes=n_votes)
    counted_votes = counted([n_votes], "vote")
    if tied.height == 1:
        won = f"The most frequent answer, {name}, has {counted_votes}"
    else:
        # Every answer may have been given once.
        won = (
            f"{counted([tied.height], 'answer')} tie with {counted_votes} each; {name}, which was given "
            "first, wins"
        )
    if winner["is_correct"] is None:
        return [f"{won}, of {example.votes['n_votes'].sum():,} attempts."]
    if winner["is_correct"]:
        return [f"{won} and is right."]
    right = votes.filter("is_correct")
    if right.height:
        row = right.row(0, named=True)
        # A tie is already said to have as many votes.
        has = "is one of those that tie" if row["n_votes"] == n_votes else f"has {row['n_votes']:,}"
        return [f"{won} and is wrong; the right one, {_name_answer(row)}, {has}."]
    if example.n_right == 0:
        return [f"{won} and is wrong; no attempt is right."]
    others = counted([example.n_right], "attempt")
    grades = (
        f"{others} with the same answer as a wrong one, or without an answer, "
        f"{'is' if example.n_right == 1 else 'are'} graded as right."
    )
    return [f"{won} and is wrong by the grade of its first attempt; {grades}"]


def _name_answer(row: dict[str, Any]) -> str:
    """Return an answer as the chart shows it, or its key where the answer was not kept."""
    from ttsframe.charts.latex_text import plain_text

    text = row["answer_key"] if row["answer"] is None else row["answer"]
    return shorten(plain_text(str(text)), _ANSWER_MAX)


def draw(context: Context, example: Example) -> list[Part]:
    """Draw the votes under the text of the problem."""
    from ttsframe import charts

    caption = f"{example.reason} Each bar is an answer; equivalent spellings vote together."
    if example.votes["weight"].count():
        weights = "scores" if context.weights == "score" else f"{context.weights} weights"
        caption += f" The weight of an answer is the sum of its attempts' {weights}."
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
