"""Bias of choosing a strategy on the problems or attempts that it is evaluated on, by simulation.

Four simulations with known true accuracy; 500 problems in five levels.

- *equal*: twelve strategies that are equally good at every problem. A choice cannot gain anything, so
  accuracy above the truth is optimism: at most .005 if cross-fitted.
- *opposed*: a majority that is best on easy problems, and a best-scored attempt that is best on
  hard ones. The line must be above both, and so must its true accuracy.
- *own levels* and *other half's levels*: all problems are equally hard, so levels are noise. If they
  are estimated on the attempts that are evaluated, the line is too high; if they are estimated on
  the other half of the attempts, it is not.

``TTSFRAME_BIAS_RUNS`` sets the number of runs (default 200; ten times as many for *equal*, where the
bound is to be confirmed). The exit status is 1 if a cross-fitted line is too high, or one of the
opposed strategies alone is as good.
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
"""Runs that are analyzed at once."""
N_FRESH = 24
"""New runs of `BUDGET` attempts that estimate the true accuracy of a selector on a problem."""
LIMIT = 0.005
N_SHOWN = 1_000
"""Number of runs from which the limit on the optimism can be confirmed."""
HELD_OUT, IN_SAMPLE = "compute_optimal", "compute_optimal_in_sample"

Run = tuple[pl.DataFrame, pl.DataFrame]
"""Problems, with the true probability of each value in `chance`, and levels."""


def draw_problems(chances: dict[str, np.ndarray], rng: np.random.Generator) -> pl.DataFrame:
    """Return `problems` of strategies with the given probability of success on each problem."""
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
    """Return the quintile of each problem by its true easiness."""
    rank = (-easiness).argsort().argsort()
    level = rank * N_LEVELS // len(easiness) + 1
    return pl.DataFrame({"problem_id": np.arange(len(easiness)), "level": level})


def equal(rng: np.random.Generator) -> Run:
    """Return twelve strategies that do not differ."""
    easiness = rng.random(N_PROBLEMS)
    chances = dict.fromkeys([f"method {i:02}" for i in range(N_STRATEGIES)], easiness)
    return draw_problems(chances, rng), true_levels(easiness)


def opposed(rng: np.random.Generator) -> Run:
    """Return one strategy for easy problems and one for hard ones.

    The more the share of right attempts exceeds 1/2, the likelier the majority is right. The
    best-scored attempt of 8 needs one right attempt, and is wrong one time in four even so.
    """
    easiness = rng.random(N_PROBLEMS)
    odds = (easiness / (1.0 - easiness)) ** 4
    chances = {
        "majority": odds / (1.0 + odds),
        "best scored": 0.75 * (1.0 - (1.0 - easiness) ** BUDGET),
    }
    return draw_problems(chances, rng), true_levels(easiness)


def attempts(rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return 16 attempts at equal problems, and the true accuracy of selectors on each."""
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
        select(fresh, by="repeat")
        .group_by("problem_id", "selector")
        .agg(pl.col("value").mean().alias("chance"))
    )
    return run.filter(number < n_attempts), chances


def select(run: pl.DataFrame, by: str | tuple[str, ...] = ()) -> pl.DataFrame:
    """Select answers with two selectors."""
    selectors = ["majority_vote", "best_of_n"]
    return tts.select_answers(run, selectors=selectors, budgets=BUDGET, by=by)


def own_levels(rng: np.random.Generator) -> Run:
    """Return problems with levels from the attempts that are evaluated."""
    run, chances = attempts(rng)
    half = run.filter(pl.col("attempt") < BUDGET)
    levels = tts.difficulty_levels(half, estimate="same_sample", n_levels=N_LEVELS)
    return select(half).join(chances, on=["problem_id", "selector"]), levels


def other_levels(rng: np.random.Generator) -> Run:
    """Return problems with levels from the other half of the attempts."""
    run, chances = attempts(rng)
    levels = tts.difficulty_levels(run, n_levels=N_LEVELS)
    problems = select(tts.curves.halve_attempts(run), by="fold")
    return problems.join(chances, on=["problem_id", "selector"]), levels


SETTINGS: dict[str, Callable[[np.random.Generator], Run]] = {
    "equal": equal,
    "opposed": opposed,
    "own levels": own_levels,
    "other half's levels": other_levels,
}


def lines(problems: pl.DataFrame, levels: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return the accuracy of each line of each run, the truth, and whether the interval contains it."""
    options = {"levels": levels, "by": "run", "cost": "chance", "seed": seed}
    # The true probability is passed as the cost, so its mean over the problems is the truth.
    choices = tts.curves.optimal_choices(problems, **options)
    truth = (
        choices
        .group_by("run", is_held_out=pl.col("problem_fold").is_not_null())
        .agg(truth=(pl.col("cost") * pl.col("n_problems")).sum() / pl.col("n_problems").sum())
        .select(
            *["run", "truth"],
            selector=pl.when("is_held_out").then(pl.lit(HELD_OUT)).otherwise(pl.lit(IN_SAMPLE)),
        )
    )
    alone = problems.group_by("run", "selector").agg(pl.col("chance").mean().alias("truth"))
    halves = ["fold"] if "fold" in problems.columns else []
    parts = [
        tts.optimal_curve(problems, **options),
        tts.scaling_curve(problems, by="run", replicates=halves),
    ]
    curves = pl.concat(parts, how="diagonal")
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
    """Return the lines of some runs, which share only the seed of their folds."""
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


def failed_claims(table: pl.DataFrame) -> list[str]:
    """Return the claims that fail by more than three standard errors."""
    found = []
    rows = {(row["setting"], row["line"]): row for row in table.iter_rows(named=True)}
    for setting in ("equal", "opposed", "other half's levels"):
        row = rows[setting, HELD_OUT]
        if abs(row["optimism"]) > LIMIT + 3 * row["standard_error"]:
            found.append(f"{setting}: the cross-fitted line is off by {row['optimism']:+.4f}")
    row = rows["equal", HELD_OUT]
    if row["n_runs"] >= N_SHOWN and abs(row["optimism"]) + 3 * row["standard_error"] > LIMIT:
        found.append(f"equal: {row['n_runs']} runs do not show an optimism of at most {LIMIT}")
    if rows["equal", IN_SAMPLE]["optimism"] < 10 * LIMIT:
        found.append("equal: choosing and evaluating on the same problems shows no optimism")
    if rows["own levels", HELD_OUT]["optimism"] < 5 * LIMIT:
        found.append("own levels: levels from the attempts evaluated show no optimism")
    ours = rows["opposed", HELD_OUT]
    found += [
        f"opposed: {column} is not above that of {line}"
        for line in ("majority", "best scored")
        for column in ("claimed", "truth")
        if ours[column] < rows["opposed", line][column] + 0.05
    ]
    return found


def main() -> int:
    """Print the table; the exit status is 1 if a claim fails."""
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
    found = failed_claims(table)
    print("\n" + ("\n".join(found) or "every claim holds"))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
