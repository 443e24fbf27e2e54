"""The chart of accuracy by complexity and K: what it draws, names and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl
import pytest

from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError

Draw = Callable[[alt.TopLevelMixin], Any]


def table(k_values: list[int], n_levels: int, **more: object) -> pl.DataFrame:
    rows = [
        (k, level, max(0.0, 1.0 - level / (n_levels + i)))
        for i, k in enumerate(k_values)
        for level in range(1, n_levels + 1)
    ]
    frame = pl.DataFrame(rows, ["k", "complexity", "accuracy"], orient="row")
    columns = {"task": "tower_of_hanoi", "selector": "majority_vote"} | more
    return frame.with_columns(
        ci_low=(pl.col("accuracy") - 0.1).clip(0, 1),
        ci_high=(pl.col("accuracy") + 0.1).clip(0, 1),
        oracle_accuracy=pl.when(pl.col("k") > 1).then(1.0).otherwise("accuracy"),
        n_instances=pl.lit(10, pl.UInt32),
        **{name: pl.lit(value) for name, value in columns.items()},
    )


def layers(chart: alt.TopLevelMixin) -> dict[str, dict[str, Any]]:
    found = {}
    written = chart.to_dict()
    shared = written.get("datasets", {})
    for layer in written["layer"]:
        data = layer.get("data", written.get("data"))
        layer["rows"] = data.get("values", shared.get(data.get("name")))
        field = layer["encoding"]["y"]["field"]
        mark = layer["mark"] if isinstance(layer["mark"], str) else layer["mark"]["type"]
        found[f"{mark} {field}"] = layer
    return found


def test_a_line_for_each_k_over_the_levels(draw: Draw) -> None:
    chart = charts.complexity_curve(table([1, 5, 10], 6), unit="discs", confidence_level=0.9)
    drawn = layers(chart)
    assert set(drawn) == {
        "rule value",
        "area ci_low",
        "line oracle_accuracy",
        "line accuracy",
        "point accuracy",
    }
    points = drawn["point accuracy"]
    assert points["encoding"]["x"]["field"] == "x"
    assert points["encoding"]["y"]["scale"]["domain"] == [0, 1]
    assert points["encoding"]["color"]["scale"]["domain"] == ["K = 1", "K = 5", "K = 10"]
    assert len(set(points["encoding"]["color"]["scale"]["range"])) == 3
    assert len(set(points["encoding"]["shape"]["scale"]["range"])) == 3
    picture = draw(chart)
    for text in ("K = 1", "K = 5", "K = 10", "Complexity (discs)", "Accuracy", "1", "6"):
        assert picture.texts.count(text) == 1, text
    assert len(picture.colors["line"]) == 5
    assert len(picture.colors["area"]) == 2
    assert chart.title.subtitle == [
        "tower of hanoi · majority vote · 10 instances per level",
        (
            "shaded: 90% confidence interval at K = 1 and K = 10 · dashed: threshold 50% · dotted: "
            "oracle (any of the K right)"
        ),
    ]


def test_the_oracle_is_drawn_where_it_is_another_line(draw: Draw) -> None:
    picture = draw(charts.complexity_curve(table([1, 5], 4)))
    # Two lines of accuracy, and the oracle of K = 5 alone.
    assert len(picture.colors["line"]) == 3
    alike = table([1, 5], 4).with_columns(oracle_accuracy="accuracy")
    chart = charts.complexity_curve(alike)
    assert len(draw(chart).colors["line"]) == 2
    assert "oracle" not in " ".join(chart.title.subtitle)


def test_a_threshold_is_where_it_is_asked_for(draw: Draw) -> None:
    chart = charts.complexity_curve(table([1, 5], 4), threshold=0.8)
    rule = layers(chart)["rule value"]
    assert [*rule["rows"]] == [{"name": "threshold", "value": 0.8}]
    assert "dashed: threshold 80%" in chart.title.subtitle[1]
    chart = charts.complexity_curve(table([1, 5], 4), threshold=None)
    assert "rule value" not in layers(chart)
    assert "dashed" not in chart.title.subtitle[1]
    draw(chart)


def test_tasks_selectors_and_other_columns_are_panels_with_one_legend(draw: Draw) -> None:
    tables = pl.concat([
        table([1, 5], 4),
        table([1, 5], 8, task="logical_deduction"),
        table([1, 5], 4, selector="oracle"),
    ])
    chart = charts.complexity_curve(tables)
    assert isinstance(chart, alt.ConcatChart)
    titles = [panel["title"]["text"] for panel in chart.to_dict()["concat"]]
    assert titles == [
        "task: logical deduction · selector: majority vote",
        "task: tower of hanoi · selector: majority vote",
        "task: tower of hanoi · selector: oracle",
    ]
    texts = draw(chart).texts
    assert texts.count("K = 1") == texts.count("Trajectories") == 1
    models = pl.concat([table([1], 3, model=name) for name in ("x", "y")])
    panels = charts.complexity_curve(models).to_dict()["concat"]
    assert [panel["title"]["text"] for panel in panels] == ["x", "y"]


def test_many_levels_and_numbers_of_trajectories_stay_legible(draw: Draw) -> None:
    chart = charts.complexity_curve(table([1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 64], 60))
    picture = draw(chart)
    ticks = [text for text in picture.texts if text.isdecimal()]
    assert 8 <= len(ticks) <= 16
    assert len(set(picture.colors["line"])) == 12
    assert sum(text.startswith("K = ") for text in picture.texts) == 12


def test_a_single_level_stands_as_bars_side_by_side(draw: Draw) -> None:
    chart = charts.complexity_curve(table([1, 5, 10], 1))
    places = {row["x"] for row in layers(chart)["rule ci_low"]["rows"]}
    assert len(places) == 3
    assert "bars: confidence interval" in chart.title.subtitle[1]
    assert "dotted" not in chart.title.subtitle[1]
    draw(chart)


def test_unknown_intervals_and_accuracies_are_left_out(draw: Draw) -> None:
    one = table([1], 3).with_columns(pl.lit(None, pl.Float64).alias("ci_low"), ci_high=None)
    chart = charts.complexity_curve(one)
    assert "shaded" not in " ".join(chart.title.subtitle)
    draw(chart)
    gap = table([1, 5], 3).with_columns(
        accuracy=pl.when(pl.col("complexity") != 2).then("accuracy")
    )
    values = layers(charts.complexity_curve(gap))["point accuracy"]["rows"]
    assert {row["complexity"] for row in values} == {1, 3}


def test_lazy_tables_and_any_order_of_rows_are_drawn_alike() -> None:
    frame = table([1, 5, 10], 6)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1).lazy()
    assert charts.complexity_curve(frame).to_dict() == charts.complexity_curve(shuffled).to_dict()


def test_what_is_no_such_table_is_refused() -> None:
    frame = table([1, 5], 3)
    with pytest.raises(ColumnsError, match=r"missing columns? for curve: 'k'.*to_frame\(\)"):
        charts.complexity_curve(frame.drop("k"))
    with pytest.raises(ColumnsError, match="'accuracy' is String, must be numbers"):
        charts.complexity_curve(frame.with_columns(pl.col("accuracy").cast(pl.String)))
    with pytest.raises(DataError, match="curve has no rows"):
        charts.complexity_curve(frame.clear())
    with pytest.raises(DataError, match="curve has no accuracy: null in all 6 rows"):
        charts.complexity_curve(frame.with_columns(accuracy=pl.lit(None, pl.Float64)))
    with pytest.raises(DataError, match=r"curve has several rows for \{'task': 'tower_of_hanoi'"):
        charts.complexity_curve(pl.concat([frame, frame]))
    with pytest.raises(DataError, match="curve has 13 values of k, this chart holds at most 12"):
        charts.complexity_curve(table([*range(1, 14)], 2))
    with pytest.raises(ParameterError, match="threshold == 50"):
        charts.complexity_curve(frame, threshold=50)
    with pytest.raises(ParameterError, match="confidence_level"):
        charts.complexity_curve(frame, confidence_level=95)
