"""The chart of step scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError

GREEN, PURPLE = "#1b7837", "#7b3294"


def test_right_and_wrong_are_two_bands_and_lines(
    profile: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.step_profile(profile, confidence_level=0.95))
    assert sorted(drawing.colors["line"]) == [GREEN, PURPLE]
    assert sorted(drawing.colors["area"]) == [GREEN, PURPLE]
    assert len(drawing.colors["symbol"]) == 8
    assert {"right 0.85", "wrong 0.40"} <= set(drawing.texts)


def test_the_subtitle_counts(profile: pl.DataFrame) -> None:
    lines = charts.step_profile(profile, confidence_level=0.95).title.subtitle
    assert lines[0] == (
        "right: 64 attempts on 12 problems · wrong: 32 attempts on 9 problems · "
        "shaded: 95% confidence interval over problems"
    )
    assert lines[1] == "Left out: 3 steps without a score"


def test_scores_outside_0_and_1_get_the_axis_they_need(profile: pl.DataFrame) -> None:
    logits = profile.with_columns((pl.col("mean_score", "ci_low", "ci_high") - 0.6) * 10)
    chart = charts.step_profile(logits)
    low, high = chart.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < -2.4
    assert high > 2.9
    assert charts.step_profile(profile).to_dict()["layer"][0]["encoding"]["y"]["scale"][
        "domain"
    ] == [0, 1]


def test_ungraded_attempts_are_a_line_of_their_own(
    profile: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    ungraded = profile.filter(pl.col("is_correct")).with_columns(
        is_correct=pl.lit(None, pl.Boolean)
    )
    drawing = draw(charts.step_profile(ungraded))
    assert "not graded 0.85" in drawing.texts
    assert len(drawing.colors["line"]) == 1


def test_runs_become_panels(profile: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]) -> None:
    runs = pl.concat([profile.with_columns(model=pl.lit(name)) for name in ("3b", "8b")])
    drawing = draw(charts.step_profile(runs))
    assert {"3b", "8b"} <= set(drawing.texts)
    assert len(drawing.colors["line"]) == 4


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.drop("position"), ColumnsError, "'position'.*Hint: tts.verifier.step_profile"),
        (lambda t: t.with_columns(is_correct=pl.lit("yes")), ColumnsError, "must be Boolean"),
        (
            lambda t: t.with_columns(mean_score=pl.lit("high")),
            ColumnsError,
            "'mean_score' is String",
        ),
        (lambda t: t.head(0), DataError, "no rows"),
        (lambda t: t.with_columns(mean_score=pl.lit(None, pl.Float64)), DataError, "no score"),
        (lambda t: pl.concat([t, t]), DataError, "several rows for"),
    ],
)
def test_tables_that_are_no_profile(
    profile: pl.DataFrame,
    change: Callable[[pl.DataFrame], Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        charts.step_profile(change(profile))
