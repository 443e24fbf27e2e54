"""Two Ray workers of one core against one, on the same job: the ratio, and where the time goes.

The job reads the texts of a run in several files, in no order, gives the answers keys, and picks. The
cluster is warm: starting it, and importing the package in its workers, is timed apart. Each run's rows
are compared with those of the local engine, and in one more run a worker is killed while it makes a
part. Writes ``benchmarks/results/ray_workers.txt``.

    python benchmarks/ray_workers.py [number of attempts] [number of rounds]
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import polars as pl
import ray

import ttsframe as tts

RESULT = Path(__file__).parent / "results" / "ray_workers.txt"
STAGES = [tts.batch.Score(), tts.batch.Select(budgets=[1, 2, 4, 8, 16])]
N_ATTEMPTS_OF_A_PROBLEM = 16
N_FILES = 4
N_PARTS = 8
PHASES = ("scan", "answers", "keys", "parts")


class Run(NamedTuple):
    """Seconds of a job, in all and of its phases; and what it made."""

    seconds: float
    phases: dict[str, float]
    n_tasks: dict[str, int]
    rows: pl.DataFrame


def make_source(folder: Path, n_attempts: int) -> int:
    """Write the run; return its bytes."""
    folder.mkdir()
    n_problems = n_attempts // N_ATTEMPTS_OF_A_PROBLEM
    run = tts.simulate_trajectories(
        n_problems, N_ATTEMPTS_OF_A_PROBLEM, seed=1, texts=True, n_steps=(4, 12)
    ).drop("^true.*$")
    run = run.sample(fraction=1.0, shuffle=True, seed=2)
    size = -(-run.height // N_FILES)
    for i in range(N_FILES):
        path = folder / f"{i}.parquet"
        run[i * size : (i + 1) * size].write_parquet(path, row_group_size=size // 4)
    return sum(path.stat().st_size for path in folder.iterdir())


def run_job(source: Path, engine: tts.batch.Engine, n_attempts: int) -> Run:
    """Run the job once, with the time of each phase."""
    marks: dict[str, list[float]] = {}
    n_tasks: dict[str, int] = {}

    def note(step: tts.batch.Progress) -> None:
        marks.setdefault(step.phase, []).append(time.perf_counter())
        n_tasks[step.phase] = step.n_tasks

    sink = source.with_name("out")
    shutil.rmtree(sink, ignore_errors=True)
    begun = time.perf_counter()
    tts.batch.transform(
        [source / f"{i}.parquet" for i in range(N_FILES)],
        sink,
        stages=STAGES,
        engine=engine,
        rows_per_part=-(-n_attempts // N_PARTS),
        progress=note,
    )
    seconds = time.perf_counter() - begun
    phases = {name: times[-1] - times[0] for name, times in marks.items()}
    left = [path for path in sink.iterdir() if path.name.startswith(".")]
    assert not left, left
    rows = pl.concat([pl.read_parquet(path) for path in sorted(sink.iterdir())])
    return Run(seconds, phases, n_tasks, rows)


class Killer(threading.Thread):
    """Kills the first worker below this process that is seen making a part."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.killed: int | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        while self.killed is None and not self.is_over.wait(0.01):
            for worker in find_workers("part"):
                time.sleep(0.05)
                os.kill(worker, signal.SIGKILL)
                self.killed = worker
                break


def find_workers(task: str) -> list[int]:
    """Return Ray workers that are at a task, among the descendants of this process alone."""
    parents: dict[int, int] = {}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            if (folder / "cmdline").read_bytes().startswith(f"ray::{task}".encode()):
                found.append(int(folder.name))
        except OSError:
            continue

    def is_below(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid in found if is_below(pid)]


def start(engine: tts.batch.RayEngine, folder: Path) -> float:
    """Run the job on next to nothing, so that every worker has begun; return the seconds."""
    begun = time.perf_counter()
    small = folder / f"warm{engine.n_workers}" / "runs"
    small.parent.mkdir(exist_ok=True)
    if not small.exists():
        make_source(small, 1_600)
    run_job(small, engine, 1_600)
    return time.perf_counter() - begun


def main(n_attempts: int, n_rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="ray-workers-"))
    lines: list[str] = []

    def say(line: str = "") -> None:
        print(line, flush=True)
        lines.append(line)

    try:
        source = folder / "runs"
        n_bytes = make_source(source, n_attempts)
        expected = run_job(source, tts.batch.LocalEngine(), n_attempts)
        runs: dict[int, list[Run]] = {1: [], 2: []}
        starts: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(n_rounds):
            for n_workers, done in runs.items():
                with tts.batch.RayEngine(n_workers=n_workers) as engine:
                    starts[n_workers].append(start(engine, folder))
                    done.append(run_job(source, engine, n_attempts))
                assert done[-1].rows.equals(expected.rows), "rows differ"
        killer = Killer()
        with tts.batch.RayEngine(n_workers=2) as engine:
            start(engine, folder)
            killer.start()
            killed = run_job(source, engine, n_attempts)
        killer.is_over.set()
        killer.join()
        assert killed.rows.equals(expected.rows), "rows differ"

        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        say(
            f"{n_attempts:,} attempts in {N_FILES} files, {n_bytes / 1e6:,.0f} MB; score, select; "
            f"{expected.n_tasks['parts']} parts; medians of {n_rounds} rounds"
        )
        say(
            f"Python {platform.python_version()}, polars {pl.__version__}, ray {ray.__version__}, "
            f"{os.cpu_count()} cores, load {load}"
        )
        say(f"{'seconds':<28}{'tasks':>6}{'1 worker':>10}{'2 workers':>10}{'ratio':>7}")

        def row(name: str, n_tasks: int | str, values: dict[int, float]) -> None:
            ratio = f"{values[1] / values[2]:>7.2f}"
            say(f"{name:<28}{n_tasks:>6}{values[1]:>10.2f}{values[2]:>10.2f}{ratio}")

        row("start-up, a tiny job included", "", {n: statistics.median(starts[n]) for n in runs})
        for name in PHASES:
            row(
                name,
                expected.n_tasks[name],
                {n: statistics.median(run.phases[name] for run in runs[n]) for n in runs},
            )
        row(
            "plan, fingerprints, result",
            "",
            {
                n: statistics.median(run.seconds - sum(run.phases.values()) for run in runs[n])
                for n in runs
            },
        )
        row(
            "job, on a warm cluster",
            "",
            {n: statistics.median(r.seconds for r in runs[n]) for n in runs},
        )
        say(
            f"every round: {', '.join(f'{a.seconds:.2f}/{b.seconds:.2f}' for a, b in zip(*runs.values(), strict=True))}"
        )
        say(f"local engine, {pl.thread_pool_size()} threads: {expected.seconds:.2f} s")
        say(
            f"2 workers, one killed at a part: {killed.seconds:.2f} s, "
            f"{'killed' if killer.killed else 'NONE WAS KILLED'}"
        )
        say(
            f"rows equal to the local engine's in all {2 * n_rounds + 1} runs: {expected.rows.height:,}"
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    arguments = [int(argument.replace(",", "")) for argument in sys.argv[1:]]
    main(*[*arguments, *[2_000_000, 3][len(arguments) :]])
