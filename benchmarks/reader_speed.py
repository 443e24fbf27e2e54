"""JSON lines and folders of many files, read by ttsframe and by json.loads and a walk over dicts.

Run as ``python benchmarks/reader_speed.py [MEGABYTES [N_FILES]]`` (500 and 5,000 by default). The two ways take
turns; of each the best of three runs is kept, as processor seconds of all threads and as wall seconds.
Both ways give the same table, which is checked.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from bench_readers import COLUMNS, N_ATTEMPTS, problem, python_loop

import ttsframe as tts

N_RUNS = 3


def long_rows(number: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield a problem of search-and-learn as rows of the long form."""
    row = problem(rng, number)
    for attempt in range(N_ATTEMPTS):
        yield {
            "problem_id": row["unique_id"],
            "attempt": attempt,
            "completion": row["completions"][attempt],
            "step_scores": row["scores"][attempt],
            "gold": row["answer"],
            "n_tokens": row["completion_tokens"][attempt],
        }


def long_loop(path: Path) -> pl.DataFrame:
    with path.open() as lines:
        rows = [json.loads(line) for line in lines]
    return pl.DataFrame(rows, schema_overrides={"attempt": pl.UInt32})


def folder_loop(folder: Path) -> pl.DataFrame:
    return pl.concat(python_loop(path) for path in sorted(folder.iterdir()))


def read(source: Path) -> pl.DataFrame:
    return tts.scan_trajectories(source).select(COLUMNS).collect(engine="streaming")


def clock(work: Callable[[], pl.DataFrame]) -> tuple[float, float, pl.DataFrame]:
    wall, used = time.perf_counter(), time.process_time()
    table = work()
    return time.process_time() - used, time.perf_counter() - wall, table


def race(name: str, megabytes: float, ways: dict[str, Callable[[], pl.DataFrame]]) -> None:
    """Let the ways take turns, and print their best times."""
    best = dict.fromkeys(ways, (float("inf"), float("inf")))
    tables = {}
    for _ in range(N_RUNS):
        for way, work in ways.items():
            used, wall, tables[way] = clock(work)
            best[way] = min(best[way][0], used), min(best[way][1], wall)
    ours, theirs = tables.values()
    if not ours.equals(theirs):
        raise SystemExit(f"{name}: the two tables differ")
    for way, (used, wall) in best.items():
        print(
            f"{name}: {way}: {used:.2f} s of processors, {wall:.2f} s, {megabytes / used:.0f} MB per processor second"
        )
    (used, wall), (slow_used, slow_wall) = best.values()
    print(
        f"{name}: {slow_used / used:.1f} times less processor time, {slow_wall / wall:.1f} times faster\n",
        flush=True,
    )


def main(megabytes: int, n_files: int) -> None:
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path, long = folder / "completions.jsonl", folder / "long.jsonl"
        with path.open("w") as stream, long.open("w") as long_stream:
            number = 0
            while stream.tell() < megabytes * 1e6:
                stream.write(json.dumps(problem(rng, number)) + "\n")
                number += 1
            for i in range(number):
                if long_stream.tell() < megabytes * 1e6:
                    long_stream.writelines(json.dumps(row) + "\n" for row in long_rows(i, rng))
        many = folder / "many"
        many.mkdir()
        lines = path.read_text().splitlines(keepends=True)
        for i in range(n_files):
            (many / f"run_{i:05d}.jsonl").write_text(lines[i % len(lines)])
        size = sum(each.stat().st_size for each in many.iterdir()) / 1e6
        print(
            f"Python {sys.version.split()[0]}, Polars {pl.__version__}, {pl.thread_pool_size()} threads\n"
        )
        size_of = {each: each.stat().st_size / 1e6 for each in (path, long)}
        name = f"search-and-learn, {size_of[path]:.0f} MB"
        race(
            name,
            size_of[path],
            {"ttsframe": lambda: read(path), "json.loads": lambda: python_loop(path)},
        )
        name = f"long form, {size_of[long]:.0f} MB"
        race(
            name,
            size_of[long],
            {"ttsframe": lambda: read(long), "json.loads": lambda: long_loop(long)},
        )
        name = f"folder of {n_files:,} files, {size:.0f} MB"
        race(name, size, {"ttsframe": lambda: read(many), "json.loads": lambda: folder_loop(many)})


if __name__ == "__main__":
    main(*[int(each) for each in (*sys.argv[1:3], *(["500", "5000"][len(sys.argv) - 1 :]))])
