"""Coverage of simultaneous bands, of averages over subjects, and of the AUROC within problems.

``python benchmarks/average_coverage.py [RUNS]`` prints the tables that are kept in
``benchmarks/results/average_coverage.txt``. Every run is simulated with numpy; the rest is the package's
own functions on frames of many runs.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
import polars as pl

import ttsframe as tts

N_RUNS: Final = 1_000
BUDGETS: Final = (1, 2, 4, 8, 16)


def problems_of(values: np.ndarray, **more: object) -> pl.DataFrame:
    """Bring values of shape (runs, problems) into `problems`."""
    n_runs, n_problems = values.shape
    return pl.DataFrame({
        "run": np.repeat(np.arange(n_runs), n_problems),
        "problem_id": np.tile(np.arange(n_problems), n_runs),
        "value": values.ravel(),
        **more,
    }).with_columns(
        selector=pl.lit("simulated"), reduction=pl.lit(None, pl.String), status=pl.lit("ok")
    )


def bands(n_runs: int, n_problems: int, *, is_fractional: bool) -> tuple[float, float, float]:
    """Return how often all budgets are held at once: simultaneously, one by one, and the quantile."""
    rng = np.random.default_rng([21, n_problems, is_fractional])
    chances = rng.beta(0.6, 0.6, (n_runs, n_problems))
    tables = []
    drawn = rng.random((n_runs, n_problems, max(BUDGETS))) < chances[..., None]
    for budget in BUDGETS:
        # The oracle of the first attempts, or pass@k with known chances plus the noise of sixteen.
        values = drawn[..., :budget].any(axis=2).astype(float)
        if is_fractional:
            values = 1.0 - (1.0 - drawn.mean(axis=2)) ** budget
        tables.append(problems_of(values, budget=np.full(values.size, budget, np.uint32)))
    problems = pl.concat(tables)
    grid = np.random.default_rng(0).beta(0.6, 0.6, 4_000_000)
    truth = {
        b: float(
            (1.0 - (1.0 - np.random.default_rng(b).binomial(16, grid) / 16) ** b).mean()
            if is_fractional
            else (1.0 - (1.0 - grid) ** b).mean()
        )
        for b in BUDGETS
    }
    found = []
    for curve in (
        tts.curves.simultaneous_curve(problems, by="run"),
        tts.scaling_curve(problems, by="run"),
    ):
        known = curve.with_columns(truth=pl.col("budget").replace_strict(truth))
        held = known.group_by("run").agg(pl.col("truth").is_between("ci_low", "ci_high").all())
        found.append(100.0 * held["truth"].mean())  # type: ignore[operator]
        if "quantile" in curve.columns:
            quantile = float(curve["quantile"].mean())  # type: ignore[arg-type]
    return found[0], found[1], quantile


def strata(
    n_runs: int, sizes: list[int], chances: list[float], n_attempts: int
) -> dict[str, float]:
    """Return the coverage of both averages."""
    rng = np.random.default_rng([22, *sizes, n_attempts])
    p = np.repeat(chances, sizes)
    k = 4.0
    of_problem = rng.beta(p * k, (1.0 - p) * k, (n_runs, p.size))
    values = rng.binomial(n_attempts, of_problem) / n_attempts
    subject = np.tile(np.repeat(np.arange(len(sizes)), sizes), n_runs)
    problems = problems_of(values, subject=subject, budget=np.full(values.size, 1, np.uint32))
    curve = tts.curves.stratified_curve(problems, strata="subject", by="run")
    truth = {"macro": float(np.mean(chances)), "micro": float(p.mean())}
    return {
        name: 100.0
        * curve.filter(average=name).select(pl.lit(t).is_between("ci_low", "ci_high").mean()).item()
        for name, t in truth.items()
    }


def auroc(
    n_runs: int, n_problems: int, n_attempts: int, strength: float
) -> tuple[float, float, float]:
    """Return the true AUROC within problems, the coverage of its interval, and of Student's."""
    rng = np.random.default_rng([23, n_problems, n_attempts, int(10 * strength)])

    def frame(n: int, n_problems: int) -> pl.DataFrame:
        right = rng.random((n, n_problems, n_attempts)) < 0.5
        score = rng.normal(size=right.shape) + strength * right
        run, problem, _ = np.indices(right.shape)
        return pl.DataFrame({
            "run": run.ravel(),
            "problem_id": problem.ravel(),
            "is_correct": right.ravel(),
            "score": score.ravel(),
        })

    from scipy.stats import norm

    truth = float(norm.cdf(strength / 2**0.5))
    metrics = tts.verifier_metrics(frame(n_runs, n_problems), by="run")
    student = tts.student_t_interval("auroc_within", "standard_error", "n_judged").struct
    held, by_t = metrics.select(
        pl.lit(truth).is_between("ci_low", "ci_high").mean(),
        pl
        .lit(truth)
        .is_between(student.field("ci_low"), student.field("ci_high"))
        .mean()
        .alias("t"),
    ).row(0)
    return truth, 100.0 * held, 100.0 * by_t


def profile(n_runs: int, n_problems: int, mean: float) -> tuple[float, float]:
    """Return the coverage of the intervals of step_profile, and of Student's, for scores near 1."""
    rng = np.random.default_rng([24, n_problems, int(1000 * mean)])
    scores = rng.beta(0.5 * mean, 0.5 * (1.0 - mean), (n_runs, n_problems))
    frame = pl.DataFrame({
        "run": np.repeat(np.arange(n_runs), n_problems),
        "problem_id": np.tile(np.arange(n_problems), n_runs),
        "step_scores": pl.Series(scores.ravel()).reshape((-1, 1)).arr.to_list(),
        "is_correct": True,
    })
    table = tts.verifier.step_profile(frame, by="run", n_bins=1)
    student = tts.student_t_interval("mean_score", "standard_error", "n_problems").struct
    held, by_t = table.select(
        pl.lit(mean).is_between("ci_low", "ci_high").mean(),
        pl
        .lit(mean)
        .is_between(student.field("ci_low"), student.field("ci_high"))
        .mean()
        .alias("t"),
    ).row(0)
    return 100.0 * held, 100.0 * by_t


def main(n_runs: int) -> None:
    """Print the tables."""
    print(f"Coverage in % of nominal 95 % intervals, {n_runs:,} runs a row.\n")
    print(f"simultaneous_curve: {len(BUDGETS)} budgets held at once\n")
    print("values     problems  simultaneous  one by one  quantile")
    for is_fractional in (False, True):
        for n_problems in (30, 100, 400):
            both, single, quantile = bands(n_runs, n_problems, is_fractional=is_fractional)
            kind = "fractions" if is_fractional else "0 or 1"
            print(
                f"{kind:<11}{n_problems:>8}{both:>14.1f}{single:>12.1f}{quantile:>10.2f}",
                flush=True,
            )
    print("\nstratified_curve\n")
    print("sizes of subjects       accuracies             attempts   macro   micro")
    for sizes, chances in (
        ([20, 20, 20], [0.5, 0.5, 0.5]),
        ([100, 20, 10], [0.9, 0.5, 0.2]),
        ([5] * 10, [0.3, 0.5, 0.7, 0.9, 0.1] * 2),
        ([50, 30, 20, 10], [0.97, 0.95, 0.98, 0.9]),
    ):
        for n_attempts in (1, 8):
            found = strata(n_runs, sizes, chances, n_attempts)
            of_sizes = ", ".join(map(str, sizes)) if len(sizes) < 6 else "10 of 5"
            of_chances = ", ".join(map(str, chances)) if len(sizes) < 6 else "0.1 to 0.9"
            print(
                f"{of_sizes:<24}{of_chances:<23}{n_attempts:>8}{found['macro']:>8.1f}{found['micro']:>8.1f}",
                flush=True,
            )
    print("\nauroc_within of verifier_metrics\n")
    print("problems  attempts   truth  interval  Student's t")
    for n_problems, n_attempts in ((20, 4), (20, 16), (100, 4)):
        for strength in (0.0, 1.0, 2.5, 3.5):
            truth, held, by_t = auroc(n_runs, n_problems, n_attempts, strength)
            print(
                f"{n_problems:<10}{n_attempts:>8}{truth:>8.3f}{held:>10.1f}{by_t:>13.1f}",
                flush=True,
            )
    print("\nmean_score of step_profile\n")
    print("problems   truth  interval  Student's t")
    for n_problems in (20, 100):
        for mean in (0.5, 0.9, 0.98):
            held, by_t = profile(n_runs, n_problems, mean)
            print(f"{n_problems:<8}{mean:>8.2f}{held:>10.1f}{by_t:>13.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS)
