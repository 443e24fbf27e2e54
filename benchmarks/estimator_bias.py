"""Bias of the estimators, by simulation: the mean over many runs beside the truth.

Each run is one problem, whose difficulty is drawn from a beta distribution, with n graded attempts
and some ungraded ones between them. Scores tie and are missing, wrong attempts agree with each
other or have no answer. What k attempts at a problem do that is solved with probability p is known
in closed form; estimates from n attempts must have that mean. So the distance is taken run by run,
and the luck of the difficulties drawn is no part of it. The forms that other tools use in their
place are measured alike, to show that this would find a bias.

    python benchmarks/estimator_bias.py

writes ``benchmarks/results/estimator_bias.txt``; the exit status is 1 where a mean is further than
4 of its standard errors from the truth. Another estimator is another entry in `ESTIMATORS`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

import ttsframe as tts

RESULT: Final = Path(__file__).parent / "results" / "estimator_bias.txt"
N_RUNS: Final = 10_000
SEED: Final = 20_261_121
LIMIT: Final = 4.0

KS: Final = (1, 2, 3, 4, 8, 16, 32, 64)

SCORES: Final = (None, -1.0, 0.0, 0.5, 2.0)
"""Null first: it never wins."""
IF_CORRECT: Final = (0.10, 0.10, 0.20, 0.25, 0.35)
IF_WRONG: Final = (0.15, 0.25, 0.25, 0.20, 0.15)

WRONG_ANSWERS: Final = ("wrong", "worse", None)
OF_WRONG: Final = (0.5, 0.3, 0.2)

Floats = npt.NDArray[np.float64]


class Setting(NamedTuple):
    """Graded attempts of a problem, and the beta distribution of its difficulty."""

    n: int
    difficulty: tuple[float, float]


SETTINGS: Final = tuple(
    Setting(n, difficulty) for difficulty in ((0.5, 0.5), (2.0, 2.0)) for n in (4, 16, 64)
)


class Estimator(NamedTuple):
    """An estimator, and its truth for a problem that is solved with probability p."""

    estimate: Callable[[pl.DataFrame, Sequence[int]], pl.DataFrame]
    """From attempts to one row per `problem_id`, with a Float64 column per k, named as that."""
    truth: Callable[[Floats, int], Floats]
    least_k: int = 1


class Row(NamedTuple):
    """A line of the table."""

    estimator: str
    setting: Setting
    k: int
    truth: float
    mean: float
    standard_error: float
    """Of the difference between the two."""

    @property
    def z(self) -> float:
        """Distance from the truth in standard errors."""
        return (self.mean - self.truth) / self.standard_error


def of_expression(
    make: Callable[[Sequence[int]], pl.Expr],
) -> Callable[[pl.DataFrame, Sequence[int]], pl.DataFrame]:
    """Estimate by an aggregating expression that gives a struct with a field per k."""

    def estimate(attempts: pl.DataFrame, ks: Sequence[int]) -> pl.DataFrame:
        named = make(ks).struct.rename_fields([str(k) for k in ks]).alias("estimates")
        found = attempts.group_by("problem_id").agg(named).unnest("estimates")
        # Only best-of-k is ever null here: without any score, where each of its subsets counts 0.
        return found.fill_null(0.0)

    return estimate


def tail(p: Floats, k: int, least: int) -> Floats:
    """Return the chance that at least so many of k attempts are correct."""
    return sum(
        (math.comb(k, j) * p**j * (1 - p) ** (k - j) for j in range(least, k + 1)),
        start=np.zeros_like(p),
    )


def of_share(tau: Fraction) -> Callable[[Floats, int], Floats]:
    return lambda p, k: tail(p, k, max(math.ceil(tau * k), 1))


def mean_of_shares(p: Floats, k: int) -> Floats:
    return 2 / k * sum(tail(p, k, i) for i in range(math.ceil(k / 2) + 1, k + 1))


def best(p: Floats, k: int) -> Floats:
    """Return the chance that the best of k is correct: level by level, the top one with its tie."""
    chance, below = np.zeros_like(p), np.zeros_like(p)
    for score, if_correct, if_wrong in zip(SCORES, IF_CORRECT, IF_WRONG, strict=True):
        at = p * if_correct + (1 - p) * if_wrong
        if score is not None:
            chance += ((below + at) ** k - below**k) * (p * if_correct / at)
        below += at
    return chance


ESTIMATORS: Final[Mapping[str, Estimator]] = {
    "pass@k": Estimator(
        of_expression(lambda ks: tts.pass_at_k("is_correct", ks)), lambda p, k: 1 - (1 - p) ** k
    ),
    "pass^k": Estimator(
        of_expression(lambda ks: tts.pass_hat_k("is_correct", ks)), lambda p, k: p**k
    ),
    **{
        f"G-Pass@k_{tau}": Estimator(
            of_expression(lambda ks, tau=tau: tts.g_pass_at_k("is_correct", ks, tau=tau)),
            of_share(Fraction(str(tau))),
        )
        for tau in (0.25, 0.5, 0.75)
    },
    "mG-Pass@k": Estimator(
        of_expression(lambda ks: tts.mean_g_pass_at_k("is_correct", ks)), mean_of_shares, least_k=2
    ),
    "best-of-k": Estimator(
        of_expression(lambda ks: tts.best_of_k("is_correct", "score", ks)), best
    ),
}


def mean_power(ks: Sequence[int], mean: pl.Expr) -> pl.Expr:
    return pl.struct((mean**k).alias(str(k)) for k in ks)


BIASED: Final[Mapping[str, Estimator]] = {
    "(c/n)^k": Estimator(
        of_expression(lambda ks: mean_power(ks, pl.col("is_correct").mean())), lambda p, k: p**k
    ),
    "k of n drawn with replacement, any correct": Estimator(
        of_expression(
            lambda ks: pl.struct(
                (1 - (1 - pl.col("is_correct").mean()) ** k).alias(str(k)) for k in ks
            )
        ),
        lambda p, k: 1 - (1 - p) ** k,
    ),
}
"""What other tools compute instead; every k above 1 should be found out."""


def simulate(setting: Setting, n_runs: int, seed: int) -> tuple[pl.DataFrame, Floats]:
    """Return the attempts of many runs, one problem each, and the p of each problem."""
    rng = np.random.default_rng([seed, setting.n, int(10 * setting.difficulty[0])])
    n_ungraded = max(setting.n // 8, 1)
    shape = (n_runs, setting.n + n_ungraded)
    p = rng.beta(*setting.difficulty, n_runs)
    is_correct = rng.random(shape) < p[:, None]
    uniform = rng.random(shape)
    level = np.where(
        is_correct,
        np.searchsorted(np.cumsum(IF_CORRECT)[:-1], uniform, side="right"),
        np.searchsorted(np.cumsum(IF_WRONG)[:-1], uniform, side="right"),
    )
    wrong = np.searchsorted(np.cumsum(OF_WRONG)[:-1], rng.random(shape), side="right")
    answer = np.where(is_correct, len(WRONG_ANSWERS), wrong)
    is_graded = rng.random(shape).argsort(axis=1) >= n_ungraded
    attempts = pl.DataFrame({
        "problem_id": np.repeat(np.arange(n_runs), shape[1]),
        "attempt": np.tile(np.arange(shape[1], dtype=np.uint32), n_runs),
        "answer_key": pl.Series([*WRONG_ANSWERS, "right"]).gather(answer.ravel()),
        "is_correct": is_correct.ravel(),
        "is_graded": is_graded.ravel(),
        "score": pl.Series(SCORES, dtype=pl.Float64).gather(level.ravel()),
    }).select(
        pl.exclude("is_correct", "is_graded"),
        is_correct=pl.when("is_graded").then("is_correct"),
        is_exchangeable=True,
    )
    return attempts, p


def rows_of(
    estimators: Mapping[str, Estimator], setting: Setting, n_runs: int, seed: int
) -> list[Row]:
    """Return the lines of one setting."""
    attempts, p = simulate(setting, n_runs, seed)
    rows = []
    for name, estimator in estimators.items():
        ks = [k for k in KS if estimator.least_k <= k <= setting.n]
        estimates = estimator.estimate(attempts, ks).sort("problem_id")
        for k in ks:
            truth = estimator.truth(p, k)
            estimate = estimates[str(k)].to_numpy()
            error = np.std(estimate - truth, ddof=1) / math.sqrt(n_runs)
            assert np.isfinite(error)
            rows.append(Row(name, setting, k, truth.mean(), estimate.mean(), error))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines as text."""
    head = f"{'difficulty':<16}{'n':>4}{'k':>4}{'truth':>10}{'mean':>10}{'error':>10}{'z':>8}"
    lines = []
    for name in dict.fromkeys(row.estimator for row in rows):
        lines += ["", name, head]
        for row in rows:
            if row.estimator == name:
                a, b = row.setting.difficulty
                lines.append(
                    f"{f'Beta({a:g}, {b:g})':<16}{row.setting.n:>4}{row.k:>4}{row.truth:>10.5f}"
                    f"{row.mean:>10.5f}{row.standard_error:>10.6f}{row.z:>8.2f}"
                )
    return lines


def main() -> int:
    """Write the tables; the exit status is 1 where an estimator is found biased."""
    rows = [row for each in SETTINGS for row in rows_of(ESTIMATORS, each, N_RUNS, SEED)]
    others = [row for each in SETTINGS for row in rows_of(BIASED, each, N_RUNS, SEED)]
    beyond = {z: sum(abs(row.z) > z for row in rows) for z in (1, 2, 3, LIMIT)}
    found_out = [row for row in others if row.k > 1 and abs(row.z) > LIMIT]
    lines = [
        f"{N_RUNS:,} runs a line, seed {SEED}; error: Monte-Carlo standard error of the mean,",
        "from the truth; z: distance in such errors. Lines of one difficulty and n share their runs.",
        "",
        f"{len(rows)} lines; |z| above " + ", ".join(f"{z:g}: {n}" for z, n in beyond.items()),
        f"largest |z|: {max(abs(row.z) for row in rows):.2f}",
        f"biased forms found out: {len(found_out)} of {sum(row.k > 1 for row in others)} lines",
        *table(rows),
        "",
        "For comparison, biased forms:",
        *table(others),
    ]
    print("\n".join(lines))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(beyond[LIMIT] > 0)


if __name__ == "__main__":
    sys.exit(main())
