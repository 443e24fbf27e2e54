"""The chart of the values of steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError

GREEN, PURPLE, BLUE = "#1b7837", "#7b3294", "#3b6a8f"


def test_labels_have_their_colors_and_the_first_error_its_name(
    steps: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.step_values(steps.filter(solution_id=0)))
    assert sorted(drawing.colors["symbol"]) == sorted([BLUE, GREEN, PURPLE, PURPLE])
    assert drawing.texts.count("first error") == 1
    assert "Step (-1: the problem itself)" in drawing.texts


def test_solutions_are_panels(steps: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]) -> None:
    drawing = draw(charts.step_values(steps))
    assert {"solution 0", "solution 1"} <= set(drawing.texts)
    other = steps.with_columns(problem_id=pl.lit("q"))
    drawing = draw(charts.step_values(pl.concat([steps, other])))
    assert "problem: q · solution: 1" in drawing.texts
    assert drawing.texts.count("first error") == 2


def test_the_subtitle_counts(steps: pl.DataFrame) -> None:
    chart = charts.step_values(steps, confidence_level=0.9)
    assert chart.title.subtitle == [
        "2 solutions · 2 to 8 rollouts per step · bars: 90% confidence interval",
        "green: labeled right · purple: labeled wrong",
        "Left out: 1 step without a graded rollout",
    ]


def test_texts_are_in_the_tooltip(steps: pl.DataFrame) -> None:
    texts = pl.concat_str(pl.lit("so "), pl.col("step"))
    chart = charts.step_values(steps.filter(solution_id=1).with_columns(text=texts))
    assert '"text": "so 0"' in json.dumps(chart.to_dict())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda t: t.drop("soft", "is_correct"),
            ColumnsError,
            "'soft'.*Hint: .*tts.process.estimate_steps",
        ),
        (lambda t: t.with_columns(is_correct=1), ColumnsError, "must be Boolean"),
        (lambda t: t.with_columns(soft=pl.lit("x")), ColumnsError, "'soft' is String"),
        (lambda t: t.head(0), DataError, "no rows"),
        (lambda t: t.with_columns(soft=pl.lit(None, pl.Float64)), DataError, "no value"),
        (lambda t: pl.concat([t, t]), DataError, "several rows for"),
        (
            lambda t: pl.concat([t.with_columns(problem_id=pl.lit(f"p{i}")) for i in range(9)]),
            DataError,
            "18 groups",
        ),
    ],
)
def test_tables_that_are_no_steps(
    steps: pl.DataFrame,
    change: Callable[[pl.DataFrame], Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        charts.step_values(change(steps))


def read(shared_data: Path, name: str, n_solutions: int) -> pl.DataFrame:
    steps = tts.read_steps(shared_data / "openr" / f"samples_{name}.jsonl")
    kept = steps["solution_id"].unique(maintain_order=True)[:n_solutions]
    return steps.filter(pl.col("solution_id").is_in(kept.to_list()))


@pytest.mark.parametrize("name", ["math-aps", "math-aps-tree"])
def test_a_tree_that_was_read_joins_nodes_to_their_parents(
    shared_data: Path, name: str, draw: Callable[[TopLevelMixin], Any]
) -> None:
    steps = read(shared_data, name, 2)
    chart = charts.step_values(steps)
    assert "lines: from a step to those after it" in chart.title.subtitle
    links = [row for rows in chart.to_dict()["datasets"].values() for row in rows if "x2" in row]
    nodes = steps.select("solution_id", "node")
    with_parent = steps.join(
        nodes.rename({"node": "parent"}), on=["solution_id", "parent"], how="semi"
    )
    assert len(links) == with_parent.height > 0
    drawing = draw(chart)
    assert len(drawing.colors["symbol"]) == steps.height
    assert "Share of right rollouts" in drawing.texts


@pytest.mark.parametrize(("name", "n"), [("math-shepherd", 7), ("prm800k", 3)])
def test_labels_that_were_read_are_right_or_wrong(
    shared_data: Path, name: str, n: int, draw: Callable[[TopLevelMixin], Any]
) -> None:
    steps = read(shared_data, name, n)
    chart = charts.step_values(steps)
    assert chart.title.text == "Which steps are labeled right"
    drawing = draw(chart)
    labels = steps["is_correct"].drop_nulls()
    assert drawing.colors["symbol"].count(GREEN) == labels.sum()
    assert drawing.colors["symbol"].count(PURPLE) == (~labels).sum()
    assert {"right", "wrong"} <= set(drawing.texts)
    assert "Left out: 4 steps without a label" in chart.title.subtitle or name != "prm800k"


def test_the_first_wrong_label_is_the_first_error(draw: Callable[[TopLevelMixin], Any]) -> None:
    steps = pl.DataFrame({
        "problem_id": ["p"] * 4,
        "solution_id": [0] * 4,
        "step": [0, 1, 2, 3],
        "is_correct": [True, False, True, False],
    })
    chart = charts.step_values(steps)
    marked = [
        row["x"]
        for rows in chart.to_dict()["datasets"].values()
        for row in rows
        if row.get("is_first_error")
    ]
    assert set(marked) == {1.0}
    assert draw(chart).texts.count("first error") == 1


def test_steps_with_neither_values_nor_labels_are_refused(steps: pl.DataFrame) -> None:
    with pytest.raises(ColumnsError, match=r"of which it needs one: 'soft', 'is_correct'"):
        charts.step_values(steps.select("problem_id", "solution_id", "step"))
