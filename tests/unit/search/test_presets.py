"""The choices of published programs, one test each."""

from __future__ import annotations

import math
from typing import get_args

import polars as pl
import pytest
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
