"""The chart of a curve: what it draws, names, leaves out and refuses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

BLUE, ORANGE, GREEN, GRAY = "#0067a5", "#b84a00", "#00775a", "#4d4d4d"


def panels(chart: TopLevelMixin) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    return spec.get("concat", [spec])


def test_every_selector_is_a_line_of_its_color_named_at_its_end(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.scaling_curve(curve))
    assert sorted(drawing.colors["line"]) == sorted([BLUE, ORANGE, GREEN, GRAY])
    assert sorted(drawing.colors["area"]) == sorted([BLUE, ORANGE, GREEN, GRAY])
    assert len(drawing.colors["symbol"]) == curve.height
    for label in ("majority vote 50.0%", "weighted vote 55.0%", "best of n 49.0%", "oracle 70.0%"):
        assert label in drawing.texts


def test_axes_are_log2_at_the_budgets_and_percent(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.scaling_curve(curve)
    (spec,) = panels(chart)
    x, y = spec["layer"][0]["encoding"]["x"], spec["layer"][0]["encoding"]["y"]
    assert (x["scale"]["type"], x["scale"]["base"]) == ("log", 2)
    assert x["axis"]["values"] == [1, 2, 4, 8]
    assert y["axis"]["format"] == ".0%"
    texts = draw(chart).texts
    assert texts[:4] == ["1", "2", "4", "8"]
    assert "40%" in texts


@pytest.mark.parametrize("selector", ["majority_vote", "weighted_vote", "oracle"])
def test_a_selector_has_one_color_whatever_stands_beside_it(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any], selector: str
) -> None:
    alone = draw(charts.scaling_curve(curve.filter(pl.col("selector") == selector)))
    together = draw(charts.scaling_curve(curve))
    assert alone.colors["line"][0] in together.colors["line"]
    assert set(alone.colors["line"]) == set(alone.colors["symbol"])


def test_an_unknown_selector_gets_a_color_of_its_own(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    more = pl.concat([curve, curve.tail(4).with_columns(selector=pl.lit("borda"))])
    assert len(set(draw(charts.scaling_curve(more)).colors["line"])) == 5


def test_references_are_dashed_lines_with_their_name(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.scaling_curve(curve, references={"greedy": 0.3, "gpt": 0.62}))
    assert len(drawing.colors["rule"]) == 2
    assert {"greedy 30.0%", "gpt 62.0%"} <= set(drawing.texts)


@pytest.mark.parametrize("value", [-0.1, 42, math.nan])
def test_a_reference_is_a_fraction(curve: pl.DataFrame, value: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        charts.scaling_curve(curve, references={"greedy": value})


def test_the_subtitle_says_what_is_shown_and_what_is_left_out(curve: pl.DataFrame) -> None:
    chart = charts.scaling_curve(curve, confidence_level=0.9)
    text = "\n".join(chart.title.subtitle)
    assert "97 problems · budgets up to 8 attempts" in text
    assert "90% confidence interval" in text
    assert "Left out: 3 problems with too few attempts" in text
    assert "last of step scores" in text
    assert "Not in this table" not in text


def test_what_a_reader_must_see_and_is_absent_is_named(curve: pl.DataFrame) -> None:
    chart = charts.scaling_curve(curve.filter(pl.col("selector") == "best_of_n"))
    assert "Not in this table: majority_vote, oracle" in chart.title.subtitle


def test_tooltips_hold_interval_problems_and_what_is_left_out(curve: pl.DataFrame) -> None:
    (spec,) = panels(charts.scaling_curve(curve))
    titles = {
        entry["title"]
        for layer in spec["layer"]
        for entry in layer["encoding"].get("tooltip", [])
        if isinstance(layer["encoding"].get("tooltip"), list)
    }
    assert {"Accuracy", "Interval", "Problems", "Left out"} <= titles
    values = charts.scaling_curve(curve).to_dict()["datasets"].values()
    point = next(row for rows in values for row in rows if "left_out" in row)
    assert point["left_out"] == "3 short"
    assert point["interval"] == "30.0% to 50.0%"


def test_runs_stand_side_by_side_on_one_scale(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    runs = pl.concat([
        curve.with_columns(source_file=pl.lit("a.jsonl")),
        curve.with_columns(
            pl.col("accuracy", "ci_low", "ci_high") + 0.1, source_file=pl.lit("b.jsonl")
        ),
    ])
    chart = charts.scaling_curve(runs)
    first, second = panels(chart)
    assert [panel["title"]["text"] for panel in (first, second)] == ["a.jsonl", "b.jsonl"]
    domains = [panel["layer"][0]["encoding"]["y"]["scale"]["domain"] for panel in (first, second)]
    assert domains[0] == domains[1]
    assert len(draw(chart).colors["line"]) == 8


def test_names_of_columns_and_runs_are_never_read_as_anything_but_text(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    hostile = "a.b[0]['x']</script>"
    runs = pl.concat([
        curve.with_columns(pl.lit(name).alias(hostile)) for name in ("<b>1</b>", "datum.x\n2")
    ])
    texts = draw(charts.scaling_curve(runs)).texts
    assert {"<b>1</b>", "datum.x 2"} <= set(texts)


@pytest.mark.parametrize("n_reductions", [2, 3, 4, 8])
def test_reductions_are_dashes_and_many_of_them_panels_with_the_baseline_in_each(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any], n_reductions: int
) -> None:
    names = list(tts.STEP_REDUCTIONS)[:n_reductions]
    scored = pl.col("reduction").is_not_null()
    table = pl.concat([
        curve.filter(~scored),
        *[curve.filter(scored).with_columns(reduction=pl.lit(name)) for name in names],
    ])
    chart = charts.scaling_curve(table)
    drawn = draw(chart)
    if n_reductions <= 3:
        assert len(panels(chart)) == 1
        assert len(drawn.colors["line"]) == 2 + 2 * n_reductions
        assert f"weighted vote ({names[1]}) 55.0%" in drawn.texts
    else:
        assert len(panels(chart)) == n_reductions
        assert drawn.colors["line"].count(BLUE) == n_reductions
        assert drawn.colors["line"].count(GRAY) == n_reductions


@pytest.mark.parametrize("budget", [16, None])
def test_one_budget_is_a_point_with_a_bar(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any], budget: int | None
) -> None:
    table = curve.filter(budget=8).with_columns(budget=pl.lit(budget, pl.UInt32))
    drawing = draw(charts.scaling_curve(table))
    assert len(drawing.colors["symbol"]) == 4
    assert len(drawing.colors["rule"]) == 4
    assert drawing.texts[0] == ("16" if budget else "All attempts")


def test_columns_that_may_be_absent(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    table = curve.select("selector", "budget", "accuracy")
    drawing = draw(charts.scaling_curve(table))
    assert len(drawing.colors["line"]) == 4
    assert any(text.startswith("budgets up to 8 attempts") for text in drawing.texts)


def test_agreement_is_drawn_under_its_own_name(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.scaling_curve(curve.rename({"accuracy": "agreement"}))
    texts = draw(chart).texts
    assert "Agreement" in texts
    assert "Accuracy" not in texts
    assert any("share of the attempts" in text for text in texts)


def test_points_without_accuracy_are_not_drawn(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    table = curve.with_columns(pl.when(pl.col("budget") < 8).then(pl.col("accuracy")).name.keep())
    assert len(draw(charts.scaling_curve(table)).colors["symbol"]) == 12
    nan = curve.with_columns(accuracy=pl.lit(math.nan))
    with pytest.raises(DataError, match="curve has no accuracy"):
        charts.scaling_curve(nan)


def test_a_hundred_thousand_points_are_thinned(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    budgets = pl.DataFrame({"budget": pl.Series(range(1, 25_001), dtype=pl.UInt32)})
    table = curve.filter(budget=1).drop("budget").join(budgets, how="cross")
    assert table.height == 100_000
    chart = charts.scaling_curve(table)
    drawing = draw(chart)
    assert 4 * 40 <= len(drawing.colors["symbol"]) <= 4 * 64
    assert any("of 25,000 budgets drawn" in text for text in drawing.texts)
    (spec,) = panels(chart)
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [1, 25_000]


def test_labels_never_overlap(curve: pl.DataFrame) -> None:
    crowd = pl.concat([
        curve.filter(selector="majority_vote").with_columns(selector=pl.lit(f"s{i}"))
        for i in range(8)
    ])
    spec = charts.scaling_curve(crowd, height=320).to_dict()
    (labels,) = [rows for rows in spec["datasets"].values() if "label" in rows[0]]
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    spots = sorted((row["y"] - low) / (high - low) * 320 for row in labels)
    gaps = [after - before for before, after in itertools.pairwise(spots)]
    assert len(gaps) == 7
    assert min(gaps) > 12
    # They stay around the point that they all belong to.
    assert sum(row["y"] for row in labels) / 8 == pytest.approx(0.5)


def test_lazy_and_eager_tables_give_the_same_chart(curve: pl.DataFrame) -> None:
    assert charts.scaling_curve(curve.lazy()).to_dict() == charts.scaling_curve(curve).to_dict()


def test_row_order_does_not_change_the_chart(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    first, second = draw(charts.scaling_curve(curve)), draw(charts.scaling_curve(curve.reverse()))
    assert sorted(first.texts) == sorted(second.texts)
    assert sorted(first.colors["line"]) == sorted(second.colors["line"])


def test_the_chart_fits_into_others(curve: pl.DataFrame) -> None:
    chart = charts.scaling_curve(curve)
    assert (chart | chart).to_dict()["hconcat"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.drop("accuracy"), ColumnsError, "'accuracy'.*Hint: tts.scaling_curve"),
        (lambda t: t.drop("selector", "budget"), ColumnsError, "2 missing columns for curve"),
        (lambda t: t.with_columns(accuracy=pl.lit("high")), ColumnsError, "'accuracy' is String"),
        (lambda t: t.with_columns(budget=pl.lit("many")), ColumnsError, "'budget' is String"),
        (lambda t: t.head(0), DataError, "no rows"),
        (lambda t: pl.concat([t, t]), DataError, "several rows for"),
        (
            lambda t: t.with_columns(
                budget_unit=pl.when(budget=1).then(pl.lit("tokens")).otherwise("budget_unit")
            ),
            DataError,
            "one axis holds one unit",
        ),
        (
            lambda t: t.with_columns(budget=pl.when(pl.col("budget") > 1).then("budget")),
            DataError,
            "null",
        ),
        (
            lambda t: t.join(pl.DataFrame({"seed": range(13)}), how="cross"),
            DataError,
            "13 groups of .'seed'.*filter",
        ),
        (lambda t: t.to_dicts(), ParameterTypeError, "must be a polars DataFrame"),
    ],
)
def test_tables_that_are_no_curve(
    curve: pl.DataFrame, change: Callable[[pl.DataFrame], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        charts.scaling_curve(change(curve))
