"""Intervals against scipy's own Wilson interval, closed forms of Student's t, and hand values."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars._typing import EngineType
from scipy.stats import binomtest

import ttsframe as tts
from ttsframe.errors import ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")


def wilson(c: float | None, n: int | None, level: float = 0.95) -> tuple[float, float]:
    frame = pl.DataFrame({"c": [c], "n": [n]}, schema={"c": pl.Float64, "n": pl.UInt32})
    row = frame.select(tts.wilson_interval("c", "n", confidence_level=level)).unnest("c").row(0)
    return row[0], row[1]


def student(
    mean: float | None, standard_error: float | None, n: int | None, level: float = 0.95
) -> tuple[float, float]:
    frame = pl.DataFrame(
        {"mean": [mean], "se": [standard_error], "n": [n]},
        schema={"mean": pl.Float64, "se": pl.Float64, "n": pl.UInt32},
    )
    interval = tts.student_t_interval("mean", "se", "n", confidence_level=level)
    row = frame.select(interval).unnest("mean").row(0)
    return row[0], row[1]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99, 0.999_999])
def test_wilson_equals_scipy(level: float) -> None:
    for n in (1, 2, 3, 10, 97, 1_000):
        for c in {0, 1, n // 3, n // 2, n - 1, n}:
            expected = binomtest(c, n).proportion_ci(level, method="wilson")
            assert wilson(c, n, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_published_values() -> None:
    """Newcombe (1998), Statistics in Medicine 17, table I, method 3, to its four digits."""
    published = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (c, n), ends in published.items():
        assert wilson(c, n) == pytest.approx(ends, abs=5.1e-5)


def test_wilson_ends_are_exact_where_none_or_all_are_correct() -> None:
    for n in range(1, 400):
        assert wilson(0, n)[0] == 0.0
        assert wilson(n, n)[1] == 1.0


@given(n=st.integers(1, 10**9), data=st.data())
def test_wilson_is_symmetric_and_holds_the_proportion(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    low, high = wilson(c, n)
    assert 0.0 <= low <= c / n * (1 + 1e-15)
    assert c / n * (1 - 1e-15) <= high <= 1.0
    assert low < high
    mirrored = wilson(n - c, n)
    assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)


def t_quantile(p: float, degrees: int) -> float:
    """Give the quantile where Student's distribution has one in closed form."""
    a = 4.0 * p * (1.0 - p)
    if degrees == 1:
        return math.tan(math.pi * (p - 0.5))
    if degrees == 2:
        return (2.0 * p - 1.0) * math.sqrt(2.0 / a)
    q = math.cos(math.acos(math.sqrt(a)) / 3.0) / math.sqrt(a)
    return 2.0 * math.sqrt(q - 1.0)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_student_t_equals_the_closed_forms(n: int, level: float) -> None:
    half = 1e-3 * t_quantile((1.0 + level) / 2.0, n - 1)
    assert student(0.4, 1e-3, n, level) == pytest.approx((0.4 - half, 0.4 + half), abs=1e-12)


def test_student_t_table_values() -> None:
    """The 0.975 quantiles as printed in any table of Student's t."""
    for n, quantile in {
        2: 12.706,
        6: 2.571,
        11: 2.228,
        31: 2.042,
        121: 1.980,
        10**8: 1.960,
    }.items():
        low, high = student(0.5, 0.01, n)
        assert (high - low) / 0.02 == pytest.approx(quantile, abs=5.1e-4)


def test_student_t_is_clipped() -> None:
    assert student(0.9, 0.3, 3) == (0.0, 1.0)
    assert student(0.98, 0.02, 10)[1] == 1.0


def ends(interval: pl.Expr) -> tuple[float | None, float | None]:
    row = pl.select(interval.struct.unnest()).row(0)
    return row[0], row[1]


@pytest.mark.parametrize("n", [2, 3, 10, 400])
@pytest.mark.parametrize("mean", [0.0, 1 / 3, 0.5, 1.0])
def test_equal_values_get_the_interval_of_the_widest_spread(mean: float, n: int) -> None:
    for error in (0.0, 1e-17):  # values that differ by rounding are equal
        found = student(mean, error, n)
        assert found == pytest.approx(wilson(mean * n, n), abs=1e-12)
        assert found[0] is not None
        assert found[1] is not None
        assert found[0] <= mean <= found[1]
        assert found[1] - found[0] > 0.5 / n
    at, scaled = pl.lit(2 * mean - 1), (-1.0, 1.0)
    low, high = ends(tts.student_t_interval(at, pl.lit(0.0), pl.lit(n), bounds=scaled))
    assert (low, high) == pytest.approx([2 * end - 1 for end in found], abs=1e-12)  # type: ignore[operator]
    unbounded = tts.student_t_interval(at, pl.lit(0.0), pl.lit(n), bounds=None)
    assert ends(unbounded) == (None, None)
    assert ends(tts.normal_interval(pl.lit(mean), pl.lit(0.0))) == (None, None)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_few_values_that_are_mostly_equal_cover_their_mean(n: int) -> None:
    # Like the AUROC of a good verifier: 1 in nearly every problem, which three problems seldom deny.
    draws = np.random.default_rng(3).random((2_000, n))
    values = np.where(draws < 0.05, 0.6, 1.0)
    table = pl.DataFrame({
        "mean": values.mean(axis=1),
        "error": values.std(axis=1, ddof=1) / n**0.5,
        "n": [n] * len(values),
    })
    found = table.select(tts.student_t_interval("mean", "error", "n")).unnest("mean")
    truth = 1.0 - 0.05 * 0.4
    is_covered = (found["ci_low"] <= truth) & (truth <= found["ci_high"])
    is_flat = table["error"] < 1e-12
    assert is_flat.mean() > 0.5  # type: ignore[operator]
    assert is_covered.filter(is_flat).all()
    assert is_covered.mean() > 0.95  # type: ignore[operator]


def test_what_is_unknown_is_null() -> None:
    nothing = (None, None)
    assert wilson(None, 10) == nothing
    assert wilson(1, None) == nothing
    assert wilson(0, 0) == nothing
    assert student(0.5, 0.1, 1) == nothing
    assert student(0.5, 0.1, 0) == nothing
    assert student(0.5, 0.1, None) == nothing
    assert student(0.5, None, 10) == nothing
    assert student(None, 0.1, 10) == nothing


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_an_aggregated_table(engine: EngineType) -> None:
    lazy = pl.LazyFrame({
        "budget": [1, 1, 1, 1, 4, 4, 4, 4, 16],
        "value": [0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0],
    })
    curve = lazy.group_by("budget").agg(
        n=pl.len(),
        total=pl.col("value").sum(),
        accuracy=pl.col("value").mean(),
        standard_error=pl.col("value").std() / pl.len().sqrt(),
    )
    both = curve.with_columns(
        wilson=tts.wilson_interval("total", "n"),
        student=tts.student_t_interval("accuracy", "standard_error", "n"),
    )
    ends = pl.Struct({"ci_low": pl.Float64, "ci_high": pl.Float64})
    assert [both.collect_schema()[name] for name in ("wilson", "student")] == [ends, ends]
    found = both.sort("budget").collect(engine=engine)
    assert found.schema == both.collect_schema()
    assert found["wilson"].to_list() == [
        dict(zip(("ci_low", "ci_high"), wilson(c, n), strict=True))
        for c, n in [(2, 4), (3, 4), (1, 1)]
    ]
    assert found["student"][0]["ci_low"] == pytest.approx(
        max(0.0, 0.5 - 3.182446305284263 * math.sqrt(1 / 3) / 2), abs=1e-12
    )
    assert found["student"][2] == {"ci_low": None, "ci_high": None}


def test_output_keeps_the_name_of_the_first_input() -> None:
    frame = pl.DataFrame({"c": [1], "n": [2], "mean": [0.5], "se": [0.1]})
    assert frame.select(tts.wilson_interval("c", "n")).columns == ["c"]
    assert frame.select(tts.wilson_interval(pl.col("c").alias("x"), "n")).columns == ["x"]
    assert frame.select(tts.student_t_interval("mean", "se", "n")).columns == ["mean"]


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.5, math.nan])
def test_impossible_confidence_levels_are_refused_at_once(level: float) -> None:
    with pytest.raises(ParameterError, match="confidence_level"):
        tts.wilson_interval("c", "n", confidence_level=level)
    with pytest.raises(ParameterError, match="confidence_level"):
        tts.student_t_interval("mean", "se", "n", confidence_level=level)


def test_numbers_are_not_columns() -> None:
    with pytest.raises(ParameterTypeError, match=r"n_correct must be .*, got int"):
        tts.wilson_interval(3, "n")  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match=r"standard_error must be .*, got float"):
        tts.student_t_interval("mean", 0.1, "n")  # type: ignore[arg-type]


def test_scipy_is_loaded_only_for_student_t() -> None:
    code = (
        "import sys, polars as pl, ttsframe as tts\n"
        "frame = pl.DataFrame({'c': [1], 'n': [2]})\n"
        "frame.select(tts.wilson_interval('c', 'n'))\n"
        "tts.student_t_interval('c', 'c', 'n')\n"
        "assert 'scipy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
