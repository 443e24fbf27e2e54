"""Details of lighteval, made by its own classes (data/logs/make_lighteval.py)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, SourceError

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs"
SUMS, NAMES = LOGS / "lighteval_sums.parquet", LOGS / "lighteval_names.parquet"


def test_texts_are_attempts_with_their_tokens() -> None:
    run = tts.read_trajectories(SUMS)
    documents = pl.read_parquet(SUMS).to_dicts()
    expected = [
        (
            document["doc"]["id"],
            attempt,
            document["doc"]["query"],
            text,
            len(document["model_response"]["output_tokens"][attempt]),
            len(document["model_response"]["input_tokens"]),
        )
        for document in documents
        for attempt, text in enumerate(document["model_response"]["text"])
    ]
    names = ("problem_id", "attempt", "problem", "completion", "n_tokens", "n_prompt_tokens")
    assert run.select(names).rows() == expected
    assert run["reasoning"].to_list() == ["hm", None, None, None]
    assert set(run["task"]) == {"sums|0"}


def test_the_gold_choice_is_the_gold_answer_or_the_solution() -> None:
    run = tts.read_trajectories(SUMS)
    assert run["gold"].to_list() == ["2", "2", "4", "4"]
    assert run["solution"].to_list() == [r"1 + 1 = \boxed{2}"] * 2 + [None] * 2
    several = tts.read_trajectories(NAMES)
    assert several["gold"].to_list() == [None, "four"]
    assert several["targets"].to_list() == [["red", "blue"], None]


def test_metrics_of_a_document_are_no_grades() -> None:
    run = tts.read_trajectories(SUMS)
    assert {"is_correct", "score"}.isdisjoint(run.columns)
    assert run["metric_pass@k:k=1"].to_list() == [0.5, 0.5, 0.0, 0.0]
    graded = run.pipe(tts.score_trajectories, style="last_number")
    assert graded["is_correct"].to_list() == [True, False, False, True]


def test_tasks_of_log_likelihoods_have_no_attempts(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    details = pl.read_parquet(SUMS)
    empty = pl.struct(pl.lit([], pl.List(pl.Null)).alias("text"))
    details.with_columns(model_response=empty).write_parquet(path)
    with pytest.raises(ColumnsError, match="log-likelihoods have no attempts"):
        tts.read_trajectories(path)
    none = pl.struct(pl.lit([], pl.List(pl.String)).alias("text"))
    details.with_columns(model_response=none).write_parquet(path)
    with pytest.raises(SourceError, match=r"x\.parquet, row [12]: problem '[01]' has no attempt"):
        tts.read_trajectories(path)
