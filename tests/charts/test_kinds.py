"""Every chart draws the tables made for it, and says what any other table of the package is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import altair as alt
import polars as pl
import pytest

import ttsframe as tts
from ttsframe import charts
from ttsframe.charts.kinds import KINDS, recognize_table
from ttsframe.errors import ColumnsError, ParameterTypeError
from ttsframe.evaluator import ArithmeticSequence, Evaluator

DRAWS: Final = {
    "scaling_curve": {"curve", "leveled", "frontier", "turns"},
    "optimal_curve": {"choices"},
    "level_bars": {"leveled"},
    "level_curves": {"leveled"},
    "complexity_curve": {"complexity"},
    "pareto_frontier": {"frontier"},
    "difficulty_histogram": {"levels"},
    "selection_gap": {"gap"},
    "step_profile": {"profile"},
    "answer_votes": {"votes"},
    "over_optimization": {"turns"},
    "ranking": {"ranking"},
    "reduction_comparison": {"metrics"},
    "reliability": {"reliability"},
    "score_distribution": {"distribution"},
    "step_values": {"steps"},
    "label_agreement": {"agreement"},
}
"""The kinds of table that each chart draws."""


def _evaluate() -> pl.DataFrame:
    task = ArithmeticSequence(seed=0)
    answers = {each.prompt: each.ground_truth for each in task.generate_batch((1, 2), 10)}
    results = Evaluator(task).evaluate(
        lambda prompt, k: [answers[prompt]] * k, (1, 2), k_values=[1], verbose=False
    )
    return pl.concat(result.to_frame() for result in results.values())


@pytest.fixture(scope="module")
def made() -> dict[str, pl.DataFrame]:
    """Return a table of every kind, as the package's own functions make it."""
    run = tts.simulate_trajectories(40, 16, seed=0, keys=True)
    levels = tts.difficulty_levels(run, n_levels=3)
    picks = ["majority_vote", "best_of_n", "oracle"]
    problems = tts.select_answers(run, selectors=picks, budgets=[1, 4, 16])
    halves = tts.curves.halve_attempts(run)
    of_halves = tts.select_answers(halves, selectors=picks[:2], budgets=[1, 8], by="fold")
    costs = tts.cost_curve(tts.curves.add_costs(problems, trajectories=run))
    rollouts = pl.DataFrame({
        "problem_id": ["a", "a", "b", "b"],
        "solution_id": [0] * 4,
        "step": [0] * 4,
        "rollout": [0, 1, 0, 1],
        "is_correct": [True, False, True, True],
    })
    steps = tts.process.estimate_steps(rollouts)
    report = tts.verifier_report(run)
    assert report.length_bias is not None
    return {
        "trajectories": run,
        "problems": problems,
        "votes": tts.tally_votes(run.filter(pl.col("problem_id") == run["problem_id"][0])),
        "curve": tts.scaling_curve(problems),
        "comparison": tts.compare(problems),
        "ranking": tts.rank(problems, n_resamples=10),
        "levels": levels,
        "leveled": tts.level_curve(of_halves, levels=levels),
        "choices": tts.curves.optimal_choices(of_halves, levels=levels),
        "frontier": tts.pareto_frontier(costs),
        "gap": tts.selection_gap(problems),
        "turns": tts.verifier.over_optimization(problems.filter(selector="best_of_n")),
        "metrics": report.metrics,
        "reliability": report.reliability,
        "distribution": report.distribution,
        "thresholds": report.thresholds,
        "length_bias": report.length_bias,
        "profile": tts.verifier.step_profile(run),
        "rollouts": rollouts,
        "steps": steps,
        "agreement": tts.process.step_agreement(steps).rollouts,
        "complexity": _evaluate(),
    }


def _draw(chart: str, table: Any, made: dict[str, pl.DataFrame]) -> alt.TopLevelMixin:
    function: Callable[..., alt.TopLevelMixin] = getattr(charts, chart)
    return function(made["curve"], table) if chart == "optimal_curve" else function(table)


def test_every_chart_and_every_kind_is_here(made: dict[str, pl.DataFrame]) -> None:
    assert sorted(DRAWS) == charts.__all__
    assert set(made) == set(KINDS)
    assert {kind.chart for kind in KINDS.values()} - {""} == {*DRAWS} - {"level_bars"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_recognized_by_its_columns(kind: str, made: dict[str, pl.DataFrame]) -> None:
    assert recognize_table(made[kind].columns) == kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chart", DRAWS)
def test_a_chart_draws_its_tables_and_names_every_other(
    chart: str, kind: str, made: dict[str, pl.DataFrame]
) -> None:
    if kind in DRAWS[chart]:
        assert sum(map(len, _draw(chart, made[kind], made).to_dict()["datasets"].values()))
        return
    with pytest.raises(ColumnsError) as caught:
        _draw(chart, made[kind].lazy(), made)
    message = str(caught.value)
    assert f"this is {KINDS[kind].text}, must be " in message
    assert "Hint: " in message
    assert "missing column" not in message


def test_the_message_says_what_to_call_first(made: dict[str, pl.DataFrame]) -> None:
    with pytest.raises(ColumnsError) as caught:
        charts.scaling_curve(made["problems"])
    assert str(caught.value) == (
        "curve: this is a table of problems (one row per problem, budget and selector), must be a "
        "curve (one row per budget and line). Hint: pass it to tts.scaling_curve(problems) first."
    )
    with pytest.raises(
        ColumnsError, match=r"select_answers\(.*\) and its result to tts.selection_gap"
    ):
        charts.selection_gap(made["trajectories"])
    with pytest.raises(ColumnsError, match=r"charts.selection_gap draws it; tts.scaling_curve\("):
        charts.scaling_curve(made["gap"])


def test_a_report_of_several_tables_is_answered_with_the_one_to_pass() -> None:
    run = tts.simulate_trajectories(20, 4, seed=0, keys=True)
    with pytest.raises(ParameterTypeError, match=r"VerifierReport.*pass its \.metrics$"):
        charts.reduction_comparison(tts.verifier_report(run))  # type: ignore[arg-type]


def test_an_unknown_table_still_names_the_missing_columns() -> None:
    with pytest.raises(ColumnsError, match="missing columns for curve: 'selector'"):
        charts.scaling_curve(pl.DataFrame({"a": [1]}))
