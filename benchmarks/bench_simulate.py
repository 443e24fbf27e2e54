"""Simulated runs and their validation, beside plain Python loops that do the same.

``TTSFRAME_BENCH_ROWS`` sets the number of attempts (default 20,000), 64 at each problem.
``TTSFRAME_BENCH_ROWS=10000000 python benchmarks/bench_simulate.py`` prints seconds and sizes.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections import defaultdict

import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ROWS = int(os.environ.get("TTSFRAME_BENCH_ROWS", "20000"))
N_ATTEMPTS = 64
N_PROBLEMS = max(1, N_ROWS // N_ATTEMPTS)
CONTENTS: dict[str, dict[str, bool]] = {
    "answers": {},
    "keys": {"keys": True},
    "texts": {"texts": True},
}


def simulate(content: str) -> pl.DataFrame:
    return tts.simulate_trajectories(N_PROBLEMS, N_ATTEMPTS, seed=0, **CONTENTS[content])


def simulate_in_python() -> list[dict[str, object]]:
    """Simulate the same kind of run with a dict per attempt."""
    rng = random.Random(0)
    rows: list[dict[str, object]] = []
    shares = [1 / rank for rank in range(1, 21)]
    for problem in range(N_PROBLEMS):
        accuracy = 0.97 * rng.betavariate(1.0, 1.0)
        values = rng.sample(range(1, 1_000), 21)
        for attempt in range(N_ATTEMPTS):
            outcome = rng.random()
            is_correct = outcome < accuracy
            value = values[0] if is_correct else rng.choices(values[1:], shares)[0]
            spelled = f"{value}.0" if rng.random() < 0.4 else str(value)
            n_steps = rng.randint(3, 12)
            drift = (0.75 if is_correct else -0.75) / n_steps
            quality = 1.0 + rng.gauss(0.0, 0.5**0.5)
            latent = [
                quality + step * drift + rng.gauss(0.0, 0.5**0.5) for step in range(1, n_steps + 1)
            ]
            rows.append({
                "problem_id": f"sim-{problem:06d}",
                "attempt": attempt,
                "step_scores": [0.5 + 0.5 * q / (1.0 + q * q) ** 0.5 for q in latent],
                "answer": None if outcome >= 0.97 else spelled,
                "gold": str(values[0]),
                "n_tokens": n_steps * rng.randint(20, 59),
                "true_is_correct": is_correct,
            })
    return rows


def validate_in_python(rows: list[dict[str, object]]) -> tuple[int, int, int, int]:
    """Count missing answers, duplicate attempts, scores out of range and ragged problems."""
    seen = defaultdict(set)
    missing = duplicates = outside = 0
    for row in rows:
        missing += row["answer"] is None
        duplicates += row["attempt"] in seen[row["problem_id"]]
        seen[row["problem_id"]].add(row["attempt"])
        outside += sum(not 0.0 <= score <= 1.0 for score in row["step_scores"])
    most = max(map(len, seen.values()))
    return missing, duplicates, outside, sum(len(numbers) < most for numbers in seen.values())


def check(run: pl.DataFrame) -> None:
    """Check that the run holds the truth that it states, before anything is timed."""
    assert run.height == N_PROBLEMS * N_ATTEMPTS
    accuracy, observed = run.select("true_accuracy", "true_is_correct").mean().row(0)
    assert abs(accuracy - observed) < 5 * 0.5 / run.height**0.5
    assert run["step_scores"].list.len().min() == 3
    assert run["step_scores"].list.len().max() == 12


@pytest.mark.parametrize("content", CONTENTS)
def test_simulate(benchmark: BenchmarkFixture, content: str) -> None:
    benchmark.group = f"simulating {N_ROWS:,} attempts"
    check(simulate(content))
    benchmark(simulate, content)


def test_simulate_in_python(benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"simulating {N_ROWS:,} attempts"
    rows = benchmark.pedantic(simulate_in_python, rounds=1)
    assert len(rows) == N_PROBLEMS * N_ATTEMPTS


@pytest.mark.parametrize("content", ["keys", "texts"])
def test_validate(benchmark: BenchmarkFixture, content: str) -> None:
    benchmark.group = f"validating {N_ROWS:,} attempts"
    run = simulate(content)
    found = {each.code: each.count for each in tts.validate_trajectories(run).findings}
    expected = run["true_key"].null_count()
    assert found == ({} if content == "texts" else {"missing_answers": expected})
    benchmark(tts.validate_trajectories, run)


def test_validate_in_python(benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"validating {N_ROWS:,} attempts"
    run = simulate("keys")
    rows = run.select("problem_id", "attempt", "answer", "step_scores").to_dicts()
    found = benchmark.pedantic(validate_in_python, (rows,), rounds=1)
    assert found == (run["answer"].null_count(), 0, 0, 0)


def main() -> None:
    """Print what each content takes, and its validation."""
    print(
        f"{N_PROBLEMS * N_ATTEMPTS:,} attempts, polars {pl.__version__}, {os.cpu_count()} cores\n"
    )
    print(f"{'content':<10}{'simulate s':>12}{'validate s':>12}{'frame MB':>10}{'peak MB':>10}")
    for content in ("answers", "keys"):
        start = time.perf_counter()
        run = simulate(content)
        simulated = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        check(run)
        start = time.perf_counter()
        tts.validate_trajectories(run)
        validated = time.perf_counter() - start
        print(
            f"{content:<10}{simulated:>12.2f}{validated:>12.2f}"
            f"{run.estimated_size('mb'):>10.0f}{peak:>10.0f}"
        )
        del run


if __name__ == "__main__":
    sys.exit(main())
