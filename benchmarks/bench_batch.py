"""Batch jobs from Parquet to Parquet, beside reading, a plain copy, DuckDB and plain Python.

``TTSFRAME_BENCH_ATTEMPTS`` sets the number of keyed attempts and ``TTSFRAME_BENCH_MB`` the size of
the texts (defaults 20,480 attempts, 8 MB).
``TTSFRAME_BENCH_ATTEMPTS=1000000,5000000,20000000 TTSFRAME_BENCH_MB=1000,10000 python
benchmarks/bench_batch.py`` runs each job in fresh processes, in turn with its baselines, and prints
medians, ratios and peak memory; ``TTSFRAME_BENCH_ROUNDS`` is how often (default 5). Results are compared with the functions in memory first.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

sys.path.insert(0, str(Path(__file__).parent))

from bench_curve import BUDGETS, COLUMNS, N_PER_PROBLEM, SELECTORS, SIZES, write_run

MEGABYTES = [int(n) for n in os.environ.get("TTSFRAME_BENCH_MB", "8").split(",")]
N_ROUNDS = int(os.environ.get("TTSFRAME_BENCH_ROUNDS", "5"))
MOST_WITH_TEXTS = 2_000
"""Megabytes up to which the jobs that keep the texts are timed, too."""
N_PROBLEMS_AT_ONCE = 500
BYTES_PER_ATTEMPT = 1_470
SLICE = 2_000
"""Attempts that plain Python scores."""

SETUP = """
import sys; sys.path.insert(0, {folder!r})
import json, time
import polars as pl, ttsframe as tts
from bench_batch import jobs
from bench_curve import peak
started = time.perf_counter()
jobs[{job!r}]({source!r}, {sink!r})
seconds = time.perf_counter() - started
print(json.dumps([seconds, peak()]))
"""


def read(source: str, _: str) -> None:
    """Read the columns that a curve reads: the unit of all ratios to reading."""
    pl.scan_parquet(source).select(COLUMNS).collect(engine="streaming")


def group(source: str, _: str) -> None:
    """Count votes, and nothing else."""
    pl.scan_parquet(source).group_by("problem_id", "answer_key").len().collect(engine="streaming")


def copy(source: str, sink: str) -> None:
    """Copy the file through Polars."""
    pl.scan_parquet(source).sink_parquet(sink)


def convert(source: str, sink: str) -> None:
    """Write attempts in order, and do nothing with them."""
    tts.batch.transform(source, sink, stages=[])


def votes(source: str, sink: str) -> None:
    """Count the votes of every answer at all budgets."""
    tts.batch.transform(source, sink, stages=counting())


def select(source: str, sink: str) -> None:
    """Pick answers at all budgets."""
    tts.batch.transform(source, sink, stages=selection())


def curve(source: str, sink: str) -> None:
    """Pick answers and average problems."""
    tts.batch.transform(source, sink, stages=[selection(), tts.batch.Curve()])


def score(source: str, sink: str) -> None:
    """Score texts into a narrow file."""
    tts.batch.transform(source, sink, stages=tts.batch.Score())


def score_with_texts(source: str, sink: str) -> None:
    """Score texts and keep them."""
    tts.batch.transform(source, sink, stages=tts.batch.Score(texts=True))


KEYED = ("read", "group", "copy", "convert", "votes", "select", "curve")
TEXTS = ("copy", "score", "score_with_texts", "convert")
jobs = {
    each.__name__: each
    for each in (read, group, copy, convert, votes, select, curve, score, score_with_texts)
}


def counting() -> tts.batch.Votes:
    """Return the stage that counts."""
    return tts.batch.Votes(reductions=["last"], budgets=BUDGETS)


def selection() -> tts.batch.Select:
    """Return the stage that is timed."""
    return tts.batch.Select(selectors=SELECTORS, reductions=["last"], budgets=BUDGETS)


def words(n_rows: int, seed: int) -> pl.Series:
    """Make texts of 75 words, so that a completion is as long and compresses as real ones do.

    Those of the simulation alone are 1 kB long and become 8 times smaller; of real runs, 1.2 to 1.7
    kB and 4 to 5 times.
    """
    rng = np.random.default_rng(seed)
    letters = rng.integers(97, 123, (4_000, 9), dtype=np.uint8)
    lengths = rng.integers(2, 10, 4_000)
    known = [bytes(row[:n]).decode() for row, n in zip(letters, lengths, strict=True)]
    drawn = (4_000 * rng.random((n_rows, 75)) ** 2).astype(np.uint32)
    chosen = pl.Series(known).gather(pl.Series(drawn.ravel()))
    return chosen.reshape((n_rows, 75)).arr.join(" ")


def write_texts(folder: Path, megabytes: int) -> Path:
    """Write a run with texts, some hundred thousand attempts at a time."""
    n_problems = max(megabytes * 1_000_000 // (256 * BYTES_PER_ATTEMPT), 2)
    parts = []
    for number, first in enumerate(range(0, n_problems, N_PROBLEMS_AT_ONCE)):
        run = tts.simulate_trajectories(
            min(N_PROBLEMS_AT_ONCE, n_problems - first), 256, seed=number, texts=True
        )
        named = pl.format("{}-{}", pl.lit(f"{number:03}"), "problem_id").alias("problem_id")
        parts.append(folder / f"part-{number:03}.parquet")
        truths = [name for name in run.columns if name.startswith("true_")]
        longer = words(run.height, number) + "\n\n" + run["completion"]
        run.with_columns(named, longer.alias("completion")).drop(truths).write_parquet(parts[-1])
    path = folder / f"texts-{megabytes}.parquet"
    pl.scan_parquet(parts).sink_parquet(path)
    for part in parts:
        part.unlink()
    return path


def check_keyed(path: Path, folder: Path) -> None:
    """Compare a job with the functions in memory."""
    sink = folder / "check.parquet"
    votes(str(path), str(sink))
    counted = pl.scan_parquet(sink).select(pl.col("n_votes").sum()).collect().item()
    n_attempts = pl.scan_parquet(path).select(pl.len()).collect().item()
    assert counted == n_attempts // N_PER_PROBLEM * sum(BUDGETS)
    sink.unlink()
    convert(str(path), str(sink))
    sums = pl.struct(COLUMNS).hash().sum(), pl.len()
    copied, read_in = (pl.scan_parquet(each).select(*sums).collect() for each in (sink, path))
    assert_frame_equal(copied, read_in)
    sink.unlink()
    curve(str(path), str(sink))
    problems = tts.select_answers(
        pl.scan_parquet(path), selectors=SELECTORS, reductions=["last"], budgets=BUDGETS
    )
    expected = tts.scaling_curve(problems).collect(engine="streaming")
    assert_frame_equal(pl.read_parquet(sink), expected, rel_tol=1e-12)
    sink.unlink()


def check_texts(path: Path, folder: Path) -> None:
    """Compare a job with the function in memory, on some problems."""
    part, sink = folder / "part.parquet", folder / "check.parquet"
    pl.scan_parquet(path).head(10 * 256).sink_parquet(part)
    score(str(part), str(sink))
    expected = tts.score_trajectories(pl.read_parquet(part)).drop(
        "problem", "completion", "solution", strict=False
    )
    found = pl.read_parquet(sink)
    assert_frame_equal(found, expected.sort("problem_id", "attempt"), check_column_order=False)
    for each in (part, sink):
        each.unlink()


class Timing(NamedTuple):
    """Seconds and peak gigabytes of the rounds of a job."""

    seconds: list[float]
    peaks: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def run_fresh(job: str, source: Path, sink: Path) -> tuple[float, float]:
    """Run a job in a fresh process; return its seconds and its peak memory."""
    code = SETUP.format(
        folder=str(Path(__file__).parent), job=job, source=str(source), sink=str(sink)
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if sink.is_dir():
        shutil.rmtree(sink)
    sink.unlink(missing_ok=True)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def report(path: Path, names: tuple[str, ...], unit: str, title: str) -> None:
    """Print medians, ratios to a unit and peaks."""
    sink = path.with_name("out.parquet")
    timings = {name: Timing([], []) for name in names}
    for _ in range(N_ROUNDS):
        for name, timing in timings.items():
            seconds, peak = run_fresh(name, path, sink)
            timing.seconds.append(seconds)
            timing.peaks.append(peak)
    size = path.stat().st_size / 1e9
    print(f"\n{title}, file of {size:.2f} GB, {N_ROUNDS} fresh processes each, in turn\n")
    print(f"{'':<18}{'s':>8}{'range':>16}{'/ ' + unit:>9}{'peak GB':>9}")
    for name, timing in timings.items():
        span = f"{min(timing.seconds):.2f}-{max(timing.seconds):.2f}"
        ratio = timing.median / timings[unit].median
        print(
            f"{name:<18}{timing.median:>8.2f}{span:>16}{ratio:>9.2f}{max(timing.peaks):>9.2f}",
            flush=True,
        )


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keyed")
    path = write_run(folder, SIZES[0])
    check_keyed(path, folder)
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    path = write_texts(folder, MEGABYTES[0])
    check_texts(path, folder)
    return path


@pytest.mark.parametrize("job", KEYED)
def test_keyed(benchmark: BenchmarkFixture, keyed: Path, job: str) -> None:
    benchmark.group = f"batch, {SIZES[0]:,} keyed attempts"
    sink = keyed.with_name("out.parquet")
    benchmark.pedantic(
        lambda: jobs[job](str(keyed), str(sink)),
        setup=lambda: sink.unlink(missing_ok=True),
        rounds=3,
    )


@pytest.mark.parametrize("job", TEXTS)
def test_texts(benchmark: BenchmarkFixture, texts: Path, job: str) -> None:
    benchmark.group = f"batch, {MEGABYTES[0]} MB of texts"
    sink = texts.with_name("out.parquet")
    benchmark.pedantic(
        lambda: jobs[job](str(texts), str(sink)),
        setup=lambda: sink.unlink(missing_ok=True),
        rounds=3,
    )


def test_score_in_python(benchmark: BenchmarkFixture, texts: Path) -> None:
    benchmark.group = f"batch, {MEGABYTES[0]} MB of texts"
    rows = pl.scan_parquet(texts).head(SLICE).select("completion", "gold", "step_scores").collect()
    benchmark.extra_info["attempts"] = rows.height

    def loop() -> int:
        right = 0
        for row in rows.iter_rows(named=True):
            box = row["completion"].rfind(r"\boxed{")
            answer = row["completion"][box + 7 :].split("}")[0] if box >= 0 else None
            right += answer == row["gold"]
        return right

    assert benchmark.pedantic(loop, rounds=3) > 0


def main() -> None:
    """Print the tables."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("ttsframe", "polars"))
    print(f"{pl.thread_pool_size()} threads, Python {sys.version.split()[0]}, {packages}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n_attempts in SIZES:
            path = write_run(folder, n_attempts)
            check_keyed(path, folder)
            report(path, KEYED, "read", f"{n_attempts:,} keyed attempts")
            path.unlink()
        for megabytes in MEGABYTES:
            path = write_texts(folder, megabytes)
            check_texts(path, folder)
            names = TEXTS if megabytes <= MOST_WITH_TEXTS else TEXTS[:2]
            report(path, names, "copy", f"{megabytes:,} MB of texts")
            path.unlink()


if __name__ == "__main__":
    main()
