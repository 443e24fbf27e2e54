"""ttsframe's own long form: what is written comes back, in every container and on both engines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, SourceError
from ttsframe.schema import TRAJECTORY_COLUMNS

ENGINES = ("in-memory", "streaming")
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "problem_id": TEXT,
    "problem": st.none() | TEXT,
    "completion": st.none() | TEXT,
    "solution": st.none() | TEXT,
    "step_scores": st.none() | st.lists(st.none() | NUMBER, max_size=4),
    "answer": st.none() | TEXT,
    "gold": st.none() | TEXT,
    "is_correct": st.none() | st.booleans(),
    "score": st.none() | NUMBER,
    "n_tokens": st.none() | st.integers(0, 2**31),
    "is_exchangeable": st.none() | st.booleans(),
}


@st.composite
def trajectories(draw: st.DrawFn) -> pl.DataFrame:
    optional = draw(st.lists(st.sampled_from([*CELLS][1:]), unique=True))
    rows = draw(
        st.lists(
            st.fixed_dictionaries({name: CELLS[name] for name in ["problem_id", *optional]}),
            min_size=1,
            max_size=8,
        )
    )
    schema = {name: TRAJECTORY_COLUMNS[name].dtype for name in ["problem_id", *optional]}
    frame = pl.DataFrame(rows, schema=schema).with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).over("problem_id").alias("attempt")
    )
    names = [name for name in TRAJECTORY_COLUMNS if name in frame.columns]
    return frame.select(*names, pl.lit("x").alias("run"))


def as_parquet(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


def as_arrow(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ipc(path)


def as_arrow_stream(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ipc_stream(path)


def as_json_lines(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ndjson(path)


def as_python_json(frame: pl.DataFrame, path: Path) -> None:
    path.write_text(json.dumps(frame.to_dicts()))


WRITERS = [as_parquet, as_arrow, as_arrow_stream, as_json_lines, as_python_json]


@pytest.mark.parametrize("write", WRITERS)
@given(frame=trajectories())
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, write: Any, frame: pl.DataFrame
) -> None:
    path = tmp_path_factory.mktemp("long") / "trajectories"
    write(frame, path)

    for engine in ENGINES:
        assert_frame_equal(tts.scan_trajectories(path).collect(engine=engine), frame)


def test_attempts_are_numbered_in_row_order_where_they_are_not(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pl.DataFrame({"problem_id": list("abaab"), "completion": list("vwxyz")}).write_parquet(path)

    for engine in ENGINES:
        frame = tts.scan_trajectories(path).collect(engine=engine)
        assert frame.select("problem_id", "attempt", "completion").rows() == [
            ("a", 0, "v"),
            ("b", 0, "w"),
            ("a", 1, "x"),
            ("a", 2, "y"),
            ("b", 1, "z"),
        ]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_attempts_are_numbered_within_their_file(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"problem_id": ["a", "a"], "completion": ["x", "y"]})
    for name in ("one", "two"):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            frame.write_parquet(path)
        else:
            frame.write_ndjson(path)

    assert tts.read_trajectories(tmp_path)["attempt"].to_list() == [0, 1, 0, 1]


def test_a_text_alone_identifies_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    rows = [{"q": text, "out": "x"} for text in ("1 + 1?", "2 + 2?", "1 + 1?")]
    path.write_text("\n".join(map(json.dumps, rows)))
    search_and_learn = tmp_path / "other.jsonl"
    search_and_learn.write_text(json.dumps({"problem": "1 + 1?", "completions": ["x"]}))

    frame = tts.read_trajectories(path, rename={"q": "problem", "out": "completion"})

    ids = frame["problem_id"].to_list()
    assert ids[0] == ids[2] != ids[1]
    assert frame["attempt"].to_list() == [0, 0, 1]
    # files of two tools pair
    assert tts.read_trajectories(search_and_learn)["problem_id"].to_list() == ids[:1]


CASTS: dict[str, tuple[pl.Series, list[Any]]] = {
    "attempt": (pl.Series([0.0, 1.0]), [0, 1]),
    "n_tokens": (pl.Series([3.0, None]), [3, None]),
    "is_correct": (pl.Series([1, 0]), [True, False]),
    "is_exchangeable": (pl.Series([1.0, None]), [True, None]),
    "answer": (pl.Series([3, 4]), ["3", "4"]),
    "gold": (pl.Series(["x", "y"], dtype=pl.Categorical), ["x", "y"]),
    "score": (pl.Series([1, 2], dtype=pl.UInt8), [1.0, 2.0]),
    "step_scores": (pl.Series([[1], []], dtype=pl.List(pl.Int32)), [[1.0], []]),
}


@pytest.mark.parametrize("column", CASTS)
def test_columns_get_their_dtypes(tmp_path: Path, column: str) -> None:
    values, expected = CASTS[column]
    path = tmp_path / "run.parquet"
    data = {"problem_id": ["a", "a"], "completion": ["x", "y"], column: values}
    pl.DataFrame(data).write_parquet(path)

    frame = tts.read_trajectories(path)

    assert frame.schema[column] == TRAJECTORY_COLUMNS[column].dtype
    assert frame[column].to_list() == expected


def test_narrow_scores_stay_narrow(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    scores = pl.Series([[0.5], None], dtype=pl.List(pl.Float32))
    pl.DataFrame({"problem_id": ["a", "b"], "step_scores": scores}).write_parquet(path)

    assert tts.read_trajectories(path).schema["step_scores"] == pl.List(pl.Float32)


ROWS = [  # one bad row each: which of several is named first is up to the engine
    ("attempt", [0, -1, 2], "attempt is -1, must be a whole number from 0"),
    ("n_tokens", [1.0, 2.5, 3.0], r"n_tokens is 2\.5, must be a whole number from 0"),
    ("n_tokens", [1.0, math.nan, 3.0], "n_tokens is nan, must be a whole number from 0"),
    ("is_correct", [1, 2, 0], "is_correct is 2, must be true, false, 0 or 1"),
    ("problem_id", ["a", None, "c"], "problem_id is None, so the row belongs to no problem"),
]


@pytest.mark.parametrize(("column", "values", "reason"), ROWS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_that_cannot_be_names_its_row(
    tmp_path: Path, column: str, values: list[Any], reason: str, engine: Any
) -> None:
    path = tmp_path / "run.parquet"
    data = {"problem_id": list("abc"), "completion": list("xyz"), column: values}
    pl.DataFrame(data).write_parquet(path)

    with pytest.raises(SourceError, match=rf"run\.parquet, row 2: {reason}\. Hint: "):
        tts.scan_trajectories(path).collect(engine=engine)
    with pytest.warns(tts.errors.SkippedRowsWarning, match=rf"row 2: {reason}"):
        kept = tts.read_trajectories(path, on_error="skip")
    assert kept["completion"].to_list() == ["x", "z"]


def test_a_missing_attempt_number_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"problem_id": "a", "attempt": 0}\n{"problem_id": "a"}\n')

    with pytest.raises(SourceError, match=r"run\.jsonl, line 2: attempt is None, must be a whole"):
        tts.read_trajectories(path)


COLUMNS = {
    "step_scores": (["[0.5]"], r"'step_scores' is String, must be List\(Float64\)\. Hint: cast it"),
    "score": (["high"], "'score' is String, must be Float64"),
    "completion": ([["x"]], r"'completion' is List\(String\), must be String"),
    "is_correct": (["yes"], "'is_correct' is String, must be Boolean, or 0 and 1"),
    "attempt": (["first"], "'attempt' is String, must be a whole number"),
    "problem_id": ([0.5], "'problem_id' is Float64, must be String or an integer to identify"),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_that_cannot_be_is_refused_at_the_call(tmp_path: Path, column: str) -> None:
    values, reason = COLUMNS[column]
    path = tmp_path / "run.parquet"
    data = {"problem_id": ["a"], "gold": ["x"], "answer_key": ["x"], column: values}
    pl.DataFrame(data).write_parquet(path)

    with pytest.raises(ColumnsError, match=rf"run\.parquet: column {reason}"):
        tts.scan_trajectories(path)


def test_an_empty_parquet_file_is_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pl.DataFrame(schema={"problem_id": pl.String, "attempt": pl.UInt32}).write_parquet(path)

    assert tts.read_trajectories(path).is_empty()


def test_columns_that_only_hold_null_keep_their_meaning(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(
        json.dumps({"problem_id": "a", "is_correct": None, "n_tokens": None, "x": None})
    )

    frame = tts.read_trajectories(path)

    assert frame.schema["is_correct"] == pl.Boolean
    assert frame.schema["n_tokens"] == pl.Int64
    assert frame.schema["x"] == pl.String


def test_scores_that_are_not_numbers_come_back_from_json(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    rows = [
        {"problem_id": "a", "step_scores": [0.5, math.nan]},
        {"problem_id": "b", "step_scores": None},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))

    first, second = tts.read_trajectories(path)["step_scores"].to_list()

    assert first[0] == 0.5
    assert math.isnan(first[1])
    assert second is None
