"""The charts of searches: a tree, its width, and what dropping steps cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError

ORANGE, GREEN = "#b84a00", "#1b7837"


def marks(chart: TopLevelMixin, field: str) -> list[dict[str, Any]]:
    tables = chart.to_dict()["datasets"].values()
    return next([*table] for table in tables if field in table[0])


def test_the_step_that_should_have_been_kept_is_marked_with_its_rank(
    nodes: pl.DataFrame, node_values: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.search_tree(nodes, values=node_values)
    steps = {row["text"]: row for row in marks(chart, "fate")}
    assert {name for name, row in steps.items() if row["is_lost"]} == {"b"}
    assert steps["b"]["line"] == ORANGE
    assert steps["b"]["fate"] == "dropped: pruned"
    assert "rank 2 of 3" in draw(chart).texts
    assert "orange: where the right answer was lost" in " · ".join(chart.title.subtitle)


def test_a_right_answer_that_was_kept_is_not_lost(
    nodes: pl.DataFrame, node_values: pl.DataFrame
) -> None:
    right = node_values.with_columns(value=pl.Series([0.5, 0.5, 0.0, 1.0, 0.0]))
    chart = charts.search_tree(nodes, values=right)
    steps = {row["text"]: row for row in marks(chart, "fate")}
    assert not any(row["is_lost"] for row in steps.values())
    assert {name for name, row in steps.items() if row["line"] == GREEN} == {"a", "b", "d"}


def test_graded_solutions_color_the_way_to_right_ones(nodes: pl.DataFrame) -> None:
    graded = pl.DataFrame({
        "problem_id": ["p", "p"],
        "node_id": pl.Series([4, 5], dtype=pl.UInt64),
        "is_correct": [False, True],
    })
    chart = charts.search_tree(nodes, values=graded)
    steps = {row["text"]: row for row in marks(chart, "fate")}
    assert {name for name, row in steps.items() if row["line"] == GREEN} == {"a", "e"}
    assert "green: leads to a returned right solution" in chart.title.subtitle[1]
    wrong = graded.with_columns(is_correct=False)
    assert (
        "no returned solution is right" in charts.search_tree(nodes, values=wrong).title.subtitle[1]
    )


def test_what_is_lost_is_what_pruning_regret_says() -> None:
    faults = tts.search.VerifierFaults(noise=3.0)
    problems, bank = tts.search.simulate_bank(20, n_children=(6, 4, 4), seed=0, faults=faults)
    graded = tts.score_trajectories(tts.search.to_trajectories(bank, problems=problems))
    values = tts.search.node_values(bank, solutions=graded)
    nodes = tts.search.replay(bank, tts.search.Beam(4), seed=0).nodes
    regret = tts.search.pruning_regret(nodes, values=values).filter("is_lost")
    lost = set(zip(regret["problem_id"], regret["round"], regret["rank_dropped"], strict=True))
    drawn = set()
    for problem in problems["problem_id"]:
        tree = nodes.filter(problem_id=problem)
        found = pl.DataFrame(marks(charts.search_tree(tree, values=values), "fate"))
        found = found.filter("is_lost")
        rank = pl.col("label").str.extract(r"rank (\d+)").cast(pl.Int64)
        best = found.filter(pl.col("value") == pl.col("value").max())
        if found.height:
            drawn.add((problem, found["round"][0], best.select(rank.min()).item()))
    assert drawn == lost
    assert len(lost) > 1


def test_paths_do_not_overlap_and_a_parent_stands_between_its_children() -> None:
    problems, generator, prm = tts.search.simulate(1, seed=3)
    nodes = tts.search.search(problems, generator, prm, tts.search.Rebase(16), seed=0)
    rows = pl.DataFrame(marks(charts.search_tree(nodes), "fate"))
    assert rows.select("depth", "y").is_duplicated().sum() == 0
    assert rows.height == nodes.height
    inner = rows.group_by("x0", "y0").agg(low=pl.min("y"), high=pl.max("y"))
    assert inner.select(pl.col("y0").is_between("low", "high").all()).item()


def test_a_tree_without_its_dropped_steps_or_with_two_searches_is_refused(
    nodes: pl.DataFrame,
) -> None:
    with pytest.raises(DataError, match="parent_id is no node of its problem"):
        charts.search_tree(nodes[1:])
    with pytest.raises(DataError, match="node_id appears twice"):
        charts.search_tree(pl.concat([nodes, nodes]))
    with pytest.raises(ColumnsError, match="missing column for values: 'is_correct'"):
        charts.search_tree(nodes, values=nodes)


def test_several_searches_are_panels_and_a_step_without_a_score_is_named(
    nodes: pl.DataFrame,
) -> None:
    two = pl.concat([nodes.with_columns(policy=pl.lit(name)) for name in ("beam", "dvts")])
    chart = charts.search_tree(two)
    assert len(chart.concat) == 2
    assert "white: no score" in chart.title.subtitle[1]


def test_width_has_a_line_per_measure_and_says_how_many_problems_are_left(
    mean_widths: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.search_width(mean_widths)
    assert {"steps written", "kept", "distinct first steps"} <= set(draw(chart).texts)
    assert chart.title.subtitle[0] == "20 problems · fewer where searches have ended, at least 12"


def test_regret_has_a_line_per_search_and_a_panel_per_measure(
    mean_regrets: pl.DataFrame, draw: Callable[[TopLevelMixin], Any]
) -> None:
    chart = charts.pruning_regret(mean_regrets, confidence_level=0.95)
    assert len(chart.concat) == 2
    drawing = draw(chart)
    assert drawing.texts.count("beam") == drawing.texts.count("dvts") == 2
    assert len(set(drawing.colors["line"])) == 2
    assert "shaded: 95% confidence interval" in chart.title.subtitle[0]


def test_accuracy_by_tokens_has_a_line_per_policy() -> None:
    problems, generator, prm = tts.search.simulate(20, seed=0)
    solutions = []
    for make in (tts.search.BestOfN, tts.search.Beam):
        for width in (4, 8):
            policy = make(width)
            nodes = tts.search.search(problems, generator, prm, policy, seed=0)
            solutions.append(tts.search.to_trajectories(nodes, policy=policy, problems=problems))
    scored = pl.concat(solutions).pipe(tts.score_trajectories)
    answers = tts.search.select_by_width(scored, selectors="best_of_n")
    priced = tts.curves.add_costs(
        answers, trajectories=scored, by=("policy", "width"), tree_tokens="tree_tokens"
    )
    chart = charts.scaling_curve(tts.cost_curve(priced, by="policy"))
    rows = pl.DataFrame(marks(chart, "of_budget"))
    assert set(rows["line"]) == {"best_of_n", "beam"}
    assert chart.title.text == "Accuracy by tokens per problem"
