"""Bias of accuracy by level, by simulation: levels from the same attempts, the other half, or another run.

Each run has n attempts at problems whose probability of success is drawn from a beta distribution, or
is 1/2. Levels are estimated in three ways, and the accuracy of each level is compared with the mean
true probability of the same problems (and halves), level by level and run by run, so the sampling of
problems adds no noise.

    python benchmarks/difficulty_bias.py

writes ``benchmarks/results/difficulty_bias.txt``; the exit status is 1 if cross-fitted or
reference levels are more than 4 standard errors from the truth, or the first and last same-sample
levels are not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

import ttsframe as tts

RESULT: Final = Path(__file__).parent / "results" / "difficulty_bias.txt"
N_RUNS: Final = 200
N_PROBLEMS: Final = 200
SEED: Final = 20_261_121
LIMIT: Final = 4.0
N_LEVELS: Final = 5

Way = Literal["same sample", "cross-fitted", "reference"]
WAYS: Final = get_args(Way)


class Setting(NamedTuple):
    """Attempts at each problem, and the beta distribution of probabilities; None: always 1/2."""

    n: int
    chances: tuple[float, float] | None


SETTINGS: Final = tuple(
    Setting(n, chances) for chances in (None, (0.5, 0.5), (2.0, 2.0)) for n in (4, 16, 64)
)


class Row(NamedTuple):
    """A line of the table."""

    setting: Setting
    way: Way
    level: int
    truth: float
    mean: float
    standard_error: float
    """Of the difference between the two, over runs."""
    n_runs: int
    """Runs in which the level has a problem."""

    @property
    def z(self) -> float:
        """Distance from the truth in standard errors."""
        return (self.mean - self.truth) / self.standard_error


def simulate(setting: Setting, n_runs: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return attempts of many runs, and other attempts at the same problems."""
    rng = np.random.default_rng([
        seed,
        setting.n,
        len(SETTINGS),
        int(10 * sum(setting.chances or (0,))),
    ])
    shape = (n_runs, N_PROBLEMS, setting.n)
    chance = np.full(shape[:2], 0.5)
    if setting.chances is not None:
        chance = rng.beta(*setting.chances, shape[:2])
    run, problem, attempt = (axis.ravel() for axis in np.indices(shape))

    def draw() -> pl.DataFrame:
        return pl.DataFrame({
            "run": run,
            "problem_id": problem,
            "attempt": attempt.astype(np.uint32),
            "is_correct": (rng.random(shape) < chance[:, :, None]).ravel(),
            "chance": np.repeat(chance, setting.n),
        })

    return draw(), draw()


def as_problems(attempts: pl.DataFrame, by: Sequence[str], value: pl.Expr) -> pl.DataFrame:
    """Return the mean of a value over the attempts at each problem, in the form of `problems`."""
    return attempts.group_by(*by, "problem_id").agg(
        value.cast(pl.Float64).mean().alias("value"),
        budget=pl.lit(1, pl.UInt32),
        selector=pl.lit("mean"),
        reduction=pl.lit(None, pl.String),
        status=pl.lit("ok"),
    )


def rows_of(setting: Setting, n_runs: int, seed: int) -> list[Row]:
    """Return the lines of one setting."""
    attempts, others = simulate(setting, n_runs, seed)
    halves = tts.curves.halve_attempts(attempts)
    options = {"by": "run", "n_levels": N_LEVELS}
    ways: dict[Way, tuple[pl.DataFrame, pl.DataFrame, list[str]]] = {
        "same sample": (
            attempts,
            tts.difficulty_levels(attempts, estimate="same_sample", **options),
            ["run"],
        ),
        "cross-fitted": (halves, tts.difficulty_levels(attempts, **options), ["run", "fold"]),
        "reference": (
            attempts,
            tts.difficulty_levels(attempts, reference=others, **options),
            ["run"],
        ),
    }
    rows = []
    for way, (evaluated, levels, by) in ways.items():
        found, truth = (
            tts.level_curve(as_problems(evaluated, by, pl.col(name)), levels=levels, by="run")
            for name in ("is_correct", "chance")
        )
        both = found.join(truth, on=["run", "level"], suffix="_true").drop_nulls("accuracy")
        for (level,), runs in both.sort("level").group_by("level", maintain_order=True):
            error = (runs["accuracy"] - runs["accuracy_true"]).std() / math.sqrt(runs.height)
            means = runs.select(pl.col("accuracy_true", "accuracy").mean()).row(0)
            rows.append(Row(setting, way, level, *means, error, runs.height))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines as text."""
    head = f"{'chances':<16}{'n':>4}{'level':>7}" + "".join(
        f"{way:>15}{'truth':>8}{'z':>8}" for way in WAYS
    )
    lines = [head]
    cells = {(row.setting, row.level, row.way): row for row in rows}
    for setting in dict.fromkeys(row.setting for row in rows):
        chances = (
            f"Beta({setting.chances[0]:g}, {setting.chances[1]:g})" if setting.chances else "1/2"
        )
        for level in range(1, N_LEVELS + 1):
            line = f"{chances:<16}{setting.n:>4}{level:>7}"
            for way in WAYS:
                row = cells.get((setting, level, way))
                line += (
                    f"{row.mean:>15.4f}{row.truth:>8.4f}{max(-999, min(row.z, 999)):>8.1f}"
                    if row
                    else f"{'empty':>15}{'':>16}"
                )
            lines.append(line)
    return lines


def unexpected_rows(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return rows that are biased but should not be, and rows that should be biased but are not."""
    unbiased = [row for row in rows if row.way != "same sample"]
    extreme = [row for row in rows if row.way == "same sample" and row.level in {1, N_LEVELS}]
    return (
        [row for row in unbiased if abs(row.z) > LIMIT],
        [row for row in extreme if abs(row.z) <= LIMIT],
    )


def main() -> int:
    """Write the table; the exit status is 1 if a row is unexpected."""
    rows = [row for each in SETTINGS for row in rows_of(each, N_RUNS, SEED)]
    biased, missed = unexpected_rows(rows)
    worst = {way: max(abs(r.mean - r.truth) for r in rows if r.way == way) for way in WAYS}
    lines = [
        f"{N_RUNS} runs of {N_PROBLEMS} problems a line, seed {SEED}. Accuracy of each level, the mean true",
        "chance of the problems in it, and the distance in Monte-Carlo standard errors.",
        "",
        "largest bias: " + ", ".join(f"{way} {bias:.4f}" for way, bias in worst.items()),
        f"cross-fitted and reference: {len(biased)} lines beyond {LIMIT:g} standard errors",
        f"same sample, first and last level: {len(missed)} lines within {LIMIT:g}",
        "",
        *table(rows),
    ]
    print("\n".join(lines))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(bool(biased or missed))


if __name__ == "__main__":
    sys.exit(main())
