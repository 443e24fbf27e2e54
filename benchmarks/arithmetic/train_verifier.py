"""Label steps by rollouts and train the verifier: `python benchmarks/arithmetic/train_verifier.py FOLDER`.

The solutions and their rollouts are sampled from `FOLDER/generator.npz`, from which the verifier is
trained on. It goes to `data/arithmetic_verifier.npz`, in half precision.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import arithmetic_models as models
import arithmetic_task as task
import numpy as np
import numpy_transformer as net
import polars as pl

import ttsframe as tts

N_PROBLEMS, N_SOLUTIONS, N_ROLLOUTS = 500, 4, 4
"""Problems for each number of digits, solutions of each, rollouts of each step."""
BATCH, RATE, N_STEPS, WARM_UP = 64, 2e-3, 1600, 50
FIRST_DIGITS = 5
"""Half of the training sees no longer numbers: their rollouts tell right from wrong steps best."""


def problems(n: int, seed: int, *, held_out: bool) -> pl.DataFrame:
    """Draw distinct problems, as many for each number of digits where there are enough."""
    draw, parts = np.random.default_rng(seed), []
    for digits in task.DIGITS:
        a, b = task.numbers(draw, 4 * n, digits, held_out=held_out)
        parts.append(
            pl.DataFrame({"a": a, "b": b, "digits": digits}).unique(maintain_order=True).head(n)
        )
    return pl.concat(parts).select(
        problem_id=pl.format("{}x{}", "a", "b"),
        problem=pl.format("{}*{}", "a", "b"),
        gold=(pl.col("a") * pl.col("b")).cast(pl.String),
        digits="digits",
    )


def rollouts(writer: models.Writer, n_problems: int, seed: int, *, held_out: bool) -> pl.DataFrame:
    """Return the steps of sampled solutions with the share of right rollouts."""
    asked = problems(n_problems, seed, held_out=held_out)
    policy = tts.search.BestOfN(N_SOLUTIONS)
    nodes = tts.search.search(
        asked,
        models.LocalGenerator(writer),
        lambda prefixes: [None] * prefixes.height,
        policy,
        seed=seed,
    )
    steps = (
        tts.search
        .to_trajectories(nodes, policy=policy, problems=asked)
        .filter(pl.col("completion").is_not_null())
        .select(
            "problem_id",
            pl.col("attempt").cast(pl.String).alias("solution_id"),
            "problem",
            "gold",
            pl
            .col("completion")
            .str.strip_suffix(task.SEPARATOR)
            .str.split(task.SEPARATOR)
            .alias("text"),
        )
        .with_columns(step=pl.int_ranges(pl.col("text").list.len()))
        .explode("text", "step")
    )
    labels = tts.process.annotate(
        steps,
        models.LocalCompleter(writer, seed),
        N_ROLLOUTS,
        separator=task.SEPARATOR,
        batch_size=1024,
    )
    values = tts.process.estimate_steps(labels).select("problem_id", "solution_id", "step", "soft")
    return steps.join(values, on=["problem_id", "solution_id", "step"], maintain_order="left")


def examples(steps: pl.DataFrame) -> list[tuple[net.Ids, net.Numbers]]:
    """Return tokens and labels of solutions; a label stands at the last token of its step."""
    found = []
    for rows in steps.partition_by("problem_id", "solution_id", maintain_order=True):
        text = rows["problem"][0]
        ends, labels = [], rows["soft"].to_list()
        for step in rows["text"]:
            text += task.SEPARATOR + step
            ends.append(len(task.encode(text)) - 1)
        ids = np.array(task.encode(text))
        values = np.full(len(ids), np.nan)
        values[ends] = [np.nan if label is None else label for label in labels]
        found.append((ids, values))
    return found


def auroc_within(weights: net.Weights, steps: pl.DataFrame) -> dict[str, float]:
    """Measure how the score of a whole solution tells right from wrong ones of its problem."""
    judge = models.Judge(weights)
    solutions = steps.group_by(
        "problem_id", "solution_id", "gold", "problem", maintain_order=True
    ).agg(completion=pl.col("text").str.join(task.SEPARATOR))
    scores = judge(
        solutions.select(
            "problem", prefix=pl.lit(""), text="completion", lookahead_text=pl.lit(None, pl.String)
        )
    )
    attempts = solutions.select(
        "problem_id",
        "completion",
        "gold",
        attempt=pl.int_range(pl.len()).over("problem_id"),
        step_scores=pl.concat_list(pl.Series(scores)),
    )
    graded = tts.score_trajectories(attempts)
    metrics = tts.verifier.verifier_metrics(graded)
    return metrics.select("auroc", "auroc_within", "n_judged").row(0, named=True)


def train(
    weights: net.Weights, steps: pl.DataFrame, seed: int, held_out: pl.DataFrame
) -> net.Weights:
    weights = {name: values.copy() for name, values in weights.items()}
    weights["score"] = np.zeros_like(weights["score"])
    adam, draw = net.Adam(weights), np.random.default_rng(seed)
    data = examples(steps)
    lengths = np.array([len(ids) for ids, _ in data])
    # One batch has one length. Malformed steps make rare lengths, which are left out.
    common = np.array([x for x in np.unique(lengths) if (lengths == x).sum() >= BATCH])
    chances = np.array([(lengths == x).sum() for x in common], dtype=float)
    short = chances * (common < len_of(FIRST_DIGITS + 1))
    losses: list[float] = []
    for step in range(1, N_STEPS + 1):
        some_chances = short if step <= N_STEPS // 2 else chances
        length = draw.choice(common, p=some_chances / some_chances.sum())
        some = draw.choice(np.flatnonzero(lengths == length), BATCH, replace=False)
        ids = np.stack([data[number][0] for number in some])
        labels = np.stack([data[number][1] for number in some])
        loss, gradients = net.score_loss(weights, ids, labels, n_heads=models.N_HEADS)
        rate = RATE * min(1.0, step / WARM_UP, 2 * (1 - step / N_STEPS) + 0.01)
        adam.step(gradients, rate)
        losses.append(loss)
        if step % 200 == 0:
            print(
                f"step {step}: loss {np.mean(losses[-200:]):.4f}, held out:",
                auroc_within(weights, held_out),
                f"{time.process_time():.0f} s",
                flush=True,
            )
    return weights


def len_of(digits: int) -> int:
    """Return the tokens of the shortest whole solution of a number of digits."""
    return task.HEAD + 9 * digits + digits + 2


def labeled(writer: models.Writer, folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the labeled steps to train on and those that are held out; kept in the folder."""
    found = []
    for name, n, seed in (("labels", N_PROBLEMS, 1), ("held_out", 50, 2)):
        path = folder / f"{name}.parquet"
        if not path.exists():
            rollouts(writer, n, seed, held_out=name == "held_out").write_parquet(path)
        found.append(pl.read_parquet(path))
        print(f"{name}: {found[-1].height} steps, {time.process_time():.0f} s", flush=True)
    return found[0], found[1]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    generator = dict(np.load(folder / "generator.npz"))
    steps, held_out = labeled(models.Writer(generator), folder)
    models.store("arithmetic_verifier", train(generator, steps, 3, held_out))
    stored = auroc_within(models.load("arithmetic_verifier"), held_out)
    print("stored, held out:", stored, flush=True)
