"""The choices of published programs, one test each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import get_args

import polars as pl
import pytest
import search_oracle as plain
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import PRESETS
from ttsframe.search.policies import PresetName

S = tts.search
PROBLEMS = Compared(World(), 10).problems()


def run(name: PresetName, width: int, world: World | None = None) -> pl.DataFrame:
    world = world or World()
    return S.search(PROBLEMS, world.generate, world.verify, S.preset(name, width), seed=3)


def given(
    name: PresetName, width: int, scores: list[float | None], **columns: list[object]
) -> list[int]:
    frontier = pl.DataFrame({
        "problem": [0] * len(scores),
        "depth": [1] * len(scores),
        "subtree": [0] * len(scores),
        "score": scores,
        "is_terminal": [False] * len(scores),
        "n_finished": [0] * len(scores),
        "n_finished_subtree": [0] * len(scores),
        "n_copies": [1] * len(scores),
        "text": [f"s{i}" for i in range(len(scores))],
        **columns,
    })
    return S.preset(name, width).ask(frontier)["n_allocated"].to_list()


def test_every_preset_searches_and_names_what_it_reproduces() -> None:
    assert list(PRESETS) == list(get_args(PresetName))
    for name, row in PRESETS.items():
        assert row.reproduces
        nodes = run(name, 16)
        assert nodes["is_terminal"].any()
        assert S.to_trajectories(nodes, policy=S.preset(name, 16)).height
    with pytest.raises(tts.TtsframeError, match="name == 'best'"):
        S.preset("best", 4)  # type: ignore[arg-type]


def test_search_and_learn_writes_whole_solutions_for_best_of_n() -> None:
    problems, generator, prm = S.simulate(4, seed=0)
    nodes = S.search(problems, generator, prm, S.preset("search_and_learn_best_of_n", 4), seed=0)
    assert nodes["depth"].unique().to_list() == [1]
    assert nodes["is_terminal"].all()


def test_search_and_learn_beam_keeps_its_width_until_nothing_is_unfinished() -> None:
    nodes = run("search_and_learn_beam", 16)
    rounds = nodes.group_by("problem_id", "round").len()
    assert rounds["len"].unique().to_list() == [16]
    finished = nodes.group_by("problem_id").agg(pl.col("is_terminal").sum())
    assert finished["is_terminal"].max() > 16


def test_search_and_learn_beam_takes_a_cut_or_an_empty_step_for_finished() -> None:
    nodes = run("search_and_learn_beam", 16, World(cut=0.3))
    assert nodes.filter(finish_reason="length")["is_terminal"].all()

    def empty(requests: pl.DataFrame) -> pl.DataFrame:
        n = int(requests["n"].sum())
        return pl.DataFrame({"text": [""] * n, "finish_reason": ["step"] * n})

    policy = S.preset("search_and_learn_beam", 4)
    ended = S.search(PROBLEMS, empty, World().verify, policy, seed=0)
    assert ended["is_terminal"].all()


def test_search_and_learn_beam_ranks_later_and_gives_the_rest_to_the_first() -> None:
    assert given("search_and_learn_beam", 8, [0.5] * 4) == [0, 0, 4, 4]
    assert given("search_and_learn_beam", 14, [0.9, 0.1, 0.5, 0.8]) == [5, 0, 5, 4]


def test_search_and_learn_beam_returns_the_first_and_pads_with_copies() -> None:
    policy = S.preset("search_and_learn_beam", 16)
    nodes = run("search_and_learn_beam", 16)
    solutions = S.to_trajectories(nodes, policy=policy)
    assert solutions.group_by("problem_id").len()["len"].unique().to_list() == [16]
    every = S.to_trajectories(nodes)
    first = every.filter(pl.col("attempt") < 16)
    assert solutions["node_id"].to_list() == first["node_id"].to_list()
    few = run("search_and_learn_beam", 4, World(stop=0.0, cut=0.0))
    padded = S.to_trajectories(few, policy=S.preset("search_and_learn_beam", 8))
    assert padded.group_by("problem_id").len()["len"].unique().to_list() == [8]


def test_search_and_learn_beam_orders_steps_by_child_and_then_by_parent() -> None:
    nodes = run("search_and_learn_beam", 8).filter(problem_id="p0", round=1)
    parents = nodes["parent_id"].to_list()
    n = nodes["parent_id"].n_unique()
    assert parents == [parents[i % n] for i in range(len(parents))]


def test_search_and_learn_dvts_returns_unfinished_siblings() -> None:
    nodes = run("search_and_learn_dvts", 16)
    solutions = S.to_trajectories(nodes)
    assert "step" in set(solutions["finish_reason"])
    ends = solutions.join(nodes, on=["problem_id", "node_id"])
    # All four candidates of the last round of a subtree.
    sizes = ends.group_by("problem_id", "subtree").len()["len"].unique().to_list()
    assert sizes == [4]


def test_search_and_learn_dvts_loses_a_finished_solution_that_is_not_the_best() -> None:
    frontier = {"is_terminal": [True, False, False, False]}
    assert given("search_and_learn_dvts", 4, [0.5, 0.9, 0.1, 0.2], **frontier) == [0, 4, 0, 0]
    dropped = run("search_and_learn_dvts", 16).filter(is_terminal=True)["dropped_because"]
    assert "pruned" in set(dropped)


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("search_and_learn_dvts", "boxed{"),
        ("rebase", "The answer is"),
        ("ets_beam", "The answer is"),
        ("its_hub_beam", "\\boxed"),
        ("its_hub_particle", "\\boxed"),
    ],
)
def test_a_mark_in_the_text_ends_a_solution(name: PresetName, mark: str) -> None:
    def marked(requests: pl.DataFrame) -> pl.DataFrame:
        n = int(requests["n"].sum())
        return pl.DataFrame({"text": [f"so {mark} 4"] * n, "finish_reason": ["step"] * n})

    nodes = S.search(PROBLEMS, marked, World().verify, S.preset(name, 16), seed=0)
    assert nodes["depth"].unique().to_list() == [1]
    assert nodes["is_terminal"].all()


def test_rebase_prefers_the_later_of_equals_and_stops_after_25_rounds() -> None:
    assert given("rebase", 7, [0.5, 0.5]) == [3, 4]
    endless = World(stop=0.0, cut=0.0)

    def never(requests: pl.DataFrame) -> pl.DataFrame:
        return endless.generate(requests).with_columns(finish_reason=pl.lit("step"))

    nodes = S.search(PROBLEMS.head(1), never, endless.verify, S.preset("rebase", 4), seed=0)
    assert nodes["round"].max() == 24
    assert nodes.filter(round=24)["dropped_because"].unique().to_list() == ["budget"]


def test_dora_rebase_rounds_and_keeps_its_width() -> None:
    weights = [math.exp(score / 0.1) for score in (0.5, 0.45, 0.3)]
    rounded = [round(16 * weight / sum(weights)) for weight in weights]
    assert sum(rounded) == 16
    assert given("dora_rebase", 16, [0.5, 0.45, 0.3]) == rounded
    nodes = run("dora_rebase", 16)
    assert nodes.group_by("problem_id", "round").len()["len"].unique().to_list() == [16]
    finished = nodes.group_by("problem_id").agg(pl.col("is_terminal").sum())["is_terminal"]
    assert finished.max() > 16


@pytest.mark.parametrize(("width", "weight"), [(16, 1.5), (64, 1.4), (256, 1.45)])
def test_ets_weighs_diversity_by_width(width: int, weight: float) -> None:
    policy = S.preset("ets", width)
    assert isinstance(policy, S.ETS)
    assert (policy.cost_weight, policy.diversity_weight, policy.node_cost) == (1.0, weight, "nodes")


def test_beam_and_dvts_of_ets_go_by_the_square_root() -> None:
    scores = [0.1 * i for i in range(8)]
    # Three of eight are kept, and each gets a third of eight, rounded up: nine.
    assert given("ets_beam", 8, list(scores)) == [0, 0, 0, 0, 0, 3, 3, 3]
    nodes = run("ets_dvts", 16)
    assert nodes["subtree"].unique().sort().to_list() == [0, 1, 2, 3]


WORDS = World(n_texts=3, digits=12, unscored=0.0, cut=0.1)
PLAIN: dict[PresetName, tuple[World, Callable[[plain.Search], None]]] = {
    "compute_optimal_tts": (
        WORDS,
        partial(plain.compute_optimal_tts, width=16, m=4, word_of=lambda node: node % 3),
    ),
    "its_hub_beam": (
        World(digits=12, unscored=0.0, cut=0.1),
        partial(plain.its_hub_beam, width=16, n_kept=4),
    ),
    "its_hub_particle": (World(cut=0.1), partial(plain.its_hub_particle, width=16)),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("max_rounds", [5, 32])
def test_a_preset_is_its_plain_version(name: PresetName, max_rounds: int) -> None:
    world, oracle = PLAIN[name]
    # No step is asked for twice here: which ones are is tested below.
    policy = replace(S.preset(name, 16), max_rounds=max_rounds)
    if name == "compute_optimal_tts":
        policy = replace(policy, truncated="drop")
    compared = Compared(world, 60)
    problems = compared.problems()
    nodes = S.search(problems, world.generate, world.verify, policy, seed=3)
    compared.check(policy, oracle, nodes, seed=3)
    solutions = S.to_trajectories(nodes, policy=policy)
    unfinished = solutions.filter(pl.col("finish_reason") != "stop")
    assert (unfinished.drop_nulls("completion").height > 0) == (max_rounds == 5)


def test_compute_optimal_tts_returns_a_quarter_of_its_width() -> None:
    policy = S.preset("compute_optimal_tts", 16)
    solutions = S.to_trajectories(run("compute_optimal_tts", 16), policy=policy)
    assert solutions.group_by("problem_id").len()["len"].max() == 4
    frontier = {"is_terminal": [True, False, True, False], "depth": [1, 2, 2, 2]}
    frontier |= {"round": [2] * 4, "n_scores": [None] * 4, "text": list("abcd")}
    # One place of two is held by the finished path of the round before.
    assert given("compute_optimal_tts", 8, [0.1, 0.8, 0.9, 0.7], **frontier) == [1, 0, 1, 0]
    assert given("compute_optimal_tts", 8, [0.1, 0.8, 0.6, 0.7], **frontier) == [1, 4, 0, 0]


def test_compute_optimal_tts_takes_a_list_of_the_wrong_length_for_0() -> None:
    frontier = {"round": [1] * 3, "n_scores": [1, 2, None]}
    assert given("compute_optimal_tts", 4, [0.3, 0.9, 0.2], **frontier) == [4, 0, 0]


def test_compute_optimal_tts_tries_three_times_where_all_steps_are_cut() -> None:
    asked: list[tuple[int, int]] = []

    def cutting(requests: pl.DataFrame) -> pl.DataFrame:
        asked.append((requests["depth"][0], int(requests["n"].sum())))
        n = int(requests["n"].sum())
        # Only the second try of first steps brings one that is whole.
        whole = len(asked) == 2
        reasons = ["step" if whole and i == 0 else "length" for i in range(n)]
        return pl.DataFrame({
            "text": [f"{len(asked)}-{i}" for i in range(n)],
            "finish_reason": reasons,
        })

    policy = S.preset("compute_optimal_tts", 8)
    nodes = S.search(PROBLEMS.head(1), cutting, World().verify, policy, seed=0)
    assert asked == [(0, 8), (0, 8), (1, 4), (1, 4), (1, 4)]
    assert set(nodes.filter(finish_reason="length")["dropped_because"]) == {"truncated"}


def test_its_hub_multiplies_finished_paths_and_returns_as_many_as_its_width() -> None:
    for name in ("its_hub_beam", "its_hub_particle"):
        policy = S.preset(name, 16)
        nodes = run(name, 16)
        solutions = S.to_trajectories(nodes, policy=policy)
        assert solutions.group_by("problem_id").len()["len"].unique().to_list() == [16]
        assert solutions.height > solutions["node_id"].n_unique()
    assert run("its_hub_beam", 8).filter(depth=1).group_by("problem_id").len()["len"].max() == 2
    frontier = {"is_terminal": [True, False], "n_copies": [3, 1]}
    assert given("its_hub_beam", 8, [0.9, 0.1], **frontier) == [6, 2]
    assert given("its_hub_beam", 8, [0.1, 0.9], **frontier) == [6, 2]
    with pytest.raises(tts.TtsframeError, match="width == 6, must be a multiple of 4"):
        S.preset("its_hub_beam", 6)


def test_its_hub_continues_a_cut_step() -> None:
    for name in ("its_hub_beam", "its_hub_particle"):
        nodes = run(name, 16, World(cut=0.5))
        assert nodes.filter(finish_reason="length")["n_children"].max() > 0
