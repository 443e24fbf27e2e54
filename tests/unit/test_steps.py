"""Step reductions against plain Python, on every layout a list column can have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import get_args

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars._typing import EngineType
from polars.testing import assert_series_equal

import ttsframe as tts
from ttsframe._typing import StepReduction
from ttsframe.errors import ColumnsError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")
NAN = float("nan")
Scores = Sequence[float | None] | None


def _extremum(pick: Callable[[Sequence[float]], float]) -> Callable[[Sequence[float]], float]:
    return lambda scores: NAN if any(map(math.isnan, scores)) else pick(scores)


def _sum(scores: Sequence[float]) -> float:
    if all(map(math.isfinite, scores)):
        return math.fsum(scores)
    return sum(scores)


def _geometric_mean(scores: Sequence[float]) -> float:
    if any(math.isnan(score) or score < 0.0 for score in scores):
        return NAN
    if 0.0 in scores:
        return NAN if math.inf in scores else 0.0
    return math.exp(_sum([math.log(score) for score in scores]) / len(scores))


OF_PRESENT: dict[str, Callable[[Sequence[float]], float]] = {
    "min": _extremum(min),
    "max": _extremum(max),
    "sum": _sum,
    "mean": lambda scores: _sum(scores) / len(scores),
    "prod": math.prod,
    "geometric_mean": _geometric_mean,
}


def oracle(name: str, scores: Scores) -> float | None:
    """Reduce one list by the rule on missing values in a list."""
    if not scores:
        return None
    if name in {"first", "last"}:
        return scores[0 if name == "first" else -1]
    present = [score for score in scores if score is not None]
    return OF_PRESENT[name](present) if present else None


def check(name: str, actual: pl.Series, lists: Sequence[Scores]) -> None:
    assert actual.dtype == pl.Float64
    assert len(actual) == len(lists)
    for found, scores in zip(actual, lists, strict=True):
        expected = oracle(name, scores)
        if expected is None or found is None or math.isnan(expected) or math.isinf(expected):
            assert str(found) == str(expected), (scores, found, expected)
        elif name in {"sum", "mean"}:
            magnitude = math.fsum(abs(score) for score in scores or () if score is not None)
            assert abs(found - expected) <= 1e-12 * magnitude, (scores, found, expected)
        elif name in {"prod", "geometric_mean"}:
            assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-300)
        else:
            assert found == expected


RAGGED: list[Scores] = [
    [0.9, 0.2, 0.7],
    [],
    None,
    [None],
    [None, None],
    [0.5, None],
    [None, 0.5],
    [NAN, 0.2],
    [0.2, NAN],
    [NAN],
    [NAN, None],
    [],
    [1.5, 2.0],
    [-3.5, 2.0, -1.0],
    [0.0, 0.4],
    [math.inf, 1.0],
    [math.inf, -math.inf],
    [0.0, math.inf],
    [0.1] * 400,
    None,
    [],
]


def test_registry_holds_every_name_of_the_literal() -> None:
    assert tuple(tts.STEP_REDUCTIONS) == get_args(StepReduction)
    for name, reduce in tts.STEP_REDUCTIONS.items():
        assert getattr(tts, f"step_{name}") is reduce


@pytest.fixture(params=get_args(StepReduction))
def name(request: pytest.FixtureRequest) -> StepReduction:
    chosen: StepReduction = request.param
    return chosen


def reduced(name: StepReduction, lists: pl.Series, engine: EngineType = "in-memory") -> pl.Series:
    frame = lists.alias("s").to_frame().lazy()
    return frame.select(tts.STEP_REDUCTIONS[name]("s")).collect(engine=engine).to_series()


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_empty_nan_and_extreme_rows(name: StepReduction, engine: EngineType) -> None:
    check(name, reduced(name, pl.Series(RAGGED), engine), RAGGED)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", range(len(RAGGED)))
def test_sliced_columns(name: StepReduction, engine: EngineType, start: int) -> None:
    for length in (0, 1, 2, 5):
        rows = pl.Series(RAGGED).slice(start, length)
        check(name, reduced(name, rows, engine), rows.to_list())


@pytest.mark.parametrize("engine", ENGINES)
def test_filtered_and_chunked_columns(name: StepReduction, engine: EngineType) -> None:
    keep = pl.Series([row % 3 != 1 for row in range(len(RAGGED))])
    rows = pl.Series(RAGGED).filter(keep)
    chunked = pl.concat([rows, pl.Series(RAGGED), rows.slice(3, 4)], rechunk=False)
    assert chunked.n_chunks() > 1
    check(name, reduced(name, chunked, engine), chunked.to_list())


@pytest.mark.parametrize("engine", ENGINES)
def test_null_rows_that_hide_values(name: StepReduction, engine: EngineType) -> None:
    """Arrow lets a null list span values of the buffer that are nobody's."""
    hidden = pa.LargeListArray.from_buffers(
        pa.large_list(pa.float64()),
        4,
        [
            pa.py_buffer(bytes([0b1101])),
            pa.array([1, 3, 5, 5, 6], pa.int64()).buffers()[1],
        ],
        children=[pa.array([7.0, 0.5, 0.25, 9.0, NAN, 0.75, 8.0])],
    )
    rows = pl.Series("s", hidden)
    assert rows.to_list() == [[0.5, 0.25], None, [], [0.75]]
    check(name, reduced(name, rows, engine), rows.to_list())
    check(name, reduced(name, rows.slice(1, 2), engine), [None, []])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "lists",
    [
        pl.Series([], dtype=pl.List(pl.Float64)),
        pl.Series([], dtype=pl.List(pl.Null)),
        pl.Series([], dtype=pl.Null),
        pl.Series([[], [None], None]),
        pl.Series([None, None]),
        pl.Series([[], [], []], dtype=pl.List(pl.Float32)),
        pl.Series([None, None], dtype=pl.List(pl.Float64)),
    ],
    ids=lambda lists: f"{lists.dtype}-{len(lists)}",
)
def test_nothing_left_is_null(name: StepReduction, engine: EngineType, lists: pl.Series) -> None:
    expected = pl.Series("s", [None] * len(lists), dtype=pl.Float64)
    assert_series_equal(reduced(name, lists, engine), expected)


@pytest.mark.parametrize(
    "lists",
    [
        pl.Series([[1, 2, None], [3], []], dtype=pl.List(pl.Int64)),
        pl.Series([[1, 2, None], [3], []], dtype=pl.List(pl.UInt8)),
        pl.Series([[0.1, 0.7, None], [], [NAN]], dtype=pl.List(pl.Float32)),
        pl.Series([[0.1, 0.7], [None, 0.2], None], dtype=pl.Array(pl.Float64, 2)),
        pl.Series([[0.1, 0.7], [None, 0.2], None], dtype=pl.Array(pl.Float32, 2)),
    ],
    ids=lambda lists: str(lists.dtype),
)
def test_other_stored_types_give_float64(name: StepReduction, lists: pl.Series) -> None:
    check(name, reduced(name, lists), lists.to_list())


def test_float32_is_widened_before_it_is_summed(name: StepReduction) -> None:
    lists = pl.Series([[0.1 + 0.001 * row] * 300 for row in range(50)], dtype=pl.List(pl.Float32))
    check(name, reduced(name, lists), lists.to_list())


def test_output_keeps_the_name_of_the_input(name: StepReduction) -> None:
    frame = pl.DataFrame({"a": [[1.0, 2.0]], "b": [[3.0, 4.0]], "c": [0]})
    reduce = tts.STEP_REDUCTIONS[name]
    assert frame.select(reduce("a")).columns == ["a"]
    assert frame.select(reduce(pl.col("a").alias("renamed"))).columns == ["renamed"]
    assert frame.select(reduce(pl.col("a").list.reverse())).columns == ["a"]
    assert frame.select(reduce(frame["b"])).columns == ["b"]
    several = frame.select(reduce(cs.list()))
    assert several.columns == ["a", "b"]
    for column in several:
        check(name, column, frame[column.name].to_list())


@pytest.mark.parametrize("engine", ENGINES)
def test_every_context_gives_the_same_rows(name: StepReduction, engine: EngineType) -> None:
    frame = pl.DataFrame({"s": RAGGED, "row": range(len(RAGGED))}).with_columns(
        group=pl.col("row") % 4
    )
    reduce = tts.STEP_REDUCTIONS[name]("s")
    added = frame.lazy().with_columns(r=reduce).collect(engine=engine).sort("row")
    check(name, added["r"], RAGGED)
    grouped = frame.lazy().group_by("group").agg(pl.col("row"), r=reduce)
    back = grouped.explode("row", "r").sort("row").collect(engine=engine)
    check(name, back["r"], RAGGED)
    over = frame.lazy().with_columns(r=reduce.over("group")).collect(engine=engine).sort("row")
    check(name, over["r"], RAGGED)
    filtered = frame.lazy().filter(reduce.is_nan()).collect(engine=engine)
    expected = [row for row, scores in enumerate(RAGGED) if str(oracle(name, scores)) == "nan"]
    assert sorted(filtered["row"]) == expected


def test_scores_that_are_no_list_are_refused(name: StepReduction) -> None:
    reduce = tts.STEP_REDUCTIONS[name]
    with pytest.raises(ColumnsError, match="'s' of dtype Float64, must be a list of numbers"):
        pl.DataFrame({"s": [0.5]}).select(reduce("s"))
    with pytest.raises(ColumnsError, match=r"'s' of dtype List\(String\)"):
        pl.DataFrame({"s": [["good"]]}).select(reduce("s"))
    with pytest.raises(ParameterTypeError, match=r"step_scores must be .*, got float"):
        reduce(0.5)  # type: ignore[arg-type]


SCORES = st.one_of(
    st.none(),
    st.floats(0.0, 1.0),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, -0.0, 1.0, NAN]),
)
LISTS = st.lists(st.one_of(st.none(), st.lists(SCORES, max_size=8)), max_size=12)


@given(lists=LISTS, data=st.data())
def test_any_lists_any_slice(lists: list[Scores], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(lists)))
    length = data.draw(st.integers(0, len(lists) - start))
    rows = pl.Series("s", lists, dtype=pl.List(pl.Float64)).slice(start, length)
    for engine in ENGINES:
        reduced_rows = (
            rows
            .to_frame()
            .lazy()
            .select(reduce("s").alias(name) for name, reduce in tts.STEP_REDUCTIONS.items())
            .collect(engine=engine)
        )
        for name in tts.STEP_REDUCTIONS:
            check(name, reduced_rows[name], lists[start : start + length])
