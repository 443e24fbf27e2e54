"""Every function gives the columns and dtypes that it promises, in the order that it promises."""

from __future__ import annotations

import polars as pl
import pytest
from contract_registry import (
    BUDGETS,
    CURVE_SCHEMA,
    ENGINES,
    EXPR_FUNCTIONS,
    FRAME_FUNCTIONS,
    PROBLEMS_SCHEMA,
    VOTES_SCHEMA,
    ExprFunction,
    FrameFunction,
    ids,
    problems,
    run,
)

import ttsframe as tts
from ttsframe.errors import ParameterTypeError


def promised(function: FrameFunction) -> dict[str, pl.DataType]:
    if function.schema is not None:
        return dict(function.schema)
    return dict(function.make_frame().schema) | dict(function.added)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_a_frame_has_the_promised_schema_before_and_after_collection(
    function: FrameFunction, engine: pl.Engine
) -> None:
    plan = function.call(function.make_frame().lazy())
    found = plan.collect(engine=engine)
    assert list(found.schema.items()) == list(promised(function).items())
    assert plan.collect_schema() == found.schema
    assert found.height > 0


@pytest.mark.parametrize(
    "function",
    [function for function in FRAME_FUNCTIONS if function.takes_by],
    ids=lambda function: function.name,
)
def test_by_columns_come_first_under_their_own_dtypes(function: FrameFunction) -> None:
    frame = function.make_frame().with_columns(
        seed=pl.lit(3, pl.Int8), model=pl.lit("m", pl.Categorical)
    )
    found = function.call(frame, by=["model", "seed"])
    expected = {"model": pl.Categorical(), "seed": pl.Int8()} | promised(function)
    assert list(found.schema.items()) == list(expected.items())


@pytest.mark.parametrize("function", EXPR_FUNCTIONS, ids=ids(EXPR_FUNCTIONS))
def test_an_expression_keeps_the_name_of_its_input_and_has_the_promised_dtype(
    function: ExprFunction,
) -> None:
    frame = pl.DataFrame([function.column]).with_columns(**dict(function.others))
    name = function.column.name
    for column in (name, pl.col(name), pl.first(), function.column):
        plan = frame.lazy().select(function.call(column))
        found = plan.collect()
        assert found.schema == plan.collect_schema() == {name: function.dtype}
        assert found.height == (1 if function.is_aggregate else frame.height)
    renamed = frame.select(function.call(pl.col(name).alias("other")))
    assert renamed.columns == ["other"]


@pytest.mark.parametrize("function", EXPR_FUNCTIONS, ids=ids(EXPR_FUNCTIONS))
def test_anything_but_a_column_is_refused_at_once(function: ExprFunction) -> None:
    for value in (3, None, ["a"], b"a", 0.5):
        with pytest.raises(ParameterTypeError, match="must be a column name, a polars expression"):
            function.call(value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", EXPR_FUNCTIONS, ids=ids(EXPR_FUNCTIONS))
def test_an_expression_gives_each_row_or_group_what_it_gives_alone(
    function: ExprFunction, engine: pl.Engine
) -> None:
    name = function.column.name
    frame = pl.DataFrame([function.column]).with_columns(**dict(function.others))
    doubled = pl.concat([frame.with_columns(g=pl.lit(g)) for g in (0, 1)]).lazy()
    alone = frame.select(function.call(name))[name].to_list()
    if function.is_aggregate:
        grouped = doubled.group_by("g").agg(function.call(name))
        assert grouped.collect(engine=engine)[name].to_list() == alone * 2
        windowed = doubled.select(function.call(name).over("g")).collect(engine=engine)
        assert windowed[name].to_list() == alone * 2 * frame.height
        return
    assert doubled.select(function.call(name)).collect(engine=engine)[name].to_list() == alone * 2
    for row in range(0 if function.reads_group else frame.height):
        assert frame[row].select(function.call(name))[name].to_list() == [alone[row]]
    backwards = frame.reverse().select(function.call(name))[name].to_list()
    assert backwards == alone[::-1]
    filtered = doubled.with_columns(function.call(name)).filter(pl.col("g") == 1)
    assert filtered.collect(engine=engine)[name].to_list() == alone


def test_problems_have_one_row_per_problem_budget_selector_and_reduction() -> None:
    keys = ["problem_id", "budget", "selector", "reduction"]
    assert list(PROBLEMS_SCHEMA)[:4:3] == ["problem_id", "selector"]
    table = problems()
    expected = run()["problem_id"].n_unique() * len(BUDGETS) * len(tts.SELECTORS)
    assert table.height == table.select(keys).n_unique() == expected
    assert set(table["subsets"]) == {"prefix"}
    for name, reduction in table.select("selector", "reduction").unique().rows():
        assert reduction == ("score" if tts.SELECTORS[name].reads_score else None)


def test_votes_have_one_row_per_answer_budget_and_reduction() -> None:
    votes = tts.tally_votes(run(), budgets=BUDGETS)
    keys = ["problem_id", "budget", "reduction", "answer_key"]
    assert list(VOTES_SCHEMA)[:4] == keys
    assert votes.height == votes.select(keys).n_unique()
    assert votes.select(keys[:3]).equals(votes.select(keys[:3]).sort(keys[:3]))


def test_a_curve_has_one_row_per_budget_selector_and_reduction() -> None:
    curve = tts.scaling_curve(problems())
    keys = ["selector", "reduction", "budget"]
    assert list(CURVE_SCHEMA)[:3] == keys
    assert curve.height == len(BUDGETS) * len(tts.SELECTORS)
    assert curve.select(keys).equals(curve.select(keys).unique().sort(keys))
    assert set(curve.select("budget_unit", "subsets").rows()) == {("attempts", "prefix")}


def test_value_is_the_grade_where_the_status_is_ok_and_null_elsewhere() -> None:
    for row in problems().iter_rows(named=True):
        if row["status"] == "ok":
            assert row["value"] == float(row["is_correct"])
        else:
            assert row["value"] is None
    assert set(problems()["status"]) == {"ok", "short", "unscored", "ungraded"}
