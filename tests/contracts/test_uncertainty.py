"""The problem is the unit: Wilson for 0 and 1, Student's t for fractions, null below two.

Fractions near one end, whose spread a sample hardly shows, have Wilson's interval, too.
"""

from __future__ import annotations

import math
import statistics

import polars as pl
import pytest
from curve_oracle import fractional_wilson
from scipy import stats

import ttsframe as tts

LEVELS = [0.5, 0.9, 0.95, 0.99]


def table(values: list[float], budget: int = 1) -> pl.DataFrame:
    """Return a table of `problems` with one value each."""
    return pl.DataFrame({"value": values}, schema={"value": pl.Float64}).select(
        problem_id=pl.int_range(pl.len()),
        budget=pl.lit(budget, pl.UInt32),
        selector=pl.lit("oracle"),
        reduction=pl.lit(None, pl.String),
        value="value",
        status=pl.lit("ok"),
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("n_correct", "n"), [(0, 2), (1, 2), (2, 2), (0, 10), (3, 10), (10, 10)])
def test_zeros_and_ones_get_wilsons_interval(n_correct: int, n: int, level: float) -> None:
    values = [1.0] * n_correct + [0.0] * (n - n_correct)
    row = tts.scaling_curve(table(values), confidence_level=level).row(0, named=True)
    expected = stats.binomtest(n_correct, n).proportion_ci(level, method="wilson")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(expected), abs=1e-12)
    assert row["standard_error"] == pytest.approx(statistics.stdev(values) / math.sqrt(n))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("values", [[0.5, 0.75, 0.25, 0.5] * 3, [0.0, 0.9] * 6])
def test_fractions_get_students_interval_clipped_to_what_is_possible(
    values: list[float], level: float
) -> None:
    row = tts.scaling_curve(table(values), confidence_level=level).row(0, named=True)
    mean, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * error
    assert row["standard_error"] == pytest.approx(error, abs=1e-15)
    assert row["ci_low"] == pytest.approx(max(0.0, mean - half), abs=1e-12)
    assert row["ci_high"] == pytest.approx(min(1.0, mean + half), abs=1e-12)
    assert 0.0 <= row["ci_low"] <= row["accuracy"] <= row["ci_high"] <= 1.0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "values", [[0.5, 0.75], [1.0] * 40 + [0.5] * 8, [0.0] * 9 + [0.999], [0.5] * 10, [1 / 3] * 60]
)
def test_fractions_near_an_end_or_without_spread_get_wilsons_interval(
    values: list[float], level: float
) -> None:
    row = tts.scaling_curve(table(values), confidence_level=level).row(0, named=True)
    expected = fractional_wilson(statistics.fmean(values), len(values), level)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(expected, abs=1e-12)


def test_problems_that_are_all_solved_are_no_proof_that_all_are() -> None:
    both = pl.concat([table([0.5, 1.0] * 10, 1), table([1.0] * 20, 4)])
    row = tts.scaling_curve(both).row(-1, named=True)
    assert row["ci_low"] == pytest.approx(stats.binomtest(20, 20).proportion_ci(method="wilson")[0])
    assert row["ci_high"] == 1.0


@pytest.mark.parametrize("values", [[1.0], [0.0], [0.5]])
def test_fewer_than_two_problems_have_no_interval(values: list[float]) -> None:
    row = tts.scaling_curve(table(values)).row(0, named=True)
    assert row["accuracy"] == values[0]
    assert {row[name] for name in ("standard_error", "ci_low", "ci_high")} == {None}


def test_one_curve_has_one_kind_of_interval() -> None:
    # Fractions that happen to be 0 and 1 at one budget do not change the method there.
    values = [0.0, 1.0, 1.0] * 5
    both = pl.concat([table(values, 1), table([0.5, 1.0, 0.25] * 5, 4)])
    at_one = tts.scaling_curve(both).row(0, named=True)
    wilson = tts.scaling_curve(table(values)).row(0, named=True)
    error = statistics.stdev(values) / math.sqrt(15)
    assert at_one["ci_low"] == pytest.approx(2 / 3 - stats.t.ppf(0.975, 14) * error)
    assert at_one["ci_low"] != pytest.approx(wilson["ci_low"])


def test_more_attempts_at_the_same_problems_do_not_narrow_the_interval() -> None:
    # Attempts are not units: 40 copies of each problem's outcome hold no more problems.
    few = tts.scaling_curve(table([1.0, 0.0, 1.0, 1.0])).row(0, named=True)
    seeds = pl.concat(
        table([1.0, 0.0, 1.0, 1.0]).with_columns(seed=pl.lit(seed)) for seed in range(40)
    )
    many = tts.scaling_curve(seeds, replicates="seed").row(0, named=True)
    assert many["standard_error"] == pytest.approx(few["standard_error"])
    assert many["n_problems"] == 4


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan])
def test_an_impossible_level_is_refused_at_once(level: float) -> None:
    with pytest.raises(tts.TtsframeError, match="confidence_level == "):
        tts.scaling_curve(table([1.0]).lazy(), confidence_level=level)
