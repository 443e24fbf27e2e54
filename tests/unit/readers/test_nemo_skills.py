"""Outputs of NeMo-Skills: a real run of three seeds, and small files written here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ttsframe as tts


def row(number: int = 0, **more: object) -> dict[str, Any]:
    return {
        "id": f"p{number}",
        "problem": f"What is {number}?",
        "generation": "so 1",
        "expected_answer": "1",
        "predicted_answer": "1",
        **more,
    }


def write(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_a_real_run_equals_a_plain_walk(shared_data: Path) -> None:
    folder = shared_data / "nemo_skills"
    run = tts.read_trajectories(folder)
    expected = [
        (
            one["id"],
            seed,
            seed,
            one["generation"],
            one["predicted_answer"],
            one["expected_answer"],
            one["symbolic_correct"],
        )
        for seed in range(3)
        for one in map(json.loads, (folder / f"output-rs{seed}.jsonl").read_text().splitlines())
    ]
    names = ("problem_id", "attempt", "seed", "completion", "answer", "gold", "is_correct")
    assert run.select(names).rows() == expected
    assert "source_file" not in run.columns
    assert "score" not in run.columns


def test_seeds_are_numbered_in_their_order_and_joined_by_problem(tmp_path: Path) -> None:
    for seed in (10, 2, 0):
        rows = [row(number, generation=f"{seed}") for number in range(3)]
        write(tmp_path / f"output-rs{seed}.jsonl", *(rows if seed else reversed(rows)))
    run = tts.read_trajectories(tmp_path).sort("problem_id", "attempt")
    assert run["completion"].to_list() == ["0", "2", "10"] * 3
    assert run["seed"].to_list() == [0, 2, 10] * 3
    assert run["attempt"].to_list() == [0, 1, 2] * 3


def test_folders_are_runs_of_their_own(tmp_path: Path) -> None:
    for model in ("a", "b"):
        write(tmp_path / model / "output-rs0.jsonl", row())
        write(tmp_path / model / "output-rs1.jsonl", row())
    run = tts.read_trajectories(tmp_path)
    assert [
        (Path(name).name, attempt) for name, attempt in run.select("source_file", "attempt").rows()
    ] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]


def test_without_ids_the_text_of_the_problem_joins(tmp_path: Path) -> None:
    bare = {name: value for name, value in row().items() if name != "id"}
    for seed in range(2):
        write(tmp_path / f"output-rs{seed}.jsonl", bare)
    run = tts.read_trajectories(tmp_path)
    assert run["attempt"].to_list() == [0, 1]
    assert run["problem_id"].n_unique() == 1


def test_a_reward_is_a_score_and_a_judgement_a_grade(tmp_path: Path) -> None:
    judged = [row(0, judgement="Judgement: Yes", reward_model_score=1.5, num_generated_tokens=7)]
    judged += [
        row(1, judgement="Reasoning: yes\nJudgement: No"),
        row(2, judgement=None, predicted_answer=""),
    ]
    run = tts.read_trajectories(write(tmp_path / "output.jsonl", *judged))
    assert run["is_correct"].to_list() == [True, False, None]
    assert run["score"].to_list() == [1.5, None, None]
    assert run["n_tokens"].to_list() == [7, None, None]
    assert run["answer"].to_list() == ["1", "1", None]
    assert "seed" not in run.columns


def test_rules_go_before_a_judge_and_differences_are_findings(tmp_path: Path) -> None:
    rows = [
        row(0, symbolic_correct=False, judgement="Judgement: Yes"),
        row(1, symbolic_correct=True, judgement="Judgement: Yes"),
    ]
    run = tts.read_trajectories(write(tmp_path / "output.jsonl", *rows))
    assert run["is_correct"].to_list() == [False, True]
    findings = tts.validate_trajectories(run, traps=tts.READERS["nemo_skills"].traps).findings
    assert [(each.code, each.count) for each in findings] == [("judgement_differs", 1)]


def test_a_file_of_another_name_is_a_run_of_its_own(tmp_path: Path, shared_data: Path) -> None:
    shutil.copy(shared_data / "nemo_skills" / "output-rs1.jsonl", tmp_path / "mine.jsonl")
    run = tts.read_trajectories(tmp_path / "mine.jsonl")
    assert set(run["attempt"]) == {0}
    assert "seed" not in run.columns


@pytest.mark.parametrize("name", ["problem", "question"])
def test_the_problem_has_one_of_two_names(tmp_path: Path, name: str) -> None:
    renamed = {name if key == "problem" else key: value for key, value in row().items()}
    run = tts.read_trajectories(write(tmp_path / "output.jsonl", renamed))
    assert run["problem"].to_list() == ["What is 0?"]


def test_fields_of_the_data_set_never_take_the_place_of_the_tools(tmp_path: Path) -> None:
    others = {"answer": "the reference", "score": 1.0, "completion": "none", "n_tokens": 7}
    tools = {"reward_model_score": 0.5, "num_generated_tokens": 3}
    rows = [row(number, **tools) for number in range(2)]
    plain = write(tmp_path / "a" / "output.jsonl", *rows)
    copied = write(tmp_path / "b" / "output.jsonl", *({**each, **others} for each in rows))
    expected, run = (tts.read_trajectories(path) for path in (plain, copied))
    assert run.drop(f"source_{name}" for name in others).equals(expected)
    assert run["source_answer"].to_list() == ["the reference"] * 2
