"""Curves average the same problems at every budget, and count by status what they leave out."""

from __future__ import annotations

from typing import Any

import curve_oracle
import polars as pl
import pytest
from contract_registry import ENGINES, problems, run
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import DataError


def check(found: pl.DataFrame, expected: dict[Any, dict[str, Any]]) -> None:
    rows = {(r["selector"], r["reduction"], r["budget"]): r for r in found.iter_rows(named=True)}
    assert rows.keys() == expected.keys()
    for cell, row in rows.items():
        for name, value in expected[cell].items():
            wanted = pytest.approx(value, rel=1e-9, abs=1e-12) if value is not None else None
            assert row[name] == wanted, (cell, name)


def with_statuses() -> pl.DataFrame:
    """Return a table of `problems` in which every status occurs, at some budgets only."""
    statuses = {
        "all": ["ok", "ok", "ok"],
        "right": ["ok", "ok", "ok"],
        "late": ["ok", "ok", "short"],
        "silent": ["unscored", "ok", "ok"],
        "logits": ["ok", "undefined", "undefined"],
        "open": ["ungraded", "ungraded", "ok"],
        "worst": ["ungraded", "unscored", "short"],
    }
    return pl.DataFrame([
        {
            "problem_id": name,
            "budget": budget,
            "selector": "weighted_vote",
            "reduction": "score",
            "status": status,
            "value": float(name != "all" or budget > 2) if status == "ok" else None,
        }
        for name, found in statuses.items()
        for budget, status in zip([1, 2, 4], found, strict=True)
    ]).with_columns(pl.col("budget").cast(pl.UInt32))


@pytest.mark.parametrize("choice", ["common", "available"])
def test_a_curve_agrees_with_the_plain_oracle(choice: Any) -> None:
    for table in (with_statuses(), problems()):
        expected = curve_oracle.curve(table.to_dicts(), common=choice == "common")
        for engine in ENGINES:
            found = tts.scaling_curve(table.lazy(), include=choice).collect(engine=engine)
            check(found, expected)


def test_common_problems_are_those_with_status_ok_throughout() -> None:
    curve = tts.scaling_curve(with_statuses())
    assert curve["n_problems"].to_list() == [2, 2, 2]
    counts = ["n_short", "n_unscored", "n_undefined", "n_ungraded"]
    assert curve.select(counts).rows() == [(2, 1, 1, 1)] * 3


def test_available_problems_are_those_with_status_ok_there() -> None:
    curve = tts.scaling_curve(with_statuses(), include="available")
    counts = ["n_problems", "n_short", "n_unscored", "n_undefined", "n_ungraded"]
    assert curve.select(counts).rows() == [(4, 0, 1, 0, 2), (4, 0, 1, 1, 1), (4, 2, 0, 1, 0)]


@pytest.mark.parametrize("choice", ["common", "available"])
def test_every_problem_is_counted_once_in_every_row(choice: Any) -> None:
    columns = ["n_problems", "n_short", "n_unscored", "n_undefined", "n_ungraded"]
    totals = tts.scaling_curve(problems(), include=choice).select(pl.sum_horizontal(columns))
    assert set(totals.to_series()) == {problems()["problem_id"].n_unique()}


def test_a_problem_that_lacks_a_budget_is_short_among_common_ones() -> None:
    table = with_statuses().filter((pl.col("problem_id") != "right") | (pl.col("budget") != 4))
    curve = tts.scaling_curve(table)
    assert curve.select("n_problems", "n_short").rows() == [(1, 3)] * 3


def test_replicates_are_averaged_per_problem_before_anything_else() -> None:
    # Two seeds, of which one has answered only one problem: its weight must not grow by that.
    table = pl.DataFrame({
        "seed": [0, 1, 2, 0, 1, 2],
        "problem_id": ["a", "a", "a", "b", "b", "b"],
        "budget": pl.Series([1] * 6, dtype=pl.UInt32),
        "selector": ["oracle"] * 6,
        "reduction": pl.Series([None] * 6, dtype=pl.String),
        "value": [1.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        "status": ["ok"] * 6,
    })
    curve = tts.scaling_curve(table, replicates="seed")
    check(curve, curve_oracle.curve(table.to_dicts()))
    row = curve.row(0, named=True)
    assert (row["n_problems"], row["accuracy"]) == (2, pytest.approx(0.5, abs=1e-15))
    # Two problems of 2/3 and 1/3, not six attempts.
    assert row["standard_error"] == pytest.approx(1 / 6, rel=1e-12)


@pytest.mark.parametrize("choice", ["common", "available"])
def test_replicated_runs_agree_with_the_plain_oracle(choice: Any) -> None:
    seeds = [
        run()
        .filter((pl.col("problem_id") != "sim-000003") | (pl.col("attempt") < 4 * seed))
        .with_columns(
            seed=pl.lit(seed), is_correct=pl.col("is_correct") ^ (pl.col("attempt") % 3 == seed)
        )
        for seed in range(3)
    ]
    table = tts.select_answers(
        pl.concat(seeds), selectors=list(tts.SELECTORS), budgets=[1, 4, 8], by="seed"
    )
    curve = tts.scaling_curve(table, replicates="seed", include=choice)
    check(
        curve,
        curve_oracle.curve(table.to_dicts(), common=choice == "common"),
    )
    fractional = curve.filter(pl.col("selector") == "majority_vote")
    assert fractional["ci_low"].ge(0.0).all()
    assert fractional["ci_high"].le(1.0).all()


def test_by_gives_each_run_the_curve_that_it_has_alone() -> None:
    models = {
        "x": run(),
        "y": run().with_columns(is_correct=pl.col("attempt") % 2 == 0),
    }
    both = pl.concat(frame.with_columns(model=pl.lit(name)) for name, frame in models.items())
    table = tts.select_answers(both, budgets=[1, 4], by="model")
    curve = tts.scaling_curve(table, by="model")
    for name, frame in models.items():
        alone = tts.scaling_curve(tts.select_answers(frame, budgets=[1, 4]))
        found = curve.filter(pl.col("model") == name).drop("model")
        assert_frame_equal(found, alone, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.parametrize("column", ["model", "seed"])
def test_runs_that_are_told_apart_nowhere_are_an_error(column: str) -> None:
    both = pl.concat(run().with_columns(pl.lit(i).alias(column)) for i in range(2))
    table = tts.select_answers(both, budgets=[1, 4], by=column)
    for choice in ("common", "available"):
        with pytest.raises(DataError, match=r"problem_id 'sim-.*by=.*replicates="):
            tts.scaling_curve(table, include=choice)


def test_a_column_cannot_be_both_averaged_over_and_kept_apart() -> None:
    with pytest.raises(tts.TtsframeError, match=r"by and replicates both name \['seed'\]"):
        tts.scaling_curve(problems().lazy(), by="seed", replicates=["seed"])


def test_a_curve_without_a_single_problem_left_says_so() -> None:
    table = with_statuses().filter(pl.col("problem_id") == "worst")
    curve = tts.scaling_curve(table)
    assert curve["n_problems"].to_list() == [0, 0, 0]
    # It is worst at budget 2; no problem reaches budget 4.
    assert curve["n_unscored"].to_list() == [1, 1, 0]
    assert curve["n_short"].to_list() == [0, 0, 1]
    for name in ("accuracy", "standard_error", "ci_low", "ci_high"):
        assert curve[name].null_count() == 3


def test_an_expectation_that_is_missing_is_not_a_zero() -> None:
    table = with_statuses().with_columns(
        value=pl.when(pl.col("problem_id") != "all").then("value").otherwise(float("nan"))
    )
    row = tts.scaling_curve(table).row(0, named=True)
    assert (row["n_problems"], row["n_ungraded"], row["accuracy"]) == (1, 2, 1.0)
