"""Traps that a format declares are counted by `validate`, with examples and a hint."""

from __future__ import annotations

import polars as pl

import ttsframe as tts
from ttsframe._traps import Trap

RUN = pl.DataFrame({
    "problem_id": ["a", "a", "b", "b"],
    "attempt": [0, 1, 0, 1],
    "completion": ["w", "x", "y", "z"],
    "is_correct": [True, False, True, False],
    "filter": ["strict", None, "loose", "loose"],
})
TRAP = Trap("loose", ("filter",), pl.col("filter") == "loose", "are loose", "Be strict.")


def test_a_trap_is_a_finding_with_examples() -> None:
    (finding,) = tts.validate_trajectories(RUN, traps=[TRAP]).findings
    assert (finding.code, finding.severity, finding.column) == ("loose", "warning", "filter")
    assert finding.message == "2 of 4 attempts are loose"
    assert finding.examples == (
        {"problem_id": "b", "attempt": 0, "filter": "loose"},
        {"problem_id": "b", "attempt": 1, "filter": "loose"},
    )
    assert finding.hint == "Be strict."


def test_a_trap_may_be_an_error_and_is_collected_lazily() -> None:
    report = tts.validate_trajectories(RUN.lazy(), traps=[TRAP._replace(severity="error")])
    assert not report.is_valid


def test_a_trap_whose_columns_are_not_there_or_catch_nothing_says_nothing() -> None:
    run = RUN.with_columns(filter=pl.lit("strict"))
    assert not tts.validate_trajectories(run, traps=[TRAP]).findings
    assert not tts.validate_trajectories(RUN.drop("filter"), traps=[TRAP]).findings
