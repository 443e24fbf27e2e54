"""Frames whose rows are not attempts are refused wherever attempts enter, and so are impossible dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe._checks import list_of_attempts
from ttsframe.errors import ColumnsError
from ttsframe.report import build_report

FUNCTIONS: dict[str, Callable[[Any], object]] = {
    "score_trajectories": tts.score_trajectories,
    "validate_trajectories": tts.validate_trajectories,
    "renumber_attempts": tts.renumber_attempts,
    "select_answers": lambda run: tts.select_answers(run, budgets=[1]),
    "oracle": tts.oracle,
    "tally_votes": tts.tally_votes,
    "expected_accuracy": lambda run: tts.expected_accuracy(run, budgets=[1]),
    "difficulty_levels": tts.difficulty_levels,
    "verifier_report": tts.verifier_report,
    "step_profile": tts.verifier.step_profile,
    "variance_components": tts.statistics.variance_components,
    "fit_pass_at_k": tts.fit_pass_at_k,
    "build_report": build_report,
}


STRICT = {name: f for name, f in FUNCTIONS.items() if name != "validate_trajectories"}
"""Those that refuse an impossible dtype; validation reports it."""


def per_problem() -> pl.DataFrame:
    """One row per problem, whose gold answer has the name of the model's."""
    return pl.DataFrame({
        "problem_id": ["a", "b"],
        "problem": ["1 + 1?", "2 + 2?"],
        "answer": ["2", "4"],
        "solution": ["2", "4"],
        "completions": [["2", "3"], ["5", "6"]],
        "scores": [[[0.5], [0.25]], [[0.5], [0.25]]],
    })


def attempts() -> pl.DataFrame:
    return tts.simulate_trajectories(6, 4, seed=0, keys=True)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_row_per_problem_is_refused_with_the_way_to_read_it(
    function: Callable[[Any], object], is_lazy: bool
) -> None:
    frame = per_problem()
    with pytest.raises(ColumnsError) as caught:
        function(frame.lazy() if is_lazy else frame)
    assert str(caught.value) == (
        "trajectories: 'completions' is List(String), which holds all attempts at a problem in one row; "
        "expected one row per attempt. Hint: tts.read_trajectories(frame) makes one row per attempt; "
        "drop 'completions' if each row is one attempt."
    )


def test_the_hint_gives_the_attempts() -> None:
    run = tts.read_trajectories(per_problem()).pipe(tts.score_trajectories)
    assert run["is_correct"].to_list() == [True, False, False, False]


def test_a_list_beside_one_text_per_row_is_not_a_list_of_attempts() -> None:
    frame = attempts().with_columns(completion=pl.lit("so 2"), output=pl.concat_list("answer"))
    assert tts.score_trajectories(frame).height == 24
    assert list_of_attempts(frame.schema) is None
    assert list_of_attempts(frame.drop("completion").schema) == "output"


@pytest.mark.parametrize(
    "name", ["completion", "answer", "answer_key", "gold", "is_correct", "score"]
)
@pytest.mark.parametrize("function", STRICT.values(), ids=STRICT)
def test_a_list_in_place_of_one_value_is_refused(
    function: Callable[[Any], object], name: str
) -> None:
    frame = attempts().with_columns(pl.concat_list(pl.lit("x")).alias(name))
    with pytest.raises(ColumnsError) as caught:
        function(frame.lazy())
    message = str(caught.value)
    assert message.startswith(f"trajectories: {name!r} is List(String), must be ")
    assert message.endswith(
        f"one value per attempt. Hint: frame.explode({name!r}), with all columns of lists, makes one row "
        "per attempt."
    )


@pytest.mark.parametrize("name", ["completion", "answer", "gold", "is_correct", "score"])
def test_validation_reports_a_list_in_place_of_one_value(name: str) -> None:
    frame = attempts().with_columns(pl.concat_list(pl.lit("x")).alias(name))
    found = [finding.code for finding in tts.validate_trajectories(frame).findings]
    assert "wrong_dtype" in found


@pytest.mark.parametrize("function", STRICT.values(), ids=STRICT)
def test_grades_that_are_texts_are_named(function: Callable[[Any], object]) -> None:
    frame = attempts().with_columns(pl.col("is_correct").cast(pl.String))
    with pytest.raises(
        ColumnsError,
        match=r"^trajectories: 'is_correct' is String, must be Boolean\. Hint: frame\.",
    ):
        function(frame)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.lit("0.5").alias("score"), "'score' is String, must be a number"),
        (pl.lit("3").alias("attempt"), "'attempt' is String, must be a number"),
        (
            pl.lit("[0.5]").alias("step_scores"),
            "'step_scores' is String, must be a list of numbers",
        ),
        (
            pl.concat_list(pl.lit("x")).alias("step_scores"),
            r"'step_scores' is List\(String\), must be",
        ),
        (pl.lit(0.5).alias("step_scores"), "'step_scores' is Float64, must be a list of numbers"),
        (pl.lit(b"x").alias("completion"), "'completion' is Binary, must be String"),
        (pl.struct("answer").alias("answer"), "'answer' is Struct, must be String, one value per"),
        (pl.lit("no").alias("is_exchangeable"), "'is_exchangeable' is String, must be Boolean"),
    ],
)
def test_columns_that_cannot_be_are_named(column: pl.Expr, message: str) -> None:
    with pytest.raises(ColumnsError, match=f"^trajectories: {message}"):
        tts.score_trajectories(attempts().with_columns(column))


def test_the_hints_for_texts_work() -> None:
    run = attempts()
    texts = run.with_columns(
        pl.col("is_correct").cast(pl.String),
        pl.col("score").cast(pl.String),
        step_scores=pl.col("step_scores").cast(pl.List(pl.String)).list.join(","),
    ).with_columns(step_scores=pl.format("[{}]", "step_scores"))
    for _ in range(3):
        with pytest.raises(ColumnsError) as caught:
            tts.score_trajectories(texts)
        message = str(caught.value)
        name = message.split("'")[1]
        hint = message.partition("frame.with_columns(")[2].rpartition("), or rename")[0]
        texts = texts.with_columns(eval(hint, {"pl": pl}).alias(name))  # noqa: S307 - our own message
    assert tts.score_trajectories(texts).select(run.columns).equals(run)


@pytest.mark.parametrize(
    "column",
    [
        pl.lit(None).alias("is_correct"),
        pl.col("is_correct").cast(pl.Int8),
        pl.col("answer").cast(pl.Categorical),
        pl.col("step_scores").list.to_array(1).alias("other"),
        pl.col("score").cast(pl.Float32),
    ],
)
def test_columns_that_can_be_pass(column: pl.Expr) -> None:
    run = attempts().with_columns(pl.col("step_scores").list.head(1)).with_columns(column)
    assert tts.renumber_attempts(run).height == 24
