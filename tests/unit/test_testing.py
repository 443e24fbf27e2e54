"""The contract tests for functions of a user pass what keeps the rules, and name the rule that is broken."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError

check_selector, check_reduction = tts.testing.check_selector, tts.testing.check_reduction
check_grader = tts.testing.check_grader


def named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


ATTEMPT = pl.col("attempt")
GOOD_SELECTORS = {
    "best": lambda: ATTEMPT.filter(pl.col("score") == pl.col("score").max()).min(),
    "shortest": lambda: ATTEMPT.sort_by("n_tokens", "attempt").first(),
    "majority": lambda: ATTEMPT.filter(
        pl.col("answer_key") == pl.col("answer_key").drop_nulls().mode(maintain_order=True).first()
    ).first(),
    "none": lambda: ATTEMPT.filter(ATTEMPT > 100).first(),
    "finished": lambda: ATTEMPT.filter(pl.col("finish_reason") == "stop").min(),
}
BAD_SELECTORS = {
    "chance": (lambda: ATTEMPT.sample(1).first(), "gives another result when it runs again"),
    "latest": (
        lambda: pl.col("attempt").max(),
        "picks attempt 1 of equal attempts, must pick the earliest",
    ),
    "strict": (
        lambda: ATTEMPT.sort_by(
            pl.col("answer_key").fill_null("x").str.to_integer(), "attempt"
        ).first(),
        "fails",
    ),
    "many": (lambda: ATTEMPT, "gives a list for each problem"),
    "beyond": (lambda: ATTEMPT.max() + 1, "gives 1 for a problem that has no such attempt"),
}


@pytest.mark.parametrize("name", GOOD_SELECTORS)
def test_a_selector_that_keeps_the_rules_passes(name: str) -> None:
    check_selector(named(name, GOOD_SELECTORS[name]))


@pytest.mark.parametrize("name", BAD_SELECTORS)
def test_a_selector_that_breaks_a_rule_is_told_which(name: str) -> None:
    selector, message = BAD_SELECTORS[name]
    with pytest.raises(ParameterError, match=f"selector '{name}' {message}"):
        check_selector(named(name, selector))


def test_a_selector_that_goes_by_number_on_purpose_has_no_ties() -> None:
    check_selector(named("latest", lambda: pl.col("attempt").max()), goes_by_number=True)


def test_a_failure_where_values_are_missing_is_found() -> None:
    # Of equal score, none is above the mean; without scores, the list is empty.
    def picky() -> pl.Expr:
        return ATTEMPT.gather(pl.col("score").drop_nulls().arg_max()).first() + 0 * (
            pl.col("answer").fill_null("?").replace("?", "no number").str.to_integer(strict=True).sum()
            .cast(ATTEMPT.meta.output_name() and pl.Int64)
        )  # fmt: skip

    numbers = tts.simulate_trajectories(6, 4, seed=0, keys=True).drop("^true_.*$")
    numbers = numbers.with_columns(answer=pl.lit("7"))
    with pytest.raises(ParameterError, match="'picky' fails where values are missing: "):
        check_selector(picky, numbers)


def test_columns_that_are_not_simulated_come_with_the_users_own_attempts() -> None:
    def coolest() -> pl.Expr:
        return ATTEMPT.sort_by("temperature", "attempt").first()

    with pytest.raises(ColumnsError, match=r"'temperature'.* pass a small frame that has it"):
        check_selector(coolest)
    run = tts.simulate_trajectories(4, 4, seed=0, keys=True)
    check_selector(coolest, run.with_columns(temperature=1.0 / (1 + ATTEMPT)))


@pytest.mark.parametrize("name", tts.STEP_REDUCTIONS)
def test_every_built_in_reduction_keeps_the_rules(name: Any) -> None:
    check_reduction(tts.STEP_REDUCTIONS[name])


BAD_REDUCTIONS = {
    "total": (lambda s: s.list.sum(), r"gives 0.0 for the list \[\], must give null"),
    "longest": (lambda s: s.list.len(), r"gives 0.0 for the list \[\], must give null"),
    "highest": (
        lambda s: s.list.max(),
        r"gives 0.5 for the list \[0.5, 0.25, nan\], must give NaN",
    ),
    "last_two": (lambda s: s.list.tail(2).list.mean(), "a null element must be skipped"),
    "rank": (lambda s: s.list.mean().rank(), "depends on the rows of other problems"),
    "before": (lambda s: s.list.mean().shift(), "depends on the order of rows"),
    "chance": (lambda s: s.list.sample(1).list.first(), "gives another result|fails"),
    "mean": (lambda s: s.explode().mean(), "made 1 values of 3 lists"),
}


@pytest.mark.parametrize("name", BAD_REDUCTIONS)
def test_a_reduction_that_breaks_a_rule_is_told_which(name: str) -> None:
    reduction, message = BAD_REDUCTIONS[name]
    with pytest.raises(ParameterError, match=f"reduction 'own_{name}' .*({message})"):
        check_reduction(named(f"own_{name}", reduction))


GOOD_GRADES = {
    "text": pl.col("answer") == pl.col("gold"),
    "key": lambda: pl.col("answer_key") == pl.col("gold_key"),
    "completion": lambda: pl.col("completion").str.contains("final answer"),
    "in_problem": lambda: pl.col("score") > pl.col("score").mean().over("problem_id"),
    "never": lambda: pl.lit(None, pl.Boolean) & pl.col("answer").is_null(),
}
BAD_GRADES = {
    "same": (
        lambda: pl.col("answer").eq_missing(pl.col("gold")),
        "says that an attempt without an answer is right",
    ),
    "trusting": (
        lambda: (pl.col("answer") == pl.col("gold")).fill_null(value=True),
        "says that an attempt without an answer is right",
    ),
    "relative": (lambda: pl.col("score") > pl.col("score").mean(), "depends on the rows of other"),
    "before": (lambda: pl.col("answer") == pl.col("gold").shift(), "depends on the order of rows"),
    "strict": (lambda: pl.col("answer").str.to_integer() > 0, "fails"),
}


@pytest.mark.parametrize("name", GOOD_GRADES)
def test_a_grade_that_keeps_the_rules_passes(name: str) -> None:
    check_grader(GOOD_GRADES[name])


@pytest.mark.parametrize("name", BAD_GRADES)
def test_a_grade_that_breaks_a_rule_is_told_which(name: str) -> None:
    grade, message = BAD_GRADES[name]
    with pytest.raises(ParameterError, match=f"grader '{name}' {message}"):
        check_grader(named(name, grade))


def test_a_grade_that_is_not_boolean_is_refused() -> None:
    with pytest.raises(ColumnsError, match="the expression in grade has the dtype Float64"):
        check_grader(pl.col("score"))
    with pytest.raises(ParameterError, match="has one value for all attempts"):
        check_grader((pl.col("score") > 0.5).any())
