from __future__ import annotations

import os
import random
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from contract_frames import one_problem
from contract_registry import ENGINES, run
from expectation_oracle import (
    EXACT,
    RANKED,
    Attempt,
    over_all_subsets,
    softmax_vote,
    weighted_vote,
)
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError
from ttsframe.votes.engine.pools import Block, Pools
from ttsframe.votes.engine.registry import SELECTORS, Pick
from ttsframe.votes.expectation import subset_votes as _subset_votes
from ttsframe.votes.expectation.majority import Pool, majority_accuracy


def frame_of(attempts: Sequence[Attempt], problem_id: str = "p") -> pl.DataFrame:
    return one_problem(
        [attempt.key for attempt in attempts],
        is_correct=[attempt.is_right for attempt in attempts],
        scores=[attempt.score for attempt in attempts],
        problem_id=problem_id,
    ).with_columns(gold_key=pl.lit("right"))


def random_attempts(draws: random.Random, *, is_consistent: bool) -> list[Attempt]:
    """Return up to ten attempts with ties, nulls and abstentions."""
    right = {key: draws.random() < 0.4 for key in "abcd"}
    keys = [draws.choice(["a", "a", "b", "c", "d", None]) for _ in range(draws.randint(1, 10))]
    return [
        Attempt(
            key,
            (right[key] if is_consistent else draws.random() < 0.5) if key else False,
            draws.choice([None, 0.0, 0.25, 0.5, 0.5, 1.0]),
        )
        for key in keys
    ]


def values(frame: pl.DataFrame, **options: Any) -> dict[tuple[Any, ...], float | None]:
    found = tts.expected_accuracy(frame, **options)
    return {tuple(row[:-1]): row[-1] for row in found.select(*KEYS, "value").rows()}


KEYS = ["problem_id", "budget", "selector"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_consistent", [True, False])
def test_exact_ones_are_the_mean_over_every_subset(is_consistent: bool, engine: pl.Engine) -> None:
    draws = random.Random(1)
    pools = {f"p{i}": random_attempts(draws, is_consistent=is_consistent) for i in range(60)}
    frame = pl.concat([frame_of(attempts, name) for name, attempts in pools.items()])
    plan = tts.expected_accuracy(frame.lazy(), selectors=list(EXACT), budgets=range(1, 11))
    found = plan.collect(engine=engine)
    n_checked = 0
    for row in found.iter_rows(named=True):
        attempts = pools[row["problem_id"]]
        if row["budget"] > len(attempts):
            assert (row["status"], row["value"], row["monte_carlo_error"]) == ("short", None, None)
        elif row["selector"] == "best_of_n" and all(a.score is None for a in attempts):
            assert (row["status"], row["value"]) == ("unscored", None)
        else:
            expected = over_all_subsets(attempts, row["budget"], EXACT[row["selector"]])
            assert row["value"] == pytest.approx(expected, abs=1e-12)
            assert (row["status"], row["monte_carlo_error"]) == ("ok", 0.0)
            n_checked += 1
    assert n_checked > 1_000


@given(st.integers(0, 2**32), st.integers(1, 10))
def test_a_majority_is_the_mean_over_every_subset(seed: int, budget: int) -> None:
    attempts = random_attempts(random.Random(seed), is_consistent=False)
    found = values(frame_of(attempts), selectors="majority_vote", budgets=budget)
    expected = None
    if budget <= len(attempts):
        mean = over_all_subsets(attempts, budget, EXACT["majority_vote"])
        expected = pytest.approx(mean, abs=1e-12)
    assert found == {("p", budget, "majority_vote"): expected}


@pytest.mark.parametrize(
    ("keys", "budget", "expected"),
    [
        (["a", "a", "b", "b", "c"], 3, 13 / 30),
        (["a", "b", "b", None, None], 2, 0.3),
        ([None, None], 2, 0.0),
        (["a"], 1, 1.0),
    ],
)
def test_cases_worked_by_hand(keys: list[str | None], budget: int, expected: float) -> None:
    frame = one_problem(keys, is_correct=[key == "a" for key in keys])
    frame = frame.with_columns(gold_key=pl.lit("a"))
    found = tts.expected_accuracy(frame, selectors="majority_vote", budgets=budget)
    assert found["value"].to_list() == pytest.approx([expected], abs=1e-12)


def test_the_oracle_is_pass_at_k_and_best_of_n_best_of_k() -> None:
    found = tts.expected_accuracy(run(), selectors=["oracle", "best_of_n"], budgets=[1, 3, 8])
    budgets = [1, 3, 8]
    expected = (
        run()
        .group_by("problem_id")
        .agg(
            tts.pass_at_k("is_correct", budgets).struct.unnest(),
            tts.best_of_k("is_correct", "score", budgets).struct.unnest(),
        )
    )
    for selector, name in (("oracle", "pass@"), ("best_of_n", "best_of@")):
        for budget in budgets:
            part = found.filter(selector=selector, budget=budget).select("problem_id", "value")
            other = expected.select("problem_id", value=f"{name}{budget}")
            assert part["value"].count() > 5
            assert_frame_equal(part, other, check_row_order=False, abs_tol=1e-12)


@pytest.mark.parametrize("weights", ["score", "softmax"])
def test_sampled_votes_are_near_the_mean_over_every_subset(weights: Any) -> None:
    draws = random.Random(2)
    accuracy = weighted_vote if weights == "score" else softmax_vote
    n_subsets, misses, n_checked = 4_000, 0, 0
    for i in range(25):
        attempts = random_attempts(draws, is_consistent=i % 2 == 0)
        n = len(attempts)
        found = tts.expected_accuracy(
            frame_of(attempts),
            selectors="weighted_vote",
            budgets=range(1, n + 1),
            weights=weights,
            n_subsets=n_subsets,
        )
        if all(attempt.score is None for attempt in attempts):
            assert set(found["status"]) == {"unscored"}
            continue
        for row in found.iter_rows(named=True):
            expected = over_all_subsets(attempts, row["budget"], accuracy)
            if row["budget"] == n:
                assert row["value"] == pytest.approx(expected, abs=1e-12)
                assert row["monte_carlo_error"] == 0.0
                continue
            # Where no draw differs from the others, all subsets are alike.
            assert abs(row["value"] - expected) <= 4 * row["monte_carlo_error"] + 1e-12
            misses += abs(row["value"] - expected) > 2 * row["monte_carlo_error"] + 1e-12
            n_checked += 1
    assert n_checked > 80
    assert misses < 0.1 * n_checked


@pytest.mark.parametrize("selector", RANKED)
def test_ties_are_shared_in_every_subset(selector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # All orders of the attempts have every subset of a size equally often.
    def every_order(_: object, __: object, n: int) -> Iterator[Any]:
        yield np.array(list(permutations(range(n))))

    monkeypatch.setattr(_subset_votes, "shuffles", every_order)
    draws = random.Random(6)
    n_fractional = n_checked = 0
    for i in range(24):
        texts = {"a": "x y", "b": "x", "c": "y z", "d": "w", None: None}
        drawn = random_attempts(draws, is_consistent=i % 2 == 0)[:6]
        attempts = [attempt._replace(key=texts[attempt.key]) for attempt in drawn]
        found = tts.expected_accuracy(
            frame_of(attempts), selectors=selector, budgets=range(1, len(attempts) + 1)
        )
        for budget, value, status in found.select("budget", "value", "status").rows():
            if status == "ok":
                expected = over_all_subsets(attempts, budget, RANKED[selector])
                assert value == pytest.approx(expected, abs=1e-12), (attempts, budget)
                n_fractional += budget == len(attempts) and 0.0 < value < 1.0
                n_checked += 1
    assert n_checked > 60
    assert n_fractional > 0


@pytest.mark.parametrize("selector", RANKED)
def test_all_attempts_are_one_subset(selector: str) -> None:
    frame = one_problem(["a", "b", "c"], is_correct=[False, True, False], scores=[0.5] * 3)
    row = tts.expected_accuracy(frame, selectors=selector, budgets=3, n_subsets=2).row(
        0, named=True
    )
    assert row["value"] == pytest.approx(1 / 3, abs=1e-15)
    assert row["monte_carlo_error"] == 0.0


def test_similar_answers_are_compared_by_their_earliest_texts() -> None:
    # Of two spellings of one answer, only the first shares a token with the other answer.
    keys = ["a", "a", "b", "c"]
    frame = one_problem(keys, is_correct=[False, False, True, False]).with_columns(
        answer=pl.Series(["x y", "z", "x", "w"])
    )
    options: dict[str, Any] = {"selectors": "minimum_bayes_risk"}
    whole = tts.expected_accuracy(frame, budgets=4, n_subsets=50, **options)
    assert whole["value"].to_list() == tts.select_answers(frame, **options)["value"].to_list()
    assert whole["monte_carlo_error"].to_list() == [0.0]


def test_a_low_weight_of_a_softmax_counts_where_no_high_one_is_drawn() -> None:
    keys, scores = ["a", "b", "c"], [0.0, -1_000.0, -2_000.0]
    frame = one_problem(keys, is_correct=[False, True, False], scores=scores)
    found = tts.expected_accuracy(
        frame, selectors="weighted_vote", budgets=[1, 2], weights="softmax", n_subsets=2_000
    )
    for value, error in found.select("value", "monte_carlo_error").rows():
        assert abs(value - 1 / 3) < 4 * error < 0.05


def test_a_sampled_majority_is_near_the_counted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = tts.simulate_trajectories(40, 32, seed=3, keys=True)
    options: dict[str, Any] = {"selectors": "majority_vote", "budgets": [1, 2, 5, 16, 32]}
    counted = tts.expected_accuracy(frame, **options)
    monkeypatch.setattr(_subset_votes, "_WORTHWHILE", -1.0)
    sampled = tts.expected_accuracy(frame, n_subsets=2_000, **options)
    assert counted["monte_carlo_error"].sum() == 0.0
    off = (sampled["value"] - counted["value"]).abs() / (sampled["monte_carlo_error"] + 1e-4)
    assert (sampled["monte_carlo_error"] > 0).sum() > 60
    assert off.max() < 4.5
    assert off.filter(off > 0).median() < 1.0


def test_another_selector_picks_from_shuffles() -> None:
    # Those with a rule of their own are a check on the way that all others go.
    frame = tts.simulate_trajectories(1, 24, seed=5, keys=True)
    keys = frame["answer_key"].rank("dense").fill_null(0).cast(pl.UInt32).to_numpy()
    attempts = Block(
        first_problem=0,
        first_row=0,
        starts=np.array([0, 24]),
        attempt=np.arange(24, dtype=np.uint32),
        key=keys,
        grade=frame["is_correct"].cast(pl.Int8).to_numpy(),
        scores=(),
    )
    budgets = np.array([1, 4, 16])
    drawn = [
        _subset_votes.pick_in_subsets(
            attempts,
            Pick(name, SELECTORS[name], None),
            order,
            budgets,
            "score",
        )
        for name in ("majority_vote", "oracle", "first_valid")
        for order in _subset_votes.shuffles(_subset_votes.Sampling(4_000, 0), "p", 24)
    ]
    found = np.concatenate([each.mean(axis=0) for each in drawn])
    errors = np.concatenate([each.std(axis=0) / 4_000**0.5 for each in drawn])
    names = ["majority_vote", "oracle", "first_valid"]
    exact = tts.expected_accuracy(frame, selectors=names, budgets=[1, 4, 16])
    expected = np.concatenate([exact.filter(selector=name)["value"].to_numpy() for name in names])
    assert (np.abs(found - expected) <= 4 * errors + 1 / 4_000).all()


def test_shuffles_are_permutations_that_depend_on_name_and_seed_alone() -> None:
    def shuffled(seed: int, name: object, n_subsets: int = 50) -> np.ndarray:
        sampling = _subset_votes.Sampling(n_subsets, seed)
        return np.concatenate([*_subset_votes.shuffles(sampling, name, 9)])

    first = shuffled(0, ("m", "p"))
    assert (np.sort(first, axis=1) == np.arange(9)).all()
    assert (first == shuffled(0, ("m", "p"))).all()
    assert (first[:20] == shuffled(0, ("m", "p"), 20)).all()
    for other in (shuffled(1, ("m", "p")), shuffled(0, ("m", "q"))):
        assert (first != other).any()
    assert abs(shuffled(0, "p", 20_000)[:, 0].mean() - 4.0) < 4 * (80 / 12) ** 0.5 / 20_000**0.5


@pytest.mark.parametrize("engine", ENGINES)
def test_no_draw_depends_on_order_partition_or_engine(engine: pl.Engine) -> None:
    frame = tts.simulate_trajectories(30, 16, seed=4, keys=True).with_columns(
        score=pl.col("step_scores").list.last(), model=pl.lit("m")
    )
    options: dict[str, Any] = {
        "selectors": ["weighted_vote"],
        "budgets": [2, 8],
        "by": "model",
        "n_subsets": 40,
    }
    expected = tts.expected_accuracy(frame, **options)
    assert (expected["monte_carlo_error"] > 0).sum() > 30
    for seed in range(3):
        plan = tts.expected_accuracy(
            frame.sample(fraction=1.0, shuffle=True, seed=seed).lazy(), **options
        )
        assert_frame_equal(plan.collect(engine=engine), expected, abs_tol=1e-12)
    parts = [
        tts.expected_accuracy(part, **options)
        for part in frame.partition_by("problem_id", maintain_order=True)
    ]
    assert_frame_equal(pl.concat(parts).sort("problem_id", "budget"), expected, abs_tol=1e-12)
    other = tts.expected_accuracy(frame, **options, seed=1)
    assert not other["value"].equals(expected["value"])


def test_no_draw_depends_on_the_number_of_threads(tmp_path: Path) -> None:
    code = (
        "import sys, ttsframe as tts, polars as pl\n"
        "run = tts.simulate_trajectories(300, 16, seed=4, keys=True)\n"
        "found = tts.expected_accuracy(run, selectors='weighted_vote', reductions='last',\n"
        "    budgets=[2, 8], n_subsets=500)\n"
        "found.write_parquet(sys.argv[1])\n"
    )
    found = []
    for threads in ("1", "4"):
        target = tmp_path / f"{threads}.parquet"
        environment = {**os.environ, "POLARS_MAX_THREADS": threads}
        subprocess.run([sys.executable, "-c", code, target], env=environment, check=True)
        found.append(pl.read_parquet(target))
    assert_frame_equal(*found, check_exact=True)


def test_selectors_share_their_subsets() -> None:
    frame = tts.simulate_trajectories(20, 16, seed=6, keys=True).with_columns(score=pl.lit(1.0))
    options: dict[str, Any] = {"selectors": "weighted_vote", "budgets": [4]}
    alone = tts.expected_accuracy(frame, **options)
    with_more = tts.expected_accuracy(
        frame, selectors=["best_of_n", "weighted_vote"], budgets=[1, 2, 4, 9, 40]
    )
    part = with_more.filter(selector="weighted_vote", budget=4)
    assert_frame_equal(part, alone, abs_tol=1e-12)


def test_attempts_without_a_grade_are_left_out() -> None:
    keys = ["a", "a", "b", None, "b"]
    frame = one_problem(keys, is_correct=[True, None, False, None, None], scores=[1.0] * 5)
    selectors = ["oracle", "majority_vote", "first_valid", "best_of_n"]
    found = tts.expected_accuracy(frame, selectors=selectors, budgets=[1, 2, 3, 4])
    # Left are a right attempt, a wrong one, and one without an answer, which is wrong.
    assert set(found.select("n_attempts", "n_valid").rows()) == {(3, 2)}
    assert found.filter(budget=1)["value"].to_list() == pytest.approx([1 / 3] * 4)
    oracle = found.filter(selector="oracle")
    assert oracle["value"].to_list() == pytest.approx([1 / 3, 2 / 3, 1.0, None])
    assert oracle["status"].to_list() == ["ok", "ok", "ok", "short"]


def test_a_problem_without_any_grade_is_ungraded() -> None:
    frame = one_problem(["a", "b", None], is_correct=[None] * 3, scores=[0.5, 0.2, 0.1])
    selectors = list(SELECTORS)
    found = tts.expected_accuracy(frame, selectors=selectors, budgets=[2, 4], n_subsets=5)
    assert set(found.filter(budget=2)["status"]) == {"ungraded"}
    assert set(found.filter(budget=4)["status"]) == {"short"}
    assert found.select("value", "monte_carlo_error").null_count().row(0) == (found.height,) * 2
    assert set(found.select("n_attempts", "n_valid").rows()) == {(3, 2)}


@pytest.mark.parametrize(
    ("scores", "weights", "status"),
    [
        ([0.5, -0.1, 0.2], "score", "undefined"),
        ([0.5, float("inf"), 0.2], "score", "undefined"),
        ([0.5, -0.1, 0.2], "sigmoid", "ok"),
        ([0.5, -0.1, 0.2], "softmax", "ok"),
        ([0.5, float("inf"), 0.2], "softmax", "undefined"),
        ([0.0, -0.0, 0.0], "score", "ok"),
        ([None, float("nan"), None], "score", "unscored"),
        ([None, float("nan"), 0.5], "score", "ok"),
    ],
)
def test_status_of_a_weighted_vote(scores: Any, weights: Any, status: str) -> None:
    frame = one_problem(["a", "b", None], is_correct=[True, False, False], scores=scores)
    found = tts.expected_accuracy(frame, selectors="weighted_vote", budgets=2, weights=weights)
    assert found["status"].to_list() == [status]
    assert found["value"].is_null().to_list() == [status != "ok"]


def test_columns_of_an_answer_are_null() -> None:
    found = tts.expected_accuracy(run(), selectors=list(SELECTORS), budgets=[1, 8])
    picked = ["attempt", "answer", "answer_key", "is_correct", "n_votes", "weight", "agreement"]
    assert found.select(picked).null_count().row(0) == (found.height,) * len(picked)
    assert set(found["subsets"]) == {"all"}
    assert found["selector"].head(len(SELECTORS)).to_list() == list(SELECTORS)


def test_a_curve_of_expectations_has_a_student_interval() -> None:
    frame = tts.simulate_trajectories(50, 16, seed=7, keys=True)
    expected = tts.expected_accuracy(frame, selectors="majority_vote", budgets=[1, 4])
    curve = tts.scaling_curve(expected)
    assert set(curve["subsets"]) == {"all"}
    at_one = curve.row(0, named=True)
    per_problem = frame.group_by("problem_id").agg(pl.col("is_correct").mean())["is_correct"]
    assert at_one["accuracy"] == pytest.approx(per_problem.mean())
    assert at_one["standard_error"] == pytest.approx(per_problem.std() / 50**0.5)


def test_a_tree_search_is_refused_with_the_reason() -> None:
    frame = pl.concat([
        one_problem(["a", "b"], is_correct=[True, False], problem_id=p) for p in "rq"
    ])
    frame = frame.with_columns(is_exchangeable=pl.col("problem_id") != "q", model=pl.lit("m"))
    plan = tts.expected_accuracy(frame.lazy(), selectors="oracle", budgets=1, by="model")
    with pytest.raises(
        DataError,
        match=r"^model 'm', problem_id 'q': is_exchangeable is false.*tree search.*first attempts",
    ):
        plan.collect()
    fine = frame.with_columns(is_exchangeable=pl.lit(None, pl.Boolean))
    assert values(fine, selectors="oracle", budgets=2) == {
        ("q", 2, "oracle"): 1.0,
        ("r", 2, "oracle"): 1.0,
    }


def test_runs_that_were_not_told_apart_are_refused() -> None:
    frame = one_problem(["a", "b"], is_correct=[True, False])
    with pytest.raises(DataError, match="problem_id 'p': several rows with the same 'attempt'"):
        tts.expected_accuracy(pl.concat([frame, frame]), selectors="oracle", budgets=2)
    with pytest.raises(DataError, match="'attempt' is null"):
        tts.expected_accuracy(
            frame.with_columns(attempt=pl.lit(None, pl.UInt32)), selectors="oracle", budgets=1
        )


def test_gaps_between_numbers_do_not_matter() -> None:
    frame = one_problem(["a", "b", "b"], is_correct=[True, False, False])
    sparse = frame.with_columns(pl.col("attempt") * 7)
    options: dict[str, Any] = {"selectors": "majority_vote", "budgets": [1, 2, 3]}
    assert_frame_equal(
        tts.expected_accuracy(sparse, **options), tts.expected_accuracy(frame, **options)
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budgets": None}, ParameterError, r"budgets is None.*select_answers"),
        ({"budgets": []}, ParameterError, "budgets is empty"),
        ({"budgets": 0}, ParameterError, "budgets == 0"),
        ({"n_subsets": 1}, ParameterError, "n_subsets == 1, must be at least 2"),
        ({"seed": -1}, ParameterError, "seed == -1"),
        ({"seed": 0.5}, ParameterTypeError, "seed must be an int, got float"),
        ({"selectors": "best"}, ParameterError, "selectors == 'best', must be one of"),
        ({"weights": "exp"}, ParameterError, "weights == 'exp'"),
        ({"by": "monte_carlo_error"}, ParameterError, "by names"),
        ({"reductions": "last"}, ColumnsError, "step_scores"),
    ],
)
def test_impossible_parameters_are_refused_at_once(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    frame = one_problem(["a"], is_correct=[True], scores=[0.5]).lazy()
    with pytest.raises(error, match=message):
        tts.expected_accuracy(frame, **{"budgets": 1, **options})


def test_a_run_without_grades_or_without_rows() -> None:
    frame = one_problem(["a"], is_correct=[True])
    with pytest.raises(ColumnsError, match="is_correct"):
        tts.expected_accuracy(frame.drop("is_correct"), selectors="oracle", budgets=1)
    empty = tts.expected_accuracy(frame.head(0), selectors=["oracle", "majority_vote"], budgets=1)
    assert empty.height == 0
    assert empty.columns == tts.expected_accuracy(frame, selectors="oracle", budgets=1).columns


def counted_by_hand(c: int, d: int, k: int) -> float:
    """Return the chance that c votes beat d others in a subset of k, ties shared, exactly."""
    total = Fraction(0)
    for v in range(max(0, k - d), min(c, k) + 1):
        share = Fraction(1) if 2 * v > k else Fraction(1, 2) if 2 * v == k else Fraction(0)
        total += comb(c, v) * comb(d, k - v) * share
    return float(total / comb(c + d, k))


@pytest.mark.parametrize("k", [1, 2, 3, 50, 999, 1_000, 1_998, 1_999, 2_000])
@pytest.mark.parametrize("c", [1, 990, 1_000, 1_010, 1_999])
def test_two_answers_of_thousands_of_attempts_are_counted_as_with_integers(c: int, k: int) -> None:
    pool = Pool(np.array([c, 2_000 - c]), np.array([1.0, 0.0]), 2_000)
    assert majority_accuracy(pool, k) == pytest.approx(counted_by_hand(c, 2_000 - c, k), abs=1e-12)


def test_all_answers_different_is_a_tie_of_all() -> None:
    # The winner is any of the drawn attempts, whatever the budget.
    grades = np.array([1.0] + [0.0] * 99)
    pool = Pool(np.ones(100, dtype=np.int64), grades, 100)
    for k in range(1, 101):
        assert majority_accuracy(pool, k) == pytest.approx(0.01, abs=1e-12)


def test_a_majority_of_hundreds_of_ties_is_sampled() -> None:
    keys = [str(i) for i in range(600)]
    frame = one_problem(keys, is_correct=[i < 200 for i in range(600)])
    found = tts.expected_accuracy(frame, selectors="majority_vote", budgets=[200, 400, 600])
    assert (found["monte_carlo_error"] > 0).to_list() == [False, True, False]
    assert found["value"].to_list() == pytest.approx([1 / 3] * 3, abs=0.01)


def test_a_hundred_thousand_attempts_neither_overflow_nor_take_long() -> None:
    n = 100_000
    frame = pl.DataFrame({
        "problem_id": "p",
        "attempt": pl.int_range(n, eager=True, dtype=pl.UInt32),
        "answer_key": pl.Series(["a"] * 40_000 + ["b"] * 39_900 + [None] * 20_100),
        "is_correct": pl.Series([True] * 40_000 + [False] * 60_000),
        "score": pl.int_range(n, eager=True).cast(pl.Float64) / n,
    })
    found = tts.expected_accuracy(
        frame, selectors=list(SELECTORS), budgets=[1, 1_000, n], n_subsets=4
    )
    assert found["value"].is_between(0.0, 1.0).all()
    at = dict(found.filter(budget=1).select("selector", "value").rows())
    for selector in ("majority_vote", "first_valid", "oracle", "best_of_n"):
        assert at[selector] == pytest.approx(0.4, abs=1e-12)


def test_the_mean_over_runs_is_the_truth() -> None:
    script = Path(__file__).resolve().parents[3] / "benchmarks" / "expectation_bias.py"
    table = runpy.run_path(str(script))["compare"](400, seed=1)
    assert table.height == 25
    assert table["n_null"].sum() == 0
    assert table["distance"].abs().max() < 4.0


@pytest.mark.parametrize("selector", ["weighted_vote", "top_fraction_vote"])
def test_a_sum_of_weights_that_overflows_is_undefined_everywhere(selector: str) -> None:
    frame = pl.DataFrame({
        "problem_id": ["p"] * 3,
        "attempt": [0, 1, 2],
        "answer_key": ["a", "a", "b"],
        "is_correct": [True, True, False],
        "score": [1.5e308, 1.5e308, 0.5],
    })
    expected = tts.expected_accuracy(frame, selectors=selector, budgets=3)
    picked = tts.select_answers(frame, selectors=selector, budgets=3)
    assert expected["status"].item() == picked["status"].item() == "undefined"


@pytest.mark.parametrize(
    ("n_attempts", "selector", "n_threads"),
    [(64, "weighted_vote", 1), (1024, "weighted_vote", 2), (1024, "majority_vote", 1)],
)
def test_threads_are_used_where_they_pay(
    monkeypatch: pytest.MonkeyPatch, n_attempts: int, selector: str, n_threads: int
) -> None:
    used = []
    in_blocks = Pools.in_blocks

    def record(pools: Pools, *args: Any, **options: Any) -> list[Any]:
        used.append(pools.n_threads)
        return in_blocks(pools, *args, **options)

    monkeypatch.setattr(Pools, "in_blocks", record)
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 2)
    frame = tts.simulate_trajectories(2, n_attempts, seed=0, keys=True).with_columns(
        score=pl.col("step_scores").list.last()
    )
    tts.expected_accuracy(frame, selectors=selector, budgets=[4])
    assert used == [n_threads]
