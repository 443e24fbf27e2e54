"""An estimator over k draws is the mean over all subsets of k attempts, wherever it is used."""

from __future__ import annotations

import functools

import polars as pl
import pytest
from contract_registry import ENGINES
from polars.testing import assert_frame_equal
from subset_oracle import ESTIMATORS, Estimator, frame_of, over_all_subsets, random_problems

KS = list(range(1, 12))


@functools.cache
def problems() -> list:
    return random_problems(150, seed=5)


@functools.cache
def expected(estimator: Estimator) -> pl.DataFrame:
    """Return the means over all subsets as the estimator's struct, unnested."""
    rows = [
        {
            "problem_id": i,
            **{f"{estimator.field}{k}": over_all_subsets(attempts, k, estimator) for k in KS},
        }
        for i, attempts in enumerate(problems())
        if attempts
    ]
    fields = {f"{estimator.field}{k}": pl.Float64 for k in KS}
    return pl.DataFrame(rows, schema={"problem_id": pl.Int64, **fields})


def assert_same(found: pl.DataFrame, of: pl.DataFrame) -> None:
    assert_frame_equal(found, of, rel_tol=0.0, abs_tol=1e-12)


by_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda found: found.field)


@pytest.mark.parametrize("engine", ENGINES)
@by_estimator
def test_in_group_by(estimator: Estimator, engine: pl.Engine) -> None:
    plan = frame_of(problems()).lazy().group_by("problem_id").agg(estimator.estimate(KS))
    assert plan.collect_schema() == plan.collect(engine=engine).schema
    found = plan.collect(engine=engine).unnest("is_correct").sort("problem_id")
    assert_same(found, expected(estimator))


@pytest.mark.parametrize("engine", ENGINES)
@by_estimator
def test_in_over(estimator: Estimator, engine: pl.Engine) -> None:
    plan = (
        frame_of(problems())
        .lazy()
        .with_columns(estimator.estimate(KS).over("problem_id").alias("found"))
    )
    found = plan.collect(engine=engine)
    assert_frame_equal(found.drop("found"), frame_of(problems()))
    once = found.select("problem_id", "found").unnest("found").unique().sort("problem_id")
    # As many rows as problems: each row of a problem has the same numbers.
    assert_same(once, expected(estimator))


@pytest.mark.parametrize("engine", ENGINES)
@by_estimator
def test_of_one_k(estimator: Estimator, engine: pl.Engine) -> None:
    columns = [estimator.estimate(k).alias(f"{estimator.field}{k}") for k in KS]
    plan = frame_of(problems()).lazy().group_by("problem_id").agg(columns)
    assert_same(plan.collect(engine=engine).sort("problem_id"), expected(estimator))


@pytest.mark.parametrize("engine", ENGINES)
@by_estimator
def test_in_select(estimator: Estimator, engine: pl.Engine) -> None:
    for problem, attempts in list(enumerate(problems()))[:20]:
        frame = frame_of([attempts]).lazy().select(estimator.estimate(KS))
        found = frame.collect(engine=engine)
        assert found.height == 1
        of_problem = expected(estimator).filter(pl.col("problem_id") == problem)
        if attempts:
            assert_same(found.unnest("is_correct"), of_problem.drop("problem_id"))
        else:
            assert set(found.item().values()) == {None}


@by_estimator
def test_beside_others_and_under_a_filter(estimator: Estimator) -> None:
    lazy = frame_of(problems()).lazy()
    plan = (
        lazy
        .group_by("problem_id")
        .agg(
            estimator.estimate(KS).alias("found"),
            estimator.estimate(2).round(3).alias("rounded"),
            pl.len().alias("rows"),
        )
        .filter(pl.col("rows") >= 3)
        .sort("problem_id")
        .head(40)
    )
    kept = [i for i, attempts in enumerate(problems()) if len(attempts) >= 3][:40]
    of_kept = expected(estimator).filter(pl.col("problem_id").is_in(kept))
    found = plan.collect()
    assert found["problem_id"].to_list() == kept
    assert_same(found.select("problem_id", "found").unnest("found"), of_kept)
    rounded = of_kept[f"{estimator.field}2"].round(3)
    assert found["rounded"].to_list() == pytest.approx(rounded.to_list(), abs=2e-3)


def test_the_problems_have_what_makes_it_hard() -> None:
    attempts = [attempt for problem in problems() for attempt in problem]
    assert any(not problem for problem in problems())
    assert {attempt.is_correct for attempt in attempts} == {True, False, None}
    assert any(attempt.score is None for attempt in attempts)
    assert any(attempt.score is not None and attempt.score != attempt.score for attempt in attempts)
    values = expected(ESTIMATORS[-1]).drop("problem_id")
    n_null = sum(values.null_count().row(0))
    assert 0 < n_null < values.height * values.width
    fractional = values.select(pl.all().is_between(0.01, 0.99).sum()).row(0)
    assert sum(fractional) > 200
