"""Expected accuracy at 9 budgets: counted, sampled, and beside plain Python that samples.

``TTSFRAME_BENCH_PROBLEMS`` sets the number of problems of 256 attempts (default 40).
``TTSFRAME_BENCH_PROBLEMS=10000 python benchmarks/bench_expected.py`` prints the table, and what
an exact majority costs against a sampled one by the number of attempts and answers, from which
the rule between them was read.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import resource
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts
from ttsframe.votes.expectation import subset_votes as _subset_votes
from ttsframe.votes.expectation.majority import Pool, majority_accuracy

N_PROBLEMS = int(os.environ.get("TTSFRAME_BENCH_PROBLEMS", "40"))
N_ATTEMPTS = 256
N_SUBSETS = 200
N_IN_PYTHON = 10
BUDGETS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
LIMIT = 60.0
"""Seconds for 10,000 problems, counted or sampled."""

SELECTORS: dict[str, list[Any]] = {
    "closed forms": ["oracle", "best_of_n", "first_valid"],
    "majority, counted": ["majority_vote"],
    "majority, sampled": ["majority_vote"],
    "weighted, sampled": ["weighted_vote"],
}


def make_run(n_problems: int) -> pl.DataFrame:
    return tts.simulate_trajectories(n_problems, N_ATTEMPTS, seed=0, keys=True).select(
        "problem_id",
        "attempt",
        "answer_key",
        "is_correct",
        score=pl.col("step_scores").list.last(),
    )


def expect(run: pl.DataFrame, name: str) -> pl.DataFrame:
    """Run one of the table's rows; a sampled majority by turning the count off."""
    worthwhile = _subset_votes._WORTHWHILE
    if name == "majority, sampled":
        _subset_votes._WORTHWHILE = -1.0
    try:
        return tts.expected_accuracy(
            run, selectors=SELECTORS[name], budgets=BUDGETS, n_subsets=N_SUBSETS
        )
    finally:
        _subset_votes._WORTHWHILE = worthwhile


def majority_in_python(run: pl.DataFrame) -> dict[int, float]:
    """Sample subsets as a user's script does: `random.sample` and a `Counter` each time."""
    problems: defaultdict[str, list[tuple[str | None, bool]]] = defaultdict(list)
    for name, key, is_correct in run.select("problem_id", "answer_key", "is_correct").rows():
        problems[name].append((key, is_correct))
    draws = random.Random(0)
    right = dict.fromkeys(BUDGETS, 0.0)
    for attempts in problems.values():
        for budget, _ in itertools.product(BUDGETS, range(N_SUBSETS)):
            voters = [each for each in draws.sample(attempts, budget) if each[0] is not None]
            if voters:
                votes = Counter(key for key, _ in voters)
                top = max(votes.values())
                leading = {key for key, n in votes.items() if n == top}
                grades = [dict(voters)[key] for key in leading]
                right[budget] += sum(grades) / len(grades)
    return {budget: total / (N_SUBSETS * len(problems)) for budget, total in right.items()}


def check(run: pl.DataFrame) -> None:
    """Compare the counted, the sampled and the plain majority."""
    part = run.head(N_IN_PYTHON * N_ATTEMPTS)
    counted, sampled = (expect(part, name) for name in ("majority, counted", "majority, sampled"))
    error = pl.col("monte_carlo_error")
    joint = (error**2).sum().sqrt() / pl.len()
    exact = counted.group_by("budget").agg(pl.col("value").mean(), error.max())
    assert exact["monte_carlo_error"].max() == 0.0
    drawn = sampled.group_by("budget").agg(drawn=pl.col("value").mean(), error=joint)
    plain = majority_in_python(part)
    for row in exact.join(drawn, on="budget").iter_rows(named=True):
        assert abs(row["drawn"] - row["value"]) < 4.5 * row["error"] + 1e-3, row
        # At a budget of 1 only the loop samples.
        most = (0.25 / (N_SUBSETS * N_IN_PYTHON)) ** 0.5
        assert abs(plain[row["budget"]] - row["value"]) < 4.5 * most, row


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    made = make_run(N_PROBLEMS)
    check(made)
    return made


@pytest.mark.parametrize("name", SELECTORS)
def test_expected(benchmark: BenchmarkFixture, run: pl.DataFrame, name: str) -> None:
    benchmark.group = f"expected accuracy of {N_PROBLEMS:,} problems"
    benchmark.pedantic(lambda: expect(run, name), rounds=3)


def test_python_loop(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"expected accuracy of {N_PROBLEMS:,} problems"
    benchmark.pedantic(lambda: majority_in_python(run), rounds=1)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def crossover() -> None:
    """Print the time of a count in units of that of a sample, by attempts and answers."""
    print(f"\nmajority at n/2: count / {N_SUBSETS} samples; c: counted by the rule\n")
    sizes = [64, 256, 1_024, 4_096, 16_384]
    print(f"{'answers':>8}" + "".join(f"{n:>14,}" for n in sizes))
    for n_answers in (2, 8, 32, 128):
        cells = [_ratio(n, n_answers) for n in sizes]
        print(f"{n_answers:>8}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def _ratio(n: int, n_answers: int) -> str:
    shares = 1.0 / np.arange(1.0, n_answers + 1.0)
    counts = np.maximum((n * shares / shares.sum()).astype(np.int64), 1)
    answer = np.repeat(np.arange(n_answers), counts)
    n = len(answer)
    grade = (answer == 0).astype(np.float64)
    poll = _subset_votes.Poll(answer, n_answers, np.ones(n), grade, "equal")
    sampling = _subset_votes.Sampling(N_SUBSETS, 0)
    pool = Pool(counts, (np.arange(n_answers) == 0).astype(np.float64), n)
    budgets = np.array([n // 2])

    def sample() -> None:
        for order in _subset_votes.shuffles(sampling, "p", n):
            _subset_votes.vote_in_subsets(poll, order, budgets)

    count = _median(lambda: majority_accuracy(pool, n // 2))
    most = _subset_votes._WORTHWHILE * N_SUBSETS * n
    is_counted = not math.isnan(majority_accuracy(pool, n // 2, most=most))
    return f"{count / _median(sample):.2f}{' c' if is_counted else '  '}"


def _median(work: Callable[[], object], rounds: Sequence[int] = range(3)) -> float:
    return statistics.median(seconds(work) for _ in rounds)


def main() -> int:
    """Print the tables; the exit status is 1 where a majority is above its limit."""
    run = make_run(N_PROBLEMS)
    check(run)
    timings = {name: seconds(lambda name=name: expect(run, name)) for name in SELECTORS}
    part = run.head(N_IN_PYTHON * N_ATTEMPTS)
    loop = seconds(lambda: majority_in_python(part)) * N_PROBLEMS / N_IN_PYTHON
    print(f"\n{N_PROBLEMS:,} problems x {N_ATTEMPTS} attempts, {len(BUDGETS)} budgets,")
    print(f"{N_SUBSETS} subsets, polars {pl.__version__}, {pl.thread_pool_size()} threads\n")
    for name, found in timings.items():
        print(f"{name:<20}{found:>10.2f} s")
    print(f"{'Python, sampled':<20}{loop:>10.0f} s, from {N_IN_PYTHON} problems")
    sampled = timings["majority, sampled"]
    print(f"sampling is {loop / sampled:.0f} times faster than the Python loop")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")
    crossover()
    worst = max(sampled, timings["majority, counted"]) * 10_000 / N_PROBLEMS
    print(f"\nmajority of 10,000 problems: {worst:.0f} s, limit {LIMIT:.0f} s")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
