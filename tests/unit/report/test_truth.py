"""Sentences agree with their tables, and nothing compares different problems."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.report.parts import Context
from ttsframe.report.sections import compute_optimal, cost, difficulty, verifier
from ttsframe.report.wording import list_names, name_line


def attempts_of(rows: dict[str, str], right: str = "1") -> pl.DataFrame:
    """Make attempts from a text of answers per problem; '-' is no answer."""
    return pl.DataFrame([
        {
            "problem_id": problem,
            "attempt": i,
            "answer": None if answer == "-" else answer,
            "answer_key": None if answer == "-" else answer,
            "is_correct": answer == right,
            "gold": right,
        }
        for problem, answers in rows.items()
        for i, answer in enumerate(answers)
    ])


LOST = "wins and is wrong; the right one, 1, is"


def only(report: tts.Report, name: Any) -> str:
    (sentence,) = report.answers()[name]
    return sentence


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            "2211",
            f"2 answers tie with 2 votes each; 2, which was given first, {LOST} one of those that tie.",
        ),
        ("1122", "2 answers tie with 2 votes each; 1, which was given first, wins and is right."),
        ("2221", "The most frequent answer, 2, has 3 votes and is wrong; the right one, 1, has 1."),
        ("2223", "The most frequent answer, 2, has 3 votes and is wrong; no attempt is right."),
    ],
)  # fmt: skip
def test_a_tied_vote_is_said_to_be_tied(answers: str, said: str) -> None:
    report = tts.build_report(attempts_of({"a": answers, "b": "1111"}), sections="votes")
    assert only(report, "votes") == said


def test_attempts_of_one_answer_that_are_graded_differently_are_not_denied() -> None:
    run = attempts_of({"a": "2222", "b": "1111"}).with_columns(
        is_correct=(pl.col("problem_id") == "b") | (pl.col("attempt") == 3)
    )
    other = run.with_columns(
        answer_key=pl
        .when(pl.col("problem_id") == "a", pl.col("attempt") == 1)
        .then(pl.lit("3"))
        .otherwise("answer_key")
    )
    report = tts.build_report(other, sections="votes")
    assert "although" not in report.example.reason
    assert report.example.n_right == 1
    assert only(report, "votes") == (
        "The most frequent answer, 2, has 3 votes and is wrong by the grade of its first attempt; 1 "
        "attempt with the same answer as a wrong one, or without an answer, is graded as right."
    )


def test_undivided_votes_are_not_called_divided() -> None:
    report = tts.build_report(attempts_of({"a": "1", "b": "2"}), sections="votes")
    assert report.example.reason == "No vote is divided; this is the first problem."


def test_lines_that_tie_are_named_together() -> None:
    run = attempts_of({"a": "1121", "b": "2212", "c": "1111"}).with_columns(score=pl.lit(0.5))
    report = tts.build_report(run, sections=["selection_gap"])
    names = "majority vote, weighted vote (score) and best of n (score)"
    assert f"{names} tie: each answers 66.7% of 3 problems" in only(report, "selection_gap")
    accuracy = only(report, "accuracy")
    assert f"with 4 attempts, {names} are at 66.7% (20.8 to 93.9), oracle 100.0%" in accuracy


def test_one_attempt_leaves_nothing_to_choose_from() -> None:
    report = tts.build_report(attempts_of({"a": "1", "b": "2"}), sections="selection_gap")
    assert only(report, "selection_gap") == (
        "With 1 attempt there is nothing to choose from: 50.0% of 2 problems are answered correctly, "
        "and 50.0% are not."
    )


def test_levels_that_are_noise_are_said_to_be() -> None:
    run = tts.simulate_trajectories(60, 16, seed=3, keys=True, missing_share=0.0)
    alike = run.with_columns(
        is_correct=(pl.col("problem_id").hash(1) + pl.col("attempt").hash(2)) % 2 == 0
    )
    report = tts.build_report(alike, sections="difficulty")
    row = report.level_ranking.row(0, named=True)
    assert row["n_problems"] == 60
    assert row["p_value"] > 0.05
    text = only(report, "difficulty")
    assert text.startswith("The levels say nothing about these problems: the two halves of the")
    assert text.endswith("so differences between levels are chance.")
    assert "easiest" not in text
    constant = tts.build_report(
        alike.with_columns(is_correct=pl.col("attempt") % 4 < 2), sections="difficulty"
    )
    assert constant.level_ranking["p_value"].to_list() == [None]


@pytest.mark.parametrize("correlation", [-0.4, 0.0, 0.2, 0.9])
def test_the_test_of_levels_is_that_of_a_rank_correlation(correlation: float) -> None:
    from scipy import stats

    inputs = pl.Series([{"correlation": correlation, "n_problems": 40}])
    (p_value,) = difficulty._test_correlation(inputs)
    t = correlation * math.sqrt(38 / (1 - correlation**2))
    assert p_value == pytest.approx(stats.t.sf(t, 38), rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peak_budget": 16, "drop": 0.0}, "does not decline: it is highest with 16 attempts"),
        (
            {"drop": 0.0},
            "does not decline: with 16 attempts it is as high as at its peak, with 4 attempts",
        ),
        ({}, "is 2.0 points (-6.5 to 10.4) lower with 16 attempts than at its peak, with 4: within chance"),
        (
            {"is_turned_down": True, "drop_ci_low": 0.01},
            "peaks at 4 attempts and declines by 2.0 points (1.0 to 10.4) up to 16",
        ),
    ],
)  # fmt: skip
def test_a_drop_is_said_with_its_interval(changes: dict[str, Any], said: str) -> None:
    last = {"budget": 16, "peak_budget": 4, "drop": 0.02, "drop_ci_low": -0.065}
    last |= {"drop_ci_high": 0.104, "is_turned_down": False}
    assert verifier._describe_end(last | changes) == said


BOUNDED = "fewest tokens already, at least 3.0 times fewer tokens"
FLOATS = dict.fromkeys(("gain", "ci_low", "ci_high", "bound"), pl.Float64)
GAIN: dict[str, Any] = {
    "selector": "best_of_n",
    "reduction": "last",
    "accuracy": 0.6,
    "gain": 2.5,
    "ci_low": 1.5,
    "ci_high": 4.0,
    "status": "ok",
    "bound": None,
}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([GAIN], "best of n (last) reaches GOAL with 2.5 (1.5 to 4.0) times fewer tokens"),
        (
            [GAIN | {"ci_low": 0.5}],
            "best of n (last) reaches GOAL with 2.5 (0.5 to 4.0) times fewer tokens, which may be chance",
        ),
        ([GAIN | {"gain": 1.0}], "no other line reaches GOAL with fewer tokens"),
        (
            [GAIN | {"gain": 1.0}, GAIN | {"gain": None, "status": "at_least", "bound": 3.0}],
            f"best of n (last) is at or above GOAL with its {BOUNDED}",
        ),
        (
            [GAIN | {"gain": None, "status": "at_most", "bound": 0.5}],
            "no other line reaches majority vote's best accuracy, 60.0%",
        ),
        ([GAIN | {"gain": None, "status": "unknown"}], ""),
    ],
)
def test_what_is_cheaper_is_what_the_table_of_gains_says(
    rows: list[dict[str, Any]], said: str
) -> None:
    goal = "majority vote's best accuracy, 60.0%,"
    text = cost._describe_gain(Context((), {}, 0.95), pl.DataFrame(rows, schema_overrides=FLOATS))
    assert text == (f"; {said.replace('GOAL', goal)}" if said else "")


def test_a_difference_of_strategies_is_within_chance_unless_test_and_interval_agree() -> None:
    row = {"difference": -0.04, "ci_low": -0.07, "ci_high": -0.01, "p_value": 0.01}
    row |= {"n_wins": 1, "n_losses": 9}
    assert compute_optimal._describe_gain(row) == (
        "a difference of 4.0 points (1.0 to 7.0), more than chance"
    )
    assert compute_optimal._describe_gain(row | {"p_value": 0.2}).endswith("within chance")
    assert compute_optimal._describe_gain(row | {"n_wins": 0, "n_losses": 0}) == (
        "they agree on every problem"
    )


def test_reductions_are_compared_on_the_attempts_that_all_have_scores_for() -> None:
    run = tts.simulate_trajectories(30, 8, seed=4, keys=True)
    last_is_null = pl.when(pl.col("attempt") % 4 == 0)
    gaps = run.drop("score", strict=False).with_columns(
        step_scores=last_is_null.then(
            pl.concat_list("step_scores", pl.lit([None], pl.List(pl.Float64)))
        ).otherwise("step_scores")
    )
    report = tts.build_report(gaps, sections="verifier")
    assert report.verifier.metrics["reduction"].sort().to_list() == ["last", "mean", "min", "prod"]
    assert report.verifier.metrics["n_attempts"].unique().to_list() == [180]
    kept = run.filter(pl.col("attempt") % 4 != 0)
    alone = tts.verifier_metrics(kept, reductions=["last", "min", "mean", "prod"])
    shown = dict(report.verifier.metrics.select("reduction", "auroc_within").rows())
    assert shown == pytest.approx(dict(alone.select("reduction", "auroc_within").rows()))
    assert "left out of all" in report.to_html()


def test_counts_are_per_run() -> None:
    run = tts.simulate_trajectories(20, 4, seed=1, keys=True)
    both = pl.concat([
        run.with_columns(model=pl.lit("a")),
        run.filter(pl.col("attempt") < 2).with_columns(model=pl.lit("b")),
    ])
    report = tts.build_report(both, by="model")
    texts = report.answers()["loaded"]
    assert [text.partition(";")[0] for text in texts] == [
        "a: 80 attempts at 20 problems, 4 attempts each",
        "b: 40 attempts at 20 problems, 2 attempts each",
    ]
    codes = {finding.code for finding in report.validation.findings}
    assert "ragged_attempts" not in codes
    short = both.filter(
        (pl.col("model") != "b") | (pl.col("problem_id") > "sim-000001") | (pl.col("attempt") < 1)
    )
    (finding,) = [
        finding
        for finding in tts.validate_trajectories(short, by="model").findings
        if finding.code == "ragged_attempts"
    ]
    assert finding.message == "2 of 20 problems have fewer attempts than others of their run"


def test_runs_are_compared_with_the_first_on_the_problems_that_both_have() -> None:
    first = tts.simulate_trajectories(40, 8, seed=1, keys=True)
    second = tts.simulate_trajectories(50, 16, seed=2, keys=True).filter(
        pl.col("problem_id") >= "sim-000010"
    )
    both = pl.concat([first.with_columns(run=pl.lit("x")), second.with_columns(run=pl.lit("y"))])
    report = tts.build_report(both, by="run", sections="comparison")
    table = report.comparison
    assert table["budget"].unique().sort().to_list() == [1, 2, 4, 8]
    assert table["n_pairs"].unique().to_list() == [30]
    picked = tts.select_answers(both, selectors=["majority_vote", "oracle"], budgets=8, by="run")
    pairs = tts.compare(picked, column="run", baseline="x").filter(selector="majority_vote")
    row = table.filter(selector="majority_vote", budget=8).row(0, named=True)
    for name in ("difference", "ci_low", "ci_high", "p_value", "n_wins", "n_losses"):
        assert row[name] == pairs[name].item()
    text = only(report, "comparison")
    assert text.startswith("y against x, on 30 problems that both have, with 8 attempts: majority")
    assert f"{row['n_wins']} problems won, {row['n_losses']} lost." in text
    assert report.differences["difference"].abs().is_sorted(descending=True)
    assert "runs-by-attempts-1" in report.to_html()
    seeds = both.with_columns(run=(pl.col("run") == "y").cast(pl.Int64), of=pl.lit("m"))
    numbered = tts.build_report(seeds, by=["run", "of"], sections="comparison")
    assert numbered.comparison["run"].unique().to_list() == ["run 1, m"]
    same = table.select("difference", "p_value", "n_wins")
    assert numbered.comparison.select(same.columns).equals(same)
    alone = tts.build_report(first, sections="comparison")
    assert alone.comparison is alone.differences is None
    assert alone.omitted == {}
    apart = both.filter((pl.col("run") == "x") | (pl.col("problem_id") >= "sim-000040"))
    report = tts.build_report(apart, by="run", sections="comparison")
    assert report.omitted["comparison"] == (
        "no two runs have a graded problem and a number of attempts in common"
    )


def test_the_baseline_shares_problems_and_who_shares_none_is_named() -> None:
    run = tts.simulate_trajectories(24, 8, seed=1, keys=True)
    other = pl.col("problem_id").str.replace("sim", "other")
    alone = run.with_columns(problem_id=other, run=pl.lit("a"))
    shared = [run.with_columns(run=pl.lit(name)) for name in ("b", "c")]
    report = tts.build_report(pl.concat([alone, *shared]), by="run", sections="comparison")
    assert report.comparison["baseline"].unique().to_list() == ["b"]
    assert report.comparison["run"].unique().to_list() == ["c"]
    assert report.answers()["comparison"][-1] == (
        "Not compared, because no graded problem and number of attempts is shared with b: a."
    )


def test_problems_that_share_an_id_and_not_their_text_are_not_compared() -> None:
    run = tts.simulate_trajectories(12, 4, seed=1, keys=True)
    texts = pl.concat_str(pl.lit("What is "), "problem_id", pl.lit("?"))
    first = run.with_columns(problem=texts, run=pl.lit("a"))
    is_other = pl.col("problem_id") < "sim-000005"
    others = pl.when(is_other).then(pl.lit("Name a river.")).otherwise(pl.lit("Think.  ") + texts)
    both = pl.concat([first, run.with_columns(problem=others, run=pl.lit("b"))])
    report = tts.build_report(both, by="run", sections=["comparison", "ranking"])
    assert report.comparison["n_pairs"].unique().to_list() == [7]
    assert report.ranking["n_problems"].unique().to_list() == [7]


def test_sentences_on_several_runs_have_p_values_corrected_for_their_number() -> None:
    runs = pl.concat([
        tts.simulate_trajectories(40, 8, seed=1, accuracy=(a, 1.0), keys=True).with_columns(
            run=pl.lit(name)
        )
        for name, a in (("a", 1.0), ("b", 1.4), ("c", 5.0))
    ])
    report = tts.build_report(runs, by="run", sections="comparison")
    p_b, p_c = (
        report.comparison.filter(run=name, selector="majority_vote", budget=8)["p_value"].item()
        for name in ("b", "c")
    )
    low, high = sorted([p_b, p_c])
    corrected = {low: min(1.0, 2 * low), high: min(1.0, max(2 * low, high))}
    for sentence, p in zip(report.answers()["comparison"], (p_b, p_c), strict=True):
        shown = "p < 0.001" if corrected[p] < 0.001 else f"p = {corrected[p]:.3f}"
        assert f"{shown} (corrected for 2 comparisons)" in sentence


def test_a_corrected_p_value_is_not_left_beside_an_interval_that_says_otherwise() -> None:
    runs = pl.DataFrame({
        "run": [run for run in "abcdef" for _ in range(40)],
        "problem_id": list(range(40)) * 6,
        "attempt": 0,
        "answer_key": ["1" if run == "a" or i >= 6 else "2" for run in "abcdef" for i in range(40)],
        "gold_key": "1",
    }).with_columns(is_correct=pl.col("answer_key") == pl.col("gold_key"))
    report = tts.build_report(runs, by="run", sections="comparison")
    assert report.comparison.filter(selector="majority_vote")["ci_high"].max() < 0.0
    for sentence in report.answers()["comparison"]:
        assert "within chance (the interval is for this comparison alone)" in sentence


def test_runs_with_one_number_of_attempts_are_drawn_as_points() -> None:
    run = tts.simulate_trajectories(20, 8, seed=1, keys=True)
    runs = pl.concat([
        run.with_columns(policy=pl.lit("a"), width=8),
        run.filter(pl.col("attempt") < 1).with_columns(policy=pl.lit("b"), width=1),
    ])
    report = tts.build_report(runs, by=["policy", "width"], sections=["accuracy", "selection_gap"])
    page = report.to_html()
    assert "id='accuracy-by-attempts'" in page
    assert "id='accuracy-with-1'" in page
    assert '"Accuracy with 1 attempt, b, width 1"' in page
    assert "1 run with a single number of attempts: in the table only." in page
    assert repr(report) == (
        "Report('Test-time compute report': 180 attempts at 20 problems in 2 runs (1 to 8 each, median 4.5); "
        "sections: loaded, accuracy, selection_gap)"
    )


def test_a_chart_of_steps_needs_several() -> None:
    run = tts.simulate_trajectories(20, 4, seed=1, n_steps=(1, 1), keys=True)
    report = tts.build_report(run, sections="steps")
    assert report.omitted == {"steps": "each attempt has a single step"}


def test_names_say_what_a_vote_weighs() -> None:
    assert name_line("weighted_vote", "last") == "weighted vote (last)"
    assert name_line("weighted_vote", "last", "softmax") == "weighted vote (last, softmax weights)"
    assert name_line("best_of_n", "last", "softmax") == "best of n (last)"
    assert [list_names(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]
