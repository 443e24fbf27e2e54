"""The whole way from a search-and-learn file to a curve, beside two plain-Python scripts.

``TTSFRAME_BENCH_PROBLEMS`` sets the number of problems, of 64 attempts each (default 20); texts are
about 1.5 kB, with the density of LaTeX and newlines of real ones.
``TTSFRAME_BENCH_PROBLEMS=500 python benchmarks/bench_pipeline.py`` prints the rates.

Both scripts read with `json.loads` and vote with dicts. One compares answers as strings, which
splits the votes of equal answers; the other brings each distinct answer to search-and-learn's
canonical form first, and is timed on a slice of the file.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import sympy
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_PROBLEMS = int(os.environ.get("TTSFRAME_BENCH_PROBLEMS", "20"))
N_ATTEMPTS = 64
N_ROUNDS = 5
N_IN_SYMPY = 5
BUDGETS = [1, 2, 4, 8, 16, 32, 64]
STEP = "## Step: we note that $\\frac{a_{1}}{b}$ is at most $\\sqrt{2}$, and go on.\n\n"
N_STEPS = 18
LAST_BOX = re.compile(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


def write_run(path: Path) -> None:
    """Write a simulated run in search-and-learn's shape, one spelling an answer."""
    run = tts.simulate_trajectories(N_PROBLEMS, N_ATTEMPTS, seed=0, respelled_share=0.0)
    ending = pl.format("The final answer is $\\boxed{{{}}}$.", "answer").fill_null("I give up.")
    grouped = (
        run
        .with_columns(completion=pl.concat_str(pl.lit(STEP * N_STEPS), ending))
        .group_by("problem_id", maintain_order=True)
        .agg(pl.col("gold").first(), "completion", "step_scores", "n_tokens")
    )
    with path.open("w") as lines:
        for row in grouped.iter_rows(named=True):
            line = {
                "unique_id": row["problem_id"],
                "problem": f"What is asked in {row['problem_id']}?",
                "answer": row["gold"],
                "completions": row["completion"],
                "scores": row["step_scores"],
                "completion_tokens": row["n_tokens"],
            }
            lines.write(json.dumps(line) + "\n")


def curve(path: Path) -> dict[tuple[str, int], float]:
    frame = (
        tts
        .scan_trajectories(path)
        .pipe(tts.score_trajectories)
        .pipe(tts.select_answers, budgets=BUDGETS)
        .pipe(tts.scaling_curve)
        .select("selector", "budget", "accuracy")
        .collect(engine="streaming")
    )
    return {(selector, budget): accuracy for selector, budget, accuracy in frame.rows()}


@functools.cache
def canonical(answer: str) -> str:
    """Return the form that search-and-learn votes on."""
    latex2sympy2 = importlib.import_module("latex2sympy2")
    try:
        return str(sympy.latex(sympy.simplify(latex2sympy2.latex2sympy(answer))))
    except Exception:  # noqa: BLE001  # the parser raises whatever it meets
        return answer


def curve_in_python(
    path: Path, key: Callable[[str], str] = str, n_problems_read: int | None = None
) -> dict[tuple[str, int], float]:
    right: defaultdict[tuple[str, int], int] = defaultdict(int)
    n_problems = 0
    with path.open() as lines:
        for line in itertools.islice(lines, n_problems_read):
            problem = json.loads(line)
            n_problems += 1
            found = [LAST_BOX.findall(text) for text in problem["completions"]]
            answers = [key(boxes[-1]) if boxes else None for boxes in found]
            gold = key(problem["answer"])
            scores = [steps[-1] for steps in problem["scores"]]
            for budget in BUDGETS:
                votes: defaultdict[str, int] = defaultdict(int)
                weights: defaultdict[str, float] = defaultdict(float)
                for answer, score in zip(answers[:budget], scores[:budget], strict=True):
                    if answer is not None:
                        votes[answer] += 1
                        weights[answer] += score
                best = answers[max(range(budget), key=scores.__getitem__)]
                picks = {
                    "majority_vote": max(votes, key=votes.__getitem__, default=None),
                    "weighted_vote": max(weights, key=weights.__getitem__, default=None),
                    "best_of_n": best,
                }
                for selector, answer in picks.items():
                    right[selector, budget] += answer == gold
    return {line: n / n_problems for line, n in right.items()}


def check(path: Path) -> None:
    found, expected = curve(path), curve_in_python(path)
    assert found.keys() == expected.keys()
    for line, accuracy in found.items():
        assert abs(accuracy - expected[line]) < 1e-12, line


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pipeline") / "completions.jsonl"
    write_run(file)
    check(file)
    return file


def test_ttsframe(benchmark: BenchmarkFixture, path: Path) -> None:
    benchmark.group = f"whole pipeline, {N_PROBLEMS * N_ATTEMPTS:,} attempts"
    benchmark(curve, path)


def test_python_script(benchmark: BenchmarkFixture, path: Path) -> None:
    benchmark.group = f"whole pipeline, {N_PROBLEMS * N_ATTEMPTS:,} attempts"
    benchmark.pedantic(curve_in_python, (path,), rounds=1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_python_script_with_sympy(benchmark: BenchmarkFixture, path: Path) -> None:
    benchmark.group = f"whole pipeline, {N_PROBLEMS * N_ATTEMPTS:,} attempts"
    importlib.import_module("latex2sympy2")
    canonical.cache_clear()
    benchmark.pedantic(curve_in_python, (path, canonical, N_IN_SYMPY), rounds=1)


def main() -> int:
    """Print attempts per second of both, measured in turn in one run."""
    n_attempts = N_PROBLEMS * N_ATTEMPTS
    timings: dict[str, list[float]] = {"ttsframe": [], "Python, strings": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "completions.jsonl"
        write_run(path)
        check(path)
        megabytes = path.stat().st_size / 1e6
        for _ in range(N_ROUNDS):
            timings["ttsframe"].append(seconds(lambda: curve(path)))
            timings["Python, strings"].append(seconds(lambda: curve_in_python(path)))
        importlib.import_module("latex2sympy2")
        on_slice = seconds(lambda: curve_in_python(path, canonical, N_IN_SYMPY))
    timings["Python, sympy"] = [on_slice * N_PROBLEMS / min(N_IN_SYMPY, N_PROBLEMS)]
    print(f"{n_attempts:,} attempts, {megabytes:.0f} MB of JSON lines, polars {pl.__version__},")
    print(f"{pl.thread_pool_size()} threads, median of {N_ROUNDS} rounds; sympy from a slice\n")
    unit = statistics.median(timings["ttsframe"])
    for name, found in timings.items():
        median = statistics.median(found)
        rate = f"{n_attempts / median:,.0f}"
        print(f"{name:<16}{median:>9.2f} s{rate:>10} attempts/s{median / unit:>8.1f} x")
    return 0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
