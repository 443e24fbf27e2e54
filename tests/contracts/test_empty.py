"""A frame without rows goes through the whole chain and keeps its schema."""

from __future__ import annotations

import polars as pl
import pytest
from contract_registry import (
    CURVE_SCHEMA,
    ENGINES,
    EXPR_FUNCTIONS,
    FRAME_FUNCTIONS,
    PROBLEMS_SCHEMA,
    VOTES_SCHEMA,
    ExprFunction,
    FrameFunction,
    ids,
    run,
    texts,
)

import ttsframe as tts


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_no_rows_in_are_no_rows_out_under_the_same_schema(
    function: FrameFunction, engine: pl.Engine
) -> None:
    frame = function.make_frame()
    full = function.call(frame)
    found = function.call(frame.clear().lazy()).collect(engine=engine)
    assert found.height == 0
    assert found.schema == full.schema
    assert function.call(frame.clear()).schema == full.schema


@pytest.mark.parametrize("function", EXPR_FUNCTIONS, ids=ids(EXPR_FUNCTIONS))
def test_an_expression_over_no_rows_keeps_its_dtype(function: ExprFunction) -> None:
    frame = pl.DataFrame([function.column]).with_columns(**dict(function.others)).clear()
    found = frame.select(function.call(function.column.name))
    assert found.schema == {function.column.name: function.dtype}
    assert found.height == (1 if function.is_aggregate else 0)
    assert found.to_series().null_count() == found.height


@pytest.mark.parametrize("engine", ENGINES)
def test_the_whole_chain_runs_on_nothing(engine: pl.Engine) -> None:
    scored = texts().clear().lazy().pipe(tts.score_trajectories)
    problems = scored.pipe(tts.select_answers, selectors=list(tts.SELECTORS), budgets=[1, 4])
    for plan, schema in (
        (scored.pipe(tts.tally_votes, budgets=[1, 4]), VOTES_SCHEMA),
        (problems, PROBLEMS_SCHEMA),
        (problems.pipe(tts.scaling_curve), CURVE_SCHEMA),
        (problems.pipe(tts.scaling_curve, include="available"), CURVE_SCHEMA),
    ):
        assert dict(plan.collect(engine=engine).schema) == schema


def test_every_weight_and_reduction_runs_on_nothing() -> None:
    empty = run().clear()
    for weights in ("score", "sigmoid", "softmax"):
        found = tts.weighted_vote(
            empty, budgets=[1, 2], weights=weights, reductions=list(tts.STEP_REDUCTIONS)
        )
        assert dict(found.schema) == PROBLEMS_SCHEMA
        assert found.height == 0


def test_columns_of_nulls_alone_are_read_as_missing() -> None:
    # What a source without answers, scores or grades gives: Null columns.
    frame = pl.DataFrame({
        "problem_id": ["p", "p"],
        "attempt": [0, 1],
        "answer_key": [None, None],
        "answer": [None, None],
        "is_correct": [None, None],
        "score": [None, None],
    })
    found = tts.select_answers(frame, selectors=list(tts.SELECTORS), budgets=[1, 2])
    statuses = dict(found.filter(pl.col("budget") == 2).select("selector", "status").rows())
    for name, selector in tts.SELECTORS.items():
        assert statuses[name] == ("unscored" if selector.reads_score else "ungraded")
    assert found.schema == PROBLEMS_SCHEMA
    assert tts.tally_votes(frame).schema == VOTES_SCHEMA
    curve = tts.scaling_curve(found)
    assert set(curve["n_problems"]) == {0}
