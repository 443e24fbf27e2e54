"""How often the rank intervals of `rank` hold all true ranks at once, by simulation.

``python benchmarks/rank_coverage.py [RUNS]`` prints the table that is kept in
``benchmarks/results/rank_coverage.txt``. Beside it: the 95 % percentile intervals of bootstrapped ranks,
which `rank` does not give.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
import polars as pl

import ttsframe as tts

N_RUNS: Final = 1_000
N_TOGETHER: Final = 250
N_BOOTSTRAP: Final = 200
WORLDS: Final = {
    "10 equal": [0.0] * 10,
    "5 equal, 5 better by .1": [0.0] * 5 + [0.1] * 5,
    "5 equal, 5 better by .3": [0.0] * 5 + [0.3] * 5,
    "10 apart by .02": [0.02 * i for i in range(10)],
}


def draw(
    rng: np.random.Generator, gains: list[float], n_runs: int, n_problems: int, n_attempts: int
) -> np.ndarray:
    """Return the values of (runs, problems, models); models of one gain have equal chances."""
    base = rng.beta(2.0, 2.0, (n_runs, n_problems, 1))
    chances = np.clip(base * 0.6 + np.array(gains), 0.0, 1.0)
    return rng.binomial(n_attempts, chances) / n_attempts


def percentile_misses(
    values: np.ndarray, low: np.ndarray, high: np.ndarray, rng: np.random.Generator
) -> int:
    """Count the runs in which a percentile interval of bootstrapped ranks misses a true rank."""
    n_problems = values.shape[1]
    misses = 0
    for run in values:
        counts = rng.multinomial(n_problems, np.full(n_problems, 1 / n_problems), N_BOOTSTRAP)
        means = counts @ run
        ranks = 1 + (means[:, None, :] > means[:, :, None] + 1e-9).sum(axis=2)
        ends = np.quantile(ranks, [0.025, 0.975], axis=0)
        # It holds if some rank that ties allow is inside.
        misses += bool(((ends[1] < low) | (ends[0] > high)).any())
    return misses


def coverage(
    gains: list[float], n_runs: int, n_problems: int, n_attempts: int
) -> tuple[float, ...]:
    """Return the share of runs in which all true ranks are inside, the mean width, and percentiles'."""
    true = np.array(gains)
    low = 1 + (true[None, :] > true[:, None]).sum(axis=1)
    high = len(true) - (true[None, :] < true[:, None]).sum(axis=1)
    hits, width, misses = 0, 0.0, 0
    for start in range(0, n_runs, N_TOGETHER):
        n_block = min(N_TOGETHER, n_runs - start)
        rng = np.random.default_rng([13, n_problems, n_attempts, int(1000 * sum(gains)), start])
        values = draw(rng, gains, n_block, n_problems, n_attempts)
        run, problem, model = (axis.ravel() for axis in np.indices(values.shape))
        frame = pl.DataFrame({
            "run": run,
            "problem_id": problem,
            "model": model,
            "value": values.ravel(),
        })
        table = tts.rank(frame, column="model", by="run", n_resamples=1).sort("run", "model")
        ends = [table[name].to_numpy().reshape(n_block, -1) for name in ("rank_low", "rank_high")]
        # With ties, every rank from the best to the worst that they allow must be inside.
        hits += int(((ends[0] <= low) & (ends[1] >= high)).all(axis=1).sum())
        width += float((ends[1] - ends[0]).mean(axis=1).sum())
        misses += percentile_misses(values, low, high, rng)
    return 100.0 * hits / n_runs, width / n_runs, 100.0 * (n_runs - misses) / n_runs


def main(n_runs: int) -> None:
    """Print the table."""
    print(
        f"Share in % of {n_runs:,} runs in which all true ranks are inside their intervals; goal at least 95.\n"
        "width: mean of worst less best rank. percentile: intervals of bootstrapped ranks, which only have\n"
        "to hold one of the ranks that ties allow.\n"
    )
    print("world                     problems  attempts    rank  width  percentile")
    for name, gains in WORLDS.items():
        for n_problems, n_attempts in ((100, 1), (100, 8)):
            found = coverage(gains, n_runs, n_problems, n_attempts)
            mark = "*" if found[0] < 95.0 else " "
            print(
                f"{name:<26}{n_problems:>8}{n_attempts:>10}{found[0]:>8.1f}{mark}{found[1]:>6.2f}{found[2]:>11.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS)
