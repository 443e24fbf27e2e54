"""A seeded part of ``benchmarks/interval_coverage.py``: intervals cover, tests keep their size."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import ttsframe as tts
from benchmarks.interval_coverage import NULLS, Cell, coverage, size

N_RUNS = 1_000

CELLS = [
    Cell(n_problems, n_attempts, difficulty)
    for n_problems, n_attempts in ((50, 1), (50, 4), (200, 16))
    for difficulty in ((0.5, 0.5), (8.0, 2.0))
]


def margin(share: float) -> float:
    """Return four Monte-Carlo standard errors, in percent."""
    return 400.0 * math.sqrt(share * (1.0 - share) / N_RUNS)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_interval_of_a_curve_covers_the_truth(cell: Cell) -> None:
    found = coverage(cell, N_RUNS, kinds=("curve", "wilson", "attempts"))
    # The whole grid is kept with the benchmark; every cell of it lies between 93.5 and 96.5.
    assert 93.5 - margin(0.935) < found["curve"] < 96.5 + margin(0.965)
    if cell.n_attempts == 1:
        assert found["curve"] == found["wilson"] == found["attempts"]
    elif cell.difficulty == (0.5, 0.5):
        assert found["attempts"] < 85.0


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_bootstraps_over_problems_cover_the_truth(method: str) -> None:
    found = coverage(Cell(200, 4, (8.0, 2.0)), 500, kinds=("curve", method))
    assert found[method] == pytest.approx(95.0, abs=400.0 * math.sqrt(0.95 * 0.05 / 500))


@pytest.mark.parametrize(("n_problems", "k"), [(50, 4), (200, 4), (50, 8)])
def test_pass_at_k_near_one_is_covered_too_often_rather_than_too_rarely(
    n_problems: int, k: int
) -> None:
    found = coverage(Cell(n_problems, 16, (8.0, 2.0)), N_RUNS, k=k, kinds=("curve", "student"))
    assert found["student"] < 92.0
    assert found["curve"] > 93.5 - margin(0.935)


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_without_a_difference_the_test_seldom_finds_one(cell: Cell, null: str) -> None:
    found = size(cell, null, N_RUNS)
    assert 3.5 - margin(0.035) < found["interval"] < 6.5 + margin(0.065)
    if cell.n_attempts == 1:
        assert found["test"] <= 5.0 + margin(0.05)
    else:
        assert 4.0 - margin(0.04) < found["test"] < 6.0 + margin(0.06)


def test_clusters_that_share_their_luck_need_to_be_named() -> None:
    """40 texts of 1 to 9 problems; the models differ by text, one way or the other, alike."""
    rng = np.random.default_rng(6)
    sizes = np.tile(np.arange(1, 10), 5)[:40]
    text = np.repeat(np.arange(40), sizes)
    shift = rng.choice([-0.4, 0.4], (N_RUNS, 40))[:, text]
    sides = {"new": 0.5 + shift, "old": np.full(shift.shape, 0.5)}
    frame = pl.concat(
        pl.DataFrame({
            "run": np.repeat(np.arange(N_RUNS), text.size),
            "problem_id": np.tile(np.arange(text.size), N_RUNS),
            "text": np.tile(text, N_RUNS),
            "value": (rng.random(chances.shape) < chances).ravel().astype(float),
        }).with_columns(model=pl.lit(model))
        for model, chances in sides.items()
    )
    rejected = {
        cluster: 100.0
        * tts
        .compare(frame, column="model", baseline="old", by="run", cluster=cluster)
        .select((pl.col("p_value") <= 0.05).mean())
        .item()
        for cluster in (None, "text")
    }
    assert rejected[None] > 15.0
    assert 4.0 - margin(0.04) < rejected["text"] < 6.5 + margin(0.065)
