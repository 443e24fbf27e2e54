"""Selectors with parameters of their own: against enumeration, numpy, and the plain oracle."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from contract_frames import one_problem, only
from selection_oracle import pick

import ttsframe as tts
from ttsframe.votes.engine import risk as _risk_picks

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("borda_vote", {"power": 0.0}),
    ("borda_vote", {"power": 2.5}),
    ("confidence_vote", {"temperature": 0.05}),
    ("confidence_vote", {"temperature": 30.0}),
    ("top_fraction_vote", {"fraction": 0.3}),
    ("top_fraction_vote", {"fraction": 0.5, "weights": "softmax"}),
    ("top_fraction_vote", {"fraction": 0.9, "weights": "sigmoid"}),
    ("top_fraction_vote", {"fraction": 1.0}),
    ("weighted_vote", {"weights": "logit"}),
    ("majority_of_the_bests", {"subset_size": 1}),
    ("majority_of_the_bests", {"subset_size": 3}),
    ("majority_of_the_bests", {"subset_size": 200}),
    ("best_of_majority", {"least_share": 0.0}),
    ("best_of_majority", {"least_share": 0.25}),
    ("best_of_majority", {"least_share": 1.0}),
    ("minimum_bayes_risk", {"utility": "equality"}),
    ("minimum_bayes_risk", {"utility": "token_f1"}),
]
TEXTS = ["x + 1", "x+1+1", r"\frac{1}{2}", r"\frac{1}{3}", "1 2", "yes", "yes or no", "3.5"]


def random_run(seed: int, n_problems: int = 30) -> pl.DataFrame:
    """Return ragged problems with tied scores and gaps in answers, scores and grades."""
    draws = random.Random(seed)
    return pl.DataFrame(
        [
            {
                "problem_id": problem,
                "attempt": attempt,
                "answer_key": draws.choice([None, *TEXTS]),
                "is_correct": draws.choice([True, False, None]),
                "score": draws.choice([None, draws.random(), draws.randint(0, 4) / 4]),
            }
            for problem in range(n_problems)
            for attempt in range(draws.randint(1, 40))
        ],
        schema_overrides={"attempt": pl.UInt32},
    )


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_parameters_agree_with_the_oracle(name: str, options: dict[str, Any]) -> None:
    frame = random_run(7)
    problems = frame.partition_by("problem_id", as_dict=True, include_key=False)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    found = getattr(tts.votes, name)(shuffled, budgets=[1, 3, 8, 20], **options)
    assert set(found["selector"]) == {name}
    for row in found.iter_rows(named=True):
        attempts = problems[row["problem_id"],].to_dicts()
        expected = pick(attempts, name, row["budget"], **options)
        shown = {key: row[key] for key in ("attempt", "answer_key", "status", "n_votes", "value")}
        assert shown == {key: expected[key] for key in shown}, row
        if expected["weight"] is None:
            assert row["weight"] is None
        else:
            assert row["weight"] == pytest.approx(expected["weight"], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_majority_of_the_bests_is_that_of_all_resamples(size: int) -> None:
    keys, scores = ["a", "b", None, "b", "c"], [0.9, 0.4, 0.7, 0.7, 0.1]
    wins: Counter[str | None] = Counter()
    for drawn in itertools.product(range(5), repeat=size):
        top = max(scores[i] for i in drawn)
        # Of the tied attempts that could have been drawn in each other's place, any is the best.
        tied = [i for i in range(5) if scores[i] == top]
        for i in tied:
            wins[keys[i]] += 1 / len(tied)
    row = only(tts.majority_of_the_bests(one_problem(keys, scores=scores), subset_size=size))
    best = max((key for key in wins if key is not None), key=lambda key: wins[key])
    assert row["answer_key"] == best
    assert row["weight"] == pytest.approx(wins[best] / 5**size, rel=1e-12)


def test_a_few_are_the_root_of_the_scored_attempts() -> None:
    scores = [*(i / 10 for i in range(9)), None]
    frame = one_problem(["a", "b"] * 5, scores=scores)
    found = tts.majority_of_the_bests(frame)
    assert found.equals(tts.majority_of_the_bests(frame, subset_size=3))
    assert not found.equals(tts.majority_of_the_bests(frame, subset_size=2))


@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_the_top_fraction_is_that_of_numpys_percentile(fraction: float) -> None:
    draws = np.random.default_rng(3)
    for n in range(1, 60):
        scores = draws.permutation(n) + 1.0
        kept = scores[scores >= np.percentile(scores, (1 - fraction) * 100) - 1e-9]
        row = only(tts.top_fraction_vote(one_problem(["a"] * n, scores=scores), fraction=fraction))
        assert row["weight"] == kept.sum(), n


def test_equal_scores_are_kept_together() -> None:
    frame = one_problem(["a", "b", "b", "c"], scores=[0.5, 0.5, 0.5, 0.1])
    row = only(tts.top_fraction_vote(frame, fraction=0.1))
    assert (row["answer_key"], row["attempt"], row["weight"]) == ("b", 1, 1.0)


def test_the_earliest_attempt_that_was_kept_stands_for_the_answer() -> None:
    frame = one_problem(["a", "b", "a"], is_correct=[False, False, True], scores=[0.1, 0.2, 0.9])
    row = only(tts.top_fraction_vote(frame))
    assert (row["answer_key"], row["attempt"], row["is_correct"]) == ("a", 2, True)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 3.0])
def test_equal_scores_share_the_mean_of_their_borda_votes(power: float) -> None:
    votes = [(place + 1) ** power for place in range(4)]
    for keys in (["a", "b", "c", "d"], ["d", "c", "b", "a"]):
        row = only(tts.borda_vote(one_problem(keys, scores=[0.5] * 4), power=power))
        assert row["answer_key"] == keys[0]
        assert row["weight"] == pytest.approx(statistics.fmean(votes), rel=1e-12)


def test_borda_votes_do_not_depend_on_the_scale_of_the_scores() -> None:
    frame = random_run(3)
    expected = tts.borda_vote(frame, budgets=[2, 9])
    for rescaled in (pl.col("score").log(), pl.col("score") * 1e300 - 7, pl.col("score").exp()):
        assert tts.borda_vote(frame.with_columns(score=rescaled), budgets=[2, 9]).equals(expected)


def test_a_ranked_infinity_is_a_score_like_any_other() -> None:
    frame = one_problem(["a", "b"], is_correct=[False, True], scores=[-math.inf, math.inf])
    for selector in ("borda_vote", "majority_of_the_bests"):
        row = only(tts.select_answers(frame, selectors=selector))
        assert row["status"] == "ok"
    assert only(tts.borda_vote(frame))["answer_key"] == "b"


@pytest.mark.parametrize("score", [math.inf, -math.inf])
def test_there_is_no_softmax_of_an_infinity(score: float) -> None:
    frame = one_problem(["a", "b", "b"], is_correct=[True] * 3, scores=[0.5, 1.0, score])
    found = tts.confidence_vote(frame, budgets=[2, 3])
    assert found["status"].to_list() == ["ok", "undefined"]
    assert found["answer_key"].to_list() == ["b", None]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_confidence_has_a_scale_and_no_origin(scale: float) -> None:
    scores = [3.0 * scale, 1.0 * scale, 2.0 * scale]
    row = only(tts.confidence_vote(one_problem(["a", "b", "b"], scores=scores), temperature=scale))
    expected = 1 / (1 + math.exp(-2) + math.exp(-1))
    assert (row["answer_key"], row["weight"]) == ("a", pytest.approx(expected, rel=1e-12))


def test_at_temperature_one_confidence_is_the_softmax_vote() -> None:
    frame = random_run(5)
    alike = tts.weighted_vote(frame, budgets=[1, 4, 16], weights="softmax")
    found = tts.confidence_vote(frame, budgets=[1, 4, 16])
    assert found.drop("selector").equals(alike.drop("selector"))


def test_a_vote_of_everyone_is_the_weighted_vote() -> None:
    frame = random_run(6)
    alike = tts.weighted_vote(frame, budgets=[1, 4, 16]).drop("selector", "weight")
    found = tts.top_fraction_vote(frame, budgets=[1, 4, 16], fraction=1.0)
    assert found.drop("selector", "weight").equals(alike)


def test_the_utility_of_equality_is_the_majority() -> None:
    frame = random_run(8)
    alike = tts.majority_vote(frame, budgets=[1, 4, 16]).drop("selector")
    found = tts.minimum_bayes_risk(frame, budgets=[1, 4, 16], utility="equality")
    assert found.drop("selector").equals(alike)


@pytest.mark.parametrize("most", [1, 50])
def test_the_size_of_pieces_does_not_show(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    frame = random_run(9)
    whole = tts.minimum_bayes_risk(frame, budgets=[1, 4, 16, 64])
    monkeypatch.setattr(_risk_picks, "_MAX_CELLS", most)
    assert tts.minimum_bayes_risk(frame, budgets=[1, 4, 16, 64]).equals(whole)


def test_answers_are_compared_in_their_earliest_spelling_and_else_by_key() -> None:
    frame = one_problem(["k1", "k2", "k3"])
    spelled = frame.with_columns(answer=pl.Series(["9", "a b", "a c"]))
    assert only(tts.minimum_bayes_risk(frame))["answer_key"] == "k1"
    row = only(tts.minimum_bayes_risk(spelled))
    assert (row["answer_key"], row["weight"]) == ("k2", 1.5)
    gap = frame.with_columns(answer_key=pl.Series(["9", "a b", "a c"]), answer=pl.lit(None, str))
    assert only(tts.minimum_bayes_risk(gap))["answer_key"] == "a b"


def test_a_token_counts_as_often_as_both_have_it() -> None:
    frame = one_problem(["a a b", "a a a a"])
    row = only(tts.minimum_bayes_risk(frame))
    assert row["weight"] == pytest.approx(1 + 2 * 2 / 7, rel=1e-12)


def test_spaces_are_no_tokens_and_megabytes_are_cut() -> None:
    long = "x " * 500_000
    found = tts.minimum_bayes_risk(one_problem([" ", long + "1", long + "2"]))
    row = only(found)
    assert row["attempt"] == 1
    assert row["weight"] == pytest.approx(2.0, rel=1e-12)
    assert only(tts.minimum_bayes_risk(one_problem([" "])))["weight"] == 1.0


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["a b", "a c", "z"])])
def test_keys_that_are_categories_are_compared_by_their_texts(dtype: pl.DataType) -> None:
    frame = one_problem(["z", "a b", "a c", None]).with_columns(pl.col("answer_key").cast(dtype))
    row = only(tts.minimum_bayes_risk(frame))
    assert (row["answer_key"], row["weight"]) == ("a b", 1.5)


@pytest.mark.parametrize(
    ("name", "option", "words"),
    [
        ("borda_vote", {"power": -0.5}, "power == -0.5, must be from 0 to 50"),
        ("borda_vote", {"power": math.inf}, "power == inf, must be from 0 to 50"),
        ("borda_vote", {"power": math.nan}, "power == nan"),
        ("confidence_vote", {"temperature": 0.0}, "temperature == 0.0, must be greater than 0"),
        ("confidence_vote", {"temperature": math.inf}, "temperature == inf, must be finite"),
        ("top_fraction_vote", {"fraction": 0.0}, "fraction == 0.0, must be greater than 0"),
        ("top_fraction_vote", {"fraction": 10}, "fraction == 10, must be from 0 to 1"),
        ("top_fraction_vote", {"weights": "exp"}, "weights == 'exp', must be one of"),
        ("majority_of_the_bests", {"subset_size": 0}, "subset_size == 0, must be at least 1"),
        ("majority_of_the_bests", {"subset_size": 2.0}, "subset_size must be an int, got float"),
        ("best_of_majority", {"least_share": 1.5}, "least_share == 1.5, must be from 0 to 1"),
        ("minimum_bayes_risk", {"utility": "bleu"}, "utility == 'bleu', must be one of 'token_f1'"),
    ],
)
def test_an_impossible_parameter_is_refused_at_once(
    name: str, option: dict[str, Any], words: str
) -> None:
    with pytest.raises(tts.TtsframeError, match=words):
        getattr(tts.votes, name)(one_problem(["a"], scores=[0.5]).lazy(), **option)


@pytest.mark.parametrize("name", tts.SELECTORS)
def test_expected_accuracy_is_the_mean_over_all_orders(name: Any) -> None:
    frame = one_problem(
        ["a", "b + c", "b", None, "b + c"],
        is_correct=[True, False, False, False, True],
        scores=[0.6, 0.9, 0.6, 0.7, 0.1],
    )
    orders = pl.concat([
        frame[list(order)].with_columns(
            problem_id=pl.lit(str(order)), attempt=pl.int_range(3, dtype=pl.UInt32)
        )
        for order in itertools.permutations(range(5), 3)
    ])
    mean = tts.select_answers(orders, selectors=name, budgets=3)["value"].mean()
    row = only(tts.expected_accuracy(frame, selectors=name, budgets=3, n_subsets=20_000))
    assert row["status"] == "ok"
    assert abs(row["value"] - mean) <= 5 * row["monte_carlo_error"] + 1e-12


def test_expected_confidence_is_undefined_with_an_infinite_score() -> None:
    frame = one_problem(["a", "b"], is_correct=[True, False], scores=[-5.0, math.inf])
    found = tts.expected_accuracy(frame, selectors=["confidence_vote", "borda_vote"], budgets=1)
    assert dict(found.select("selector", "status").rows()) == {
        "confidence_vote": "undefined",
        "borda_vote": "ok",
    }
