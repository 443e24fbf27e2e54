from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError
from ttsframe.schema import TRAJECTORY_COLUMNS, require_columns, require_kind

SCHEMA = {"run": pl.String, "problem_id": pl.Int64, "attempt": pl.Int64, "completion": pl.String}
Row = tuple[str, int, int | None, str | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 2),
        st.none() | st.integers(-1, 3),
        st.none() | st.sampled_from(["", "x", "y"]),
    ),
    max_size=30,
)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def in_order(rows: list[Row], members: list[int]) -> list[int]:
    """Return positions of rows by attempt, null last, then by position."""
    return sorted(members, key=lambda i: (rows[i][2] is None, rows[i][2] or 0, i))


def grouped(rows: list[Row], *columns: int) -> list[list[int]]:
    """Return the positions of the rows that have the same values there."""
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        groups[tuple(row[column] for column in columns)].append(position)
    return list(groups.values())


@given(ROWS)
def test_attempts_are_renumbered_as_a_loop_would(rows: list[Row]) -> None:
    expected = [0] * len(rows)
    for members in grouped(rows, 0, 1):
        for number, position in enumerate(in_order(rows, members)):
            expected[position] = number
    renumbered = tts.renumber_attempts(frame_of(rows), by="run")
    assert renumbered["attempt"].to_list() == expected
    assert renumbered["attempt"].dtype == pl.UInt32
    assert_frame_equal(renumbered.drop("attempt"), frame_of(rows).drop("attempt"))


@given(ROWS)
def test_row_order_numbers_attempts_that_have_no_number(rows: list[Row]) -> None:
    expected = [0] * len(rows)
    for members in grouped(rows, 1):
        for number, position in enumerate(members):
            expected[position] = number
    renumbered = tts.renumber_attempts(frame_of(rows).drop("attempt"))
    assert renumbered["attempt"].to_list() == expected


@given(ROWS)
def test_the_earliest_of_equal_texts_is_kept(rows: list[Row]) -> None:
    kept = {position for position, row in enumerate(rows) if row[3] is None}
    kept |= {in_order(rows, members)[0] for members in grouped(rows, 0, 1, 3)}
    dropped = tts.drop_duplicate_completions(frame_of(rows), by="run")
    assert dropped.rows() == [row for position, row in enumerate(rows) if position in kept]


def test_the_first_of_equal_texts_is_kept_where_attempts_have_no_number() -> None:
    frame = pl.DataFrame({
        "problem_id": [1, 1, 2, 1],
        "completion": ["x", "x", "x", "y"],
        "row": range(4),
    })
    assert tts.drop_duplicate_completions(frame)["row"].to_list() == [0, 2, 3]


@pytest.mark.parametrize("function", [tts.renumber_attempts, tts.drop_duplicate_completions])
def test_lazy_in_lazy_out(function: Any) -> None:
    frame = frame_of([("a", 1, 5, "x"), ("a", 1, 2, "x"), ("a", 2, None, None)])
    lazy = function(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(), function(frame))


def test_renumbering_a_large_run_keeps_ties_in_row_order() -> None:
    rng = random.Random(0)
    frame = pl.DataFrame({
        "problem_id": [rng.randrange(3) for _ in range(200_000)],
        "attempt": [rng.randrange(10) for _ in range(200_000)],
    }).with_row_index("row")
    renumbered = (
        tts
        .renumber_attempts(frame)
        .join(frame, on="row", suffix="_old")
        .sort("problem_id", "attempt")
    )
    ordered = frame.sort("problem_id", "attempt", "row")
    assert renumbered["row"].to_list() == ordered["row"].to_list()


def test_a_mended_run_is_valid() -> None:
    run = tts.simulate_trajectories(10, 8, seed=3, texts=True)
    padded = pl.concat([
        run,
        run.filter(pl.col("attempt") < 2).with_columns(attempt=pl.col("attempt") + 8),
    ])
    mended = padded.filter(pl.col("attempt") != 1).pipe(tts.drop_duplicate_completions)
    mended = mended.pipe(tts.renumber_attempts)
    assert tts.validate_trajectories(mended).findings == ()
    assert mended.height == 80


@pytest.mark.parametrize(
    ("function", "frame", "message"),
    [
        (
            tts.renumber_attempts,
            pl.DataFrame({"id": [1]}),
            "1 missing column for trajectories: 'problem_id'; found: ['id']. Hint: ",
        ),
        (
            tts.drop_duplicate_completions,
            pl.DataFrame({"problem_id": [1]}),
            "1 missing column for trajectories: 'completion'; found: ['problem_id']. Hint: ",
        ),
    ],
)
def test_missing_columns_are_named_at_once(
    function: Any, frame: pl.DataFrame, message: str
) -> None:
    for each in (frame, frame.lazy()):
        with pytest.raises(tts.TtsframeError) as caught:
            function(each)
        assert str(caught.value).startswith(message)
    with pytest.raises(
        TypeError, match="trajectories must be a polars DataFrame or LazyFrame, got list"
    ):
        function([1])


def test_require_columns_returns_the_schema_or_names_what_is_missing() -> None:
    frame = pl.LazyFrame({"problem_id": ["a"], "attempt": [0]})
    assert require_columns(frame, ["attempt"]) == frame.collect_schema()
    with pytest.raises(tts.TtsframeError) as caught:
        require_columns(frame, ["score", "gold"], where="votes")
    assert str(caught.value) == (
        "2 missing columns for votes: 'score', 'gold'; found: ['problem_id', 'attempt']. Hint: "
        "tts.score_trajectories(trajectories, reduction=...) reduces 'step_scores' to 'score'."
    )
    with pytest.raises(tts.TtsframeError, match="Hint: do this"):
        require_columns(frame, ["x"], hint="do this.")


def test_every_column_has_a_dtype_and_a_meaning() -> None:
    assert list(TRAJECTORY_COLUMNS)[:2] == ["problem_id", "attempt"]
    for name, column in TRAJECTORY_COLUMNS.items():
        assert isinstance(column.dtype, pl.DataType), name
        assert column.meaning, name


def test_a_column_has_its_kind_or_only_nulls() -> None:
    schema = {"a": pl.Int8(), "b": pl.Boolean(), "c": pl.Null()}
    require_kind(schema, "an integer", "a", "c")
    require_kind(schema, "a number", "a", "c")
    require_kind(schema, "Boolean", "b", "c")
    with pytest.raises(
        ColumnsError, match=r"^steps: 'b' is Boolean, must be a number\. Hint: cast it\.$"
    ):
        require_kind(schema, "a number", "a", "b", where="steps", hint="cast it.")
