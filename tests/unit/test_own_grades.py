"""A grade of a user makes `is_correct`, whatever was recorded."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError


def run() -> pl.DataFrame:
    return pl.DataFrame({
        "problem_id": ["p", "p", "p", "q"],
        "attempt": [0, 1, 2, 0],
        "completion": [r"\boxed{3}", r"\boxed{4}", "no idea", "none"],
        "gold": ["4", "4", "4", None],
        "n_passed": [2, 1, None, None],
    })


PASSED = pl.col("n_passed") == 2


def test_it_decides_and_null_stays_ungraded_but_for_a_missing_answer_to_a_known_problem() -> None:
    scored = tts.score_trajectories(run(), grade=PASSED)
    assert scored["is_correct"].to_list() == [True, False, False, None]
    assert tts.score_trajectories(run())["is_correct"].to_list() == [False, True, False, None]
    assert scored.columns == tts.score_trajectories(run()).columns


def test_it_replaces_a_recorded_grade() -> None:
    recorded = run().with_columns(is_correct=pl.lit(value=False))
    scored = tts.score_trajectories(recorded, grade=PASSED)
    assert scored["is_correct"].to_list() == [True, False, False, None]


def test_without_gold_answers_nothing_is_added() -> None:
    scored = tts.score_trajectories(run().drop("gold"), grade=PASSED)
    assert scored["is_correct"].to_list() == [True, False, None, None]


def test_a_function_and_its_expression_give_the_same_lazy_and_streaming() -> None:
    def passed() -> pl.Expr:
        return PASSED

    expected = tts.score_trajectories(run(), grade=PASSED)
    assert_frame_equal(tts.score_trajectories(run(), grade=passed), expected)
    lazy = tts.score_trajectories(run().lazy(), grade=passed)
    assert_frame_equal(lazy.collect(engine="streaming"), expected, check_row_order=True)


def test_it_reads_what_is_added_before_it() -> None:
    scored = tts.score_trajectories(run(), grade=pl.col("answer_key") == pl.col("gold_key"))
    assert scored["is_correct"].to_list() == [False, True, False, None]


@pytest.mark.parametrize(
    ("grade", "error", "message"),
    [
        (pl.col("reward") > 0, ColumnsError, "which the expression in grade reads: 'reward'"),
        (pl.col("n_passed"), ColumnsError, "has the dtype Int64, must be Boolean"),
        (PASSED.any(), ParameterError, "has one value for all attempts"),
        (pl.lit(value=True), ParameterError, "has one value for all attempts"),
        (lambda: "right", ParameterError, "must return a polars expression, got str"),
        ("exact", ParameterError, "grade must be"),
    ],
)
def test_what_is_no_grade_is_refused_at_once(
    grade: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises((error, tts.TtsframeError), match=message):
        tts.score_trajectories(run().lazy(), grade=grade)


def test_a_report_is_graded_by_it() -> None:
    attempts = tts.simulate_trajectories(30, 4, seed=0, texts=True, keys=True).drop("is_correct")

    def always_wrong() -> pl.Expr:
        return pl.col("answer_key").is_null() & pl.col("answer_key").is_not_null()

    def shortest() -> pl.Expr:
        return pl.col("attempt").sort_by(pl.col("completion").str.len_chars(), "attempt").first()

    made = tts.build_report(attempts, grade=always_wrong, selectors=shortest)
    assert made.curve is not None
    assert made.curve["accuracy"].to_list() == [0.0] * made.curve.height
    assert set(made.curve["selector"]) == {"majority_vote", "oracle", "shortest"}
    assert "shortest" in made.to_html()


def test_the_grade_that_it_replaces_is_kept_beside_it() -> None:
    recorded = run().with_columns(is_correct=pl.Series([None, True, True, False]))
    scored = tts.score_trajectories(recorded, grade=PASSED)
    assert scored["is_correct"].to_list() == [True, False, False, None]
    assert scored["is_correct_recorded"].to_list() == [None, True, True, False]
