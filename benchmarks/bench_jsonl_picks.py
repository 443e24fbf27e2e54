"""A search-and-learn file to picks for all budgets, each time in a new process.

``TTSFRAME_BENCH_PROBLEMS`` and ``TTSFRAME_BENCH_ATTEMPTS`` set the size (default 10 x 64), of texts of
about 1.5 kB. ``TTSFRAME_BENCH_PROBLEMS=500 TTSFRAME_BENCH_ATTEMPTS=256 python
benchmarks/bench_jsonl_picks.py`` prints attempts per second: of a process from its start to its end,
and of the work after the import; what its cores did, which says more on a machine that others
use; and the time of each step. The file is in the page cache, or not where ``--uncached`` is given.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import resource
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
import sympy
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_PROBLEMS = int(os.environ.get("TTSFRAME_BENCH_PROBLEMS", "10"))
N_ATTEMPTS = int(os.environ.get("TTSFRAME_BENCH_ATTEMPTS", "64"))
N_ROUNDS = 7
N_IN_SYMPY = 2
BUDGETS = [2**power for power in range(N_ATTEMPTS.bit_length())]
STEP = "## Step: we note that $\\frac{a_{1}}{b}$ is at most $\\sqrt{2}$, and go on.\n\n"
N_STEPS = 18
BASELINE = Path(__file__).with_name("picks_in_python.py")
OURS = """
import sys, time
started = time.perf_counter()
import ttsframe as tts
imported = time.perf_counter()
picks = (
    tts.scan_trajectories(sys.argv[1])
    .pipe(tts.score_trajectories)
    .pipe(tts.select_answers, budgets=[*map(int, sys.argv[3:])])
    .collect(engine="streaming")
)
print(time.perf_counter() - imported)
if sys.argv[2]:
    picks.write_parquet(sys.argv[2])
"""
PARTS = """
import json, sys, time
times = {}
def took(name, work):
    start = time.perf_counter()
    found = work()
    times[name] = time.perf_counter() - start
    return found
def load():
    import ttsframe
    return ttsframe
tts = took("import", load)
run = took("parse", lambda: tts.read_trajectories(sys.argv[1]))
run = took("answers", lambda: run.with_columns(answer=tts.extract_answer("completion")))
keys = {"answer_key": tts.answer_key("answer"), "gold_key": tts.gold_key("gold")}
run = took("keys", lambda: run.with_columns(**keys))
run = took("grades and scores", lambda: run.pipe(tts.score_trajectories))
took("votes", lambda: run.pipe(tts.select_answers, budgets=[*map(int, sys.argv[2:])]))
print(json.dumps(times))
"""
NO_FILE = ""


class Run(NamedTuple):
    """What a process took, in seconds."""

    wall: float
    cpu: float
    printed: float


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


def run(*arguments: str | Path) -> Run:
    """Run Python in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.PIPE, timeout=600
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu, float(done.stdout))


def ours(path: Path, picks: Path | str = NO_FILE) -> Run:
    return run("-c", OURS, path, picks, *map(str, BUDGETS))


def parts(path: Path) -> dict[str, float]:
    """Return the seconds of each step, one after the other in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", PARTS, path, *map(str, BUDGETS)],
        check=True,
        stdout=subprocess.PIPE,
        timeout=600,
    )
    return dict(json.loads(done.stdout))


def plain(path: Path) -> Run:
    return run(BASELINE, path, *map(str, BUDGETS))


@functools.cache
def canonical(answer: str) -> str:
    """Return the form that search-and-learn votes on."""
    latex2sympy2 = importlib.import_module("latex2sympy2")
    try:
        return str(sympy.latex(sympy.simplify(latex2sympy2.latex2sympy(answer))))
    except Exception:  # noqa: BLE001  # the parser raises whatever it meets
        return answer


def check(path: Path, folder: Path) -> None:
    """Compare each pick with the plain script's."""
    picks = folder / "picks.parquet"
    ours(path, picks)
    key = ["problem_id", "budget", "selector"]
    expected = pl.DataFrame(
        list(runpy.run_path(str(BASELINE))["picks"](path, BUDGETS)), orient="row"
    )
    both = pl.read_parquet(picks).join(expected, on=key, how="full", validate="1:1")
    assert both.height == expected.height == N_PROBLEMS * len(BUDGETS) * 3
    for name in ("answer", "is_correct"):
        assert both[name].eq_missing(both[f"{name}_right"]).all(), name


def leave_page_cache(path: Path) -> None:
    """Write a file to the disk and drop it from memory."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("picks")
    file = folder / "completions.jsonl"
    write_run(file)
    check(file, folder)
    return file


@pytest.mark.parametrize("script", [ours, plain], ids=["ttsframe", "python_script"])
def test_new_process(
    benchmark: BenchmarkFixture, path: Path, script: Callable[[Path], Run]
) -> None:
    benchmark.group = f"JSON lines to picks in a new process, {N_PROBLEMS * N_ATTEMPTS:,} attempts"
    benchmark.pedantic(script, (path,), rounds=3)


def main(*, is_cached: bool) -> int:
    """Print attempts per second, measured in turn in one run."""
    n_attempts = N_PROBLEMS * N_ATTEMPTS
    runs: dict[str, list[Run]] = {"ttsframe": [], "Python, strings": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "completions.jsonl"
        write_run(path)
        check(path, Path(folder))
        megabytes = path.stat().st_size / 1e6
        for _ in range(N_ROUNDS):
            for name, script in zip(runs, (ours, plain), strict=True):
                if not is_cached:
                    leave_page_cache(path)
                runs[name].append(script(path))
        steps = [parts(path) for _ in range(N_ROUNDS)]
        importlib.import_module("latex2sympy2")
        start = time.perf_counter()
        for _ in runpy.run_path(str(BASELINE))["picks"](path, BUDGETS, canonical, N_IN_SYMPY):
            pass
        in_sympy = (time.perf_counter() - start) * N_PROBLEMS / min(N_IN_SYMPY, N_PROBLEMS)
    after_import = statistics.median(one.printed for one in runs["ttsframe"])
    print(f"{n_attempts:,} attempts, {megabytes:.0f} MB of JSON lines", end=" ")
    print("in" if is_cached else "out of", f"the page cache, {len(BUDGETS)} budgets,")
    print(
        f"polars {pl.__version__}, {pl.thread_pool_size()} threads, load {os.getloadavg()[0]:.1f};"
    )
    print(f"median and least of {N_ROUNDS} new processes; sympy from {N_IN_SYMPY} problems\n")
    for name, found in runs.items():
        walls, cpu = [one.wall for one in found], statistics.median(one.cpu for one in found)
        _say(name, statistics.median(walls), n_attempts, f"{min(walls):>8.2f} s  {cpu:>6.2f} s CPU")
    _say("after import", after_import, n_attempts, "")
    _say("Python, sympy", in_sympy, n_attempts, "")
    print("\nstep by step, in memory:")
    for name in steps[0]:
        print(f"{name:<20}{statistics.median(each[name] for each in steps):>8.2f} s")
    return 0


def _say(name: str, seconds: float, n_attempts: int, more: str) -> None:
    print(f"{name:<16}{seconds:>8.2f} s {n_attempts / seconds:>10,.0f} attempts/s {more}")


if __name__ == "__main__":
    sys.exit(main(is_cached="--uncached" not in sys.argv))
