"""G-Pass@k: the paper's edges, shares that rounding spoils, many attempts, bad values."""

from __future__ import annotations

import math
from collections.abc import Callable

import polars as pl
import pytest
from polars._typing import EngineType

import ttsframe as tts
from ttsframe._typing import IntoExprColumn
from ttsframe.errors import DataError, ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")


def attempts(n: int, c: int) -> pl.DataFrame:
    return pl.DataFrame({"is_correct": [True] * c + [False] * (n - c)})


def tail(n: int, c: int, k: int, least: int) -> float:
    """Return the share of subsets with at least so many correct ones, in integers."""
    low, high = max(0, k - (n - c)), min(c, k)
    term = math.comb(c, low) * math.comb(n - c, k - low)
    total = within = 0
    for j in range(low, high + 1):
        total += term
        within += term if j >= least else 0
        term = term * (c - j) * (k - j) // ((j + 1) * (n - c - k + j + 1))
    return within / total


@pytest.mark.parametrize(
    ("tau", "k", "least"),
    [
        (0.28, 25, 7),  # 0.28 * 25 == 7.000000000000001
        (0.07, 100, 7),
        (0.55, 100, 55),
        (5 / 9, 9, 5),
        (2 / 3, 3, 2),
        (0.5, 3, 2),
        (0.500001, 4, 3),
        (0.0, 5, 1),
        (1.0, 5, 5),
    ],
)
def test_a_share_that_rounding_lifts_is_the_whole_number(tau: float, k: int, least: int) -> None:
    n, c = 120, 55
    found = attempts(n, c).select(tts.g_pass_at_k("is_correct", k, tau=tau)).item()
    assert found == pytest.approx(tail(n, c, k, least), abs=1e-13)


def test_every_count_of_a_share_of_a_round_number() -> None:
    for k in (20, 25, 50, 100):
        for percent in range(1, 101):
            least = -(-percent * k // 100)
            found = attempts(120, 60).select(tts.g_pass_at_k("is_correct", k, tau=percent / 100))
            assert found.item() == pytest.approx(tail(120, 60, k, least), abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("n", "c", "k", "tau"),
    [
        (100_000, 0, 100, 0.5),
        (100_000, 1, 50_000, 0.00001),
        (100_000, 40, 99_970, 0.0004),
        (100_000, 99_990, 50_000, 0.99995),
        (100_000, 700, 99_000, 0.007),
        (100_000, 30_000, 800, 0.31),
        (99_999, 50_001, 300, 0.5),
        (100_000, 100_000, 100_000, 1.0),
        (100_000, 99_999, 100_000, 1.0),
    ],
)
def test_no_overflow_at_100_000_attempts(
    n: int, c: int, k: int, tau: float, engine: EngineType
) -> None:
    least = max(math.ceil(round(tau * k, 6)), 1)
    plan = attempts(n, c).lazy().select(tts.g_pass_at_k("is_correct", k, tau=tau))
    assert plan.collect(engine=engine).item() == pytest.approx(tail(n, c, k, least), abs=1e-12)


def test_half_of_half_of_100_000_attempts_is_symmetric() -> None:
    n = 100_000
    ks = [49_999, 50_000]
    found = attempts(n, n // 2).select(tts.g_pass_at_k("is_correct", ks, tau=0.5)).item()
    # J and k - J have one distribution, so an odd k has no middle.
    assert found["g_pass@49999"] == pytest.approx(0.5, abs=1e-12)
    logs = [math.lgamma(x + 1) for x in (n // 2, n // 4, n, n // 2)]
    middle = math.exp(4 * logs[0] - 4 * logs[1] - logs[2])
    assert found["g_pass@50000"] == pytest.approx(0.5 + middle / 2, abs=1e-9)
    means = attempts(n, n // 2).select(tts.mean_g_pass_at_k("is_correct", n)).item()
    assert means == pytest.approx(0.0, abs=1e-12)


def test_the_mean_form_is_null_for_one_draw_and_below_1_for_an_odd_number() -> None:
    found = attempts(8, 8).select(tts.mean_g_pass_at_k("is_correct", [1, 2, 3, 4, 7, 9])).item()
    assert found == {
        "mg_pass@1": None,
        "mg_pass@2": 1.0,
        "mg_pass@3": pytest.approx(2 / 3),
        "mg_pass@4": 1.0,
        "mg_pass@7": pytest.approx(6 / 7),
        "mg_pass@9": None,
    }
    assert attempts(8, 8).select(tts.mean_g_pass_at_k("is_correct", 1)).item() is None


def test_numbers_0_and_1_count_as_booleans_and_a_nan_carries_on() -> None:
    frame = attempts(6, 4)
    expected = frame.select(tts.g_pass_at_k("is_correct", [1, 2, 5])).item()
    for dtype in (pl.Int8, pl.UInt32, pl.Float32, pl.Float64):
        cast = frame.with_columns(pl.col("is_correct").cast(dtype))
        assert cast.select(tts.g_pass_at_k("is_correct", [1, 2, 5])).item() == expected
    unknown = pl.DataFrame({"problem_id": [1, 1, 2], "value": [1.0, math.nan, 1.0]})
    found = unknown.group_by("problem_id").agg(tts.g_pass_at_k("value", [1, 2])).sort("problem_id")
    assert math.isnan(found["value"][0]["g_pass@1"])
    assert math.isnan(found["value"][0]["g_pass@2"])
    assert found["value"][1] == {"g_pass@1": 1.0, "g_pass@2": None}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("estimate", [tts.g_pass_at_k, tts.mean_g_pass_at_k])
def test_parts_of_a_correct_attempt_are_refused(
    estimate: Callable[[IntoExprColumn, int], pl.Expr], engine: EngineType
) -> None:
    lazy = pl.LazyFrame({"problem_id": [1, 1, 2], "value": [0.5, 0.5, 1.0]})
    plan = lazy.group_by("problem_id").agg(estimate("value", 2))
    with pytest.raises(DataError, match=r"other than 0 and 1 in 1 of 2 groups"):
        plan.collect(engine=engine)
    made_whole = lazy.group_by("problem_id").agg(estimate(pl.col("value") >= 1, 2))
    assert made_whole.collect(engine=engine).height == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows(engine: EngineType) -> None:
    lazy = pl.LazyFrame(schema={"problem_id": pl.String, "is_correct": pl.Boolean})
    for estimate in (tts.g_pass_at_k, tts.mean_g_pass_at_k):
        grouped = lazy.group_by("problem_id").agg(estimate("is_correct", [1, 2]))
        assert grouped.collect(engine=engine).height == 0
        assert grouped.collect(engine=engine).schema == grouped.collect_schema()
        whole = lazy.select(estimate("is_correct", 2)).collect(engine=engine)
        assert whole.rows() == [(None,)]


@pytest.mark.parametrize("tau", [-0.1, 1.1, math.nan])
def test_an_impossible_share_is_refused_at_once(tau: float) -> None:
    with pytest.raises(ParameterError, match="tau == "):
        tts.g_pass_at_k("is_correct", 2, tau=tau)


def test_an_impossible_k_is_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="k == 0"):
        tts.g_pass_at_k("is_correct", 0)
    with pytest.raises(ParameterTypeError, match=r"k must be .*, got float"):
        tts.mean_g_pass_at_k("is_correct", 2.5)  # type: ignore[arg-type]
