"""Budgets count the first attempts: exactly as many, or short, or an error that names the cause."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from contract_frames import one_problem, only
from contract_registry import ENGINES, run
from selection_oracle import pick

import ttsframe as tts
from ttsframe.errors import DataError

ALL = list(tts.SELECTORS)


def test_a_budget_sees_the_first_attempts_and_no_other() -> None:
    full = run()
    found = tts.select_answers(full, selectors=ALL, budgets=[3])
    cut = tts.select_answers(full.filter(pl.col("attempt") < 3), selectors=ALL, budgets=[3])
    assert found.equals(cut)


def test_all_budgets_at_once_are_what_each_is_alone() -> None:
    budgets = [1, 2, 3, 5, 8]
    together = tts.select_answers(run(), selectors=ALL, budgets=budgets)
    alone = pl.concat(tts.select_answers(run(), selectors=ALL, budgets=b) for b in budgets)
    order = ["problem_id", "budget", "selector"]
    exact = pl.exclude("weight")
    assert together.sort(order).select(exact).equals(alone.sort(order).select(exact))


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_fewer_attempts_than_the_budget_are_short(selector: str) -> None:
    frame = one_problem(["a", "b"], is_correct=[True, False], scores=[0.1, 0.2])
    found = tts.select_answers(frame, selectors=selector, budgets=[2, 3])
    assert found["status"].to_list() == ["ok", "short"]
    row = found.row(1, named=True)
    nothing = ("attempt", "answer", "answer_key", "is_correct", "value", "n_votes", "weight")
    assert {row[name] for name in nothing} == {None}
    assert (row["n_attempts"], row["n_valid"]) == (2, 2)


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_a_gap_leaves_the_budgets_beyond_it_short(selector: str) -> None:
    frame = one_problem(["a", "b", "c"], is_correct=[True] * 3, scores=[0.1] * 3)
    found = tts.select_answers(
        frame.filter(pl.col("attempt") != 1), selectors=selector, budgets=[1, 2, 3]
    )
    assert found["status"].to_list() == ["ok", "short", "short"]
    assert found["n_attempts"].to_list() == [1, 1, 2]
    mended = tts.renumber_attempts(frame.filter(pl.col("attempt") != 1))
    again = tts.select_answers(mended, selectors=selector, budgets=[1, 2, 3])
    assert again["status"].to_list() == ["ok", "ok", "short"]


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_a_problem_without_any_attempt_in_the_budget_is_short_and_not_lost(selector: str) -> None:
    frame = one_problem(["a", "b"], is_correct=[True] * 2, scores=[0.1] * 2)
    late = frame.filter(pl.col("attempt") > 0)
    row = only(tts.select_answers(late, selectors=selector, budgets=1))
    assert (row["status"], row["n_attempts"], row["n_valid"]) == ("short", 0, 0)


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_no_budget_is_one_row_with_all_attempts(selector: str) -> None:
    frame = one_problem(["a", "b", "a"], is_correct=[True] * 3, scores=[0.1] * 3)
    for given in (frame, frame.filter(pl.col("attempt") != 1)):
        row = only(tts.select_answers(given, selectors=selector))
        assert (row["budget"], row["n_attempts"], row["status"]) == (None, given.height, "ok")


def two_runs(n_attempts: int) -> pl.DataFrame:
    """Return two runs of the same problems, which only the column `model` tells apart."""
    return pl.concat(
        one_problem(
            ["a"] * n_attempts,
            is_correct=[True] * n_attempts,
            scores=[0.5] * n_attempts,
            problem_id=name,
        ).with_columns(model=pl.lit(model))
        for name in ("p1", "p2")
        for model in ("x", "y")
    )


def select(frame: Any, **options: Any) -> Any:
    return tts.select_answers(frame, selectors=ALL, **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", [select, tts.tally_votes])
@pytest.mark.parametrize(
    ("n_attempts", "budgets", "found"),
    [
        (4, [2], "4 rows with attempt < 2, expected 2"),
        (4, [1, 2, 4], r"\d rows with attempt < \d, expected \d"),
        (4, [4], "8 rows with attempt < 4, expected 4"),
        (4, None, "several rows with the same 'attempt'"),
    ],
)
def test_a_forgotten_by_is_an_error_that_says_so(
    function: Any, n_attempts: int, budgets: list[int] | None, found: str, engine: pl.Engine
) -> None:
    plan = function(two_runs(n_attempts).lazy(), budgets=budgets)
    with pytest.raises(DataError) as caught:
        plan.collect(engine=engine)
    message = str(caught.value)
    assert re.match(f"problem_id 'p[12]': {found}", message)
    assert "Hint: name the column that tells runs, models or seeds apart in by=(...)" in message
    assert "renumber_attempts" in message


@pytest.mark.parametrize("function", [select, tts.tally_votes])
@pytest.mark.parametrize("budgets", [[4], [3], [1, 4], [16]])
def test_two_runs_that_fill_one_budget_together_are_not_taken_for_one(
    function: Any, budgets: list[int]
) -> None:
    with pytest.raises(DataError, match="Hint: name the column that tells runs"):
        function(two_runs(2), budgets=budgets)


@pytest.mark.parametrize("function", [select, tts.tally_votes])
def test_by_tells_the_runs_apart(function: Any) -> None:
    found = function(two_runs(4), budgets=[4], by="model")
    assert found.columns[:2] == ["model", "problem_id"]
    assert set(found.select("model", "problem_id").rows()) == {
        (model, name) for model in "xy" for name in ("p1", "p2")
    }


def test_an_attempt_without_a_number_is_an_error() -> None:
    frame = one_problem(["a", "b"]).with_columns(attempt=pl.Series([0, None], dtype=pl.UInt32))
    for budgets in (None, [1], [2]):
        with pytest.raises(DataError, match=r"'attempt' is null in a row.*renumber_attempts"):
            tts.majority_vote(frame, budgets=budgets)


@pytest.mark.parametrize("budgets", [0, -1, [], [4, 0], [True], 2.5, ["4"]])
def test_an_impossible_budget_is_refused_at_once(budgets: Any) -> None:
    with pytest.raises(tts.TtsframeError, match="budgets"):
        tts.majority_vote(one_problem(["a"]).lazy(), budgets=budgets)


def test_budgets_come_out_ascending_and_once() -> None:
    found = tts.majority_vote(one_problem(["a"] * 4), budgets=[4, 1, 4])
    assert found["budget"].to_list() == [1, 4]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_every_row_agrees_with_the_plain_oracle(selector: str, engine: pl.Engine) -> None:
    budgets = [1, 2, 4, 8, 9]
    plan = tts.select_answers(run().lazy(), selectors=selector, budgets=budgets)
    attempts = run().select("problem_id", "attempt", "answer", "answer_key", "is_correct", "score")
    by_problem = attempts.partition_by("problem_id", as_dict=True, include_key=False)
    found = plan.collect(engine=engine)
    assert found.height == len(by_problem) * len(budgets)
    for row in found.iter_rows(named=True):
        expected = pick(by_problem[row["problem_id"],].to_dicts(), selector, row["budget"])
        weight = expected.pop("weight")
        assert {name: row[name] for name in expected} == expected
        assert row["weight"] == (weight if weight is None else pytest.approx(weight, rel=1e-12))
