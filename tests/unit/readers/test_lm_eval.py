"""Samples of lm-evaluation-harness: made by the tool (data/logs/make_lm_eval.py), and real."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import SkippedRowsWarning, SourceError, SourceWarning

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs"
several_filters = pytest.mark.filterwarnings("ignore:.*has the filters")
TASKS = ("sums", "sums_repeated", "sums_majority")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check(found: pl.DataFrame, rows: list[dict[str, Any]]) -> None:
    expected = [
        (row["doc_id"], attempt, row["filter"], text, row["doc_hash"], row["exact_match"])
        for row in rows
        for attempt, text in enumerate(row["resps"][0])
    ]
    names = ("problem_id", "attempt", "filter", "completion", "doc_hash", "exact_match")
    assert found.select(names).rows() == expected


@several_filters
@pytest.mark.parametrize("task", TASKS)
def test_repeats_are_attempts_and_filters_stay_apart(task: str) -> None:
    path = LOGS / f"lm_eval_{task}.jsonl"
    check(tts.read_trajectories(path), rows_of(path))


def test_a_real_run_equals_a_plain_walk_and_gives_the_metric_that_it_states(
    shared_data: Path,
) -> None:
    folder = shared_data / "lm_eval"
    (path,) = folder.glob("samples_*.jsonl")
    (results,) = folder.glob("results_*.json")
    run = tts.read_trajectories(folder)  # the results beside it are no attempts
    check(run, rows_of(path))
    assert "answer" not in run.columns  # its filter leaves the texts as they are
    stated = json.loads(results.read_text())["results"]["math_perturbed_full"]
    assert run["is_correct"].mean() == stated["exact_match,none"]
    assert run["gold"].to_list() == [row["target"] for row in rows_of(path)]
    assert run["problem"].to_list() == [row["doc"]["problem"] for row in rows_of(path)]


@several_filters
def test_a_metric_of_single_responses_is_the_grade_and_gives_what_the_tool_states() -> None:
    run = tts.read_trajectories(LOGS / "lm_eval_sums.jsonl")
    stated = json.loads((LOGS / "lm_eval_results.json").read_text())["results"]["sums"]
    for name, accuracy in run.group_by("filter").agg(pl.col("is_correct").mean()).iter_rows():
        assert accuracy == pytest.approx(stated[f"exact_match,{name}"])
    assert run["gold"].to_list() == ["2", "4", "6"] * 2
    assert run["answer"].to_list() == ["2", None, None, "2", "4", None]
    scored = tts.score_trajectories(run)  # changes no grade
    assert scored["is_correct"].to_list() == run["is_correct"].to_list()
    assert run["prompt"][0] == "Question: What is 1 + 1?\nAnswer:"


def test_a_metric_of_repeats_is_no_grade_and_answers_are_graded_instead() -> None:
    run = tts.read_trajectories(LOGS / "lm_eval_sums_majority.jsonl")
    assert {"is_correct", "answer"}.isdisjoint(run.columns)
    majority = run.pipe(tts.score_trajectories, style="last_number").pipe(
        tts.select_answers, selectors=["majority_vote"], budgets=[4]
    )
    stated = json.loads((LOGS / "lm_eval_results.json").read_text())["results"]["sums_majority"]
    assert majority["value"].mean() == pytest.approx(stated["exact_match,maj@4"])


@several_filters
def test_a_target_that_is_worked_out_is_the_solution() -> None:
    run = tts.read_trajectories(LOGS / "lm_eval_sums_repeated.jsonl").head(4)
    assert run.select("gold", "solution").unique().rows() == [("2", "1 + 1 = 2\n#### 2")]
    graded = tts.score_trajectories(run.with_columns(completion=pl.lit(r"\boxed{2}")))
    assert graded["is_correct"].to_list() == [True] * 4


def test_filters_in_one_table_are_told_and_are_findings() -> None:
    with pytest.warns(
        SourceWarning, match="has the filters 'strict-match', 'flexible-extract', and each"
    ):
        run = tts.read_trajectories(LOGS / "lm_eval_sums.jsonl")
    traps = tts.READERS["lm_eval"].traps
    found = {each.code: each.count for each in tts.validate_trajectories(run, traps=traps).findings}
    assert found["several_filters"] == 3
    assert found["invalid_responses"] == 3
    apart = tts.validate_trajectories(run, by="filter")
    assert "duplicate_attempts" not in {each.code for each in apart.findings}


def test_choices_are_no_attempts_even_beside_texts(tmp_path: Path) -> None:
    message = r"lm_eval_sums_choice\.jsonl: .* log-likelihoods of choices"
    for name in ("lm_eval_sums_choice", "lm_eval_sums"):
        shutil.copy(LOGS / f"{name}.jsonl", tmp_path)
        with pytest.raises(SourceError, match=message):
            tts.read_trajectories(tmp_path)


def row(**more: object) -> dict[str, Any]:
    return {
        "doc_id": 0,
        "doc": {"question": "?"},
        "target": "1",
        "resps": [["a", "b"]],
        "filtered_resps": ["a"],
        "filter": "none",
        "metrics": ["score"],
        "score": 1.0,
        **more,
    }


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_a_metric_named_score_is_no_score(tmp_path: Path) -> None:
    run = tts.read_trajectories(write(tmp_path / "x.jsonl", row(), row(doc_id=1, score=0.0)))
    assert "score" not in run.columns
    assert run["metric_score"].to_list() == [1.0, 1.0, 0.0, 0.0]


def test_a_filter_of_all_repeats_is_of_the_attempt(tmp_path: Path) -> None:
    run = tts.read_trajectories(write(tmp_path / "x.jsonl", row(filtered_resps=[["A", "B"]])))
    assert run["filtered_response"].to_list() == ["A", "B"]


def test_several_targets_are_no_gold_answer(tmp_path: Path) -> None:
    run = tts.read_trajectories(write(tmp_path / "x.jsonl", row(target=["1", "one"])))
    assert "gold" not in run.columns
    assert run["targets"].to_list() == [["1", "one"]] * 2


@pytest.mark.parametrize("resps", [[], [["a"], ["b"]], None, [[]], [None]])
def test_a_row_without_one_request_is_named_or_skipped(tmp_path: Path, resps: object) -> None:
    path = write(tmp_path / "x.jsonl", row(), row(doc_id=1, resps=resps))
    with pytest.raises(SourceError, match=r"x\.jsonl, line 2: "):
        tts.read_trajectories(path)
    with pytest.warns(SkippedRowsWarning, match="^1 row skipped"):
        assert tts.read_trajectories(path, on_error="skip").height == 2
