"""Every real run against a reading of the same file by the standard library, value by value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

import ttsframe as tts

SEARCH_AND_LEARN = [
    "beam16_llama3.2-3b-awq_q100",
    "beam3_llama3.1-8b-awq_q500",
    "best_of_n_switch_roles_big_small_completions",
    "bon1_llama3.2-3b-awq_q500",
    "bon256_q10_own_prompt_only",
    "edge_400steps_qwen2.5-math_q100",
    "edge_empty-text_q10",
    "edge_logit-scores_qwen2.5-math_q500",
    "edge_null-scores_qwen2.5-math_q100",
    "edge_one-completion-many-scores_q100",
]
CANONICAL = {
    "problem_id": pl.String(),
    "attempt": pl.UInt32(),
    "problem": pl.String(),
    "completion": pl.String(),
    "step_scores": pl.List(pl.Float64()),
    "gold": pl.String(),
}


def json_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def assert_rows(frame: pl.DataFrame, expected: list[dict[str, Any]]) -> None:
    """Compare as Python values, so that nothing but equality of each value counts."""
    found = frame.select(list(expected[0])).to_dicts()
    assert len(found) == len(expected)
    for number, (left, right) in enumerate(zip(found, expected, strict=True)):
        assert left == right, f"row {number}"


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("name", SEARCH_AND_LEARN)
def test_search_and_learn_equals_a_plain_reading(
    shared_data: Path, name: str, engine: Literal["in-memory", "streaming"]
) -> None:
    path = shared_data / "search_and_learn" / f"{name}.jsonl"
    source = json_lines(path)

    frame = tts.scan_trajectories(path).collect(engine=engine)

    assert {column: frame.schema[column] for column in CANONICAL} == CANONICAL
    assert_rows(
        frame,
        [
            {
                "problem_id": row["unique_id"],
                "attempt": attempt,
                "problem": row["problem"],
                "completion": completion,
                "step_scores": scores,
                "gold": row["answer"],
                "subject": row["subject"],
                "level": row["level"],
                "unique_id": row["unique_id"],
                "n_tokens": tokens or None,
                **{key: row[key] for key in row if key.startswith("pred")},
            }
            for row in source
            for attempt, (completion, scores, tokens) in enumerate(
                zip(row["completions"], row["scores"], row["completion_tokens"], strict=True)
            )
        ],
    )


@pytest.mark.parametrize("name", SEARCH_AND_LEARN)
def test_search_and_learn_marks_what_a_search_wrote(shared_data: Path, name: str) -> None:
    path = shared_data / "search_and_learn" / f"{name}.jsonl"

    marks = set(tts.read_trajectories(path)["is_exchangeable"].to_list())

    # only the files of these methods hold counts; a tree search leaves zeros
    is_sampled = name.startswith(("bon", "best_of_n"))
    assert marks == ({None} if is_sampled else {False})


def test_search_and_learn_parquet_equals_a_plain_reading(shared_data: Path) -> None:
    path = shared_data / "search_and_learn" / "synthetic_100x64.parquet"
    source = pl.read_parquet(path).to_dicts()

    frame = tts.read_trajectories(path)

    assert frame["problem_id"].n_unique() == 100
    assert "is_exchangeable" not in frame.columns
    assert_rows(
        frame,
        [
            {
                "attempt": attempt,
                "problem": row["problem"],
                "completion": completion,
                "step_scores": scores,
                "gold": row["answer"],
                "kind": row["kind"],
            }
            for row in source
            for attempt, (completion, scores) in enumerate(
                zip(row["completions"], row["scores"], strict=True)
            )
        ],
    )


def test_qwen_math_equals_a_plain_reading(shared_data: Path) -> None:
    path = shared_data / "qwen_math" / "math_cot_50.jsonl"
    source = json_lines(path)

    frame = tts.read_trajectories(path)

    assert frame.schema["problem_id"] == pl.Int64
    assert_rows(
        frame,
        [
            {
                "problem_id": row["idx"],
                "attempt": attempt,
                "problem": row["question"],
                "completion": row["response"][attempt],
                "code": row["code"][attempt],
                "step_scores": row["pred_score"][attempt],
                "answer": row["pred"][attempt] or None,
                "is_correct": row["score"][attempt],
                "gold": row["gt"],
                "source_answer": row["answer"],
                "solution": row["solution"],
                "level": row["level"],
            }
            for row in source
            for attempt in range(len(row["response"]))
        ],
    )


def test_rebase_equals_a_plain_reading(shared_data: Path) -> None:
    path = shared_data / "ets" / "synthetic_20x16.json"
    source = json.loads(path.read_text(encoding="utf-8"))

    frame = tts.read_trajectories(path)

    assert "n_tokens" not in frame.columns
    assert frame["is_exchangeable"].to_list() == [False] * 320
    assert_rows(
        frame,
        [
            {
                "problem_id": row["id"],
                "attempt": attempt,
                "problem": row["question"],
                "completion": candidate["text"],
                "step_scores": candidate["step_scores"],
                "gold": row["ground_truth_answer"],
            }
            for row in source
            for attempt, candidate in enumerate(row["model_answer"])
        ],
    )


def test_compute_optimal_tts_equals_a_plain_reading(shared_data: Path) -> None:
    path = shared_data / "compute_optimal_tts" / "math500_best_of_n_1_1_1.jsonl"
    source = json_lines(path)

    frame = tts.read_trajectories(path)

    assert frame["problem_id"].n_unique() == 500
    assert_rows(
        frame,
        [
            {
                "attempt": row["_record_idx"],
                "problem": row["question"],
                "solution": row["groundtruth"],
                "completion": row["output"][0]["text"],
                "step_scores": row["output"][0]["value"],
                "answer": row["output"][0]["extracted_answer"] or None,
                "n_tokens": row["output"][0]["completion_tokens"],
                "is_correct": row["result"]["majority_vote"] == 1,
                "token_history": row["output"][0]["token_history"],
            }
            for row in source
        ],
    )
    # the accuracies of the two records that the run itself reports
    accuracy = frame.group_by("attempt").agg(pl.col("is_correct").mean()).sort("attempt")
    assert accuracy["is_correct"].round(2).to_list() == [0.51, 0.48]


def test_rows_that_are_no_attempts_are_refused(shared_data: Path) -> None:
    for name in ("openr/test500.jsonl", "gsm8k/example_model_solutions.jsonl"):
        with pytest.raises(
            ValueError, match=r"in no known format; found columns: \['(problem|question)'"
        ):
            tts.scan_trajectories(shared_data / name)


def test_a_folder_of_other_documents_holds_no_attempts(shared_data: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no file of attempts; found: .*game24"):
        tts.scan_trajectories(shared_data / "tree_of_thought")


def test_gold_of_math_500_comes_back_from_a_second_file(shared_data: Path, tmp_path: Path) -> None:
    original = shared_data / "search_and_learn" / "beam3_llama3.1-8b-awq_q500.jsonl"
    rows = json_lines(original)
    without_gold = tmp_path / "run.jsonl"
    without_gold.write_text(
        "\n".join(
            json.dumps({key: row[key] for key in row if key not in {"answer", "solution"}})
            for row in rows
        )
    )
    gold = shared_data / "openr" / "test500.jsonl"

    frame = tts.read_trajectories(without_gold, gold=gold)

    expected = tts.read_trajectories(original).select("problem_id", "attempt", "gold", "solution")
    assert frame.select(expected.columns).equals(expected)


def test_gold_is_found_by_text_where_ids_differ(shared_data: Path) -> None:
    run = shared_data / "compute_optimal_tts" / "math500_best_of_n_1_1_1.jsonl"

    frame = tts.read_trajectories(run, gold=shared_data / "openr" / "test500.jsonl")

    expected = {
        row["problem"].strip(): row["answer"]
        for row in json_lines(shared_data / "openr" / "test500.jsonl")
    }
    assert frame["gold"].to_list() == [
        expected[text.strip()] for text in frame["problem"].to_list()
    ]
