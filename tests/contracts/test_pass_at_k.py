"""pass@k with n < k is null and never 1; an ungraded attempt is outside n."""

from __future__ import annotations

import itertools
import math

import polars as pl
import pytest
from contract_registry import ENGINES, run

import ttsframe as tts


def brute_force(grades: list[bool | None], k: int) -> float | None:
    """Return the share of the subsets of k graded attempts that hold a right one."""
    graded = [grade for grade in grades if grade is not None]
    if len(graded) < k:
        return None
    subsets = list(itertools.combinations(graded, k))
    return sum(map(any, subsets)) / len(subsets)


GROUPS: list[list[bool | None]] = [
    [True],
    [False],
    [None],
    [True, False],
    [True, None, False],
    [None, None, True],
    [False] * 5,
    [True] * 5,
    [True, False, False, True, None, False],
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_the_estimate_is_the_share_of_subsets(k: int, engine: pl.Engine) -> None:
    rows = [(i, grade) for i, grades in enumerate(GROUPS) for grade in grades]
    frame = pl.LazyFrame(rows, schema={"p": pl.Int64, "right": pl.Boolean}, orient="row")
    found = frame.group_by("p").agg(tts.pass_at_k("right", k)).collect(engine=engine).sort("p")
    for value, grades in zip(found["right"], GROUPS, strict=True):
        expected = brute_force(grades, k)
        assert value == (expected if expected is None else pytest.approx(expected, abs=1e-12))
        if (n := len([g for g in grades if g is not None])) >= k:
            right = sum(grade is True for grade in grades)
            assert value == pytest.approx(tts.closed_form_passatk(n, right, k), abs=1e-12)


def test_several_k_are_fields_named_as_the_field_is_used_to() -> None:
    found = pl.DataFrame({"right": [True, False, None]}).select(tts.pass_at_k("right", [1, 2, 3]))
    assert found.schema["right"] == pl.Struct({f"pass@{k}": pl.Float64() for k in (1, 2, 3)})
    assert found["right"][0] == {"pass@1": 0.5, "pass@2": 1.0, "pass@3": None}


def test_too_few_attempts_are_null_in_closed_form_too() -> None:
    assert tts.closed_form_passatk(3, 3, 4) is None
    assert tts.closed_form_passatk(3, 0, 4) is None


def test_the_nulls_can_be_counted() -> None:
    frame = pl.DataFrame({"problem_id": ["a", "b", "b"], "value": [1.0, 1.0, 0.0]})
    found = tts.PassAtK(k=2)(frame, ["problem_id"])
    assert found["value"].null_count() == 1


def test_the_oracle_at_the_full_budget_is_pass_at_n() -> None:
    graded = run().filter(pl.col("problem_id") != "sim-000010")
    oracle = tts.oracle(graded, budgets=8).select("problem_id", "value")
    passes = graded.group_by("problem_id").agg(tts.pass_at_k("is_correct", 8).alias("value"))
    assert oracle.equals(passes.sort("problem_id"))


def test_pass_at_1_is_the_mean() -> None:
    means = run().group_by("problem_id").agg(pl.col("is_correct").mean().alias("mean"))
    passes = run().group_by("problem_id").agg(tts.pass_at_k("is_correct", 1))
    for mean, value in means.join(passes, on="problem_id").select("mean", "is_correct").rows():
        assert (mean is None) == (value is None)
        assert value is None or math.isclose(mean, value, abs_tol=1e-15)
