"""Best-of-k and pass@k for every k, beside sorting the same rows and beside plain Python.

``TTSFRAME_BENCH_PROBLEMS`` sets the number of problems, of 256 attempts each (default 100).
``TTSFRAME_BENCH_PROBLEMS=10000 python benchmarks/bench_estimators.py`` prints the ratios to sorting
the rows by score, all measured in turn in one run, on both engines: for scores that all differ,
for scores of two decimals, which tie, and for problems of unlike numbers of attempts.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_PROBLEMS = int(os.environ.get("TTSFRAME_BENCH_PROBLEMS", "100"))
N_PER_PROBLEM = 256
KS = range(1, N_PER_PROBLEM + 1)
N_ROUNDS = 11
N_IN_PYTHON = 10
LIMIT = 5.0
"""What both estimators may cost together in units of the sort, on 10,000 problems."""


def attempts(*, decimals: int | None = None, share: float = 1.0) -> pl.DataFrame:
    """Return problems of uniform difficulty, whose correct attempts score higher on average."""
    rng = np.random.default_rng(0)
    problem = np.repeat(np.arange(N_PROBLEMS), N_PER_PROBLEM)
    is_correct = rng.random(len(problem)) < rng.random(N_PROBLEMS)[problem]
    score = rng.random(len(problem)) + 0.2 * is_correct
    frame = pl.DataFrame({"problem_id": problem, "is_correct": is_correct, "score": score})
    if decimals is not None:
        frame = frame.with_columns(pl.col("score").round(decimals))
    return frame.sample(fraction=share, seed=0) if share < 1.0 else frame


RUNS = {
    "scores that differ": attempts,
    "scores that tie": lambda: attempts(decimals=2),
    "ragged problems": lambda: attempts(share=0.95),
}


def plans(run: pl.DataFrame) -> dict[str, pl.LazyFrame]:
    """Return what is timed; the first is the unit."""
    lazy = run.lazy()
    grouped = lazy.group_by("problem_id")
    best = tts.best_of_k("is_correct", "score", KS).alias("best")
    some = tts.pass_at_k("is_correct", KS).alias("pass")
    return {
        "sort by score": lazy.sort("score"),
        "best_of_k": grouped.agg(best),
        "pass_at_k": grouped.agg(some),
        "both": grouped.agg(best, some),
        "g_pass_at_k": grouped.agg(tts.g_pass_at_k("is_correct", KS)),
    }


def in_python(rows: list[tuple[int, bool, float]]) -> dict[int, tuple[list[float], list[float]]]:
    """Compute both estimators in loops over dicts, with integers, as a script would."""
    problems: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)
    for problem, is_correct, score in rows:
        problems[problem].append((score, is_correct))
    found = {}
    for problem, scored in problems.items():
        scored.sort(reverse=True)
        n, c = len(scored), sum(is_correct for _, is_correct in scored)
        best, some = [], []
        for k in range(1, n + 1):
            subsets = math.comb(n, k)
            total, rank = 0.0, 0
            while rank <= n - k:
                end = rank
                while end < n and scored[end][0] == scored[rank][0]:
                    end += 1
                won = math.comb(n - rank, k) - math.comb(n - end, k)
                total += won / subsets * sum(c for _, c in scored[rank:end]) / (end - rank)
                rank = end
            best.append(total)
            some.append(1.0 - math.comb(n - c, k) / subsets)
        found[problem] = (best, some)
    return found


def check(run: pl.DataFrame, engine: pl.Engine = "in-memory") -> list[tuple[int, bool, float]]:
    """Compare with plain Python on some problems; return their rows."""
    rows = run.filter(pl.col("problem_id") < N_IN_PYTHON).rows()
    table = plans(run)["both"].filter(pl.col("problem_id") < N_IN_PYTHON).collect(engine=engine)
    expected = in_python(rows)
    assert table.height == len(expected)
    for problem, best, some in table.rows():
        for found, of_python in zip((best, some), expected[problem], strict=True):
            values = list(found.values())
            np.testing.assert_allclose(values[: len(of_python)], of_python, rtol=0, atol=1e-12)
            assert set(values[len(of_python) :]) <= {None}
    return rows


@pytest.mark.parametrize("name", ["sort by score", "best_of_k", "pass_at_k", "both"])
def test_expression(benchmark: BenchmarkFixture, name: str) -> None:
    benchmark.group = f"every k of {N_PROBLEMS:,} problems x {N_PER_PROBLEM} attempts"
    run = attempts()
    check(run)
    benchmark(plans(run)[name].collect)


def test_python_loop(benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"every k of {N_PROBLEMS:,} problems x {N_PER_PROBLEM} attempts"
    rows = check(attempts())
    benchmark.pedantic(lambda: in_python(rows), rounds=1)


@pytest.mark.parametrize("name", RUNS)
def test_the_loop_agrees(name: str) -> None:
    for engine in ("in-memory", "streaming"):
        check(RUNS[name](), engine)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def report(name: str, engine: pl.Engine) -> float:
    """Print the ratios to the sort; return that of both estimators."""
    run = RUNS[name]()
    rows = check(run, engine)
    timed = plans(run)
    timings: dict[str, list[float]] = {plan: [] for plan in timed}
    for _ in range(N_ROUNDS):
        for plan, lazy in timed.items():
            timings[plan].append(seconds(lambda lazy=lazy: lazy.collect(engine=engine)))
    medians = {plan: statistics.median(found) for plan, found in timings.items()}
    sort = medians["sort by score"]
    print(f"\n{name}, {engine}: {run.height:,} rows, {len(KS)} k, median of {N_ROUNDS} rounds\n")
    print(f"{'':<16}{'ms':>8}{'range':>16}{'/ sort':>8}")
    for plan, found in timings.items():
        span = f"{1e3 * min(found):.0f}-{1e3 * max(found):.0f}"
        print(f"{plan:<16}{1e3 * medians[plan]:>8.0f}{span:>16}{medians[plan] / sort:>8.2f}")
    loop = seconds(lambda: in_python(rows)) * run.height / len(rows)
    print(f"{'Python loop':<16}{1e3 * loop:>8.0f}{'from a slice':>16}{loop / sort:>8.0f}")
    return medians["both"] / sort


def main() -> int:
    """Print the tables; the exit status is 1 where the first is above its limit."""
    print(f"polars {pl.__version__}, numpy {np.__version__}, {pl.thread_pool_size()} threads")
    ratios = {
        (name, engine): report(name, engine)
        for engine in ("in-memory", "streaming")
        for name in RUNS
    }
    ratio = ratios["scores that differ", "in-memory"]
    print(f"\nboth / sort: {ratio:.2f}, limit {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
