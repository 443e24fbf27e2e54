"""pass@k and pass^k against all subsets, exact fractions and another tool's closed form."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars._typing import EngineType

import ttsframe as tts
from ttsframe.errors import ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")


def over_all_subsets(graded: Sequence[bool], k: int) -> float | None:
    subsets = list(itertools.combinations(graded, k))
    return float(Fraction(sum(any(s) for s in subsets), len(subsets))) if subsets else None


def exactly(n: int, c: int, k: int) -> float:
    if n - c < k:
        return 1.0
    few, many = sorted((c, k))
    missed = Fraction(
        math.prod(n - many - i for i in range(few)), math.prod(n - i for i in range(few))
    )
    return float(1 - missed)


def grid(max_n: int) -> pl.DataFrame:
    """Return every (n, c) up to max_n, rows shuffled, with some ungraded attempts between."""
    rng = random.Random(7)
    rows = [
        (f"{n}-{c}", is_correct)
        for n in range(max_n + 1)
        for c in range(n + 1)
        for is_correct in [True] * c + [False] * (n - c) + [None] * rng.randint(not n, 2)
    ]
    rng.shuffle(rows)
    return pl.DataFrame(
        rows, schema={"problem_id": pl.String, "is_correct": pl.Boolean}, orient="row"
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_share_of_all_subsets(engine: EngineType) -> None:
    frame = grid(9)
    ks = list(range(1, 11))
    of_all = frame.lazy().group_by("problem_id").agg(tts.pass_at_k("is_correct", ks))
    of_one = (
        frame
        .lazy()
        .group_by("problem_id")
        .agg(tts.pass_at_k("is_correct", k).alias(f"pass@{k}") for k in ks)
    )
    struct = of_all.collect(engine=engine).unnest("is_correct").sort("problem_id")
    assert struct.equals(of_one.collect(engine=engine).sort("problem_id"))
    assert len(struct) == 55
    for row in struct.iter_rows(named=True):
        n, c = map(int, row["problem_id"].split("-"))
        graded = [True] * c + [False] * (n - c)
        for k in ks:
            expected = over_all_subsets(graded, k)
            found = row[f"pass@{k}"]
            if expected is None:
                assert found is None, (n, c, k)
            else:
                assert found == pytest.approx(expected, abs=1e-12), (n, c, k)


@pytest.mark.parametrize("engine", ENGINES)
def test_over_and_select_agree_with_group_by(engine: EngineType) -> None:
    frame = grid(5)
    estimate = tts.pass_at_k("is_correct", [1, 3])
    grouped = frame.group_by("problem_id").agg(estimate)
    over = (
        frame
        .lazy()
        .select("problem_id", estimate.over("problem_id").alias("is_correct"))
        .collect(engine=engine)
        .unique()
    )
    assert over.sort("problem_id").equals(grouped.sort("problem_id"))
    whole = frame.lazy().select(estimate).collect(engine=engine)
    graded = frame["is_correct"].drop_nulls()
    assert whole.shape == (1, 1)
    assert whole["is_correct"][0]["pass@3"] == pytest.approx(
        exactly(len(graded), int(graded.sum()), 3), abs=1e-12
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("n", "c"),
    [(100_000, 0), (100_000, 1), (100_000, 2), (100_000, 40), (99_999, 700), (100_000, 99_999)],
)
def test_no_overflow_at_100_000_attempts(n: int, c: int, engine: EngineType) -> None:
    ks = [1, 2, 10, 316, 5_000, 50_000, 99_000, 100_000, 100_001]
    frame = pl.DataFrame({"is_correct": [True] * c + [False] * (n - c)})
    found = frame.lazy().select(tts.pass_at_k("is_correct", ks)).collect(engine=engine).item()
    for k in ks:
        if k > n:
            assert found[f"pass@{k}"] is None
        else:
            assert found[f"pass@{k}"] == pytest.approx(exactly(n, c, k), abs=1e-12), k


def test_equals_the_estimator_published_with_human_eval() -> None:
    """Chen et al. 2021, figure 3: 1 - prod(1 - k / arange(n - c + 1, n + 1))."""
    for n, c, k in [(200, 17, 100), (256, 3, 100), (2_000, 3, 1_000), (10_000, 12, 250)]:
        published = 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
        frame = pl.DataFrame({"is_correct": [True] * c + [False] * (n - c)})
        assert frame.select(tts.pass_at_k("is_correct", k)).item() == pytest.approx(
            published, abs=1e-12
        )
        assert tts.closed_form_passatk(n, c, k) == pytest.approx(published, abs=1e-12)


def test_the_values_that_other_tools_were_seen_to_give() -> None:
    for n, c, k, expected in [(256, 3, 100, 0.775424096804076), (4, 2, 3, 1.0), (4, 0, 4, 0.0)]:
        frame = pl.DataFrame({"is_correct": [True] * c + [False] * (n - c)})
        assert frame.select(tts.pass_at_k("is_correct", k)).item() == pytest.approx(
            expected, abs=1e-12
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("n", "c"), [(100_000, 99_999), (100_000, 99_960), (99_999, 99_000)])
def test_all_correct_does_not_underflow_at_100_000_attempts(
    n: int, c: int, engine: EngineType
) -> None:
    ks = [1, 2, 10, 316, 5_000, 50_000, 99_000, 100_000, 100_001]
    frame = pl.DataFrame({"is_correct": [True] * c + [False] * (n - c)})
    found = frame.lazy().select(tts.pass_hat_k("is_correct", ks)).collect(engine=engine).item()
    for k in ks:
        if k > n:
            assert found[f"pass^{k}"] is None
        else:
            # All k are correct where none of them is among the n - c wrong ones.
            expected = 1.0 - exactly(n, n - c, k)
            assert found[f"pass^{k}"] == pytest.approx(expected, abs=1e-12), k


def test_all_correct_is_the_unbiased_form_and_not_the_plug_in() -> None:
    """Yao et al. 2024: C(c, k) / C(n, k), where (c / n) ** k is too high."""
    frame = pl.DataFrame({"is_correct": [True] * 5 + [False] * 3})
    for k in range(1, 9):
        found = frame.select(tts.pass_hat_k("is_correct", k)).item()
        assert found == pytest.approx(math.comb(5, k) / math.comb(8, k), abs=1e-15)
        assert k == 1 or found < (5 / 8) ** k
    parts = pl.DataFrame({"value": [0.5, 1.0, 0.0]})
    assert parts.select(tts.pass_hat_k("value", [1, 2, 3])).item() == {
        "pass^1": 0.5, "pass^2": pytest.approx(1.5 * 0.5 / 6), "pass^3": 0.0,
    }  # fmt: skip
    unknown = pl.DataFrame({"value": [1.0, float("nan")]})
    assert math.isnan(unknown.select(tts.pass_hat_k("value", 1)).item())


@pytest.mark.parametrize("engine", ENGINES)
def test_fewer_than_k_graded_attempts_is_null_whatever_they_are(engine: EngineType) -> None:
    frame = pl.DataFrame({
        "problem_id": ["right"] * 3 + ["wrong"] * 3 + ["ungraded"] * 3,
        "is_correct": [True, True, None, False, False, None, None, None, None],
    })
    found = (
        frame
        .lazy()
        .group_by("problem_id")
        .agg(tts.pass_at_k("is_correct", [1, 2, 3]))
        .collect(engine=engine)
        .unnest("is_correct")
        .sort("problem_id")
    )
    assert found.rows() == [
        ("right", 1.0, 1.0, None),
        ("ungraded", None, None, None),
        ("wrong", 0.0, 0.0, None),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows(engine: EngineType) -> None:
    lazy = pl.LazyFrame(schema={"problem_id": pl.String, "is_correct": pl.Boolean})
    estimate = tts.pass_at_k("is_correct", [1, 2])
    grouped = lazy.group_by("problem_id").agg(estimate)
    assert grouped.collect(engine=engine).height == 0
    assert grouped.collect(engine=engine).schema == grouped.collect_schema()
    whole = lazy.select(tts.pass_at_k("is_correct", 1)).collect(engine=engine)
    assert whole.rows() == [(None,)]


def test_names_and_dtypes() -> None:
    lazy = grid(3).lazy().rename({"is_correct": "ok"})
    assert lazy.select(tts.pass_at_k("ok", 2)).collect_schema() == {"ok": pl.Float64}
    fields = pl.Struct({"pass@8": pl.Float64, "pass@1": pl.Float64})
    assert lazy.select(tts.pass_at_k("ok", (8, 1, 8))).collect_schema() == {"ok": fields}
    assert lazy.select(tts.pass_at_k("ok", (8, 1, 8))).collect().schema == {"ok": fields}
    assert lazy.select(tts.pass_at_k(pl.col("ok").alias("n"), 2)).collect().columns == ["n"]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt32, pl.Int64, pl.Float32, pl.Float64])
def test_numbers_0_and_1_count_as_booleans(dtype: pl.DataType) -> None:
    frame = grid(6)
    of_numbers = frame.with_columns(pl.col("is_correct").cast(dtype))
    estimate = tts.pass_at_k("is_correct", [1, 2, 5])
    expected = frame.group_by("problem_id").agg(estimate).sort("problem_id")
    assert of_numbers.group_by("problem_id").agg(estimate).sort("problem_id").equals(expected)


def test_graded_values_count_as_parts_and_stay_within_bounds() -> None:
    halves = pl.DataFrame({"value": [0.5, 0.5, 1.0, 0.0]})
    assert halves.select(tts.pass_at_k("value", 2)).item() == pytest.approx(5 / 6, abs=1e-12)
    parts = pl.DataFrame({"value": [0.5, 1.0, 0.0]})
    assert parts.select(tts.pass_at_k("value", 3)).item() == 1.0
    unknown = pl.DataFrame({"value": [1.0, float("nan")]})
    assert math.isnan(unknown.select(tts.pass_at_k("value", 1)).item())


@given(graded=st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=60))
def test_rises_with_k_from_the_mean(graded: list[bool | None]) -> None:
    frame = pl.DataFrame({"is_correct": graded}, schema={"is_correct": pl.Boolean})
    n = frame["is_correct"].count()
    curve = frame.select(tts.pass_at_k("is_correct", range(1, 62))).item()
    values = [value for value in curve.values() if value is not None]
    assert len(values) == n
    assert values == sorted(values)
    assert all(0.0 <= value <= 1.0 for value in values)
    if n:
        assert values[0] == pytest.approx(frame["is_correct"].mean(), abs=1e-12)
        assert values[-1] == float(any(graded))


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ParameterError, "k == 0, must be at least 1"),
        ([1, -2], ParameterError, "k == -2, must be at least 1"),
        ([], ParameterError, "k is empty"),
        (True, ParameterTypeError, "k must be an int, got bool"),
        ([1.5], ParameterTypeError, "k must be an int, got float"),
        (1.5, ParameterTypeError, "k must be an int, got float"),
        ("8", ParameterTypeError, "k must be an int, got str"),
    ],
)
def test_impossible_k_is_refused_at_once(k: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tts.pass_at_k("is_correct", k)  # type: ignore[arg-type]


def test_closed_form_over_all_subsets() -> None:
    for n in range(10):
        for c in range(n + 1):
            for k in range(1, 12):
                found = tts.closed_form_passatk(n, c, k)
                assert found == over_all_subsets([True] * c + [False] * (n - c), k)
    assert tts.closed_form_passatk(100_000, 50, 50_000) == exactly(100_000, 50, 50_000)


def test_closed_form_equals_eval_framework(shared_data: Path) -> None:
    cases = json.loads((shared_data / "eval_framework_expected.json").read_text())["closed_form"]
    # Binomials as floats overflow there; the exact value stands for what it should be.
    overflowed = {(10_000, 1, 5_000), (2_000, 3, 1_000)}
    assert {(n, c, k) for n, c, k, value in cases if math.isnan(value)} == overflowed
    assert len(cases) == 1_283
    for n, c, k, value in cases:
        expected = exactly(n, c, k) if math.isnan(value) else value
        found = tts.closed_form_passatk(n, c, k, n_below_k="any_correct")
        assert found == pytest.approx(expected, abs=1e-12), (n, c, k)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (-1, 0, 1), (4, 2, 0)])
def test_closed_form_refuses_impossible_counts(n: int, c: int, k: int) -> None:
    with pytest.raises(ParameterError):
        tts.closed_form_passatk(n, c, k)
