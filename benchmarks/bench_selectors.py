"""Each selector at 9 budgets, beside a majority vote of the same attempts and plain Python.

``TTSFRAME_BENCH_ATTEMPTS`` sets the number of attempts, 256 a problem (default 20,480).
``TTSFRAME_BENCH_ATTEMPTS=2000000 python benchmarks/bench_selectors.py`` prints the ratios to the
majority vote, all measured in turn in one run.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts
from ttsframe.votes.engine.registry import AnySelector, SelectorName

sys.path.append(str(Path(__file__).parents[1] / "tests" / "reference"))
from selection_oracle import pick

N_ATTEMPTS = int(os.environ.get("TTSFRAME_BENCH_ATTEMPTS", "20480"))
N_PER_PROBLEM = 256
N_ROUNDS = 5
N_CHECKED = 2
BUDGETS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
LIMIT = 4.0
"""What a selector may cost in units of the majority vote, on 2 million attempts."""


def make_run() -> pl.DataFrame:
    """Return a simulated run with uniform scores, none of them equal."""
    run = tts.simulate_trajectories(
        max(N_ATTEMPTS // N_PER_PROBLEM, 2), N_PER_PROBLEM, seed=0, keys=True, missing_share=0.05
    )
    return run.select(
        "problem_id",
        "attempt",
        "answer",
        "answer_key",
        "is_correct",
        score=pl.Series(np.random.default_rng(0).random(run.height)),
    )


def select(run: pl.DataFrame, name: AnySelector) -> pl.DataFrame:
    return tts.select_answers(run, selectors=name, budgets=BUDGETS)


def own_best() -> pl.Expr:
    """Pick as best_of_n does, as a selector of the user."""
    return pl.col("attempt").filter(pl.col("score") == pl.col("score").max()).min()


def in_python(attempts: list[dict[str, Any]], name: str) -> list[str | None]:
    """Pick in one problem as the oracle of the tests does: sorts and dicts."""
    return [pick(attempts, name, budget)["answer_key"] for budget in BUDGETS]


def majority_in_python(attempts: list[dict[str, Any]]) -> list[str | None]:
    """Vote as a user's script does."""
    winners = []
    for budget in BUDGETS:
        votes = Counter(a["answer_key"] for a in attempts[:budget] if a["answer_key"])
        winners.append(max(votes, key=votes.__getitem__) if votes else None)
    return winners


def slice_of(run: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return some problems as lists of dicts."""
    part = run.head(N_CHECKED * N_PER_PROBLEM)
    return {
        str(name): rows.to_dicts()
        for (name,), rows in part.partition_by("problem_id", as_dict=True).items()
    }


def check(run: pl.DataFrame, name: SelectorName) -> None:
    """Compare with plain Python on some problems."""
    found = select(run.head(N_CHECKED * N_PER_PROBLEM), name).sort("problem_id", "budget")
    for problem, attempts in slice_of(run).items():
        keys = found.filter(pl.col("problem_id") == problem)["answer_key"].to_list()
        assert keys == in_python(attempts, name), (name, problem)


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    return make_run()


@pytest.mark.parametrize("name", tts.SELECTORS)
def test_selector(benchmark: BenchmarkFixture, run: pl.DataFrame, name: SelectorName) -> None:
    benchmark.group = f"selectors on {N_ATTEMPTS:,} attempts"
    check(run, name)
    benchmark(lambda: select(run, name))


def test_own_selector(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"selectors on {N_ATTEMPTS:,} attempts"
    assert select(run, own_best)["attempt"].equals(select(run, "best_of_n")["attempt"])
    benchmark(lambda: select(run, own_best))


def test_python_loop(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"selectors on {N_ATTEMPTS:,} attempts"
    problems = [rows.sort("attempt").to_dicts() for rows in run.partition_by("problem_id")]
    found = select(run, "majority_vote").sort("problem_id", "budget")["answer_key"].to_list()
    problems.sort(key=lambda rows: rows[0]["problem_id"])
    assert found == [key for rows in problems for key in majority_in_python(rows)]
    benchmark.pedantic(lambda: [majority_in_python(rows) for rows in problems], rounds=1)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> int:
    """Print the ratios; the exit status is 1 where one is above its limit."""
    run = make_run()
    timings: dict[SelectorName, list[float]] = {name: [] for name in tts.SELECTORS}
    for name in timings:
        check(run, name)
    for _ in range(N_ROUNDS):
        for name, found in timings.items():
            found.append(seconds(lambda name=name: select(run, name)))
    print(f"{run.height:,} attempts, {len(BUDGETS)} budgets, polars {pl.__version__},")
    print(f"{pl.thread_pool_size()} threads, median and range of {N_ROUNDS} rounds\n")
    print(f"{'':<24}{'ms':>8}{'range':>16}{'/ majority':>12}")
    majority = statistics.median(timings["majority_vote"])
    for name, found in timings.items():
        median = statistics.median(found)
        span = f"{1e3 * min(found):.0f}-{1e3 * max(found):.0f}"
        print(f"{name:<24}{1e3 * median:>8.0f}{span:>16}{median / majority:>12.2f}")
    slowest = max(map(statistics.median, timings.values())) / majority
    print(f"\nslowest / majority: {slowest:.2f}, limit {LIMIT}")
    return int(slowest > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
