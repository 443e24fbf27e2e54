"""search-and-learn JSON lines to one row per attempt, in MB/s, beside json.loads and a loop.

``TTSFRAME_BENCH_MB`` sets the size of the file (default 20). ``scan`` is all that reading does: the
look through the whole file, then the parsing; ``parse`` is a scan made before the clock starts.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

MEGABYTES = int(os.environ.get("TTSFRAME_BENCH_MB", "20"))
N_ATTEMPTS = 16
COLUMNS = ["problem_id", "attempt", "completion", "step_scores", "gold", "n_tokens"]
STEP = "## Step: we note that $\\frac{a_{1}}{b}$ is at most $\\sqrt{2}$, and go on.\n"


def problem(rng: random.Random, number: int) -> dict[str, Any]:
    n_steps = [rng.randint(4, 24) for _ in range(N_ATTEMPTS)]
    scores = [[rng.random() for _ in range(n)] for n in n_steps]
    return {
        "problem": f"What is {number} + 1?",
        "solution": "Count on by one.",
        "answer": str(number + 1),
        "subject": "Algebra",
        "level": number % 5 + 1,
        "unique_id": f"test/algebra/{number}.json",
        "completions": [STEP * n + f"\\boxed{{{number + 1}}}" for n in n_steps],
        "scores": scores,
        "completion_tokens": [n * 40 for n in n_steps],
        "agg_scores": [values[-1] for values in scores],
        **{f"pred_{pick}@{k}": "\\boxed{1}" for pick in ("naive", "maj") for k in (1, 4, 16)},
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)
    file = tmp_path_factory.mktemp("bench") / "completions.jsonl"
    with file.open("w") as stream:
        number = 0
        while stream.tell() < MEGABYTES * 1_000_000:
            stream.write(json.dumps(problem(rng, number)) + "\n")
            number += 1
    return file


def python_loop(path: Path) -> pl.DataFrame:
    """Read as the tools themselves do: a dict per line, a dict per attempt."""
    attempts = []
    with path.open() as lines:
        for line in lines:
            row = json.loads(line)
            attempts.extend(
                dict(
                    zip(
                        COLUMNS,
                        (row["unique_id"], number, *values, row["answer"], tokens),
                        strict=True,
                    )
                )
                for number, (*values, tokens) in enumerate(
                    zip(row["completions"], row["scores"], row["completion_tokens"], strict=True)
                )
            )
    return pl.DataFrame(attempts, schema_overrides={"attempt": pl.UInt32})


def scan(path: Path) -> pl.DataFrame:
    return tts.scan_trajectories(path).select(COLUMNS).collect(engine="streaming")


@pytest.mark.benchmark(group="search-and-learn JSONL to attempts")
@pytest.mark.parametrize("way", ["scan", "parse", "look", "python"])
def test_read(benchmark: BenchmarkFixture, path: Path, way: str) -> None:
    scanned = tts.scan_trajectories(path).select(COLUMNS)
    ways: dict[str, Callable[[], Any]] = {
        "scan": lambda: scan(path),
        "parse": lambda: scanned.collect(engine="streaming"),
        "look": lambda: tts.scan_trajectories(path),
        "python": lambda: python_loop(path),
    }
    expected = python_loop(path)
    assert scan(path).equals(expected)
    assert expected.height == N_ATTEMPTS * expected["problem_id"].n_unique()

    benchmark(ways[way])

    if benchmark.stats:
        seconds = benchmark.stats.stats.median
        benchmark.extra_info["MB/s"] = round(path.stat().st_size / 1e6 / seconds)
