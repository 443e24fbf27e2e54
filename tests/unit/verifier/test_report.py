"""Over-optimisation under a verifier whose flaw is known, and the report of all tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError

BUDGETS = [2**i for i in range(9)]
ACCURACY, STRENGTH, HACK_SHARE, HACK_SCORE = 0.4, 1.0, 0.02, 4.0


def flawed_run(n_problems: int, n_attempts: int, seed: int, hack_share: float) -> pl.DataFrame:
    """Return attempts whose verifier is good, but for wrong attempts that fool it.

    Scores are normal about `STRENGTH` for right attempts and about 0 for wrong ones; but a
    `hack_share` of the wrong ones scores about `HACK_SCORE`. The more attempts, the surer one of
    those is among them.
    """
    rng = np.random.default_rng(seed)
    shape = (n_problems, n_attempts)
    is_correct = rng.random(shape) < ACCURACY
    score = rng.normal(size=shape) + STRENGTH * is_correct
    is_hack = ~is_correct & (rng.random(shape) < hack_share)
    score = np.where(is_hack, HACK_SCORE + rng.normal(size=shape) / 2, score)
    return pl.DataFrame({
        "problem_id": np.repeat(np.arange(n_problems), n_attempts),
        "attempt": np.tile(np.arange(n_attempts, dtype=np.uint32), n_problems),
        "answer_key": np.where(is_correct, "right", "wrong").ravel(),
        "is_correct": is_correct.ravel(),
        "score": score.ravel(),
    })


def expected_best_of_n(n: int, hack_share: float) -> float:
    """Integrate the chance that the highest of n scores of `flawed_run` is a right attempt's."""
    s = np.linspace(-8, 10, 20_001)

    def below(centre: float, width: float = 1.0) -> Any:
        return np.array([0.5 * math.erfc((centre - x) / width / math.sqrt(2)) for x in s])

    right = below(STRENGTH)
    wrong = (1 - hack_share) * below(0.0) + hack_share * below(HACK_SCORE, 0.5)
    one = ACCURACY * right + (1 - ACCURACY) * wrong
    density = np.gradient(right, s)
    return float(np.trapezoid(n * ACCURACY * density * one ** (n - 1), s))


def turns_of(run: pl.DataFrame, **options: Any) -> pl.DataFrame:
    return tts.verifier.over_optimization(tts.best_of_n(run, budgets=BUDGETS, **options), **options)


def test_best_of_n_declines_under_a_flawed_verifier_as_the_mechanism_predicts() -> None:
    expected = [expected_best_of_n(n, HACK_SHARE) for n in BUDGETS]
    peak = BUDGETS[int(np.argmax(expected))]
    turns = turns_of(flawed_run(400, 256, 0, HACK_SHARE))
    for row, accuracy in zip(turns.iter_rows(named=True), expected, strict=True):
        assert abs(row["accuracy"] - accuracy) < 4 * math.sqrt(accuracy * (1 - accuracy) / 400)
    last = turns.row(-1, named=True)
    assert peak / 2 <= last["peak_budget"] <= peak * 2
    assert last["is_turned_down"]
    assert last["drop_ci_low"] < max(expected) - expected[-1] < last["drop_ci_high"]
    assert last["drop_p_value"] < 1e-6


def test_best_of_n_does_not_decline_under_an_unbiased_verifier() -> None:
    turns = turns_of(flawed_run(400, 256, 1, 0.0))
    assert not turns["is_turned_down"].any()
    assert turns["peak_budget"][-1] >= 64


def test_a_flat_curve_is_seldom_taken_for_a_fall() -> None:
    rng = np.random.default_rng(2)
    n_runs, n_problems = 400, 60
    values = rng.random((n_runs, n_problems, 9)) < rng.random((n_runs, n_problems, 1))
    run, problem, _ = np.indices(values.shape)
    problems = pl.DataFrame({
        "run": run.ravel(),
        "problem_id": problem.ravel(),
        "budget": np.tile(BUDGETS, n_runs * n_problems),
        "value": values.ravel().astype(float),
    }).with_columns(status=pl.lit("ok"), selector=pl.lit("x"), reduction=pl.lit("y"))
    last = tts.verifier.over_optimization(problems, by="run").filter(budget=256)
    assert last["drop"].mean() > 0.05
    assert last["is_turned_down"].mean() <= 0.025


def test_levels_and_reductions_have_curves_of_their_own() -> None:
    parts = {"easy": 0.0, "hard": 0.05}
    run = pl.concat([
        flawed_run(200, 256, 3, share).with_columns(level=pl.lit(level))
        for level, share in parts.items()
    ])
    turns = turns_of(run, by=["level"])
    last = turns.filter(budget=256)
    assert dict(last.select("level", "is_turned_down").iter_rows()) == {"easy": False, "hard": True}
    alone = turns_of(run.filter(level="hard"))
    assert_frame_equal(turns.filter(level="hard").drop("level"), alone)


def test_curves_are_those_of_scaling_curve() -> None:
    problems = tts.best_of_n(flawed_run(30, 8, 4, 0.1), budgets=[1, 4, 8, 16])
    turns = tts.verifier.over_optimization(problems)
    curve = tts.scaling_curve(problems)
    assert_frame_equal(turns.select(curve.columns), curve)
    # No problem has 16 attempts, so this budget is left out of what the others share.
    assert turns["n_problems"].to_list() == [30, 30, 30, 0]
    full = tts.verifier.over_optimization(problems.filter(pl.col("budget") < 16))
    assert set(full["n_problems"]) == {30}
    assert full["drop"].to_list()[0] == 0.0


def test_differences_of_expectations_are_read_too() -> None:
    run = flawed_run(60, 64, 5, HACK_SHARE)
    expected = tts.expected_accuracy(run, selectors="best_of_n", budgets=BUDGETS[:7])
    turns = tts.verifier.over_optimization(expected)
    assert set(turns["subsets"]) == {"all"}
    assert turns["peak_budget"][-1] in {8, 16, 32}


def test_one_problem_shows_no_decline() -> None:
    problems = pl.DataFrame({
        "problem_id": ["p"] * 2,
        "budget": [1, 2],
        "value": [1.0, 0.0],
        "status": ["ok"] * 2,
        "selector": ["best_of_n"] * 2,
        "reduction": ["last"] * 2,
    })
    row = tts.verifier.over_optimization(problems).row(1, named=True)
    assert (row["drop"], row["peak_budget"]) == (1.0, 1)
    assert row["drop_ci_low"] is row["drop_p_value"] is row["is_turned_down"] is None


def test_a_budget_that_no_problem_reaches_costs_itself_alone() -> None:
    run = tts.simulate_trajectories(20, 4, seed=3, keys=True)
    picked = [tts.best_of_n(run, budgets=budgets) for budgets in ([1, 2, 4], [1, 2, 4, 8])]
    reached, beyond = (tts.verifier.over_optimization(problems) for problems in picked)
    assert_frame_equal(beyond.head(3), reached)
    assert beyond.row(3, named=True)["peak_budget"] is None
    assert reached["peak_budget"].null_count() == 0
    report = tts.build_report(run, budgets=[1, 2, 4, 8], sections="verifier")
    assert "Best-of-n accuracy" in report.to_html()


def test_several_runs_without_by_are_refused() -> None:
    problems = tts.best_of_n(flawed_run(5, 4, 0, 0.0), budgets=[1, 4])
    with pytest.raises(DataError, match="rows on one curve"):
        tts.verifier.over_optimization(pl.concat([problems, problems]))
    with pytest.raises(ParameterError, match="by names"):
        tts.verifier.over_optimization(problems, by="drop")


@pytest.mark.parametrize("lazy", [False, True])
def test_a_report_is_its_tables(lazy: bool) -> None:
    run = tts.simulate_trajectories(24, 8, seed=6, keys=True).with_columns(
        level=pl.col("problem_id").str.tail(1).cast(pl.Int64) % 2,
        first_bad=pl.when("is_correct").then(-1).otherwise(1),
    )
    names = ["last", "prod"]
    report = tts.verifier_report(
        run.lazy() if lazy else run, reductions=names, by="level", labels="first_bad", n_bins=5
    )
    options = {"reductions": names, "by": "level"}
    expected = {
        "metrics": tts.verifier_metrics(run, n_bins=5, **options),
        "reliability": tts.verifier.reliability_curve(
            run, n_bins=5, binning=["equal_width", "equal_mass"], **options
        ),
        "distribution": tts.verifier.score_distribution(run, **options),
        "thresholds": tts.verifier.best_threshold(run, **options),
        "length_bias": tts.verifier.length_bias(run, **options),
        "profile": tts.verifier.step_profile(run, n_bins=5, same_problems=True, by="level"),
        "over_optimization": tts.verifier.over_optimization(
            tts.best_of_n(run, budgets=[1, 2, 4, 8], **options), by="level"
        ),
        "first_errors": tts.verifier.processbench_f1(run, labels="first_bad", by="level"),
    }
    for name, table in expected.items():
        assert_frame_equal(getattr(report, name), table, rel_tol=1e-12)


def test_a_report_holds_what_the_run_has() -> None:
    run = flawed_run(10, 4, 0, 0.1)
    report = tts.verifier_report(run.drop("attempt"))
    assert report.over_optimization is report.profile is report.length_bias is None
    assert report.first_errors is None
    assert report.metrics.height == 1
    whole = tts.verifier_report(run)
    assert whole.over_optimization is not None
    assert whole.over_optimization["budget"].to_list() == [1, 2, 4]


def test_columns_of_a_caller_may_have_the_names_of_reductions() -> None:
    run = tts.simulate_trajectories(12, 4, seed=2, keys=True)
    level = pl.col("problem_id").str.tail(1).cast(pl.Int64) % 2
    names = ["last", "prod"]
    plain = tts.verifier_report(run.with_columns(level=level), reductions=names, by="level")
    taken = tts.verifier_report(run.with_columns(last=level), reductions=names, by="last")
    for name in ("metrics", "thresholds", "over_optimization", "profile"):
        expected = getattr(plain, name).rename({"level": "last"})
        assert_frame_equal(getattr(taken, name), expected)


def test_a_problem_in_two_clusters_is_named_as_the_caller_names_it() -> None:
    run = flawed_run(2, 4, 0, 0.0).with_columns(
        problem_id=pl.format("p{}", "problem_id"), subject=pl.col("attempt").cast(pl.String)
    )
    with pytest.raises(DataError, match="problem_id 'p0'"):
        tts.verifier_report(run, cluster="subject")


def test_a_report_of_nothing_has_empty_tables() -> None:
    run = tts.simulate_trajectories(2, 2, seed=1, keys=True).clear()
    report = tts.verifier_report(run)
    assert report.metrics.height == report.reliability.height == 0
    assert report.profile is not None
    assert report.profile.height == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_bins": 0}, ParameterError, "n_bins == 0"),
        ({"seed": -1}, ParameterError, "seed == -1"),
        ({"budgets": [0]}, ParameterError, "budgets == 0"),
        ({"labels": "first_bad"}, ColumnsError, "'first_bad'"),
        ({"by": "position"}, ParameterError, "by names"),
        ({"by": "model"}, ColumnsError, "'model'"),
    ],
)
def test_what_cannot_be_used(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tts.verifier_report(flawed_run(4, 4, 0, 0.0), **options)
