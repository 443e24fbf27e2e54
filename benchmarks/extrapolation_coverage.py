"""How often the intervals of extrapolated pass@k hold the truth, on simulated runs.

``python benchmarks/extrapolation_coverage.py > benchmarks/results/extrapolation_coverage.txt``
prints the whole grid; names of methods behind it choose some. ``TTSFRAME_BENCH_RUNS`` sets the runs
of a cell (default 600; a sixth of them for the two models that take longest).

A run draws each problem's chance from a distribution, and its correct attempts from the chance. The
truth is pass@k of the distribution. Beside each model stands, for the beta-binomial one, the
interval of the delta method on the logit of pass@k, which the package does not use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from ttsframe.statistics.extrapolation.beta import _Likelihood, beta_passes
from ttsframe.statistics.extrapolation.model import Counts, ExtrapolationModel, Floats
from ttsframe.statistics.extrapolation.registry import MODELS, predict_range

N_RUNS = int(os.environ.get("TTSFRAME_BENCH_RUNS", "600"))
N_WORKERS = int(os.environ.get("TTSFRAME_BENCH_WORKERS", "2"))
RATIOS = (1, 4, 10, 100)
N_PROBLEMS = (50, 200, 1000)
N_ATTEMPTS = (16, 64)
LEVEL = 0.95
GOAL = (0.935, 0.965)
Z = 1.959963984540054


class World(NamedTuple):
    """A distribution of the chance to solve a problem."""

    name: str
    alpha: float
    beta: float
    never: float = 0.0


WORLDS = (
    World("Beta(0.5, 0.5)", 0.5, 0.5),
    World("Beta(0.2, 2)", 0.2, 2.0),
    World("30 % never, else Beta(1, 2)", 1.0, 2.0, 0.3),
)


def counts_of(world: World, n_problems: int, n_attempts: int, seed: int) -> Counts:
    """Draw one run."""
    draws = np.random.default_rng([seed, n_problems, n_attempts])
    chance = draws.beta(world.alpha, world.beta, n_problems)
    chance *= draws.random(n_problems) >= world.never
    c, weight = np.unique(draws.binomial(n_attempts, chance), return_counts=True)
    n = np.full(len(c), float(n_attempts))
    return Counts(n, c.astype(float), weight.astype(float))


def truth_of(world: World, k: Floats) -> Floats:
    total = world.alpha + world.beta
    parameters = np.array([[world.alpha / total], [total], [world.never]])
    return beta_passes(parameters, k)


def profile(name: ExtrapolationModel, counts: Counts, k: Floats) -> Floats:
    """Return estimate and ends by the package."""
    return np.stack(predict_range(name, MODELS[name].fit(counts, LEVEL), k)[:3])


def delta(_: ExtrapolationModel, counts: Counts, k: Floats) -> Floats:
    """Return estimate and ends by the delta method on the logit of pass@k."""
    mean, scale, _ = MODELS["beta_binomial"].fit(counts, LEVEL).estimate[:, 0]
    if not (0.0 < mean < 1.0 and 0.0 < scale < np.inf):
        return np.full((3, len(k)), np.nan)
    at = np.log([mean / (1.0 - mean), scale])
    likelihood = _Likelihood(counts)
    step = 1e-3
    moves = step * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])  # fmt: skip
    points = (at + moves).T
    height = likelihood.at(points[0], points[1])
    h00 = height[1] - 2 * height[0] + height[2]
    h11 = height[3] - 2 * height[0] + height[4]
    h01 = (height[5] + height[6] - height[7] - height[8]) / 4
    covariance = np.linalg.inv(-np.array([[h00, h01], [h01, h11]]) / step**2)
    parameters = np.stack([1 / (1 + np.exp(-points[0])), np.exp(points[1]), np.zeros(9)])
    passes = beta_passes(parameters[:, :, None], k)
    logit = np.log(passes) - np.log1p(-passes)
    slope = np.stack([logit[1] - logit[2], logit[3] - logit[4]]) / (2 * step)
    half = Z * np.sqrt(np.einsum("ik,ij,jk->k", slope, covariance, slope))
    ends = [1 / (1 + np.exp(-(logit[0] + sign * half))) for sign in (0, -1, 1)]
    return np.stack(ends)


METHODS: dict[
    str, tuple[Callable[[ExtrapolationModel, Counts, Floats], Floats], ExtrapolationModel]
] = {
    "nonparametric": (profile, "nonparametric"),
    "beta_binomial": (profile, "beta_binomial"),
    "its delta method": (delta, "beta_binomial"),
    "zero_inflated": (profile, "zero_inflated"),
    "power_law": (profile, "power_law"),
}


SLOW = {"zero_inflated": (200,), "nonparametric": (50, 200)}
"""Methods that are measured in fewer cells, with these numbers of problems."""


class Cell(NamedTuple):
    world: World
    n_problems: int
    n_attempts: int
    method: str

    @property
    def n_runs(self) -> int:
        return max(N_RUNS // 6, 1) if self.method in SLOW else N_RUNS


def measure(cell: Cell) -> tuple[Cell, Floats, Floats]:
    """Return the truth, and per ratio: covered, mean estimate, too low, too high, mean width."""
    k = np.array(RATIOS, dtype=float) * cell.n_attempts
    truth = truth_of(cell.world, k)
    method, name = METHODS[cell.method]
    found = np.stack([
        method(name, counts_of(cell.world, cell.n_problems, cell.n_attempts, seed), k)
        for seed in range(cell.n_runs)
    ])
    estimate, low, high = found.transpose(1, 0, 2)
    is_known = ~np.isnan(low)
    facts = [
        ((low <= truth) & (truth <= high)).sum(axis=0) / is_known.sum(axis=0),
        np.nanmean(estimate, axis=0),
        (high < truth).sum(axis=0) / is_known.sum(axis=0),
        (low > truth).sum(axis=0) / is_known.sum(axis=0),
        np.nanmean(high - low, axis=0),
    ]
    return cell, truth, np.stack(facts)


def main() -> None:
    cells = [
        Cell(world, n_problems, n_attempts, method)
        for method in sys.argv[1:] or METHODS
        for world in WORLDS
        for n_problems in N_PROBLEMS
        for n_attempts in N_ATTEMPTS
        if n_problems in SLOW.get(method, N_PROBLEMS)
    ]
    print("Coverage of nominal 95 % intervals of extrapolated pass@k, over runs of the same size.")
    print(f"Goal {GOAL[0]:.1%} to {GOAL[1]:.1%}; * outside it by more than 2 Monte-Carlo errors.\n")
    print(f"{'method':<17}{'world':<28}{'problems':>9}{'attempts':>9}{'runs':>6}{'k/n':>5}", end="")
    print(f"{'truth':>8}{'mean':>8}{'covered':>9}  {'below':>7}{'above':>7}{'width':>8}")
    with ProcessPoolExecutor(N_WORKERS, mp_context=get_context("spawn")) as pool:
        for cell, truth, facts in pool.map(measure, cells):
            for i, ratio in enumerate(RATIOS):
                covered, mean, below, above, width = facts[:, i]
                error = 2 * np.sqrt(LEVEL * (1 - LEVEL) / cell.n_runs)
                is_miss = covered < GOAL[0] - error or covered > GOAL[1] + error
                print(
                    f"{cell.method:<17}{cell.world.name:<28}{cell.n_problems:>9}"
                    f"{cell.n_attempts:>9}{cell.n_runs:>6}{ratio:>5}{truth[i]:>8.4f}{mean:>8.4f}"
                    f"{covered:>9.1%}{'*' if is_miss else ' '} {below:>7.1%}{above:>7.1%}"
                    f"{width:>8.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
