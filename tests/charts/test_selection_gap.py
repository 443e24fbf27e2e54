"""The chart of a selection gap: what it draws, names, leaves out and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

BLUE, ORANGE, GRAY = "#5aa2d6", "#f2a65a", "#e3e3e3"


def panels(chart: TopLevelMixin) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    return spec.get("concat", [spec])


def majority(gap: pl.DataFrame) -> pl.DataFrame:
    return gap.filter(pl.col("selector") == "majority_vote")


def rows_with(chart: TopLevelMixin, name: str) -> list[dict[str, Any]]:
    tables = chart.to_dict()["datasets"].values()
    return [row for rows in tables for row in rows if name in row]


def test_three_bands_fill_the_panel_and_are_named_at_their_ends(
    gap: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.selection_gap(majority(gap))
    drawing = draw(chart)
    assert sorted(set(drawing.colors["area"])) == sorted([BLUE, ORANGE, GRAY])
    for label in ("answered right 50.0%", "lost by selection 20.0%", "not generated 30.0%"):
        assert label in drawing.texts
    bands = rows_with(chart, "part")
    assert len(bands) == 3 * 4
    for x in (1, 2, 4, 8):
        edges = [(row["from"], row["to"]) for row in bands if row["x"] == x]
        (low, a), (b, c), (d, high) = edges
        assert (low, a, c, high) == (0.0, b, d, 1.0)


def test_every_selector_has_a_panel_on_the_same_axes(gap: pl.DataFrame) -> None:
    chart = charts.selection_gap(gap)
    assert [panel["title"]["text"] for panel in panels(chart)] == [
        "majority vote",
        "best of n (last)",
    ]
    for panel in panels(chart):
        encoding = panel["layer"][0]["encoding"]
        assert encoding["y"]["scale"]["domain"] == [0.0, 1.0]
        assert (encoding["x"]["scale"]["type"], encoding["x"]["scale"]["base"]) == ("log", 2)
        assert encoding["x"]["axis"]["values"] == [1, 2, 4, 8]
    alone = charts.selection_gap(majority(gap))
    assert alone.title.text == "Where accuracy is lost: majority vote"
    assert chart.title.text == "Where accuracy is lost"
    assert charts.selection_gap(gap, title="Mine").title.text == "Mine"


def test_the_interval_of_what_selection_loses_stands_with_its_band(
    gap: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.selection_gap(majority(gap), confidence_level=0.9)
    last = next(row for row in rows_with(chart, "interval") if row["budget"] == 8)
    assert last["interval"] == "18.0% to 22.0%"
    drawing = draw(chart)
    assert "(18.0 to 22.0)" in drawing.texts
    assert "rule" not in drawing.colors
    bare = majority(gap).with_columns(ci_low=None, ci_high=None)
    assert not any(text.startswith("(") for text in draw(charts.selection_gap(bare)).texts)
    first, second, third = chart.title.subtitle
    assert first == (
        "97 problems · budgets up to 8 attempts · "
        "in brackets: 90% confidence interval of what selection loses"
    )
    assert "not generated: no attempt was right" in second
    assert third == "Left out: 3 problems with too few attempts"


def test_what_the_tooltips_say(gap: pl.DataFrame) -> None:
    (spec,) = panels(charts.selection_gap(majority(gap)))
    titles = {
        entry["title"]
        for layer in spec["layer"]
        for entry in layer["encoding"].get("tooltip", [])
        if isinstance(layer["encoding"].get("tooltip"), list)
    }
    assert {
        "Selector",
        "Answered right",
        "Lost by selection",
        "Not generated",
        "Left out",
    } <= titles


def test_runs_stand_side_by_side(gap: pl.DataFrame) -> None:
    runs = pl.concat([majority(gap).with_columns(model=pl.lit(name)) for name in ("a", "b")])
    assert [panel["title"]["text"] for panel in panels(charts.selection_gap(runs))] == ["a", "b"]


@pytest.mark.parametrize("budget", [8, None])
def test_a_single_budget_fills_the_width(
    gap: pl.DataFrame, budget: int | None, draw: Callable[[TopLevelMixin], Any]
) -> None:
    one = majority(gap).filter(pl.col("budget") == 8)
    chart = charts.selection_gap(one.with_columns(budget=pl.lit(budget, pl.UInt32)))
    low, high = panels(chart)[0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert {row["x"] for row in rows_with(chart, "part")} == {low, high}
    assert low < high
    drawing = draw(chart)
    assert "answered right 50.0%" in drawing.texts
    assert ("8" in drawing.texts) == (budget == 8)
    assert ("All attempts" in drawing.texts) == (budget is None)
    attempts = "all attempts of each" if budget is None else "budget: 8 attempts"
    assert attempts in chart.title.subtitle[0]


def test_many_budgets_are_thinned(gap: pl.DataFrame) -> None:
    one = majority(gap).filter(pl.col("budget") == 8)
    many = pl.concat([one.with_columns(budget=pl.lit(b, pl.UInt32)) for b in range(1, 300)])
    points = {row["budget"] for row in rows_with(charts.selection_gap(many), "reached")}
    assert len(points) <= 64
    assert {1, 299} <= points


def test_a_table_with_the_least_columns_is_drawn() -> None:
    least = pl.DataFrame({
        "selector": ["mine"],
        "budget": [4],
        "accuracy": [0.5],
        "selection_gap": [0.25],
        "generation_gap": [0.25],
    })
    chart = charts.selection_gap(least.lazy())
    assert chart.title.subtitle[0] == "budget: 4 attempts"


def test_the_table_of_the_package_is_drawn(draw: Callable[[TopLevelMixin], Any]) -> None:
    run = tts.simulate_trajectories(40, 8, seed=0, keys=True)
    problems = tts.select_answers(run, selectors=list(tts.SELECTORS), budgets=[1, 2, 4, 8])
    gap = tts.selection_gap(problems)
    last = gap.filter((pl.col("selector") == "weighted_vote") & (pl.col("budget") == 8))
    texts = draw(charts.selection_gap(gap)).texts
    assert f"lost by selection {100 * last['selection_gap'].item():.1f}%" in texts


def test_what_is_no_gap_is_refused(gap: pl.DataFrame) -> None:
    with pytest.raises(ColumnsError, match=r"'selection_gap'.*tts.selection_gap\(problems\)"):
        charts.selection_gap(gap.drop("selection_gap"))
    with pytest.raises(ColumnsError, match=r"gap: 'generation_gap' is String, must be numbers"):
        charts.selection_gap(gap.with_columns(generation_gap=pl.lit("a")))
    with pytest.raises(DataError, match="gap has no rows"):
        charts.selection_gap(gap.clear())
    with pytest.raises(DataError, match="gap has no accuracy: null in all 8 rows"):
        charts.selection_gap(gap.with_columns(accuracy=pl.lit(None, pl.Float64)))
    with pytest.raises(
        DataError, match=r"gap has several rows for .*tts.selection_gap\(problems, by"
    ):
        charts.selection_gap(pl.concat([gap, gap]))
    with pytest.raises(ParameterError, match="confidence_level"):
        charts.selection_gap(gap, confidence_level=95)
    with pytest.raises(ParameterTypeError, match=r"gap must be .*, got dict"):
        charts.selection_gap(gap.to_dict())  # type: ignore[arg-type]
