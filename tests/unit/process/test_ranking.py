"""Ranks of answers beside the oracle of selectors and a plain sort."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_oracle import pick

import ttsframe as tts
from ttsframe._typing import Weights
from ttsframe.errors import ColumnsError, DataError, ParameterError

METHODS = {"majority_vote": "n_votes", "weighted_vote": "weight", "best_of_n": "top_score"}
SCHEMA = {
    "problem_id": pl.String,
    "attempt": pl.UInt32,
    "answer_key": pl.String,
    "is_correct": pl.Boolean,
    "score": pl.Float64,
}

Attempt = dict[str, Any]


@st.composite
def runs(draw: st.DrawFn) -> list[Attempt]:
    """Draw a run with ties, missing answers and scores, and weights that are none."""
    scores = st.sampled_from([None, math.nan, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0])
    if draw(st.integers(0, 4)) == 0:
        scores = st.sampled_from([None, -1.0, 0.5, 2.0])
    return [
        {
            "problem_id": f"p{problem}",
            "attempt": attempt,
            "answer_key": draw(st.sampled_from([None, "a", "b", "c", "d"])),
            "is_correct": None,
            "score": draw(scores),
        }
        for problem in range(draw(st.integers(1, 3)))
        for attempt in range(draw(st.integers(0, 9)))
    ]


def check(table: pl.DataFrame, run: list[Attempt], weights: Weights) -> None:
    """Compare rank 1 with the oracle's pick, and the order of the others with their totals."""
    for (problem, budget), slot in table.group_by("problem_id", "budget"):
        attempts = [a for a in run if a["problem_id"] == problem]
        for method, total in METHODS.items():
            picked = pick(attempts, method, budget, weights)  # type: ignore[arg-type]
            ranked = slot.filter(pl.col(f"rank_{method}").is_not_null()).sort(f"rank_{method}")
            if picked["attempt"] is None:
                assert not ranked.height
                continue
            assert ranked[f"rank_{method}"].to_list() == list(range(1, ranked.height + 1))
            assert ranked["answer_key"][0] == picked["answer_key"]
            can_win = pl.col(total).is_not_null()
            if method != "best_of_n":
                can_win &= pl.col("answer_key").is_not_null()
            expected = slot.filter(
                can_win & (pl.col("answer_key").ne_missing(picked["answer_key"]))
            )
            order = sorted(
                expected.iter_rows(named=True),
                key=lambda row: (-round(row[total], 12), row["first_attempt"]),
            )
            assert ranked["answer_key"].to_list()[1:] == [row["answer_key"] for row in order]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@given(
    run=runs(),
    budgets=st.sampled_from([None, [1], [2, 4]]),
    weights=st.sampled_from(["score", "sigmoid", "softmax"]),
)
def test_rank_1_is_the_pick_and_the_others_follow(
    engine: Any, run: list[Attempt], budgets: list[int] | None, weights: Weights
) -> None:
    frame = pl.DataFrame(run, schema=SCHEMA, orient="row").sample(
        fraction=1.0, shuffle=True, seed=len(run)
    )
    plan = tts.process.rank_answers(frame.lazy(), budgets=budgets, weights=weights)
    table = plan.collect(engine=engine)
    check(table, run, weights)
    # What is ranked are the votes, all of them and in their order.
    votes = tts.tally_votes(frame, budgets=budgets, weights=weights)
    assert table.select(votes.columns).equals(votes)


def test_the_worked_example_of_math_shepherd() -> None:
    scores = {"42": [0.9, 0.8, 0.7], "47": [0.4, 0.5]}
    rows = [(key, score) for key, found in scores.items() for score in found]
    run = pl.DataFrame(rows, schema=["answer_key", "score"], orient="row").select(
        pl.lit("p").alias("problem_id"), pl.int_range(pl.len()).alias("attempt"), pl.all()
    )
    ranked = tts.process.rank_answers(run)
    assert ranked["answer_key"].to_list() == ["42", "47"]
    assert ranked["weight"].to_list() == pytest.approx([2.4, 0.9])
    assert ranked.select("^rank_.*$").rows() == [(1, 1, 1), (2, 2, 2)]


def test_the_methods_can_disagree_in_every_way() -> None:
    run = pl.DataFrame({
        "problem_id": ["p"] * 6,
        "attempt": range(6),
        "answer_key": ["a", "a", "a", "b", "b", "c"],
        "step_scores": [[0.1], [0.2, 0.1], [0.1], [0.9, 0.5], [0.6], [0.8]],
    })
    ranked = tts.process.rank_answers(run, reductions="min")
    assert ranked["reduction"].to_list() == ["min"] * 3
    assert ranked["rank_majority_vote"].to_list() == [1, 2, 3]
    assert ranked["rank_weighted_vote"].to_list() == [3, 1, 2]
    assert ranked["rank_best_of_n"].to_list() == [3, 2, 1]


def test_each_reduction_ranks_and_votes_are_the_same_in_all() -> None:
    run = tts.simulate_trajectories(20, 8, seed=2, keys=True, missing_share=0.2)
    table = tts.process.rank_answers(run, reductions=["min", "prod", "last"], budgets=[4, 8])
    assert table["reduction"].unique().sort().to_list() == ["last", "min", "prod"]
    for name in ("min", "prod", "last"):
        alone = tts.process.rank_answers(run, reductions=name, budgets=[4, 8])
        assert table.filter(reduction=name).equals(alone)


def test_an_attempt_without_an_answer_can_be_best_and_has_no_vote() -> None:
    run = pl.DataFrame({
        "problem_id": ["p"] * 3,
        "attempt": range(3),
        "answer_key": [None, "a", "b"],
        "score": [0.9, 0.5, None],
    })
    ranked = tts.process.rank_answers(run)
    assert ranked["rank_best_of_n"].to_list() == [1, 2, None]
    assert ranked["rank_majority_vote"].to_list() == [None, 1, 2]
    assert ranked["rank_weighted_vote"].to_list() == [None, 1, None]


def test_sums_that_differ_by_rounding_are_a_tie() -> None:
    # 0.1 + 0.2 is more than 0.3 in floating point; ranks 2 and 3 are theirs.
    run = pl.DataFrame({
        "problem_id": ["p"] * 4,
        "attempt": range(4),
        "answer_key": ["top", "b", "a", "a"],
        "score": [0.9, 0.3, 0.1, 0.2],
    })
    ranked = tts.process.rank_answers(run)
    assert dict(ranked.select("answer_key", "rank_weighted_vote").rows()) == {
        "top": 1,
        "b": 2,
        "a": 3,
    }


def test_infinite_scores_are_ranked_where_no_sum_is_made() -> None:
    run = pl.DataFrame({
        "problem_id": ["p"] * 3,
        "attempt": range(3),
        "answer_key": ["a", "b", "c"],
        "score": [0.5, math.inf, 0.7],
    })
    ranked = tts.process.rank_answers(run)
    assert ranked["rank_best_of_n"].to_list() == [3, 1, 2]
    assert ranked["rank_weighted_vote"].to_list() == [None] * 3


def test_accuracies_follow_from_the_same_selectors() -> None:
    run = tts.simulate_trajectories(100, 8, seed=3, keys=True, score_strength=2.0)
    ranked = tts.process.rank_answers(run, reductions="min")
    picked = tts.select_answers(run, reductions="min")
    for method in METHODS:
        right = ranked.filter(pl.col(f"rank_{method}") == 1).select("problem_id", "answer_key")
        curve = tts.scaling_curve(picked.filter(selector=method))
        graded = right.join(
            run.unique(["problem_id", "answer_key"]), on=["problem_id", "answer_key"]
        )
        assert curve["accuracy"].item() == pytest.approx(graded["is_correct"].sum() / 100)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (lambda f: f.drop("score"), {}, ColumnsError, "'score'"),
        (lambda f: f.drop("answer_key"), {}, ColumnsError, "'answer_key'"),
        (lambda f: f, {"by": "rank_best_of_n"}, ParameterError, "by names"),
        (lambda f: f, {"reductions": "worst"}, ParameterError, "reductions"),
        (lambda f: f, {"budgets": 0}, ParameterError, "budgets == 0"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    change: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    run = tts.simulate_trajectories(2, 2, seed=1, keys=True)
    with pytest.raises(error, match=message):
        tts.process.rank_answers(change(run).lazy(), **options)


def test_runs_that_are_not_told_apart_are_refused() -> None:
    run = tts.simulate_trajectories(2, 2, seed=1, keys=True)
    both = pl.concat([run.with_columns(picked_key=pl.lit(name)) for name in "xy"])
    with pytest.raises(DataError, match="by="):
        tts.process.rank_answers(both)
    table = tts.process.rank_answers(both, by="picked_key")
    assert table.filter(picked_key="x").drop("picked_key").equals(tts.process.rank_answers(run))
