"""The best attempts of each problem beside reading them, sorting them, and a loop over dicts.

``TTSFRAME_BENCH_ATTEMPTS`` sets the number of attempts, 64 a problem (default 20,480).
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ATTEMPTS = int(os.environ.get("TTSFRAME_BENCH_ATTEMPTS", "20480"))
N_PER_PROBLEM = 4


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    simulated = tts.simulate_trajectories(max(N_ATTEMPTS // 64, 1), 64, seed=0, keys=True)
    completion = pl.Series("completion", np.full(simulated.height, "x" * 500))
    # Scores of two decimals tie.
    shuffled = simulated.with_columns(completion, pl.col("score").round(2)).sample(
        fraction=1.0, shuffle=True, seed=0
    )
    found = tts.votes.best_trajectories(shuffled, n_per_problem=N_PER_PROBLEM)
    expected = best_in_python(shuffled.drop("completion", "step_scores").to_dicts())
    assert found.select("problem_id", "attempt").rows() == expected
    return shuffled


def best_in_python(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Sort each problem's attempts, as a script for rejection sampling does."""
    of_problem: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of_problem[row["problem_id"]].append(row)
    kept = []
    for name in sorted(of_problem):
        ranked = sorted(of_problem[name], key=lambda row: (-row["score"], row["attempt"]))
        kept += [(name, row["attempt"]) for row in ranked[:N_PER_PROBLEM]]
    return kept


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_best_trajectories(
    benchmark: BenchmarkFixture, run: pl.DataFrame, engine: pl.Engine
) -> None:
    benchmark.group = f"best of {N_ATTEMPTS:,} attempts"
    plan = tts.votes.best_trajectories(run.lazy(), n_per_problem=N_PER_PROBLEM)
    benchmark(lambda: plan.collect(engine=engine))


def test_sorting_by_score(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"best of {N_ATTEMPTS:,} attempts"
    benchmark(lambda: run.sort("problem_id", -pl.col("score"), "attempt"))


def test_python_loop(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"best of {N_ATTEMPTS:,} attempts"
    rows = run.drop("step_scores").to_dicts()
    benchmark.pedantic(lambda: best_in_python(rows), rounds=1)
