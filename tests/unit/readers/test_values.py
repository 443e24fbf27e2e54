"""Numbers that a tool wrote as something else are messages with file and line, never other numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import SkippedRowsWarning, SourceError

Read = Callable[..., pl.DataFrame]


def refused(path: Path, lines: list[str], reason: str, read: Read = tts.read_trajectories) -> Any:
    """Check that line 2 is named; return what is read without it."""
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(SourceError, match=rf"run\.jsonl, line 2: {reason}"):
        read(path)
    with pytest.warns(SkippedRowsWarning, match=r"1 row skipped: .*line 2"):
        return read(path, on_error="skip")


def line(row: dict[str, object], **raw: str) -> str:
    """Write a row, with some values as they are written."""
    rest = "".join(f", {json.dumps(name)}: {text}" for name, text in raw.items())
    return json.dumps(row)[:-1] + rest + "}"


@pytest.mark.parametrize(
    "written",
    [
        *("[3.7, 4]", "[true, 4]", '["x", 4]', "[NaN, 4]", "[1e400, 4]", "[1e30, 4]", "[[3], [4]]"),
        *("3.7", "true", '"x"', "NaN", "1e400", '{"a": 1}'),
    ],
)
def test_token_counts_of_search_and_learn(tmp_path: Path, written: str) -> None:
    rows = [{"problem": str(i), "answer": "1", "completions": ["a", "b"]} for i in range(3)]
    lines = [
        line(row, completion_tokens=text)
        for row, text in zip(rows, ["[5, 6]", written, "[7.0, null]"], strict=True)
    ]
    run = refused(tmp_path / "run.jsonl", lines, "completion_tokens is .*, must be whole numbers")
    assert run["n_tokens"].to_list() == [5, 6, 7, None]


@pytest.mark.parametrize(
    "written",
    [
        *("3", '"x"', "[1]", "true"),
        *(f'{{"majority_vote": {vote}}}' for vote in ("true", '"x"', "NaN", "1e400", "[1]")),
    ],
)
def test_results_of_compute_optimal_tts(tmp_path: Path, written: str) -> None:
    output = [{"text": "a", "value": [0.5], "completion_tokens": 3}]
    rows = [{"question": str(i), "groundtruth": "1", "output": output} for i in range(4)]
    votes = ['{"majority_vote": 1}', written, '{"majority_vote": 0}', "null"]
    lines = [line(row, result=text) for row, text in zip(rows, votes, strict=True)]
    run = refused(tmp_path / "run.jsonl", lines, r"result(\.majority_vote)? is .*, must be ")
    assert run["is_correct"].to_list() == [True, False, None]


@pytest.mark.parametrize("written", ["3.7", "true", '"x"', "NaN", "1e400", "-2"])
def test_numbers_of_steps(tmp_path: Path, written: str) -> None:
    row = {"problem_id": "p", "solution_id": "s", "text": "a"}
    lines = [line(row, step=text) for text in ("0", written, "1")]
    steps = refused(tmp_path / "run.jsonl", lines, "step is .*, must be a whole", tts.read_steps)
    assert steps["step"].to_list() == [0, 1]


@pytest.mark.parametrize("value", ["-0.1", "1.5", "NaN"])
def test_shares_outside_0_and_1(tmp_path: Path, value: str) -> None:
    row = {"problem_id": "p", "solution_id": "s", "text": "a"}
    lines = [line({**row, "step": i}, soft=text) for i, text in enumerate(["0", value, "1"])]
    steps = refused(tmp_path / "run.jsonl", lines, "soft is .*, must be a share", tts.read_steps)
    assert steps["soft"].to_list() == [0.0, 1.0]
    question = {"question": "q?", "final_answer": "1"}
    entry = '[{{"solution_prefix": "q? 1", "mc_value": {}}}]'
    tree = '{{"text": "q?", "children": [{{"text": " 1", "mc_value": {}}}]}}'
    for shape in (entry, tree):
        lines = [line(question, reasoning_steps=shape.format(text)) for text in ("0.5", value)]
        steps = refused(tmp_path / "run.jsonl", lines, ".*mc_value.* from 0 to 1", tts.read_steps)
        assert steps["soft"].drop_nulls().to_list() == [0.5]
