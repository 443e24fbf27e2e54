"""Accuracy by level: against plain Python over both halves, and by hand."""

from __future__ import annotations

import math
import statistics
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError

ENGINES = ("in-memory", "streaming")
SELECTORS: list[Any] = ["majority_vote", "oracle"]


def simulated(**options: Any) -> pl.DataFrame:
    return tts.simulate_trajectories(40, 16, seed=3, keys=True, **options)


def halved(run: pl.DataFrame, budgets: list[int]) -> pl.DataFrame:
    return tts.select_answers(
        tts.curves.halve_attempts(run), selectors=SELECTORS, budgets=budgets, by="fold"
    )


def plain_curve(problems: pl.DataFrame, levels: pl.DataFrame) -> dict[tuple[Any, ...], Any]:
    """Average half by half, and take both halves of a problem for one unit."""
    level_of = {(row["problem_id"], row["fold"]): row["level"] for row in levels.to_dicts()}
    points: dict[tuple[Any, ...], dict[int, dict[str, float]]] = {}
    for row in problems.to_dicts():
        level = level_of[row["problem_id"], row["fold"]]
        folds = points.setdefault((level, row["selector"], row["budget"]), {})
        folds.setdefault(row["fold"], {})[row["problem_id"]] = row["value"]
    found = {}
    for point, folds in points.items():
        means = {fold: statistics.fmean(values.values()) for fold, values in folds.items()}
        pulls: dict[str, float] = {}
        for fold, values in folds.items():
            for problem, value in values.items():
                part = (value - means[fold]) / len(values) / len(folds)
                pulls[problem] = pulls.get(problem, 0.0) + part
        q = len(pulls)
        error = math.sqrt(q / (q - 1) * sum(pull**2 for pull in pulls.values())) if q > 1 else None
        found[point] = (statistics.fmean(means.values()), error, q)
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_both_halves_are_averaged_as_in_plain_python(engine: pl.Engine) -> None:
    run = simulated()
    problems, levels = halved(run, [1, 4, 8]), tts.difficulty_levels(run)
    curve = tts.level_curve(problems.lazy(), levels=levels.lazy()).collect(engine=engine)
    expected = plain_curve(problems, levels)
    assert curve.height == len(expected) == 5 * 2 * 3
    for row in curve.iter_rows(named=True):
        mean, error, q = expected[row["level"], row["selector"], row["budget"]]
        assert row["accuracy"] == pytest.approx(mean, abs=1e-12)
        assert row["standard_error"] == pytest.approx(error, abs=1e-12)
        assert row["n_problems"] == q
        assert 0 <= row["ci_low"] <= row["accuracy"] <= row["ci_high"] <= 1
    assert set(curve["basis"]) == {"cross_fitted"}


def test_levels_for_all_attempts_are_plain_curves_by_level() -> None:
    run = simulated()
    levels = tts.difficulty_levels(run, estimate="same_sample")
    problems = tts.select_answers(run, selectors=SELECTORS, budgets=[1, 4, 16])
    curve = tts.level_curve(problems, levels=levels)
    joined = problems.join(levels.select("problem_id", "level"), on="problem_id")
    expected = tts.scaling_curve(joined, by="level")
    order = ["level", "selector", "budget"]
    assert_frame_equal(curve.drop("basis", "caveat").sort(order), expected.sort(order))


def test_expected_accuracy_of_halves_is_averaged_too() -> None:
    run = simulated(accuracy=(2.0, 2.0))
    problems = tts.expected_accuracy(
        tts.curves.halve_attempts(run), selectors=SELECTORS, budgets=[1, 4], by="fold"
    )
    curve = tts.level_curve(problems, levels=tts.difficulty_levels(run))
    for row in curve.iter_rows(named=True):
        expected = plain_curve(problems, tts.difficulty_levels(run))
        assert row["accuracy"] == pytest.approx(
            expected[row["level"], row["selector"], row["budget"]][0]
        )
    assert set(curve["subsets"]) == {"all"}


def test_an_empty_level_is_a_row_without_problems() -> None:
    run = simulated()
    levels = tts.difficulty_levels(
        run.with_columns(is_correct=pl.lit(value=True)), estimate="same_sample"
    )
    problems = tts.select_answers(run, selectors=["oracle"], budgets=[1, 4])
    curve = tts.level_curve(problems, levels=levels)
    assert curve.select("level", "budget", "n_problems").rows() == [
        (level, budget, 40 if level == 3 else 0) for level in range(1, 6) for budget in (1, 4)
    ]
    empty = curve.filter(pl.col("level") != 3)
    numbers = empty.select("accuracy", "standard_error", "ci_low", "ci_high")
    assert numbers.null_count().row(0) == (8,) * 4
    assert empty.select(pl.col("^n_.*$").sum()).row(0) == (0,) * 5


def test_problems_of_unknown_difficulty_have_a_row_of_their_own() -> None:
    run = simulated()
    reference = run.filter(pl.col("problem_id") > "sim-000004")
    levels = tts.difficulty_levels(run, reference=reference)
    problems = tts.select_answers(run, selectors=["oracle"], budgets=4)
    curve = tts.level_curve(problems, levels=levels)
    assert curve["level"].to_list() == [1, 2, 3, 4, 5, None]
    assert curve["n_problems"].to_list()[-1] == 5
    assert curve["n_problems"].sum() == 40


def test_a_curve_has_the_caveat_of_its_levels() -> None:
    run = tts.simulate_trajectories(40, 40, seed=3, keys=True)
    reference = tts.simulate_trajectories(40, 16, seed=3, keys=True)
    few = reference.filter((pl.col("problem_id") != "sim-000004") | (pl.col("attempt") < 15))
    problems = tts.select_answers(run, selectors=["majority_vote"], budgets=[1, 4])

    def caveats(levels: pl.DataFrame, of: pl.DataFrame = problems) -> dict[int, str | None]:
        curve = tts.level_curve(of, levels=levels)
        assert curve.unique(["level", "caveat"]).height == 5
        return dict(curve.select("level", "caveat").rows())

    assert set(caveats(tts.difficulty_levels(run, reference=reference)).values()) == {None}
    levels = tts.difficulty_levels(run, reference=few)
    level = levels.filter(problem_id="sim-000004")["level"][0]
    assert caveats(levels) == {i: "few_attempts" if i == level else None for i in range(1, 6)}
    assert set(caveats(levels.drop("caveat")).values()) == {None}
    tree = tts.difficulty_levels(run, reference=few.with_columns(is_exchangeable=False))
    assert set(caveats(tree).values()) == {"not_exchangeable"}
    # A problem that is left out says nothing about those that are averaged.
    rest = problems.with_columns(
        status=pl
        .when(pl.col("problem_id") == "sim-000004")
        .then(pl.lit("short"))
        .otherwise("status")
    )
    assert set(caveats(levels, rest).values()) == {None}
    halves = tts.difficulty_levels(run.filter(pl.col("attempt") < 30))
    assert set(caveats(halves, halved(run, [1, 4])).values()) == {"few_attempts"}


def test_problems_left_out_are_counted_in_their_level() -> None:
    run = simulated()
    ragged = run.filter((pl.col("problem_id") != "sim-000003") | (pl.col("attempt") < 9))
    levels, problems = tts.difficulty_levels(run), halved(ragged, [1, 8])
    curve = tts.level_curve(problems, levels=levels)
    whole = tts.level_curve(halved(run, [1, 8]), levels=levels)
    short = levels.filter(pl.col("problem_id") == "sim-000003")["level"].unique().to_list()
    for row, before in zip(curve.to_dicts(), whole.to_dicts(), strict=True):
        is_hit = row["level"] in short
        assert row["n_short"] == is_hit
        assert row["n_problems"] == before["n_problems"] - is_hit
    available = tts.level_curve(problems, levels=levels, include="available")
    assert available.filter(budget=1)["n_short"].sum() == 0
    assert available.filter(budget=8)["n_short"].sum() == 2 * len(short)
    absent = tts.level_curve(
        problems.filter((pl.col("problem_id") != "sim-000003") | (pl.col("budget") == 1)),
        levels=levels,
        include="available",
    )
    assert_frame_equal(absent, available)


def test_replicates_are_averaged_per_problem_first() -> None:
    run = pl.concat([
        tts.simulate_trajectories(20, 8, seed=0, keys=True).with_columns(
            seed=pl.lit(seed), is_correct=pl.col("is_correct") ^ (pl.col("attempt") == seed)
        )
        for seed in (0, 1)
    ])
    levels = tts.difficulty_levels(run, by="seed", estimate="same_sample").filter(seed=0)
    problems = tts.select_answers(run, selectors=["oracle"], budgets=[1], by="seed")
    found = tts.level_curve(problems, levels=levels.drop("seed"), replicates="seed")
    mean = problems.group_by("problem_id", "selector", "reduction", "budget", "status").agg(
        pl.col("value").mean()
    )
    expected = tts.level_curve(mean, levels=levels.drop("seed"))
    assert_frame_equal(found, expected)


def test_halves_alternate_and_are_numbered_from_0() -> None:
    run = pl.DataFrame({"problem_id": ["a"] * 5, "attempt": [4, 0, 1, 2, 3]})
    halves = tts.curves.halve_attempts(run)
    assert halves.select("fold", "attempt").rows() == [(0, 2), (0, 0), (1, 0), (0, 1), (1, 1)]
    with pytest.raises(ColumnsError, match="'fold' already"):
        tts.curves.halve_attempts(halves)
    of_run = run.with_columns(run=pl.lit("a"))
    assert tts.curves.halve_attempts(of_run, by="run").drop("run").equals(halves)
    with pytest.raises(ColumnsError, match="1 missing column for trajectories: 'run'"):
        tts.curves.halve_attempts(run, by="run")
    with pytest.raises(ParameterError, match=r"by names \['attempt'\]"):
        tts.curves.halve_attempts(run, by="attempt")
    with pytest.raises(DataError, match="attempt 0: is_exchangeable is false"):
        tts.curves.halve_attempts(run.with_columns(is_exchangeable=pl.col("attempt") > 1))


def test_answers_from_all_attempts_are_refused_under_levels_of_halves() -> None:
    run = simulated()
    problems = tts.select_answers(run, selectors=["oracle"], budgets=[1])
    with pytest.raises(DataError, match=r"levels are cross-fitted.*tts.curves.halve_attempts"):
        tts.level_curve(problems, levels=tts.difficulty_levels(run))


def test_what_is_impossible_is_refused() -> None:
    run = simulated()
    levels, problems = tts.difficulty_levels(run), halved(run, [1])
    with pytest.raises(ParameterError, match=r"by and replicates both name \['model'\]"):
        tts.level_curve(problems, levels=levels, by="model", replicates="model")
    with pytest.raises(ParameterError, match="by names"):
        tts.level_curve(problems, levels=levels, by="fold")
    with pytest.raises(ColumnsError, match="1 missing column for levels: 'basis'"):
        tts.level_curve(problems, levels=levels.drop("basis"))
    with pytest.raises(DataError, match="name the column that tells runs"):
        tts.level_curve(pl.concat([problems, problems]), levels=levels)
