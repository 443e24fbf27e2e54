"""Numbers are Float64 within 1e-12 of the sum of magnitudes of `math.fsum`, whatever was stored."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from contract_frames import one_problem, only
from contract_registry import ENGINES

import ttsframe as tts

TOLERANCE = 1e-12

WIDTHS = [pl.Float32, pl.Float64]


def rows_of_steps(width: type[pl.DataType]) -> list[list[float]]:
    """Return lists of numbers that `width` holds exactly: short, long, of mixed size and sign."""
    draws = random.Random(7)
    rows = [[draws.uniform(0, 1) for _ in range(draws.randint(1, 40))] for _ in range(300)]
    rows += [[draws.uniform(-1, 1) * 10 ** draws.randint(-8, 8) for _ in range(200)]]
    rows += [[0.1] * 5_000, [1e8, 1.0, -1e8], [1.0, *[1e-9] * 4_000]]
    return pl.Series(rows, dtype=pl.List(width)).cast(pl.List(pl.Float64)).to_list()


def reduced(name: str, row: list[float]) -> tuple[float, float]:
    """Return what a list reduces to, and the size of what rounding errors are measured by."""
    magnitude = math.fsum(map(abs, row))
    if name == "sum":
        return math.fsum(row), magnitude
    if name == "mean":
        return math.fsum(row) / len(row), magnitude / len(row)
    if name == "prod":
        return math.prod(row), abs(math.prod(row))
    if name == "geometric_mean":
        # What is summed are logarithms, so their size scales the error of what exp makes of it.
        logs = [math.log(value) for value in row]
        mean = math.exp(math.fsum(logs) / len(row))
        return mean, mean * max(1.0, math.fsum(map(abs, logs)) / len(row))
    picked = {"min": min(row), "max": max(row), "first": row[0], "last": row[-1]}
    return picked[name], 0.0


def bounded(expected: float, scale: float) -> Callable[[float], bool]:
    return lambda found: abs(found - expected) <= TOLERANCE * scale


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", tts.STEP_REDUCTIONS)
def test_reductions_are_computed_in_float64(
    name: str, width: type[pl.DataType], engine: pl.Engine
) -> None:
    rows = rows_of_steps(width)
    if name == "geometric_mean":
        rows = [[abs(value) for value in row] for row in rows]
    frame = pl.LazyFrame({"steps": pl.Series(rows, dtype=pl.List(width))})
    found = frame.select(tts.STEP_REDUCTIONS[name]("steps")).collect(engine=engine)["steps"]
    assert found.dtype == pl.Float64
    for row, value in zip(rows, found, strict=True):
        expected, scale = reduced(name, row)
        assert bounded(expected, scale)(value), (name, value, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("width", WIDTHS)
def test_weights_add_up_in_float64(width: type[pl.DataType], engine: pl.Engine) -> None:
    draws = random.Random(3)
    rows = [
        {
            "problem_id": f"p{problem}",
            "attempt": attempt,
            "answer_key": draws.choice("abc"),
            "score": draws.uniform(0, 1) * 10 ** draws.randint(-6, 3),
        }
        for problem in range(5)
        for attempt in range(600)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"score": width})
    expected: dict[tuple[str, str], list[float]] = defaultdict(list)
    for problem, key, score in frame.select("problem_id", "answer_key", "score").rows():
        expected[problem, key].append(score)
    votes = tts.tally_votes(frame.lazy(), budgets=[1, 7, 600]).collect(engine=engine)
    assert votes.schema["weight"] == votes.schema["top_score"] == pl.Float64
    for problem, key, weight in (
        votes.filter(pl.col("budget") == 600).select("problem_id", "answer_key", "weight").rows()
    ):
        total = math.fsum(expected[problem, key])
        assert bounded(total, total)(weight)
    picked = tts.weighted_vote(frame, budgets=600)
    for problem, key, weight in picked.select("problem_id", "answer_key", "weight").rows():
        totals = {k: math.fsum(part) for (p, k), part in expected.items() if p == problem}
        assert key == max(totals, key=lambda name: totals[name])
        assert bounded(totals[key], totals[key])(weight)


@pytest.mark.parametrize("width", WIDTHS)
def test_step_scores_of_either_width_pick_the_same(width: type[pl.DataType]) -> None:
    run = tts.simulate_trajectories(20, 8, seed=2, keys=True).drop("score")
    # Numbers that both widths hold, so that nothing is lost in the narrow one.
    exact = run.with_columns(
        pl.col("step_scores").cast(pl.List(pl.Float32)).cast(pl.List(pl.Float64))
    )
    narrow = exact.with_columns(pl.col("step_scores").cast(pl.List(width)))
    for frame in (exact, narrow):
        found = tts.select_answers(frame, reductions=list(tts.STEP_REDUCTIONS), budgets=[1, 4, 8])
        assert found.schema["weight"] == pl.Float64
    same = tts.select_answers(exact, reductions=list(tts.STEP_REDUCTIONS), budgets=[1, 4, 8])
    assert found.drop("weight").equals(same.drop("weight"))


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64, pl.Int64, pl.UInt8, pl.Decimal(10, 2)])
def test_scores_of_any_numeric_dtype_are_read(dtype: pl.DataType) -> None:
    frame = one_problem(["a", "b", "b"], scores=[3.0, 1.0, 1.0]).with_columns(
        pl.col("score").cast(dtype)
    )
    assert only(tts.weighted_vote(frame))["weight"] == 3.0
    assert only(tts.best_of_n(frame))["answer_key"] == "a"


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Int8, pl.Boolean])
def test_values_of_any_numeric_dtype_are_averaged_in_float64(dtype: pl.DataType) -> None:
    values = pl.Series("value", [1, 0, 1] * 1_000).cast(dtype)
    table = pl.DataFrame({"problem_id": range(3_000), "value": values}).with_columns(
        budget=pl.lit(1, pl.UInt32),
        selector=pl.lit("oracle"),
        reduction=pl.lit(None, pl.String),
        status=pl.lit("ok"),
    )
    row = tts.scaling_curve(table).row(0, named=True)
    assert row["accuracy"] == 2 / 3


@pytest.mark.parametrize("engine", ENGINES)
def test_a_curve_averages_in_float64(engine: pl.Engine) -> None:
    values = np.random.default_rng(0).uniform(0, 1, 20_000).tolist()
    table = pl.LazyFrame({"problem_id": range(len(values)), "value": values}).with_columns(
        budget=pl.lit(1, pl.UInt32),
        selector=pl.lit("oracle"),
        reduction=pl.lit(None, pl.String),
        status=pl.lit("ok"),
    )
    row = tts.scaling_curve(table).collect(engine=engine).row(0, named=True)
    mean = math.fsum(values) / len(values)
    assert bounded(mean, mean)(row["accuracy"])
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
    assert row["standard_error"] == pytest.approx(deviation / math.sqrt(len(values)), rel=1e-12)


@pytest.mark.parametrize("aggregator", [tts.IdentifierMean(), tts.PassAtK(k=1)])
def test_aggregators_agree_with_fsum(aggregator: tts.Aggregator) -> None:
    draws = random.Random(1)
    values = [draws.uniform(0, 1) for _ in range(2_000)]
    for width in WIDTHS:
        frame = pl.DataFrame(
            {"problem_id": ["p"] * len(values), "value": values}, schema_overrides={"value": width}
        )
        stored = frame["value"].cast(pl.Float64).to_list()
        found = only(aggregator(frame, ["problem_id"]))["value"]
        assert found == pytest.approx(math.fsum(stored) / len(stored), rel=TOLERANCE)
