"""Coverage of the interval of cross-fitted choices by the number of folds, by simulation.

``python benchmarks/optimal_folds.py [RUNS]`` prints the table that is kept in
``benchmarks/results/optimal_folds.txt``. The interval is that of `scaling_curve` over the rows of
`select_optimal`; `optimal_curve` shows it for two folds alone. The truth is the mean over the problems'
distribution of the chance that the strategies chosen have, weighted as they were.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
import polars as pl

import ttsframe as tts

N_RUNS: Final = 1_000
N_TOGETHER: Final = 250
N_PROBLEMS, N_LEVELS, N_STRATEGIES = 120, 3, 6
SPREADS: Final = (0.0, 0.05, 0.15)
"""Standard deviation of a strategy's advantage at a level."""
FOLDS: Final = (2, 3, 5, 10)


def block(
    rng: np.random.Generator, spread: float, n_runs: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the problems of some runs, and the chance of each strategy at each level as a table."""
    level = np.arange(N_PROBLEMS) % N_LEVELS
    base = np.array([0.75, 0.5, 0.25])
    gains = rng.normal(0.0, spread, (n_runs, N_LEVELS, N_STRATEGIES))
    chances = np.clip(base[None, :, None] + gains, 0.02, 0.98)
    values = rng.random((n_runs, N_PROBLEMS, N_STRATEGIES)) < chances[:, level]
    run, problem, strategy = (axis.ravel() for axis in np.indices(values.shape))
    problems = pl.DataFrame({
        "run": run,
        "problem_id": problem,
        "budget": 1,
        "selector": strategy,
        "value": values.ravel().astype(float),
        # The chance is passed as the cost, so that its mean is the truth.
        "cost": chances[:, level].ravel(),
    }).with_columns(
        pl.format("method {}", "selector").alias("selector"),
        status=pl.lit("ok"),
        reduction=pl.lit(None, pl.String),
    )
    return problems, pl.DataFrame({"problem_id": np.arange(N_PROBLEMS), "level": level})


def coverage(spread: float, n_runs: int) -> dict[int, tuple[float, float, float]]:
    """Return coverage, optimism and width by the number of folds."""
    found: dict[int, list[tuple[float, float, float]]] = {n: [] for n in FOLDS}
    for start in range(0, n_runs, N_TOGETHER):
        rng = np.random.default_rng([7, int(1000 * spread), start])
        n_block = min(N_TOGETHER, n_runs - start)
        problems, levels = block(rng, spread, n_block)
        for n_folds in FOLDS:
            chosen = tts.curves.select_optimal(
                problems, levels=levels, by="run", cost="cost", n_folds=n_folds, seed=start
            ).filter(selector="compute_optimal")
            truth = chosen.group_by("run").agg(truth=pl.col("cost").mean())
            curve = tts.scaling_curve(chosen, by="run").join(truth, on="run")
            found[n_folds].append(
                curve.select(
                    pl.col("truth").is_between("ci_low", "ci_high").sum(),
                    (pl.col("accuracy") - pl.col("truth")).sum().alias("bias"),
                    (pl.col("ci_high") - pl.col("ci_low")).sum().alias("width"),
                ).row(0)
            )
    return {n: tuple(np.sum(rows, axis=0) / n_runs) for n, rows in found.items()}  # type: ignore[misc]


def main(n_runs: int) -> None:
    """Print the table."""
    print(
        f"{N_STRATEGIES} strategies, {N_PROBLEMS} problems in {N_LEVELS} levels, {n_runs:,} runs a row.\n"
        "spread: standard deviation of a strategy's advantage at a level; coverage in % of nominal 95 %.\n"
    )
    print("spread  folds  coverage      bias    width")
    for spread in SPREADS:
        for n_folds, (covered, bias, width) in coverage(spread, n_runs).items():
            print(f"{spread:<6g}{n_folds:>7}{100 * covered:>10.1f}{bias:>+10.4f}{width:>9.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS)
