"""A soak: jobs in a row in one process, then a process that scores for half an hour.

Memory, open files, threads, children and temporary files are counted after each piece of work.
The second half must stay within a few megabytes of the first, and nothing else may grow.

    python benchmarks/soak.py [jobs, 200 [seconds of scoring, 1800]]

appends to ``benchmarks/results/soak.txt``.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import hostile_answers
import polars as pl

import ttsframe as tts

RESULT: Final = Path(__file__).parent / "results" / "soak.txt"
MOST_GROWTH_MB: Final = 60.0
N_TEXTS: Final = 4_000


class State(NamedTuple):
    """What a process holds."""

    megabytes: float
    n_files: int
    n_threads: int
    n_children: int
    n_temporary: int


def state(folder: Path) -> State:
    """Count what this process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return State(
        pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        len(list(Path("/proc/self/fd").iterdir())),
        threading.active_count(),
        len(children),
        sum(1 for _ in folder.iterdir()),
    )


def texts(random: Random) -> pl.DataFrame:
    """Return attempts whose answers are new each time, some of them for the workers."""
    answers = [
        rf"\int_0^{{{random.randint(1, 9)}}} {random.randint(2, 99)}x dx"
        if random.random() < 0.01
        else f"{random.choice(hostile_answers.REAL)} + {random.randint(0, 10**6)}"
        for _ in range(N_TEXTS)
    ]
    return pl.DataFrame({
        "problem_id": [i // 16 for i in range(N_TEXTS)],
        "attempt": pl.Series([i % 16 for i in range(N_TEXTS)], dtype=pl.UInt32),
        "completion": [rf"Some thoughts. So \boxed{{{answer}}}" for answer in answers],
        "gold": [answers[i // 16 * 16] for i in range(N_TEXTS)],
        "step_scores": [[random.random() for _ in range(4)] for _ in range(N_TEXTS)],
    })


def jobs(source: Path, folder: Path) -> list[Callable[[int], object]]:
    """Return jobs of each kind, which write a new file each time."""
    select = tts.batch.Select(budgets=[1, 4, 16])
    stages: list[list[tts.batch.Stage]] = [
        [tts.batch.Score()],
        [tts.batch.Score(), tts.batch.Votes(budgets=[16])],
        [tts.batch.Score(), select],
        [tts.batch.Score(), select, tts.batch.Curve()],
    ]

    def job(which: list[tts.batch.Stage]) -> Callable[[int], object]:
        return lambda i: tts.batch.transform(
            source, folder / f"{i}.parquet", stages=which, rows_per_part=1_500
        )

    return [job(which) for which in stages]


def watched(name: str, work: Callable[[int], bool], folder: Path) -> tuple[list[str], bool]:
    """Work until there is no more, with the state after each tenth; tell whether anything grew."""
    begin = time.monotonic()
    states = [state(folder)]
    while work(len(states) - 1):
        states.append(state(folder))
    picked = states[:: max(1, len(states) // 10)] + states[-1:]
    rows = [
        f"{name}: {len(states) - 1:,} times in {time.monotonic() - begin:,.0f} s",
        f"{'MB':>10}{'files':>8}{'threads':>9}{'children':>10}{'temporary':>11}",
    ]
    rows += [
        f"{each.megabytes:>10.0f}{each.n_files:>8}{each.n_threads:>9}{each.n_children:>10}{each.n_temporary:>11}"
        for each in picked
    ]
    middle, last = states[len(states) // 2], states[-1]
    grew = last.megabytes - middle.megabytes > MOST_GROWTH_MB or any(
        after > before for before, after in zip(middle[1:], last[1:], strict=True)
    )
    rows.append("something grew in the second half" if grew else "nothing grew in the second half")
    return rows, grew


def main(n_jobs: int, seconds: float) -> int:
    """Run both, and write what was seen."""
    random = Random(1)
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as watch:
        tempfile.tempdir = watch  # what our own code leaves behind is counted here
        folder = Path(place)
        source = folder / "run.parquet"
        kinds = jobs(source, folder)

        def one_job(i: int) -> bool:
            if i >= n_jobs:
                return False
            if i % 20 == 0:
                texts(random).write_parquet(source)
            sink = folder / f"{i}.parquet"
            kinds[i % len(kinds)](i)
            pl.read_parquet(sink)
            sink.unlink()
            return True

        rows, grew = watched("jobs in one process", one_job, Path(watch))
        end = time.monotonic() + seconds

        def one_scoring(_: int) -> bool:
            run = texts(random)
            scored = tts.score_trajectories(run)
            tts.scaling_curve(tts.select_answers(scored, budgets=[1, 4, 16]))
            return time.monotonic() < end

        more, grew_too = watched("scoring of 4,000 new texts", one_scoring, Path(watch))
        left = sorted({path.name for path in folder.iterdir()} - {source.name})
        tempfile.tempdir = None
    commit = subprocess.run(
        ["/usr/bin/env", "git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, cwd=Path(__file__).parent, check=False,
    ).stdout.strip()  # fmt: skip
    head = f"commit {commit}, Python {platform.python_version()}, Polars {pl.__version__}, {os.cpu_count()} cores"
    lines = [head, *rows, *more, f"left beside the source: {', '.join(left) or 'nothing'}"]
    with RESULT.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n\n")
    print("\n".join(lines))
    return int(grew or grew_too or bool(left))


if __name__ == "__main__":
    sys.exit(main(int((*sys.argv[1:], 200)[0]), float((*sys.argv[2:], 1_800)[0])))
