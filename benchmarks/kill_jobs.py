"""Kill jobs of the command line with SIGKILL at random moments, and look at what is left.

Two jobs, each into one file and into a folder of parts: ``score`` on texts, whose rows of a problem
stand together, and ``vote`` on keyed attempts in random order, which are shuffled into parts. The
moments are uniform over the time that the unbroken job takes. After each kill the output must be
absent or whole; the same command must then end well, with the rows of the unbroken job, and leave
nothing else. At last two jobs at once write one output. Run as a script it does all and writes
``benchmarks/results/kill_jobs.txt``; the test suite does a seeded few on small jobs.

    python benchmarks/kill_jobs.py [kills of each job [problems of 64 attempts]]
"""

from __future__ import annotations

import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import polars as pl

import ttsframe as tts

N_KILLS: Final = 25
N_PROBLEMS: Final = 3_000
N_ATTEMPTS: Final = 64
SEED: Final = 4
RESULT: Final = Path(__file__).parent / "results" / "kill_jobs.txt"
BUSY: Final = "another job is writing it"


@dataclass(frozen=True)
class Job:
    """A command and where it writes."""

    name: str
    command: tuple[str, ...]
    sink: Path

    def start(self) -> subprocess.Popen[str]:
        """Start it in a session of its own, so that its children can be killed with it."""
        return subprocess.Popen(
            [sys.executable, "-m", "ttsframe", *self.command, "-o", str(self.sink), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self) -> dict[str, object]:
        """Run it to its end, and return what it says."""
        with self.start() as process:
            stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        said: dict[str, object] = json.loads(stdout)
        return said

    def rows(self) -> pl.DataFrame:
        """Read the output; one that is not whole cannot be read."""
        files = sorted(self.sink.glob("*.parquet")) if self.sink.is_dir() else [self.sink]
        return pl.read_parquet(files, glob=False)

    def hidden(self) -> list[str]:
        """Name what a job keeps beside its output."""
        return sorted(path.name for path in self.sink.parent.glob(f".{self.sink.name}*"))

    def remove(self) -> None:
        """Remove the output."""
        for path in [*self.sink.glob("*.parquet"), self.sink]:
            path.rmdir() if path.is_dir() else path.unlink()


class Kill(NamedTuple):
    """What was found after a kill."""

    was_running: bool
    was_there: bool
    """Whether the output was there already, and whole."""
    n_parts: int
    n_parts_resumed: int


class Killed(NamedTuple):
    """What was found of one job."""

    job: Job
    seconds: float
    """Of the unbroken job."""
    n_rows: int
    kills: list[Kill]


def make_jobs(folder: Path, n_problems: int) -> list[Job]:
    """Write the sources, and return the jobs."""
    texts, keyed = folder / "texts", folder / "keyed.parquet"
    texts.mkdir()
    for seed in range(2):
        run = tts.simulate_trajectories(n_problems // 2, N_ATTEMPTS, seed=seed, texts=True)
        names = pl.format("{}-{}", pl.lit(seed), "problem_id")
        run.with_columns(names.alias("problem_id")).write_parquet(texts / f"{seed}.parquet")
    run = tts.simulate_trajectories(n_problems * 4, N_ATTEMPTS, seed=SEED, keys=True)
    run.sample(fraction=1.0, shuffle=True, seed=SEED).write_parquet(keyed)
    size = n_problems * N_ATTEMPTS
    score = ("score", str(texts), "--rows-per-part", str(max(1, size // 8)))
    vote = ("vote", str(keyed), "--budgets", "1,4,16,64", "--rows-per-part", str(size // 2))
    return [
        Job("score, file", score, folder / "scored.parquet"),
        Job("score, folder", score, folder / "scored"),
        Job("vote, file", vote, folder / "picks.parquet"),
        Job("vote, folder", vote, folder / "picks"),
    ]


def kill_often(job: Job, n_kills: int, random: Random) -> Killed:
    """Kill a job at random moments, each time from the beginning, and let it go on to the end."""
    started = time.perf_counter()
    job.finish()
    seconds = time.perf_counter() - started
    expected = job.rows()
    job.remove()
    assert job.hidden() == []
    kills = [kill(job, random.uniform(0, seconds), expected) for _ in range(n_kills)]
    return Killed(job, seconds, expected.height, kills)


def kill(job: Job, after: float, expected: pl.DataFrame) -> Kill:
    """Kill a job once, look at what is left, and let it go on."""
    with job.start() as process:
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    was_running = process.returncode == -signal.SIGKILL
    assert was_running or process.returncode == 0
    was_there = job.sink.exists()
    if was_there:
        assert job.rows().equals(expected), f"{job.name}: half an output"
    said = job.finish()
    assert job.rows().equals(expected), f"{job.name}: other rows"
    assert job.hidden() == [], f"{job.name}: left {job.hidden()}"
    job.remove()
    return Kill(
        was_running, was_there, int(str(said["n_parts"])), int(str(said["n_parts_resumed"]))
    )


def two_at_once(job: Job) -> tuple[int, int]:
    """Start a job twice at once; return both statuses, one of which may be a refusal."""
    with job.start() as first, job.start() as second:
        errors = [process.communicate()[1] for process in (first, second)]
    statuses = first.returncode, second.returncode
    assert 0 in statuses, errors
    for status, error in zip(statuses, errors, strict=True):
        assert status == 0 or (status == 2 and BUSY in error), error
    rows = job.rows()
    job.remove()
    job.finish()
    assert job.rows().equals(rows)
    assert job.hidden() == []
    job.remove()
    return statuses


def main() -> None:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else N_KILLS
    n_problems = int(sys.argv[2]) if len(sys.argv) > 2 else N_PROBLEMS
    random = Random(SEED)
    lines = [
        (
            f"{n_kills} kills of each job at random moments, seed {SEED}; {n_problems:,} problems x "
            f"{N_ATTEMPTS} attempts with texts, {4 * n_problems:,} x {N_ATTEMPTS} with keys"
        ),
        (
            f"Python {platform.python_version()}, Polars {pl.__version__}, {os.cpu_count()} cores; "
            "every check passed"
        ),
        "",
        (
            f"{'job':<14} {'rows':>9} {'parts':>5} {'seconds':>7} {'killed':>6} {'had output':>10} "
            f"{'resumed parts, median and most':>30} {'two at once':>12}"
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for job in make_jobs(Path(folder), n_problems):
            found = kill_often(job, n_kills, random)
            resumed = [one.n_parts_resumed for one in found.kills]
            statuses = " and ".join(map(str, two_at_once(job)))
            lines.append(
                f"{job.name:<14} {found.n_rows:>9,} {found.kills[0].n_parts:>5} {found.seconds:>7.1f} "
                f"{sum(one.was_running for one in found.kills):>6} "
                f"{sum(one.was_there for one in found.kills):>10} "
                f"{f'{statistics.median(resumed):g} and {max(resumed)}':>30} {statuses:>12}"
            )
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
