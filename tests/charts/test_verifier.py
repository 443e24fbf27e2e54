"""The charts of a verifier: calibration, spread of scores, reductions, over-optimization."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl
import pytest

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError

GREEN, PURPLE, TEAL, PINK = "#1b7837", "#7b3294", "#0a788c", "#c81e64"

Draw = Callable[[alt.TopLevelMixin], Any]


def n_rows(chart: alt.TopLevelMixin) -> int:
    return sum(len(rows) for rows in chart.to_dict()["datasets"].values())


def axes(chart: alt.TopLevelMixin) -> set[str]:
    text = json.dumps(chart.to_dict())
    return {part.split('"')[0] for part in text.split('"title": "')[1:]}


def test_reliability_has_a_point_and_an_interval_per_bin(
    reliability_curve: pl.DataFrame, draw: Draw
) -> None:
    chart = charts.reliability(reliability_curve, confidence_level=0.95)
    drawing = draw(chart)
    assert drawing.colors["symbol"] == [TEAL] * 5
    assert drawing.colors["rule"] == [TEAL] * 5
    assert "calibrated" in drawing.texts
    assert {"Mean score of the attempts in the bin", "Share of right attempts"} <= axes(chart)
    assert chart.title.subtitle[0] == (
        "1,200 attempts · size of a point: attempts in its bin · "
        "bars: 95% confidence interval over problems"
    )


def test_reductions_and_binnings_are_panels(reliability_curve: pl.DataFrame, draw: Draw) -> None:
    table = pl.concat([
        reliability_curve,
        reliability_curve.with_columns(binning=pl.lit("equal_mass")),
    ])
    assert {"equal_mass", "equal_width"} <= set(draw(charts.reliability(table)).texts)


def test_bins_without_an_interval_are_points_alone(
    reliability_curve: pl.DataFrame, draw: Draw
) -> None:
    bare = reliability_curve.with_columns(
        ci_low=pl.lit(None, pl.Float64), ci_high=pl.lit(None, pl.Float64)
    )
    drawing = draw(charts.reliability(bare))
    assert "rule" not in drawing.colors or not drawing.colors["rule"]
    assert len(drawing.colors["symbol"]) == 5


def test_many_bins_are_joined_and_lose_no_attempt() -> None:
    run = tts.simulate_trajectories(100, 100, seed=1, keys=True)
    curve = tts.verifier.reliability_curve(run, n_bins=10_000, binning="equal_mass")
    assert curve.height > 9_000
    chart = charts.reliability(curve)
    assert n_rows(chart) < 60
    points = [rows for rows in chart.to_dict()["datasets"].values() if "n_attempts" in rows[0]]
    assert sum(row["n_attempts"] for row in points[0]) == run.height
    right = sum(row["n_attempts"] * row["accuracy"] for row in points[0])
    assert right == pytest.approx(run["is_correct"].sum())
    assert "merged into 50" in chart.title.subtitle[-1]


def test_a_distribution_is_two_outlined_heaps(distribution: pl.DataFrame, draw: Draw) -> None:
    chart = charts.score_distribution(distribution)
    drawing = draw(chart)
    assert sorted(set(drawing.colors["rect"])) == [GREEN, PURPLE]
    assert sorted(drawing.colors["line"]) == [GREEN, PURPLE]
    assert {"right: 200 attempts", "wrong: 100 attempts"} <= set(drawing.texts)
    assert {"Score", "Share of attempts, per outcome"} <= axes(chart)


def test_a_hundred_thousand_bins_are_joined() -> None:
    run = tts.simulate_trajectories(20, 20, seed=1, keys=True)
    table = tts.verifier.score_distribution(run, n_bins=100_000)
    assert table.height == 200_000
    chart = charts.score_distribution(table)
    assert n_rows(chart) < 400
    bins = [rows for rows in chart.to_dict()["datasets"].values() if "bin_high" in rows[0]]
    assert sum(row["n_attempts"] for row in bins[0]) == run.height
    assert sum(row["share"] for row in bins[0]) == pytest.approx(2.0)


def test_logits_get_the_axis_they_need(distribution: pl.DataFrame) -> None:
    logits = distribution.with_columns(pl.col("bin_low", "bin_high") * 16 - 8)
    text = json.dumps(charts.score_distribution(logits).to_dict())
    assert '"domain": [-8.0, 8.0]' in text


def test_one_outcome_alone_is_drawn(draw: Draw) -> None:
    run = tts.simulate_trajectories(5, 4, seed=1, keys=True).filter("is_correct")
    drawing = draw(charts.score_distribution(tts.verifier.score_distribution(run)))
    assert f"right: {run.height} attempts" in drawing.texts
    assert "wrong: 0 attempts" in drawing.texts


def test_reductions_are_compared_best_first(metrics: pl.DataFrame, draw: Draw) -> None:
    chart = charts.reduction_comparison(metrics.reverse(), confidence_level=0.9)
    drawing = draw(chart)
    assert drawing.colors["symbol"] == [TEAL] * 3 + [PINK] * 3
    names = [text for text in drawing.texts if text in set(metrics["reduction"])]
    assert names == ["last", "min", "prod"]
    assert {"0.710", "0.620", "0.550"} <= set(drawing.texts)
    assert "AUROC (0.5 = coin flip)" in axes(chart)
    assert "mean of 80 problems" in chart.title.subtitle[0]
    assert "90% confidence" in chart.title.subtitle[1]
    # The numbers stand beside the panel, where the line of a coin flip cannot run through them.
    (numbers,) = [layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "text"]
    assert numbers["encoding"]["x"] == {"value": "width"}


def test_a_run_without_a_comparison_is_named(metrics: pl.DataFrame) -> None:
    unknown = metrics.with_columns(
        *(pl.lit(None, pl.Float64).alias(name) for name in ("auroc", "auroc_within")),
        model=pl.lit("b"),
    )
    both = pl.concat([metrics.with_columns(model=pl.lit("a")), unknown])
    note = "Not drawn: b (not both right and wrong attempts)"
    assert note in charts.reduction_comparison(both).title.subtitle


def test_areas_below_one_half_stay_on_the_axis(metrics: pl.DataFrame) -> None:
    worse = metrics.with_columns(pl.col("auroc_within", "ci_low", "ci_high") - 0.4)
    text = json.dumps(charts.reduction_comparison(worse).to_dict())
    assert '"domain": [0.1, 1.0]' in text


def test_a_fall_is_marked_and_named(turns: pl.DataFrame, draw: Draw) -> None:
    chart = charts.over_optimization(turns, confidence_level=0.95)
    drawing = draw(chart)
    assert "last −32.0 points since 4" in drawing.texts
    assert "min" in drawing.texts
    # 7 points, 1 triangle, 2 rings.
    assert len(drawing.colors["symbol"]) == 10
    assert {"Attempts per problem (log scale)", "Accuracy"} <= axes(chart)
    assert chart.title.subtitle == [
        "best of n · 97 problems · shaded: 95% confidence interval over problems",
        "ring: best budget · triangle: below the best by more than chance",
        "Left out: 3 problems with too few attempts",
    ]
    assert chart.title.text == "1 of 2 lines declines after 4 attempts or more"


def test_without_a_fall_there_is_no_triangle_and_the_title_says_so(
    turns: pl.DataFrame, draw: Draw
) -> None:
    rising = turns.filter(reduction="min")
    chart = charts.over_optimization(rising)
    assert chart.title.text == "No decline up to 8 attempts"
    assert "triangle" not in json.dumps(chart.to_dict())
    # A fall within chance is told as that, at the end of its line too.
    chance = turns.with_columns(is_turned_down=pl.lit(value=False))
    chart = charts.over_optimization(chance)
    assert chart.title.text == "No decline beyond chance up to 8 attempts"
    assert "last −32.0 points since 4, within chance" in draw(chart).texts
    one = charts.over_optimization(turns.filter(reduction="last"))
    assert one.title.text == "Accuracy declines after 4 attempts or more"


def test_a_budget_above_what_there_is_is_named(turns: pl.DataFrame) -> None:
    short = turns.filter(budget=8).with_columns(
        pl.lit(None, pl.Float64).alias("accuracy"),
        budget=pl.lit(64, pl.UInt32),
        n_short=pl.lit(100, pl.UInt32),
    )
    chart = charts.over_optimization(pl.concat([turns, short]))
    assert "Not drawn: budget 64 attempts (100 problems with too few attempts)" in (
        chart.title.subtitle
    )


def test_only_the_highest_and_the_lowest_of_many_lines_have_bands(
    turns: pl.DataFrame, draw: Draw
) -> None:
    more = [
        turns.filter(reduction="min").with_columns(
            pl.col("accuracy", "ci_low", "ci_high") + shift, reduction=pl.lit(f"r{shift}")
        )
        for shift in (0.01, 0.02)
    ]
    chart = charts.over_optimization(pl.concat([turns, *more]))
    assert len(draw(chart).colors["area"]) == 2
    assert "of last and r0.02 only" in " ".join(chart.title.subtitle)


def test_scores_that_are_no_probabilities_get_the_chart_that_draws_them() -> None:
    run = tts.simulate_trajectories(10, 4, seed=0, keys=True).with_columns(pl.col("score") * 9 - 4)
    with pytest.raises(DataError, match=r"outside 0 to 1.*charts\.score_distribution draws any"):
        charts.reliability(tts.verifier.reliability_curve(run))


def test_levels_are_panels_with_peaks_of_their_own(turns: pl.DataFrame, draw: Draw) -> None:
    table = pl.concat([turns.with_columns(level=pl.lit(f"level {i}")) for i in (1, 2)])
    drawing = draw(charts.over_optimization(table))
    assert {"level 1", "level 2"} <= set(drawing.texts)
    assert len(drawing.colors["symbol"]) == 20


def test_many_budgets_are_thinned_and_keep_the_peak(turns: pl.DataFrame) -> None:
    n = 100_000
    peak = 77_777
    table = (
        pl
        .select(budget=pl.int_range(1, n + 1, dtype=pl.UInt32))
        .join(turns.head(1).drop("budget", "peak_budget"), how="cross")
        .with_columns(peak_budget=pl.min_horizontal("budget", pl.lit(peak, pl.UInt32)))
    )
    chart = charts.over_optimization(table)
    assert n_rows(chart) < 90
    text = json.dumps(chart.to_dict())
    assert f'"x": {peak}.0' in text
    assert f'"x": {n}.0' in text


@pytest.mark.parametrize(
    ("name", "fixture", "change", "error", "message"),
    [
        ("reliability", "reliability_curve", pl.DataFrame.clear, DataError, "no rows"),
        (
            "reliability",
            "reliability_curve",
            lambda t: t.drop("accuracy"),
            ColumnsError,
            r"'accuracy'.*Hint: tts.verifier.reliability_curve",
        ),
        (
            "reliability",
            "reliability_curve",
            lambda t: t.with_columns(accuracy=pl.lit(None, pl.Float64)),
            DataError,
            "curve has no accuracy: null in all",
        ),
        (
            "score_distribution",
            "distribution",
            lambda t: t.with_columns(n_attempts=pl.lit(0)),
            DataError,
            "no attempt",
        ),
        (
            "score_distribution",
            "distribution",
            lambda t: t.with_columns(is_correct=pl.lit("yes")),
            ColumnsError,
            "must be Boolean",
        ),
        (
            "reduction_comparison",
            "metrics",
            lambda t: t.with_columns(
                pl.lit(None, pl.Float64).alias(n) for n in ("auroc", "auroc_within")
            ),
            DataError,
            "no AUROC in any row",
        ),
        (
            "over_optimization",
            "turns",
            lambda t: t.drop("drop"),
            ColumnsError,
            r"'drop'.*Hint: tts.verifier.over_optimization",
        ),
        (
            "over_optimization",
            "turns",
            lambda t: t.with_columns(accuracy=pl.lit(None, pl.Float64)),
            DataError,
            "no accuracy at any budget",
        ),
    ],
)
def test_tables_of_another_kind_are_refused(
    name: str,
    fixture: str,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    error: type[Exception],
    message: str,
    request: pytest.FixtureRequest,
) -> None:
    with pytest.raises(error, match=message):
        getattr(charts, name)(change(request.getfixturevalue(fixture)))
