"""Train the generator: `python benchmarks/arithmetic/train_generator.py FOLDER`.

Training ends as soon as a given share of held-out problems is solved, sampled at temperature 1. The
weights go to `FOLDER/generator.npz` and, in half precision, to `data/arithmetic_generator.npz`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import arithmetic_models as models
import arithmetic_task as task
import numpy as np
import numpy_transformer as net

SHAPE = {"width": 64, "n_layers": 3, "inner": 256}
BATCH, RATE, WARM_UP, MOST_STEPS, EVERY = 64, 2e-3, 100, 6000, 50
GOAL = 0.45
"""Mean accuracy over the numbers of digits at which training ends."""


def accuracy(weights: net.Weights) -> list[float]:
    """Return the chance of the whole right solution, for each number of digits."""
    draw, found = np.random.default_rng(99), []
    for digits in task.DIGITS:
        ids = task.solutions(*task.numbers(draw, 48, digits, held_out=True), digits)
        last, _ = net.forward(weights, ids[:, :-1], n_heads=models.N_HEADS)
        chances = net.softmax(last[:, task.HEAD - 1 :] @ weights["next"])
        right = np.take_along_axis(chances, ids[:, task.HEAD :, None], axis=-1)[..., 0]
        found.append(float(np.exp(np.log(right + 1e-30).sum(axis=1)).mean()))
    return found


def train(seed: int) -> net.Weights:
    weights = net.random_weights(seed, len(task.VOCABULARY), task.MOST, **SHAPE)
    adam, draw = net.Adam(weights), np.random.default_rng(seed)
    losses: list[float] = []
    for step in range(1, MOST_STEPS + 1):
        digits = int(draw.choice(task.DIGITS))
        ids = task.solutions(*task.numbers(draw, BATCH, digits, held_out=False), digits)
        loss, gradients = net.next_loss(weights, ids, task.HEAD, n_heads=models.N_HEADS)
        adam.step(gradients, RATE * min(1.0, step / WARM_UP))
        losses.append(loss)
        if step % EVERY == 0:
            by_digits = accuracy(weights)
            print(
                f"step {step}: loss {np.mean(losses[-EVERY:]):.4f}, pass@1 {np.mean(by_digits):.3f}",
                [round(share, 2) for share in by_digits],
                f"{time.process_time():.0f} s",
                flush=True,
            )
            if np.mean(by_digits) >= GOAL:
                break
    return weights


if __name__ == "__main__":
    trained = train(0)
    np.savez(Path(sys.argv[1]) / "generator.npz", **trained)
    models.store("arithmetic_generator", trained)
