"""From the tree to the solutions."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, ParticleFilter, Policy, Rebase

S = tts.search
PROBLEMS = Compared(World(), 12).problems()
POLICIES = [BestOfN(8), Beam(8), DVTS(8), Rebase(8), ParticleFilter(8)]


def run(policy: Policy) -> pl.DataFrame:
    return S.search(PROBLEMS, World().generate, World().verify, policy, seed=3)


def plainly(nodes: pl.DataFrame) -> dict[tuple[str, int], tuple[str, list[float | None], int]]:
    """Walk from each returned end to the root."""
    rows = {(r["problem_id"], r["node_id"]): r for r in nodes.iter_rows(named=True)}
    found = {}
    for (problem, node), row in rows.items():
        if row["is_kept"] and not row["n_children"]:
            path = [row]
            while path[-1]["parent_id"] is not None:
                path.append(rows[problem, path[-1]["parent_id"]])
            path.reverse()
            text = "".join(step["text"] for step in path)
            scores = [step["step_score"] for step in path]
            found[problem, node] = (text, scores, sum(step["n_tokens"] for step in path))
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_solution_is_the_path_to_its_end(policy: Policy) -> None:
    nodes = run(policy)
    solutions = S.to_trajectories(nodes, policy=policy)
    real = solutions.filter(pl.col("node_id").is_not_null())
    found = {
        (row["problem_id"], row["node_id"]): (
            row["completion"],
            row["step_scores"],
            row["n_tokens"],
        )
        for row in real.iter_rows(named=True)
    }
    assert found == plainly(nodes)
    assert set(real["finish_reason"]) == {"stop"}
    spent = nodes.group_by("problem_id").agg(pl.col("n_tokens").sum())
    both = solutions.join(spent, on="problem_id", suffix="_spent")
    assert (both["tree_tokens"] == both["n_tokens_spent"]).all()
    attempts = solutions.group_by("problem_id").agg("attempt")["attempt"].to_list()
    assert all(each == list(range(len(each))) for each in attempts)
    assert solutions["is_exchangeable"].unique().to_list() == [policy.name == "best_of_n"]


def test_order_and_laziness() -> None:
    nodes = run(Beam(8))
    eager = S.to_trajectories(nodes, policy=Beam(8))
    assert_frame_equal(S.to_trajectories(nodes.lazy(), policy=Beam(8)).collect(), eager)
    mixed = nodes.sample(fraction=1.0, shuffle=True, seed=0)
    shuffled = S.to_trajectories(mixed, policy=Beam(8)).drop("attempt")
    assert_frame_equal(shuffled, eager.drop("attempt"), check_row_order=False)


def test_the_first_or_the_best_are_returned_and_padded() -> None:
    every = S.to_trajectories(run(Rebase(8)))
    first = S.to_trajectories(run(Rebase(8)), policy=Rebase(3, returned="first"))
    common = first.join(every, on=["problem_id", "attempt"], how="left")
    assert (common["node_id"].eq_missing(common["node_id_right"])).all()
    assert first.group_by("problem_id").len()["len"].max() == 3
    best = S.to_trajectories(run(Rebase(8)), policy=Rebase(2, returned="best"))
    top = every.group_by("problem_id").agg(pl.col("step_scores").list.last().max().alias("top"))
    leader = best.filter(attempt=0).join(top, on="problem_id")
    assert leader["step_scores"].list.last().eq_missing(leader["top"]).all()
    padded = S.to_trajectories(
        run(Rebase(8)), policy=Rebase(16, returned="first", pads_returned=True)
    )
    sizes = padded.filter(pl.col("node_id").is_not_null()).group_by("problem_id").len()
    assert sizes["len"].unique().to_list() == [16]
    one = padded.filter(problem_id="p0")["node_id"].to_list()
    n = every.filter(problem_id="p0").height
    assert one == [one[i % n] for i in range(16)]


def test_a_problem_without_a_solution_is_wrong_and_stays() -> None:
    def never(requests: pl.DataFrame) -> pl.DataFrame:
        return World().generate(requests).with_columns(finish_reason=pl.lit("length"))

    gold = PROBLEMS.with_columns(gold=pl.lit("7"))
    nodes = S.search(PROBLEMS[:2], never, World().verify, Beam(4), seed=0)
    solutions = S.to_trajectories(nodes, policy=Beam(4), problems=gold)
    assert solutions["problem_id"].to_list() == PROBLEMS["problem_id"].to_list()
    assert solutions["completion"].null_count() == 12
    assert solutions["gold"].unique().to_list() == ["7"]
    assert solutions.select("policy", "width", "attempt", "finish_reason").unique().rows() == [
        ("beam", 4, 0, "length")
    ]
    picked = solutions.pipe(tts.score_trajectories).pipe(tts.majority_vote)
    assert picked["is_correct"].to_list() == [False] * 12


def test_several_searches_in_one_frame() -> None:
    one = run(Beam(8)).with_columns(run=pl.lit("a"))
    both = pl.concat([one, one.with_columns(run=pl.lit("b"))])
    with pytest.raises(tts.TtsframeError, match=r"a node_id appears twice in a problem.*by"):
        S.to_trajectories(both)
    solutions = S.to_trajectories(both, by="run", problems=PROBLEMS)
    assert_frame_equal(
        solutions.filter(run="b").drop("run"), S.to_trajectories(one, problems=PROBLEMS)
    )


def test_a_tree_that_lost_rows_is_told() -> None:
    nodes = run(Beam(8))
    with pytest.raises(tts.TtsframeError, match="rows have a parent_id that is no node"):
        S.to_trajectories(nodes.filter(pl.col("depth") > 1))
    with pytest.raises(tts.TtsframeError, match="row 0 has depth 5, must be 1"):
        S.to_trajectories(nodes.with_columns(depth=pl.lit(5, pl.UInt16)))
    with pytest.raises(tts.TtsframeError, match=r"1 missing column for nodes: 'text'"):
        S.to_trajectories(nodes.drop("text"))
    with pytest.raises(tts.TtsframeError, match=r"problems: \['completion'\] are columns"):
        S.to_trajectories(nodes, problems=PROBLEMS.with_columns(completion=pl.lit("")))


def test_the_first_of_independent_solutions_are_not_the_shortest() -> None:
    problems, generator, prm = S.simulate(150, seed=0, n_steps=(3, 9), step_spread=2)
    policy = S.BestOfN(8)
    nodes = S.search(problems, generator, prm, policy, seed=0)
    found = S.to_trajectories(nodes, policy=policy, problems=problems)
    n_steps = pl.col("step_scores").list.len()
    rest = found.with_columns(rest=n_steps - n_steps.mean().over("problem_id"))
    by_attempt = rest.group_by("attempt").agg(pl.col("rest").mean())
    # The standard deviation of a length is about 1.4, that of a mean over 150 problems .12.
    assert by_attempt["rest"].abs().max() < 0.5  # type: ignore[operator]
