"""The chart of one problem's votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError

GREEN, PURPLE, GRAY = "#1b7837", "#7b3294", "#8a8a8a"


def bars(chart: TopLevelMixin) -> pl.DataFrame:
    (rows,) = chart.to_dict()["datasets"].values()
    return pl.DataFrame(rows)


def test_bars_stand_in_order_of_votes_in_the_color_of_their_grade(
    votes: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.answer_votes(votes)
    drawing = draw(chart)
    assert drawing.colors["rect"] == [PURPLE, GREEN, PURPLE, PURPLE, GRAY] * 2
    assert bars(chart)["label"].to_list() == ["47", "42.0", "1/2", "7", "no answer"]
    assert {"Votes", "Weight", "right", "wrong", "no answer", "2.5"} <= set(drawing.texts)


def test_without_weights_there_are_votes_alone(
    votes: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    for table in (votes.drop("weight"), votes.with_columns(weight=pl.lit(None, pl.Float64))):
        drawing = draw(charts.answer_votes(table))
        assert len(drawing.colors["rect"]) == 5
        assert "Weight" not in drawing.texts


def test_many_answers_end_in_others_and_the_right_one_is_kept(
    draw: Callable[[TopLevelMixin], Any],
) -> None:
    n = 100_000
    table = pl.DataFrame({
        "problem_id": 3,
        "answer_key": [str(i) for i in range(n)],
        "n_votes": [3] * 5 + [1] * (n - 5),
        "weight": 0.5,
        "is_correct": [i == 77_777 for i in range(n)],
    }).with_columns(first_attempt=pl.int_range(pl.len()))
    chart = charts.answer_votes(table, n_answers=5)
    shown = bars(chart)
    assert shown["label"].to_list() == ["0", "1", "2", "3", "4", "77777", "other answers (99994)"]
    assert shown["n_votes"].sum() == table["n_votes"].sum()
    assert shown["weight"].sum() == table["weight"].sum()
    assert len(draw(chart).colors["rect"]) == 14


def test_one_answer_more_is_shown_and_not_called_others(votes: pl.DataFrame) -> None:
    assert "7" in bars(charts.answer_votes(votes, n_answers=3))["label"].to_list()
    assert bars(charts.answer_votes(votes, n_answers=2))["label"].to_list() == [
        "47",
        "42.0",
        "other answers (2)",
        "no answer",
    ]


def test_long_answers_are_shortened_and_stay_apart(
    votes: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    long = "\\begin{pmatrix} " + " & ".join(str(i) for i in range(60))
    table = votes.head(2).with_columns(answer=pl.Series([f"{long} 1 end", f"{long} 2 end"]))
    chart = charts.answer_votes(table)
    labels = bars(chart)["label"].to_list()
    assert len(set(labels)) == 2
    assert all(len(label) <= 44 and label.startswith("\\begin") for label in labels)
    assert bars(chart)["answer"].to_list() == [f"{long} 1 end", f"{long} 2 end"]
    assert draw(chart).colors["rect"].count(GREEN) == 2


def test_an_answer_is_text_whatever_it_looks_like(
    votes: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    hostile = ["</script><script>alert(1)</script>", "datum.n_votes", "a\nb\tc", "no answer", None]
    drawing = draw(charts.answer_votes(votes.with_columns(answer=pl.Series(hostile))))
    assert {hostile[0], hostile[1], "a b c", "no answer (1)", "no answer (2)"} <= set(drawing.texts)


def test_one_problem_budget_and_reduction_are_chosen(votes: pl.DataFrame) -> None:
    many = pl.concat([
        votes.with_columns(
            problem_id=pl.lit(problem),
            budget=pl.lit(budget, pl.UInt32),
            reduction=pl.lit(reduction),
        )
        for problem in ("p", "q")
        for budget in (8, 16)
        for reduction in ("last", "min")
    ])
    with pytest.raises(DataError, match=r"2 values of 'problem_id'.*problem_id=\.\.\."):
        charts.answer_votes(many)
    with pytest.raises(DataError, match="2 values of 'budget'"):
        charts.answer_votes(many, problem_id="q")
    with pytest.raises(DataError, match="2 values of 'reduction'"):
        charts.answer_votes(many, problem_id="q", budget=8)
    with pytest.raises(ParameterError, match=r"problem_id == 'r' is not in votes; found: 'p', 'q'"):
        charts.answer_votes(many, problem_id="r")
    chart = charts.answer_votes(many, problem_id="q", budget=8, reduction="min")
    assert chart.title.text == "Votes per answer, problem q"
    assert "min of step scores" in chart.title.subtitle[0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.drop("n_votes"), ColumnsError, "'n_votes'.*Hint: tts.tally_votes"),
        (lambda t: t.with_columns(n_votes=pl.lit("two")), ColumnsError, "'n_votes' is String"),
        (lambda t: t.head(0), DataError, "no rows"),
        (lambda t: pl.concat([t, t]), DataError, "twice"),
        (
            lambda t: t.with_columns(run=pl.Series(["a", "b", "a", "b", "a"])),
            DataError,
            "2 values of 'run'. Hint: filter",
        ),
    ],
)
def test_tables_that_are_no_votes(
    votes: pl.DataFrame, change: Callable[[pl.DataFrame], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        charts.answer_votes(change(votes))


def test_latex_is_written_plainly_and_kept_in_the_tooltip(
    votes: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.answer_votes(votes)
    assert "1/2" in draw(chart).texts
    values = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert "\\frac12" in {row["answer"] for row in values}


def test_the_reference_answer_is_named(votes: pl.DataFrame) -> None:
    given = charts.answer_votes(votes, gold=r"\frac{3}{4}")
    assert "gold answer: 3/4" in given.title.subtitle
    joined = charts.answer_votes(votes.with_columns(gold=pl.lit("47")))
    assert "gold answer: 47" in joined.title.subtitle
    assert not any("reference" in line for line in charts.answer_votes(votes).title.subtitle)
    long = charts.answer_votes(votes, gold="9" * 5_000)
    assert max(map(len, long.title.subtitle)) < 120
