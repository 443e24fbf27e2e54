"""Checked by mypy, never run: a frame comes out as it went in, and wrong use is an error."""

from __future__ import annotations

from typing import assert_type

import polars as pl

import ttsframe as tts
from ttsframe.estimators.aggregators import AtLeastK, GPassAtK, Majority, Max, Median, PassHatK


def eager_stays_eager(frame: pl.DataFrame) -> None:
    assert_type(tts.renumber_attempts(frame), pl.DataFrame)
    assert_type(tts.drop_duplicate_completions(frame, by="seed"), pl.DataFrame)
    assert_type(tts.score_trajectories(frame, reduction="min"), pl.DataFrame)
    assert_type(tts.tally_votes(frame, budgets=[1, 4]), pl.DataFrame)
    assert_type(tts.select_answers(frame, selectors="oracle", budgets=4), pl.DataFrame)
    assert_type(tts.majority_vote(frame), pl.DataFrame)
    assert_type(tts.weighted_vote(frame, weights="softmax"), pl.DataFrame)
    assert_type(tts.best_of_n(frame, reductions=["last", "prod"]), pl.DataFrame)
    assert_type(tts.first_valid(frame), pl.DataFrame)
    assert_type(tts.oracle(frame), pl.DataFrame)
    assert_type(tts.scaling_curve(frame, replicates=("seed",)), pl.DataFrame)
    assert_type(tts.verifier.step_profile(frame, n_bins=5), pl.DataFrame)
    assert_type(tts.selection_gap(frame, by="seed"), pl.DataFrame)
    assert_type(tts.votes.best_trajectories(frame, n_per_problem=4), pl.DataFrame)
    assert_type(tts.Identity()(frame, ["problem_id"]), pl.DataFrame)
    assert_type(tts.IdentifierMean()(frame, ["problem_id"]), pl.DataFrame)
    assert_type(tts.PassAtK(k=4)(frame, ["problem_id"]), pl.DataFrame)


def lazy_stays_lazy(frame: pl.LazyFrame) -> None:
    assert_type(tts.renumber_attempts(frame), pl.LazyFrame)
    assert_type(tts.drop_duplicate_completions(frame), pl.LazyFrame)
    assert_type(tts.score_trajectories(frame), pl.LazyFrame)
    assert_type(tts.tally_votes(frame), pl.LazyFrame)
    assert_type(tts.select_answers(frame), pl.LazyFrame)
    assert_type(tts.majority_vote(frame), pl.LazyFrame)
    assert_type(tts.weighted_vote(frame), pl.LazyFrame)
    assert_type(tts.best_of_n(frame), pl.LazyFrame)
    assert_type(tts.first_valid(frame), pl.LazyFrame)
    assert_type(tts.oracle(frame), pl.LazyFrame)
    assert_type(tts.scaling_curve(frame), pl.LazyFrame)
    assert_type(tts.verifier.step_profile(frame), pl.LazyFrame)
    assert_type(tts.selection_gap(frame), pl.LazyFrame)
    assert_type(tts.votes.best_trajectories(frame, n_per_problem=4, min_score=0.5), pl.LazyFrame)
    assert_type(tts.Identity()(frame, ["problem_id"]), pl.LazyFrame)
    assert_type(tts.IdentifierMean()(frame, ["problem_id"]), pl.LazyFrame)
    assert_type(tts.PassAtK()(frame, ["problem_id"]), pl.LazyFrame)


def pipes_keep_the_kind(lazy: pl.LazyFrame, eager: pl.DataFrame) -> None:
    assert_type(
        lazy
        .pipe(tts.score_trajectories)
        .pipe(tts.select_answers, budgets=[1, 4, 16])
        .pipe(tts.scaling_curve),
        pl.LazyFrame,
    )
    assert_type(
        eager
        .pipe(tts.score_trajectories, reduction="min")
        .pipe(tts.majority_vote, budgets=(1, 4))
        .pipe(tts.scaling_curve, include="available"),
        pl.DataFrame,
    )


def sources_are_named_by_their_verb() -> None:
    assert_type(tts.scan_trajectories("run.jsonl"), pl.LazyFrame)
    assert_type(tts.read_trajectories(["a.jsonl", "b.jsonl"], format="long_form"), pl.DataFrame)
    assert_type(tts.simulate_trajectories(4, 4, seed=0), pl.DataFrame)


def comparisons_keep_the_kind_of_frame(eager: pl.DataFrame, lazy: pl.LazyFrame) -> None:
    assert_type(tts.compare(eager, baseline="oracle"), pl.DataFrame)
    assert_type(tts.compare(lazy, column="budget", baseline=1, by=()), pl.LazyFrame)
    assert_type(tts.statistics.variance_components(lazy, by="model"), pl.LazyFrame)
    tts.compare(eager, correction="sidak")  # type: ignore[arg-type]


def analyses_that_end_give_a_result(frame: pl.LazyFrame) -> None:
    assert_type(tts.validate_trajectories(frame), tts.ValidationReport)
    assert_type(tts.build_report(frame), tts.Report)
    assert_type(tts.closed_form_passatk(4, 1, 2), float | None)


def aggregators_are_a_protocol(frame: pl.DataFrame) -> None:
    chosen: list[tts.Aggregator] = [tts.Identity(), tts.IdentifierMean(), tts.PassAtK(k=8)]
    chosen += [PassHatK(k=8), GPassAtK(k=8, tau=0.75), AtLeastK(k=4), Majority(), Max(), Median()]
    for aggregator in chosen:
        assert_type(aggregator.name, str)
        assert_type(aggregator(frame, ["problem_id"]), pl.DataFrame)


def choices_are_literals(frame: pl.DataFrame) -> None:
    tts.select_answers(frame, selectors=["majority"])  # type: ignore[list-item]
    tts.select_answers(frame, selectors="majority")  # type: ignore[arg-type]
    tts.best_of_n(frame, reductions="average")  # type: ignore[arg-type]
    tts.weighted_vote(frame, weights="exp")  # type: ignore[arg-type]
    tts.score_trajectories(frame, style="latex")  # type: ignore[arg-type]
    tts.score_trajectories(frame, reduction=["last"])  # type: ignore[arg-type]
    tts.scaling_curve(frame, include="all")  # type: ignore[arg-type]
    tts.scan_trajectories("run.jsonl", format="csv")  # type: ignore[arg-type]
    tts.PassAtK(k=2, n_below_k="zero")  # type: ignore[arg-type]


def frames_are_positional_and_options_named(frame: pl.DataFrame) -> None:
    tts.majority_vote(trajectories=frame)  # type: ignore[call-arg]
    tts.majority_vote(frame, [1, 4])  # type: ignore[call-arg]
    tts.scaling_curve(frame, "model")  # type: ignore[call-arg]
    tts.tally_votes(frame, budget=4)  # type: ignore[call-arg]
    tts.majority_vote(frame, reductions="last")  # type: ignore[call-arg]
    tts.PassAtK(2, "null")  # type: ignore[call-arg]


def only_frames_and_whole_budgets_fit(frame: pl.DataFrame) -> None:
    tts.majority_vote([{"problem_id": "p"}])  # type: ignore[type-var]
    tts.majority_vote(frame["answer"])  # type: ignore[type-var]
    tts.majority_vote(frame, budgets=[0.5])  # type: ignore[list-item]
    tts.majority_vote(frame, budgets="4")  # type: ignore[arg-type]
    tts.simulate_trajectories(4, 4)  # type: ignore[call-arg]
