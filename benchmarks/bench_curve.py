"""Keyed attempts to curves, beside reading, a bare group_by, DuckDB and plain Python.

4 selectors at 9 budgets, and pass@k over all subsets for the same 9, of attempts with 8 step scores,
256 a problem. ``TTSFRAME_BENCH_ATTEMPTS`` sets their number (default 20,480).
``TTSFRAME_BENCH_ATTEMPTS=1000000,5000000,20000000 python benchmarks/bench_curve.py`` prints, for
each number, the ratios to a warm streaming read of the columns `problem_id, attempt, answer_key,
is_correct, step_scores`, written by `sink_parquet` with its defaults, all measured in turn in one
process; the peak memory of a fresh process; and how time grows from one number to the next.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

SIZES = [int(n) for n in os.environ.get("TTSFRAME_BENCH_ATTEMPTS", "20480").split(",")]
N_ATTEMPTS = SIZES[0]
N_PER_PROBLEM = 256
N_AT_ONCE = 5_000_000
N_ROUNDS = int(os.environ.get("TTSFRAME_BENCH_ROUNDS", "11"))
N_IN_PYTHON = 200_000
BUDGETS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SELECTORS = ["majority_vote", "weighted_vote", "best_of_n", "first_valid"]
COLUMNS = ["problem_id", "attempt", "answer_key", "is_correct", "step_scores"]
LIMITS = {"read": 3.5, "exponent": 1.1, "peak": 2.0}
"""What curves may cost, at 5 million attempts in reads, and at 20 million in gigabytes."""

PEAK = """
import sys
sys.path.insert(0, sys.argv[1])
import bench_curve
bench_curve.collect(bench_curve.plans(bench_curve.Path(sys.argv[2]))["curve and pass@k"])
print(bench_curve.peak())
"""

SQL = """
WITH budgets AS (SELECT unnest($budgets) AS budget),
attempts AS (
    SELECT problem_id, attempt, answer_key, is_correct, step_scores[-1] AS score,
        list_filter($budgets, lambda budget: budget > attempt)[1] AS bucket
    FROM read_parquet($path)
),
buckets AS (
    SELECT problem_id, answer_key, bucket, count(*) AS n, sum(score) AS weight,
        min({'attempt': attempt, 'is_correct': is_correct}) AS first,
        max({'score': score, 'earliness': -attempt::BIGINT, 'is_correct': is_correct}) AS top
    FROM attempts WHERE bucket IS NOT NULL GROUP BY ALL
),
cells AS (
    SELECT problem_id, answer_key, budget, sum(n)::BIGINT AS n, sum(weight) AS weight,
        min(first) AS first, max(top) AS top,
        -min(first).attempt::BIGINT AS earliness
    FROM buckets JOIN budgets ON bucket <= budget GROUP BY problem_id, answer_key, budget
),
picks AS (
    SELECT problem_id, budget,
        (max({'total': n, 'earliness': earliness, 'is_correct': first.is_correct})
            FILTER (answer_key IS NOT NULL)).is_correct AS majority_vote,
        (max({'total': weight, 'earliness': earliness, 'is_correct': first.is_correct})
            FILTER (answer_key IS NOT NULL)).is_correct AS weighted_vote,
        max(top).is_correct AS best_of_n,
        (min(first) FILTER (answer_key IS NOT NULL)).is_correct AS first_valid
    FROM cells GROUP BY ALL
)
SELECT selector, budget, avg(coalesce(is_correct, false)::INTEGER) AS accuracy
FROM picks UNPIVOT INCLUDE NULLS (is_correct FOR selector IN
    (majority_vote, weighted_vote, best_of_n, first_valid))
GROUP BY ALL
"""
"""The same rules, without the tolerance of ties, which random scores don't need."""

Plan = pl.LazyFrame | list[pl.LazyFrame]


def write_run(folder: Path, n_attempts: int = N_ATTEMPTS, *, shuffled: bool = False) -> Path:
    """Write a simulated run with 8 uniform scores an attempt."""
    path = folder / f"run-{n_attempts}.parquet"
    n_problems = max(n_attempts // N_PER_PROBLEM, 2)
    most = max(N_AT_ONCE // N_PER_PROBLEM, 2)
    parts = []
    for part, first in enumerate(range(0, n_problems, most)):
        n = min(most, n_problems - first)
        run = tts.simulate_trajectories(n, N_PER_PROBLEM, seed=part, keys=True)
        scores = np.random.default_rng(part).random((run.height, 8))
        lists = pl.Series(scores, dtype=pl.Array(pl.Float64, 8)).cast(pl.List(pl.Float64))
        named = pl.format("{}-{}", pl.lit(f"{part:02}"), "problem_id").alias("problem_id")
        parts.append(folder / f"part-{part:02}.parquet")
        run.with_columns(named, step_scores=lists).select(COLUMNS).write_parquet(parts[-1])
    whole = pl.scan_parquet(parts)
    if shuffled:
        path = folder / f"shuffled-{n_attempts}.parquet"
        whole = whole.collect().sample(fraction=1.0, shuffle=True, seed=0).lazy()
    whole.sink_parquet(path)
    for each in parts:
        each.unlink()
    return path


def plans(path: Path) -> dict[str, Plan]:
    """Return what is timed; the first is the unit."""
    run = pl.scan_parquet(path)
    problems = tts.select_answers(run, selectors=SELECTORS, reductions=["last"], budgets=BUDGETS)
    curve = tts.scaling_curve(problems)
    solved = run.group_by("problem_id").agg(tts.pass_at_k("is_correct", k=BUDGETS).alias("solved"))
    return {
        "read": run.select(COLUMNS),
        "bare group_by": run.group_by("problem_id", "answer_key").len(),
        "votes": tts.tally_votes(run, reductions=["last"], budgets=BUDGETS),
        "problems": problems,
        "curve": curve,
        "curve and pass@k": [
            curve,
            solved.unnest("solved").select(pl.exclude("problem_id").mean()),
        ],
    }


def collect(plan: Plan) -> list[pl.DataFrame]:
    """Run one plan, or several together, on the streaming engine."""
    return pl.collect_all([plan] if isinstance(plan, pl.LazyFrame) else plan, engine="streaming")


def curve_in_sql(path: Path) -> dict[tuple[str, int], float]:
    """Compute the accuracies in DuckDB."""
    found = duckdb.execute(SQL, {"budgets": BUDGETS, "path": str(path)}).fetchall()
    return {(selector, budget): accuracy for selector, budget, accuracy in found}


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
            first = next((row for row in within if row["answer_key"] is not None), None)
            right["first_valid", budget] += first is not None and first["is_correct"]
            best = max(within, key=lambda row: row["step_scores"][-1])
            right["best_of_n", budget] += best["is_correct"]
            if votes:
                right["majority_vote", budget] += grades[max(votes, key=votes.__getitem__)]
                right["weighted_vote", budget] += grades[max(weights, key=weights.__getitem__)]
    return {line: n / len(attempts) for line, n in right.items()}


def accuracies(curve: pl.DataFrame) -> dict[tuple[str, int], float]:
    """Return the accuracies of a curve."""
    rows = curve.select("selector", "budget", "accuracy").rows()
    return {(selector, budget): accuracy for selector, budget, accuracy in rows}


def check(path: Path) -> list[dict[str, Any]]:
    """Compare with plain Python on a slice of whole problems; return that slice's rows."""
    n_problems = max(min(N_ATTEMPTS, N_IN_PYTHON) // N_PER_PROBLEM, 2)
    run = pl.scan_parquet(path)
    chosen = run.select("problem_id").unique().sort("problem_id").head(n_problems)
    part = run.join(chosen, on="problem_id", how="semi").collect()
    rows = part.to_dicts()
    problems = tts.select_answers(part, selectors=SELECTORS, reductions=["last"], budgets=BUDGETS)
    agree(accuracies(tts.scaling_curve(problems)), curve_in_python(rows))
    return rows


def agree(found: dict[tuple[str, int], float], expected: dict[tuple[str, int], float]) -> None:
    """Compare accuracies; a loop that never met a right answer has no entry."""
    assert found.keys() >= expected.keys()
    for line, accuracy in found.items():
        assert abs(accuracy - expected.get(line, 0.0)) < 1e-12, line


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_run(tmp_path_factory.mktemp("curve"))
    check(path)
    return path


@pytest.mark.parametrize(
    "name", ["read", "bare group_by", "votes", "problems", "curve", "curve and pass@k"]
)
def test_plan(benchmark: BenchmarkFixture, run: Path, name: str) -> None:
    benchmark.group = f"curve of {N_ATTEMPTS:,} attempts"
    plan = plans(run)[name]
    benchmark(lambda: collect(plan))


def test_duckdb(benchmark: BenchmarkFixture, run: Path) -> None:
    benchmark.group = f"curve of {N_ATTEMPTS:,} attempts"
    found = benchmark(lambda: curve_in_sql(run))
    agree(found, accuracies(collect(plans(run)["curve"])[0]))


def test_python_loop(benchmark: BenchmarkFixture, run: Path) -> None:
    benchmark.group = f"curve of {N_ATTEMPTS:,} attempts"
    rows = check(run)
    benchmark.pedantic(lambda: curve_in_python(rows), rounds=1)


def peak() -> float:
    """Return the peak memory of this process in gigabytes; getrusage tells that of its parent, too."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e9


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def report(path: Path, n_attempts: int) -> dict[str, float]:
    """Print the ratios to the read and to the group_by; return the medians."""
    rows = check(path)
    timed: dict[str, Callable[[], object]] = {
        name: lambda plan=plan: collect(plan) for name, plan in plans(path).items()
    }
    timed["DuckDB"] = lambda: curve_in_sql(path)
    agree(curve_in_sql(path), accuracies(collect(plans(path)["curve"])[0]))
    for run in timed.values():
        run()
    timings: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(N_ROUNDS):
        for name, run in timed.items():
            timings[name].append(seconds(run))
    medians = {name: statistics.median(found) for name, found in timings.items()}
    loop = seconds(lambda: curve_in_python(rows)) * n_attempts / len(rows)
    print(f"\n{path.stem}: {n_attempts:,} attempts, median and range of {N_ROUNDS} rounds\n")
    print(f"{'':<17}{'ms':>8}{'range':>16}{'/ read':>8}{'/ group_by':>12}")
    for name, found in timings.items():
        span = f"{1e3 * min(found):.0f}-{1e3 * max(found):.0f}"
        print(
            f"{name:<17}{1e3 * medians[name]:>8.0f}{span:>16}{medians[name] / medians['read']:>8.2f}"
            f"{medians[name] / medians['bare group_by']:>12.2f}"
        )
    print(
        f"{'Python loop':<17}{1e3 * loop:>8.0f}{'from a slice':>16}{loop / medians['read']:>8.0f}"
    )
    print(f"the curve is {loop / medians['curve']:.0f} times faster than the loop")
    folder = str(Path(__file__).parent)
    found_peak = float(subprocess.check_output([sys.executable, "-c", PEAK, folder, str(path)]))
    print(f"peak memory of a fresh process: {found_peak:.2f} GB", flush=True)
    return medians | {"peak": found_peak}


def main() -> int:
    """Print the tables; the exit status is 1 where a limit is passed."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("ttsframe", "polars", "duckdb"))
    print(f"{pl.thread_pool_size()} threads, Python {sys.version.split()[0]}, {packages}")
    found: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n_attempts in SIZES:
            path = write_run(Path(folder), n_attempts)
            found[n_attempts] = report(path, n_attempts)
            path.unlink()
        if SIZES[0] <= N_AT_ONCE:
            middle = max(n for n in SIZES if n <= N_AT_ONCE)
            report(write_run(Path(folder), middle, shuffled=True), middle)
    name = "curve and pass@k"
    ratios = {n: medians[name] / medians["read"] for n, medians in found.items()}
    worst = max(ratios.values())
    exponents = [
        math.log(found[larger][name] / found[smaller][name]) / math.log(larger / smaller)
        for smaller, larger in itertools.pairwise(SIZES)
    ]
    highest = max(medians["peak"] for medians in found.values())
    print(f"\n{name} / read: {', '.join(f'{r:.2f} at {n:,}' for n, r in ratios.items())}")
    print(f"exponents of time between sizes: {', '.join(f'{e:.2f}' for e in exponents)}")
    print(f"limits: {LIMITS}")
    is_within = worst <= LIMITS["read"] and highest <= LIMITS["peak"]
    return int(not is_within or any(e > LIMITS["exponent"] for e in exponents[1:]))


if __name__ == "__main__":
    sys.exit(main())
