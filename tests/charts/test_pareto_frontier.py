"""The chart of a Pareto frontier, and budgets in units on an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.charts.budgets import round_numbers, short_number
from ttsframe.errors import ColumnsError, DataError


def tables(chart: TopLevelMixin) -> list[list[dict[str, Any]]]:
    return [*chart.to_dict()["datasets"].values()]


def test_the_frontier_is_joined_and_the_rest_is_shown(
    frontier: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.pareto_frontier(frontier, confidence_level=0.95)
    spec = chart.to_dict()
    names = [layer["data"]["name"] for layer in spec["layer"]]
    steps, beaten, intervals, best, _ = (spec["datasets"][name] for name in names)
    assert [row["budget"] for row in steps] == [1e12, 2e12, 4e12, 8e12, 16e12]
    assert len(best) == len(intervals) == 5
    assert {row["line"] for row in beaten} == {"best of n (last)"}
    assert spec["layer"][0]["mark"]["interpolate"] == "step-after"
    assert chart.title.subtitle == [
        "97 problems · budgets up to 16T FLOPs · 5 of 8 points on the frontier",
        "filled and joined: no other point has higher accuracy at the same or lower cost · bars: 95% confidence interval",
        "N: attempts per problem",
        "Left out: 3 problems with too few attempts",
    ]
    texts = draw(chart).texts
    assert {"majority vote", "best of n", "FLOPs per problem (log scale)", "2T", "10T"} <= set(
        texts
    )


def test_frontiers_are_panels_and_reductions_shapes(
    frontier: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    runs = pl.concat([frontier.with_columns(level=pl.lit(level)) for level in (1, 2)])
    chart = charts.pareto_frontier(runs)
    assert [panel["title"]["text"] for panel in chart.to_dict()["concat"]] == [
        "level: 1",
        "level: 2",
    ]
    more = frontier.filter(selector="best_of_n").with_columns(reduction=pl.lit("min"))
    texts = draw(charts.pareto_frontier(pl.concat([frontier, more]))).texts
    assert {"Step scores", "last", "min", "no score"} <= set(texts)


def test_many_points_off_the_frontier_are_thinned() -> None:
    n = 100_000
    many = pl.DataFrame({
        "selector": "oracle",
        "budget": [float(i) for i in range(1, n + 1)],
        "accuracy": [0.5] * n,
        "is_efficient": [True] + [False] * (n - 1),
    })
    assert sum(map(len, tables(charts.pareto_frontier(many)))) < 2100


def test_the_table_of_the_package_is_drawn(draw: Callable[[TopLevelMixin], Any]) -> None:
    run = tts.simulate_trajectories(40, 16, seed=0, keys=True)
    problems = tts.select_answers(run, budgets=[1, 4, 16])
    curve = tts.cost_curve(tts.curves.add_costs(problems, trajectories=run))
    texts = draw(charts.pareto_frontier(tts.pareto_frontier(curve).lazy())).texts
    assert "Tokens per problem (log scale)" in texts
    drawn = draw(charts.scaling_curve(curve)).texts
    assert "Tokens per problem (log scale)" in drawn
    used = tts.curves.select_allocated(
        run, allocation=tts.curves.stopping_points(run, budgets=[4, 16])
    )
    adaptive = tts.cost_curve(tts.curves.add_costs(used, budget_unit="attempts"))
    chart = charts.scaling_curve(adaptive)
    assert "Attempts per problem (log scale)" in draw(chart).texts
    most = adaptive["budget"].max()
    assert f"budgets up to {most:.3g} attempts" in chart.title.subtitle[0]


def test_what_has_no_frontier_is_refused(frontier: pl.DataFrame) -> None:
    with pytest.raises(
        ColumnsError, match=r"must be a Pareto frontier.*tts.pareto_frontier\(curve\)"
    ):
        charts.pareto_frontier(frontier.drop("is_efficient"))
    with pytest.raises(DataError, match="curve has no accuracy at a budget"):
        charts.pareto_frontier(frontier.with_columns(accuracy=pl.lit(None, pl.Float64)))
    other = frontier.with_columns(budget_unit=pl.lit("tokens"), run=pl.lit("b"))
    both = pl.concat([frontier.with_columns(run=pl.lit("a")), other])
    with pytest.raises(DataError, match=r"budgets in \['flops', 'tokens'\]"):
        charts.pareto_frontier(both)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (9_999, "9,999"),
        (10_000, "10k"),
        (13.805, "13.8"),
        (999.6, "1k"),
        (1_234_567, "1.23M"),
        (999_999, "1M"),
        (6.84e14, "684T"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (150, 30_000, [200, 500, 1000, 2000, 5000, 10_000, 20_000]),
        (1, 1e6, [10.0**i for i in range(7)]),
        (1.1, 1.9, [1.1, 1.9]),
        (3, 1e4, [3, 10, 30, 100, 300, 1000, 3000, 10_000]),
        (3, 1e5, [10, 100, 1000, 10_000, 100_000]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert round_numbers(low, high) == pytest.approx(expected)


def test_points_of_the_frontier_have_their_number_of_attempts(
    frontier: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    drawing = draw(charts.pareto_frontier(frontier))
    assert {"N=1", "N=2", "N=4", "N=8"} <= set(drawing.texts)
    # Without it, and over attempts, which the axis shows, there is nothing to add.
    for table in (
        frontier.drop("nominal_budget"),
        frontier.with_columns(budget_unit=pl.lit("attempts")),
    ):
        assert not any(text.startswith("N=") for text in draw(charts.pareto_frontier(table)).texts)


def test_equal_points_are_all_seen(frontier: pl.DataFrame) -> None:
    twin = frontier.filter(selector="majority_vote").with_columns(
        selector=pl.lit("twin"), reduction=pl.lit(None, pl.String)
    )
    spec = charts.pareto_frontier(pl.concat([frontier, twin])).to_dict()
    best = spec["datasets"][spec["layer"][3]["data"]["name"]]
    at_first = [row["area"] for row in best if row["budget"] == 1e12]
    assert at_first == sorted(at_first, reverse=True)
    assert len(set(at_first)) == len(at_first) == 2


def test_a_frontier_over_all_panels_is_called_that(frontier: pl.DataFrame) -> None:
    worse = frontier.with_columns(is_efficient=pl.lit(value=False))
    runs = pl.concat([
        table.with_columns(model=pl.lit(name)) for name, table in (("a", frontier), ("b", worse))
    ])
    assert "one frontier over all panels" in " ".join(charts.pareto_frontier(runs).title.subtitle)
