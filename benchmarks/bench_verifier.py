"""Time of `verifier_report`, compared with reading its columns and with plain Python.

Attempts with 8 step scores, 256 a problem. ``TTSFRAME_BENCH_ATTEMPTS`` sets their number (default
20,480). ``TTSFRAME_BENCH_ATTEMPTS=1000000 python benchmarks/bench_verifier.py`` prints the ratio of
the report to a warm streaming read of the columns `problem_id, attempt, answer_key, is_correct,
step_scores`, written by `sink_parquet` with its defaults, measured in turn in one process, for one
reduction of the step scores and for all: of wall time, and of CPU time, which depends less
on the load of the machine. The exit status is 1 if a report on one reduction exceeds the limit.
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
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ATTEMPTS = int(os.environ.get("TTSFRAME_BENCH_ATTEMPTS", "20480"))
N_PER_PROBLEM = 256
COLUMNS = ["problem_id", "attempt", "answer_key", "is_correct", "step_scores"]
N_IN_PYTHON = 20_000
N_ROUNDS = 9
LIMIT = 10.0
"""Maximum time of a report on one reduction, as a multiple of the read."""

REDUCTIONS = {"one reduction": ["last"], "all reductions": list(tts.STEP_REDUCTIONS)}


def write_run(folder: Path) -> Path:
    """Write a simulated run with 8 uniform scores an attempt."""
    run = tts.simulate_trajectories(
        max(N_ATTEMPTS // N_PER_PROBLEM, 2), N_PER_PROBLEM, seed=0, keys=True
    )
    scores = np.random.default_rng(0).random((run.height, 8))
    lists = pl.Series(scores, dtype=pl.Array(pl.Float64, 8)).cast(pl.List(pl.Float64))
    path = folder / "run.parquet"
    run.with_columns(step_scores=lists).select(COLUMNS).lazy().sink_parquet(path)
    return path


def metrics_in_python(rows: list[tuple[str, bool, float]]) -> dict[str, float]:
    """Compute the metrics attempt by attempt, as scripts do."""
    problems: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for problem, is_correct, score in rows:
        problems[problem].append((score, is_correct))
    areas = [area for part in problems.values() if (area := area_in_python(part)) is not None]
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for _, is_correct, score in rows:
        bins[max(math.ceil(score * 10), 1)].append((score, is_correct))
    return {
        "auroc": area_in_python([(score, is_correct) for _, is_correct, score in rows]) or 0.0,
        "auroc_within": sum(areas) / len(areas),
        "brier": sum((score - is_correct) ** 2 for _, is_correct, score in rows) / len(rows),
        "ece_equal_width": sum(
            abs(sum(score - is_correct for score, is_correct in part)) for part in bins.values()
        )
        / len(rows),
    }


def area_in_python(marks: list[tuple[float, bool]]) -> float | None:
    """Count pairs in ascending order; ties count one half."""
    n_right = sum(is_correct for _, is_correct in marks)
    n_pairs = n_right * (len(marks) - n_right)
    tied: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for score, is_correct in marks:
        tied[score][is_correct] += 1
    below, total = 0, 0.0
    for score in sorted(tied):
        wrong, right = tied[score]
        total += right * (below + wrong / 2)
        below += wrong
    return total / n_pairs if n_pairs else None


def check(path: Path) -> list[tuple[str, bool, float]]:
    """Compare with plain Python on some of the problems, and return their rows."""
    run = pl.scan_parquet(path)
    n_problems = max(min(N_ATTEMPTS, N_IN_PYTHON) // N_PER_PROBLEM, 2)
    chosen = run.select("problem_id").unique().sort("problem_id").head(n_problems)
    part = run.join(chosen, on="problem_id", how="semi").collect()
    report = tts.verifier_report(part, reductions=REDUCTIONS["all reductions"])
    for found in report.metrics.iter_rows(named=True):
        expected = metrics_in_python(rows_of(part, found["reduction"]))
        if found["calibration_status"] != "ok":
            expected = {name: expected[name] for name in ("auroc", "auroc_within")}
        for name, value in expected.items():
            assert abs(found[name] - value) < 1e-12, (found["reduction"], name)
    # A sum of probabilities is not a probability, so it has no reliability.
    assert report.reliability["n_attempts"].sum() == 2 * 7 * part.height
    assert report.distribution["n_attempts"].sum() == 8 * part.height
    assert report.over_optimization is not None
    first = report.over_optimization.filter(budget=1)["accuracy"]
    assert abs(first - part.filter(attempt=0)["is_correct"].mean()).max() < 1e-12
    return rows_of(part, "last")


def rows_of(part: pl.DataFrame, reduction: str) -> list[tuple[str, bool, float]]:
    """Return the input of `metrics_in_python`."""
    score = tts.STEP_REDUCTIONS[reduction]("step_scores")
    return part.select("problem_id", "is_correct", score).rows()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_run(tmp_path_factory.mktemp("verifier"))
    check(path)
    return path


def read(path: Path) -> pl.DataFrame:
    return pl.scan_parquet(path).collect(engine="streaming")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_report(benchmark: BenchmarkFixture, run: Path, name: str) -> None:
    benchmark.group = f"verifier of {N_ATTEMPTS:,} attempts"
    benchmark(lambda: tts.verifier_report(pl.scan_parquet(run), reductions=REDUCTIONS[name]))


def test_read(benchmark: BenchmarkFixture, run: Path) -> None:
    benchmark.group = f"verifier of {N_ATTEMPTS:,} attempts"
    benchmark(lambda: read(run))


def test_python_loop(benchmark: BenchmarkFixture, run: Path) -> None:
    benchmark.group = f"verifier of {N_ATTEMPTS:,} attempts"
    rows = check(run)
    benchmark.pedantic(lambda: metrics_in_python(rows), rounds=1)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time."""
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def main() -> int:
    """Print medians and ratios to the read; the exit status is 1 if the limit is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_run(Path(folder))
        rows = check(path)
        scan = pl.scan_parquet(path)
        timed: dict[str, Callable[[], object]] = {"read": lambda: read(path)} | {
            name: lambda names=names: tts.verifier_report(scan, reductions=names)
            for name, names in REDUCTIONS.items()
        }
        for work in timed.values():
            work()
        timings: dict[str, list[tuple[float, float]]] = {name: [] for name in timed}
        for _ in range(N_ROUNDS):
            for name, work in timed.items():
                timings[name].append(seconds(work))
        loop = seconds(lambda: metrics_in_python(rows))[0] * N_ATTEMPTS / len(rows)
    # Ratios within a round, which have the same load of the machine.
    ratios = {
        name: [
            statistics.median(a[i] / b[i] for a, b in zip(found, timings["read"], strict=True))
            for i in (0, 1)
        ]
        for name, found in timings.items()
    }
    print(f"{N_ATTEMPTS:,} attempts, {pl.thread_pool_size()} threads, {N_ROUNDS} rounds\n")
    print(f"{'':<18}{'ms':>8}{'range':>16}{'/ read':>8}{'cpu ms':>10}{'/ read':>8}")
    for name, found in timings.items():
        passed, busy = ([1e3 * pair[i] for pair in found] for i in (0, 1))
        span = f"{min(passed):.0f}-{max(passed):.0f}"
        print(
            f"{name:<18}{statistics.median(passed):>8.0f}{span:>16}{ratios[name][0]:>8.2f}"
            f"{statistics.median(busy):>10.0f}{ratios[name][1]:>8.2f}"
        )
    print(f"{'metrics in Python':<18}{1e3 * loop:>8.0f}{'from a slice':>16}")
    return int(ratios["one reduction"][0] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
