"""DataFrame in, DataFrame out; LazyFrame in, LazyFrame out, and nothing is collected on the way."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from contract_registry import EXPR_FUNCTIONS, FRAME_FUNCTIONS, ExprFunction, FrameFunction, ids
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ParameterTypeError

COLLECTING = [
    name
    for name in dir(pl.LazyFrame)
    if name.startswith(("collect", "sink", "fetch", "profile")) and name != "collect_schema"
]


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every way of running a query fail."""

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a query was run while a plan was being built")

    assert {"collect", "collect_async", "collect_batches", "sink_parquet"} <= set(COLLECTING)
    for name in COLLECTING:
        monkeypatch.setattr(pl.LazyFrame, name, refuse)
    monkeypatch.setattr(pl, "collect_all", refuse)


@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_a_frame_comes_out_as_it_went_in(function: FrameFunction) -> None:
    frame = function.make_frame()
    eager = function.call(frame)
    lazy = function.call(frame.lazy())
    assert type(eager) is pl.DataFrame
    assert type(lazy) is pl.LazyFrame
    assert_frame_equal(eager, lazy.collect(), check_row_order=False, rel_tol=1e-12)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_building_a_plan_collects_nothing(
    function: FrameFunction,
) -> None:
    schema = dict(SCHEMAS[function.name])
    plan = function.call(pl.LazyFrame(schema=schema))
    plan.collect_schema()


SCHEMAS = {function.name: function.make_frame().schema for function in FRAME_FUNCTIONS}


@pytest.mark.usefixtures("no_collection")
def test_a_whole_analysis_is_one_plan() -> None:
    plan = (
        pl
        .LazyFrame(schema=SCHEMAS["score_trajectories"])
        .pipe(tts.score_trajectories)
        .pipe(tts.select_answers, budgets=[1, 4, 16])
        .pipe(tts.scaling_curve)
    )
    assert plan.collect_schema().names()[:3] == ["selector", "reduction", "budget"]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("function", EXPR_FUNCTIONS, ids=ids(EXPR_FUNCTIONS))
def test_building_an_expression_runs_nothing(function: ExprFunction) -> None:
    assert isinstance(function.call("any_name"), pl.Expr)


@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_the_frame_that_was_given_is_left_as_it_was(function: FrameFunction) -> None:
    frame = function.make_frame()
    before = frame.clone()
    function.call(frame)
    assert_frame_equal(frame, before)


@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_anything_but_a_polars_frame_is_refused(function: FrameFunction) -> None:
    for value in ([{"problem_id": "p"}], {"problem_id": ["p"]}, None, "run.parquet"):
        with pytest.raises(ParameterTypeError, match="must be a polars DataFrame or LazyFrame"):
            function.call(value)


@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_a_missing_column_is_an_error_at_once_that_names_it(function: FrameFunction) -> None:
    with pytest.raises(tts.TtsframeError, match=r"missing columns? for .*; found: \[.*Hint: "):
        function.call(pl.LazyFrame(schema={"unrelated": pl.Int64}))
