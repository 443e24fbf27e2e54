"""Keys of a million rows with few distinct answers: cold, from memory, and as a plain loop.

``TTSFRAME_BENCH_ROWS`` sets the number of rows (default 100,000), ``TTSFRAME_BENCH_ANSWERS`` the
number of distinct answers (default 500).
"""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts
from ttsframe.answers.engine import canonicalize
from ttsframe.answers.lookup import table

ROWS = int(os.environ.get("TTSFRAME_BENCH_ROWS", "100000"))
DISTINCT = int(os.environ.get("TTSFRAME_BENCH_ANSWERS", "500"))
WAYS = [
    str,
    lambda i: rf"\frac{{{i}}}{{{i % 7 + 2}}}",
    lambda i: rf"{i}\sqrt{{{i % 11 + 2}}}",
    lambda i: f"{i / 8}",
    lambda i: f"({i}, {i + 1})",
    lambda i: f"x^2 + {i}x",
    lambda i: rf"\$ {i:,}",
    lambda i: rf"{i}\text{{ cm}}",
    lambda i: f"[{i}, \\infty)",
    lambda i: f"x = {i}",
]


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    distinct = [WAYS[i % len(WAYS)](i) for i in range(DISTINCT)]
    rng = np.random.default_rng(0)
    return pl.DataFrame({"answer": pl.Series(distinct).gather(rng.integers(0, DISTINCT, ROWS))})


def forget() -> None:
    table._tables.clear()


def plan(frame: pl.DataFrame) -> pl.Series:
    return frame.lazy().select(tts.answer_key("answer")).collect(engine="streaming")["answer"]


@pytest.mark.parametrize(
    "way", ["cold", "from memory", "python, once per distinct", "python, per row"]
)
def test_answer_key(benchmark: BenchmarkFixture, frame: pl.DataFrame, way: str) -> None:
    policy = tts.answers.AnswerPolicy()
    expected = {answer: canonicalize(answer, policy).key for answer in frame["answer"].unique()}
    rows = frame["answer"].to_list()
    before = tts.answers.answer_statistics()
    assert plan(frame).to_list() == [expected[answer] for answer in rows]
    assert tts.answers.answer_statistics().n_by_worker == before.n_by_worker
    benchmark.group = f"answer_key, {ROWS:,} rows of {DISTINCT:,} answers"

    def python_distinct() -> list[str]:
        known = {answer: canonicalize(answer, policy).key for answer in set(rows)}
        return [known[answer] for answer in rows]

    if way == "cold":
        benchmark.pedantic(plan, args=(frame,), setup=forget, rounds=3)
    elif way == "from memory":
        benchmark(plan, frame)
    elif way == "python, once per distinct":
        benchmark.pedantic(python_distinct, rounds=3)
    else:
        benchmark.pedantic(lambda: [canonicalize(a, policy).key for a in rows], rounds=1)


@pytest.mark.parametrize("method", ["auto", "sympy"])
def test_methods(benchmark: BenchmarkFixture, frame: pl.DataFrame, method: str) -> None:
    distinct = frame.unique(maintain_order=True).head(200)
    key = tts.answer_key("answer", method=method)  # type: ignore[arg-type]
    first = distinct.select(key)["answer"]
    assert first.null_count() == 0
    benchmark.group = f"answer_key by method, {distinct.height} distinct answers, workers started"

    def run() -> pl.Series:
        return distinct.select(tts.answer_key("answer", method=method))["answer"]  # type: ignore[arg-type]

    assert benchmark.pedantic(run, setup=forget, rounds=3).equals(first)
