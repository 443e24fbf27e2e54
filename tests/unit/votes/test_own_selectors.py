"""Selectors and reductions of a user pick what the built-in ones pick that they spell out."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError


def own_best() -> pl.Expr:
    return pl.col("attempt").filter(pl.col("score") == pl.col("score").max()).min()


def own_first_valid() -> pl.Expr:
    return pl.col("attempt").filter(pl.col("answer_key").is_not_null()).min()


def own_majority() -> pl.Expr:
    is_answer = pl.col("answer_key").is_not_null()
    n_votes = pl.when(is_answer).then(pl.len().over("answer_key"))
    return pl.col("attempt").filter(n_votes == n_votes.max()).min()


def own_weighted() -> pl.Expr:
    is_voting = pl.col("answer_key").is_not_null() & pl.col("score").is_not_null()
    total = pl.when(is_voting).then(pl.col("score").sum().over("answer_key"))
    is_tied = total >= total.max() - 1e-9 * pl.col("score").filter(is_voting).sum()
    return pl.col("attempt").filter(is_tied).min()


def shortest() -> pl.Expr:
    return pl.col("attempt").sort_by("n_tokens", "attempt").first()


def own_min(step_scores: pl.Expr) -> pl.Expr:
    return tts.step_min(step_scores)


TWINS = {
    "best_of_n": own_best,
    "first_valid": own_first_valid,
    "majority_vote": own_majority,
    "weighted_vote": own_weighted,
}
SHOWN = ["problem_id", "budget", "attempt", "answer", "answer_key", "is_correct", "value", "status"]

CELL = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0, None]),
    st.booleans(),
)


@st.composite
def runs(draw: st.DrawFn) -> pl.DataFrame:
    """Draw a few problems with up to six attempts, in any order, that lack answers and scores."""
    problems = draw(st.lists(st.lists(CELL, min_size=1, max_size=6), min_size=1, max_size=4))
    rows = [
        (f"p{number}", attempt, *cell)
        for number, cells in enumerate(problems)
        for attempt, cell in enumerate(cells)
    ]
    names = {
        "problem_id": pl.String,
        "attempt": pl.UInt32,
        "answer_key": pl.String,
        "score": pl.Float64,
        "is_correct": pl.Boolean,
    }
    return pl.DataFrame(draw(st.permutations(rows)), schema=names, orient="row")


def picks(frame: Any, selector: Any, **options: Any) -> pl.DataFrame:
    made = tts.select_answers(frame, selectors=[selector], budgets=[1, 2, 4], **options)
    return made.lazy().collect().select(SHOWN)


@given(runs())
@pytest.mark.parametrize("name", TWINS)
def test_an_own_selector_picks_as_its_twin(name: str, run: pl.DataFrame) -> None:
    assert_frame_equal(picks(run, TWINS[name]), picks(run, name))


@given(runs())
def test_a_lazy_frame_and_the_streaming_engine_give_the_same(run: pl.DataFrame) -> None:
    made = tts.select_answers(run.lazy(), selectors=[own_best, own_majority], budgets=[1, 4])
    eager = tts.select_answers(run, selectors=[own_best, own_majority], budgets=[1, 4])
    assert_frame_equal(made.collect(engine="streaming"), eager)
    assert_frame_equal(made.collect(), eager)


def test_rows_are_named_for_the_function_and_stand_beside_the_others() -> None:
    run = tts.simulate_trajectories(20, 8, seed=1, keys=True, n_steps=(1, 4))
    made = tts.select_answers(
        run,
        selectors=["majority_vote", shortest, own_best],
        reductions=["min", own_min],
        budgets=[1, 8],
    )
    lines = made.select("selector", "reduction").unique().sort("selector", "reduction").rows()
    assert lines == [
        ("majority_vote", None),
        ("own_best", "min"),
        ("own_best", "own_min"),
        ("shortest", None),
    ]
    values = made.filter(selector="own_best").partition_by("reduction", include_key=False)
    assert_frame_equal(values[0], values[1])
    longest = run.sort("n_tokens", "attempt").group_by("problem_id").agg(pl.first("attempt"))
    found = made.filter(selector="shortest", budget=8).select("problem_id", "attempt")
    assert_frame_equal(found, longest.sort("problem_id"))


def test_attempts_never_join_across_runs_and_any_column_can_be_read() -> None:
    run = pl.concat([
        tts.simulate_trajectories(10, 4, seed=seed, keys=True, texts=True).with_columns(seed=seed)
        for seed in (0, 1)
    ])

    def longest_text() -> pl.Expr:
        n_chars = pl.col("completion").str.len_chars() + 0 * pl.col("seed")
        return pl.col("attempt").sort_by(n_chars, "attempt", descending=[True, False]).first()

    found = tts.select_answers(run, selectors=longest_text, by="seed")
    alone = [
        tts.select_answers(of, selectors=longest_text, by="seed") for of in run.partition_by("seed")
    ]
    assert_frame_equal(found.sort("seed", "problem_id"), pl.concat(alone))
    sizes = run.with_columns(pl.col("completion").str.len_chars().alias("n"))
    best = sizes.group_by("seed", "problem_id").agg(pl.col("n").max())
    chosen = found.join(sizes, on=["seed", "problem_id", "attempt"])
    assert_frame_equal(
        chosen.select("seed", "problem_id", "n"),
        best,
        check_row_order=False,
        check_column_order=False,
    )


def test_categorical_keys_stay_categorical() -> None:
    run = tts.simulate_trajectories(10, 4, seed=0, keys=True)
    category = pl.Enum(run["answer_key"].drop_nulls().unique().sort())
    made = tts.select_answers(run.cast({"answer_key": category}), selectors=own_majority)
    assert made.schema["answer_key"] == category
    assert_frame_equal(
        made.cast({"answer_key": pl.String}), tts.select_answers(run, selectors=own_majority)
    )


def test_no_pick_is_no_answer_and_wrong() -> None:
    run = pl.DataFrame({
        "problem_id": ["p", "p"],
        "attempt": [0, 1],
        "answer_key": ["a", "b"],
        "is_correct": [True, True],
    })

    def none() -> pl.Expr:
        return pl.col("attempt").filter(pl.col("answer_key") == "z").first()

    (row,) = tts.select_answers(run, selectors=none).rows(named=True)
    assert (row["attempt"], row["answer"], row["value"], row["status"]) == (None, None, 0.0, "ok")


def test_a_problem_without_scores_is_unscored_only_where_scores_are_read() -> None:
    run = pl.DataFrame({
        "problem_id": ["p", "q"],
        "attempt": [0, 0],
        "answer_key": ["a", "b"],
        "is_correct": [True, True],
        "score": [None, 0.5],
    })
    made = tts.select_answers(run, selectors=[own_best, own_majority])
    assert made.select("selector", "status").rows() == [
        ("own_best", "unscored"),
        ("own_majority", "ok"),
        ("own_best", "ok"),
        ("own_majority", "ok"),
    ]


@pytest.mark.parametrize("name", ["best_of_n", "first_valid"])
def test_over_all_subsets_it_has_the_value_of_its_twin(name: str) -> None:
    run = tts.simulate_trajectories(30, 8, seed=2, keys=True)
    run = run.with_columns(score=pl.col("score").round(1))
    options: dict[str, Any] = {"budgets": [1, 3, 8], "n_subsets": 400}
    exact = tts.expected_accuracy(run, selectors=name, **options)["value"].to_numpy()
    found = tts.expected_accuracy(run, selectors=TWINS[name], **options)
    errors = found["monte_carlo_error"].to_numpy()
    distance = np.abs(found["value"].to_numpy() - exact)
    assert (distance <= 5 * errors + 0.02).all()
    assert abs((found["value"].to_numpy() - exact).mean()) < 0.01
    again = tts.expected_accuracy(run.reverse(), selectors=TWINS[name], **options)
    assert_frame_equal(again, found)


def test_over_all_subsets_it_samples_as_a_built_in_selector_that_must() -> None:
    run = tts.simulate_trajectories(10, 6, seed=3, keys=True)
    rank = tts.expected_accuracy(run, selectors=own_majority, budgets=[2, 6], seed=5)
    assert set(rank["selector"]) == {"own_majority"}
    other = tts.expected_accuracy(run, selectors="majority_vote", budgets=[2, 6], seed=5)
    assert abs(rank["value"].mean() - other["value"].mean()) < 0.03  # type: ignore[operator]


@pytest.mark.parametrize(
    "column", ["is_correct", "gold", "gold_key", "solution", "is_correct_recorded"]
)
def test_a_selector_that_knows_the_right_answer_is_refused(column: str) -> None:
    run = tts.simulate_trajectories(2, 2, seed=0, keys=True)

    def peek() -> pl.Expr:
        return pl.col("attempt").sort_by(column, "attempt").first()

    with pytest.raises(ParameterError, match=rf"selector 'peek' reads '{column}'.*'oracle'"):
        tts.select_answers(run, selectors=peek)


def returns_rows() -> pl.Expr:
    return pl.col("attempt")


def returns_text() -> pl.Expr:
    return pl.col("answer_key").first()


def returns_several() -> pl.Expr:
    return pl.all().first()


def returns_number() -> Any:
    return 3


def raises() -> pl.Expr:
    raise RuntimeError("no luck")


def takes_one(_: object) -> pl.Expr:
    return pl.col("attempt").first()


def reads_missing() -> pl.Expr:
    return pl.col("attempt").sort_by("n_words").first()


@pytest.mark.parametrize(
    ("selector", "error", "message"),
    [
        (returns_rows, ParameterError, "'returns_rows' gives a list for each problem"),
        (returns_text, ParameterError, "'returns_text' gives values of dtype String"),
        (returns_several, ParameterError, "'returns_several' returned an expression of several"),
        (
            returns_number,
            ParameterTypeError,
            "'returns_number' must return a polars expression, got int",
        ),
        (raises, ParameterError, "selector 'raises' raised RuntimeError: no luck"),
        (takes_one, ParameterError, r"called as selector\(\)"),
        (reads_missing, ColumnsError, "which selector 'reads_missing' reads: 'n_words'"),
        (pl.col("attempt").first(), ParameterTypeError, "a function that returns the expression"),
        ([pl.col("attempt").first()], ParameterTypeError, "got Expr"),
        (3, ParameterTypeError, "selectors must hold names or functions, got int"),
        ([], ParameterError, "selectors is empty"),
    ],
)
def test_what_is_no_selector_is_refused_at_once(
    selector: Any, error: type[Exception], message: str
) -> None:
    run = tts.simulate_trajectories(2, 2, seed=0, keys=True).lazy()
    with pytest.raises(error, match=message):
        tts.select_answers(run, selectors=selector)


def test_a_pick_must_be_an_attempt_within_the_budget() -> None:
    run = tts.simulate_trajectories(2, 4, seed=0, keys=True)
    for beyond in (pl.lit(1, pl.Int64), pl.col("attempt").cast(pl.Int64).first() - 1):

        def wild(expr: pl.Expr = beyond) -> pl.Expr:
            return expr + 0 * pl.col("attempt").cast(pl.Int64).first()

        with pytest.raises(
            DataError, match=r"selector 'wild' gives -?1 for a problem that has no such"
        ):
            tts.select_answers(run, selectors=wild, budgets=1)


def test_an_error_of_the_expression_names_the_function() -> None:
    run = tts.simulate_trajectories(2, 2, seed=0, keys=True)

    def fails() -> pl.Expr:
        words = pl.col("problem_id").str.to_integer(strict=True)
        return pl.col("attempt").sort_by(words, "attempt").first()

    with pytest.raises(DataError, match="selector 'fails' could not be computed: "):
        tts.select_answers(run, selectors=fails)


def test_two_functions_of_one_name_are_refused_and_one_given_twice_is_one() -> None:
    run = tts.simulate_trajectories(2, 2, seed=0, keys=True)

    def first() -> pl.Expr:
        return pl.col("attempt").first()

    other = first

    def first() -> pl.Expr:  # type: ignore[no-redef]
        return pl.col("attempt").last()

    with pytest.raises(ParameterError, match="two functions of the name 'first'"):
        tts.select_answers(run, selectors=[first, other])
    assert tts.select_answers(run, selectors=[first, "oracle", first]).height == 4

    def oracle() -> pl.Expr:
        return pl.col("attempt").first()

    with pytest.raises(ParameterError, match="'oracle' already has a meaning"):
        tts.select_answers(run, selectors=oracle)


def nth(n: int) -> pl.Expr:
    return pl.col("attempt").sort_by("attempt").slice(n, 1).first()


def test_a_partial_function_is_named_with_its_parameters() -> None:
    run = tts.simulate_trajectories(2, 4, seed=0, keys=True)
    made = tts.select_answers(run, selectors=[partial(nth, 1), partial(nth, n=2)])
    assert made.select("selector", "attempt").rows()[:2] == [("nth(1)", 1), ("nth(n=2)", 2)]


def half(step_scores: pl.Expr) -> pl.Expr:
    return tts.step_last(step_scores) / 2


def test_own_reductions_go_wherever_a_name_goes() -> None:
    run = tts.simulate_trajectories(30, 8, seed=4, keys=True, n_steps=(1, 5)).drop("score")
    last = tts.score_trajectories(run)["score"]
    assert (tts.score_trajectories(run, reduction=half)["score"] == last / 2).all()
    votes = tts.tally_votes(run, reductions=["last", half])
    of_last, of_half = (votes.filter(reduction=name) for name in ("last", "half"))
    assert ((of_half["weight"] * 2 - of_last["weight"]).abs() < 1e-12).all()
    metrics = tts.verifier_metrics(run, reductions=["last", half])
    assert metrics["reduction"].to_list() == ["half", "last"]
    assert metrics["auroc"].n_unique() == 1
    levels = [
        tts.difficulty_levels(run, metric="mean_score", reduction=of, n_levels=3)
        for of in ("last", half)
    ]
    assert levels[0]["level"].equals(levels[1]["level"])


@pytest.mark.parametrize(
    ("reduction", "message"),
    [
        (lambda s: s.mean(), "could not be computed"),
        (lambda s: s.explode().mean(), "made 1 values of 3 lists"),
        (lambda s: s.list.len().cast(pl.String), "made values of dtype String"),
        (lambda s: pl.col(s).list.mean(), "raised TypeError"),
        (lambda _: pl.col("n_tokens"), "could not be computed"),
        (lambda _: 3, "must return a polars expression"),
    ],
)
def test_what_is_no_reduction_is_refused_at_once(reduction: Any, message: str) -> None:
    run = tts.simulate_trajectories(2, 2, seed=0, keys=True).drop("score").lazy()
    for call in (
        lambda: tts.select_answers(run, reductions=reduction),
        lambda: tts.score_trajectories(run, reduction=reduction),
    ):
        with pytest.raises(tts.TtsframeError, match=f"reduction '<lambda>' {message}"):
            call()


def test_a_reduction_may_not_be_called_score() -> None:
    run = tts.simulate_trajectories(2, 2, seed=0, keys=True)

    def score(step_scores: pl.Expr) -> pl.Expr:
        return step_scores.list.mean()

    with pytest.raises(ParameterError, match="'score' already has a meaning in reductions"):
        tts.select_answers(run, reductions=score)


def test_one_thread_of_polars_and_several_blocks_end() -> None:
    program = """
import numpy as np, polars as pl, ttsframe as tts
n = 300_000
run = pl.DataFrame({
    "problem_id": np.arange(n) // 50, "attempt": np.arange(n) % 50,
    "answer_key": pl.Series(np.arange(n) % 7).cast(pl.String), "score": np.arange(n) % 11 / 11,
})
def best():
    return pl.col("attempt").filter(pl.col("score") == pl.col("score").max()).min()
made = tts.select_answers(run.lazy(), selectors=["best_of_n", best], budgets=[1, 50])
for engine in ("in-memory", "streaming"):
    table = made.collect(engine=engine).pivot("selector", index=["problem_id", "budget"], values="attempt")
    assert table.height == 12_000 and table["best"].equals(table["best_of_n"])
print("done")
"""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "qwen_math/math_cot_50.jsonl",
        "search_and_learn/synthetic_100x64.parquet",
        "search_and_learn/beam16_llama3.2-3b-awq_q100.jsonl",
        "search_and_learn/edge_null-scores_qwen2.5-math_q100.jsonl",
        "ets/synthetic_20x16.json",
        "compute_optimal_tts/math500_best_of_n_1_1_1.jsonl",
    ],
)
def test_own_selectors_pick_as_their_twins_in_real_runs(name: str, shared_data: Path) -> None:
    run = tts.score_trajectories(tts.read_trajectories(shared_data / name))
    chosen = ["best_of_n", "first_valid", "majority_vote"]
    for budgets in ([1, 4], None):
        made = tts.select_answers(
            run, selectors=[*chosen, *(TWINS[twin] for twin in chosen)], budgets=budgets
        )
        for twin in chosen:
            own = made.filter(selector=TWINS[twin].__name__)
            built_in = made.filter(selector=twin)
            assert own.height == built_in.height > 0
            assert_frame_equal(own.drop("selector", "weight"), built_in.drop("selector", "weight"))


def test_in_runs_without_answers_only_what_reads_answers_is_undefined() -> None:
    code = pl.DataFrame({
        "problem_id": ["p", "p"],
        "attempt": [0, 1],
        "is_correct": [False, True],
        "n_tokens": [9, 5],
    })
    made = tts.select_answers(tts.score_trajectories(code), selectors=[shortest, own_majority])
    assert made.select("selector", "value", "status").rows() == [
        ("shortest", 1.0, "ok"),
        ("own_majority", None, "undefined"),
    ]
