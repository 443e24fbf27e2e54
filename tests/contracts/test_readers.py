"""Every reader gives the same table of attempts, lazily, in columns of one meaning and dtype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import SourceError
from ttsframe.schema import TRAJECTORY_COLUMNS

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "search_and_learn": [
        {
            "unique_id": f"test/{i}.json",
            "problem": f"What is {i}?",
            "solution": rf"\boxed{{{i}}}",
            "answer": str(i),
            "completions": [rf"So \boxed{{{i}}}", "no"],
            "scores": [[0.5, 0.75], [0.25]],
        }
        for i in range(4)
    ],
    "qwen_math": [
        {
            "idx": i,
            "question": f"What is {i}?",
            "gt_cot": "",
            "gt": str(i),
            "code": [rf"So \boxed{{{i}}}", "no"],
            "pred": [str(i), ""],
            "score": [True, False],
            "pred_score": [[0.5, 1.5], [-2.0]],
        }
        for i in range(4)
    ],
    "long_form": [
        {
            "problem_id": f"p{i}",
            "attempt": attempt,
            "completion": rf"So \boxed{{{attempt}}}",
            "gold": "1",
            "step_scores": [0.5, 0.25],
        }
        for i in range(4)
        for attempt in range(2)
    ],
}


def write(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", tts.READERS)
def test_every_registered_format_says_what_it_is(name: str) -> None:
    reader = tts.READERS[name]  # type: ignore[index]
    assert reader.summary
    assert reader.expects
    assert reader.unit
    renamed = {ours for ours in reader.columns.values() if not ours.startswith("source_")}
    assert renamed <= {*TRAJECTORY_COLUMNS, "model", "seed"}
    if reader.scores is not None:
        assert reader.scores.column in {"score", "step_scores"}
    codes = [trap.code for trap in reader.traps]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("name", tts.READERS)
def test_traps_can_be_checked_on_any_table(name: str) -> None:
    traps = tts.READERS[name].traps  # type: ignore[index]
    for trap in traps:
        assert set(trap.is_caught.meta.root_names()) <= set(trap.columns), trap.code
        assert trap.clause, trap.code
        assert trap.hint.endswith("."), trap.code
    run = pl.DataFrame({"problem_id": ["a"], "attempt": [0], "completion": ["x"], "gold": "1"})
    assert tts.validate_trajectories(run, traps=traps).is_valid


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_recognised_by_its_content(name: str, tmp_path: Path) -> None:
    path = write(SAMPLES[name], tmp_path / "any.name")
    found = tts.read_trajectories(path)
    assert_frame_equal(found, tts.read_trajectories(path, format=name))  # type: ignore[arg-type]
    assert found.height == 8
    for other in set(tts.READERS) - {name, "long_form"}:
        assert not tts.READERS[other].recognizes(set(SAMPLES[name][0])), other


@pytest.mark.parametrize("name", SAMPLES)
def test_columns_have_the_dtypes_of_the_design(name: str, tmp_path: Path) -> None:
    plan = tts.scan_trajectories(write(SAMPLES[name], tmp_path / "run.jsonl"))
    assert type(plan) is pl.LazyFrame
    found = plan.collect()
    assert found.schema == plan.collect_schema()
    assert found.columns[:2] == ["problem_id", "attempt"]
    for column, dtype in found.schema.items():
        if column in TRAJECTORY_COLUMNS and column != "problem_id":
            assert dtype == TRAJECTORY_COLUMNS[column].dtype, column
    assert found.schema["problem_id"] == pl.String or found.schema["problem_id"].is_integer()
    numbers = found.group_by("problem_id").agg(pl.col("attempt").sort())["attempt"]
    assert numbers.to_list() == [[0, 1]] * 4


@pytest.mark.parametrize("name", SAMPLES)
def test_a_reading_goes_through_the_whole_analysis(name: str, tmp_path: Path) -> None:
    run = tts.scan_trajectories(write(SAMPLES[name], tmp_path / "run.jsonl"))
    problems = run.pipe(tts.score_trajectories).pipe(
        tts.select_answers, selectors=["majority_vote", "oracle"], budgets=[1, 2]
    )
    for engine in ("in-memory", "streaming"):
        curve = tts.scaling_curve(problems).collect(engine=engine)  # type: ignore[call-overload]
        assert curve.height == 4
        assert set(curve["n_problems"]) == {4}


@pytest.mark.parametrize("n_parts", [2, 4])
@pytest.mark.parametrize("name", SAMPLES)
def test_files_that_split_a_run_are_read_together_and_never_joined(
    name: str, n_parts: int, tmp_path: Path
) -> None:
    rows = SAMPLES[name]
    whole = tts.read_trajectories(write(rows, tmp_path / "whole.jsonl"))
    folder = tmp_path / "parts"
    folder.mkdir()
    size = len(rows) // n_parts
    for part in range(n_parts):
        write(rows[part * size : (part + 1) * size], folder / f"part-{part}.jsonl")
    together = tts.read_trajectories(folder)
    assert together["source_file"].n_unique() == n_parts
    assert_frame_equal(together.drop("source_file"), whole, check_row_order=False)


def test_nothing_is_read_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        tts.scan_trajectories(tmp_path / "gone.jsonl")
