"""Measures of a tree against plain Python."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, ParticleFilter, Policy, Rebase

S = tts.search
POLICIES = [BestOfN(8), Beam(8), DVTS(8), Rebase(8), ParticleFilter(8)]
IDS = [policy.name for policy in POLICIES]


def run(policy: Policy) -> pl.DataFrame:
    world = World()
    return S.search(Compared(world, 8).problems(), world.generate, world.verify, policy, seed=3)


def ancestors(nodes: pl.DataFrame) -> dict[tuple[str, int], list[dict]]:
    rows = {(r["problem_id"], r["node_id"]): r for r in nodes.iter_rows(named=True)}
    paths = {}
    for key, row in rows.items():
        path = [row]
        while path[-1]["parent_id"] is not None:
            path.append(rows[key[0], path[-1]["parent_id"]])
        paths[key] = path
    return paths


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_the_cache_is_the_union_of_the_paths_of_a_round(policy: Policy) -> None:
    nodes = run(policy)
    expected = {}
    for (problem, _), path in ancestors(nodes).items():
        key = problem, path[0]["round"]
        held, unshared, n = expected.setdefault(key, ({}, [0], [0]))
        held.update({step["node_id"]: step["n_tokens"] for step in path})
        unshared[0] += sum(step["n_tokens"] for step in path) + 5
        n[0] += 1
    found = S.cache_by_round(nodes, n_prompt_tokens=5)
    rows = {(r["problem_id"], r["round"]): r for r in found.iter_rows(named=True)}
    assert rows.keys() == expected.keys()
    for key, (held, unshared, n) in expected.items():
        row = rows[key]
        assert row["n_candidates"] == n[0]
        assert row["cache_tokens"] == sum(held.values()) + 5
        assert row["unshared_tokens"] == unshared[0]
        assert row["sharing"] == unshared[0] / row["cache_tokens"]


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_width_and_diversity_are_counted(policy: Policy) -> None:
    nodes = run(policy)
    paths = ancestors(nodes)
    found = S.diversity_by_depth(nodes)
    for row in found.iter_rows(named=True):
        here = [
            p for (q, _), p in paths.items() if q == row["problem_id"] and len(p) == row["depth"]
        ]
        kept = [path for path in here if path[0]["is_kept"]]
        assert row["n_nodes"] == len(here)
        assert row["n_kept"] == len(kept)
        assert row["n_parents"] == len({path[0]["parent_id"] for path in kept})
        assert row["n_origins"] == len({path[-1]["node_id"] for path in kept})
        assert row["n_subtrees"] == len({path[0]["subtree"] for path in kept})
        assert row["n_distinct"] == len({path[0]["text"] for path in kept})
    assert found["n_nodes"].sum() == nodes.height


def test_costs_are_sums() -> None:
    nodes = run(Beam(8))
    costs = S.search_costs(nodes)
    rows = nodes.rows(named=True)
    for row in costs.iter_rows(named=True):
        mine = [each for each in rows if each["problem_id"] == row["problem_id"]]
        assert row["n_nodes"] == len(mine)
        assert row["n_tokens"] == sum(each["n_tokens"] for each in mine)
        assert row["n_dropped_tokens"] == sum(e["n_tokens"] for e in mine if not e["is_kept"])
        assert row["n_solutions"] == sum(each["is_terminal"] for each in mine)
        assert row["n_rounds"] == len(Counter(each["round"] for each in mine))
        assert row["n_prompt_tokens_new"] is None
    with pytest.raises(tts.TtsframeError, match="must be given together"):
        S.search_costs(nodes, generator_parameters=1e9)
    with pytest.raises(tts.TtsframeError, match=r"verifier_parameters == -1, must be at least 0"):
        S.search_costs(nodes, generator_parameters=1e9, verifier_parameters=-1)


def test_solutions_carry_the_tokens_of_the_tree_to_the_cost_curve() -> None:
    problems, generator, prm = S.simulate(10, seed=0)
    nodes = S.search(problems, generator, prm, Beam(8), seed=0)
    solutions = S.to_trajectories(nodes, policy=Beam(8), problems=problems)
    answers = solutions.pipe(tts.score_trajectories).pipe(tts.majority_vote)
    costs = tts.curves.add_costs(answers, trajectories=solutions, tree_tokens="tree_tokens")
    spent = S.search_costs(nodes).select("problem_id", "n_tokens")
    both = costs.join(spent, on="problem_id")
    assert (both["cost"] == both["n_tokens"]).all()


@pytest.mark.parametrize(
    "measure", [S.cache_by_round, S.diversity_by_depth, S.search_costs, S.to_trajectories]
)
def test_a_lazy_frame_and_several_searches(measure: object) -> None:
    nodes = run(Beam(8))
    eager = measure(nodes)  # type: ignore[operator]
    assert_frame_equal(measure(nodes.lazy()).collect(), eager)  # type: ignore[operator]
    both = pl.concat([nodes.with_columns(run=pl.lit(name)) for name in "ab"])
    found = measure(both, by="run")  # type: ignore[operator]
    assert found.columns[0] == "run"
    for name in "ab":
        assert_frame_equal(found.filter(run=name).drop("run"), eager)
    empty = measure(nodes.head(0))  # type: ignore[operator]
    assert empty.schema == eager.schema
    assert empty.height == 0
    with pytest.raises(tts.TtsframeError, match="nodes must be a polars DataFrame"):
        measure([1])  # type: ignore[operator]


def graded_bank() -> tuple[pl.DataFrame, pl.DataFrame]:
    faults = S.VerifierFaults(noise=4, persistence=0.0)
    problems, bank = S.simulate_bank(20, n_children=(4, 3, 3), seed=0, accuracy=0.3, faults=faults)
    solutions = S.to_trajectories(bank, problems=problems)
    answer = pl.col("completion").str.extract(r"\\boxed\{(\d+)\}")
    return bank, solutions.with_columns(is_correct=answer == pl.col("gold"))


def test_values_of_a_bank_are_shares_of_right_solutions() -> None:
    bank, solutions = graded_bank()
    values = S.node_values(bank, solutions=solutions)
    rows = solutions.iter_rows(named=True)
    right = {(row["problem_id"], row["node_id"]): row["is_correct"] for row in rows}
    below: dict[tuple[str, int], list[bool]] = {}
    for (problem, node), path in ancestors(bank).items():
        if (problem, node) in right:
            for step in path:
                below.setdefault((problem, step["node_id"]), []).append(right[problem, node])
    for problem, node, value in values.rows():
        shares = below[problem, node]
        assert value == pytest.approx(sum(shares) / len(shares), abs=1e-12)
    with pytest.raises(tts.TtsframeError, match="ends of solutions have no is_correct"):
        S.node_values(bank, solutions=solutions.head(3))


def test_regret_is_what_was_dropped_above_what_was_kept() -> None:
    bank, solutions = graded_bank()
    values = S.node_values(bank, solutions=solutions)
    nodes = S.replay(bank, Beam(4, beam_width=2), seed=0).nodes
    value = {(problem, node): v for problem, node, v in values.rows()}
    found = S.pruning_regret(nodes, values=values)
    assert found["is_lost"].any()
    for row in found.iter_rows(named=True):
        here = nodes.filter(problem_id=row["problem_id"], round=row["round"]).rows(named=True)
        kept = [value[n["problem_id"], n["node_id"]] for n in here if n["is_kept"]]
        dropped = [value[n["problem_id"], n["node_id"]] for n in here if not n["is_kept"]]
        assert (row["n_kept"], row["n_dropped"]) == (len(kept), len(dropped))
        assert row["best_kept"] == max(kept, default=None)
        assert row["best_dropped"] == max(dropped, default=None)
        assert row["regret"] == max(0.0, max(dropped, default=0) - max(kept, default=0))
        assert row["is_lost"] == (max(dropped, default=0) > 0 and max(kept, default=0) == 0)
        if dropped:
            best = [n for n in here if not n["is_kept"]]
            best = [n for n in best if value[n["problem_id"], n["node_id"]] == max(dropped)]
            ranks = [1 + sum(o["step_score"] > n["step_score"] for o in here) for n in best]
            assert row["rank_dropped"] == min(ranks)
