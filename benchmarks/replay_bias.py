"""Accuracy of replays of a bank, less that of fresh searches, for five policies and three widths.

``python benchmarks/replay_bias.py [parts] [problems]`` draws that many banks of each size (default 10 of 2,500
problems) and prints after each, for each cell, the mean difference over all problems so far and its z.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, ParticleFilter, Policy, Rebase, VerifierFaults

S = tts.search
WIDTHS = {4: (2, 4), 8: (8,)}
"""Widths by the continuations of each node: a bank answers any policy of a width up to them."""
OPTIONS = {"accuracy": 0.35, "faults": VerifierFaults(noise=1.5)}
N_STEPS = 3


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
    found: dict[tuple[str, int], np.ndarray] = {}
    world = S.simulate(n_problems, n_steps=(N_STEPS, N_STEPS), step_spread=0, seed=seed, **OPTIONS)
    for n_children, widths in WIDTHS.items():
        problems, bank = S.simulate_bank(
            n_problems, n_children=n_children, n_steps=N_STEPS, seed=seed, **OPTIONS
        )
        texts = bank.select("problem_id", "node_id", "text")
        for policy in [policy for width in widths for policy in policies(width)]:
            replayed = S.replay(bank, policy, seed=seed + 1)
            if set(replayed.problems["status"]) != {"ok"}:
                sys.exit("a problem ran short")
            nodes = replayed.nodes.drop("text").join(
                texts, on=["problem_id", "node_id"], how="left", maintain_order="left"
            )
            fresh = S.search(*world, policy, seed=seed + 2)
            both = [is_right(tree, policy, problems) for tree in (nodes, fresh)]
            found[policy.name, policy.width] = both[0] - both[1]
    return found


def show(parts: list[dict[tuple[str, int], np.ndarray]]) -> None:
    """Print the table of all problems so far."""
    lines, worst = [], (0.0, 0.0)
    for cell in parts[0]:
        d = np.concatenate([found[cell] for found in parts])
        z = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
        worst = max(worst[0], abs(d.mean())), max(worst[1], abs(z))
        lines.append(f"{cell[0]:16} {cell[1]:5} {d.mean():11.4f} {z:6.2f}")
    print(f"{len(d):,} problems, replay minus fresh; answer: the solution with the best last score")
    print(f"{'policy':16} {'width':>5} {'difference':>11} {'z':>6}")
    print("\n".join(lines))
    print(
        f"largest difference {worst[0]:.4f} (bound .01), largest |z| {worst[1]:.2f} (bound 3.5)\n",
        flush=True,
    )


def main() -> None:
    n_parts = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    n_problems = int(sys.argv[2]) if len(sys.argv) > 2 else 2500
    parts = []
    for index in range(n_parts):
        parts.append(part(n_problems, seed=11 + 10_000 * index))
        show(parts)


if __name__ == "__main__":
    main()
