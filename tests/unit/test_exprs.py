from __future__ import annotations

import polars as pl
import pytest
from polars import selectors as cs

from ttsframe._exprs import into_expr, keep_name, raise_where, run_plan
from ttsframe.errors import DataError, ParameterTypeError

ENGINES = ["in-memory", "streaming"]


def test_a_string_is_a_column_and_never_a_literal() -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    assert frame.select(into_expr("a", "x"))["a"].to_list() == [1, 2]
    assert frame.select(into_expr(pl.col("a") + 1, "x"))["a"].to_list() == [2, 3]
    assert frame.select(into_expr(pl.Series("s", [5, 6]), "x"))["s"].to_list() == [5, 6]


@pytest.mark.parametrize("value", [1, 1.5, None, True, ["a"], {"a"}, b"a"])
def test_anything_else_is_refused_by_the_name_of_its_parameter(value: object) -> None:
    with pytest.raises(
        ParameterTypeError, match=r"^answer must be a column name, .*, got \w+\. Hint: "
    ):
        into_expr(value, "answer")  # type: ignore[arg-type]


def test_a_result_keeps_the_name_of_its_source() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": [3, 4]})
    source = pl.col("a")
    replaced = keep_name(pl.when(source > 1).then(pl.lit(0)), source)
    assert frame.select(replaced).columns == ["a"]
    renamed = source.alias("c")
    assert frame.select(keep_name(pl.lit(1), renamed)).columns == ["c"]


def test_results_of_several_columns_keep_their_names() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": [3, 4]})
    for source in (pl.col("a", "b"), pl.all(), cs.integer().as_expr()):
        assert frame.select(keep_name(source * 2, source)).to_dict(as_series=False) == {
            "a": [2, 4],
            "b": [6, 8],
        }


def test_a_plan_gives_back_the_kind_of_frame_that_it_got() -> None:
    eager = run_plan(pl.DataFrame({"a": [1]}), lambda lazy: lazy.with_columns(b=2))
    lazy = run_plan(pl.LazyFrame({"a": [1]}), lambda lazy: lazy.with_columns(b=2))
    assert type(eager) is pl.DataFrame
    assert type(lazy) is pl.LazyFrame
    assert eager.equals(lazy.collect())


def checked(frame: pl.LazyFrame) -> pl.LazyFrame:
    described = pl.struct(broken=pl.col("a") < 0, a=pl.col("a"), name=pl.col("name"))
    return frame.filter(
        raise_where(described, lambda rows: DataError(f"{sorted(rows.rows())} of {rows.columns}"))
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_check_keeps_every_row_of_what_is_sound(engine: pl.Engine) -> None:
    frame = pl.LazyFrame({"a": [1, None, 0], "name": ["x", "y", None]})
    assert checked(frame).collect(engine=engine).equals(frame.collect())
    assert checked(frame.head(0)).collect(engine=engine).height == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_check_shows_the_broken_rows_alone(engine: pl.Engine) -> None:
    frame = pl.LazyFrame({"a": [1, -2, None, -1], "name": ["x", "y", "z", "w"]})
    with pytest.raises(DataError) as caught:
        checked(frame).collect(engine=engine)
    # The streaming engine looks at a part of the rows at a time, and stops at the first bad one.
    shown = ["[(-2, 'y')]", "[(-1, 'w')]", "[(-2, 'y'), (-1, 'w')]"]
    assert str(caught.value) in {f"{rows} of ['a', 'name']" for rows in shown}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_check_is_not_optimised_away(engine: pl.Engine) -> None:
    frame = checked(pl.LazyFrame({"a": [1, -1], "name": ["x", "y"]}))
    for plan in (frame.select("name"), frame.select(pl.len()), frame.filter(pl.col("a") > 0)):
        with pytest.raises(DataError):
            plan.collect(engine=engine)
