"""Missing values in a list: null elements are skipped, nothing left is null, NaN is NaN."""

from __future__ import annotations

import math

import polars as pl
import pytest
from contract_registry import ENGINES

import ttsframe as tts

ROWS: list[list[float | None] | None] = [
    None,
    [],
    [None],
    [None, None],
    [0.5],
    [None, 0.5],
    [0.5, None],
    [0.25, None, 0.5],
    [math.nan],
    [math.nan, 0.5],
    [0.5, math.nan],
    [0.5, math.nan, 0.25],
    [None, math.nan],
    [0.0, 0.5],
    [1.0, 1.0, 1.0],
]


def reduced(name: str, row: list[float | None] | None) -> float | None:
    """Reduce one list by the rule, in plain Python."""
    if not row or all(value is None for value in row):
        return None
    if name in {"first", "last"}:
        return row[0 if name == "first" else -1]
    left = [value for value in row if value is not None]
    if any(map(math.isnan, left)):
        return math.nan
    of_left = {
        "min": min,
        "max": max,
        "sum": math.fsum,
        "prod": math.prod,
        "mean": lambda values: math.fsum(values) / len(values),
        "geometric_mean": lambda values: math.prod(values) ** (1 / len(values)),
    }
    return float(of_left[name](left))


def is_same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return (math.isnan(found) and math.isnan(expected)) or math.isclose(
        found, expected, rel_tol=1e-12
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("width", [pl.Float32, pl.Float64])
@pytest.mark.parametrize("name", tts.STEP_REDUCTIONS)
def test_a_reduction_skips_nulls_and_gives_null_where_nothing_is_left(
    name: str, width: type[pl.DataType], engine: pl.Engine
) -> None:
    steps = pl.Series("steps", ROWS, dtype=pl.List(width))
    reduction = tts.STEP_REDUCTIONS[name]
    found = pl.LazyFrame([steps]).select(reduction("steps")).collect(engine=engine)["steps"]
    for row, value in zip(ROWS, found, strict=True):
        assert is_same(value, reduced(name, row)), (name, row, value)


@pytest.mark.parametrize("name", tts.STEP_REDUCTIONS)
def test_a_column_without_any_list_is_null(name: str) -> None:
    frame = pl.DataFrame({"steps": [None, None]})
    assert frame.select(tts.STEP_REDUCTIONS[name]("steps"))["steps"].to_list() == [None, None]


@pytest.mark.parametrize("name", tts.STEP_REDUCTIONS)
def test_a_sliced_column_does_not_see_its_neighbours(name: str) -> None:
    steps = pl.Series("steps", [[9.0], *ROWS, [9.0]], dtype=pl.List(pl.Float64))
    found = pl.DataFrame([steps]).slice(1, len(ROWS)).select(tts.STEP_REDUCTIONS[name]("steps"))
    for row, value in zip(ROWS, found["steps"], strict=True):
        assert is_same(value, reduced(name, row)), (name, row, value)


@pytest.mark.parametrize("name", tts.STEP_REDUCTIONS)
def test_a_reduction_that_is_missing_abstains_like_a_score_that_is(name: str) -> None:
    frame = pl.DataFrame({
        "problem_id": ["p"] * 4,
        "attempt": [0, 1, 2, 3],
        "answer_key": ["a", "b", "c", "d"],
        "step_scores": [[], [None], [math.nan], [0.5]],
    })
    picked = tts.best_of_n(frame, reductions=name)
    assert picked["answer_key"].to_list() == ["d"]
    unscored = tts.best_of_n(frame, reductions=name, budgets=3)
    assert unscored["status"].to_list() == ["unscored"]
