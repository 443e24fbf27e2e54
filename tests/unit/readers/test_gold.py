"""Gold answers from a second file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterTypeError, SourceError

RUN = [
    {"problem": "1 + 1?", "unique_id": "a", "completions": ["2", "3"]},
    {"problem": "2 + 2?", "unique_id": "b", "completions": ["4"]},
]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path, "run.jsonl", RUN)


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "jsonl": pl.DataFrame.write_ndjson,
    "json": pl.DataFrame.write_json,
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "csv": pl.DataFrame.write_csv,
}


@pytest.mark.parametrize("container", WRITERS)
@pytest.mark.parametrize("column", ["gold", "answer", "gt", "ground_truth"])
@pytest.mark.parametrize("key", ["unique_id", "problem_id", "id", "problem", "question"])
def test_gold_of_every_container_name_and_key(
    tmp_path: Path, run: Path, container: str, column: str, key: str
) -> None:
    values = ["b", "a"] if key.endswith("id") else ["2 + 2?", "1 + 1? "]
    path = tmp_path / f"gold.{container}"
    WRITERS[container](pl.DataFrame({key: values, column: ["4", "2"]}), path)

    frame = tts.read_trajectories(run, gold=path)

    assert frame.select("problem_id", "attempt", "gold").rows() == [
        ("a", 0, "2"),
        ("a", 1, "2"),
        ("b", 0, "4"),
    ]


def test_gold_is_lazy_after_the_call(run: Path, tmp_path: Path) -> None:
    gold = write(tmp_path, "gold.jsonl", [{"id": "a", "gold": "2"}, {"id": "b", "gold": "4"}])

    scan = tts.scan_trajectories(run, gold=gold)

    for engine in ("in-memory", "streaming"):
        assert scan.select("gold").collect(engine=engine)["gold"].to_list() == ["2", "2", "4"]


def test_ids_go_before_texts(run: Path, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "problem": "2 + 2?", "gold": "by id"},
        {"id": "z", "problem": "1 + 1?", "gold": "by text"},
    ]

    frame = tts.read_trajectories(run, gold=write(tmp_path, "gold.jsonl", rows))

    assert frame["gold"].to_list() == ["by id"] * 3


def test_numbers_are_ids_and_answers_as_well(tmp_path: Path) -> None:
    rows = [{"problem_id": 7, "attempt": 0}, {"problem_id": 8, "attempt": 0}]
    run = write(tmp_path, "run.jsonl", rows)
    gold = write(tmp_path, "gold.jsonl", [{"idx": 8, "answer": 2}, {"idx": 7, "answer": 1}])

    frame = tts.read_trajectories(run, gold=gold)

    assert frame.select("problem_id", "gold").rows() == [(7, "1"), (8, "2")]


def test_texts_find_problems_that_were_saved_without_them(tmp_path: Path) -> None:
    run = write(tmp_path, "run.jsonl", [{"problem": "1 + 1?", "completion": "2"}])
    narrow = tmp_path / "narrow.parquet"
    tts.read_trajectories(run).drop("problem").write_parquet(narrow)
    gold = write(tmp_path, "gold.jsonl", [{"id": "x", "problem": "1 + 1?", "answer": "2"}])

    assert tts.read_trajectories(narrow, gold=gold)["gold"].to_list() == ["2"]


def test_one_id_for_two_texts_gets_the_answer_of_each(tmp_path: Path) -> None:
    runs = [
        write(tmp_path, "one.jsonl", [{"problem_id": 0, "problem": "1 + 1?", "completion": "2"}]),
        write(tmp_path, "two.jsonl", [{"problem_id": 0, "problem": "2 + 2?", "completion": "4"}]),
    ]
    rows = [{"question": "2 + 2?", "gold": "4"}, {"question": "1 + 1?", "gold": "2"}]

    frame = tts.read_trajectories(runs, gold=write(tmp_path, "gold.jsonl", rows))

    assert frame["gold"].to_list() == ["2", "4"]


def test_solutions_come_with_it(run: Path, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "gold": "2", "solution": "count"},
        {"id": "b", "gold": "4", "solution": None},
    ]

    frame = tts.read_trajectories(run, gold=write(tmp_path, "gold.jsonl", rows))

    assert frame["solution"].to_list() == ["count", "count", None]


def test_gold_that_is_there_is_filled_up_and_never_replaced(tmp_path: Path) -> None:
    run = write(tmp_path, "run.jsonl", [{**RUN[0], "answer": "2"}, {**RUN[1], "answer": None}])
    rows = [{"id": "a", "gold": "2"}, {"id": "b", "gold": "4"}]
    agreeing = write(tmp_path, "gold.jsonl", rows)

    assert tts.read_trajectories(run, gold=agreeing)["gold"].to_list() == ["2", "2", "4"]

    other = write(tmp_path, "other.jsonl", [{**rows[0], "gold": "two"}, rows[1]])
    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(run, gold=other)
    assert str(caught.value).startswith(
        f"{other}: contradicts the gold answers of the attempts for 1 problems, for example 'a': '2' in "
        f"the attempts, 'two' here. Hint: keep the existing answers under another name with rename="
    )
    frame = tts.read_trajectories(run, gold=other, rename={"answer": "source_gold"})
    assert frame.select("gold", "source_gold").rows() == [("two", "2")] * 2 + [("4", None)]


def test_problems_without_gold_are_counted(run: Path, tmp_path: Path) -> None:
    gold = write(tmp_path, "gold.jsonl", [{"id": "b", "gold": "4"}, {"id": "a", "gold": None}])

    with pytest.warns(
        tts.errors.UnmatchedGoldWarning,
        match=r"gold\.jsonl: no gold answer for 1 of 2 problems, which cannot be graded: 'a'\.",
    ):
        frame = tts.read_trajectories(run, gold=gold)

    assert frame["gold"].to_list() == [None, None, "4"]


def test_a_file_that_fits_nothing(run: Path, tmp_path: Path) -> None:
    gold = write(tmp_path, "gold.jsonl", [{"id": "test/1", "gold": "4"}])

    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(run, gold=gold)

    assert str(caught.value).startswith(
        f"{gold}: matches no problem; found for example problem_id 'test/1', expected for example 'a'. Hint: both"
    )


def test_two_answers_for_one_problem(run: Path, tmp_path: Path) -> None:
    rows = [{"id": "a", "gold": "2"}, {"id": "a", "gold": "3"}, {"id": "b", "gold": "4"}]

    with pytest.raises(
        SourceError, match=r"several gold answers for each of 1 problems, .* 'a': \['2', '3'\]"
    ):
        tts.scan_trajectories(run, gold=write(tmp_path, "gold.jsonl", rows))

    agreeing = write(tmp_path, "gold.jsonl", [rows[0], rows[0], rows[2]])
    assert tts.read_trajectories(run, gold=agreeing)["gold"].to_list() == ["2", "2", "4"]


def test_files_that_cannot_be_gold(run: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ColumnsError, match=r"gold\.jsonl: no column of gold answers; found: \['id'"
    ):
        tts.scan_trajectories(run, gold=write(tmp_path, "gold.jsonl", [{"id": "a", "x": 1}]))
    with pytest.raises(
        ColumnsError, match=r"no column that identifies problems; found: \['gold'\]"
    ):
        tts.scan_trajectories(run, gold=write(tmp_path, "gold.jsonl", [{"gold": "4"}]))
    with pytest.raises(
        SourceError, match=r"nowhere\.txt: no such file\. Hint: .* holds gold\.jsonl, "
    ):
        tts.scan_trajectories(run, gold=tmp_path / "nowhere.txt")
    with pytest.raises(SourceError, match=r"golf\.jsonl: no such file\. Hint: did you mean .*gold"):
        tts.scan_trajectories(run, gold=tmp_path / "golf.jsonl")
    with pytest.raises(SourceError, match="is a folder, gold must be a file"):
        tts.scan_trajectories(run, gold=tmp_path)
    with pytest.raises(ParameterTypeError, match=r"gold must be a file, a URL, a frame, .*got int"):
        tts.scan_trajectories(run, gold=3)  # type: ignore[arg-type]
    with pytest.raises(ColumnsError, match=r"polars DataFrame: no column of gold answers"):
        tts.scan_trajectories(run, gold=pl.DataFrame({"id": ["a"]}))
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": "a", "gold": "2"}\n{"id": ')
    with pytest.raises(SourceError, match=r"broken\.jsonl, line 2: is cut off"):
        tts.scan_trajectories(run, gold=broken)
