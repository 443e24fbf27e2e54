"""The tables of a report's further sections: what public functions make, where a run allows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError

SELECTORS = ["majority_vote", "weighted_vote", "best_of_n", "oracle"]
FURTHER = ["selection_gap", "difficulty", "compute_optimal", "cost", "verifier"]
TREE = "attempts of a tree search depend on each other"


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    return tts.simulate_trajectories(60, 16, seed=5, keys=True)


@pytest.fixture(scope="module")
def report(run: pl.DataFrame) -> tts.Report:
    return tts.build_report(run)


@pytest.fixture(scope="module")
def problems(run: pl.DataFrame) -> pl.DataFrame:
    return tts.select_answers(run, selectors=SELECTORS, budgets=[1, 2, 4, 8, 16])


@pytest.fixture(scope="module")
def halved(run: pl.DataFrame) -> pl.DataFrame:
    halves = tts.curves.halve_attempts(run)
    return tts.select_answers(halves, selectors=SELECTORS, budgets=[1, 2, 4, 8], by="fold")


def test_the_gap_is_that_of_the_curve(report: tts.Report, problems: pl.DataFrame) -> None:
    expected = tts.selection_gap(problems)
    assert_frame_equal(report.selection_gap, expected, check_row_order=False)
    order = report.selection_gap["selector"].unique(maintain_order=True).to_list()
    assert order == SELECTORS[:3]


def test_levels_judge_the_half_that_did_not_decide_them(
    report: tts.Report, run: pl.DataFrame, halved: pl.DataFrame
) -> None:
    levels = tts.difficulty_levels(run)
    assert_frame_equal(report.levels, levels)
    assert set(levels["basis"]) == {"cross_fitted"}
    expected = tts.level_curve(halved, levels=levels)
    assert_frame_equal(report.level_curve, expected, check_row_order=False)
    assert report.level_curve["budget"].max() == 8


def test_the_honest_choice_stands_beside_the_optimistic_one_and_its_strategies(
    report: tts.Report, run: pl.DataFrame, halved: pl.DataFrame
) -> None:
    levels = tts.difficulty_levels(run)
    expected = pl.concat([
        tts.scaling_curve(halved, replicates="fold"),
        tts.optimal_curve(halved, levels=levels).drop("basis", "caveat"),
    ])
    assert_frame_equal(report.optimal, expected, check_row_order=False)
    choices = tts.curves.optimal_choices(halved, levels=levels)
    assert_frame_equal(report.choices, choices, check_row_order=False)
    lines = report.optimal["selector"].unique(maintain_order=True).to_list()
    assert lines == [*SELECTORS, "compute_optimal", "compute_optimal_in_sample"]


def test_cost_is_in_tokens_and_the_oracle_is_no_strategy(
    report: tts.Report, run: pl.DataFrame, problems: pl.DataFrame
) -> None:
    strategies = problems.filter(pl.col("selector") != "oracle")
    priced = tts.curves.add_costs(strategies, trajectories=run)
    expected = tts.pareto_frontier(tts.cost_curve(priced))
    assert_frame_equal(report.cost, expected, check_row_order=False)
    assert set(report.cost["budget_unit"]) == {"tokens"}
    gains = tts.curves.efficiency_gain(priced)
    assert_frame_equal(report.efficiency, gains, check_row_order=False)


def test_the_report_card_reads_what_the_curves_read_and_compares_the_rest(
    report: tts.Report, run: pl.DataFrame, problems: pl.DataFrame
) -> None:
    card = report.verifier
    alone = tts.verifier_report(run.drop("attempt"))
    compared = tts.verifier_metrics(run, reductions=["last", "min", "mean", "prod"])
    assert_frame_equal(card.metrics, pl.concat([alone.metrics, compared]), check_row_order=False)
    for name in ("reliability", "distribution", "thresholds", "length_bias", "profile"):
        assert_frame_equal(getattr(card, name), getattr(alone, name))
    turns = tts.verifier.over_optimization(problems.filter(selector="best_of_n"))
    assert_frame_equal(card.over_optimization, turns)
    assert_frame_equal(report.profile, tts.verifier.step_profile(run, same_problems=True))


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (lambda t: t, {}),
        (
            lambda t: t.drop("gold", "gold_key", "is_correct"),
            dict.fromkeys(FURTHER, "no gold answers"),
        ),
        (
            lambda t: t.drop("step_scores", "score"),
            {"compute_optimal": "a single strategy", "verifier": "no scores"},
        ),
        (
            lambda t: t.filter(pl.col("attempt") < 15),
            dict.fromkeys(FURTHER[1:3], "fewer than 16 attempts per problem"),
        ),
        (
            lambda t: t.filter(pl.col("problem_id") < "sim-000014"),
            dict.fromkeys(FURTHER[1:3], "fewer than 15 problems"),
        ),
        (
            lambda t: t.with_columns(is_exchangeable=pl.lit(value=False)),
            {
                "difficulty": TREE,
                "compute_optimal": TREE,
                "cost": "a tree search pays for branches",
            },
        ),
        (lambda t: t.drop("n_tokens"), {"cost": "no token counts (n_tokens)"}),
        (
            lambda t: t.with_columns(n_tokens=pl.col("n_tokens").replace_strict({}, default=None)),
            {"cost": "no token counts (n_tokens)"},
        ),
        (
            lambda t: t.with_columns(n_tokens=pl.when(pl.col("attempt") != 3).then("n_tokens")),
            {"cost": "too many attempts have no token count"},
        ),
        (
            # An attempt without an answer is wrong whatever was recorded.
            lambda t: t.with_columns(
                pl.col("answer", "answer_key").fill_null("3:1"), is_correct=pl.lit(value=True)
            ),
            {"verifier": "no attempt is wrong"},
        ),
        (
            lambda t: t.with_columns(is_correct=pl.lit(value=False)),
            {"verifier": "no attempt is right"},
        ),
    ],
)
def test_what_a_run_does_not_allow_is_left_out_with_the_reason(
    run: pl.DataFrame,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    reasons: dict[str, str],
) -> None:
    report = tts.build_report(change(run), sections=FURTHER)
    assert set(report.omitted) & set(FURTHER) == set(reasons)
    for name, reason in reasons.items():
        assert report.omitted[name].startswith(reason)
    tables = {
        "selection_gap": report.selection_gap,
        "difficulty": report.level_curve,
        "compute_optimal": report.optimal,
        "cost": report.cost,
        "verifier": report.verifier,
    }
    assert {name for name, table in tables.items() if table is None} == set(reasons)
    assert set(report.answers()) >= {"loaded", "accuracy", *(set(FURTHER) - set(reasons))}


def test_attempts_of_no_tokens_have_no_place_on_a_log_axis(run: pl.DataFrame) -> None:
    empty = run.with_columns(n_tokens=pl.when(pl.col("attempt") > 0).then("n_tokens").otherwise(0))
    report = tts.build_report(empty, sections="cost")
    assert report.cost["nominal_budget"].unique().sort().to_list() == [2, 4, 8, 16]
    assert report.efficiency is None
    assert "accuracy-by-tokens" in report.to_html()


def test_each_run_gets_what_it_allows_as_if_it_were_alone(run: pl.DataFrame) -> None:
    small = tts.simulate_trajectories(20, 32, seed=6, keys=True)
    ungraded = run.with_columns(is_correct=pl.lit(None, pl.Boolean))
    runs = {"a": run, "b": small, "c": ungraded, "d": run.filter(pl.col("attempt") < 3)}
    both = pl.concat([table.with_columns(model=pl.lit(name)) for name, table in runs.items()])
    report = tts.build_report(both, by="model", sections=FURTHER)
    assert report.omitted["verifier"] == "no gold answers (c)"
    assert report.omitted["difficulty"] == (
        "no gold answers (c); fewer than 16 attempts per problem (d)"
    )
    assert report.levels.group_by("model").agg(pl.col("n_levels").max()).sort("model").rows() == [
        ("a", 5),
        ("b", 3),
    ]
    for name in ("a", "b", "d"):
        alone = tts.build_report(runs[name], sections=FURTHER)
        for field in ("selection_gap", "level_curve", "optimal", "choices", "cost", "efficiency"):
            expected, table = getattr(alone, field), getattr(report, field).filter(model=name)
            if expected is None:
                assert table.is_empty()
            else:
                assert_frame_equal(table.drop("model"), expected, check_row_order=False)
        for field in ("metrics", "over_optimization"):
            table = getattr(report.verifier, field).filter(model=name).drop("model")
            assert_frame_equal(table, getattr(alone.verifier, field), check_row_order=False)


def test_strategies_compete_on_the_problems_that_all_of_them_have(run: pl.DataFrame) -> None:
    is_unscored = pl.col("problem_id") < "sim-000003"
    unscored = run.with_columns(score=pl.when(~is_unscored).then("score"))
    report = tts.build_report(unscored)
    alone = tts.build_report(run.filter(~is_unscored), sections="cost")
    for table in (report.curve, report.selection_gap, report.cost, report.optimal):
        assert table["n_problems"].unique().to_list() == [57]
        assert table["n_unscored"].unique().to_list() == [3]
    assert report.incomplete is None
    assert report.notes == (
        "Every line is averaged over the same 57 of 60 problems (left out: 3 unscored).",
    )
    (answer,) = report.answers()["accuracy"]
    assert "with 16 attempts at 57 of 60 problems (left out: 3 unscored), " in answer
    limit = tts.curves.majority_limit(tts.score_trajectories(unscored))
    assert_frame_equal(report.majority_limit, limit)
    assert f"on {limit['n_undecided'][0]} of 60 problems, no answer is clearly ahead." in answer
    names = ["selector", "nominal_budget", "budget", "accuracy", "ci_low", "is_efficient"]
    assert_frame_equal(report.cost.select(names), alone.cost.select(names), check_row_order=False)


def test_a_strategy_that_problems_are_without_does_not_compete(run: pl.DataFrame) -> None:
    is_negative = pl.col("problem_id") >= "sim-000010"
    logits = run.with_columns(score=pl.when(is_negative).then(-1.0).otherwise("score"))
    report = tts.build_report(logits)
    for table in (
        report.curve,
        report.selection_gap,
        report.cost,
        report.optimal,
        report.choices,
        report.level_curve,
    ):
        assert "weighted_vote" not in table["selector"].to_list()
        assert "best_of_n" in table["selector"].to_list()
    alone = tts.build_report(logits.filter(~is_negative))
    shown = report.incomplete.drop("of_selector", "of_reduction")
    assert set(shown["selector"]) == {"majority_vote", "weighted_vote", "oracle"}
    assert shown["n_problems"].unique().to_list() == [10]
    assert shown["n_undefined"].unique().to_list() == [50]
    names = ["selector", "reduction", "budget", "accuracy", "ci_low", "ci_high"]
    expected = alone.curve.filter(pl.col("selector") != "best_of_n")
    assert_frame_equal(shown.select(names), expected.select(names), check_row_order=False)
    (answer,) = report.answers()["accuracy"]
    assert "Weighted vote (score) has results for only 10 of 60 problems (left out: 50" in answer
    assert "oracle" in answer.split("has results for only")[1]
    text = report.to_html()
    left = "Left out, because more than one in ten problems has no result for it: weighted vote (score)."
    assert text.count(left) == 4
    assert "weighted vote" not in "".join(
        report.answers()["cost"] + report.answers()["selection_gap"]
    )


def test_repetitions_are_averaged_or_left_out(run: pl.DataFrame) -> None:
    other = tts.simulate_trajectories(60, 16, seed=7, keys=True)
    seeds = pl.concat([run.with_columns(seed=pl.lit(0)), other.with_columns(seed=pl.lit(1))])
    report = tts.build_report(seeds, replicates="seed", sections=FURTHER)
    assert report.omitted == {"compute_optimal": "each replicate of a run has its own levels"}
    alone = [
        tts.build_report(table, sections="selection_gap").selection_gap["selection_gap"]
        for table in (run, other)
    ]
    mean = (alone[0] + alone[1]) / 2
    assert report.selection_gap["selection_gap"].to_list() == pytest.approx(mean.to_list())
    assert report.selection_gap["n_problems"].unique().to_list() == [60]
    assert report.verifier.metrics["n_attempts"].unique().to_list() == [1920]
    assert report.efficiency is None
    assert report.verifier.over_optimization is None


def test_a_table_that_cannot_be_made_costs_its_section_alone(run: pl.DataFrame) -> None:
    report = tts.build_report(run.with_columns(level=pl.lit("easy")), by="level", sections=FURTHER)
    assert set(report.omitted) == {"difficulty", "compute_optimal"}
    assert "'level'" in report.omitted["difficulty"]
    assert report.cost.height == 15


@pytest.mark.parametrize("name", ["n_right", "attempts_min", "budget"])
def test_a_run_column_named_like_a_column_of_every_report_is_refused(
    run: pl.DataFrame, name: str
) -> None:
    with pytest.raises(ParameterError, match=f"by names \\['{name}'\\]"):
        tts.build_report(run.with_columns(pl.lit("x").alias(name)), by=name)


@pytest.mark.parametrize("keys", [{}, {"by": "model"}])
def test_an_unexpected_error_is_raised_and_never_a_footnote(
    run: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, keys: dict[str, str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("a bug")

    monkeypatch.setattr("ttsframe.report.sections.cost.cost_curve", fail)
    with pytest.raises(DataError, match="a bug"):
        tts.build_report(run.with_columns(model=pl.lit("m")), sections="cost", **keys)


def test_sections_that_are_not_asked_for_are_not_made(run: pl.DataFrame) -> None:
    report = tts.build_report(run, sections=["cost", "votes"])
    assert report.cost is not None
    assert report.example is not None
    assert report.verifier is report.levels is report.selection_gap is report.profile is None
    assert report.omitted == {}
    assert list(report.answers()) == ["loaded", "votes", "accuracy", "cost"]
    with pytest.raises(ParameterError, match="sections == 'costs'"):
        tts.build_report(run, sections="costs")


@pytest.mark.parametrize(
    ("options", "budgets"),
    [
        ({"budgets": [3, 8, 16]}, [3, 8]),
        ({"budgets": [1]}, [1]),
        ({"selectors": "borda_vote"}, [1, 2, 4, 8]),
        ({"reductions": ["min", "prod"]}, [1, 2, 4, 8]),
    ],
)
def test_what_was_chosen_is_read_in_every_section(
    run: pl.DataFrame, options: dict[str, Any], budgets: list[int]
) -> None:
    report = tts.build_report(run, **options, sections=FURTHER)
    assert report.omitted == {}
    lines = set(report.curve.select("selector", "reduction").rows())
    assert report.level_curve["budget"].unique().sort().to_list() == budgets
    assert set(report.level_curve.select("selector", "reduction").rows()) == lines
    strategies = lines - {("oracle", None)}
    assert set(report.selection_gap.select("selector", "reduction").rows()) == strategies
    assert set(report.cost.select("selector", "reduction").rows()) == strategies


def test_runs_may_be_told_apart_by_dates_and_not_by_lists() -> None:
    run = tts.simulate_trajectories(20, 4, seed=1, keys=True)
    dated = pl.concat([run.with_columns(day=pl.date(2024, month, 1)) for month in (1, 2)])
    page = tts.build_report(dated, by="day").to_html()
    assert "2024-01-01" in page
    assert "2024-02-01" in page
    with pytest.raises(ColumnsError, match=r"'step_scores' is List.*must be a text"):
        tts.build_report(run, by="step_scores")
    for name in ("is_correct", "is_exchangeable", "attempt"):
        with pytest.raises(ParameterError, match=rf"by names .'{name}'.*columns of the result"):
            tts.build_report(run, by=name)


def test_partial_grades_can_leave_the_oracle_alone() -> None:
    run = tts.simulate_trajectories(5, 8, seed=0, keys=True).drop("gold", "gold_key")
    is_ungraded = pl.int_range(pl.len()) % 3 == 0
    graded = run.with_columns(is_correct=pl.when(~is_ungraded).then("is_correct"))
    report = tts.build_report(graded, sections="selection_gap")
    assert report.omitted["selection_gap"] == "no selector but the oracle has an accuracy"
    assert report.omitted["selection_gap"] in report.to_html()


def test_no_budget_within_half_of_the_attempts(run: pl.DataFrame) -> None:
    report = tts.build_report(run, budgets=12, sections="difficulty")
    assert report.omitted["difficulty"] == "no budget within half of the attempts"
