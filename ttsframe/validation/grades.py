"""Where the grade of another tool differs from ours, counted by what tells the two apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from ttsframe.validation.finding import Finding, Pending

_NO_ANSWER: Final = "no_answer"
"""The rule of `lost_grades`, which is another finding."""

_RULES: Final[Mapping[str, tuple[str, str]]] = {
    "same_text": (
        "graded as wrong by another tool, where the answer is the gold answer letter by letter",
        "the tool extracted something else, or compared with another gold answer.",
    ),
    "same_key": (
        "graded as wrong by another tool, where the answer is another spelling of the gold answer",
        "the tool may compare texts; look at the spellings.",
    ),
    "same_but_case": (
        "graded as right by another tool, where answer and gold answer differ in case, spaces or punctuation",
        "if these are the same answers, an AnswerPolicy may say so; else the tool is lenient.",
    ),
    "contained": (
        "graded as right by another tool, where the answer contains the gold answer",
        "the tool may look for the gold answer anywhere in the text.",
    ),
    "other_right": (
        "graded as right by another tool, where the answer is another one",
        "the tool extracted another answer, or is lenient, or the gold answer was read differently.",
    ),
    "other_wrong": (
        "graded as wrong by another tool, and as right by us",
        "only grading tells: a percent sign, the content of an option, or units.",
    ),
}
"""What is said of each rule: a clause, and a hint."""


def _rule(usable: Collection[str]) -> pl.Expr:
    """Name the rule by which the grades of an attempt differ, null where they do not."""
    ours, theirs = pl.col("is_correct"), pl.col("is_correct_recorded")

    def text(name: str) -> pl.Expr:
        return (pl.col(name) if name in usable else pl.lit(None)).cast(pl.String)

    answer, gold = text("answer"), text("gold")
    plain, plain_gold = (
        each.str.to_lowercase().str.replace_all(r"[\s\p{P}\p{S}]", "") for each in (answer, gold)
    )
    is_same_key = text("answer_key") == text("gold_key")
    found = pl.coalesce(answer, text("answer_key"))
    return (
        pl
        .when(theirs & ~ours)
        .then(
            pl
            .when(found.is_null())
            .then(pl.lit(_NO_ANSWER))
            .when((plain == plain_gold) & (plain != ""))
            .then(pl.lit("same_but_case"))
            .when(answer.str.contains(gold, literal=True))
            .then(pl.lit("contained"))
            .otherwise(pl.lit("other_right"))
        )
        .when(ours & ~theirs)
        .then(
            pl
            .when(answer.str.strip_chars() == gold.str.strip_chars())
            .then(pl.lit("same_text"))
            .when(is_same_key)
            .then(pl.lit("same_key"))
            .otherwise(pl.lit("other_wrong"))
        )
    )


def grade_queries(rows: pl.LazyFrame, usable: Collection[str]) -> dict[str, pl.LazyFrame]:
    """Plan the number of attempts by rule, where both grades are there; a null rule is no difference."""
    if not {"is_correct", "is_correct_recorded"} <= set(usable):
        return {}
    both = rows.filter(pl.all_horizontal(pl.col("is_correct", "is_correct_recorded").is_not_null()))
    return {"grades": both.select(_rule(usable).alias("rule")).group_by("rule").len("n")}


def difference_findings(
    counts: pl.DataFrame, rows: pl.LazyFrame, usable: Collection[str], places: Sequence[str]
) -> Iterator[Pending]:
    """Report each rule with its number of attempts and examples."""
    n_of: dict[str | None, int] = dict(zip(counts["rule"], counts["n"], strict=True))
    total = sum(n_of.values())
    shown = [name for name in ("answer", "gold") if name in usable and name not in places]
    for rule, (clause, hint) in _RULES.items():
        n = n_of.get(rule, 0)
        if n:
            message = f"{n:,} of {total:,} attempts are {clause}"
            finding = Finding(
                "grades_differ", "warning", "is_correct_recorded", n, message, (), hint
            )
            yield Pending(finding, rows.filter(_rule(usable) == rule).select(*places, *shown))
