"""What trainers dump, on files written by hand from their source.

verl: volcengine/verl at 0040110, verl/trainer/ppo/ray_trainer.py, `RayPPOTrainer._dump_generations`.
TRL: huggingface/trl, trl/trainer/grpo_trainer.py, `GRPOTrainer.log` (the table of `log_completions`).
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, SourceError, SourceWarning

ROWS = [
    {
        "input": f"user\nWhat is {problem}?\nassistant\n",
        "output": f"So \\boxed{{{sample}}}",
        "gts": str(problem),
        "score": 1.0 if sample == problem else 0.1,
        "step": 20,
        "reward": 1.0 if sample == problem else 0.1,
        "acc": sample == problem,
        "pred": str(sample) if sample else "",
    }
    for problem in range(3)
    for sample in range(4)
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path, **options: Any) -> pl.DataFrame:
    with pytest.warns(SourceWarning, match="equal prompts are taken for one problem"):
        return tts.read_trajectories(path, **options)


def skip(path: Path) -> tuple[pl.DataFrame, str]:
    """Read what can be read, and return all that was said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = tts.read_trajectories(path, format="trl", on_error="skip")
    return run, "\n".join(str(one.message) for one in said)


def test_a_dump_of_verl_equals_a_plain_walk(tmp_path: Path) -> None:
    # Copies of a prompt need not stand together.
    rows = ROWS[::2] + ROWS[1::2]
    run = read(write(tmp_path / "20.jsonl", rows))
    seen: Counter[str] = Counter()
    expected = []
    for row in rows:
        expected.append((
            row["input"],
            seen[row["input"]],
            row["output"],
            row["gts"],
            row["pred"] or None,
            row["acc"],
            row["score"],
        ))
        seen[row["input"]] += 1
    names = ("problem", "attempt", "completion", "gold", "answer", "is_correct", "source_score")
    assert run.select(names).rows() == expected
    assert run["problem_id"].n_unique() == 3
    assert "score" not in run.columns


def test_an_id_in_a_column_keeps_problems_with_one_prompt_apart(tmp_path: Path) -> None:
    rows = [{**row, "input": "same", "extra": row["gts"]} for row in ROWS]
    path = write(tmp_path / "20.jsonl", rows)
    assert read(path)["problem_id"].n_unique() == 1
    run = tts.read_trajectories(path, rename={"extra": "problem_id"})
    assert run["problem_id"].n_unique() == 3
    assert run["attempt"].max() == 3


def test_a_reward_alone_is_no_grade_and_other_references_stay(tmp_path: Path) -> None:
    rows = [
        {"input": "p", "output": "x", "gts": {"target": ["a"]}, "score": 1.0, "step": 1, "acc": 0.5}
    ]
    run = read(write(tmp_path / "1.jsonl", rows))
    assert run["is_correct"].to_list() == [None]
    assert "gold" not in run.columns
    assert run["gts"].to_list() == [{"target": ["a"]}]
    del rows[0]["acc"]
    assert "is_correct" not in read(write(tmp_path / "1.jsonl", rows)).columns


def test_numbers_and_nulls_of_references(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "gts": value} for value in (12, None, "x")]
    assert read(write(tmp_path / "1.jsonl", rows))["gold"].to_list() == ["12", None, "x"]


def test_steps_are_files_and_a_file_with_several_is_a_finding(tmp_path: Path) -> None:
    for step in (10, 20):
        write(tmp_path / f"{step}.jsonl", [{**row, "step": step} for row in ROWS])
    run = read(tmp_path)
    assert run.group_by("source_file", "problem_id").agg(pl.len())["len"].to_list() == [4] * 6
    traps = tts.READERS["verl"].traps
    findings = tts.validate_trajectories(run, traps=traps).findings
    assert [each.count for each in findings if each.code == "several_steps"] == [12]
    one = tts.validate_trajectories(run.filter(pl.col("step") == 10), traps=traps).findings
    assert not [each for each in one if each.code == "several_steps"]


def completions(**more: object) -> dict[str, Any]:
    table = {
        "step": [5] * 4,
        "prompt": ["What is 1?", "What is 1?", "What is 2?", "What is 2?"],
        "completion": ["1", "2", "3", "2"],
        "accuracy_reward": [1.0, 0.0, 0.0, 1.0],
        "score": [0.5, 0.25, 0.5, 0.25],
        "solution": ["1", "1", "2", "2"],
        "advantage": [0.7, -0.7, -0.7, 0.7],
    }
    return {**table, **more}


def test_completions_of_trl_equal_their_table(tmp_path: Path) -> None:
    table = completions()
    path = tmp_path / "completions_00005.parquet"
    pl.DataFrame(table).write_parquet(path)
    run = read(path, rename={"solution": "gold"})
    assert run["attempt"].to_list() == [0, 1, 0, 1]
    for theirs, ours in {
        "prompt": "problem",
        "completion": "completion",
        "solution": "gold",
        "score": "source_score",
        "accuracy_reward": "accuracy_reward",
        "advantage": "advantage",
        "step": "step",
    }.items():
        assert run[ours].to_list() == table[theirs], ours
    assert {"score", "is_correct"}.isdisjoint(run.columns)
    assert tts.score_trajectories(run)["is_correct"].to_list() == [True, False, False, True]


def test_conversations_of_trl_are_the_texts_of_their_roles(tmp_path: Path) -> None:
    path = tmp_path / "completions_00005.parquet"
    prompt = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "What is 1?"}]
    turns = [
        {"role": "assistant", "content": "let me see"},
        {"role": "tool", "content": "9"},
        {"role": "assistant", "content": "1"},
    ]
    pl.DataFrame(completions(prompt=[prompt] * 4, completion=[turns] * 4)).write_parquet(path)
    run = read(path)
    assert set(run["problem"]) == {"What is 1?"}
    assert set(run["completion"]) == {"let me see\n\n1"}
    assert run["attempt"].to_list() == [0, 1, 2, 3]


def test_a_prompt_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "completions_00005.parquet"
    pl.DataFrame(completions(prompt=[[1]] * 4)).write_parquet(path)
    with pytest.raises(ColumnsError, match="column 'prompt' is List"):
        tts.scan_trajectories(path, format="trl")


@pytest.mark.parametrize(
    "odd",
    [
        "What is 2?",
        7,
        [],
        [{"role": "user"}],
        [{"role": "user", "content": ["x"]}],
        {"role": "user"},
    ],
)
def test_skipping_keeps_the_conversations_where_one_row_has_another_kind(
    tmp_path: Path, odd: object
) -> None:
    table = completions(prompt=[[{"role": "user", "content": f"What is {i}?"}] for i in (1, 1, 2)])
    rows = [{name: values[i] for name, values in table.items()} for i in range(3)]
    path = write(tmp_path / "completions.jsonl", [*rows, {**rows[0], "prompt": odd}])
    alone = read(write(tmp_path / "alone.jsonl", rows), format="trl")
    run, _ = skip(path)
    kept = run.filter(pl.col("problem").is_in(["What is 1?", "What is 2?"]))
    assert kept.head(3).select(alone.columns).equals(alone)


def test_skipping_keeps_the_texts_where_one_row_has_messages(tmp_path: Path) -> None:
    table = completions()
    rows = [{name: values[i] for name, values in table.items()} for i in range(4)]
    rows[3]["prompt"] = [{"role": "user", "content": "What is 2?"}]
    path = write(tmp_path / "completions.jsonl", rows)
    run, said = skip(path)
    assert "line 4: 'prompt' is a list of messages, but text in other rows" in said
    assert run["completion"].to_list() == ["1", "2", "3"]
    with pytest.raises(SourceError, match="line 4: 'prompt' is a list of messages"):
        read(path, format="trl")
