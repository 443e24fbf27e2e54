"""The chart of curves by level: what it draws, names, leaves out and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError


def panels(chart: TopLevelMixin) -> list[dict[str, Any]]:
    return [panel for row in chart.to_dict()["vconcat"] for panel in row["hconcat"]]


def test_each_level_has_a_panel_on_the_same_axes(
    leveled: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.level_curves(leveled, confidence_level=0.9)
    texts = draw(chart).texts
    for text in ("Level 1 (easiest)", "Level 2", "Level 3 (hardest)", "majority vote", "best of n"):
        assert texts.count(text) == 1, text
    for panel in panels(chart):
        encoding = panel["layer"][1]["encoding"]
        assert encoding["y"]["scale"]["domain"] == [0, 1]
        assert encoding["x"]["scale"]["domain"] == [1, 4]
    assert texts.count("Attempts per problem (log scale)") == 1
    assert texts.count("Accuracy") == 1
    first, second, third, fourth = chart.title.subtitle
    assert first == (
        "40 problems per level · budgets up to 4 attempts · shaded: 90% confidence interval over problems"
    )
    assert second == (
        "levels: estimated on the other half of the attempts · scores: last of step scores"
    )
    assert third == "Left out per level: 3 problems with too few attempts"
    assert fourth == "equal lines are drawn wide under narrow"


def test_an_empty_level_keeps_its_place_and_says_so(
    leveled: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    assert draw(charts.level_curves(leveled)).texts.count("no problems") == 1
    # Over costs an empty level has no budget either.
    spent = leveled.with_columns(budget=pl.when(pl.col("n_problems") > 0).then("budget"))
    assert draw(charts.level_curves(spent)).texts.count("no problems") == 1
    unknown = leveled.with_columns(level=pl.when(pl.col("level") < 3).then("level"))
    texts = draw(charts.level_curves(unknown)).texts
    assert "Unknown" in texts
    assert "Level 2 (hardest)" in texts


def test_levels_from_the_same_attempts_are_called_what_they_are(leveled: pl.DataFrame) -> None:
    chart = charts.level_curves(leveled.with_columns(basis=pl.lit("same_sample")))
    assert "hard ones look harder" in chart.title.subtitle[1]


def test_doubts_about_levels_are_said(leveled: pl.DataFrame) -> None:
    doubtful = leveled.with_columns(
        caveat=pl.when(pl.col("level") == 2).then(pl.lit("few_attempts"))
    )
    for chart in (charts.level_curves(doubtful), charts.level_bars(doubtful)):
        assert any(
            "some problems estimated on fewer than 16 attempts" in line
            for line in chart.title.subtitle
        )
        assert any(
            "estimated on the other half of the attempts" in line for line in chart.title.subtitle
        )


def test_runs_become_rows_and_reductions_dashes(
    leveled: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    runs = pl.concat([leveled.with_columns(model=pl.lit(name)) for name in ("x1", "x2")])
    chart = charts.level_curves(runs)
    assert [row["title"]["text"] for row in chart.to_dict()["vconcat"]] == ["x1", "x2"]
    more = leveled.filter(pl.col("reduction") == "last").with_columns(reduction=pl.lit("min"))
    texts = draw(charts.level_curves(pl.concat([leveled, more]))).texts
    assert {"last", "min", "no score"} <= set(texts)


def test_the_table_of_the_package_is_drawn(draw: Callable[[TopLevelMixin], Any]) -> None:
    run = tts.simulate_trajectories(40, 16, seed=0, keys=True)
    halves, levels = tts.curves.halve_attempts(run), tts.difficulty_levels(run)
    problems = tts.select_answers(halves, budgets=[1, 2, 4, 8], by="fold")
    plain = charts.level_curves(tts.level_curve(problems, levels=levels))
    assert "Level 5 (hardest)" in draw(plain).texts
    costs = tts.curves.add_costs(problems, trajectories=halves, by="fold")
    chart = charts.level_curves(tts.cost_curve(costs, levels=levels))
    assert "Tokens per problem (log scale)" in draw(chart).texts


def test_what_is_no_curve_by_level_is_refused(leveled: pl.DataFrame) -> None:
    with pytest.raises(ColumnsError, match="must be a curve by level"):
        charts.level_curves(leveled.drop("level"))
    with pytest.raises(DataError, match="curve has several rows"):
        charts.level_curves(pl.concat([leveled, leveled]))
    with pytest.raises(DataError, match="curve has 11 levels, this chart holds at most 10"):
        charts.level_curves(
            pl.concat([leveled.filter(level=1).with_columns(level=i) for i in range(11)])
        )
    with pytest.raises(DataError, match="curve has no accuracy"):
        charts.level_curves(leveled.with_columns(accuracy=pl.lit(None, pl.Float64)))
    with pytest.raises(ParameterError, match="confidence_level"):
        charts.level_curves(leveled, confidence_level=95)
