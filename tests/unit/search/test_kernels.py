"""Allocations sum to the width, whatever the scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsframe.search.policies.kernels import (
    Groups,
    allocate_ceil,
    allocate_round,
    make_groups,
    ranks,
    resample,
    softmax_weights,
    spread,
)


def grouped(sizes: list[int]) -> Groups:
    return make_groups(np.repeat(np.arange(len(sizes)), sizes))


def drawn(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "probabilities":
        return rng.random(n)
    if kind == "logits":
        return rng.normal(0, 12, n)
    if kind == "ties":
        return rng.integers(0, 3, n) / 2
    scores = rng.random(n)
    scores[rng.random(n) < 0.5] = np.nan
    return scores


@pytest.mark.parametrize("kind", ["probabilities", "logits", "ties", "unscored"])
@pytest.mark.parametrize("allocate", [allocate_ceil, allocate_round])
def test_an_allocation_is_exactly_the_width(kind: str, allocate: object) -> None:
    # 2 x 4 x 12,500 draws: candidates from one to twice the width.
    rng = np.random.default_rng(5)
    for width in (1, 3, 7, 16, 64):
        n_groups = 2500
        groups = grouped(rng.integers(1, 2 * width + 1, n_groups).tolist())
        scores = drawn(kind, len(groups.of_row), rng)
        weights = softmax_weights(groups, scores, 0.2)
        given_ = allocate(groups, weights, ranks(groups, scores), np.full(n_groups, width))  # type: ignore[operator]
        assert given_.min() >= 0
        assert (np.add.reduceat(given_, groups.starts) == width).all()


def test_an_equal_share_is_not_rounded_up() -> None:
    # A third of twelve is four, although three times a float can differ from its triple.
    for value in (0.1, 0.3, 0.7):
        groups = grouped([3])
        weights = softmax_weights(groups, np.full(3, value), 0.2)
        assert allocate_ceil(groups, weights, np.arange(3), np.array([12])).tolist() == [4, 4, 4]


def test_rebase_is_top_heavy_as_published() -> None:
    groups, scores = grouped([4]), np.array([0.9, 0.8, 0.1, 0.1])
    weights = softmax_weights(groups, scores, 0.2)
    given_ = allocate_ceil(groups, weights, ranks(groups, scores), np.array([8]))
    assert given_.tolist() == [5, 3, 0, 0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 30))
def test_a_better_score_never_gets_less(values: list[float], width: int) -> None:
    groups, scores = grouped([len(values)]), np.array(values)
    weights = softmax_weights(groups, scores, 0.2)
    order = ranks(groups, scores)
    given_ = allocate_ceil(groups, weights, order, np.array([width]))
    by_rank = given_[np.argsort(order)]
    # Rounding up can leave the next best one more than its share, never more than one before it.
    assert by_rank[0] == by_rank.max()
    assert given_.sum() == width


def test_ranks_put_ties_by_position_and_unscored_last() -> None:
    groups, scores = grouped([4, 2]), np.array([0.5, np.nan, 0.9, 0.5, np.nan, -3.0])
    assert ranks(groups, scores).tolist() == [1, 3, 0, 2, 1, 0]
    assert ranks(groups, scores, prefers_later=True).tolist() == [2, 3, 0, 1, 1, 0]


def test_a_group_without_scores_shares_equally() -> None:
    groups, scores = grouped([2, 2]), np.array([np.nan, np.nan, np.nan, 0.3])
    assert softmax_weights(groups, scores, 0.2).tolist() == [1.0, 1.0, 0.0, 1.0]


def test_spread_gives_what_is_over_by_order() -> None:
    groups = grouped([4])
    is_kept = np.array([True, False, True, True])
    order = np.array([2, 3, 0, 1])
    assert spread(groups, is_kept, order, np.array([8])).tolist() == [2, 0, 3, 3]
    assert spread(groups, is_kept, np.arange(4), np.array([8])).tolist() == [3, 0, 3, 2]


@pytest.mark.parametrize("is_systematic", [False, True])
def test_resampling_draws_the_width_in_proportion(is_systematic: bool) -> None:
    n = 4000
    groups = grouped([3] * n)
    weights = np.tile([0.5, 0.3, 0.2], n)
    draws = np.random.default_rng(0).integers(0, 2**63, n).astype(np.uint64)
    counts = resample(groups, weights, np.full(n, 10), draws, is_systematic=is_systematic)
    table = counts.reshape(n, 3)
    assert (table.sum(axis=1) == 10).all()
    assert np.abs(table.mean(axis=0) - [5, 3, 2]).max() < 0.1
    # Independent draws vary as a binomial; evenly spaced points by less than one.
    assert (np.ptp(table[:, 0]) <= 1) == is_systematic
    if not is_systematic:
        assert abs(table[:, 0].var() - 2.5) < 0.25


def test_a_weight_of_zero_is_never_drawn() -> None:
    groups = grouped([3] * 500)
    draws = np.arange(500).astype(np.uint64)
    counts = resample(groups, np.tile([0.0, 1.0, 0.0], 500), np.full(500, 8), draws)
    assert counts.reshape(500, 3).sum(axis=0).tolist() == [0, 4000, 0]
