"""Problems and runs may be named in any way: by column, by dtype, by nothing at all."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest
from contract_registry import BUDGETS, ENGINES, levels, run
from polars.testing import assert_frame_equal

import ttsframe as tts

ALL = list(tts.SELECTORS)

# Names that the plans use on the way, or might; test_column_names.py tries every name in the source as `by`.
INNER_NAMES = ["literal", "", "a b"]
MORE_NAMES = [
    "key0",
    "n_units",
    "n",
    "n_rows",
    "n_expected",
    "n_graded",
    "n_correct",
    "n_absent",
    "first",
    "first0",
    "last",
    "sum",
    "slot",
    "line",
    "cell",
    "weight0",
    "score0",
    "top0",
    "part0",
    "spent",
    "given",
    "allowed",
    "before",
    "key1",
    "seed0",
    "index",
    "bucket",
    "packed",
    "problem_number",
    "answer_id",
    "is_answer",
    "flaw",
    "severity",
    "total",
    "deviation",
    "is_fractional",
    "broken",
    "len",
]
NAMES = [*INNER_NAMES, *[pytest.param(name, marks=pytest.mark.slow) for name in MORE_NAMES]]


def two_models(name: str) -> pl.DataFrame:
    """Return two runs that a column of some name tells apart."""
    return pl.concat(
        run().with_columns(model=pl.lit(model), is_correct=pl.col("is_correct") ^ (model == "y"))
        for model in "xy"
    ).rename({"model": name})


def of_levels_and_costs(
    frame: pl.LazyFrame, problems: pl.LazyFrame, name: str
) -> dict[str, pl.LazyFrame]:
    """Return the tables of difficulty, costs and adaptive budgets by a column."""
    found = tts.difficulty_levels(frame, by=name)
    costs = tts.curves.add_costs(problems, trajectories=frame, by=name)
    points = tts.curves.stopping_points(frame, budgets=BUDGETS, by=name)
    same = tts.difficulty_levels(frame, by=name, estimate="same_sample")
    return {
        "levels": found,
        "levels elsewhere": tts.difficulty_levels(frame, reference=frame, by=name),
        "by level": tts.level_curve(problems, levels=same, by=name, include="available"),
        "by level, averaged": tts.level_curve(
            problems, levels=same, replicates=name, include="available"
        ),
        "costs": costs,
        "spent": tts.cost_curve(costs, by=name, include="available"),
        "frontier": tts.pareto_frontier(
            tts.cost_curve(costs, by=name, include="available"), by=name
        ),
        "gain": tts.curves.efficiency_gain(problems, by=name, n_resamples=9),
        "gain of one": tts.curves.efficiency_gain(
            problems, column=name, baseline="x", n_resamples=9
        ),
        "points": points,
        "allocation": tts.curves.allocate_attempts(found, budgets=2, max_attempts=4, by=name),
        "allocated": tts.curves.select_allocated(frame, allocation=points, by=name),
    }


def curves(frame: pl.LazyFrame, name: str) -> dict[str, pl.LazyFrame]:
    """Return every table of an analysis by a column."""
    problems = tts.select_answers(frame, selectors=ALL, budgets=BUDGETS, by=name)
    return {
        "votes": tts.tally_votes(frame, budgets=BUDGETS, by=name),
        "problems": problems,
        "curve": tts.scaling_curve(problems, by=name),
        "averaged": tts.scaling_curve(problems, replicates=name, include="available"),
        "comparison": tts.compare(problems, by=(name, "budget")),
        "across": tts.compare(problems, column=name, baseline="x"),
        "components": tts.statistics.variance_components(frame, by=name),
        "profile": tts.verifier.step_profile(frame, by=name, n_bins=4),
        "metrics": tts.verifier_metrics(frame, by=name),
        "reliability": tts.verifier.reliability_curve(frame, by=name),
        "distribution": tts.verifier.score_distribution(frame, by=name),
        "thresholds": tts.verifier.best_threshold(frame, by=name),
        "bias": tts.verifier.length_bias(frame, by=name),
        "turns": tts.verifier.over_optimization(problems, by=name),
        "renumbered": tts.renumber_attempts(frame, by=name),
        "gap": tts.selection_gap(problems, by=name),
        "gap of averages": tts.selection_gap(problems, replicates=name, include="available"),
        "optimal": tts.optimal_curve(problems, levels=levels(), by=name, include="available"),
        "optimal problems": tts.curves.select_optimal(problems, levels=levels(), by=name),
        "choices": tts.curves.optimal_choices(problems, levels=levels(), replicates=name),
        "best": tts.votes.best_trajectories(frame, by=name, n_per_problem=2),
        **of_levels_and_costs(frame, problems, name),
    }


@cache
def expected_curves() -> dict[str, pl.DataFrame]:
    plans = curves(two_models("model").lazy(), "model")
    return {table: plan.collect() for table, plan in plans.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_by_column_may_have_any_name(name: str) -> None:
    for table, plan in curves(two_models(name).lazy(), name).items():
        found = plan.collect()
        wanted = expected_curves()[table]
        if name in found.columns:
            assert found.columns.index(name) == wanted.columns.index("model")
            found = found.rename({name: "model"})
        assert_frame_equal(found, wanted, rel_tol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_is_not_named_may_have_any_name(name: str) -> None:
    expected = tts.select_answers(run(), selectors=ALL, budgets=BUDGETS)
    extra = run().with_columns(pl.lit("unread").alias(name))
    assert tts.select_answers(extra, selectors=ALL, budgets=BUDGETS).equals(expected)
    marked = expected.with_columns(pl.lit("unread").alias(name))
    assert_frame_equal(tts.scaling_curve(marked), tts.scaling_curve(expected), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (tts.tally_votes, ["problem_id", "budget", "answer_key", "n_votes", "is_correct"]),
        (tts.select_answers, ["problem_id", "budget", "answer", "status", "attempt", "selector"]),
        (tts.scaling_curve, ["problem_id", "budget", "selector", "status", "accuracy", "value"]),
        (tts.compare, ["problem_id", "value", "status", "p_value", "baseline"]),
        (tts.statistics.variance_components, ["problem_id", "is_correct", "mean", "n_problems"]),
        (tts.verifier.step_profile, ["is_correct", "position", "n_problems"]),
        (tts.fit_pass_at_k, ["problem_id", "alpha", "budget", "accuracy", "target", "n_attempts"]),
        (
            tts.statistics.check_extrapolation,
            ["problem_id", "model", "n_fitted", "predicted", "n_short"],
        ),
    ],
)
def test_a_by_column_that_the_result_has_itself_is_refused_at_once(
    function: Any, names: list[str]
) -> None:
    for name in names:
        frame = run().with_columns(pl.lit(1).alias(name)).lazy()
        with pytest.raises(tts.TtsframeError, match=rf"by names \['{name}'\]"):
            function(frame, by=name)


@pytest.mark.parametrize("by", [["gone"], "gone", ["seed", "gone"]])
def test_a_by_column_that_is_missing_is_named(by: Any) -> None:
    frame = run().with_columns(seed=pl.lit(1)).lazy()
    for function in (
        tts.tally_votes,
        tts.select_answers,
        tts.verifier.step_profile,
        tts.renumber_attempts,
    ):
        with pytest.raises(tts.TtsframeError, match=r"1 missing column .*: 'gone'; found: "):
            function(frame, by=by)


NUMBERS = pl.col("problem_id").str.slice(4).cast(pl.Int64)
IDS = {
    "Int64": NUMBERS,
    "UInt8": NUMBERS.cast(pl.UInt8),
    "negative": -NUMBERS - 1,
    "Categorical": pl.col("problem_id").cast(pl.Categorical),
    "Enum": pl.col("problem_id").cast(pl.Enum([f"sim-{i:06}" for i in reversed(range(12))])),
    "unicode": "ü " + pl.col("problem_id") + "\n",
    "with null": pl.when(pl.col("problem_id") != "sim-000004").then("problem_id"),
    "empty string": pl.col("problem_id").replace({"sim-000004": ""}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", IDS)
def test_problem_ids_of_any_kind_give_the_same_analysis(kind: str, engine: pl.Engine) -> None:
    named = run().with_columns(other=IDS[kind])
    dtype = named.schema["other"]
    names = named.select("problem_id", "other").unique()
    frame = named.drop("problem_id").rename({"other": "problem_id"}).lazy()
    expected = tts.select_answers(run(), selectors=ALL, budgets=BUDGETS)
    problems = tts.select_answers(frame, selectors=ALL, budgets=BUDGETS)
    found = problems.collect(engine=engine)
    assert found.schema["problem_id"] == dtype
    translated = (
        found
        .rename({"problem_id": "other"})
        .join(names, on="other", nulls_equal=True)
        .drop("other")
        .select(expected.columns)
    )
    assert_frame_equal(translated, expected, check_row_order=False, rel_tol=1e-12)
    curve = tts.scaling_curve(problems).collect(engine=engine)
    assert_frame_equal(curve, tts.scaling_curve(expected), rel_tol=1e-12)
    votes = tts.tally_votes(frame, budgets=BUDGETS).collect(engine=engine)
    assert votes.schema["problem_id"] == dtype
    assert votes.height == tts.tally_votes(run(), budgets=BUDGETS).height


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt16, pl.UInt64])
def test_attempts_of_any_integer_dtype_are_read(dtype: type[pl.DataType]) -> None:
    expected = tts.select_answers(run(), selectors=ALL, budgets=BUDGETS)
    cast = run().with_columns(pl.col("attempt").cast(dtype))
    assert tts.select_answers(cast, selectors=ALL, budgets=BUDGETS).equals(expected)


@pytest.mark.parametrize("dtype", [pl.Categorical, "enum"])
def test_keys_of_any_string_dtype_are_voted_on(dtype: Any) -> None:
    keys = run()["answer_key"].drop_nulls().unique().sort(descending=True)
    cast = run().with_columns(
        pl.col("answer_key").cast(pl.Enum(keys) if dtype == "enum" else dtype)
    )
    expected = tts.select_answers(run(), selectors=ALL, budgets=BUDGETS)
    found = tts.select_answers(cast, selectors=ALL, budgets=BUDGETS)
    strings = found.with_columns(pl.col("answer_key").cast(pl.String))
    assert_frame_equal(strings, expected, rel_tol=1e-12)


def test_a_null_in_a_by_column_is_a_run_of_its_own() -> None:
    frame = pl.concat(run().with_columns(seed=pl.lit(seed, pl.Int64)) for seed in (None, 1))
    problems = tts.select_answers(frame, budgets=BUDGETS, by="seed")
    curve = tts.scaling_curve(problems, by="seed")
    alone = tts.scaling_curve(tts.select_answers(run(), budgets=BUDGETS))
    for seed in (None, 1):
        part = curve.filter(pl.col("seed").eq_missing(seed)).drop("seed")
        assert_frame_equal(part, alone, rel_tol=1e-12)
