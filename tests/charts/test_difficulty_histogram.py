"""The chart of difficulties: what it draws, names, leaves out and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError


def bars(chart: TopLevelMixin) -> list[dict[str, Any]]:
    return [row for table in chart.to_dict()["datasets"].values() for row in table]


def test_bars_count_problems_by_difficulty_and_level(
    levels: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.difficulty_histogram(levels.filter(fold=0), n_bins=8)
    found = bars(chart)
    # 5 problems to a bar, two bars to a level.
    assert [row["n_problems"] for row in found] == [5] * 8
    assert [row["level"] for row in found] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [row["begin"] for row in found] == pytest.approx([i / 8 for i in range(8)])
    assert chart.title.subtitle == [
        "40 problems in 5 levels · estimated on the other half of the attempts",
        "40 problems estimated on fewer than 16 attempts · no problem in level 5",
    ]
    assert {"Difficulty (1 − metric)", "Problems", "Level"} <= set(draw(chart).texts)


def test_halves_are_panels(levels: pl.DataFrame) -> None:
    chart = charts.difficulty_histogram(levels)
    titles = [panel["title"]["text"] for panel in chart.to_dict()["concat"]]
    assert titles == [
        "even attempts, levels from the odd",
        "odd attempts, levels from the even",
    ]


def test_levels_within_a_bar_are_stacked(levels: pl.DataFrame) -> None:
    found = bars(charts.difficulty_histogram(levels.filter(fold=0), n_bins=1))
    assert [(row["bottom"], row["top"]) for row in found] == [(0, 10), (10, 20), (20, 30), (30, 40)]


def test_difficulties_beyond_one_have_their_own_range(
    levels: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    given = levels.filter(fold=0).with_columns(
        difficulty=pl.col("level").cast(pl.Float64), basis=pl.lit("given")
    )
    chart = charts.difficulty_histogram(given, n_bins=3)
    assert [row["n_problems"] for row in bars(chart)] == [10, 10, 10, 10]
    assert "Difficulty (higher is harder)" in draw(chart).texts
    same = given.with_columns(difficulty=pl.lit(3.0))
    assert sum(row["n_problems"] for row in bars(charts.difficulty_histogram(same))) == 40


def test_a_hundred_thousand_problems_are_a_few_rows() -> None:
    n = 100_000
    many = pl.DataFrame({
        "problem_id": range(n),
        "level": [i * 5 // n + 1 for i in range(n)],
        "difficulty": [i / n for i in range(n)],
    })
    assert len(bars(charts.difficulty_histogram(many))) <= 25 + 5


def test_the_table_of_the_package_is_drawn() -> None:
    run = tts.simulate_trajectories(40, 16, seed=0, keys=True)
    chart = charts.difficulty_histogram(tts.difficulty_levels(run.lazy()))
    assert len(chart.to_dict()["concat"]) == 2


def test_the_axis_names_the_metric(draw: Callable[[TopLevelMixin], Any]) -> None:
    run = tts.simulate_trajectories(20, 8, seed=0, keys=True)
    for metric, name in (("pass_at_1", "pass@1"), ("mean_score", "mean score")):
        levels = tts.difficulty_levels(run, metric=metric)
        assert f"Difficulty (1 − {name})" in draw(charts.difficulty_histogram(levels)).texts


def test_what_is_no_table_of_levels_is_refused(levels: pl.DataFrame) -> None:
    with pytest.raises(ColumnsError, match=r"'difficulty'.*tts.difficulty_levels"):
        charts.difficulty_histogram(levels.drop("difficulty"))
    with pytest.raises(DataError, match="levels has no difficulty: null in all 80 rows"):
        charts.difficulty_histogram(levels.with_columns(difficulty=pl.lit(None, pl.Float64)))
    with pytest.raises(ParameterError, match="n_bins == 0"):
        charts.difficulty_histogram(levels, n_bins=0)
