"""One instance: what each method selects, what is counted, and what never counts as right."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from evaluator_oracle import Echo, echoing, score, selected

from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator import (
    ArithmeticSequence,
    LogicalDeduction,
    TaskInstance,
    TaskResult,
    TowerOfHanoi,
    TrajectoryAggregator,
)

METHODS = ("majority_vote", "first_valid", "verifier", "oracle")


@pytest.fixture
def task() -> Echo:
    return Echo()


@pytest.fixture
def instance() -> TaskInstance:
    return TaskInstance("say 7", 1, "7")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_selects_what_a_plain_loop_selects(method: Any, task: Echo) -> None:
    aggregator = TrajectoryAggregator(method, score)
    rng = random.Random(4)
    for seed in range(40):
        one = task.generate_instance(rng.randint(1, 7))
        responses = echoing(seed)(one.prompt, rng.randint(1, 7))
        winner = selected(method, responses, task, one)
        verdicts = [task.verify_solution(one, response).is_correct for response in responses]
        answers = [task.parse(response) for response in responses]
        counts = [answers.count(answer) for answer in answers if answer is not None]

        result = aggregator.aggregate(responses, task, one)

        assert result.metadata["attempt"] == winner
        assert result.selected_response == ("" if winner is None else responses[winner])
        assert result.metadata["answer"] == (None if winner is None else answers[winner])
        assert result.is_correct == (winner is not None and verdicts[winner])
        assert [each.is_correct for each in result.individual_results] == verdicts
        assert [each.response for each in result.individual_results] == responses
        assert result.agreement_rate == pytest.approx(max(counts, default=0) / len(responses))
        assert (result.num_correct, result.any_correct) == (sum(verdicts), any(verdicts))
        assert (result.k_trajectories, result.selection_method) == (len(responses), method)


def test_the_example_of_the_documentation(task: Echo, instance: TaskInstance) -> None:
    responses = ["7 | a", "8 | b", "7 | c", "", "7"]
    result = TrajectoryAggregator(method="majority_vote").aggregate(responses, task, instance)
    assert result.selected_response == "7 | a"
    assert result.is_correct
    assert f"{result.agreement_rate:.1%}" == "60.0%"


def test_a_tie_goes_to_the_answer_that_came_first(task: Echo, instance: TaskInstance) -> None:
    aggregate = TrajectoryAggregator().aggregate
    assert aggregate(["8", "7", "7", "8"], task, instance).selected_response == "8"
    assert aggregate(["7", "8"], task, instance).selected_response == "7"


def test_the_verifier_may_pick_a_response_without_an_answer_which_is_wrong(
    task: Echo, instance: TaskInstance
) -> None:
    aggregator = TrajectoryAggregator("verifier", lambda response, _: float(len(response)))
    result = aggregator.aggregate(["7", " | long but empty"], task, instance)
    assert result.selected_response == " | long but empty"
    assert not result.is_correct
    assert result.any_correct


def test_responses_without_an_answer_are_counted_in_k_and_select_nothing(
    task: Echo, instance: TaskInstance
) -> None:
    for method in ("majority_vote", "first_valid", "oracle"):
        result = TrajectoryAggregator(method).aggregate(["", " | x"], task, instance)
        assert (result.selected_response, result.is_correct) == ("", False)
        assert (result.agreement_rate, result.any_correct, result.num_correct) == (0.0, False, 0)
    half = TrajectoryAggregator().aggregate(["", "7"], task, instance)
    assert half.agreement_rate == 0.5


def test_what_verifies_without_an_answer_is_not_right(instance: TaskInstance) -> None:
    credulous = Echo()
    credulous.verify_solution = lambda instance, response: TaskResult(  # type: ignore[method-assign]
        response, is_correct=True, complexity=instance.complexity
    )
    for method in METHODS:
        aggregator = TrajectoryAggregator(method, score)
        result = aggregator.aggregate(["", "|"], credulous, instance)
        assert (result.is_correct, result.any_correct, result.num_correct) == (False, False, 0)
        assert "no answer" in str(result.individual_results[0].error_message)


HOSTILE = (
    "",
    "\x00",
    "\ud800 lone surrogate",
    "(" * 100_000,
    "A -> B, " * 100_000,
    "__import__('os').system('true')",
    "9" * 1_000_000,
    "10**10**10",
    "Final answer: \\boxed{" * 5000,
    "nan",
    "\u202e\u0661\u0662",
)


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "oracle")) for name in METHODS],
)
@pytest.mark.parametrize("kind", [TowerOfHanoi, ArithmeticSequence, LogicalDeduction])
def test_hostile_responses_are_never_right(method: Any, kind: Any) -> None:
    task = kind(seed=1)
    aggregator = TrajectoryAggregator(method, lambda response, _: float(len(response)))
    result = aggregator.aggregate(list(HOSTILE), task, task.generate_instance(3))
    assert not result.is_correct
    assert not result.any_correct
    assert result.k_trajectories == len(HOSTILE)


def test_equal_responses_are_verified_once(task: Echo, instance: TaskInstance) -> None:
    TrajectoryAggregator().aggregate(["7"] * 50 + ["8"], task, instance)
    assert task.n_verified == 2


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ([], "responses: 0 responses, expected at least one string"),
        ("7", "responses: a str, expected a list"),
        (["7", None], "response 1 is a NoneType"),
        ([b"7"], "response 0 is a bytes"),
    ],
)
def test_what_are_no_responses_is_refused(
    responses: Any, message: str, task: Echo, instance: TaskInstance
) -> None:
    with pytest.raises(DataError, match=message):
        TrajectoryAggregator().aggregate(responses, task, instance)


def test_an_impossible_aggregator_is_refused() -> None:
    with pytest.raises(ParameterError, match="method == 'best', must be one of 'majority_vote'"):
        TrajectoryAggregator("best")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="must come with a verifier"):
        TrajectoryAggregator("verifier")


@pytest.mark.parametrize("found", [math.nan, None, True, "high"])
def test_a_verifier_that_returns_no_number_is_refused(
    found: Any, task: Echo, instance: TaskInstance
) -> None:
    aggregator = TrajectoryAggregator("verifier", lambda *_: found)
    with pytest.raises(ParameterTypeError, match="verifier returned"):
        aggregator.aggregate(["7"], task, instance)


def test_a_task_that_returns_something_else_is_refused(instance: TaskInstance) -> None:
    for method, message in (("parse", "parse returned 7"), ("verify_solution", "returned 7")):
        task = Echo()
        setattr(task, method, lambda *_: 7)
        with pytest.raises(ParameterTypeError, match=f"{message}, must return"):
            TrajectoryAggregator().aggregate(["7"], task, instance)
