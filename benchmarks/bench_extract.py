"""Final answers out of completions, in MB/s, beside a plain Python loop.

``TTSFRAME_BENCH_MB`` sets the amount of text (default 20).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

MEGABYTES = int(os.environ.get("TTSFRAME_BENCH_MB", "20"))
STEP = "Next, we note that $\\frac{a_{1}}{b} + \\{x\\}$ is at most $\\sqrt{2}$, step by step.\n"
ENDINGS: dict[str, Callable[[int], tuple[str, str]]] = {
    "boxed": lambda i: (f"Thus $x = \\boxed{{\\frac{{{i}}}{{7}}}}$.", f"\\frac{{{i}}}{{7}}"),
    "final_answer": lambda i: (f"The answer is: {i % 5000} ки", str(i % 5000)),
    "hash": lambda i: (f"#### {i % 5000}", str(i % 5000)),
}


def texts(ending: Callable[[int], tuple[str, str]]) -> tuple[pl.DataFrame, list[str]]:
    body = STEP * 20
    n_rows = MEGABYTES * 1_000_000 // len(body)
    pairs = [ending(i) for i in range(n_rows)]
    return pl.DataFrame({"completion": [body + text for text, _ in pairs]}), [a for _, a in pairs]


def python_loop(completions: list[str]) -> list[str | None]:
    """Extract as public tools do: a loop over the characters of the last box, or a search."""
    answers: list[str | None] = []
    for text in completions:
        start = text.rfind("\\boxed{")
        if start >= 0:
            depth, position = 1, start + len("\\boxed{")
            while position < len(text) and depth:
                depth += {"{": 1, "}": -1}.get(text[position], 0)
                position += 1
            answers.append(text[start + len("\\boxed{") : position - 1])
            continue
        match = re.search(r"answer is: (\S+) ки|#### (\S+)", text)
        answers.append(next(group for group in match.groups() if group) if match else None)
    return answers


@pytest.mark.parametrize("style", ENDINGS)
@pytest.mark.parametrize("way", ["expression", "python"])
def test_extract(benchmark: BenchmarkFixture, style: str, way: str) -> None:
    frame, expected = texts(ENDINGS[style])
    plan = frame.lazy().select(tts.extract_answer("completion"))
    completions = frame["completion"].to_list()

    def run() -> list[str | None]:
        if way == "python":
            return python_loop(completions)
        return plan.collect(engine="streaming")["completion"].to_list()

    assert run() == expected
    benchmark.group = f"extract {style}, {MEGABYTES} MB"
    benchmark.extra_info["megabytes"] = MEGABYTES
    if way == "python":
        benchmark(python_loop, completions)
    else:
        benchmark(lambda: plan.collect(engine="streaming"))
    if not benchmark.disabled:
        seconds = benchmark.stats.stats.median
        benchmark.extra_info["megabytes_per_second"] = round(MEGABYTES / seconds)
        print(f"{style} {way}: {MEGABYTES / seconds:,.0f} MB/s")
