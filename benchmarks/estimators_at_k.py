"""Intervals of `estimator_curve`, the bias of `majority_limit`, and the bias and coverage of Bayes@N.

``python benchmarks/estimators_at_k.py > benchmarks/results/estimators_at_k.txt``

Problems are new in each run. Truths of grades are exact or means over 1,000,000 problems. A * marks coverage below
.93; nothing is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

import ttsframe as tts
from ttsframe._typing import Floats

N_RUNS: Final = 1_000
N_VOTE_RUNS: Final = 1_000
N_REAL_RUNS: Final = 200
GRADED: Final = ("pass@k", "pass^k", "g_pass@k")
NOISES: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "noises"


def intervals_of_grades(draws: np.random.Generator) -> None:
    """Print the coverage of intervals of pass@k, pass^k and G-Pass@k."""
    print("estimator   problems  Beta         n  k   truth  covered  width")
    for n_problems in (30, 100):
        for world in ((0.5, 0.5), (1.0, 9.0), (5.0, 1.0)):
            chance = draws.beta(*world, 1_000_000)
            for n, k in ((8, 4), (16, 8)):
                right = draws.binomial(k, chance)
                truths = {
                    "pass@k": (right > 0).mean(),
                    "pass^k": (right == k).mean(),
                    "g_pass@k": (right >= k / 2).mean(),
                }
                c = draws.binomial(n, draws.beta(*world, (N_RUNS, n_problems)))
                run, problem = (axis.ravel() for axis in np.indices(c.shape))
                counts = pl.DataFrame({
                    "run": run,
                    "problem_id": problem,
                    "n_attempts": n,
                    "n_correct": c.ravel(),
                })
                curve = tts.curves.estimator_curve(counts, estimators=GRADED, k=k, by="run")
                for name in GRADED:
                    part, truth = curve.filter(selector=name), float(truths[name])
                    low, high = part["ci_low"].to_numpy(), part["ci_high"].to_numpy()
                    held = ((low <= truth) & (truth <= high)).mean()
                    mark = " *" if held < 0.93 else ""
                    print(
                        f"{name:<12}{n_problems:>8}  {world!s:<11}{n:>3}{k:>3}{truth:>8.3f}{held:>9.3f}"
                        f"{(high - low).mean():>7.3f}{mark}",
                        flush=True,
                    )


def intervals_on_real_models(draws: np.random.Generator) -> None:
    """Print the coverage of the same intervals on thinned counts of real models."""
    if not NOISES.exists():
        print("\nreal models: ../shared/data/noises is not here")
        return
    print(
        "\nReal models with at least 256 attempts a problem, thinned to n. drawn: problems are drawn with\n"
        "replacement, and the truth is the benchmark's, from all attempts; same: only attempts are drawn, so\n"
        f"intervals for new problems are too wide. Means over the models, {N_REAL_RUNS} runs each; low: models\n"
        "whose coverage is below .90.\n"
    )
    print("benchmark        models  estimator    n  k  drawn  least   low |   same   width")
    for benchmark in ("aime2024", "human_eval_plus"):
        tables = pl.read_csv(NOISES / f"{benchmark}.csv").partition_by("model")
        tables = [table for table in tables if table["n"].min() >= 256]  # type: ignore[operator]
        for n, k in ((8, 4), (16, 8)):
            found = [
                of_model(draws, table["n"].to_numpy(), table["c"].to_numpy(), n, k)
                for table in tables
            ]
            for i, name in enumerate(GRADED):
                drawn, same, width = np.array([of[i] for of in found]).T
                print(
                    f"{benchmark:<17}{len(tables):>6}  {name:<9}{n:>5}{k:>3}{drawn.mean():>7.3f}{drawn.min():>7.3f}"
                    f"{(drawn < 0.9).sum():>6} |{same.mean():>7.3f}{width.mean():>8.3f}"
                    f"{' *' if drawn.mean() < 0.93 else ''}",
                    flush=True,
                )


def of_model(
    draws: np.random.Generator, n_all: Floats, c_all: Floats, n: int, k: int
) -> list[tuple[float, float, float]]:
    """Return for each estimator the coverage with problems drawn and with the same, and the width."""
    every = pl.DataFrame({
        "problem_id": np.arange(len(n_all)),
        "n_attempts": n_all,
        "n_correct": c_all,
    })
    truths = tts.curves.estimator_curve(every, estimators=GRADED, k=k)
    rows = []
    shape = (N_REAL_RUNS, len(n_all))
    for problem in (
        draws.integers(0, len(n_all), shape),
        np.broadcast_to(np.arange(shape[1]), shape),
    ):
        c = draws.hypergeometric(c_all[problem], (n_all - c_all)[problem], n)
        run, place = (axis.ravel() for axis in np.indices(shape))
        counts = pl.DataFrame({
            "run": run,
            "problem_id": place,
            "n_attempts": n,
            "n_correct": c.ravel(),
        })
        curve = tts.curves.estimator_curve(counts, estimators=GRADED, k=k, by="run")
        known = curve.join(truths.select("selector", truth="accuracy"), on="selector")
        rows.append(
            known.group_by("selector").agg(
                pl.col("truth").is_between("ci_low", "ci_high").mean().alias("held"),
                (pl.col("ci_high") - pl.col("ci_low")).mean().alias("width"),
            )
        )
    drawn, same = (dict(zip(part["selector"], part["held"], strict=True)) for part in rows)
    width = dict(zip(rows[0]["selector"], rows[0]["width"], strict=True))
    return [(drawn[name], same[name], width[name]) for name in GRADED]


def answers(draws: np.random.Generator, shape: tuple[int, ...], spread: float) -> Floats:
    """Draw the chances of four answers, of which the first is right."""
    return draws.dirichlet([1.5 * spread, spread, spread / 2, spread / 2], shape)


def attempts(draws: np.random.Generator, chances: Floats, n: int) -> pl.DataFrame:
    """Draw n attempts at each problem of each run."""
    edges = chances.cumsum(axis=-1)[..., None, :-1]
    key = (draws.random((*chances.shape[:-1], n))[..., None] > edges).sum(axis=-1)
    run, problem, attempt = (axis.ravel() for axis in np.indices(key.shape))
    return pl.DataFrame({
        "run": run,
        "problem_id": problem,
        "attempt": attempt,
        "answer_key": key.ravel().astype(str),
        "is_correct": key.ravel() == 0,
    })


def votes(draws: np.random.Generator) -> None:
    """Print the coverage of intervals of maj@k, and the bias of the limit."""
    print("\nmaj@k (ties shared), and the limit of votes\n")
    print(
        "spread  problems  n   k  maj@k  covered |  limit  estimate   bias  undecided  inside bounds"
    )
    for spread in (0.5, 2.0, 8.0):
        many = answers(draws, (1, 40_000), spread)
        limit = float((many.argmax(axis=-1) == 0).mean())
        for n_problems, n, k in ((30, 16, 4), (30, 64, 8), (100, 16, 4)):
            truth = tts.expected_accuracy(
                attempts(draws, many, k), selectors="majority_vote", budgets=k, by="run"
            )["value"].mean()
            assert isinstance(truth, float)
            chances = answers(draws, (N_VOTE_RUNS, n_problems), spread)
            run = attempts(draws, chances, n)
            curve = tts.curves.estimator_curve(run, estimators="maj@k", k=k, by="run")
            held = curve.select(pl.lit(truth).is_between("ci_low", "ci_high").mean()).item()
            found = tts.curves.majority_limit(run, by="run")
            own = (chances.argmax(axis=-1) == 0).mean(axis=1)
            low, high = (
                found[f"accuracy_if_undecided_{end}"].to_numpy() for end in ("wrong", "right")
            )
            inside = ((low <= own) & (own <= high)).mean()
            estimate = float(found["accuracy"].to_numpy().mean())
            bias = float((found["accuracy"].to_numpy() - own).mean())
            share = float(found["n_undecided"].to_numpy().mean()) / n_problems
            print(
                f"{spread:<8}{n_problems:>7}{n:>4}{k:>4}{truth:>7.3f}{held:>8.3f}{' *' if held < 0.93 else '  '}|"
                f"{limit:>7.3f}{estimate:>9.3f}{bias:>+8.3f}{share:>10.3f}{inside:>14.3f}",
                flush=True,
            )


def bayes(draws: np.random.Generator) -> None:
    """Print the bias of Bayes@N, and how often its interval holds the accuracy at these problems."""
    print(
        "\nBayes@N, uniform prior, 30 problems: posterior mean less true accuracy at these problems\n"
    )
    print("chances               n    bias  covered")
    for world in ((1.0, 9.0), (0.5, 0.5), (1.0, 1.0), (5.0, 1.0)):
        for n in (4, 16, 64):
            chance = draws.beta(*world, (N_RUNS, 30))
            print_bayes(f"Beta{world!s}", draws.binomial(n, chance), n, chance.mean(axis=1))
    if not NOISES.exists():
        print("real models: ../shared/data/noises is not here")
        return
    table = pl.read_csv(NOISES / "aime2024.csv")
    for rows in table.partition_by("model"):
        if rows["n"].min() < 512:  # type: ignore[operator]
            continue
        n_all, c_all = rows["n"].to_numpy(), rows["c"].to_numpy()
        truth = np.full(200, (c_all / n_all).mean())
        for n in (4,):
            thinned = draws.hypergeometric(c_all, n_all - c_all, n, (200, len(rows)))
            print_bayes(rows["model"][0][:20], thinned, n, truth)


def print_bayes(name: str, c: Floats, n: int, truth: Floats) -> None:
    """Print the row of one world."""
    run, problem = (axis.ravel() for axis in np.indices(c.shape))
    counts = pl.DataFrame({
        "run": run,
        "problem_id": problem,
        "n_attempts": n,
        "n_correct": c.ravel(),
    })
    found = tts.statistics.bayes_at_n(counts, by="run")
    low, high = found["credible_low"].to_numpy(), found["credible_high"].to_numpy()
    bias = (found["posterior_mean"].to_numpy() - truth).mean()
    held = ((low <= truth) & (truth <= high)).mean()
    print(f"{name:<20}{n:>3}{bias:>+8.3f}{held:>9.3f}{' *' if held < 0.93 else ''}", flush=True)


def main() -> None:
    print(__doc__)
    draws = np.random.default_rng(0)
    intervals_of_grades(draws)
    votes(draws)
    bayes(draws)
    intervals_on_real_models(np.random.default_rng(1))


if __name__ == "__main__":
    main()
