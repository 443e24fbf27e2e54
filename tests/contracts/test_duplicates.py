"""Duplicated completions vote, are counted, and are dropped only by name."""

from __future__ import annotations

import polars as pl
from contract_frames import one_problem, only
from contract_registry import texts

import ttsframe as tts


def padded() -> pl.DataFrame:
    """Return what beam search writes when too few beams were finished: copies."""
    return one_problem(
        ["a", "b", "b", "c", "b"], is_correct=[True, False, False, False, False]
    ).with_columns(completion=pl.Series(["so a", "so b", "so b", "so c", "so b"]))


def test_copies_vote_like_any_other_attempt() -> None:
    row = only(tts.majority_vote(padded()))
    assert (row["answer_key"], row["n_votes"], row["n_attempts"]) == ("b", 3, 5)


def test_copies_are_dropped_by_name_alone() -> None:
    dropped = tts.drop_duplicate_completions(padded())
    assert dropped["attempt"].to_list() == [0, 1, 3]
    row = only(tts.majority_vote(tts.renumber_attempts(dropped), budgets=3))
    assert (row["answer_key"], row["n_votes"], row["n_attempts"]) == ("a", 1, 3)


def test_copies_are_counted_by_a_validation() -> None:
    report = tts.validate_trajectories(padded())
    counts = [finding.count for finding in report.findings if "completion" in finding.code]
    assert counts == [2]


def test_scoring_keeps_copies() -> None:
    assert tts.score_trajectories(texts()).height == texts().height
