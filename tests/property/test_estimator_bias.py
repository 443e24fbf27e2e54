"""A seeded part of ``benchmarks/estimator_bias.py``: no estimator is biased, and a bias is found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.estimator_bias import BIASED, ESTIMATORS, LIMIT, SETTINGS, Setting, best, rows_of

N_RUNS = 2_000


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_mean_over_runs_is_the_truth(setting: Setting) -> None:
    rows = rows_of(ESTIMATORS, setting, N_RUNS, seed=1)
    assert {row.estimator for row in rows} == set(ESTIMATORS)
    assert {row.k for row in rows} >= {1, 2, setting.n}
    assert [row for row in rows if not abs(row.z) <= LIMIT] == []


def test_a_biased_form_is_found_out() -> None:
    rows = rows_of(BIASED, Setting(4, (0.5, 0.5)), N_RUNS, seed=1)
    assert all(abs(row.z) > LIMIT for row in rows if row.k > 1)
    assert all(abs(row.z) < LIMIT for row in rows if row.k == 1)


def test_the_truth_of_best_of_k_is_that_of_draws() -> None:
    """By drawing the k attempts themselves, with neither subsets nor the package."""
    from benchmarks.estimator_bias import IF_CORRECT, IF_WRONG

    rng = np.random.default_rng(0)
    p, k, n_runs = 0.4, 3, 200_000
    is_correct = rng.random((n_runs, k)) < p
    level = np.where(
        is_correct,
        rng.choice(len(IF_CORRECT), (n_runs, k), p=IF_CORRECT),
        rng.choice(len(IF_WRONG), (n_runs, k), p=IF_WRONG),
    )
    # A tie goes to any of the tied ones; the lowest level is a score that is missing.
    winner = (level + rng.random((n_runs, k))).argmax(axis=1)
    won = is_correct[np.arange(n_runs), winner] & (level.max(axis=1) > 0)
    error = won.std() / math.sqrt(n_runs)
    assert best(np.array([p]), k)[0] == pytest.approx(won.mean(), abs=4 * error)
