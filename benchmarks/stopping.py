"""Stopping early: rules for votes on real answers, and intervals after stopping where they are narrow.

``python benchmarks/stopping.py > benchmarks/results/stopping.txt``

First, 11 reasoning models x 30 AIME 2024 problems x 80 stored attempts (Best-of-infinity, ../shared/data/boinf).
Thresholds are chosen on one half of the problems, among seven, and scored on the other; the loss allowed there is 0 or
.02 of accuracy. Differences are paired, over problems, with the majority vote of all 80 attempts. Attempts and tokens are
means per problem. Then the coverage of `stop_when_narrow` by simulation. A * marks coverage below .93.
"""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

import ttsframe as tts
from ttsframe._typing import Floats

BOINF: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "boinf"
BUDGET: Final = 80
N_RUNS: Final = 2_000
Z: Final = NormalDist().inv_cdf(0.975)


def load() -> pl.DataFrame:
    """Read the attempts of all models, numbered from 0."""
    parts = [
        tts.read_trajectories(path).with_columns(model=pl.lit(path.stem.split("_")[-1]))
        for path in sorted(BOINF.glob("*.jsonl"))
    ]
    run = tts.score_trajectories(pl.concat(parts, how="diagonal_relaxed"))
    return run.filter(pl.col("attempt") < BUDGET)


def votes(run: pl.DataFrame) -> None:
    """Print accuracy and cost of each rule on real answers."""
    whole = tts.majority_vote(run, budgets=BUDGET, by="model").select(
        "model", "problem_id", whole="value"
    )
    mean = whole["whole"].to_numpy().mean()
    tokens = run.group_by("model", "problem_id").agg(pl.col("n_tokens").sum())
    print(
        f"all 80 attempts: accuracy {mean:.4f}, {tokens['n_tokens'].to_numpy().mean():,.0f} tokens a problem\n"
    )
    print(
        "rule            loss  accuracy  difference  95 % interval      attempts     tokens  saved"
    )
    for rule in tts.curves.STOPPING_RULES:
        for loss in (0.0, 0.02):
            points = tts.curves.tune_stopping(
                run, budget=BUDGET, rule=rule, max_loss=loss, by="model"
            )
            show(f"{rule:<15}{loss:>5.2f}", run, whole, points)
    print("\nfixed thresholds\n")
    for rule, row in tts.curves.STOPPING_RULES.items():
        for threshold in (row.thresholds[0], row.threshold, row.thresholds[-1]):
            points = tts.curves.stopping_points(
                run, budgets=BUDGET, rule=rule, threshold=threshold, by="model"
            )
            show(f"{rule:<14}{threshold:>6g}", run, whole, points)


def show(name: str, run: pl.DataFrame, whole: pl.DataFrame, points: pl.DataFrame) -> None:
    """Print one row."""
    picked = tts.curves.select_allocated(run, allocation=points, by="model")
    keys = ["model", "problem_id"]
    used = (
        run
        .join(points.select(*keys, n_used="n_attempts"), on=keys)
        .filter(pl.col("attempt") < pl.col("n_used"))
        .group_by(keys)
        .agg(pl.col("n_tokens").sum(), n_used=pl.col("n_used").first())
    )
    table = picked.select(*keys, "value").join(whole, on=keys).join(used, on=keys)
    # The problems are the units: their mean differences over models.
    by_problem = table.group_by("problem_id").agg((pl.col("value") - pl.col("whole")).mean())
    ends = by_problem.select(
        tts.statistics.bootstrap_interval("value", n_resamples=5000, seed=0)
    ).item()
    interval = f"[{ends['ci_low']:+.4f}, {ends['ci_high']:+.4f}]"
    if (by_problem["value"] == 0.0).all():
        interval = "no answer differs "
    value, n_used, tokens = (table[c].to_numpy().mean() for c in ("value", "n_used", "n_tokens"))
    all_tokens = run.group_by(keys).agg(pl.col("n_tokens").sum())["n_tokens"].to_numpy().mean()
    print(
        f"{name}{value:>10.4f}{value - table['whole'].to_numpy().mean():>+12.4f}  "
        f"{interval}{n_used:>9.1f}{tokens:>11,.0f}"
        f"{1 - tokens / all_tokens:>7.0%}",
        flush=True,
    )


def narrow(draws: np.random.Generator) -> None:
    """Print how often intervals hold the truth after stopping."""
    print(
        "\ncoverage after stopping at a width, for these problems, 2,000 runs of up to 256 attempts\n"
    )
    print(
        "sequence: the asymptotic confidence sequence of Waudby-Smith et al. (2103.06476), tuned for 32 attempts\n"
    )
    print("problems  Beta        width  at least  attempts  covered | sequence: attempts  covered")
    for n_problems in (30, 100):
        for world in ((0.5, 0.5), (1.0, 9.0), (5.0, 1.0)):
            for width in (0.04, 0.08):
                for least in (2, 4, 8):
                    chance = draws.beta(*world, (N_RUNS, n_problems))
                    counts = np.zeros_like(chance)
                    stop = {"normal": np.zeros(N_RUNS, int), "sequence": np.zeros(N_RUNS, int)}
                    held = {name: np.zeros(N_RUNS, bool) for name in stop}
                    truth = chance.mean(axis=1)
                    for n in range(1, 257):
                        counts += draws.random(chance.shape) < chance
                        if n < least:
                            continue
                        p = counts / n
                        for name, half in halves(p, n).items():
                            mean = p.mean(axis=1)
                            low, high = np.maximum(mean - half, 0), np.minimum(mean + half, 1)
                            now = (stop[name] == 0) & ((high - low <= width) | (n == 256))
                            stop[name][now] = n
                            held[name][now] = ((low <= truth) & (truth <= high))[now]
                        if all((of > 0).all() for of in stop.values()):
                            break
                    covered = held["normal"].mean()
                    print(
                        f"{n_problems:>8}  {world!s:<11}{width:>6.2f}{least:>10}{stop['normal'].mean():>10.1f}"
                        f"{covered:>9.3f}{' *' if covered < 0.93 else '  '}|{stop['sequence'].mean():>19.1f}"
                        f"{held['sequence'].mean():>9.3f}",
                        flush=True,
                    )


def halves(p: Floats, n: int) -> dict[str, Floats]:
    """Return the half widths of both intervals after n attempts at each problem."""
    n_problems = p.shape[1]
    of_mean = (p * (1.0 - p)).sum(axis=1) / (n - 1) / n_problems**2
    floor = (Z / 2.0 / n / n_problems) ** 2
    variance = (of_mean + floor / Z**2) * n
    # rho for the sequence to be narrowest at 32 attempts.
    rho2 = (-2.0 * np.log(0.05) + np.log(-2.0 * np.log(0.05) + 1.0)) / (32 * variance)
    scaled = n * variance * rho2 + 1.0
    sequence = np.sqrt(2.0 * scaled / (n**2 * rho2) * np.log(np.sqrt(scaled) / 0.05))
    return {"normal": Z * np.sqrt(of_mean + floor), "sequence": sequence}


def main() -> None:
    print(__doc__)
    if BOINF.exists():
        votes(load())
    else:
        print("../shared/data/boinf is not here")
    narrow(np.random.default_rng(0))


if __name__ == "__main__":
    main()
