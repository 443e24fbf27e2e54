"""The chart of a curve: what it draws, names, leaves out and refuses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
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
    # The baseline and the line that ends highest below the oracle.
    assert sorted(drawing.colors["area"]) == sorted([BLUE, ORANGE])
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
    assert "Not in this table: majority vote, oracle" in chart.title.subtitle


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
    folders = runs.with_columns(source_file=pl.format("/data/2025/{}/out.jsonl", "source_file"))
    names = [panel["title"]["text"] for panel in panels(charts.scaling_curve(folders))]
    assert names == ["a.jsonl", "b.jsonl"]
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
    attempts = "16 attempts per problem" if budget else "all attempts"
    assert f"Accuracy with {attempts}" in drawing.texts
    for text in ("oracle", "70.0% (60.0 to 80.0)", "majority vote", "50.0% (40.0 to 60.0)"):
        assert text in drawing.texts
    assert not any("log scale" in text for text in drawing.texts)


def test_references_of_one_budget_are_rows_with_a_rule(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.scaling_curve(curve.filter(budget=8), references={"greedy": 0.3}))
    assert {"greedy", "30.0%"} <= set(drawing.texts)
    assert len(drawing.colors["rule"]) == 5


def of_models(curve: pl.DataFrame, *names: str) -> pl.DataFrame:
    shifts = [0.02 * i for i in range(len(names))]
    return pl.concat([
        curve.with_columns(pl.col("accuracy", "ci_low", "ci_high") + shift, model=pl.lit(name))
        for name, shift in zip(names, shifts, strict=True)
    ])


def test_runs_of_one_selector_are_lines_of_one_panel(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    runs = of_models(curve.filter(selector="majority_vote"), "small", "large", "larger")
    chart = charts.scaling_curve(runs)
    assert len(panels(chart)) == 1
    assert chart.title.subtitle[0].startswith("majority vote · 97 problems")
    drawing = draw(chart)
    assert {"small 50.0%", "large 52.0%", "larger 54.0%"} <= set(drawing.texts)
    assert len(set(drawing.colors["line"])) == 3
    assert not set(drawing.colors["line"]) & {BLUE, ORANGE, GREEN, GRAY}
    assert len(drawing.colors["area"]) == 2
    assert not any("Not in this table" in text for text in drawing.texts)


def test_runs_of_several_selectors_are_overlaid_on_request(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    runs = of_models(curve, "small", "large")
    assert [panel["title"]["text"] for panel in panels(charts.scaling_curve(runs))] == [
        "small",
        "large",
    ]
    chart = charts.scaling_curve(runs, overlay="model")
    assert [panel["title"]["text"] for panel in panels(chart)] == [
        "majority vote",
        "weighted vote (last)",
        "best of n (last)",
        "oracle",
    ]
    assert draw(chart).texts.count("small 50.0%") == 1
    seeds = pl.concat([runs.with_columns(seed=pl.lit(seed)) for seed in (0, 1)])
    assert len(panels(charts.scaling_curve(seeds, overlay="model"))) == 8


@pytest.mark.parametrize("name", ["seed", "selector", "accuracy"])
def test_only_a_column_of_runs_is_overlaid(curve: pl.DataFrame, name: str) -> None:
    message = rf"overlay == '{name}', must be a column of curve that tells runs apart.*'model'"
    with pytest.raises(ParameterError, match=message):
        charts.scaling_curve(of_models(curve, "a", "b"), overlay=name)


def test_a_run_has_one_color_in_every_chart(
    curve: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    runs = of_models(curve, "small", "large")
    vote, oracle = (
        draw(charts.scaling_curve(runs.filter(selector=name))).colors["line"]
        for name in ("majority_vote", "oracle")
    )
    assert vote == oracle


def test_equal_lines_are_both_seen_and_named(curve: pl.DataFrame) -> None:
    twin = curve.filter(selector="majority_vote").with_columns(selector=pl.lit("borda_vote"))
    chart = charts.scaling_curve(pl.concat([curve, twin]))
    note = "equal lines are drawn wide under narrow (borda vote = majority vote)"
    assert note in chart.title.subtitle
    values = chart.to_dict()["datasets"].values()
    wide = [row for rows in values for row in rows if "stroke" in row]
    assert [(row["line"], row["x"], row["x2"]) for row in wide] == [
        ("borda vote", 1, 2),
        ("borda vote", 2, 4),
        ("borda vote", 4, 8),
    ]
    assert all(row["stroke"] > 4 for row in wide)
    # A piece alone is drawn too, and the note does not call the lines equal.
    parted = twin.with_columns(pl.when(budget=8).then(0.1).otherwise("accuracy").alias("accuracy"))
    chart = charts.scaling_curve(pl.concat([curve, parted]))
    assert "equal pieces of lines are drawn wide under narrow" in chart.title.subtitle
    assert not any("wide" in line for line in charts.scaling_curve(curve).title.subtitle)


def test_what_is_not_drawn_is_named_with_its_reason(curve: pl.DataFrame) -> None:
    unknown = {"accuracy": None, "ci_low": None, "ci_high": None, "n_problems": 0}
    short = curve.filter(budget=8).with_columns(
        **unknown, budget=pl.lit(64, pl.UInt32), n_short=pl.lit(100, pl.UInt32)
    )
    chart = charts.scaling_curve(pl.concat([curve, short], how="vertical_relaxed"))
    assert "Not drawn: budget 64 attempts (100 problems with too few attempts)" in (
        chart.title.subtitle
    )
    assert "97 problems · budgets up to 8 attempts" in chart.title.subtitle[0]
    # In two panels the budget is named once.
    both = of_models(pl.concat([curve, short], how="vertical_relaxed"), "a", "b")
    lines = charts.scaling_curve(both).title.subtitle
    assert [line for line in lines if "64" in line] == [
        "Not drawn: budget 64 attempts (100 problems with too few attempts)"
    ]
    blank = curve.with_columns(
        **unknown, n_ungraded=pl.lit(100, pl.UInt32), n_short=pl.lit(0, pl.UInt32)
    )
    runs = pl.concat(
        [curve.with_columns(model=pl.lit("a")), blank.with_columns(model=pl.lit("b"))],
        how="vertical_relaxed",
    )
    chart = charts.scaling_curve(runs)
    assert "Not drawn: b (100 problems without a grade)" in chart.title.subtitle
    line = curve.with_columns(
        pl.when(selector="oracle").then(None).otherwise("accuracy").alias("accuracy"),
        n_undefined=pl.when(selector="oracle").then(7).otherwise(0),
    )
    text = "\n".join(charts.scaling_curve(line).title.subtitle)
    assert "Not drawn: oracle (3 problems with too few attempts, 7 problems with an" in text
    with pytest.raises(DataError, match=r"100 problems with too few attempts.*smaller budgets"):
        charts.scaling_curve(short)


def test_lines_over_other_problems_are_named(curve: pl.DataFrame) -> None:
    fewer = curve.with_columns(
        n_problems=pl.when(selector="weighted_vote").then(42).otherwise("n_problems")
    )
    text = "\n".join(charts.scaling_curve(fewer).title.subtitle)
    assert (
        "Not the same problems, so not comparable: weighted vote on 42; the other lines on 97"
        in text
    )
    assert "Not the same" not in "\n".join(charts.scaling_curve(curve).title.subtitle)


def test_a_weighted_vote_of_real_logits_is_not_compared_with_the_oracle(
    shared_data: Path,
) -> None:
    run = tts.score_trajectories(tts.read_trajectories(shared_data / "qwen_math"))
    picks = tts.select_answers(
        run, selectors=["majority_vote", "weighted_vote", "oracle"], budgets=[1, 8]
    )
    curve = tts.scaling_curve(picks)
    counts = curve.filter(budget=8).select("selector", "n_problems").rows()
    assert len({n for _, n in counts}) > 1
    text = " ".join(charts.scaling_curve(curve).title.subtitle)
    assert "Not the same problems, so not comparable: weighted vote on 42" in text


def test_long_lines_of_facts_break_at_the_width_of_the_chart(curve: pl.DataFrame) -> None:
    narrow = charts.scaling_curve(curve, width=240).title.subtitle
    wide = charts.scaling_curve(curve, width=900).title.subtitle
    assert len(narrow) > len(wide)
    assert max(map(len, narrow)) <= 440 / 5.6
    assert " ".join(narrow).replace(" · ", " ") == " ".join(wide).replace(" · ", " ")


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


@pytest.mark.parametrize("values", [("2024-01-01", "2024-02-01"), ("08:30:00", "09:30:00")])
def test_runs_that_are_dates_or_times_are_named_by_them(
    curve: pl.DataFrame, values: tuple[str, str]
) -> None:
    dtype = pl.Time if ":" in values[0] else pl.Date
    runs = of_models(curve, *values).with_columns(pl.col("model").str.strptime(dtype))
    for chart in (charts.scaling_curve(runs), charts.scaling_curve(runs, overlay="model")):
        written = chart.to_json()
        assert all(value in written for value in values)
