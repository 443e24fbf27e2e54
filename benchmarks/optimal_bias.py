"""What choosing a strategy adds to its accuracy where it is judged on the same problems or attempts.

Four simulations, each with a truth that is known; 500 problems in five levels.

- *equal*: twelve strategies that are equally good at every problem. Nothing is to be won by
  choosing, so what a line claims above the truth is optimism: at most .005 if cross-fitted.
- *opposed*: a majority that is best on easy problems, and a best-scored attempt that is best on
  hard ones. The line must be above both, in truth as well.
- *own levels* and *other half's levels*: all problems are equally hard, so that levels are luck.
  From the attempts that are judged they say who was lucky, and the line claims more than it
  has; from the other half of the attempts they say nothing.

``TTSFRAME_BIAS_RUNS`` sets the number of runs (default 200; ten times as many of *equal*, whose
bound is to be shown, not only not to be missed). The exit status is 1 where a cross-fitted line
claims too much, or the opposed strategies are as good alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np
import polars as pl

import ttsframe as tts

N_RUNS = int(os.environ.get("TTSFRAME_BIAS_RUNS", "200"))
N_PROBLEMS, N_LEVELS, N_STRATEGIES, BUDGET = 500, 5, 12, 8
N_TOGETHER = 50
"""Runs that are analysed at once."""
N_FRESH = 24
"""Fresh runs of `BUDGET` attempts that say how good a selector truly is at a problem."""
LIMIT = 0.005
N_SHOWN = 1_000
"""From so many runs on an optimism within the limit is told from one beyond it."""
HONEST, IN_SAMPLE = "compute_optimal", "compute_optimal_in_sample"

Run = tuple[pl.DataFrame, pl.DataFrame]
"""Problems, with the true chance of each value in `chance`, and levels."""


def drawn(chances: dict[str, np.ndarray], rng: np.random.Generator) -> pl.DataFrame:
    """Return `problems` of strategies whose chances at each problem are given."""
    return pl.concat([
        pl.DataFrame({
            "problem_id": np.arange(len(chance)),
            "budget": BUDGET,
            "selector": name,
            "reduction": pl.Series([None] * len(chance), dtype=pl.String),
            "value": (rng.random(len(chance)) < chance).astype(np.float64),
            "status": "ok",
            "chance": chance,
        })
        for name, chance in chances.items()
    ])


def true_levels(easiness: np.ndarray) -> pl.DataFrame:
    """Return the fifths of the problems by how easy they truly are."""
    rank = (-easiness).argsort().argsort()
    level = rank * N_LEVELS // len(easiness) + 1
    return pl.DataFrame({"problem_id": np.arange(len(easiness)), "level": level})


def equal(rng: np.random.Generator) -> Run:
    """Twelve strategies that do not differ."""
    easiness = rng.random(N_PROBLEMS)
    chances = dict.fromkeys([f"method {i:02}" for i in range(N_STRATEGIES)], easiness)
    return drawn(chances, rng), true_levels(easiness)


def opposed(rng: np.random.Generator) -> Run:
    """One strategy for easy problems, one for hard ones.

    With a share p of right attempts a majority is the surer the farther p is above one half; the
    best-scored attempt of 8 needs one right attempt, and errs one time in four besides.
    """
    easiness = rng.random(N_PROBLEMS)
    odds = (easiness / (1.0 - easiness)) ** 4
    chances = {
        "majority": odds / (1.0 + odds),
        "best scored": 0.75 * (1.0 - (1.0 - easiness) ** BUDGET),
    }
    return drawn(chances, rng), true_levels(easiness)


def attempts(rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return 16 attempts at problems that are alike, and how good selectors truly are at each."""
    n_attempts = 2 * BUDGET
    run = tts.simulate_trajectories(
        N_PROBLEMS,
        n_attempts + N_FRESH * BUDGET,
        seed=int(rng.integers(2**32)),
        accuracy=(500.0, 500.0),
        keys=True,
    )
    number = pl.col("attempt")
    fresh = run.filter(number >= n_attempts).with_columns(
        repeat=(number - n_attempts) // BUDGET, attempt=(number - n_attempts) % BUDGET
    )
    chances = (
        picked(fresh, by="repeat")
        .group_by("problem_id", "selector")
        .agg(pl.col("value").mean().alias("chance"))
    )
    return run.filter(number < n_attempts), chances


def picked(run: pl.DataFrame, by: str | tuple[str, ...] = ()) -> pl.DataFrame:
    """Answer problems by two selectors."""
    selectors = ["majority_vote", "best_of_n"]
    return tts.select_answers(run, selectors=selectors, budgets=BUDGET, by=by)


def own_levels(rng: np.random.Generator) -> Run:
    """Levels from the attempts that are judged."""
    run, chances = attempts(rng)
    half = run.filter(pl.col("attempt") < BUDGET)
    levels = tts.difficulty_levels(half, estimate="same_sample", n_levels=N_LEVELS)
    return picked(half).join(chances, on=["problem_id", "selector"]), levels


def other_levels(rng: np.random.Generator) -> Run:
    """Levels from the other half of the attempts."""
    run, chances = attempts(rng)
    levels = tts.difficulty_levels(run, n_levels=N_LEVELS)
    problems = picked(tts.curves.halve_attempts(run), by="fold")
    return problems.join(chances, on=["problem_id", "selector"]), levels


SETTINGS: dict[str, Callable[[np.random.Generator], Run]] = {
    "equal": equal,
    "opposed": opposed,
    "own levels": own_levels,
    "other half's levels": other_levels,
}


def lines(problems: pl.DataFrame, levels: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return what each line of each run claims, what is true, and whether its interval holds that."""
    options = {"levels": levels, "by": "run", "cost": "chance", "seed": seed}
    # The mean cost of what was chosen, on the problems that it was chosen for, is its true chance.
    choices = tts.curves.optimal_choices(problems, **options)
    truth = (
        choices
        .group_by("run", is_honest=pl.col("problem_fold").is_not_null())
        .agg(truth=(pl.col("cost") * pl.col("n_problems")).sum() / pl.col("n_problems").sum())
        .select(
            *["run", "truth"],
            selector=pl.when("is_honest").then(pl.lit(HONEST)).otherwise(pl.lit(IN_SAMPLE)),
        )
    )
    alone = problems.group_by("run", "selector").agg(pl.col("chance").mean().alias("truth"))
    halves = ["fold"] if "fold" in problems.columns else []
    curves = pl.concat([
        tts.optimal_curve(problems, **options),
        tts.scaling_curve(problems, by="run", replicates=halves),
    ])
    is_method = pl.col("selector").str.starts_with("method")
    return curves.join(
        pl.concat([truth, alone], how="diagonal"), on=["run", "selector"], maintain_order="left"
    ).select(
        *["run", "truth"],
        line=pl.when(is_method).then(pl.lit("a method alone")).otherwise("selector"),
        claimed="accuracy",
        covered=pl.col("truth").is_between("ci_low", "ci_high"),
    )


def block(setting: str, runs: range, rng: np.random.Generator) -> pl.DataFrame:
    """Return the lines of some runs, which share the seed of their folds and nothing else."""
    drawn = [SETTINGS[setting](rng) for _ in runs]
    problems, levels = (
        pl.concat([table.with_columns(run=run) for run, table in zip(runs, tables, strict=True)])
        for tables in zip(*drawn, strict=True)
    )
    return lines(problems, levels, seed=runs.start)


def study(setting: str, n_runs: int, seed: int = 0) -> pl.DataFrame:
    """Return the means over runs, and the standard error of the optimism."""
    rng = np.random.default_rng(seed)
    starts = range(0, n_runs, N_TOGETHER)
    blocks = [range(start, min(start + N_TOGETHER, n_runs)) for start in starts]
    runs = pl.concat([block(setting, each, rng) for each in blocks])
    gap = pl.col("claimed") - pl.col("truth")
    return (
        runs
        .group_by("line", "run", maintain_order=True)
        .agg(pl.col("claimed", "truth", "covered").mean())
        .group_by("line", maintain_order=True)
        .agg(
            pl.col("claimed", "truth").mean(),
            gap.mean().alias("optimism"),
            (gap.std() / pl.len().sqrt()).alias("standard_error"),
            pl.col("covered").mean(),
            pl.len().alias("n_runs"),
        )
        .select(pl.lit(setting).alias("setting"), pl.all())
    )


def broken(table: pl.DataFrame) -> list[str]:
    """Return the claims that do not hold, up to three standard errors."""
    found = []
    rows = {(row["setting"], row["line"]): row for row in table.iter_rows(named=True)}
    for setting in ("equal", "opposed", "other half's levels"):
        row = rows[setting, HONEST]
        if abs(row["optimism"]) > LIMIT + 3 * row["standard_error"]:
            found.append(f"{setting}: the cross-fitted line is off by {row['optimism']:+.4f}")
    row = rows["equal", HONEST]
    if row["n_runs"] >= N_SHOWN and abs(row["optimism"]) + 3 * row["standard_error"] > LIMIT:
        found.append(f"equal: {row['n_runs']} runs do not show an optimism of at most {LIMIT}")
    if rows["equal", IN_SAMPLE]["optimism"] < 10 * LIMIT:
        found.append("equal: choosing and judging on the same problems shows no optimism")
    if rows["own levels", HONEST]["optimism"] < 5 * LIMIT:
        found.append("own levels: levels from the attempts that are judged show no optimism")
    ours = rows["opposed", HONEST]
    found += [
        f"opposed: {column} is not above that of {line}"
        for line in ("majority", "best scored")
        for column in ("claimed", "truth")
        if ours[column] < rows["opposed", line][column] + 0.05
    ]
    return found


def main() -> int:
    """Print the table; the exit status is 1 where a claim does not hold."""
    table = pl.concat([
        study(setting, N_RUNS * (10 if setting == "equal" else 1)) for setting in SETTINGS
    ])
    print(f"Runs of {N_PROBLEMS} problems in {N_LEVELS} levels; optimism is claimed - truth,")
    print(
        "standard_error its own over runs, covered the share of 95 % intervals that hold the truth\n"
    )
    with pl.Config(
        tbl_rows=-1, tbl_hide_dataframe_shape=True, float_precision=4, tbl_width_chars=120
    ):
        print(table)
    found = broken(table)
    print("\n" + ("\n".join(found) or "every claim holds"))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
