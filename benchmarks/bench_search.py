"""Searches with an instant model and verifier, beside plain Python that makes the same decisions.

``TTSFRAME_BENCH_SEARCH`` is problems x width x rounds (default 20x16x6; 500x64x20 is the size of a real
run). Steps have 200 characters. Plain Python ends with the same frame.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pytest_benchmark.fixture import BenchmarkFixture

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reference"))

import search_oracle as plain

import ttsframe as tts
from ttsframe.search import DVTS, ETS, Beam, BestOfN, Dora, ParticleFilter, Policy, Rebase
from ttsframe.search.identity import root_ids
from ttsframe.search.nodes import NODE_SCHEMA

N_PROBLEMS, WIDTH, N_ROUNDS = (
    int(n) for n in os.environ.get("TTSFRAME_BENCH_SEARCH", "20x16x6").split("x")
)
PROBLEMS = pl.DataFrame({
    "problem_id": [f"p{i}" for i in range(N_PROBLEMS)],
    "problem": ["What?"] * N_PROBLEMS,
})
TEXTS = pl.Series([f"{i:05d} " + "x" * 192 + "\n\n" for i in range(1000)])
WORDS = TEXTS.to_list()


def generate(requests: pl.DataFrame) -> pl.DataFrame:
    n = int(requests["n"].sum())
    depth = requests["depth"][0] + 1
    return pl.DataFrame({"text": TEXTS.gather(np.full(n, depth))}).with_columns(
        finish_reason=pl.lit("stop" if depth == N_ROUNDS else "step"), n_tokens=pl.lit(50)
    )


def verify(prefixes: pl.DataFrame) -> pl.Series:
    return pl.Series(
        (prefixes["node_id"].to_numpy() >> np.uint64(11)).astype(np.float64) * 2.0**-53
    )


CASES: dict[str, tuple[Policy, Callable[[plain.Search], None]]] = {
    "best_of_n": (BestOfN(WIDTH), partial(plain.best_of_n, width=WIDTH)),
    "beam": (Beam(WIDTH), partial(plain.beam, width=WIDTH, m=4)),
    "dvts": (DVTS(WIDTH), partial(plain.dvts, width=WIDTH, m=4)),
    "rebase": (
        Rebase(WIDTH),
        partial(plain.rebase, width=WIDTH, temperature=0.2, shares=plain.shares_ceil),
    ),
    "particle_filter": (ParticleFilter(WIDTH), partial(plain.particle_filter, width=WIDTH)),
}


def searched(policy: Policy) -> pl.DataFrame:
    return tts.search.search(PROBLEMS, generate, verify, policy, seed=0)


class WithTexts(plain.Search):
    """Writes the prefix of each node that is continued, as a request needs it."""

    def expand(self, node: plain.Node, n: int) -> list[plain.Node]:
        node.prefix = getattr(node, "prefix", "") + WORDS[node.depth]
        made = super().expand(node, n)
        for child in made:
            child.prefix = node.prefix
        return made


def in_python(oracle: Callable[[plain.Search], None]) -> pl.DataFrame:
    rows = []
    names = PROBLEMS["problem_id"]
    for name, root in zip(names.to_list(), root_ids(names).tolist(), strict=True):
        search = WithTexts(
            root, 0, plain.uniform, lambda _, depth: "stop" if depth == N_ROUNDS else "step", 40
        )
        oracle(search)
        rows += [
            (
                name,
                n.id,
                n.parent,
                n.depth - 1,
                n.depth,
                n.subtree,
                WORDS[n.depth],
                None,
                n.score,
                None,
                50,
                0,
                None,
                n.n_allocated,
                n.n_children,
                n.reason,
                n.is_finished,
                n.dropped is None,
                n.dropped,
            )
            for n in search.nodes
        ]
    return pl.DataFrame(rows, schema=NODE_SCHEMA, orient="row")


@pytest.mark.parametrize("name", CASES)
def test_search(name: str, benchmark: BenchmarkFixture) -> None:
    policy, oracle = CASES[name]
    nodes = benchmark.pedantic(searched, args=(policy,), rounds=3)
    assert nodes.height == N_PROBLEMS * WIDTH * N_ROUNDS
    keys = ["problem_id", "node_id"]
    assert_frame_equal(nodes.sort(keys), in_python(oracle).sort(keys))


@pytest.mark.parametrize("name", CASES)
def test_plain_python(name: str, benchmark: BenchmarkFixture) -> None:
    _, oracle = CASES[name]
    nodes = benchmark.pedantic(in_python, args=(oracle,), rounds=1)
    assert nodes.height == N_PROBLEMS * WIDTH * N_ROUNDS


def test_search_with_a_checkpoint(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    policy, _ = CASES["rebase"]
    folders = iter(range(100))

    def kept() -> pl.DataFrame:
        return tts.search.search(
            PROBLEMS, generate, verify, policy, seed=0, checkpoint=tmp_path / str(next(folders))
        )

    nodes = benchmark.pedantic(kept, rounds=3)
    assert nodes.equals(searched(policy))


class Watched(ETS):
    """Keeps the frontiers that it is asked about."""

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Decide as ETS does."""
        SEEN.append(frontier)
        return super().ask(frontier)


SEEN: list[pl.DataFrame] = []


@pytest.mark.parametrize("policy", [ETS, Dora])
@pytest.mark.parametrize("width", [16, 64, 256])
def test_one_round_of_one_problem(
    policy: type[Policy], width: int, benchmark: BenchmarkFixture
) -> None:
    """Five rounds of one problem with steps that are all different, the worst case of an embedding."""
    SEEN.clear()
    tts.search.search(*tts.search.simulate(1, seed=0, n_steps=(6, 6)), Watched(width), seed=0)
    frontiers = SEEN[1:]
    asked = policy(width)
    answers = benchmark.pedantic(
        lambda: [asked.ask(frontier) for frontier in frontiers], rounds=5, warmup_rounds=1
    )
    assert all(answer["n_allocated"].sum() <= width for answer in answers)
