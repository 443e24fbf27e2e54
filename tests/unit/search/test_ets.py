"""ETS against brute force, DORA against plain Python."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import ETS, Dora, Rebase
from ttsframe.search.policies.embeddings import clusters, uniqueness
from ttsframe.search.policies.programme import Programme, make_branches

S = tts.search


class Case(NamedTuple):
    """A random tree, for the package and for plain Python."""

    programme: Programme
    paths: list[list[int]]
    cost: dict[int, float]
    """Tokens of each node."""


def random_programme(
    rng: np.random.Generator, cost_weight: float, diversity_weight: float, most: int = 9
) -> Case:
    """Leaves at one depth, as in a search, under branches that share some way."""
    n, depth = int(rng.integers(2, most + 1)), int(rng.integers(1, 5))
    paths = [[] for _ in range(n)]
    parents = [0] * n
    for level in range(1, depth):
        for leaf, parent in enumerate(parents):
            paths[leaf].append(parent * 10 + level * 1000 + int(rng.integers(0, 2)))
        parents = [path[-1] for path in paths]
    paths = [[*path, 10**6 + leaf] for leaf, path in enumerate(paths)]
    alike = rng.random() < 0.3
    cost = {node: 1.0 if alike else float(rng.integers(1, 60)) for path in paths for node in path}
    shares = rng.multinomial(16, rng.dirichlet(np.ones(n))) / 16
    labels = np.unique(rng.integers(0, int(rng.integers(1, 6)), n), return_inverse=True)[1]
    tokens = pl.Series([[cost[node] for node in path] for path in paths])
    tree = make_branches(pl.Series(paths), tokens, np.full(n, depth))
    return Case(Programme(shares, tree, labels, cost_weight, diversity_weight), paths, cost)


def plain_value(case: Case, kept: set[int]) -> float:
    programme, needed = case.programme, {node for leaf in kept for node in case.paths[leaf]}
    cost = sum(case.cost[node] for node in needed) / sum(case.cost.values())
    n_clusters = len(set(programme.labels.tolist()))
    covered = len({int(programme.labels[i]) for i in kept}) / n_clusters
    value = sum(programme.shares[i] for i in kept) - programme.cost_weight * cost
    return value + programme.diversity_weight * covered


def brute(case: Case, *, keeps_more: bool) -> tuple[float, set[int]]:
    n = len(case.paths)
    choices = [set(c) for k in range(1, n + 1) for c in itertools.combinations(range(n), k)]
    values = [plain_value(case, choice) for choice in choices]
    top = max(values)
    best = [c for c, value in zip(choices, values, strict=True) if value >= top - 1e-9]
    sign = -1 if keeps_more else 1
    return top, min(best, key=lambda choice: (sign * len(choice), sum(choice)))


WEIGHTS = [(1.0, 0.0), (1.0, 1.45), (0.3, 0.2), (0.0, 0.0), (0.0, 1.0), (2.0, 0.5), (30.0, 0.4)]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_programme_is_solved_as_by_brute_force(weights: tuple[float, float]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        case = random_programme(rng, *weights)
        programme = case.programme
        for keeps_more in (False, True):
            top, expected = brute(case, keeps_more=keeps_more)
            found = programme.solve(keeps_more=keeps_more)
            kept = set(np.flatnonzero(found).tolist())
            assert programme.value(found) == pytest.approx(plain_value(case, kept), abs=1e-12)
            assert programme.value(found) == pytest.approx(top, abs=2e-9)
            assert (len(kept), sum(kept)) == (len(expected), sum(expected))


@pytest.mark.slow
def test_the_programme_is_solved_on_trees_of_twelve_leaves() -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        weights = float(rng.choice([0.0, 0.5, 1.0, 5.0])), float(rng.choice([0.0, 0.5, 1.45]))
        case = random_programme(rng, *weights, most=12)
        top, expected = brute(case, keeps_more=False)
        kept = set(np.flatnonzero(case.programme.solve(keeps_more=False)).tolist())
        assert plain_value(case, kept) == pytest.approx(top, abs=2e-9)
        assert (len(kept), sum(kept)) == (len(expected), sum(expected))


def test_a_huge_cost_keeps_one_leaf_and_a_huge_diversity_one_of_each_cluster() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        assert random_programme(rng, 1e6, 0.0).programme.solve(keeps_more=False).sum() == 1
        programme = random_programme(rng, 1.0, 1e6).programme
        kept = programme.solve(keeps_more=False)
        assert set(programme.labels[kept]) == set(programme.labels)


def run(policy: S.Policy, seed: int = 3) -> pl.DataFrame:
    world = World()
    return S.search(Compared(world, 12).problems(), world.generate, world.verify, policy, seed=seed)


def test_without_weights_ets_is_rebase() -> None:
    columns = ["problem_id", "node_id", "n_allocated", "is_kept", "dropped_because"]
    free = run(ETS(16, cost_weight=0.0, diversity_weight=0.0, tie_break="keep"))
    assert free.select(columns).equals(run(Rebase(16)).select(columns))


def test_a_cost_makes_the_tree_smaller() -> None:
    n_kept = [
        run(ETS(16, cost_weight=weight, diversity_weight=0.0))
        .filter(pl.col("n_children") > 0)
        .height
        for weight in (0.0, 1.0, 1e6)
    ]
    assert n_kept[0] > n_kept[1] > n_kept[2]
    one = run(ETS(16, cost_weight=1e6, diversity_weight=0.0)).filter(pl.col("n_children") > 0)
    assert one.group_by("problem_id", "round").len()["len"].unique().to_list() == [1]
    dropped = run(ETS(16))["dropped_because"]
    assert "cost_model" in set(dropped)


def test_every_round_spends_the_width_that_is_left() -> None:
    for policy in (ETS(16), Dora(16)):
        nodes = run(policy)
        finished = nodes.group_by("problem_id", "round").agg(pl.col("is_terminal").sum())
        given = nodes.group_by("problem_id", "round").agg(pl.col("n_allocated").sum())
        both = given.join(finished, on=["problem_id", "round"]).sort("problem_id", "round")
        finished_so_far = pl.col("is_terminal").cum_sum().over("problem_id")
        left = both.select(16 - finished_so_far).to_series()
        spends = both["n_allocated"] > 0
        assert spends.any()
        assert (both["n_allocated"] == left).filter(spends).all()


def test_the_sign_of_the_weights_is_guarded() -> None:
    with pytest.raises(tts.TtsframeError, match=r"cost_weight == -1.0, must be a number from 0"):
        ETS(8, cost_weight=-1)
    with pytest.raises(tts.TtsframeError, match="embed must be callable, got str"):
        ETS(8, embed="bert")  # type: ignore[arg-type]
    with pytest.raises(tts.TtsframeError, match=r"returned an array of shape \(3,\) for"):
        run(Dora(8, embed=lambda _: [1, 2, 3]))
    with pytest.raises(tts.TtsframeError, match="embed: a number is not finite"):
        run(Dora(8, embed=lambda texts: [[float("nan")]] * len(texts)))


def test_uniqueness_is_the_diagonal_of_a_softmax_of_cosines() -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = uniqueness(vectors, 0.01)
    e = math.exp(-100)
    assert found.tolist() == pytest.approx([1 / (2 + e), 1 / (2 + e), 1 / (1 + 2 * e)])


def test_clusters_are_cut_at_a_distance() -> None:
    angle = np.array([0.0, 0.05, 1.0, 1.02])
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = clusters(vectors, 0.05)
    assert found[0] == found[1] != found[2] == found[3]
    assert len(set(clusters(vectors, 1e-6))) == 4
    assert clusters(vectors[:1], 0.05).tolist() == [0]


def test_dora_gives_less_to_copies_than_rebase() -> None:
    """Plain Python of one round: three copies of one step and one other, all scored alike."""
    frontier = pl.DataFrame({
        "problem": [0] * 4,
        "score": [0.5] * 4,
        "n_finished": [0] * 4,
        "text": ["add two", "add two", "add two", "multiply"],
    })
    given = Dora(8).ask(frontier)["n_allocated"].to_list()
    # Quality is a quarter each, uniqueness a third for the copies and one for the other: 1.33, 1.33, 1.33
    # and 4 of 8. Rounded they are seven, and the list of copies begins again.
    assert given == [2, 1, 1, 4]
    assert Rebase(8, rounding="round").ask(frontier)["n_allocated"].to_list() == [2, 2, 2, 2]
