"""The chart of labels by number of rollouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError


def test_each_line_ends_in_its_name(
    label_rollouts: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.label_agreement(label_rollouts))
    assert {
        "labeled right 0.60",
        "same as with all rollouts 1.00",
        "same if repeated 0.85",
        "same first error 1.00",
    } <= set(drawing.texts)
    assert len(drawing.colors["line"]) == 4
    # The line of the share has no interval.
    assert len(drawing.colors["area"]) == 3
    # A second annotation of 8 rollouts does not fit into 8.
    assert len(drawing.colors["symbol"]) == 3 * 3 + 2


def test_the_subtitle_counts(label_rollouts: pl.DataFrame) -> None:
    chart = charts.label_agreement(label_rollouts, confidence_level=0.95)
    assert chart.title.subtitle == [
        "90 steps of 30 problems · shaded: 95% confidence interval over problems",
        "Left out: 7 steps with fewer rollouts than the largest number",
    ]


def test_groups_become_panels(
    label_rollouts: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    both = pl.concat([label_rollouts.with_columns(model=pl.lit(name)) for name in "xy"])
    drawing = draw(charts.label_agreement(both))
    assert {"x", "y"} <= set(drawing.texts)


def test_one_number_of_rollouts_is_drawn_too(
    label_rollouts: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.label_agreement(label_rollouts.head(1)))
    assert len(drawing.colors["symbol"]) == 4


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.drop("hard"), ColumnsError, "'hard'.*Hint: tts.process.step_agreement"),
        (lambda t: t.with_columns(hard=pl.lit("x")), ColumnsError, "'hard' is String"),
        (lambda t: t.head(0), DataError, "no rows"),
        (lambda t: pl.concat([t, t]), DataError, "several rows for"),
    ],
)
def test_tables_that_are_not_of_rollouts(
    label_rollouts: pl.DataFrame,
    change: Callable[[pl.DataFrame], Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        charts.label_agreement(change(label_rollouts))
