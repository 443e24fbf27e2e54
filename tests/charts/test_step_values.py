"""The chart of the values of steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

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
        (lambda t: t.drop("soft"), ColumnsError, "'soft'.*Hint: tts.process.estimate_steps"),
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
