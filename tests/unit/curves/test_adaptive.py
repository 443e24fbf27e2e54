"""Stopping when a vote is decided, and sharing a budget out: against plain Python, and by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.special import betainc

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError

ENGINES = ("in-memory", "streaming")


def run_of(answers: list[list[str | None]]) -> pl.DataFrame:
    rows = [
        (f"p{p:02}", attempt, answer)
        for p, listed in enumerate(answers)
        for attempt, answer in enumerate(listed)
    ]
    schema = {"problem_id": pl.String, "attempt": pl.UInt32, "answer_key": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def is_decided(first: int, second: int, posterior: float) -> bool:
    n = first + second + 1
    share = Fraction(sum(comb(n, j) for j in range(first + 1)), 2**n)
    return share > Fraction(posterior)


def plain_stop(answers: list[str | None], budget: int, posterior: float) -> tuple[int, bool]:
    votes: dict[str, int] = {}
    for seen, answer in enumerate(answers[:budget], start=1):
        if answer is not None:
            votes[answer] = votes.get(answer, 0) + 1
        first, second, *_ = sorted([*votes.values(), 0, 0], reverse=True)
        if is_decided(first, second, posterior):
            return seen, True
    return budget, False


def test_the_share_is_the_probability_of_the_beta_distribution() -> None:
    for first, second in itertools.product(range(12), repeat=2):
        n = first + second + 1
        share = sum(comb(n, j) for j in range(first + 1)) / 2**n
        assert share == pytest.approx(1 - betainc(first + 1, second + 1, 0.5))


@given(
    answers=st.lists(
        st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=14),
        min_size=1,
        max_size=5,
    ),
    budgets=st.lists(st.integers(1, 16), min_size=1, max_size=3, unique=True),
    posterior=st.sampled_from([0.3, 0.5, 0.75, 0.875, 0.9, 0.95, 0.96875]),
)
def test_attempts_are_those_of_plain_python(
    answers: list[list[str | None]], budgets: list[int], posterior: float
) -> None:
    run = run_of(answers).sample(fraction=1.0, shuffle=True, seed=0)
    found = tts.curves.stopping_points(run, budgets=budgets, threshold=posterior)
    expected = [
        (f"p{p:02}", budget, *plain_stop(listed, budget, posterior))
        for p, listed in enumerate(answers)
        for budget in sorted(budgets)
    ]
    assert found.drop("policy").rows() == expected


def test_four_that_agree_are_enough_at_95_percent() -> None:
    found = tts.curves.stopping_points(run_of([["x"] * 8, ["x", "y", *["x"] * 6]]), budgets=8)
    # 4 to 0, and 6 to 1.
    assert found["n_attempts"].to_list() == [4, 7]
    exact = tts.curves.stopping_points(run_of([["x"] * 8]), budgets=8, threshold=1 - 2**-5)
    assert exact["n_attempts"].to_list() == [5]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_selector_sees_what_was_made_by_then(engine: pl.Engine) -> None:
    run = tts.simulate_trajectories(60, 16, seed=5, keys=True)
    points = tts.curves.stopping_points(run, budgets=[4, 16])
    selectors: list[Any] = ["majority_vote", "best_of_n"]
    found = tts.curves.select_allocated(
        run.lazy(), allocation=points.lazy(), selectors=selectors
    ).collect(engine=engine)
    assert found.height == 60 * 2 * 2
    budgets = range(1, 17)
    every = tts.select_answers(run, selectors=selectors, budgets=[*budgets])
    used = points.select("problem_id", given="budget", budget="n_attempts")
    expected = every.join(used, on=["problem_id", "budget"]).with_columns(
        budget="given", selector=pl.concat_str(pl.lit("adaptive_"), "selector")
    )
    order = ["problem_id", "budget", "selector"]
    assert_frame_equal(found.sort(order), expected.select(found.columns).sort(order))
    curve = tts.cost_curve(tts.curves.add_costs(found, budget_unit="attempts"))
    majority = curve.filter(selector="adaptive_majority_vote")
    means = points.group_by("budget").agg(pl.col("n_attempts").mean()).sort("budget")
    assert majority["budget"].to_list() == pytest.approx(means["n_attempts"].to_list())
    tokens = tts.cost_curve(tts.curves.add_costs(found, trajectories=run))
    within = run.join(points.filter(budget=16), on="problem_id").filter(
        pl.col("attempt") < pl.col("n_attempts")
    )
    last = tokens.filter(selector="adaptive_majority_vote", nominal_budget=16)["budget"].item()
    assert last == pytest.approx(within["n_tokens"].sum() / 60)


def test_a_problem_with_fewer_attempts_than_allocated_is_short() -> None:
    run = run_of([["x", "y"], ["x"] * 6]).with_columns(is_correct=pl.lit(value=True))
    points = tts.curves.stopping_points(run, budgets=6)
    found = tts.curves.select_allocated(run, allocation=points)
    assert found.select("status", "n_attempts", "value").rows() == [
        ("short", 2, None),
        ("ok", 4, 1.0),
    ]


def plain_allocation(levels: list[tuple[float | None, int]], budget: int, most: int) -> list[int]:
    """Give one attempt at a time to the problem that gains most by it."""
    counts = [1] * len(levels)
    for _ in range((budget - 1) * len(levels)):
        worth = []
        for (difficulty, n), count in zip(levels, counts, strict=True):
            right, wrong = (
                (0.0, 0.0) if difficulty is None else (n * (1 - difficulty), n * difficulty)
            )
            gain = (1 + right) / (2 + right + wrong)
            for m in range(1, count + 1):
                gain *= (wrong + m) / (2 + right + wrong + m)
            worth.append(gain if count < most else -1.0)
        counts[max(range(len(worth)), key=lambda i: (worth[i], -counts[i], -i))] += 1
    return counts


@given(
    levels=st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, None]), st.sampled_from([4, 16, 64])),
        min_size=1,
        max_size=6,
    ),
    budget=st.integers(1, 6),
)
def test_each_attempt_goes_where_it_helps_most(
    levels: list[tuple[float | None, int]], budget: int
) -> None:
    frame = pl.DataFrame({
        "problem_id": range(len(levels)),
        "fold": pl.Series([None] * len(levels), dtype=pl.UInt32),
        "difficulty": pl.Series([d for d, _ in levels], dtype=pl.Float64),
        "n_used": [n for _, n in levels],
    })
    found = tts.curves.allocate_attempts(frame, budgets=budget, max_attempts=8)
    expected = plain_allocation(levels, budget, 8)
    assert sum(found["n_attempts"]) == budget * len(levels)

    def total(counts: list[int]) -> float:
        chance = 0.0
        for (difficulty, n), count in zip(levels, counts, strict=True):
            right, wrong = (0, 0) if difficulty is None else (n * (1 - difficulty), n * difficulty)
            missed = 1.0
            for m in range(count):
                missed *= (1 + wrong + m) / (2 + right + wrong + m)
            chance += 1 - missed
        return chance

    # Gains that are equal but for rounding may be taken in either order.
    assert total(found["n_attempts"].to_list()) == pytest.approx(total(expected), abs=1e-12)
    assert found["n_attempts"].max() <= 8


def test_halves_share_totals_of_their_own_and_beat_uniform_budgets() -> None:
    run = tts.simulate_trajectories(300, 64, seed=2, keys=True, accuracy=(0.4, 0.8))
    halves, levels = tts.curves.halve_attempts(run), tts.difficulty_levels(run)
    allocation = tts.curves.allocate_attempts(levels, budgets=[2, 4], max_attempts=32)
    assert_frame_equal(
        allocation
        .group_by("fold", "budget")
        .agg(pl.col("n_attempts").mean())
        .sort("fold", "budget"),
        pl.DataFrame(
            {"fold": [0, 0, 1, 1], "budget": [2, 4, 2, 4], "n_attempts": [2.0, 4.0, 2.0, 4.0]},
            schema_overrides={"fold": pl.UInt32, "budget": pl.UInt32},
        ),
    )
    found = tts.curves.select_allocated(
        halves, allocation=allocation, selectors=["oracle"], by="fold"
    )
    assert set(found["selector"]) == {"allocated_oracle"}
    uniform = tts.select_answers(halves, selectors=["oracle"], budgets=[2, 4], by="fold")
    gains = [
        found.filter(budget=b)["value"].mean() - uniform.filter(budget=b)["value"].mean()
        for b in (2, 4)
    ]
    assert min(gains) > 0.02


def test_what_is_impossible_is_refused() -> None:
    run = run_of([["x", "y"]]).with_columns(is_correct=pl.lit(value=True))
    levels = tts.difficulty_levels(run)
    with pytest.raises(ParameterError, match="threshold == 1"):
        tts.curves.stopping_points(run, budgets=2, threshold=1)
    with pytest.raises(DataError, match=r"'p00'.*an attempt appears twice"):
        tts.curves.stopping_points(pl.concat([run, run]), budgets=2)
    with pytest.raises(ParameterError, match="budgets holds 3, must be at most max_attempts == 2"):
        tts.curves.allocate_attempts(levels, budgets=[1, 3], max_attempts=2)
    allocation = tts.curves.allocate_attempts(levels, budgets=1, max_attempts=1)
    with pytest.raises(ParameterError, match=r"allocation has the column 'fold'.*halve_attempts"):
        tts.curves.select_allocated(run, allocation=allocation)
    points = tts.curves.stopping_points(run, budgets=2)
    with pytest.raises(DataError, match="2 allocations of budget 2"):
        tts.curves.select_allocated(run, allocation=pl.concat([points, points]))
    with pytest.raises(ColumnsError, match="'problem_id' is Int64, must be String"):
        tts.curves.select_allocated(
            run, allocation=points.with_columns(problem_id=pl.lit(1, pl.Int64))
        )


def test_an_allocation_says_how_far_its_levels_can_be_trusted() -> None:
    run = tts.simulate_trajectories(12, 8, seed=0, keys=True)
    for estimate in ("same_sample", "cross_fitted"):
        levels = tts.difficulty_levels(run, estimate=estimate)
        found = tts.curves.allocate_attempts(levels, budgets=2, max_attempts=4)
        assert found.select("basis", "caveat").unique().rows() == [(estimate, "few_attempts")]
    bare = levels.drop("basis", "caveat")
    assert tts.curves.allocate_attempts(bare, budgets=2, max_attempts=4)["basis"].null_count() == 24
