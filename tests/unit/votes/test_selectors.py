from __future__ import annotations

import math
from functools import partial
from typing import Any

import polars as pl
import pytest
from contract_frames import one_problem
from contract_registry import run
from polars.testing import assert_frame_equal

import ttsframe as tts


@pytest.mark.parametrize("name", tts.SELECTORS)
def test_a_single_selector_is_its_row_of_the_registry(name: Any) -> None:
    alone = getattr(tts.votes, name)(run(), budgets=[1, 8])
    expected = tts.select_answers(run(), selectors=name, budgets=[1, 8])
    assert_frame_equal(alone, expected, rel_tol=1e-12)
    assert set(alone["selector"]) == {name}


@pytest.mark.parametrize("name", ["weighted_vote", "best_of_n"])
def test_single_selectors_pass_their_options_on(name: Any) -> None:
    frame = run().with_columns(model=pl.lit("m"))
    options: dict[str, Any] = {"budgets": 4, "reductions": ["min", "mean"], "by": "model"}
    if name == "weighted_vote":
        options["weights"] = "softmax"
    alone = getattr(tts.votes, name)(frame, **options)
    expected = tts.select_answers(frame, selectors=name, **options)
    assert_frame_equal(alone, expected, rel_tol=1e-12)
    assert set(alone["reduction"]) == {"min", "mean"}


def test_selectors_come_in_the_order_given_once() -> None:
    found = tts.select_answers(run(), selectors=["oracle", "first_valid", "oracle"], budgets=1)
    assert found["selector"].head(2).to_list() == ["oracle", "first_valid"]
    assert found.height == 2 * run()["problem_id"].n_unique()


def test_the_default_compares_three_selectors() -> None:
    found = tts.select_answers(one_problem(["a", "b"], scores=[0.1, 0.9]))
    assert found.select("selector", "answer_key").rows() == [
        ("majority_vote", "a"),
        ("weighted_vote", "b"),
        ("best_of_n", "b"),
    ]


def test_together_is_what_each_is_alone() -> None:
    pick = partial(tts.select_answers, run(), budgets=[1, 3, 8], reductions=["last", "prod"])
    together = pick(selectors=list(tts.SELECTORS))
    for name in tts.SELECTORS:
        part = together.filter(pl.col("selector") == name)
        assert_frame_equal(part, pick(selectors=name), rel_tol=1e-12)


def test_the_oracle_bounds_every_selector() -> None:
    found = tts.select_answers(run(), selectors=list(tts.SELECTORS), budgets=[1, 2, 4, 8])
    best = found.filter(pl.col("selector") == "oracle").select("problem_id", "budget", best="value")
    compared = found.join(best, on=["problem_id", "budget"]).drop_nulls("value")
    assert compared.height > 100
    assert (compared["value"] <= compared["best"]).all()


def test_agreement_is_the_share_of_the_attempts_that_gave_the_answer() -> None:
    found = tts.majority_vote(one_problem(["a", None, "a", "b"]))
    assert found.select("n_votes", "n_valid", "n_attempts", "agreement").rows() == [(2, 3, 4, 0.5)]


def test_weight_is_the_total_that_won() -> None:
    frame = one_problem(["a", "b", "a"], is_correct=[True] * 3, scores=[0.25, 0.5, 0.5])
    found = tts.select_answers(frame, selectors=list(tts.SELECTORS))
    softmax = 1.0 / (math.exp(0.25) + 2 * math.exp(0.5))
    votes = math.sqrt(2.0), math.sqrt(3.0)  # of the ranks 1 and 2, which two attempts share
    expected = {
        "majority_vote": 2.0,
        "weighted_vote": 0.75,
        "best_of_n": 0.5,
        "borda_vote": 1.0 + sum(votes) / 2,
        "confidence_vote": (math.exp(0.25) + math.exp(0.5)) * softmax,
        "top_fraction_vote": 0.5,
        "majority_of_the_bests": 2 / 3,
        "best_of_majority": 0.5,
        "minimum_bayes_risk": 2.0,
        "first_valid": None,
        "oracle": None,
    }
    for name, weight in found.select("selector", "weight").rows():
        assert weight == (expected[name] if weight is None else pytest.approx(expected[name]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"selectors": "majority"}, "selectors == 'majority', must be one of 'majority_vote'"),
        ({"selectors": []}, "selectors is empty"),
        ({"reductions": "median"}, "reductions == 'median', must be one of 'last'"),
        ({"reductions": []}, "reductions is empty"),
        ({"weights": "exp"}, "weights == 'exp', must be one of 'score', 'sigmoid', 'softmax'"),
        ({"budgets": 0}, "budgets == 0, must be at least 1"),
        ({"by": ["seed", "seed"]}, "by .* names a column twice"),
        ({"by": "seed"}, "1 missing column for trajectories: 'seed'"),
    ],
)
def test_an_impossible_option_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(tts.TtsframeError, match=words):
        tts.select_answers(run().lazy(), **options)


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        ("problem_id", r"rename=\{'yours': 'problem_id'\}"),
        ("attempt", "tts.renumber_attempts"),
        ("answer_key", "tts.score_trajectories"),
        ("score", "tts.score_trajectories"),
    ],
)
def test_a_missing_column_comes_with_the_way_out(column: str, hint: str) -> None:
    with pytest.raises(tts.TtsframeError, match=f"'{column}'; found: .*Hint: .*{hint}"):
        tts.select_answers(run().drop(column).lazy())
