"""Counts over subsets in floating point, against integers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ttsframe.estimators.counting import best_of_draws, mean_excess, multiply, rank_weights


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_the_weight_of_a_rank_is_its_share_of_subsets(n: int) -> None:
    ks = np.arange(1, n + 1)
    found = rank_weights(n, ks)
    assert found.shape == (n, n)
    for rank, k in itertools.product(range(n), ks.tolist()):
        expected = math.comb(n - 1 - rank, k - 1) / math.comb(n, k)
        assert found[rank, k - 1] == pytest.approx(expected, rel=1e-13, abs=1e-300)


def test_weights_add_up_to_1_for_100_000_attempts() -> None:
    for k in (1, 2, 40, 5_000, 99_999, 100_000):
        weights = rank_weights(100_000, np.array([k]))[:, 0]
        assert math.fsum(weights) == pytest.approx(1.0, abs=1e-13)


def test_the_excess_of_every_small_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttsframe.estimators.counting._BLOCK", 100)
    cases = [
        (n, c, k, above, most)
        for n in range(1, 9)
        for c in range(n + 1)
        for k in range(1, n + 1)
        for above in range(k + 1)
        for most in (1, 2, k)
    ]
    n, c, k, above, most = np.array(cases).T
    found = mean_excess(n, c, k, above=above, most=most)
    for value, (n_, c_, k_, above_, most_) in zip(found, cases, strict=True):
        total = sum(
            math.comb(c_, j) * math.comb(n_ - c_, k_ - j) * min(max(j - above_, 0), most_)
            for j in range(k_ + 1)
        )
        assert value == pytest.approx(total / math.comb(n_, k_), abs=1e-13)


def test_no_rows_have_no_excess() -> None:
    none = np.array([], dtype=np.int64)
    assert mean_excess(none, none, none, above=none, most=none).shape == (0,)


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 130])
@pytest.mark.parametrize("n", [1, 64, 100, 10_000])
@pytest.mark.parametrize("n_columns", [1, 64, 70])
def test_a_product_in_tiles_is_the_product(n_rows: int, n: int, n_columns: int) -> None:
    rng = np.random.default_rng(n_rows)
    # Whole numbers, whose sums are exact in any order.
    left = rng.integers(-9, 9, (n_rows, n)).astype(np.float64)
    right = rng.integers(-9, 9, (n, n_columns)).astype(np.float64)
    np.testing.assert_array_equal(multiply(left, right), left @ right)


def test_groups_of_unlike_size_and_draws_in_any_order() -> None:
    value = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    score = np.array([0.1, 0.9, 0.5, 0.5, np.nan, np.nan])
    estimates, is_null = best_of_draws(value, score, np.array([2, 2, 4, 6]), np.array([2, 1, 3]))
    assert is_null.tolist() == [
        [False, True, False, True],
        [False, True, False, True],
        [True] * 4,
    ]
    np.testing.assert_allclose(estimates[:2, [0, 2]], [[0.0, 0.5], [0.5, 0.5]])
