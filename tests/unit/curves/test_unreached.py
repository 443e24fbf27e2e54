"""A budget above the number of attempts has an empty row, and takes nothing from the other budgets."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe import charts
from ttsframe.defaults import note_fewer_problems
from ttsframe.errors import FewProblemsWarning


@pytest.fixture(scope="module")
def attempts() -> pl.DataFrame:
    run = tts.simulate_trajectories(12, 4, seed=3).pipe(tts.score_trajectories)
    first = run["problem_id"].unique().sort()[:2].implode()
    # Two problems have two attempts only: they are short at 4, like all of them at 8.
    return run.filter(~pl.col("problem_id").is_in(first) | (pl.col("attempt") < 2))


def curve_at(attempts: pl.DataFrame, budgets: list[int], **options: object) -> pl.DataFrame:
    problems = attempts.pipe(tts.select_answers, budgets=budgets)
    return problems.pipe(tts.scaling_curve, **options)


def test_the_smaller_budgets_are_as_without_it(attempts: pl.DataFrame) -> None:
    with_it, without = curve_at(attempts, [1, 4, 8]), curve_at(attempts, [1, 4])
    assert_frame_equal(with_it.filter(pl.col("budget") < 8), without)
    assert set(without["n_problems"]) == {10}
    empty = with_it.filter(budget=8)
    assert empty.select("accuracy", "ci_low", "ci_high").null_count().row(0) == (3, 3, 3)
    assert set(empty["n_problems"]) == {0}
    assert set(empty["n_short"]) == {12}


def test_one_problem_that_reaches_a_budget_is_enough_to_ask_for_it(attempts: pl.DataFrame) -> None:
    longer = attempts["problem_id"].max()
    one = attempts.filter(problem_id=longer).with_columns(pl.col("attempt") + 4)
    curve = curve_at(pl.concat([attempts, one]), [1, 4, 8])
    assert set(curve["n_problems"]) == {1}
    (note,) = note_fewer_problems(curve, ())
    assert note.startswith("Only 1 of 12 problems are averaged")


def test_only_the_run_that_lacks_it_has_an_empty_row(attempts: pl.DataFrame) -> None:
    runs = pl.concat([
        attempts.with_columns(model=pl.lit("a")),
        attempts.filter(pl.col("attempt") < 2).with_columns(model=pl.lit("b")),
    ])
    problems = runs.pipe(tts.select_answers, budgets=[1, 4], by="model")
    curve = problems.pipe(tts.scaling_curve, by="model")
    counts = {(row["model"], row["budget"]): row["n_problems"] for row in curve.to_dicts()}
    assert counts == {("a", 1): 10, ("a", 4): 10, ("b", 1): 12, ("b", 4): 0}
    (note,) = note_fewer_problems(curve, ("model",))
    assert note.startswith("Budget 4: no problem of b has so many attempts")
    assert note.endswith("The other budgets are averaged without it.")


def test_replicates_and_levels_do_so_too(attempts: pl.DataFrame) -> None:
    seeds = pl.concat([attempts.with_columns(seed=pl.lit(seed)) for seed in (1, 2)])
    problems = seeds.pipe(tts.select_answers, budgets=[1, 2, 8], by="seed")
    curve = problems.pipe(tts.scaling_curve, replicates="seed")
    assert curve.sort("budget")["n_problems"].unique(maintain_order=True).to_list() == [12, 0]
    levels = attempts.select("problem_id", fold=None, level=1, n_levels=1, basis=pl.lit("given"))
    by_level = tts.level_curve(
        attempts.pipe(tts.select_answers, budgets=[1, 2, 8]),
        levels=levels.unique().cast({"fold": pl.UInt32, "level": pl.UInt32, "n_levels": pl.UInt32}),
    )
    assert set(by_level.filter(pl.col("budget") < 8)["n_problems"]) == {12}


def test_a_note_names_only_what_there_is(attempts: pl.DataFrame) -> None:
    assert note_fewer_problems(curve_at(attempts, [1, 2]), ()) == []
    (note,) = note_fewer_problems(curve_at(attempts, [8, 16]), ())
    assert note == "Budget 8 and 16: no problem has so many attempts, so no number is shown."


def _short_run() -> pl.DataFrame:
    """Return answers of 40 problems, of which 10 have 8 attempts and 30 have 4."""
    run = tts.simulate_trajectories(40, 8, seed=1, keys=True)
    return run.filter((pl.col("attempt") < 4) | (pl.col("problem_id") < "sim-000010"))


def test_a_curve_of_fewer_than_half_of_the_problems_warns() -> None:
    problems = tts.select_answers(_short_run(), budgets=[1, 4, 8])
    with pytest.warns(FewProblemsWarning, match=r"averages 10 of 40 problems, .*30 short.*budgets"):
        eager = tts.scaling_curve(problems)
    lazy = tts.scaling_curve(problems.lazy()).collect()
    assert_frame_equal(eager, lazy)
    tts.scaling_curve(problems, include="available")
    tts.scaling_curve(tts.select_answers(_short_run(), budgets=[1, 4]))
    (left_out,) = [
        line for line in charts.scaling_curve(eager).title.subtitle if "Left out" in line
    ]
    assert "fewer than half of the problems" in left_out


def test_a_report_says_that_most_problems_are_left_out() -> None:
    report = tts.build_report(_short_run(), budgets=[1, 4, 8], sections="accuracy")
    (note,) = report.notes
    assert "the same 10 of 40 problems (left out: 30 short), fewer than half, and" in note
