"""Ties go to the answer, or attempt, that came first; the order of a sum never decides a vote."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import polars as pl
import pytest
from contract_frames import one_problem, only
from contract_registry import ENGINES

import ttsframe as tts

BREAKS_TIES_OTHERWISE = {"oracle"}
"""Selectors whose rule picks another of the tied attempts than the earliest."""


@pytest.mark.parametrize(
    "selector", [name for name in tts.SELECTORS if name not in BREAKS_TIES_OTHERWISE]
)
@pytest.mark.parametrize("keys", list(itertools.permutations("abc")))
def test_a_tie_goes_to_the_earliest_attempt(selector: str, keys: tuple[str, ...]) -> None:
    frame = one_problem(keys, is_correct=[False, True, True], scores=[0.5] * 3)
    for seed in range(3):
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=seed)
        row = only(tts.select_answers(shuffled, selectors=selector))
        assert (row["answer_key"], row["attempt"]) == (keys[0], 0)
        assert row["is_correct"] is False


def test_a_tie_in_votes_goes_to_the_answer_whose_first_attempt_is_earliest() -> None:
    frame = one_problem(["a", "b", "c", "b", "c", "a"])
    found = tts.majority_vote(frame, budgets=[1, 2, 3, 4, 5, 6])
    assert found["answer_key"].to_list() == ["a", "a", "a", "b", "b", "a"]


def test_the_oracle_takes_the_earliest_right_attempt() -> None:
    frame = one_problem([None, "a", "b", "c"], is_correct=[False, False, True, True])
    row = only(tts.oracle(frame))
    assert (row["answer_key"], row["attempt"]) == ("b", 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_that_differ_by_rounding_alone_are_a_tie(engine: pl.Engine) -> None:
    # The parts of both totals are the same numbers; in floating point their sums differ by order.
    parts = [0.1, 0.2, 0.3]
    # Not `sum`, which corrects its rounding from Python 3.12 on.
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    for first, second in itertools.product(itertools.permutations(parts), repeat=2):
        keys = ["z", "a", "a", "z", "a", "z"]
        scores = [first[0], second[0], second[1], first[1], second[2], first[2]]
        frame = one_problem(keys, scores=scores).lazy()
        found = only(tts.weighted_vote(frame).collect(engine=engine))
        assert found["answer_key"] == "z", (first, second)


def test_totals_within_the_tolerance_are_a_tie_and_totals_beyond_are_not() -> None:
    # Totals of 1 and 1 + d: the tolerance is 1e-9 of their sum, 2e-9.
    for excess, winner in [(1e-9, "a"), (1.9e-9, "a"), (2.1e-9, "b"), (1e-6, "b")]:
        frame = one_problem(["a", "b"], scores=[1.0, 1.0 + excess])
        assert only(tts.weighted_vote(frame))["answer_key"] == winner, excess


def test_the_tolerance_is_a_share_of_the_sum_of_weights() -> None:
    for scale in (1e-12, 1.0, 1e12):
        near = one_problem(["a", "b"], scores=[scale, scale * (1 + 1e-9)])
        far = one_problem(["a", "b"], scores=[scale, scale * (1 + 3e-9)])
        assert only(tts.weighted_vote(near))["answer_key"] == "a"
        assert only(tts.weighted_vote(far))["answer_key"] == "b"


def test_best_of_n_compares_scores_exactly() -> None:
    # A score is a number that was recorded, not a sum: nothing was rounded on the way.
    frame = one_problem(["a", "b"], scores=[0.5, math.nextafter(0.5, 1.0)])
    assert only(tts.best_of_n(frame))["answer_key"] == "b"


def test_minus_zero_and_zero_are_the_same_score() -> None:
    for scores in ([0.0, -0.0], [-0.0, 0.0]):
        assert only(tts.best_of_n(one_problem(["a", "b"], scores=scores)))["attempt"] == 0


def test_exact_ties_of_random_decimals_are_found_whatever_the_order() -> None:
    draws = random.Random(5)
    for _ in range(100):
        scores = [draws.randint(0, 100) / 100 for _ in range(6)]
        other = draws.sample(scores, 6)
        keys, values = ["a"] * 6 + ["b"] * 6, [*scores, *other]
        order = draws.sample(range(12), 12)
        frame = one_problem([keys[i] for i in order], scores=[values[i] for i in order])
        exact = [sum(Fraction(str(value)) for value in part) for part in (scores, other)]
        assert exact[0] == exact[1]
        assert only(tts.weighted_vote(frame))["attempt"] == 0
