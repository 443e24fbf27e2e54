"""Votes and selectors agree with the plain-Python oracle, whatever the order and the engine."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_oracle import pick, settled

import ttsframe as tts
from ttsframe._typing import Weights

SCORES = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, 0.1, 0.25, 0.5, 1.0, math.nan]),
    st.floats(0, 1, allow_subnormal=False),
)
LOGITS = st.one_of(st.none(), st.floats(-900, 900), st.sampled_from([0.0, 3.5, -3.5, math.nan]))


@st.composite
def runs(draw: st.DrawFn, scores: st.SearchStrategy[float | None]) -> list[dict[str, Any]]:
    """Draw a run: ragged problems, ties, missing answers, scores and grades."""
    rows = []
    is_graded = draw(st.booleans())
    for problem in range(draw(st.integers(1, 4))):
        n_attempts = draw(st.integers(0, 9))
        gold = draw(st.sampled_from([None, "a"]))
        start = draw(st.sampled_from([0, 0, 0, 2]))
        for attempt in range(start, start + n_attempts):
            key = draw(st.sampled_from([None, "a", "b", "a+b", "a+2b+a"]))
            grade = draw(st.sampled_from([True, False, None])) if is_graded else None
            rows.append({
                "problem_id": f"p{problem}",
                "attempt": attempt,
                "answer_key": key,
                "is_correct": grade,
                "score": draw(scores),
                "gold_key": gold,
            })
    return rows


SCHEMA = {
    "problem_id": pl.String,
    "attempt": pl.UInt32,
    "answer_key": pl.String,
    "is_correct": pl.Boolean,
    "score": pl.Float64,
    "gold_key": pl.String,
}
SHOWN = ["attempt", "answer_key", "is_correct", "value", "status", "n_attempts", "n_valid"]


def check(rows: list[dict[str, Any]], budgets: list[int] | None, weights: Weights) -> None:
    """Compare each row of `problems` with the oracle."""
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sample(
        fraction=1.0, shuffle=True, seed=len(rows)
    )
    problems = tts.select_answers(
        frame, selectors=list(tts.SELECTORS), budgets=budgets, weights=weights
    )
    names = sorted({row["problem_id"] for row in rows})
    assert problems.height == len(names) * len(tts.SELECTORS) * len(budgets or [None])
    for row in problems.iter_rows(named=True):
        attempts = [dict(r) for r in rows if r["problem_id"] == row["problem_id"]]
        expected = pick(attempts, row["selector"], row["budget"], weights)
        shown = [*SHOWN, "n_votes"]
        assert {k: row[k] for k in shown} == {k: expected[k] for k in shown}, row
        # Polars divides by a single value by multiplying with its inverse: one rounding more.
        for name in ("agreement", "weight"):
            if expected[name] is None:
                assert row[name] is None, row
            else:
                assert row[name] == pytest.approx(expected[name], rel=1e-12, abs=1e-300), row


@given(
    runs(SCORES),
    st.sampled_from([None, [1], [2, 4], [1, 2, 3, 5, 8, 13], [100]]),
    st.sampled_from(["score", "logit"]),
)
def test_every_selector_agrees_with_the_oracle(
    rows: list[dict[str, Any]], budgets: list[int] | None, weights: Weights
) -> None:
    check(rows, budgets, weights)


@pytest.mark.parametrize("weights", ["score", "sigmoid", "softmax"])
@given(rows=runs(LOGITS))
def test_logits_as_weights_agree_with_the_oracle(
    weights: Weights, rows: list[dict[str, Any]]
) -> None:
    check(rows, [1, 3, 8], weights)


@given(runs(SCORES), st.sampled_from([None, [1, 3], [2, 4, 8]]))
def test_votes_count_what_is_there(rows: list[dict[str, Any]], budgets: list[int] | None) -> None:
    votes = tts.tally_votes(pl.DataFrame(rows, schema=SCHEMA, orient="row"), budgets=budgets)
    for budget in budgets or [None]:
        within = [r for r in rows if budget is None or r["attempt"] < budget]
        expected = Counter((r["problem_id"], r["answer_key"]) for r in within)
        at_budget = votes.filter(pl.col("budget").eq_missing(budget))
        found = {(r["problem_id"], r["answer_key"]): r for r in at_budget.iter_rows(named=True)}
        assert {group: row["n_votes"] for group, row in found.items()} == dict(expected)
        for group, row in found.items():
            members = [r for r in within if (r["problem_id"], r["answer_key"]) == group]
            earliest = min(members, key=lambda r: r["attempt"])
            assert row["first_attempt"] == earliest["attempt"]
            problem = [r for r in rows if r["problem_id"] == group[0]]
            is_gradable = any(r["is_correct"] is not None for r in problem)
            assert row["is_correct"] == settled(earliest, is_gradable=is_gradable)
            scores = [r["score"] for r in members if r["score"] is not None]
            scores = [s for s in scores if not math.isnan(s)]
            assert row["top_score"] == (max(scores) if scores else None)
            if scores:
                assert row["weight"] == pytest.approx(math.fsum(scores), rel=1e-12)
            else:
                assert row["weight"] is None
