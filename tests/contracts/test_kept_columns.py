"""Columns that another tool recorded are kept, unless named in `overwrite`."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from contract_registry import texts

import ttsframe as tts

RECORDED = {
    "answer": pl.Series(["recorded"] * 6),
    "answer_key": pl.Series([f"3:{i}" for i in range(6)]),
    "gold": pl.Series(["recorded gold"] * 6),
    "gold_key": pl.Series(["3:1"] * 6),
    "is_correct": pl.Series([True, False, False, True, False, None]),
    "score": pl.Series([9.0, 8.0, 7.0, None, 5.0, 4.0]),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_column_is_kept(name: str) -> None:
    frame = texts().with_columns(RECORDED[name].alias(name))
    scored = tts.score_trajectories(frame)
    assert scored[name].to_list() == RECORDED[name].to_list()


@pytest.mark.parametrize("names", list(itertools.combinations(RECORDED, 2)))
def test_recorded_columns_are_kept_together(names: tuple[str, str]) -> None:
    frame = texts().with_columns(RECORDED[name].alias(name) for name in names)
    scored = tts.score_trajectories(frame)
    for name in names:
        assert scored[name].to_list() == RECORDED[name].to_list()


@pytest.mark.parametrize("name", ["answer", "answer_key", "gold_key", "is_correct", "score"])
def test_a_recorded_column_is_made_anew_by_name(name: str) -> None:
    expected = tts.score_trajectories(texts())
    frame = texts().with_columns(RECORDED[name].alias(name))
    assert tts.score_trajectories(frame, overwrite=[name]).select(expected.columns).equals(expected)


def test_what_follows_from_an_overwritten_answer_is_made_anew() -> None:
    expected = tts.score_trajectories(texts())
    names = ["answer", "answer_key", "is_correct"]
    frame = texts().with_columns(RECORDED[name].alias(name) for name in names)
    found = tts.score_trajectories(frame, overwrite=["answer"])
    assert found.select(names).equals(expected.select(names))


def test_columns_of_the_caller_pass_through_in_place() -> None:
    frame = texts().with_columns(seed=pl.lit(3), note=pl.lit("x"))
    scored = tts.score_trajectories(frame)
    assert scored.select(frame.columns).equals(frame)
    assert scored.columns[: frame.width] == frame.columns


@pytest.mark.parametrize("foreign", ["answer_key", "gold_key"])
def test_a_key_of_another_tool_is_not_compared_with_ours(foreign: str) -> None:
    frame = texts().with_columns(pl.lit("their key").alias(foreign))
    with pytest.raises(tts.TtsframeError, match="policies, versions or tools"):
        tts.score_trajectories(frame)


def test_keys_of_another_tool_are_compared_with_each_other() -> None:
    keys = pl.Series(["12:30", "4:30", None])
    frame = pl.DataFrame({"answer_key": keys, "gold_key": ["4:30"] * 3})
    assert tts.score_trajectories(frame)["is_correct"].to_list() == [False, True, False]


def test_scoring_twice_changes_nothing() -> None:
    once = tts.score_trajectories(texts())
    assert tts.score_trajectories(once).equals(once)


def test_overwriting_without_a_source_is_refused_at_once() -> None:
    frame = texts().drop("step_scores").with_columns(score=pl.lit(1.0)).lazy()
    with pytest.raises(tts.TtsframeError, match=r"overwriting 'score'.*'step_scores'"):
        tts.score_trajectories(frame, overwrite=["score"])
    with pytest.raises(tts.TtsframeError, match=r"overwrite names \['gone'\], must be among"):
        tts.score_trajectories(frame, overwrite=["gone"])
