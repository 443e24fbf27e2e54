"""Accuracy of replays of a bank, less that of fresh searches, for five policies and three widths.

``python benchmarks/replay_bias.py [parts] [problems]`` draws that many banks (default 4 of 5,000 problems) and prints, for each
cell, the mean difference over all problems and its z. Three seeds of fresh searches are averaged, so
that most of the noise is the bank's.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, ParticleFilter, Policy, Rebase, VerifierFaults

S = tts.search
WIDTHS = (2, 4, 8)
OPTIONS = {"accuracy": 0.35, "faults": VerifierFaults(noise=1.5)}
N_FRESH = 3


def policies(width: int) -> list[Policy]:
    return [
        BestOfN(width),
        Beam(width, beam_width=2),
        DVTS(width, beam_width=2),
        Rebase(width),
        ParticleFilter(width),
    ]


def is_right(nodes: pl.DataFrame, policy: Policy, problems: pl.DataFrame) -> np.ndarray:
    """Whether the solution with the best last score is right, for each problem."""
    answer = pl.col("completion").str.extract(r"\\boxed\{(\d+)\}")
    best = pl.col("step_scores").list.last().fill_null(-1.0).arg_max()
    return (
        S
        .to_trajectories(nodes, policy=policy, problems=problems)
        .with_columns(is_right=(answer == pl.col("gold")).fill_null(value=False))
        .group_by("problem_id", maintain_order=True)
        .agg(pl.col("is_right").get(best))["is_right"]
        .cast(pl.Float64)
        .to_numpy()
    )


def part(n_problems: int, seed: int) -> dict[tuple[str, int], np.ndarray]:
    """Return the difference of each problem in each cell."""
    problems, bank = S.simulate_bank(n_problems, n_children=(8, 8, 8), seed=seed, **OPTIONS)
    world = S.simulate(n_problems, n_steps=(3, 3), step_spread=0, seed=seed, **OPTIONS)
    texts = bank.select("problem_id", "node_id", "text")
    found = {}
    for width in WIDTHS:
        for policy in policies(width):
            replayed = S.replay(bank, policy, seed=seed + 1)
            if set(replayed.problems["status"]) != {"ok"}:
                sys.exit("a problem ran short")
            nodes = replayed.nodes.drop("text").join(
                texts, on=["problem_id", "node_id"], how="left", maintain_order="left"
            )
            fresh = [
                is_right(S.search(*world, policy, seed=seed + 1000 + run), policy, problems)
                for run in range(N_FRESH)
            ]
            found[policy.name, width] = is_right(nodes, policy, problems) - np.mean(fresh, axis=0)
    return found


def main() -> None:
    n_parts = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    n_problems = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    parts = [part(n_problems, seed=11 + 10_000 * index) for index in range(n_parts)]
    print(
        f"{n_parts * n_problems:,} problems in {n_parts} banks of 8 x 8 x 8; replay minus the mean of {N_FRESH} fresh searches; "
        "answer: the solution with the best last score"
    )
    print(f"{'policy':16} {'width':>5} {'difference':>11} {'z':>6}")
    worst = (0.0, 0.0)
    for cell in parts[0]:
        d = np.concatenate([found[cell] for found in parts])
        z = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
        worst = max(worst[0], abs(d.mean())), max(worst[1], abs(z))
        print(f"{cell[0]:16} {cell[1]:5} {d.mean():11.4f} {z:6.2f}")
    print(f"largest difference {worst[0]:.4f} (bound .01), largest |z| {worst[1]:.2f} (bound 3.5)")


if __name__ == "__main__":
    main()
