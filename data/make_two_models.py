#!/usr/bin/env python3
"""Write two simulated models on 30 problems, in the shape of an AIME run with 64 attempts at each.

``python data/make_two_models.py [TARGET]`` writes ``data/two_models.csv``, or TARGET; always the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SEED = 2024
N_PROBLEMS, N_ATTEMPTS = 30, 64
ADVANTAGE = {"A": 0.5, "B": 0.0}
"""On the scale of log-odds; each model is also better or worse at each problem by chance."""


def rows() -> list[str]:
    """Return the lines of the file, without line ends.

    Returns
    -------
    list[str]
        A header, and a line per attempt.
    """
    draws = np.random.default_rng(SEED)
    difficulty = draws.normal(-0.4, 1.9, N_PROBLEMS)
    lines = ["model,problem_id,attempt,answer,gold,n_tokens"]
    for model, advantage in ADVANTAGE.items():
        own = draws.normal(0.0, 0.8, N_PROBLEMS)
        chance = 1.0 / (1.0 + np.exp(difficulty - advantage - own))
        for problem in range(N_PROBLEMS):
            gold = 101 + 29 * problem
            # The more likely wrong answers are shared by both models.
            wrong = np.random.default_rng([SEED, problem]).permutation(999)[:8]
            shares = 1.0 / np.arange(1.0, 9.0)
            for attempt in range(N_ATTEMPTS):
                is_right = draws.random() < chance[problem]
                answer = gold if is_right else int(draws.choice(wrong, p=shares / shares.sum()))
                shown = "" if draws.random() < 0.02 else str(answer)
                length = draws.lognormal(9.0 + 0.25 * difficulty[problem], 0.3)
                lines.append(
                    f"{model},aime-{problem + 1:02},{attempt},{shown},{gold},{round(length)}"
                )
    return lines


def main() -> None:
    """Write the file."""
    default = Path(__file__).with_name("two_models.csv")
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target.write_text("\n".join(rows()) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
