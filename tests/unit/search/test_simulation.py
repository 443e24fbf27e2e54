"""The simulated environment has the truth that it says."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import ttsframe as tts
from ttsframe.search import BestOfN, VerifierFaults

S = tts.search


@pytest.mark.parametrize("recovery", [0.0, 0.2])
def test_solutions_are_right_as_often_as_stated(recovery: float) -> None:
    problems, generator, prm = S.simulate(400, seed=2, accuracy=0.3, recovery=recovery)
    nodes = S.search(problems, generator, prm, BestOfN(40), seed=1)
    solutions = S.to_trajectories(nodes, policy=BestOfN(40), problems=problems)
    answer = pl.col("completion").str.extract(r"\\boxed\{(\d+)\}")
    found = (
        solutions
        .with_columns(is_right=answer == pl.col("gold"))
        .group_by("problem_id", maintain_order=True)
        .agg(pl.col("is_right").mean(), pl.col("true_accuracy").first())
    )
    p, rate = found["true_accuracy"].to_numpy(), found["is_right"].to_numpy()
    z = (rate - p) / np.sqrt(np.maximum(p * (1 - p), 1e-3) / 40)
    assert abs(z.mean()) < 4 / np.sqrt(400)
    assert 0.85 < z.std() < 1.15


def test_the_lengths_are_those_stated() -> None:
    problems, generator, prm = S.simulate(50, seed=2, n_steps=(3, 6), step_spread=2)
    nodes = S.search(problems, generator, prm, BestOfN(20), seed=1)
    found = nodes.filter("is_terminal").join(problems, on="problem_id")
    spread = found["depth"].cast(pl.Int64) - found["true_n_steps"]
    assert spread.unique().sort().to_list() == [-2, -1, 0, 1, 2]


def test_a_perfect_verifier_knows_the_value() -> None:
    problems, generator, prm = S.simulate(50, seed=2, faults=VerifierFaults(noise=0))
    nodes = S.search(problems, generator, prm, BestOfN(20), seed=1).filter("is_terminal")
    right = nodes.join(problems, on="problem_id").with_columns(
        is_right=pl.col("text").str.extract(r"\\boxed\{(\d+)\}") == pl.col("gold")
    )
    assert right.filter("is_right")["step_score"].unique().to_list() == pytest.approx([0.98])
    assert right.filter(~pl.col("is_right"))["step_score"].unique().to_list() == pytest.approx([
        0.02
    ])


def scores(**faults: float) -> pl.Series:
    problems, generator, prm = S.simulate(200, seed=2, faults=VerifierFaults(**faults))
    nodes = S.search(problems, generator, prm, BestOfN(8), seed=1)
    return nodes.select(
        "depth", "node_id", "is_terminal", (pl.col("step_score") / (1 - pl.col("step_score"))).log()
    )


def test_each_fault_does_what_it_says() -> None:
    exact = scores(noise=0)
    logit = exact["step_score"]
    assert (scores(noise=0, optimism=1.5)["step_score"] - logit).round(9).unique().to_list() == [
        1.5
    ]
    longer = (scores(noise=0, length_bias=0.25)["step_score"] - logit).round(9)
    assert (longer == exact["depth"] * 0.25).all()
    noisy = scores(noise=2, persistence=0.0)["step_score"] - logit
    assert abs(noisy.std() - 2) < 0.05
    one = (scores(noise=2, persistence=1.0)["step_score"] - logit).round(4)
    assert one.n_unique() <= 200 * 8
    hacked = scores(noise=0, hack_rate=0.05)["step_score"] - logit
    assert 0.02 < (hacked.filter(exact["depth"] == 1).round(3) == 4).mean() < 0.08
    assert scores(missing_rate=0.1)["step_score"].null_count() / len(logit) == pytest.approx(
        0.1, abs=0.02
    )


def test_a_tempting_idea_is_overrated_and_has_one_answer() -> None:
    faults = VerifierFaults(noise=0, trap_rate=1.0, trap_size=8)
    world = S.simulate(200, seed=2, accuracy=0.6, recovery=0, faults=faults)
    nodes = S.search(*world, BestOfN(16), seed=1)
    ends = (
        nodes
        .filter("is_terminal")
        .join(world.problems, on="problem_id")
        .with_columns(
            answer=pl.col("text").str.extract(r"\\boxed\{(\d+)\}").cast(pl.Int64)
            - pl.col("gold").cast(pl.Int64)
        )
    )
    tempted = ends.filter((pl.col("answer") != 0) & (pl.col("step_score") > 0.5))
    assert tempted["answer"].unique().to_list() == [1]
    wrong = ends.filter(pl.col("answer") != 0).height
    assert 0.4 < tempted.height / wrong < 0.6
    assert tempted["step_score"].min() > ends.filter(answer=0)["step_score"].max()
    # The truth is the same without the verifier's fault.
    none = S.simulate(200, seed=2, accuracy=0.6, recovery=0, faults=VerifierFaults(noise=0))
    assert none.problems.equals(world.problems)


def test_a_tempting_idea_collapses_beam_search_on_easy_problems() -> None:
    def accuracy(policy: S.Policy, trap_rate: float) -> float:
        faults = VerifierFaults(noise=1, trap_rate=trap_rate)
        world = S.simulate(150, seed=3, accuracy=0.8, spread=0.3, faults=faults)
        nodes = S.search(*world, policy, seed=1)
        solutions = S.to_trajectories(nodes, policy=policy, problems=world.problems)
        right = pl.col("completion").str.extract(r"\\boxed\{(\d+)\}") == pl.col("gold")
        share = solutions.group_by("problem_id").agg(right.fill_null(value=False).mean())
        return float((share["completion"] > 0.5).mean() or 0)

    assert accuracy(S.Beam(32), 0.0) > 0.95
    assert accuracy(S.Beam(32), 1.0) < accuracy(BestOfN(32), 1.0) - 0.2
    assert accuracy(S.DVTS(32), 1.0) > accuracy(S.Beam(32), 1.0) + 0.1


def test_a_delay_is_cured_by_a_lookahead() -> None:
    problems, generator, prm = S.simulate(
        100, seed=2, recovery=0, faults=VerifierFaults(noise=0, delay=2)
    )
    late = S.search(problems, generator, prm, BestOfN(8), seed=1)
    ahead = S.search(problems, generator, prm, BestOfN(8, lookahead=2), seed=1)
    _, _, perfect = S.simulate(100, seed=2, recovery=0, faults=VerifierFaults(noise=0))
    exact = S.search(problems, generator, perfect, BestOfN(8), seed=1)

    def n_overrated(nodes: pl.DataFrame) -> int:
        is_wrong = (exact["step_score"] < 0.021) & ~exact["is_terminal"]
        return int(((nodes["step_score"] > 0.2) & is_wrong).sum())

    assert n_overrated(late) > 100
    assert n_overrated(ahead) < n_overrated(late) / 3


def test_impossible_parameters_are_told() -> None:
    with pytest.raises(tts.TtsframeError, match="step_spread == 4, must be below the smallest"):
        S.simulate(3, seed=0, step_spread=4)
    with pytest.raises(tts.TtsframeError, match="n_steps must be a pair of numbers, got 5"):
        S.simulate(3, seed=0, n_steps=5)  # type: ignore[arg-type]
    with pytest.raises(tts.TtsframeError, match="n_steps"):
        S.simulate(3, seed=0, n_steps=(5, 4))
    with pytest.raises(tts.TtsframeError, match=r"noise == -1, must be at least 0"):
        VerifierFaults(noise=-1)
    _, generator, prm = S.simulate(3, seed=0)
    with pytest.raises(tts.TtsframeError, match="'other' is none of them"):
        S.search(pl.DataFrame({"problem_id": ["other"]}), generator, prm, BestOfN(2), seed=0)
