"""CSV as attempts: what its texts mean, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, SourceError


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def texts_of(run: pl.DataFrame) -> pl.DataFrame:
    """Write lists as JSON text, which is how a column of CSV can hold them."""
    lists = [json.dumps(scores) for scores in run["step_scores"].to_list()]
    return run.with_columns(step_scores=pl.Series(lists))


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("a.tsv", "\t"), ("a.txt", ";"), ("a", ",")]
)
def test_a_run_comes_back_from_csv(tmp_path: Path, name: str, separator: str) -> None:
    run = tts.simulate_trajectories(20, 4, seed=0, keys=True, texts=True)
    path = tmp_path / name
    texts_of(run).write_csv(path, separator=separator)

    assert_frame_equal(tts.read_trajectories(path).select(run.columns), run)
    assert_frame_equal(
        tts.scan_trajectories(path).collect(engine="streaming"), run, check_column_order=False
    )
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert_frame_equal(tts.read_trajectories(packed).select(run.columns), run)


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfproblem_id,completion\r\n1,x\r\n2,"y\r\nz"\r\n')

    found = tts.read_trajectories(path)

    assert found.select("problem_id", "completion").rows() == [(1, "x"), (2, "y\r\nz")]


def test_ids_and_answers_keep_their_zeros(tmp_path: Path) -> None:
    text = "problem_id,response,pred,level\n007,x,010,01\n7,y,,2\n"

    found = tts.read_trajectories(
        write(tmp_path / "a.csv", text), rename={"response": "completion", "pred": "answer"}
    )

    assert found.select("problem_id", "answer", "level").rows() == [
        ("007", "010", "01"),
        ("7", None, "2"),
    ]


@pytest.mark.parametrize(
    "flags", [("True", "False"), ("true", "false"), ("TRUE", "FALSE"), ("1", "0"), ("1.0", "0.0")]
)
def test_grades_are_flags(tmp_path: Path, flags: tuple[str, str]) -> None:
    text = f"problem_id,completion,is_correct\na,x,{flags[0]}\na,y,{flags[1]}\na,z,\n"

    found = tts.read_trajectories(write(tmp_path / "a.csv", text))

    assert found["is_correct"].to_list() == [True, False, None]


def test_a_row_per_problem_with_lists_as_json(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "answer", "completions", "scores"])
        writer.writerow(["q", "2", '["a", "[b]"]', "[[0.5], [0.25, 1]]"])

    found = tts.read_trajectories(path)

    assert found.select("gold", "completion", "step_scores").rows() == [
        ("2", "a", [0.5]),
        ("2", "[b]", [0.25, 1.0]),
    ]


NUMBERS = st.none() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, width=32)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.text('ab,"\n ;é\t', min_size=1), NUMBERS),
        min_size=1,
        max_size=9,
    )
)
def test_texts_and_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["problem_id", "completion", "score"])
        writer.writerows(rows)

    found = tts.read_trajectories(path)

    expected = [(row[0], row[1], None if row[2] is None else float(row[2])) for row in rows]
    assert found.select("problem_id", "completion", "score").rows() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problem_id,completion\na,x,3,4\n", "cannot be read as CSV"),
        ('problem_id,completion\na,"open\n', "cannot be read as CSV"),
        ("just words\nand more\n", "is neither Parquet, Arrow IPC, JSON nor CSV"),
        ("model,n\na,3\n", r"in no known format; found columns: \['model', 'n'\]"),
        ("completion,completion\nx,y\n", "is neither Parquet, Arrow IPC, JSON nor CSV"),
    ],
)
def test_what_is_no_run(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=rf"a\.csv: {message}"):
        tts.read_trajectories(write(tmp_path / "a.csv", text))


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("problem_id,completion\n1,é\n".encode("latin-1"))
    message = r"a\.csv, line 2, column 'completion': cannot be read as CSV .*must be UTF-8"
    with pytest.raises(SourceError, match=message):
        tts.read_trajectories(path)


def test_lists_that_are_not_json(tmp_path: Path) -> None:
    text = "problem_id,completion,step_scores\na,x,\"['high']\"\n"
    with pytest.raises(ColumnsError, match=r"'step_scores' is String.*in CSV, a list is JSON text"):
        tts.read_trajectories(write(tmp_path / "a.csv", text))


def test_a_folder_of_runs_may_hold_other_csv(tmp_path: Path) -> None:
    write(tmp_path / "metrics.csv", "model,accuracy\na,0.5\n")
    write(tmp_path / "notes.md", "First, second\n")
    write(tmp_path / "run.csv", "problem_id,completion\na,x\n")

    assert tts.read_trajectories(tmp_path)["completion"].to_list() == ["x"]


def test_a_job_reads_csv(tmp_path: Path) -> None:
    run = tts.simulate_trajectories(30, 4, seed=1, keys=True)
    texts_of(run).write_csv(tmp_path / "a.csv")

    done = tts.batch.transform(tmp_path / "a.csv", tmp_path / "out.parquet", rows_per_part=40)

    assert done.n_rows == 120
    found = pl.read_parquet(tmp_path / "out.parquet").select(run.columns)
    assert_frame_equal(found, run, check_row_order=False)
