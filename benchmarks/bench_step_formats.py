"""Math-Shepherd's lines to one row per step and back, in MB/s, beside json.loads and a loop.

``TTSFRAME_BENCH_MB`` sets the size of the file (default 20). ``parse`` is a scan made before the clock
starts; ``shepherd_loop`` cuts texts at their line ends and looks at their last characters, and checks nothing.
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
COLUMNS = ["problem", "step", "text", "is_correct", "task"]
STEP = "She then works {} hours at ${} an hour, which makes <<{}*{}={}>>{} for the week in all."


def solution(rng: random.Random, number: int) -> dict[str, str]:
    """Return a row as large as those of the published data."""
    steps, marks = [], []
    for step in range(rng.randint(2, 8)):
        a, b = rng.randint(1, 99), rng.randint(1, 99)
        steps.append(f"Step {step + 1}: {STEP.format(a, b, a, b, a * b, a * b)}")
        marks.append(rng.choice("+-"))
    problem = f"Jane, number {number // 8}, works in two places. How much does she get in a year?"
    texts = {
        name: f"{problem} " + "\n".join(map(" ".join, zip(steps, ends, strict=True)))
        for name, ends in (("input", ["ки"] * len(steps)), ("label", marks))
    }
    return {**texts, "task": rng.choice(["GSM8K", "MATH"])}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)
    file = tmp_path_factory.mktemp("bench") / "math_shepherd.jsonl"
    with file.open("w") as stream:
        number = 0
        while stream.tell() < MEGABYTES * 1_000_000:
            stream.write(json.dumps(solution(rng, number)) + "\n")
            number += 1
    return file


def shepherd_loop(path: Path) -> pl.DataFrame:
    """Read as scripts do: a dict per line, a dict per step."""
    steps = []
    with path.open() as lines:
        for line in lines:
            row = json.loads(line)
            problem, _, rest = row["input"].partition(" Step 1:")
            texts = f"Step 1:{rest}".split("\n")
            for number, (text, marked) in enumerate(
                zip(texts, row["label"].split("\n"), strict=True)
            ):
                steps.append({
                    "problem": problem,
                    "step": number,
                    "text": text.removesuffix(" ки"),
                    "is_correct": marked[-1] == "+",
                    "task": row["task"],
                })
    return pl.DataFrame(steps)


@pytest.mark.benchmark(group="Math-Shepherd JSONL to steps")
@pytest.mark.parametrize("way", ["read", "parse", "look", "python"])
def test_read(benchmark: BenchmarkFixture, path: Path, way: str) -> None:
    scanned = tts.scan_steps(path)
    ways: dict[str, Callable[[], Any]] = {
        "read": lambda: tts.read_steps(path),
        "parse": lambda: scanned.collect(engine="streaming"),
        "look": lambda: tts.scan_steps(path),
        "python": lambda: shepherd_loop(path),
    }
    expected = shepherd_loop(path)
    assert tts.read_steps(path).select(COLUMNS).equals(expected)
    benchmark.extra_info["MB"] = path.stat().st_size / 1e6
    benchmark.extra_info["steps"] = expected.height
    benchmark.pedantic(ways[way], rounds=3, warmup_rounds=1)


@pytest.mark.benchmark(group="steps to Math-Shepherd JSONL")
@pytest.mark.parametrize("way", ["write", "python"])
def test_write(benchmark: BenchmarkFixture, path: Path, tmp_path: Path, way: str) -> None:
    steps = tts.read_steps(path)
    target = tmp_path / "steps.jsonl"

    def python() -> None:
        with target.open("w") as stream:
            for rows in steps.partition_by("problem_id", "solution_id", maintain_order=True):
                start, texts = rows["problem"][0], rows["text"].to_list()
                ends = {
                    "input": ["ки"] * len(texts),
                    "label": ["+" if label else "-" for label in rows["is_correct"]],
                }
                row = {
                    name: f"{start} " + "\n".join(map(" ".join, zip(texts, marks, strict=True)))
                    for name, marks in ends.items()
                }
                stream.write(json.dumps({**row, "task": rows["task"][0]}) + "\n")

    ways: dict[str, Callable[[], Any]] = {
        "write": lambda: tts.write_steps(steps, target, format="math_shepherd"),
        "python": python,
    }
    ways[way]()
    with path.open() as expected, target.open() as found:
        assert all(json.loads(a) == json.loads(b) for a, b in zip(expected, found, strict=True))
    benchmark.extra_info["MB"] = path.stat().st_size / 1e6
    benchmark.pedantic(ways[way], rounds=3, warmup_rounds=1)
