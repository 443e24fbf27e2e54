"""Aggregating stored responses by complexity and K, beside verifying them and a plain loop.

``TTSFRAME_BENCH_RESPONSES`` sets the number of responses, 10 an instance (default 10,000).
``TTSFRAME_BENCH_RESPONSES=100000 python benchmarks/bench_evaluator.py`` prints processor times and their
ratios to a loop that counts prefixes; "the same results" is a loop that keeps what the evaluator returns.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections import Counter
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ttsframe.evaluator import (
    AggregatedResult,
    EvaluationResult,
    Evaluator,
    Task,
    TaskInstance,
    TaskResult,
)

N_RESPONSES = int(os.environ.get("TTSFRAME_BENCH_RESPONSES", "10000"))
N_LEVELS = 10
N_TRIALS = max(N_RESPONSES // (10 * N_LEVELS), 2)
K_VALUES = (1, 5, 10)
N_ROUNDS = 5


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


def results_in_python(task: Stored) -> list[AggregatedResult]:
    """Vote as `in_python` does, verify each response once, and keep what the evaluator returns of it."""
    kept = []
    for one in (instance for instances in task.instances.values() for instance in instances):
        known: dict[str, tuple[str | None, TaskResult]] = {}
        for k in K_VALUES:
            responses = task(one.prompt, k)
            for response in responses:
                if response not in known:
                    known[response] = task.parse(response), task.verify_solution(one, response)
            answers, verdicts = zip(*(known[response] for response in responses), strict=True)
            answer, n_votes = Counter(answers).most_common(1)[0]
            attempt, n_correct = answers.index(answer), sum(each.is_correct for each in verdicts)
            kept.append(
                AggregatedResult(
                    responses[attempt],
                    verdicts[attempt].is_correct,
                    k,
                    "majority_vote",
                    [*verdicts],
                    n_votes / k,
                    n_correct > 0,
                    n_correct,
                    {"attempt": attempt, "answer": answer},
                )
            )
    return kept


@pytest.fixture(scope="module")
def task() -> Stored:
    task = Stored()
    found = evaluate(task, reuse=False)
    assert {k: result.accuracy_by_complexity for k, result in found.items()} == in_python(task)
    assert sum(one.num_correct for one in found[10].all_results) == verified(task)
    plain, shown = (
        sorted(map(repr, results))
        for results in (
            results_in_python(task),
            [one for result in found.values() for one in result.all_results],
        )
    )
    assert plain == shown
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


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of work, whose result is freed outside of it."""
    gc.collect()
    start = time.process_time()
    kept = work()
    passed = time.process_time() - start
    del kept
    return passed


def main() -> None:
    stored = Stored()
    works: dict[str, Callable[[], object]] = {
        "loop over prefixes": lambda: in_python(stored),
        "loop, the same results": lambda: results_in_python(stored),
        "evaluate": lambda: evaluate(stored, reuse=False),
        "evaluate, reuse": lambda: evaluate(stored, reuse=True),
    }
    print(f"{N_RESPONSES:,} responses, K = 1, 5, 10, least processor time of {N_ROUNDS} rounds\n")
    print(f"{'':<24}{'ms':>8}{'/ loop':>8}{'ms, no GC':>12}{'/ loop':>8}")
    times: dict[bool, dict[str, float]] = {}
    for is_collected in (True, False):
        (gc.enable if is_collected else gc.disable)()
        rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(N_ROUNDS)]
        times[is_collected] = {name: min(each[name] for each in rounds) for name in works}
    for name in works:
        cells = [
            f"{1e3 * of[name]:>{width}.0f}{of[name] / of['loop over prefixes']:>8.1f}"
            for width, of in ((8, times[True]), (12, times[False]))
        ]
        print(f"{name:<24}{''.join(cells)}")


if __name__ == "__main__":
    main()
