"""The beta-binomial fit of many problems beside scipy's likelihood under a general optimizer.

``TTSFRAME_BENCH_PROBLEMS`` sets the number of problems, 64 attempts at each (default 1,000). Both
find the same maximum, checked first; only the package's fit gives intervals too.
"""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.optimize import minimize
from scipy.stats import betabinom

import ttsframe as tts

N_PROBLEMS = int(os.environ.get("TTSFRAME_BENCH_PROBLEMS", "1000"))
N_ATTEMPTS = 64


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    simulated = tts.simulate_trajectories(
        N_PROBLEMS, N_ATTEMPTS, seed=0, accuracy=(0.5, 2.0), keys=True
    ).select("problem_id", "attempt", "is_correct")
    found = (
        tts
        .fit_pass_at_k(simulated, model="beta_binomial")
        .parameters.select("alpha", "beta")
        .row(0)
    )
    np.testing.assert_allclose(found, with_scipy(simulated), rtol=1e-3)
    return simulated


def with_scipy(run: pl.DataFrame) -> list[float]:
    """Fit as a script does: one likelihood term per problem, Nelder and Mead's simplex."""
    c = run.group_by("problem_id").agg(pl.col("is_correct").sum())["is_correct"].to_numpy()

    def height(logs: np.ndarray) -> float:
        return -betabinom.logpmf(c, N_ATTEMPTS, *np.exp(logs)).sum()

    options = {"xatol": 1e-6, "fatol": 1e-6}
    best = minimize(height, [0.0, 0.0], method="Nelder-Mead", options=options)
    return list(np.exp(best.x))


def test_fit_with_intervals(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"beta-binomial fit of {N_PROBLEMS:,} problems"
    benchmark(lambda: tts.fit_pass_at_k(run, model="beta_binomial").predict([64, 640, 6400]))


def test_scipy(benchmark: BenchmarkFixture, run: pl.DataFrame) -> None:
    benchmark.group = f"beta-binomial fit of {N_PROBLEMS:,} problems"
    benchmark.pedantic(lambda: with_scipy(run), rounds=1)
