"""What an evaluation returns: documented fields, and the curve as a table."""

from __future__ import annotations

from dataclasses import MISSING, fields

import polars as pl
import pytest
from evaluator_oracle import Echo, echoing, score
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import DataError, ParameterError
from ttsframe.evaluator import AggregatedResult, EvaluationResult, Evaluator, TrajectoryAggregator


def defaults(kind: type) -> dict[str, object]:
    return {
        field.name: field.default_factory()
        if field.default_factory is not MISSING
        else field.default
        for field in fields(kind)
    }


def test_fields_and_defaults_are_those_of_the_documentation() -> None:
    found = defaults(AggregatedResult)
    assert [*found] == [
        "selected_response",
        "is_correct",
        "k_trajectories",
        "selection_method",
        "individual_results",
        "agreement_rate",
        "any_correct",
        "num_correct",
        "metadata",
    ]
    assert [*found.values()][4:] == [[], 0.0, False, 0, {}]
    found = defaults(EvaluationResult)
    assert [*found][:7] == [
        "task_name",
        "k_trajectories",
        "selection_method",
        "accuracy_by_complexity",
        "max_solved_complexity",
        "all_results",
        "oracle_accuracy_by_complexity",
    ]
    assert [*found.values()][3:7] == [{}, 0, [], {}]


def test_the_names_are_reached_from_the_package() -> None:
    assert tts.evaluator.Evaluator is Evaluator
    assert tts.evaluator.EvaluationResult is EvaluationResult


def evaluate(method: str, *, reuse: bool) -> dict[int, EvaluationResult]:
    aggregator = TrajectoryAggregator(method, score)  # type: ignore[arg-type]
    return Evaluator(Echo(), aggregator).evaluate(
        echoing(6), (1, 5), [1, 4], 8, verbose=False, reuse=reuse
    )


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("method", ["majority_vote", "verifier", "oracle"])
def test_the_table_says_what_the_fields_say(method: str, *, reuse: bool) -> None:
    for k, result in evaluate(method, reuse=reuse).items():
        table = result.to_frame()
        assert table.columns == [
            "task",
            "k",
            "selector",
            "complexity",
            "accuracy",
            "ci_low",
            "ci_high",
            "oracle_accuracy",
            "n_instances",
        ]
        assert table["k"].to_list() == [k] * 5
        assert table["selector"].unique().to_list() == [
            "best_of_n" if method == "verifier" else method
        ]
        assert dict(table.select("complexity", "accuracy").rows()) == pytest.approx(
            result.accuracy_by_complexity
        )
        assert dict(table.select("complexity", "oracle_accuracy").rows()) == pytest.approx(
            result.oracle_accuracy_by_complexity
        )
        assert table["n_instances"].to_list() == [8] * 5
        assert table.select((pl.col("ci_low") <= pl.col("accuracy")).all()).item()
        assert table.select((pl.col("ci_high") >= pl.col("accuracy")).all()).item()


def test_intervals_of_fresh_draws_are_wilsons() -> None:
    result = evaluate("majority_vote", reuse=False)[4]
    n_right = (pl.col("accuracy") * pl.col("n_instances")).round()
    table = result.to_frame(confidence_level=0.9)
    wilson = table.select(
        tts.wilson_interval(n_right, "n_instances", confidence_level=0.9).alias("interval")
    ).unnest("interval")
    assert_frame_equal(table.select("ci_low", "ci_high"), wilson)


def test_one_instance_has_no_interval() -> None:
    results = Evaluator(Echo()).evaluate(echoing(1), (1, 2), [1], 1, verbose=False)
    assert results[1].to_frame()["ci_low"].to_list() == [None, None]


def test_tables_do_not_depend_on_the_order_of_rows() -> None:
    for reuse in (False, True):
        result = evaluate("verifier", reuse=reuse)[4]
        table = result.to_frame()
        result.trajectories = result.trajectories.sample(fraction=1.0, shuffle=True, seed=3)
        assert_frame_equal(result.to_frame(), table)


def test_results_made_by_hand_say_what_they_lack() -> None:
    by_hand = EvaluationResult("hanoi", 5, "majority_vote", {1: 1.0})
    with pytest.raises(DataError, match="result of K = 5 has no trajectories"):
        by_hand.to_frame()
    result = evaluate("majority_vote", reuse=False)[1]
    with pytest.raises(ParameterError, match="confidence_level"):
        result.to_frame(confidence_level=95)
    result.selection_method = "best"
    with pytest.raises(DataError, match="selection_method == 'best', must be one of"):
        result.to_frame()
