"""Bayes@N: the published numbers, draws from the posterior, and its bias in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts

# The example of arXiv:2510.04265's own package, without earlier results.
RUBRIC = [[0.0, 0.5, 1.0, 1.0, 0.5], [0.5, 0.5, 0.0, 1.0, 1.0]]


def frame_of(values: list[list[Any]], name: str = "is_correct") -> pl.DataFrame:
    rows = [(f"p{q}", value) for q, listed in enumerate(values) for value in listed]
    return pl.DataFrame(rows, schema=["problem_id", name], orient="row")


def test_the_published_example() -> None:
    run = frame_of(RUBRIC, "grade")
    row = tts.statistics.bayes_at_n(run, value="grade", outcomes=(0.0, 0.5, 1.0)).row(0, named=True)
    assert round(row["posterior_mean"], 6) == 0.5625
    assert round(row["posterior_deviation"], 6) == 0.091998
    half = 1.959963984540054 * row["posterior_deviation"]
    assert row["credible_low"] == pytest.approx(0.5625 - half, abs=1e-12)
    assert row["credible_high"] == pytest.approx(0.5625 + half, abs=1e-12)


def test_moments_are_those_of_draws_from_the_posterior() -> None:
    values = [[0.0, 1.0, 1.0], [2.0, 2.0], [0.0, 0.0, 0.0, 1.0]]
    outcomes = (2.0, 0.0, 1.0)
    row = tts.statistics.bayes_at_n(frame_of(values), outcomes=outcomes, prior=0.5).row(
        0, named=True
    )
    rng = np.random.default_rng(0)
    total = sum(
        rng.dirichlet([0.5 + listed.count(w) for w in outcomes], 200_000) @ np.array(outcomes)
        for listed in values
    )
    assert isinstance(total, np.ndarray)
    assert row["posterior_mean"] == pytest.approx(total.mean() / 3, abs=3e-3)
    assert row["posterior_deviation"] == pytest.approx(total.std() / 3, rel=0.01)
    assert row["mean"] == pytest.approx((2 / 3 + 2 + 1 / 4) / 3)


def test_rare_successes_are_pulled_up_by_what_the_formula_says() -> None:
    run = frame_of([[True, False, False, False]] * 3 + [[False] * 4] * 3)
    row = tts.statistics.bayes_at_n(run).row(0, named=True)
    assert row["mean"] == 0.125
    assert row["posterior_mean"] - row["mean"] == pytest.approx(2 / 6 * (0.5 - 0.125))


def test_counts_order_and_gaps() -> None:
    run = frame_of([[True, False, None], [True, True, True], [None, None, None]])
    found = tts.statistics.bayes_at_n(run)
    assert found.select("n_problems", "n_left_out", "n_attempts").row(0) == (2, 1, 2.5)
    counts = pl.DataFrame({
        "problem_id": ["a", "b", "c"],
        "n_attempts": [2, 3, 0],
        "n_correct": [1, 3, 0],
    })
    assert_frame_equal(tts.statistics.bayes_at_n(counts), found)
    for seed in range(3):
        again = run.sample(fraction=1.0, shuffle=True, seed=seed)
        assert tts.statistics.bayes_at_n(again.lazy()).collect().equals(found)


def test_a_run_without_outcomes_has_no_posterior() -> None:
    found = tts.statistics.bayes_at_n(frame_of([[None, None]]).cast({"is_correct": pl.Boolean}))
    row = found.row(0, named=True)
    assert (row["posterior_mean"], row["credible_low"], row["n_left_out"]) == (None, None, 1)
    assert not any(isinstance(value, float) and math.isnan(value) for value in row.values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": 0.0}, "prior == 0.0, must be greater than 0"),
        ({"outcomes": (1.0,)}, "at least two different numbers"),
        ({"outcomes": (0.0, math.inf)}, "must be finite"),
        ({"credible_level": 1.0}, "credible_level == 1.0"),
        ({"value": "grade"}, "missing column"),
        ({"by": "mean"}, "by names"),
    ],
)
def test_what_is_impossible_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(tts.TtsframeError, match=words):
        tts.statistics.bayes_at_n(frame_of([[True]]).lazy(), **options)


def test_a_score_that_is_no_outcome_is_named() -> None:
    with pytest.raises(tts.TtsframeError, match=r"'is_correct' holds 0.5, expected one of"):
        tts.statistics.bayes_at_n(frame_of([[0.5, 1.0]]))
