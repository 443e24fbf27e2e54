"""The chart of accuracy by level: what it draws, names, leaves out and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.charts.style import selector_colors, strategy_colors
from ttsframe.errors import ColumnsError, DataError, ParameterError


@pytest.fixture
def by_level(curve: pl.DataFrame) -> pl.DataFrame:
    three = curve.filter(pl.col("selector") != "oracle", pl.col("budget") > 1)
    return pl.concat([
        three.with_columns(
            pl.col("accuracy", "ci_low", "ci_high") - 0.1 * level,
            level=pl.lit(level, pl.UInt32),
            basis=pl.lit("reference"),
        )
        for level in (1, 2)
    ])


def panels(chart: TopLevelMixin) -> list[dict[str, Any]]:
    spec: dict[str, Any] = chart.to_dict()
    found: list[dict[str, Any]] = spec.get("concat", [spec])
    return found


def bars(chart: TopLevelMixin) -> list[dict[str, Any]]:
    tables = chart.to_dict()["datasets"].values()
    return [row for table in tables for row in table if "line" in row]


def headings(chart: TopLevelMixin) -> list[list[str]]:
    """Return the texts above each panel."""
    tables = chart.to_dict()["datasets"]
    return [
        [
            row["text"]
            for layer in panel["layer"]
            for row in tables[layer["data"]["name"]]
            if "text" in row
        ]
        for panel in panels(chart)
    ]


def test_every_level_budget_and_method_is_a_bar(
    by_level: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.level_bars(by_level, confidence_level=0.95)
    assert headings(chart) == [["Level 1", "97 problems"], ["Level 2", "97 problems"]]
    found = {(row["level"], row["budget"], row["line"]): row["accuracy"] for row in bars(chart)}
    assert len(found) == 2 * 3 * 3
    assert found[2, 8, "best of n"] == pytest.approx(0.29)
    for panel in panels(chart):
        encoding = panel["layer"][0]["encoding"]
        assert encoding["y"]["scale"]["domain"] == [0.0, 1.0]
        assert encoding["x"]["scale"]["domain"] == ["2", "4", "8"]
    drawing = draw(chart)
    assert {"majority vote", "best of n", "Accuracy", "100%"} <= set(drawing.texts)
    colors = selector_colors(["majority_vote", "weighted_vote", "best_of_n"]).values()
    assert set(drawing.colors["rect"]) == set(colors)
    first, about, second = chart.title.subtitle
    assert about == "levels: estimated on another run"
    assert first.endswith(
        "whiskers: 95% confidence interval over problems · scores: last of step scores"
    )
    assert second == "Left out per level: 3 problems with too few attempts"


def test_reductions_of_one_selector_have_colors_of_their_own() -> None:
    names = ["best_of_n", "best_of_n", "majority_vote", "best_of_n"]
    colors = strategy_colors(names)
    assert len(set(colors)) == 4
    assert colors[0] == selector_colors(names)["best_of_n"]
    every = strategy_colors([*(f"s{i}" for i in range(20)), *["oracle"] * 30])
    assert len(every) == 50


def test_reductions_are_named_where_there_are_several(by_level: pl.DataFrame) -> None:
    scored = by_level.filter(selector="best_of_n")
    both = pl.concat([by_level, scored.with_columns(reduction=pl.lit("min"))])
    lines = {row["line"] for row in bars(charts.level_bars(both))}
    assert lines == {
        "majority vote",
        "best of n (last)",
        "best of n (min)",
        "weighted vote (last)",
    }


def test_levels_without_problems_and_problems_without_a_level(by_level: pl.DataFrame) -> None:
    empty = by_level.filter(level=2).with_columns(
        level=pl.lit(3, pl.UInt32),
        accuracy=pl.lit(None, pl.Float64),
        n_problems=pl.lit(0, pl.UInt32),
    )
    unknown = by_level.filter(level=2).with_columns(
        level=pl.lit(None, pl.UInt32), n_problems=pl.lit(4, pl.UInt32)
    )
    chart = charts.level_bars(pl.concat([by_level, empty, unknown]))
    assert [name for name, _ in headings(chart)] == ["Level 1", "Level 2", "Level 3"]
    assert headings(chart)[2][1] == "0 problems"
    assert "Left out: 4 problems of unknown level" in chart.title.subtitle


def test_runs_get_a_row_of_panels_each(by_level: pl.DataFrame) -> None:
    runs = pl.concat([by_level.with_columns(model=pl.lit(name)) for name in ("a", "b")])
    found = headings(charts.level_bars(runs.lazy()))
    assert [texts[2:] for texts in found] == [["a"], [], ["b"], []]
    assert charts.level_bars(runs).columns == 2


def test_one_level_at_all_attempts(by_level: pl.DataFrame) -> None:
    one = by_level.filter(level=1, budget=8).with_columns(budget=pl.lit(None, pl.UInt32))
    chart = charts.level_bars(one, title="Mine", width=200)
    assert chart.title.text == "Mine"
    assert {row["of_budget"] for row in bars(chart)} == {"all"}


def test_the_table_of_the_package_is_drawn(draw: Callable[[TopLevelMixin], Any]) -> None:
    run = tts.simulate_trajectories(60, 16, seed=0, keys=True)
    levels = tts.difficulty_levels(run, n_levels=3)
    problems = tts.select_answers(tts.curves.halve_attempts(run), budgets=[1, 8], by="fold")
    curve = tts.level_curve(problems, levels=levels)
    assert len(draw(charts.level_bars(curve)).colors["rect"]) == 3 * 2 * 3


def test_bars_of_costs_stand_at_the_budgets_that_were_given() -> None:
    run = tts.simulate_trajectories(60, 16, seed=0, keys=True)
    levels = tts.difficulty_levels(run, n_levels=3)
    halves = tts.curves.halve_attempts(run)
    problems = tts.select_answers(halves, budgets=[1, 8], by="fold")
    priced = tts.curves.add_costs(problems, trajectories=halves, by="fold")
    chart = charts.level_bars(tts.cost_curve(priced, levels=levels))
    plain = charts.level_bars(tts.level_curve(problems, levels=levels))
    assert {row["of_budget"] for row in bars(chart)} == {"1", "8"}
    assert [row["accuracy"] for row in bars(chart)] == [row["accuracy"] for row in bars(plain)]


def test_what_is_no_curve_by_level_is_refused(by_level: pl.DataFrame) -> None:
    with pytest.raises(ColumnsError, match=r"must be a curve by level.*tts.level_curve"):
        charts.level_bars(by_level.drop("level"))
    with pytest.raises(DataError, match="curve has no accuracy at a level"):
        charts.level_bars(by_level.with_columns(accuracy=pl.lit(None, pl.Float64)))
    with pytest.raises(DataError, match=r"curve has several rows for .*tts.level_curve"):
        charts.level_bars(pl.concat([by_level, by_level]))
    many = pl.concat([by_level.with_columns(level=pl.lit(i, pl.UInt32)) for i in range(1, 15)])
    many = many.unique(["level", "selector", "budget"])
    with pytest.raises(DataError, match="14 levels, 3 budgets and 3 methods, 126 bars"):
        charts.level_bars(many)
    with pytest.raises(ParameterError, match="confidence_level"):
        charts.level_bars(by_level, confidence_level=95)


@pytest.mark.parametrize("chart", [charts.level_bars, charts.level_curves])
def test_subjects_and_own_levels_have_a_panel_each(
    chart: Callable[..., Any], draw: Callable[[TopLevelMixin], Any]
) -> None:
    run = tts.simulate_trajectories(60, 8, seed=0, keys=True)
    number = pl.col("problem_id").rank("dense") % 3
    run = run.with_columns(
        subject=number.replace_strict({0: "Algebra", 1: "Geometry", 2: "Sets"}),
        level=pl.format("Level {}", 10 - number),
    )
    picks = {"selectors": ["majority_vote", "best_of_n"], "budgets": [1, 8]}
    problems = tts.select_answers(run, by="subject", **picks)  # type: ignore[arg-type]
    curve = tts.scaling_curve(problems, by="subject")
    drawn = chart(curve, level="subject")
    texts = draw(drawn).texts
    assert [text for text in texts if text in {"Algebra", "Geometry", "Sets"}] == [
        "Algebra",
        "Geometry",
        "Sets",
    ]
    assert "subject" in drawn.title.text
    assert not any("hardest" in line for line in [*texts, *drawn.title.subtitle])
    of_text = tts.select_answers(run, by="level", **picks)  # type: ignore[arg-type]
    texts = draw(chart(tts.scaling_curve(of_text, by="level"))).texts
    assert [text for text in texts if text.startswith("Level ")] == [
        "Level 8",
        "Level 9",
        "Level 10",
    ]
    with pytest.raises(ColumnsError, match=r"'subject'.*by='subject'"):
        chart(curve.drop("subject"), level="subject")


def test_whiskers_are_lighter_than_bars(by_level: pl.DataFrame) -> None:
    bars, whiskers = charts.level_bars(by_level).to_dict()["concat"][0]["layer"][:2]
    assert whiskers["mark"]["type"] == "rule"
    assert whiskers["mark"]["strokeWidth"] < 1
    assert whiskers["mark"]["opacity"] < bars["mark"]["opacity"]


@pytest.mark.parametrize("chart", [charts.level_bars, charts.level_curves])
def test_a_budget_above_what_there_is_is_named(chart: Callable[..., Any]) -> None:
    run = tts.simulate_trajectories(40, 8, seed=0, keys=True)
    problems = tts.select_answers(
        tts.curves.halve_attempts(run), selectors=["majority_vote"], budgets=[1, 4, 16], by="fold"
    )
    drawn = chart(tts.level_curve(problems, levels=tts.difficulty_levels(run, n_levels=2)))
    assert "Not drawn: budget 16 attempts (" in "\n".join(drawn.title.subtitle)
