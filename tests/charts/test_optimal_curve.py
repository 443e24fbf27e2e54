"""The chart of a compute-optimal curve: what it draws, names and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from altair import TopLevelMixin

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError

BUDGETS = [1, 4, 16]


@pytest.fixture(scope="module")
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    run = tts.simulate_trajectories(120, 32, seed=0, keys=True)
    levels = tts.difficulty_levels(run, n_levels=3)
    problems = tts.select_answers(
        tts.curves.halve_attempts(run),
        selectors=["majority_vote", "best_of_n", "oracle"],
        reductions=["last", "min"],
        budgets=BUDGETS,
        by="fold",
    )
    plain = pl.col("reduction").is_null() | (pl.col("reduction") == "last")
    parts = [
        tts.optimal_curve(problems, levels=levels),
        tts.scaling_curve(problems.filter(plain), replicates="fold"),
    ]
    return pl.concat(parts, how="diagonal"), tts.curves.optimal_choices(problems, levels=levels)


def cells(chart: TopLevelMixin) -> dict[tuple[int, int], dict[str, Any]]:
    return {
        (row["level"], row["budget"]): row
        for table in chart.to_dict()["datasets"].values()
        for row in table
        if "letter" in row
    }


def test_a_letter_says_what_was_chosen_and_the_legend_what_it_means(
    tables: tuple[pl.DataFrame, pl.DataFrame], draw: Callable[[TopLevelMixin], Any]
) -> None:
    curve, choices = tables
    chart = charts.optimal_curve(curve, choices)
    found = cells(chart)
    assert sorted(found) == [(level, budget) for level in (1, 2, 3) for budget in BUDGETS]
    meaning = {row["letter"]: row["key"] for row in found.values()}
    texts = draw(chart).texts
    for letter, key in meaning.items():
        assert key.startswith(f"{letter}  ")
        assert key in texts or key.replace("  ", " ") in texts
    for row in choices.filter(pl.col("problem_fold").is_null()).iter_rows(named=True):
        reduction = f" ({row['reduction']})" if row["reduction"] else ""
        shown = found[row["level"], row["budget"]]["strategy"]
        assert shown == row["selector"].replace("_", " ") + reduction


def test_a_square_is_filled_where_every_fold_agrees(
    tables: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    curve, choices = tables
    found = cells(charts.optimal_curve(curve, choices))
    kinds = set()
    for (level, budget), row in found.items():
        cell = choices.filter(level=level, budget=budget)
        n_different = cell.select(pl.struct("selector", "reduction").n_unique()).item()
        assert row["is_agreed"] == (n_different == 1)
        assert row["chosen_by_fold"].count("fold ") == 2
        kinds.add(row["is_agreed"])
    assert kinds == {True, False}


def test_the_curve_stands_above_with_its_references(
    tables: tuple[pl.DataFrame, pl.DataFrame], draw: Callable[[TopLevelMixin], Any]
) -> None:
    curve, choices = tables
    chart = charts.optimal_curve(
        curve, choices, references={"8B, one attempt": 0.7}, title="Mine", confidence_level=0.9
    )
    above, _ = chart.to_dict()["vconcat"]
    assert above["title"]["text"] == "Mine"
    assert "90% confidence interval" in " ".join(above["title"]["subtitle"])
    texts = draw(chart).texts
    assert "8B, one attempt 70.0%" in texts
    assert any(text.startswith("compute optimal in sample ") for text in texts)


def test_runs_get_a_strip_each(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    curve, choices = (
        pl.concat([table.with_columns(model=pl.lit(name)) for name in ("a", "b")])
        for table in tables
    )
    spec = charts.optimal_curve(curve, choices.lazy()).to_dict()
    below = spec["vconcat"][1]["concat"]
    assert [strip["title"]["text"] for strip in below] == ["a", "b"]


def test_one_budget_and_many(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    curve, choices = tables
    one = charts.optimal_curve(curve.filter(budget=4), choices.filter(budget=4))
    assert set(cells(one)) == {(1, 4), (2, 4), (3, 4)}
    many_choices = pl.concat([
        choices.filter(budget=4).with_columns(budget=pl.lit(b, pl.UInt32)) for b in range(1, 60)
    ])
    budgets = {budget for _, budget in cells(charts.optimal_curve(curve, many_choices))}
    assert {1, 59} <= budgets
    assert len(budgets) <= 16


def test_what_is_no_table_of_choices_is_refused(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    curve, choices = tables
    with pytest.raises(
        ColumnsError, match=r"must be a table of chosen strategies.*optimal_choices"
    ):
        charts.optimal_curve(curve, choices.drop("problem_fold"))
    with pytest.raises(ColumnsError, match=r"1 missing column for choices: 'model'"):
        charts.optimal_curve(curve, choices, strategy=("selector", "model"))
    with pytest.raises(DataError, match="no row with a null problem_fold"):
        charts.optimal_curve(curve, choices.drop_nulls("problem_fold"))
    with pytest.raises(DataError, match="choices has no rows"):
        charts.optimal_curve(curve, choices.clear())
    on_all = choices.filter(pl.col("problem_fold").is_null())
    many = pl.concat([
        on_all.with_columns(selector=pl.lit(f"s{i}"), level=pl.lit(i, pl.UInt32)) for i in range(27)
    ])
    with pytest.raises(DataError, match="27 strategies, this chart holds at most 26"):
        charts.optimal_curve(curve, many, strategy="selector")
    with pytest.raises(ParameterError, match=r"references\['x'\] == 42"):
        charts.optimal_curve(curve, choices, references={"x": 42})
