"""What annotation costs beside the model: prefixes, the cache, and graded rollouts, and plain Python.

The completer returns at once, so everything that is measured is the package's own. 8 solutions of 8
steps a problem, of which the first two are shared by several, 8 rollouts a step.
``TTSFRAME_BENCH_ROLLOUTS`` sets the number of rollouts (default 20,480).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_ROLLOUTS = int(os.environ.get("TTSFRAME_BENCH_ROLLOUTS", "20480"))
N_EACH = 8
SIZES = (max(N_ROLLOUTS // N_EACH**3, 2), 8, 8)
FILLER = "Then we multiply both sides by two and go on. " * 10


def completer(prefixes: list[str], n: int) -> list[list[str]]:
    """Answer at once, rightly now and then."""
    return [
        [f"{FILLER}The answer is {(len(text) + i) % 9}." for i in range(n)] for text in prefixes
    ]


@pytest.fixture(scope="module")
def solutions() -> pl.DataFrame:
    """Return solutions that share their first two steps with some others."""
    return pl.DataFrame(
        [
            (f"p{p}", s, i, f"What is {p} mod 9?", text(s, i), str(p % 9))
            for p, s, i in product(*(range(size) for size in SIZES))
        ],
        schema=["problem_id", "solution_id", "step", "problem", "text", "gold"],
        orient="row",
    )


def text(solution: int, step: int) -> str:
    """Write a step."""
    return (
        f"step {step}: {'we look at it' if step < 2 else f'way {solution} of going on'}"
        + "." * (solution % 2)
    )


def in_python(solutions: pl.DataFrame) -> Iterator[tuple[str, int, int, float]]:
    """Annotate row by row, as scripts do."""
    known: dict[str, list[str]] = {}
    prefix = ""
    for row in solutions.sort("problem_id", "solution_id", "step").to_dicts():
        prefix = row["problem"] + "\n\n" if row["step"] == 0 else prefix
        prefix += row["text"] + "\n"
        if prefix not in known:
            known[prefix] = completer([prefix], N_EACH)[0]
        found = [re.findall(r"[Tt]he answer is (\S+)\.", text)[-1] for text in known[prefix]]
        yield (
            row["problem_id"],
            row["solution_id"],
            row["step"],
            sum(answer == row["gold"] for answer in found) / N_EACH,
        )


def check(rollouts: pl.DataFrame, solutions: pl.DataFrame) -> None:
    """Compare the values of the steps with those of plain Python."""
    steps = tts.process.estimate_steps(rollouts).sort("problem_id", "solution_id", "step")
    expected = list(in_python(solutions))
    assert steps.select("problem_id", "solution_id", "step", "soft").rows() == expected
    assert rollouts.height == len(expected) * N_EACH


@pytest.mark.benchmark(group="annotation")
def test_in_memory(benchmark: BenchmarkFixture, solutions: pl.DataFrame) -> None:
    check(benchmark(tts.process.annotate, solutions, completer, N_EACH), solutions)


@pytest.mark.benchmark(group="annotation")
def test_into_a_cache(benchmark: BenchmarkFixture, solutions: pl.DataFrame, tmp_path: Path) -> None:
    folders = (str(tmp_path / str(i)) for i in range(10_000))

    def run() -> pl.DataFrame:
        return tts.process.annotate(solutions, completer, N_EACH, cache=next(folders), key="bench")

    check(benchmark.pedantic(run, rounds=3), solutions)


@pytest.mark.benchmark(group="annotation")
def test_out_of_a_cache(
    benchmark: BenchmarkFixture, solutions: pl.DataFrame, tmp_path: Path
) -> None:
    def run() -> pl.DataFrame:
        return tts.process.annotate(solutions, completer, N_EACH, cache=tmp_path, key="bench")

    run()
    check(benchmark(run), solutions)


@pytest.mark.benchmark(group="annotation")
def test_in_python(benchmark: BenchmarkFixture, solutions: pl.DataFrame) -> None:
    found = benchmark(lambda: list(in_python(solutions)))
    assert len(found) == solutions.height
