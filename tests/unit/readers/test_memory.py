"""Frames, tables, data sets and lists of dicts mean the same as the file that holds their rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError, SourceError

REAL_FILES = [
    "search_and_learn/bon1_llama3.2-3b-awq_q500.jsonl",
    "search_and_learn/beam16_llama3.2-3b-awq_q100.jsonl",
    "search_and_learn/edge_null-scores_qwen2.5-math_q100.jsonl",
    "search_and_learn/synthetic_100x64.parquet",
    "qwen_math/math_cot_50.jsonl",
    "compute_optimal_tts/math500_best_of_n_1_1_1.jsonl",
    "ets/synthetic_20x16.json",
]
ROWS: list[dict[str, Any]] = [
    {"unique_id": f"p{i}", "problem": f"{i}?", "answer": str(i), "completions": [str(i), "no"]}
    for i in range(6)
]


class Arrow:
    """A table that only has the Arrow C stream interface, as those of DuckDB."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class DataSet:
    """What `datasets.Dataset` does: a table that never changes, and the indices of its rows."""

    def __init__(
        self, data: pa.Table, indices: list[int] | None = None, kind: str | None = None
    ) -> None:
        self._data, self._indices, self._kind = data, indices, kind

    def __len__(self) -> int:
        return self._data.num_rows if self._indices is None else len(self._indices)

    def with_format(self, type: str | None) -> DataSet:  # noqa: A002 - as the library spells it
        return DataSet(self._data, self._indices, type)

    def select(self, indices: list[int]) -> DataSet:
        before = list(range(self._data.num_rows)) if self._indices is None else self._indices
        return DataSet(self._data, [before[i] for i in indices], self._kind)

    def __getitem__(self, rows: slice) -> Any:
        table = self._data if self._indices is None else self._data.take(self._indices)
        table = table.slice(*rows.indices(len(self))[:2])
        return table if self._kind == "arrow" else table.to_pydict()


class Stream:
    """What `datasets.IterableDataset` can do: it has no length."""

    def with_format(self, type: str | None) -> Stream:  # noqa: A002, ARG002
        return self


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())
    return list(rows)


def frame_of(path: Path) -> pl.DataFrame:
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    read = pl.read_json if path.suffix == ".json" else pl.read_ndjson
    return read(path, infer_schema_length=None)


@pytest.mark.parametrize("name", REAL_FILES)
def test_a_real_file_is_the_same_run_in_memory(shared_data: Path, name: str) -> None:
    path = shared_data / name
    expected = tts.read_trajectories(path)
    frame = frame_of(path)
    table = frame.to_arrow()

    for source in (
        frame,
        frame.lazy(),
        table,
        table.to_reader(),
        Arrow(table),
        rows_of(path),
        DataSet(table),
    ):
        assert_frame_equal(tts.read_trajectories(source), expected)


def test_a_frame_of_one_row_per_problem_gives_its_real_accuracy(shared_data: Path) -> None:
    path = shared_data / "search_and_learn" / "bon1_llama3.2-3b-awq_q500.jsonl"
    frame = pl.read_ndjson(path)

    with pytest.raises(ColumnsError, match=r"'completions' is List\(String\).*read_trajectories"):
        tts.score_trajectories(frame)
    scored = tts.read_trajectories(frame).pipe(tts.score_trajectories)

    from_file = tts.read_trajectories(path).pipe(tts.score_trajectories)
    assert scored["is_correct"].mean() == from_file["is_correct"].mean()
    assert 0.2 < scored["is_correct"].mean() < 0.8  # type: ignore[operator]


@pytest.mark.parametrize(
    "selected",
    [
        lambda rows: [i for i in range(len(rows)) if i % 3],
        lambda rows: [*range(len(rows))][::-1],
        lambda _: [4, 0, 2],
    ],
    ids=["filtered", "shuffled", "selected"],
)
def test_the_selection_of_a_data_set_is_applied(selected: Callable[[Any], list[int]]) -> None:
    indices = selected(ROWS)
    whole = DataSet(pa.Table.from_pylist(ROWS))

    found = tts.read_trajectories(whole.select(indices))

    assert_frame_equal(found, tts.read_trajectories([ROWS[i] for i in indices]))
    twice = whole.select(indices).select([1, 0])
    expected = [ROWS[indices[1]], ROWS[indices[0]]]
    assert_frame_equal(tts.read_trajectories(twice), tts.read_trajectories(expected))


def test_splits_and_streams_are_refused() -> None:
    split = DataSet(pa.Table.from_pylist(ROWS))
    with pytest.raises(ParameterTypeError) as caught:
        tts.read_trajectories({"train": split, "test": split})  # type: ignore[arg-type]
    assert "with the splits 'train', 'test'. Hint: name a split" in str(caught.value)
    with pytest.raises(ParameterTypeError, match=r"can only be streamed\. Hint: list\(source\)"):
        tts.read_trajectories(Stream())
    with pytest.raises(ParameterTypeError, match=r"pl\.DataFrame\(source\) makes a frame"):
        tts.read_trajectories({"problem_id": ["a"], "completion": ["x"]})  # type: ignore[arg-type]


def test_the_real_data_sets_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list(ROWS)
    assert_frame_equal(tts.read_trajectories(data), tts.read_trajectories(ROWS))
    for changed in (
        data.filter(lambda row: row["answer"] in "135"),
        data.shuffle(seed=3),
        data.select([4, 0, 2]),
        data.filter(lambda row: row["answer"] != "2").shuffle(seed=1).select([3, 1]),
        data.with_format("numpy").select([5]),
    ):
        plain = changed.with_format(None)
        rows = [plain[i] for i in range(len(plain))]
        assert_frame_equal(tts.read_trajectories(changed), tts.read_trajectories(rows))
    with pytest.raises(ParameterTypeError, match="with the splits 'train', 'test'"):
        tts.read_trajectories(datasets.DatasetDict({"train": data, "test": data}))
    with pytest.raises(ParameterTypeError, match="can only be streamed"):
        tts.read_trajectories(data.to_iterable_dataset())


def test_the_real_frames_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    expected = tts.read_trajectories(ROWS)
    frame = pandas.DataFrame(ROWS)
    assert_frame_equal(tts.read_trajectories(frame), expected)
    # Rows that were filtered have an index with holes, which is no column.
    assert_frame_equal(tts.read_trajectories(frame[frame.index > 2]), expected[6:])
    # An index with a name was a column.
    indexed = tts.read_trajectories(frame.set_index("unique_id"))
    assert_frame_equal(indexed.select(expected.columns), expected)
    mixed = [{**ROWS[0], "completion_tokens": [3, 4]}, {**ROWS[1], "completion_tokens": -1}]
    assert_frame_equal(tts.read_trajectories(pandas.DataFrame(mixed)), tts.read_trajectories(mixed))
    holes = pandas.DataFrame({"problem_id": ["a", "b"], "completion": ["x", float("nan")]})
    assert tts.read_trajectories(holes)["completion"].to_list() == ["x", None]
    with pytest.raises(TypeError, match=r"got a pandas DataFrame\. Hint: pl\.from_pandas\(frame\)"):
        tts.score_trajectories(holes)


VALUES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "[1]", "é"])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"problem_id": st.sampled_from(["a", "b"])},
            optional={
                "completion": st.none() | st.text(max_size=4),
                "step_scores": st.none() | st.lists(st.none() | st.floats(0, 1), max_size=3),
                "other": VALUES | st.lists(VALUES, max_size=2),
            },
        ),
        min_size=1,
        max_size=8,
    ).filter(lambda rows: any("completion" in row or "step_scores" in row for row in rows))
)
def test_a_list_of_dicts_is_its_json_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    assert_frame_equal(tts.read_trajectories(rows), tts.read_trajectories(path))


def test_values_of_other_libraries_in_dicts() -> None:
    rows = [
        MappingProxyType({
            "problem_id": np.int64(3),
            "completion": "x",
            "step_scores": np.array([0.5, 0.25]),
            "score": np.float32(0.5),
            "is_correct": np.True_,
            "when": dt.date(2026, 1, 2),
            "tags": ("a", "b"),
            "more": pl.Series([1, 2]),
        })
    ]

    found = tts.read_trajectories(rows)

    row = found.row(0, named=True)
    assert row["problem_id"] == 3
    assert row["step_scores"] == [0.5, 0.25]
    assert (row["score"], row["is_correct"]) == (0.5, True)
    assert (row["when"], row["tags"], row["more"]) == ("2026-01-02", ["a", "b"], [1, 2])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"problem_id": "a"}, 3], "list of dicts, row 2: is int, must be a dict"),
        ([{"problem_id": "a", "completion": object()}], "list of dicts, row 1: cannot be read"),
        ([{"problem_id": "a", "completion": b"x"}], "row 1: cannot be read (a value is bytes"),
        (
            [{"problem_id": "a", "completion": "x"}, {"problem_id": None, "completion": "y"}],
            "list of dicts, row 2: problem_id is None",
        ),
    ],
)
def test_a_bad_row_is_named(rows: list[Any], message: str) -> None:
    with pytest.raises((ParameterTypeError, SourceError)) as caught:
        tts.read_trajectories(rows)
    assert message in str(caught.value)


def test_rename_format_gold_and_on_error_work_as_for_files() -> None:
    frame = pl.DataFrame({"question": ["1?", "1?"], "response": ["2", None], "id": ["a", "b"]})
    rename = {"question": "problem", "response": "completion", "id": "problem_id"}
    gold = pl.DataFrame({"id": ["a"], "answer": ["2"]})

    with pytest.warns(UserWarning, match="polars DataFrame: no gold answer for 1 of 2 problems"):
        found = tts.read_trajectories(frame, rename=rename, gold=gold, format="long_form")

    assert found["gold"].to_list() == ["2", None]
    for same in (gold.to_dicts(), gold.to_arrow(), gold.lazy()):
        with pytest.warns(UserWarning, match="no gold answer for 1 of 2"):
            assert_frame_equal(tts.read_trajectories(frame, rename=rename, gold=same), found)
    with pytest.raises(SourceError, match="polars DataFrame: is not in format 'qwen_math'"):
        tts.read_trajectories(frame, format="qwen_math")
    with pytest.raises(ColumnsError, match="missing column for rename in polars DataFrame"):
        tts.read_trajectories(frame, rename={"gone": "x", **rename})
    short = [ROWS[0], {**ROWS[1], "completions": []}]
    with pytest.raises(SourceError, match="list of dicts, row 2: problem 'p1' has no attempt"):
        tts.read_trajectories(short)
    with pytest.warns(UserWarning, match="1 row skipped: list of dicts, row 2"):
        assert tts.read_trajectories(short, on_error="skip").height == 2


def test_several_frames_are_several_runs(tmp_path: Path) -> None:
    frame = pl.DataFrame({"problem_id": ["a"], "completion": ["x"]})
    frame.write_parquet(tmp_path / "a.parquet")

    found = tts.read_trajectories([frame, frame.to_arrow(), tmp_path / "a.parquet"])

    assert found["source_file"].to_list() == [
        "polars DataFrame 1",
        "pyarrow Table 2",
        str(tmp_path / "a.parquet"),
    ]
    assert found["attempt"].to_list() == [0, 0, 0]


def test_a_lazy_frame_is_not_collected_by_scanning() -> None:
    collected = []

    def spy(frame: pl.DataFrame) -> pl.DataFrame:
        collected.append(frame.height)
        return frame

    lazy = pl.LazyFrame(ROWS).map_batches(spy, schema=pl.DataFrame(ROWS).schema)
    plan = tts.scan_trajectories(lazy)
    assert collected == []
    assert plan.collect().height == 12
    assert collected == [6]


def test_a_broken_lazy_frame_is_named() -> None:
    with pytest.raises(SourceError, match="polars LazyFrame: cannot be read as a table"):
        tts.scan_trajectories(pl.LazyFrame({"a": [1]}).select("gone"))


def test_steps_are_read_from_memory_too(shared_data: Path) -> None:
    for name in ("math-aps", "math-shepherd", "prm800k"):
        path = shared_data / "openr" / f"samples_{name}.jsonl"
        expected = tts.read_steps(path)
        assert_frame_equal(tts.read_steps(rows_of(path)), expected)
        if name != "prm800k":  # Polars takes its fields without any value for text
            frame = pl.read_ndjson(path, infer_schema_length=None)
            assert_frame_equal(tts.read_steps(frame), expected)
            assert_frame_equal(tts.scan_steps(frame.to_arrow()).collect(), expected)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1, 2]).cast(pa.decimal256(50, 2)), "decimal256"),
        (pa.array([[1.0], [2.0]], pa.list_view(pa.float64())), "list_view"),
        (pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["a", "b"])), "run_end_encoded"),
    ],
)
def test_a_column_of_an_odd_arrow_type_is_named(tmp_path: Path, array: pa.Array, kind: str) -> None:
    table = pa.table({"problem_id": ["a", "b"], "completion": ["x", "y"], "odd": array})
    path = tmp_path / "odd.arrows"
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)

    for source, name in ((table, "pyarrow Table"), (path, str(path))):
        with pytest.raises(SourceError) as caught:
            tts.read_trajectories(source)
        assert str(caught.value).startswith(f"{name}: column 'odd' ({kind}")
        assert "Hint: cast the column" in str(caught.value)


def test_a_job_needs_files(tmp_path: Path) -> None:
    frame = pl.DataFrame({"problem_id": ["a"], "completion": ["x"]})
    with pytest.raises(ParameterError, match=r"polars DataFrame: is not a local file.*Hint: write"):
        tts.batch.transform(frame, tmp_path / "out.parquet")
