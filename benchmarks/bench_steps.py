"""Values of steps from rollouts, beside reading their columns and a loop over dicts.

Eight rollouts from each of six steps of a solution, four solutions a problem, in no order.
``TTSFRAME_BENCH_ROLLOUTS`` sets their number (default 19,200).
``TTSFRAME_BENCH_ROLLOUTS=1000000 python benchmarks/bench_steps.py`` prints the ratios of
`estimate_steps` to a warm streaming read of the columns `problem_id, solution_id, step, rollout,
is_correct`, written by `sink_parquet` with its defaults, and to one bare count by step, measured in
turn in one process; the exit status is 1 where the limit is passed.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ROLLOUTS = int(os.environ.get("TTSFRAME_BENCH_ROLLOUTS", "19200"))
N_PER_STEP = 8
N_STEPS = 6
SIZES = [1, 2, 4]
COLUMNS = ["problem_id", "solution_id", "step", "rollout", "is_correct"]
N_ROUNDS = 7
LIMIT = 6.0
"""What estimates may cost, in counts of the right rollouts of each step."""


def write_rollouts(folder: Path) -> Path:
    """Write rollouts whose chance to be right falls along the solution."""
    n = max(N_ROLLOUTS // (N_PER_STEP * N_STEPS), 1) * N_PER_STEP * N_STEPS
    place = np.random.default_rng(0).permutation(n)
    solution, step = place // (N_PER_STEP * N_STEPS), place // N_PER_STEP % N_STEPS
    path = folder / "rollouts.parquet"
    pl.DataFrame({
        "problem_id": [f"problem-{i:06d}" for i in solution // 4],
        "solution_id": solution,
        "step": step,
        "rollout": place % N_PER_STEP,
        "is_correct": np.random.default_rng(1).random(n) < 0.6 / (1 + step),
    }).lazy().sink_parquet(path)
    return path


def steps_in_python(rows: list[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Label step by step, as scripts do."""
    grades: dict[tuple[str, int, int], list[bool]] = defaultdict(list)
    for row in rows:
        grades[row["problem_id"], row["solution_id"], row["step"]].append(row["is_correct"])
    steps: dict[tuple[str, int, int], dict[str, Any]] = {}
    is_wrong_before = False
    for key in sorted(grades):
        n, c = len(grades[key]), sum(grades[key])
        if key[2] == 0:
            is_wrong_before = False
        before = steps.get((*key[:2], key[2] - 1))
        steps[key] = {
            "hard": c > 0,
            "soft": c / n,
            **{f"hard@{m}": 1 - math.comb(n - c, m) / math.comb(n, m) for m in SIZES},
            "advantage": None if before is None else c / n - before["soft"],
            "is_first_error": c == 0 and not is_wrong_before,
        }
        is_wrong_before = is_wrong_before or c == 0
    return steps


def estimate(path: Path) -> pl.DataFrame:
    """Estimate all steps of a file."""
    return tts.process.estimate_steps(pl.scan_parquet(path), n_rollouts=SIZES).collect(
        engine="streaming"
    )


def read(path: Path) -> pl.DataFrame:
    """Read the columns and do nothing."""
    return pl.scan_parquet(path).select(COLUMNS).collect(engine="streaming")


def count(path: Path) -> pl.DataFrame:
    """Count the rollouts of each step and do nothing with the counts."""
    is_right = pl.col("is_correct")
    steps = pl.scan_parquet(path).group_by("problem_id", "solution_id", "step")
    return steps.agg(is_right.count(), is_right.sum().alias("n_right")).collect(engine="streaming")


def check(path: Path) -> None:
    """Compare every step with plain Python."""
    expected = steps_in_python(read(path).to_dicts())
    found = estimate(path)
    assert found.height == len(expected)
    names = list(next(iter(expected.values())))
    columns = {name: [row[name] for row in expected.values()] for name in names}
    keys = found.select("problem_id", "solution_id", "step")
    assert keys.rows() == list(expected)
    for name, values in columns.items():
        for ours, theirs in zip(found[name].to_list(), values, strict=True):
            assert ours == theirs or abs(ours - theirs) < 1e-12, name


@pytest.fixture(scope="module")
def rollouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_rollouts(tmp_path_factory.mktemp("steps"))
    check(path)
    return path


@pytest.mark.benchmark(group="steps")
def test_steps_are_estimated(benchmark: BenchmarkFixture, rollouts: Path) -> None:
    benchmark(estimate, rollouts)


@pytest.mark.benchmark(group="steps")
def test_columns_are_read(benchmark: BenchmarkFixture, rollouts: Path) -> None:
    benchmark(read, rollouts)


@pytest.mark.benchmark(group="steps")
def test_steps_are_estimated_in_python(benchmark: BenchmarkFixture, rollouts: Path) -> None:
    rows = read(rollouts).to_dicts()
    benchmark.pedantic(steps_in_python, args=(rows,), rounds=1)


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    """Print medians and ratios; the exit status is 1 where the limit is passed."""
    timed = {"read": read, "count by step": count, "estimate_steps": estimate}
    timings: dict[str, list[float]] = {name: [] for name in timed}
    with tempfile.TemporaryDirectory() as folder:
        path = write_rollouts(Path(folder))
        check(path)
        for _ in range(N_ROUNDS):
            for name, work in timed.items():
                timings[name].append(seconds(partial(work, path)))
        rows = read(path).to_dicts()
        timings["dicts in Python"] = [seconds(partial(steps_in_python, rows))]
    # Those in the same round share what else the machine does.
    counted = timings["count by step"]
    ratios = [a / b for a, b in zip(timings["estimate_steps"], counted, strict=True)]
    reading = statistics.median(timings["read"])
    print(f"{N_ROLLOUTS:,} rollouts, {pl.thread_pool_size()} threads, {N_ROUNDS} rounds\n")
    print(f"{'':<18}{'ms':>8}{'range':>16}{'/ read':>8}")
    for name, found in timings.items():
        span = f"{1e3 * min(found):.0f}-{1e3 * max(found):.0f}"
        middle = statistics.median(found)
        print(f"{name:<18}{1e3 * middle:>8.0f}{span:>16}{middle / reading:>8.1f}")
    print(f"\nestimate_steps is {statistics.median(ratios):.1f} counts by step (limit {LIMIT:g})")
    return int(statistics.median(ratios) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
