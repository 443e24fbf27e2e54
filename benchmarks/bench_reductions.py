"""Step reductions beside `list.sum` and beside a plain Python loop.

``TTSFRAME_BENCH_ROWS`` sets the number of attempts, of 3 to 12 scores each (default 20,000).
``TTSFRAME_BENCH_ROWS=2000000 python benchmarks/bench_reductions.py`` prints the ratios, measured in
turn in one run, on the engine that ``POLARS_ENGINE_AFFINITY`` names.
"""

from __future__ import annotations

import functools
import math
import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ROWS = int(os.environ.get("TTSFRAME_BENCH_ROWS", "20000"))
N_ROUNDS = 9
LIMITS = {"last": 1.2, "mean": 2.0, "sum": 2.0, "min": 3.0, "max": 3.0, "prod": 3.0}
"""What a reduction may cost in units of `list.sum`, on 2 million rows."""

IN_PYTHON: dict[str, Callable[[list[float]], float]] = {
    "last": lambda scores: scores[-1],
    "min": min,
    "mean": lambda scores: sum(scores) / len(scores),
    "prod": math.prod,
    "max": max,
    "sum": sum,
    "first": lambda scores: scores[0],
    "geometric_mean": lambda scores: math.exp(sum(map(math.log, scores)) / len(scores)),
}


@functools.cache
def attempts() -> pl.DataFrame:
    """Return lists of 3 to 12 uniform scores as one contiguous column."""
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(N_ROWS), rng.integers(3, 13, N_ROWS))
    flat = pl.DataFrame({"row": row, "step_scores": 1.0 - rng.random(len(row))})
    return (
        flat.group_by("row", maintain_order=True).agg("step_scores").select("step_scores").rechunk()
    )


@functools.cache
def lists() -> list[list[float]]:
    return attempts()["step_scores"].to_list()


def plans() -> dict[str, pl.LazyFrame]:
    lazy = attempts().lazy()
    reductions = {name: reduce("step_scores") for name, reduce in tts.STEP_REDUCTIONS.items()}
    expressions = {"list.sum": pl.col("step_scores").list.sum(), **reductions}
    return {name: lazy.select(expression) for name, expression in expressions.items()}


def check(name: str, found: pl.DataFrame) -> None:
    """Compare with plain Python before anything is timed."""
    reduce = IN_PYTHON["sum" if name == "list.sum" else name]
    expected = [reduce(scores) for scores in lists()]
    np.testing.assert_allclose(found.to_series().to_numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["list.sum", *IN_PYTHON])
def test_expression(benchmark: BenchmarkFixture, name: str) -> None:
    benchmark.group = f"reductions of {N_ROWS:,} lists"
    plan = plans()[name]
    check(name, plan.collect())
    benchmark(plan.collect)


@pytest.mark.parametrize("name", IN_PYTHON)
def test_python_loop(benchmark: BenchmarkFixture, name: str) -> None:
    benchmark.group = f"reductions of {N_ROWS:,} lists"
    rows, reduce = lists(), IN_PYTHON[name]
    benchmark.pedantic(lambda: [reduce(scores) for scores in rows], rounds=1)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> int:
    """Print the table of ratios; the exit status is 1 where one is above its limit."""
    timings: dict[str, list[float]] = {name: [] for name in plans()}
    for name, plan in plans().items():
        check(name, plan.collect())
    for _ in range(N_ROUNDS):
        for name, plan in plans().items():
            timings[name].append(seconds(plan.collect))
    medians = {name: statistics.median(found) for name, found in timings.items()}
    engine = os.environ.get("POLARS_ENGINE_AFFINITY", "auto")
    print(f"{N_ROWS:,} lists of 3 to 12 scores, polars {pl.__version__}, engine {engine},")
    print(f"{pl.thread_pool_size()} threads, median of {N_ROUNDS} rounds\n")
    print(f"{'reduction':<16}{'ms':>8}{'ratio':>8}{'limit':>8}{'Python ms':>12}")
    missed = False
    for name, median in medians.items():
        ratio = median / medians["list.sum"]
        limit = LIMITS.get(name)
        missed |= limit is not None and ratio > limit
        reduce = IN_PYTHON.get(name)
        loop = seconds(lambda f=reduce: [f(scores) for scores in lists()]) if reduce else None
        print(
            f"{name:<16}{1e3 * median:>8.2f}{ratio:>8.2f}{limit or '':>8}"
            f"{'' if loop is None else f'{1e3 * loop:.0f}':>12}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
