"""The simulated reasoner: reproducible draws, and closed forms against enumeration and simulation."""

from __future__ import annotations

from itertools import product
from math import exp, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsframe.errors import DataError, ParameterError, ParameterTypeError, TtsframeError
from ttsframe.evaluator import (
    ArithmeticSequence,
    LogicalDeduction,
    SimulatedReasoner,
    TowerOfHanoi,
    TrajectoryAggregator,
)
from ttsframe.evaluator.reasoner import KnownMethod
from ttsframe.evaluator.tasks import SeededTask

TASKS: list[type[SeededTask]] = [TowerOfHanoi, ArithmeticSequence, LogicalDeduction]
METHODS: tuple[KnownMethod, ...] = ("majority_vote", "first_valid", "oracle")


def chosen(draws: tuple[int | None, ...], method: str) -> int | None:
    """Choose among answers, of which 0 is right and None is none, as the documentation says."""
    valid = [draw for draw in draws if draw is not None]
    if method == "oracle" and 0 in valid:
        return 0
    if method == "majority_vote":
        return max(valid, key=valid.count, default=None)  # the first of the largest
    return valid[0] if valid else None


def by_enumeration(reasoner: SimulatedReasoner, level: int, k: int, method: str) -> float:
    right = reasoner.ceiling / (1 + exp(reasoner.steepness * (level - reasoner.collapse_at)))
    failed = (1 - right) * (1 - reasoner.no_answer_share)
    chances: dict[int | None, float] = {0: right, None: (1 - right) * reasoner.no_answer_share}
    chances |= {j: failed * share for j, share in enumerate(reasoner.wrong_shares, start=1)}
    total = 0.0
    for draws in product(chances, repeat=k):
        if chosen(draws, method) == 0:
            chance = 1.0
            for draw in draws:
                chance *= chances[draw]
            total += chance
    return total


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weights", [(1,), (0.7, 0.3), (1, 1, 1), (5, 3, 0, 1)])
def test_expected_accuracy_is_that_of_all_sequences_of_draws(
    method: KnownMethod, weights: tuple[float, ...]
) -> None:
    reasoner = SimulatedReasoner(
        TowerOfHanoi(), collapse_at=3.3, steepness=0.8, ceiling=0.95, wrong_weights=weights, no_answer_share=0.2
    )  # fmt: skip
    for level in (1, 3, 4, 6):
        for k in (1, 2, 3, 5):
            expected = by_enumeration(reasoner, level, k, method)
            assert reasoner.expected_accuracy(level, k, method) == pytest.approx(
                expected, abs=1e-12
            )


@given(
    level=st.integers(1, 12),
    k=st.integers(1, 40),
    weights=st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(lambda each: sum(each) > 0.1),
    share=st.floats(0, 1),
)
def test_expected_accuracies_keep_their_order(
    level: int, k: int, weights: list[float], share: float
) -> None:
    reasoner = SimulatedReasoner(TowerOfHanoi(), wrong_weights=weights, no_answer_share=share)
    right = reasoner.success_probability(level)
    values = {method: reasoner.expected_accuracy(level, k, method) for method in METHODS}
    for method in METHODS:
        assert reasoner.expected_accuracy(level, 1, method) == pytest.approx(right, abs=1e-12)
        assert -1e-12 <= values[method] <= values["oracle"] + 1e-12
    if share == 1.0:
        assert values["majority_vote"] == pytest.approx(values["oracle"], abs=1e-9)
    if share == 0.0:
        assert values["first_valid"] == pytest.approx(right, abs=1e-9)


def test_voting_sharpens_the_collapse() -> None:
    reasoner = SimulatedReasoner(
        TowerOfHanoi(), collapse_at=5, wrong_weights=[1], no_answer_share=0
    )
    below = [reasoner.expected_accuracy(4, k) for k in (1, 11, 101)]
    above = [reasoner.expected_accuracy(6, k) for k in (1, 11, 101)]
    assert below == sorted(below)
    assert below[-1] > 0.999
    assert above == sorted(above, reverse=True)
    assert above[-1] < 0.001
    assert reasoner.expected_accuracy(5, 11) == pytest.approx(0.5)
    assert 0.9 < reasoner.expected_accuracy(4, 256) <= 1.0


@pytest.mark.parametrize("make", TASKS)
def test_shares_of_answers_are_those_of_the_parameters(make: type[SeededTask]) -> None:
    task = make(seed=1)
    reasoner = SimulatedReasoner(
        task, collapse_at=3.5, wrong_weights=(3, 0, 1), no_answer_share=0.25, seed=4
    )
    instance = task.generate_instance(4)
    n = 3_000
    counts: dict[str | None, int] = {}
    for response in reasoner(instance.prompt, n):
        answer = task.parse(response)
        counts[answer] = counts.get(answer, 0) + 1
        is_correct = task.verify_solution(instance, response).is_correct
        assert is_correct == (answer == instance.ground_truth)
    right = 1 / (1 + exp(1.5 * 0.5))
    expected = {
        instance.ground_truth: right,
        None: (1 - right) * 0.25,
        task.wrong_answer(instance, 0): (1 - right) * 0.75 * 0.75,
        task.wrong_answer(instance, 2): (1 - right) * 0.75 * 0.25,
    }
    assert counts.keys() == expected.keys()
    for answer, chance in expected.items():
        assert abs(counts[answer] / n - chance) < 4.5 * sqrt(chance * (1 - chance) / n)


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "majority_vote")) for name in METHODS],
)
def test_expected_accuracy_is_that_of_the_aggregator(method: KnownMethod) -> None:
    task = LogicalDeduction(seed=1)
    reasoner = SimulatedReasoner(task, collapse_at=4, wrong_weights=(2, 1), seed=7)
    aggregator = TrajectoryAggregator(method=method)
    n, k = 200, 5
    for level in (3, 5):
        instance = task.generate_instance(level)
        n_right = sum(
            aggregator.aggregate(reasoner(instance.prompt, k), task, instance).is_correct
            for _ in range(n)
        )
        chance = reasoner.expected_accuracy(level, k, method)
        assert abs(n_right / n - chance) < 4.5 * sqrt(chance * (1 - chance) / n)


def test_draws_are_fresh_at_each_call_and_the_same_in_a_rerun() -> None:
    task = ArithmeticSequence(seed=1)
    first, second = task.generate_batch((4, 4), 2)
    reasoner, again = (SimulatedReasoner(task, collapse_at=4, seed=3) for _ in range(2))
    drawn = reasoner(first.prompt, 3) + reasoner(second.prompt, 2) + reasoner(first.prompt, 4)
    once = again(first.prompt, 7)
    assert drawn[:3] + drawn[5:] == once
    assert drawn[3:5] == again(second.prompt, 2)
    assert once == [again.response_at(first.prompt, draw) for draw in range(7)]
    assert len(set(once)) > 1
    other = SimulatedReasoner(task, collapse_at=4, seed=4)
    assert other(first.prompt, 7) != once


@pytest.mark.parametrize("make", TASKS)
def test_a_response_without_answer_is_none_to_every_task(make: type[SeededTask]) -> None:
    task = make()
    reasoner = SimulatedReasoner(task, collapse_at=-99, no_answer_share=1.0)
    instance = task.generate_instance(3)
    responses = reasoner(instance.prompt, 40)
    assert {task.parse(response) for response in responses} == {None}
    assert {response.endswith("work this out.") for response in responses} == {True, False}


def test_tokens_are_counted_by_level() -> None:
    task = ArithmeticSequence()
    reasoner = SimulatedReasoner(task, tokens_per_level=50, no_answer_share=0, seed=1)
    assert reasoner.count_tokens("<think>(120 tokens)</think>\nFinal answer: 5") == 120 + 4
    assert reasoner.count_tokens("one two") == 2
    assert reasoner.count_tokens("") == 0
    for level in (1, 5):
        prompt = task.generate_instance(level).prompt
        counts = [reasoner.count_tokens(response) - 4 for response in reasoner(prompt, 2_000)]
        assert min(counts) >= 25 * level
        assert max(counts) <= 75 * level
        # Uniform on that range; five standard errors.
        assert abs(sum(counts) / 2_000 - 50 * level) < 5 * 15 * level / sqrt(2_000)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"collapse_at": float("nan")}, ParameterError, "collapse_at == nan, must be finite"),
        ({"steepness": 0}, ParameterError, "steepness == 0"),
        ({"steepness": float("inf")}, ParameterError, "steepness == inf"),
        ({"ceiling": 1.2}, ParameterError, "ceiling == 1.2"),
        ({"ceiling": 0.0}, ParameterError, "ceiling == 0.0"),
        ({"wrong_weights": []}, ParameterError, "wrong_weights"),
        ({"wrong_weights": [0, 0]}, ParameterError, "not all 0"),
        ({"wrong_weights": [-1, 2]}, ParameterError, "wrong_weights == -1"),
        ({"wrong_weights": [1] * 11}, ParameterError, "1 to 10"),
        ({"no_answer_share": 1.1}, ParameterError, "no_answer_share == 1.1"),
        ({"tokens_per_level": 0}, ParameterError, "tokens_per_level == 0"),
        ({"seed": -1}, ParameterError, "seed == -1"),
        ({"task": "hanoi"}, ParameterTypeError, "task is a str"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(
    parameters: dict[str, Any], error: type[TtsframeError], message: str
) -> None:
    with pytest.raises(error, match=message):
        SimulatedReasoner(**({"task": TowerOfHanoi()} | parameters))


def test_bad_calls_are_named() -> None:
    task = TowerOfHanoi()
    reasoner = SimulatedReasoner(task)
    prompt = task.generate_instance(2).prompt
    with pytest.raises(DataError, match="no instance of tower_of_hanoi has the prompt"):
        reasoner("What is it?", 1)
    with pytest.raises(ParameterError, match="k == 0"):
        reasoner(prompt, 0)
    with pytest.raises(ParameterError, match="draw == -1"):
        reasoner.response_at(prompt, -1)
    with pytest.raises(ParameterTypeError, match="draw must be an int, got float"):
        reasoner.response_at(prompt, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="method == 'verifier'"):
        reasoner.expected_accuracy(2, 3, "verifier")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="k == 257"):
        reasoner.expected_accuracy(2, 257)


@given(level=st.integers(-(10**6), 10**6))
def test_the_chance_of_success_falls_with_the_level(level: int) -> None:
    reasoner = SimulatedReasoner(TowerOfHanoi(), ceiling=0.9)
    chance, harder = (reasoner.success_probability(each) for each in (level, level + 1))
    assert 0.0 <= harder <= chance <= 0.9
    assert reasoner.success_probability(5) == pytest.approx(0.45)
