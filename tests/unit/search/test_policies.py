"""Each policy against plain Python, on random trees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl
import pytest
import search_oracle as plain
from polars.testing import assert_frame_equal
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, Dora, ParticleFilter, Policy, Rebase

Oracle = Callable[[plain.Search], None]

CASES: dict[str, tuple[Policy, Oracle]] = {
    "best_of_n": (BestOfN(8, max_rounds=5), partial(plain.best_of_n, width=8)),
    "beam": (Beam(16, max_rounds=5), partial(plain.beam, width=16, m=4)),
    "beam_odd": (Beam(10, beam_width=3), partial(plain.beam, width=10, m=3)),
    "dvts": (DVTS(16, max_rounds=5), partial(plain.dvts, width=16, m=4)),
    "dvts_pairs": (DVTS(8, beam_width=2), partial(plain.dvts, width=8, m=2)),
    "rebase": (
        Rebase(16, max_rounds=5),
        partial(plain.rebase, width=16, temperature=0.2, shares=plain.shares_ceil),
    ),
    "rebase_round": (
        Rebase(16, temperature=0.1, rounding="round"),
        partial(plain.rebase, width=16, temperature=0.1, shares=plain.shares_round),
    ),
    "particle_filter": (ParticleFilter(8, max_rounds=5), partial(plain.particle_filter, width=8)),
}


def searched(world: World, policy: Policy, problems: pl.DataFrame, **options: int) -> pl.DataFrame:
    return tts.search.search(
        problems, world.generate, world.verify, policy, **{"seed": 3, **options}
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("world", [World(), World(unscored=0.6), World(digits=12, cut=0.0)])
def test_a_policy_is_its_plain_version(name: str, world: World) -> None:
    policy, oracle = CASES[name]
    compared = Compared(world, 40)
    nodes = searched(world, policy, compared.problems())
    compared.check(policy, oracle, nodes, seed=3)


@pytest.mark.parametrize("name", ["beam", "dvts", "rebase", "rebase_round"])
def test_a_policy_is_its_plain_version_on_logits(name: str) -> None:
    policy, oracle = CASES[name]
    world = World(logits=True)
    compared = Compared(world, 40)
    compared.check(policy, oracle, searched(world, policy, compared.problems()), seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_policy_is_its_plain_version_on_a_thousand_trees(name: str) -> None:
    policy, oracle = CASES[name]
    compared = Compared(World(), 1000)
    compared.check(policy, oracle, searched(World(), policy, compared.problems()), seed=3)


def test_dora_is_its_plain_version() -> None:
    world = World(n_texts=5)
    compared = Compared(world, 40)
    oracle = partial(
        plain.rebase, width=16, temperature=0.1, shares=partial(plain.shares_dora, n_texts=5)
    )
    nodes = searched(world, Dora(16, max_rounds=5), compared.problems())
    compared.check(Dora(16, max_rounds=5), oracle, nodes, seed=3)


@pytest.mark.parametrize("name", CASES)
def test_order_and_batches_do_not_change_the_tree(name: str) -> None:
    policy, _ = CASES[name]
    problems = Compared(World(), 5).problems()
    whole = searched(World(), policy, problems)
    shuffled = problems.sample(fraction=1.0, shuffle=True, seed=1)
    again = searched(World(), policy, shuffled, batch_size=3)
    assert_frame_equal(
        problems.select("problem_id").join(again, on="problem_id", maintain_order="left_right"),
        whole,
    )


@pytest.mark.parametrize("batch_size", [1, 7])
def test_a_batch_may_have_any_size(batch_size: int) -> None:
    problems = Compared(World(), 10).problems()
    whole = searched(World(), Rebase(8), problems)
    assert_frame_equal(searched(World(), Rebase(8), problems, batch_size=batch_size), whole)


@pytest.mark.parametrize("name", ["beam", "particle_filter"])
def test_the_seed_decides_a_search(name: str) -> None:
    policy, _ = CASES[name]
    problems, generator, prm = tts.search.simulate(6, seed=1)
    one = tts.search.search(problems, generator, prm, policy, seed=1)
    assert_frame_equal(one, tts.search.search(problems, generator, prm, policy, seed=1))
    assert not one.equals(tts.search.search(problems, generator, prm, policy, seed=2))


def test_subtrees_of_dvts_never_mix() -> None:
    nodes = searched(World(), DVTS(16), Compared(World(), 30).problems())
    parents = nodes.select("problem_id", parent_id="node_id", above="subtree")
    inner = nodes.join(parents, on=["problem_id", "parent_id"])
    assert inner.height
    assert (inner["subtree"] == inner["above"]).all()
    kept = nodes.filter(pl.col("n_children") > 0).group_by("problem_id", "round", "subtree").len()
    assert kept["len"].max() == 1
    assert nodes.filter(depth=1).group_by("problem_id", "subtree").len()[
        "len"
    ].unique().to_list() == [4]


def test_a_tree_keeps_every_step_that_was_asked_for() -> None:
    for policy, _ in CASES.values():
        nodes = searched(World(), policy, Compared(World(), 20).problems())
        children = nodes.group_by("problem_id", parent_id="parent_id").len("n")
        inner = nodes.join(
            children,
            left_on=["problem_id", "node_id"],
            right_on=["problem_id", "parent_id"],
            how="left",
        )
        assert (inner["n_children"] == inner["n"].fill_null(0)).all()
        cut = nodes.filter(pl.col("finish_reason") == "length")
        assert cut.height
        assert not cut["is_terminal"].any()
        assert set(cut["dropped_because"]) == {"truncated"}
