"""How one problem was voted on."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from ttsframe import charts
from ttsframe._wording import counted, shorten
from ttsframe.report.sections.section import Part, Section, asks, drawn

if TYPE_CHECKING:
    from ttsframe.report.report import Report

_TEXT_MAX: Final = 1_200
_ANSWER_MAX: Final = 60


def answers(report: Report) -> list[str]:
    """Say who won the vote, and how the right answer fared."""
    if report.example is None:
        return []
    votes = report.example.votes.drop_nulls("answer_key").sort(
        "n_votes", "first_attempt", descending=[True, False]
    )
    winner = votes.row(0, named=True)
    right = votes.filter("is_correct")
    won = f"The most frequent answer, {_answer(winner)}, has {counted([winner['n_votes']], 'vote')}"
    if winner["is_correct"] is None:
        return [f"{won} of {report.example.votes['n_votes'].sum():,}."]
    if winner["is_correct"]:
        return [f"{won} and is right."]
    if right.is_empty():
        return [f"{won} and is wrong; no attempt is right."]
    row = right.row(0, named=True)
    return [f"{won} and is wrong; the right one, {_answer(row)}, has {row['n_votes']:,}."]


def _answer(row: dict[str, Any]) -> str:
    """Write an answer, or the key of one that was not kept."""
    return shorten(
        str(row["answer"] if row["answer"] is not None else row["answer_key"]), _ANSWER_MAX
    )


def body(report: Report) -> list[Part]:
    """Draw the votes of the example, under its problem."""
    example = report.example
    if example is None:
        return []
    weights = (
        ""
        if example.votes["weight"].count() == 0
        else " The weight of an answer is what the scores of its attempts add up to."
    )
    caption = f"{example.reason} A bar is an answer; equivalent spellings vote together.{weights}"
    texts = [
        f"<dt>{name}</dt><dd>{escape(shorten(text, _TEXT_MAX))}</dd>"
        for name, text in (("Problem", example.problem), ("Gold answer", example.gold))
        if text is not None
    ]
    listed: list[Part] = ["\n".join(["<dl>", *texts, "</dl>"])] if texts else []
    return [*listed, drawn("votes-of-one", caption, charts.answer_votes, example.votes)]


SECTION = Section(
    is_there=lambda report: report.example is not None,
    question=asks("How was one problem voted on?"),
    answers=answers,
    body=body,
)
