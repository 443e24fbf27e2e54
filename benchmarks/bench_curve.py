"""Keyed attempts to a curve of 3 selectors x 9 budgets, beside reading and beside plain Python.

``TTSFRAME_BENCH_ATTEMPTS`` sets the number of attempts, 256 a problem (default 20,480).
``TTSFRAME_BENCH_ATTEMPTS=2000000 python benchmarks/bench_curve.py`` prints the ratios to a warm
streaming read of the columns `problem_id, attempt, answer_key, is_correct, step_scores`, 8 random
scores an attempt, written by `sink_parquet` with its defaults; all measured in turn in one run.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ATTEMPTS = int(os.environ.get("TTSFRAME_BENCH_ATTEMPTS", "20480"))
N_PER_PROBLEM = 256
N_ROUNDS = 11
N_IN_PYTHON = 200_000
BUDGETS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SELECTORS = ["majority_vote", "weighted_vote", "best_of_n"]
COLUMNS = ["problem_id", "attempt", "answer_key", "is_correct", "step_scores"]
LIMIT = 4.0
"""What the curve may cost in units of the read, on 2 million attempts."""


def write_run(folder: Path, *, shuffled: bool = False) -> Path:
    """Write a simulated run with 8 uniform scores an attempt."""
    n_problems = max(N_ATTEMPTS // N_PER_PROBLEM, 2)
    run = tts.simulate_trajectories(n_problems, N_PER_PROBLEM, seed=0, keys=True)
    scores = np.random.default_rng(0).random((run.height, 8))
    lists = pl.Series(scores, dtype=pl.Array(pl.Float64, 8)).cast(pl.List(pl.Float64))
    run = run.with_columns(step_scores=lists).select(COLUMNS)
    if shuffled:
        run = run.sample(fraction=1.0, shuffle=True, seed=0)
    path = folder / f"run-{'shuffled' if shuffled else 'sorted'}.parquet"
    run.lazy().sink_parquet(path)
    return path


def plans(path: Path) -> dict[str, pl.LazyFrame]:
    """Return what is timed; the first is the unit."""
    run = pl.scan_parquet(path)
    problems = tts.select_answers(run, selectors=SELECTORS, reductions=["last"], budgets=BUDGETS)
    return {
        "read": run.select(COLUMNS),
        "bare group_by": run.group_by("problem_id", "answer_key").len(),
        "votes": tts.tally_votes(run, reductions=["last"], budgets=BUDGETS),
        "problems": problems,
        "curve": tts.scaling_curve(problems),
    }


def curve_in_python(rows: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """Compute the accuracies as a search-and-learn user's script does: dicts in loops."""
    attempts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        attempts[row["problem_id"]].append(row)
    right: defaultdict[tuple[str, int], int] = defaultdict(int)
    for group in attempts.values():
        group.sort(key=lambda row: row["attempt"])
        for budget in BUDGETS:
            within = group[:budget]
            votes: defaultdict[str, int] = defaultdict(int)
            weights: defaultdict[str, float] = defaultdict(float)
            grades: dict[str, bool] = {}
            for row in within:
                if row["answer_key"] is not None:
                    votes[row["answer_key"]] += 1
                    weights[row["answer_key"]] += row["step_scores"][-1]
                    grades.setdefault(row["answer_key"], row["is_correct"])
            best = max(within, key=lambda row: row["step_scores"][-1])
            right["best_of_n", budget] += best["is_correct"]
            if votes:
                right["majority_vote", budget] += grades[max(votes, key=votes.__getitem__)]
                right["weighted_vote", budget] += grades[max(weights, key=weights.__getitem__)]
    return {line: n / len(attempts) for line, n in right.items()}


def check(path: Path) -> list[dict[str, Any]]:
    """Compare with plain Python on a slice of whole problems; return that slice's rows."""
    n_problems = max(min(N_ATTEMPTS, N_IN_PYTHON) // N_PER_PROBLEM, 2)
    run = pl.scan_parquet(path)
    chosen = run.select("problem_id").unique().sort("problem_id").head(n_problems)
    part = run.join(chosen, on="problem_id", how="semi").collect()
    rows = part.to_dicts()
    problems = tts.select_answers(part, selectors=SELECTORS, reductions=["last"], budgets=BUDGETS)
    curve = tts.scaling_curve(problems)
    found = {
        (selector, budget): accuracy
        for selector, budget, accuracy in curve.select("selector", "budget", "accuracy").rows()
    }
    expected = curve_in_python(rows)
    assert found.keys() >= expected.keys()
    for line, accuracy in found.items():
        assert abs(accuracy - expected.get(line, 0.0)) < 1e-12, line
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_run(tmp_path_factory.mktemp("curve"))
    check(path)
    return path


@pytest.mark.parametrize("name", ["read", "bare group_by", "votes", "problems", "curve"])
def test_plan(benchmark: BenchmarkFixture, run: Path, name: str) -> None:
    benchmark.group = f"curve of {N_ATTEMPTS:,} attempts"
    plan = plans(run)[name]
    benchmark(lambda: plan.collect(engine="streaming"))


def test_python_loop(benchmark: BenchmarkFixture, run: Path) -> None:
    benchmark.group = f"curve of {N_ATTEMPTS:,} attempts"
    rows = check(run)
    benchmark.pedantic(lambda: curve_in_python(rows), rounds=1)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def report(path: Path) -> float:
    """Print the ratios to the read; return that of the curve."""
    rows = check(path)
    timed = plans(path)
    for plan in timed.values():
        plan.collect(engine="streaming")
    timings: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(N_ROUNDS):
        for name, plan in timed.items():
            timings[name].append(seconds(lambda plan=plan: plan.collect(engine="streaming")))
    loop = seconds(lambda: curve_in_python(rows)) * N_ATTEMPTS / len(rows)
    print(f"\n{path.stem}: {N_ATTEMPTS:,} attempts, polars {pl.__version__},")
    print(f"{pl.thread_pool_size()} threads, median and range of {N_ROUNDS} rounds\n")
    print(f"{'':<16}{'ms':>8}{'range':>16}{'/ read':>8}{'/ group_by':>12}")
    read = statistics.median(timings["read"])
    grouped = statistics.median(timings["bare group_by"])
    for name, found in timings.items():
        median = statistics.median(found)
        span = f"{1e3 * min(found):.0f}-{1e3 * max(found):.0f}"
        print(
            f"{name:<16}{1e3 * median:>8.0f}{span:>16}{median / read:>8.2f}{median / grouped:>12.2f}"
        )
    curve = statistics.median(timings["curve"])
    print(f"{'Python loop':<16}{1e3 * loop:>8.0f}{'from a slice':>16}{loop / read:>8.0f}")
    print(f"the curve is {loop / curve:.0f} times faster than the loop")
    return curve / read


def main() -> int:
    """Print the tables; the exit status is 1 where the sorted run is above its limit."""
    with tempfile.TemporaryDirectory() as folder:
        ratio = report(write_run(Path(folder)))
        report(write_run(Path(folder), shuffled=True))
    print(f"\ncurve / read: {ratio:.2f}, limit {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
