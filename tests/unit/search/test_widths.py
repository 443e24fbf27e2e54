"""Searches at several widths make a curve."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.search import Beam, BestOfN, Policy

S = tts.search
WORLD = S.simulate(15, seed=0, accuracy=0.3)


def solutions(policy: Policy) -> pl.DataFrame:
    nodes = S.search(*WORLD, policy, seed=0)
    found = S.to_trajectories(nodes, policy=policy, problems=WORLD.problems)
    return tts.score_trajectories(found)


def test_each_width_is_a_budget_with_all_its_solutions() -> None:
    policies = [BestOfN(4), Beam(4), Beam(16)]
    runs = [solutions(policy) for policy in policies]
    found = S.select_by_width(pl.concat(runs))
    for policy, run in zip(policies, runs, strict=True):
        alone = tts.select_answers(run).drop("budget")
        mine = found.filter(policy=policy.name, budget=policy.width)
        assert_frame_equal(mine.drop("policy", "budget"), alone, check_row_order=False)
    curve = tts.scaling_curve(found, by="policy").filter(selector="majority_vote")
    assert curve.select("policy", "budget").rows() == [("beam", 4), ("beam", 16), ("best_of_n", 4)]
    lazy = S.select_by_width(pl.concat(runs).lazy()).collect()
    assert_frame_equal(lazy, found)


def test_solutions_without_a_width_are_refused() -> None:
    with pytest.raises(tts.TtsframeError, match=r"missing columns.*'policy', 'width'.*policy="):
        S.select_by_width(solutions(Beam(4)).drop("policy", "width"))


def test_subsets_of_a_search_are_refused() -> None:
    with pytest.raises(tts.TtsframeError, match="is_exchangeable is false"):
        tts.expected_accuracy(solutions(Beam(8)), budgets=[2])
    assert tts.expected_accuracy(solutions(BestOfN(8)), budgets=[2]).height > 0


def test_a_search_has_no_smaller_budgets_but_best_of_n_has() -> None:
    problems, generator, prm = S.simulate(6, seed=0)
    runs = {}
    for policy in (S.Beam(8), S.DVTS(8), S.BestOfN(8)):
        nodes = S.search(problems, generator, prm, policy, seed=0)
        solutions = S.to_trajectories(nodes, policy=policy, problems=problems)
        runs[policy.name] = solutions.pipe(tts.score_trajectories)
    for name in ("beam", "dvts"):
        for call in (
            lambda run: tts.select_answers(run, budgets=[4, 8]),
            lambda run: tts.majority_vote(run.lazy(), budgets=4, by="policy").collect(),
            lambda run: tts.tally_votes(run, budgets=[4]),
        ):
            with pytest.raises(
                tts.TtsframeError, match=f"budgets has 4, but this is a search by {name} at width 8"
            ):
                call(runs[name])
        whole = tts.select_answers(runs[name], budgets=[8]).drop("budget")
        assert whole.equals(tts.select_answers(runs[name]).drop("budget"))
        # A file of another program, which does not say at which width it was made, keeps its first attempts.
        tts.select_answers(runs[name].drop("policy", "width"), budgets=[4])
    curve = tts.select_answers(runs["best_of_n"], budgets=[4, 8]).pipe(tts.scaling_curve)
    assert curve["budget"].unique().sort().to_list() == [4, 8]
