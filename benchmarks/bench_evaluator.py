"""Aggregating stored responses by complexity and K, beside verifying them and a plain loop.

``TTSFRAME_BENCH_RESPONSES`` sets the number of responses, 10 an instance (default 10,000).
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ttsframe.evaluator import EvaluationResult, Evaluator, Task, TaskInstance, TaskResult

N_RESPONSES = int(os.environ.get("TTSFRAME_BENCH_RESPONSES", "10000"))
N_LEVELS = 10
N_TRIALS = max(N_RESPONSES // (10 * N_LEVELS), 2)
K_VALUES = (1, 5, 10)


class Stored(Task):
    """A task that costs next to nothing, so that what is timed is the aggregation."""

    name = "stored"

    def __init__(self) -> None:
        self.instances = {
            level: [TaskInstance(f"{level}/{i}", level, f"a{i}") for i in range(N_TRIALS)]
            for level in range(1, N_LEVELS + 1)
        }
        rng = random.Random(0)
        self.responses = {
            one.prompt: [
                f"{one.ground_truth if rng.random() < 1 - level / 12 else rng.choice('xyz')}|{rng.random()}"
                for _ in range(10)
            ]
            for level, of_level in self.instances.items()
            for one in of_level
        }

    def generate_instance(self, complexity: int) -> TaskInstance:
        return self.instances[complexity][0]

    def generate_batch(
        self, complexity_range: tuple[int, int], instances_per_level: int = 1
    ) -> list[TaskInstance]:
        return self.instances[complexity_range[0]][:instances_per_level]

    def parse(self, response: str) -> str | None:
        return response.partition("|")[0]

    def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
        is_correct = self.parse(response) == instance.ground_truth
        return TaskResult(response, is_correct, instance.complexity)

    def __call__(self, prompt: str, k: int) -> list[str]:
        return self.responses[prompt][:k]


def evaluate(task: Stored, *, reuse: bool) -> dict[int, EvaluationResult]:
    """Evaluate all stored responses."""
    return Evaluator(task).evaluate(
        task, (1, N_LEVELS), K_VALUES, N_TRIALS, verbose=False, reuse=reuse
    )


def in_python(task: Stored) -> dict[int, dict[int, float]]:
    """Vote in loops over the first K responses of each instance."""
    accuracy: dict[int, dict[int, float]] = {k: {} for k in K_VALUES}
    for level, instances in task.instances.items():
        for k in K_VALUES:
            n_right = 0
            for one in instances:
                votes = Counter(task.parse(response) for response in task(one.prompt, k))
                n_right += votes.most_common(1)[0][0] == one.ground_truth
            accuracy[k][level] = n_right / len(instances)
    return accuracy


def verified(task: Stored) -> int:
    """Verify every response once."""
    return sum(
        task.verify_solution(one, response).is_correct
        for of_level in task.instances.values()
        for one in of_level
        for response in task(one.prompt, 10)
    )


@pytest.fixture(scope="module")
def task() -> Stored:
    task = Stored()
    found = evaluate(task, reuse=False)
    assert {k: result.accuracy_by_complexity for k, result in found.items()} == in_python(task)
    assert sum(one.num_correct for one in found[10].all_results) == verified(task)
    return task


@pytest.mark.parametrize("reuse", [False, True])
def test_evaluate(benchmark: BenchmarkFixture, task: Stored, *, reuse: bool) -> None:
    benchmark.group = f"evaluate {N_RESPONSES:,} responses at K = 1, 5, 10"
    benchmark(evaluate, task, reuse=reuse)


def test_verify_each_response_alone(benchmark: BenchmarkFixture, task: Stored) -> None:
    benchmark.group = f"evaluate {N_RESPONSES:,} responses at K = 1, 5, 10"
    benchmark(verified, task)


def test_python_loop_over_prefixes(benchmark: BenchmarkFixture, task: Stored) -> None:
    benchmark.group = f"evaluate {N_RESPONSES:,} responses at K = 1, 5, 10"
    benchmark(in_python, task)


def test_compare_k_scaling(benchmark: BenchmarkFixture, task: Stored) -> None:
    benchmark.group = f"compare K on {N_RESPONSES:,} responses"
    results = evaluate(task, reuse=True)
    benchmark(Evaluator(task).compare_k_scaling, results)
