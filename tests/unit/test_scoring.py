from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from contract_registry import texts

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError


def test_columns_are_added_in_the_order_in_which_they_follow() -> None:
    frame = texts().drop("gold").with_columns(solution=pl.lit(r"so \boxed{1/2}"))
    scored = tts.score_trajectories(frame)
    added = ["answer", "answer_key", "gold", "gold_key", "is_correct", "score"]
    assert scored.columns == [*frame.columns, *added]
    assert scored["is_correct"].to_list() == [True, True, False, True, False, False]


@pytest.mark.parametrize("reduction", tts.STEP_REDUCTIONS)
def test_the_score_is_the_reduction_of_the_steps(reduction: Any) -> None:
    scored = tts.score_trajectories(texts(), reduction=reduction)
    expected = texts().select(tts.STEP_REDUCTIONS[reduction]("step_scores"))["step_scores"]
    assert scored["score"].to_list() == expected.to_list()


def test_what_cannot_be_made_is_not_there() -> None:
    scored = tts.score_trajectories(texts().select("problem_id", "attempt", "completion"))
    assert scored.columns[3:] == ["answer", "answer_key"]


@pytest.mark.parametrize("column", ["completion", "answer", "answer_key"])
def test_any_stage_of_an_answer_is_a_start(column: str) -> None:
    frame = pl.DataFrame({"problem_id": ["p"], "attempt": [0], column: [r"\boxed{0.5}"]})
    assert "answer_key" in tts.score_trajectories(frame).columns


def test_without_any_answer_there_is_nothing_to_score() -> None:
    with pytest.raises(ColumnsError, match="1 missing column for trajectories: 'completion'"):
        tts.score_trajectories(texts().drop("completion").lazy())


def test_an_empty_gold_answer_cannot_be_graded() -> None:
    scored = tts.score_trajectories(texts().with_columns(gold=pl.lit(None, pl.String)))
    assert scored["is_correct"].to_list() == [None] * 6


def test_the_style_says_where_answers_stand() -> None:
    frame = pl.DataFrame({"completion": ["The sum is 12.\n#### 7"]})
    found = {
        style: tts.score_trajectories(frame, style=style)["answer"].item()  # type: ignore[arg-type]
        for style in ("hash", "boxed", "last_number")
    }
    assert found == {"hash": "7", "boxed": None, "last_number": "7"}


def test_an_overwritten_gold_answer_regrades_a_recorded_run() -> None:
    frame = pl.DataFrame({
        "answer": ["1", "2"],
        "gold": ["9", "9"],
        "solution": [r"\boxed{1}"] * 2,
        "is_correct": [False, True],
    })
    assert tts.score_trajectories(frame)["is_correct"].to_list() == [False, True]
    renewed = tts.score_trajectories(frame, overwrite=["gold"])
    assert renewed["gold"].to_list() == ["1", "1"]
    assert renewed["is_correct"].to_list() == [True, False]


def test_a_grade_that_would_be_stale_is_an_error() -> None:
    # The answers are read anew, and there is nothing to grade them by.
    frame = texts().drop("gold").with_columns(answer=pl.lit("old"), is_correct=pl.lit(value=True))
    with pytest.raises(ColumnsError, match=r"overwriting 'is_correct': 'gold_key'"):
        tts.score_trajectories(frame, overwrite=["answer"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduction": "median"}, "reduction == 'median', must be one of 'last'"),
        ({"style": "latex"}, "style == 'latex', must be one of 'auto'"),
        ({"overwrite": ["completion"]}, r"overwrite names \['completion'\], must be among"),
    ],
)
def test_an_impossible_option_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        tts.score_trajectories(texts().lazy(), **options)
