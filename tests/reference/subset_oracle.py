"""Estimators over all subsets of k attempts, by making every one of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import polars as pl

import ttsframe as tts


class Attempt(NamedTuple):
    """What an estimator reads of an attempt."""

    is_correct: bool | None
    score: float | None


Judge = Callable[[Sequence[Attempt]], Fraction]


def count(drawn: Sequence[Attempt]) -> int:
    return sum(attempt.is_correct is True for attempt in drawn)


def share_of_correct_ones_is(share: Fraction) -> Judge:
    """Return 1 for a subset with one correct attempt at least, and at least this share of them."""
    return lambda drawn: Fraction(count(drawn) >= max(share * len(drawn), 1))


def mean_share(drawn: Sequence[Attempt]) -> Fraction:
    """Return the paper's mean over shares i/k above one half."""
    k = len(drawn)
    shares = [Fraction(i, k) for i in range(math.ceil(Fraction(k, 2)) + 1, k + 1)]
    return Fraction(2, k) * sum(share_of_correct_ones_is(share)(drawn) for share in shares)


def best(drawn: Sequence[Attempt]) -> Fraction:
    """Return the share of correct ones among the top-scored attempts, 0 without a score."""
    scored = [each for each in drawn if each.score is not None and not math.isnan(each.score)]
    if not scored:
        return Fraction(0)
    top = max(attempt.score for attempt in scored)
    tied = [attempt for attempt in scored if attempt.score == top]
    return Fraction(count(tied), len(tied))


class Estimator(NamedTuple):
    """An estimator of the package beside what it is of one subset."""

    field: str
    estimate: Callable[[int | Sequence[int]], pl.Expr]
    judge: Judge
    least_k: int = 1
    reads_score: bool = False


ESTIMATORS = (
    Estimator("pass@", lambda k: tts.pass_at_k("is_correct", k), lambda d: Fraction(count(d) > 0)),
    Estimator(
        "pass^", lambda k: tts.pass_hat_k("is_correct", k), lambda d: Fraction(count(d) == len(d))
    ),
    *(
        Estimator(
            "g_pass@",
            lambda k, tau=tau: tts.g_pass_at_k("is_correct", k, tau=tau),
            share_of_correct_ones_is(Fraction(str(tau))),
        )
        for tau in (0.0, 0.28, 0.5, 0.75, 1.0)
    ),
    Estimator("mg_pass@", lambda k: tts.mean_g_pass_at_k("is_correct", k), mean_share, least_k=2),
    Estimator(
        "best_of@",
        lambda k: tts.best_of_k("is_correct", "score", k),
        best,
        reads_score=True,
    ),
)


def over_all_subsets(attempts: Sequence[Attempt], k: int, estimator: Estimator) -> float | None:
    """Return the mean over all subsets of k graded attempts, rounded once."""
    graded = [attempt for attempt in attempts if attempt.is_correct is not None]
    has_score = any(each.score is not None and not math.isnan(each.score) for each in graded)
    if k < estimator.least_k or len(graded) < k or (estimator.reads_score and not has_score):
        return None
    judged = [estimator.judge(drawn) for drawn in itertools.combinations(graded, k)]
    return float(sum(judged) / len(judged))


def random_problems(n_problems: int, seed: int) -> list[list[Attempt]]:
    """Return problems of 0 to 10 attempts with ties, and gaps in grades and scores."""
    draws = random.Random(seed)
    problems = []
    for _ in range(n_problems):
        accuracy = draws.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        scores = draws.choice([
            [0.0, -0.0, 1.0],
            [None, math.nan, 0.5, 0.75],
            [None, math.nan],
            [-math.inf, math.inf, -2.0, None],
            [draws.random() for _ in range(20)],
        ])
        ungraded = draws.choice([0.0, 0.0, 0.2])
        problems.append([
            Attempt(
                None if draws.random() < ungraded else draws.random() < accuracy,
                draws.choice(scores),
            )
            for _ in range(draws.randint(0, 10))
        ])
    return problems


def frame_of(problems: Sequence[Sequence[Attempt]]) -> pl.DataFrame:
    """Return the attempts as a shuffled frame; a problem without attempts has no rows."""
    rows = [(i, *attempt) for i, attempts in enumerate(problems) for attempt in attempts]
    schema = {"problem_id": pl.Int64, "is_correct": pl.Boolean, "score": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.sample(fraction=1.0, shuffle=True, seed=0)
