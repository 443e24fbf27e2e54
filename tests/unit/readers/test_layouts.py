"""A layout that is not known: the error names what would read it, and that works."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ParameterError, SourceError


def message_of(source: Any) -> str:
    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(source)
    return str(caught.value)


def proposed(message: str) -> dict[str, str]:
    """Return the rename that a message proposes."""
    match = re.search(r"Hint: rename=(\{.*?\}) reads it as ", message)
    assert match is not None, message
    rename: dict[str, str] = ast.literal_eval(match[1])
    return rename


@pytest.mark.parametrize(
    ("row", "rename"),
    [
        (
            {"prompt": "1?", "responses": ["2", "3"], "ground_truth": "2"},
            {"responses": "completions", "prompt": "problem", "ground_truth": "answer"},
        ),
        (
            {"question": "1?", "response": "2", "answer": "2"},
            {"response": "completion", "question": "problem", "answer": "gold"},
        ),
        (
            {"id": 4, "output": "2", "correct": True, "rewards": [0.5]},
            {
                "output": "completion",
                "id": "problem_id",
                "correct": "is_correct",
                "rewards": "step_scores",
            },
        ),
        (
            {"problem": "1?", "samples": ["2", "3"], "step_scores": [[0.5], [0.25]]},
            {"samples": "completions", "step_scores": "scores"},
        ),
        ({"problem_id": "a", "generation": "2"}, {"generation": "completion"}),
    ],
)
def test_the_rename_is_proposed_and_works(row: dict[str, Any], rename: dict[str, str]) -> None:
    found = proposed(message_of([row]))

    assert found == rename
    run = tts.read_trajectories([row], rename=found)
    assert run["completion"].to_list()[0] == "2"
    if "ground_truth" in row or "answer" in row:
        assert tts.score_trajectories(run)["is_correct"].to_list()[0] is True


def test_labeled_steps_and_reference_answers_name_their_command(shared_data: Path) -> None:
    steps = message_of(shared_data / "openr" / "samples_prm800k.jsonl")
    assert (
        "labeled steps in format 'prm800k'. Hint: tts.read_steps(...) and 'ttsframe steps'" in steps
    )

    gold = shared_data / "openr" / "test500.jsonl"
    assert f"Hint: gold='{gold}' adds them to a run" in message_of(gold)


def test_what_nothing_can_be_said_about_lists_what_is_expected() -> None:
    message = message_of(pl.DataFrame({"x": [1]}))
    assert f"Known formats: {', '.join(tts.READERS)} (of its own: one of ['problem_id', " in message
    assert "rename={'yours': 'expected'} maps names" in message


def test_a_format_with_a_near_name(tmp_path: Path) -> None:
    frame = pl.DataFrame({"problem_id": ["a"], "completion": ["x"]})
    for wrong, right in {"qwen-math": "qwen_math", "Long_Form": "long_form"}.items():
        with pytest.raises(ParameterError, match=rf"Hint: did you mean '{right}'\?"):
            tts.scan_trajectories(frame, format=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"Hint: did you mean 'prm800k'\?"):
        tts.scan_steps(tmp_path, format="prm800")  # type: ignore[arg-type]


def test_a_file_with_a_near_name(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "bon_completions.jsonl").write_text("{}")
    (tmp_path / "runs" / "beam.jsonl").write_text("{}")
    near = tmp_path / "runs" / "bon_completions.jsonl"

    for name in ("bon_completion.jsonl", "bon-completions.jsonl", "Bon_Completions.JSONL"):
        message = message_of(tmp_path / "runs" / name)
        assert message.endswith(f"no such file or folder. Hint: did you mean {near}?")
    message = message_of(tmp_path / "run" / "beam.jsonl")
    assert message.endswith(f"Hint: did you mean {tmp_path / 'runs'}?")
    message = message_of(tmp_path / "runs" / "vote.jsonl")
    assert message.endswith("holds beam.jsonl, bon_completions.jsonl.")


def test_attempts_read_as_steps_name_their_format_and_command(shared_data: Path) -> None:
    files = {
        "ets/synthetic_20x16.json": "rebase",
        "search_and_learn/synthetic_100x64.parquet": "search_and_learn",
    }
    for name, format_name in files.items():
        with pytest.raises(
            SourceError, match=f"attempts in format '{format_name}'.*ttsframe report"
        ):
            tts.scan_steps(shared_data / name)
