"""Processor time of searches with instant servers, beside plain Python and with a checkpoint, and of ETS.

``python benchmarks/search_speed.py [policies [name ...]|checkpoint|rounds]`` at the size of ``TTSFRAME_BENCH_SEARCH`` (`bench_search.py`). Processor
time, because wall time says nothing on a machine that others use.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bench_search as bench
import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.search.journal import Journal

N_PAIRS = 5
SIZE = f"{bench.N_PROBLEMS} x {bench.WIDTH} x {bench.N_ROUNDS}"


def seconds(call: Callable[[], pl.DataFrame], rounds: int) -> tuple[float, pl.DataFrame]:
    """Return the least processor time of several calls, and what the last one returned."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return min(times), found


def once(call: Callable[[], pl.DataFrame]) -> tuple[float, float]:
    """Return the seconds of a call, of the processor and by the clock."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def spread(values: list[float], form: str) -> str:
    """Return the median, and the least and greatest."""
    return f"{np.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def policies(*names: str) -> None:
    """Compare policies with plain Python that ends with the same frame, in turn, several times."""
    keys = ["problem_id", "node_id"]
    for name in names or bench.CASES:
        policy, oracle = bench.CASES[name]
        nodes, expected = bench.searched(policy), bench.in_python(oracle)
        assert_frame_equal(nodes.sort(keys), expected.sort(keys))
        del nodes, expected
        pairs = [
            (
                once(lambda p=policy: bench.searched(p))[0],
                once(lambda o=oracle: bench.in_python(o))[0],
            )
            for _ in range(N_PAIRS)
        ]
        print(
            f"{SIZE} {name:16} {spread([mine for mine, _ in pairs], '.2f')} s, plain Python "
            f"{spread([plain for _, plain in pairs], '.2f')} s: {spread([plain / mine for mine, plain in pairs], '.1f')} times",
            flush=True,
        )


def checkpoint() -> None:
    """Compare a search with the same search and a checkpoint, in turn, and say where the difference is."""
    policy = tts.search.Rebase(bench.WIDTH)
    world = tts.search.simulate(
        bench.N_PROBLEMS, seed=0, n_steps=(bench.N_ROUNDS - 1, bench.N_ROUNDS - 1), text_length=200
    )
    servers = {"instant": (bench.PROBLEMS, bench.generate, bench.verify), "simulated": tuple(world)}
    spent: dict[str, float] = {}

    def watched(name: str) -> None:
        method = getattr(Journal, name)

        def call(*arguments: object) -> object:
            start = time.process_time()
            found = method(*arguments)
            spent[name] = spent.get(name, 0.0) + time.process_time() - start
            return found

        setattr(Journal, name, call)

    watched("keep")
    watched("finish")
    for name, server in servers.items():
        nodes = tts.search.search(*server, policy, seed=0)
        size = f"{nodes.height:,} nodes of {nodes.estimated_size() / 1e6:.0f} MB"
        del nodes

        def kept(s: tuple = server) -> pl.DataFrame:
            with tempfile.TemporaryDirectory() as folder:
                return tts.search.search(*s, policy, seed=0, checkpoint=Path(folder) / "run")

        rows = []
        for _ in range(N_PAIRS):
            without, wall_without = once(lambda s=server: tts.search.search(*s, policy, seed=0))
            spent.clear()
            with_, wall_with = once(kept)
            shares = (with_ / without, wall_with / wall_without)
            rows.append((*shares, spent["keep"] / without, spent["finish"] / without, without))
        all_, wall, keep, finish, seconds_ = (list(column) for column in zip(*rows, strict=True))
        print(
            f"{SIZE} {name} servers, {size}: {spread(seconds_, '.2f')} s; with a checkpoint "
            f"{spread([100 * (x - 1) for x in all_], '+.0f')} % of processor time, of which records "
            f"{spread([100 * x for x in keep], '+.0f')} %, Parquet at the end {spread([100 * x for x in finish], '+.0f')} %; "
            f"by the clock {spread([100 * (x - 1) for x in wall], '+.0f')} %",
            flush=True,
        )


def rounds() -> None:
    """Time one round of one problem of ETS and DORA."""
    for width in (16, 64, 256):
        bench.SEEN.clear()
        world = tts.search.simulate(2, seed=0, n_steps=(6, 8))
        tts.search.search(*world, bench.Watched(width), seed=0)
        frontiers = [
            frontier.filter(pl.col("problem") == problem)
            for frontier in bench.SEEN[1:]
            for problem in frontier["problem"].unique().to_list()
        ]
        for policy in (tts.search.ETS(width), tts.search.Dora(width)):
            found = [
                1000 * seconds(lambda p=policy, f=frontier: p.ask(f), 3)[0]
                for frontier in frontiers
            ]
            print(
                f"{policy.name:5} {width:4}: {np.median(found):5.1f} ms a round (median of {len(found)}), at most "
                f"{max(found):5.1f}"
            )


if __name__ == "__main__":
    tasks = {"policies": policies, "checkpoint": checkpoint, "rounds": rounds}
    if sys.argv[1:2] == ["policies"]:
        policies(*sys.argv[2:])
    else:
        for task in sys.argv[1:] or tasks:
            tasks[task]()
