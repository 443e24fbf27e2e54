"""best_of_k: its rules, by hand; many attempts; many k."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from polars._typing import EngineType

import ttsframe as tts
from ttsframe.errors import ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")
NAN = math.nan


def best(grades: list, scores: list, k: int) -> float | None:
    frame = pl.DataFrame(
        {"is_correct": grades, "score": scores}, schema_overrides={"score": pl.Float64}
    )
    return frame.select(tts.best_of_k("is_correct", "score", k)).item()


@pytest.mark.parametrize(
    ("grades", "scores", "k", "expected"),
    [
        # Each of 3 pairs; the top one is right and in 2 of them.
        ([True, False, False], [0.9, 0.5, 0.1], 2, 2 / 3),
        ([True, False, False], [0.1, 0.5, 0.9], 2, 0.0),
        ([True, False, False], [0.5, 0.5, 0.1], 2, 1 / 6 + 1 / 3),
        ([True, False], [-0.0, 0.0], 2, 0.5),
        # The right one has no score: it wins no pair, and alone it counts 0.
        ([True, False, False], [None, 0.5, 0.1], 1, 0.0),
        ([True, True, False], [None, 0.5, None], 1, 1 / 3),
        ([True, True, False], [NAN, 0.5, None], 2, 2 / 3),
        ([True, True], [None, NAN], 1, None),
        # An ungraded attempt is not among the n, whatever its score.
        ([None, True, False], [1.0, 0.5, 0.1], 2, 1.0),
        ([None, True, False], [1.0, 0.5, 0.1], 3, None),
        ([None, None, False], [1.0, 0.5, None], 1, None),
        ([True, False], [math.inf, 1e308], 2, 1.0),
        ([True, False], [-math.inf, None], 2, 1.0),
    ],
)
def test_by_hand(grades: list, scores: list, k: int, expected: float | None) -> None:
    found = best(grades, scores, k)
    assert found == (expected if expected is None else pytest.approx(expected, abs=1e-15))


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Int8, pl.UInt32, pl.Decimal(10, 2)])
def test_scores_of_any_number(dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"is_correct": [True, False, True], "score": [3, 3, 1]})
    expected = frame.select(tts.best_of_k("is_correct", "score", [1, 2])).item()
    cast = frame.with_columns(pl.col("score").cast(dtype), pl.col("is_correct").cast(pl.Int8))
    assert cast.select(tts.best_of_k("is_correct", "score", [1, 2])).item() == expected


def test_graded_values_are_averaged() -> None:
    frame = pl.DataFrame({"value": [0.25, 0.75, NAN], "score": [2.0, 1.0, 3.0]})
    assert math.isnan(frame.select(tts.best_of_k("value", "score", 1)).item())
    found = frame.head(2).select(tts.best_of_k("value", "score", [1, 2])).item()
    assert found == {"best_of@1": 0.5, "best_of@2": 0.25}
    # The mean number of the winner: of the scores themselves, the expected maximum.
    assert frame.select(tts.best_of_k("score", "score", 2)).item() == pytest.approx((2 + 6) / 3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tied", [False, True])
def test_no_overflow_at_100_000_attempts(engine: EngineType, *, tied: bool) -> None:
    n, ks = 100_000, [1, 2, 10, 316, 5_000, 50_000, 99_000, 100_000, 100_001]
    rng = np.random.default_rng(0)
    is_correct = rng.random(n) < 0.3
    level = np.sort(rng.integers(0, 40, n))[::-1] if tied else np.arange(n)[::-1]
    frame = pl.DataFrame({"is_correct": is_correct, "score": level}).sample(
        fraction=1.0, shuffle=True, seed=1
    )
    estimate = tts.best_of_k("is_correct", "score", ks)
    found = frame.lazy().select(estimate).collect(engine=engine).item()
    # Subsets whose best is at or below a rank, in integers: C(n - r, k) from its neighbour.
    for k in ks:
        if k > n:
            assert found[f"best_of@{k}"] is None
            continue
        assert found[f"best_of@{k}"] == pytest.approx(exactly(is_correct, level, k), abs=1e-12), k


def exactly(is_correct: np.ndarray, level: np.ndarray, k: int) -> float:
    """Return best-of-k of attempts by falling level, in fixed point of 200 digits."""
    n, one = len(level), 10**200
    below, total, start = one, 0, 0
    edges = [*(np.flatnonzero(np.diff(level)) + 1).tolist(), n]
    for end in edges:
        share = below
        for rank in range(start, end):
            # From C(n - rank, k) / C(n, k) to that of one attempt fewer.
            below = max(below * (n - rank - k) // (n - rank), 0)
        share -= below
        total += share * int(is_correct[start:end].sum()) // (end - start)
        start = end
        if below == 0:
            break
    return float(Fraction(total, one))


def test_every_k_at_once_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({
        "problem_id": rng.integers(0, 20, 900),
        "is_correct": rng.random(900) < 0.4,
        "score": rng.integers(0, 30, 900),
    })
    estimate = tts.best_of_k("is_correct", "score", range(1, 61))
    at_once = frame.group_by("problem_id").agg(estimate).sort("problem_id")
    monkeypatch.setattr("ttsframe.estimators.counting._MAX_WEIGHTS", 100)
    in_blocks = frame.group_by("problem_id").agg(estimate).sort("problem_id")
    for found, expected in zip(in_blocks["is_correct"], at_once["is_correct"], strict=True):
        assert found == pytest.approx(expected, abs=1e-14)
    backwards = frame.group_by("problem_id").agg(
        tts.best_of_k("is_correct", "score", range(60, 0, -1))
    )
    first = backwards.sort("problem_id")["is_correct"][0]
    assert list(first) == [f"best_of@{k}" for k in range(60, 0, -1)]
    assert first == pytest.approx(at_once["is_correct"][0], abs=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows(engine: EngineType) -> None:
    lazy = pl.LazyFrame(
        schema={"problem_id": pl.String, "is_correct": pl.Boolean, "score": pl.Float64}
    )
    for k in (2, [1, 2]):
        grouped = lazy.group_by("problem_id").agg(tts.best_of_k("is_correct", "score", k))
        assert grouped.collect(engine=engine).height == 0
        assert grouped.collect(engine=engine).schema == grouped.collect_schema()
    whole = lazy.select(tts.best_of_k("is_correct", "score", 1)).collect(engine=engine)
    assert whole.rows() == [(None,)]


def test_columns_of_unlike_length_are_an_error() -> None:
    frame = pl.DataFrame({"is_correct": [True, False, None], "score": [1.0, 2.0, 3.0]})
    with pytest.raises(pl.exceptions.ShapeError):
        frame.select(tts.best_of_k(pl.col("is_correct").drop_nulls(), "score", 1))


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ParameterError, "k == 0, must be at least 1"),
        ([], ParameterError, "k is empty"),
        (1.5, ParameterTypeError, "k must be an int, got float"),
    ],
)
def test_impossible_k_is_refused_at_once(k: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tts.best_of_k("is_correct", "score", k)  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match=r"score must be .*, got float"):
        tts.best_of_k("is_correct", 0.5, 2)  # type: ignore[arg-type]
