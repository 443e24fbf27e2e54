"""Instances are functions of seed, level and index, and every task keeps the same rules."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsframe._draws import bits_at
from ttsframe.errors import ParameterError, ParameterTypeError, TtsframeError
from ttsframe.evaluator import (
    ArithmeticSequence,
    LogicalDeduction,
    Task,
    TaskInstance,
    TaskResult,
    TowerOfHanoi,
)
from ttsframe.evaluator._stream import Stream
from ttsframe.evaluator.tasks import SeededTask

TASKS: list[type[SeededTask]] = [TowerOfHanoi, ArithmeticSequence, LogicalDeduction]
each_task = pytest.mark.parametrize("make", TASKS)


def test_fields_and_defaults_are_those_documented() -> None:
    instance = TaskInstance("prompt", 3)
    assert (instance.prompt, instance.complexity, instance.ground_truth, instance.metadata) == (
        "prompt", 3, None, {},
    )  # fmt: skip
    result = TaskResult("response", False, 3)
    assert (result.response, result.is_correct, result.complexity) == ("response", False, 3)
    assert (result.error_message, result.metadata) == (None, {})
    assert TaskInstance("", 1, "x", {"a": 1}) == TaskInstance(
        prompt="", complexity=1, ground_truth="x", metadata={"a": 1}
    )
    assert TaskInstance("", 1).metadata is not TaskInstance("", 1).metadata


def test_a_task_needs_all_its_methods() -> None:
    class Half(Task):
        name = "half"

        def generate_instance(self, complexity: int) -> TaskInstance:
            return TaskInstance("", complexity)

        def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
            return TaskResult(response, False, instance.complexity)

    with pytest.raises(TypeError, match="parse"):
        Half()  # type: ignore[abstract]


def test_a_task_of_ones_own_makes_batches_by_itself() -> None:
    class Counting(Task):
        name = "counting"
        made = 0

        def generate_instance(self, complexity: int) -> TaskInstance:
            self.made += 1
            return TaskInstance(f"{self.made}", complexity)

        def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
            return TaskResult(response, False, instance.complexity)

        def parse(self, response: str) -> str | None:
            return response

    batch = Counting().generate_batch((2, 4), 2)
    assert [(each.complexity, each.prompt) for each in batch] == [
        (2, "1"), (2, "2"), (3, "3"), (3, "4"), (4, "5"), (4, "6"),
    ]  # fmt: skip


@each_task
def test_instances_do_not_depend_on_what_was_made_before(make: type[SeededTask]) -> None:
    fresh, used = make(seed=5), make(seed=5)
    for level in (4, 2, 4, 3):
        used.generate_instance(level)
    assert fresh.generate_batch((2, 4), 3) == used.generate_batch((2, 4), 3)
    assert used.generate_instance(4) == fresh.instance_at(4, 2)
    assert [fresh.generate_instance(3) for _ in range(3)] == fresh.generate_batch((3, 3), 3)
    longer = fresh.generate_batch((1 if make is not LogicalDeduction else 2, 5), 7)
    assert [each for each in longer if each.complexity == 3][:3] == fresh.generate_batch((3, 3), 3)


@each_task
def test_instances_depend_on_the_seed_and_the_index(make: type[SeededTask]) -> None:
    prompts = [each.prompt for each in make(seed=0).generate_batch((5, 5), 6)]
    assert len(set(prompts)) == 6
    assert prompts != [each.prompt for each in make(seed=1).generate_batch((5, 5), 6)]


@each_task
def test_the_ground_truth_is_right_and_reads_as_itself(make: type[SeededTask]) -> None:
    task = make(seed=3)
    first, last = task.complexities
    for instance in task.generate_batch((first, min(last, 9)), 8):
        assert instance.ground_truth is not None
        for response in (instance.ground_truth, f"Final answer: {instance.ground_truth}"):
            result = task.verify_solution(instance, response)
            assert (result.is_correct, result.error_message) == (True, None)
            assert task.parse(response) == instance.ground_truth
        assert not task.verify_solution(instance, instance.prompt).is_correct


@each_task
def test_wrong_answers_are_distinct_answers_and_wrong(make: type[SeededTask]) -> None:
    task = make(seed=3)
    first = task.complexities[0]
    for instance in task.generate_batch((first, first + 5), 3):
        wrong = [task.wrong_answer(instance, number) for number in range(10)]
        assert len(set(wrong)) == 10
        for answer in wrong:
            assert task.parse(f"Final answer: {answer}") == answer
            assert not task.verify_solution(instance, f"Final answer: {answer}").is_correct


@each_task
def test_instances_survive_json_and_pickle(make: type[SeededTask]) -> None:
    task = make(seed=3)
    instance = task.generate_instance(4)
    stored = json.loads(json.dumps(vars(instance)))
    assert TaskInstance(**stored) == instance
    truth = f"Final answer: {instance.ground_truth}"
    assert task.verify_solution(TaskInstance(**stored), truth).is_correct
    again = pickle.loads(pickle.dumps(task))  # noqa: S301 - its own bytes
    assert again.generate_instance(4) == task.generate_instance(4)


@each_task
def test_an_instance_is_found_by_its_prompt(make: type[SeededTask]) -> None:
    task = make(seed=3)
    batch = task.generate_batch((3, 4), 2)
    assert [task.find_instance(each.prompt) for each in batch] == batch
    assert task.find_instance("What is it?") is None
    assert make(seed=3).find_instance(batch[0].prompt) is None


@each_task
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda task: task.generate_instance(0), ParameterError, "complexity == 0, must be at least 1"),
        (lambda task: task.generate_instance(99), ParameterError, "complexity == 99, must be from"),
        (lambda task: task.generate_instance(True), ParameterTypeError, "complexity must be an int, got bool"),
        (lambda task: task.generate_instance([]), ParameterTypeError, "complexity must be an int, got list"),
        (lambda task: task.instance_at(3, -1), ParameterError, "index == -1"),
        (lambda task: task.instance_at(3, 0.0), ParameterTypeError, "index must be an int, got float"),
        (lambda task: task.generate_batch((4, 3)), ParameterError, r"complexity_range == \(4, 3\)"),
        (lambda task: task.generate_batch((0, 3)), ParameterError, "complexity_range == 0"),
        (lambda task: task.generate_batch(3), ParameterTypeError, "complexity_range is 3, must be a pair"),
        (lambda task: task.generate_batch((2, 3), 0), ParameterError, "instances_per_level == 0"),
        (lambda task: type(task)(seed=-1), ParameterError, "seed == -1"),
        (lambda task: type(task)(seed="x"), ParameterTypeError, "seed must be an int, got str"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(
    make: type[SeededTask], call: Callable[[Any], object], error: type[TtsframeError], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(make())


@each_task
def test_an_instance_of_another_task_is_refused(make: type[SeededTask]) -> None:
    task = make()
    for response in ("", "Final answer: 5"):
        with pytest.raises(TtsframeError, match="is it an instance of"):
            task.verify_solution(TaskInstance("What is it?", 3), response)


@each_task
@given(response=st.text())
def test_any_text_is_judged(make: type[SeededTask], response: str) -> None:
    task = make()
    instance = task.instance_at(3, 0)
    result = task.verify_solution(instance, response)
    assert not result.is_correct
    assert result.error_message
    assert result.response == response
    assert result.complexity == 3


@given(seed=st.integers(0, 2**64 - 1), position=st.integers(0, 10**6), bound=st.integers(1, 10**6))
def test_a_stream_is_the_hash_of_the_package_in_sequence(
    seed: int, position: int, bound: int
) -> None:
    stream = Stream(seed)
    key = np.array([stream._key], dtype=np.uint64)
    expected = [int(bits_at(key, np.array([i]))[0]) for i in range(3)]
    assert [stream.bits() for _ in range(3)] == expected
    assert 0 <= Stream(seed, position).below(bound) < bound
    assert 0.0 <= Stream(seed, position).uniform() < 1.0


def test_a_stream_chooses_and_shuffles_without_bias() -> None:
    counts = np.zeros(4)
    places = np.zeros((4, 4))
    for seed in range(20_000):
        stream = Stream("test", seed)
        counts[stream.chosen([0.5, 0.0, 0.3, 0.2])] += 1
        items = list(range(4))
        stream.shuffle(items)
        for place, item in enumerate(items):
            places[place, item] += 1
    assert counts[1] == 0
    # Five standard errors.
    assert np.abs(counts / 20_000 - [0.5, 0.0, 0.3, 0.2]).max() < 5 * 0.5 / 141
    assert np.abs(places / 20_000 - 0.25).max() < 5 * 0.433 / 141
    assert {Stream(seed).chosen([0.0, 1e-9, 0.0]) for seed in range(9)} == {1}
    assert Stream("a").bits() != Stream("b").bits() != Stream("\ud800").bits()
