"""Processor time of searches with instant servers, beside plain Python and with a checkpoint, and of ETS.

``python benchmarks/search_speed.py [policies [name ...]|checkpoint|rounds]`` at the size of ``TTSFRAME_BENCH_SEARCH`` (`bench_search.py`). Processor
time, because wall time says nothing on a machine that others use.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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
    """Compare a search with one that writes its nodes and one with a checkpoint, in turn."""
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
        with tempfile.TemporaryDirectory() as folder:
            runs = iter(range(100))

            def alone(s: tuple = server) -> pl.DataFrame:
                return tts.search.search(*s, policy, seed=0)

            def written(alone: Callable = alone, folder: str = folder) -> pl.DataFrame:
                nodes = alone()
                nodes.write_parquet(Path(folder) / "nodes.parquet")
                return nodes

            def kept(
                s: tuple = server, folder: str = folder, runs: Iterator = runs
            ) -> pl.DataFrame:
                where = Path(folder) / str(next(runs))
                return tts.search.search(*s, policy, seed=0, checkpoint=where)

            nodes = alone()
            assert_frame_equal(kept(), nodes)
            size = f"{nodes.height:,} nodes of {nodes.estimated_size() / 1e6:.0f} MB"
            del nodes
            rows = []
            for _ in range(N_PAIRS):
                without, _ = once(alone)
                by_hand, _ = once(written)
                spent.clear()
                with_, _ = once(kept)
                parts = (with_ / without, by_hand / without, with_ / by_hand)
                rows.append((*parts, spent["keep"] / without, spent["finish"] / without, without))
        all_, by_hands, beside, keep, finish, seconds_ = (
            list(column) for column in zip(*rows, strict=True)
        )
        print(
            f"{SIZE} {name} servers, {size}: {spread(seconds_, '.2f')} s of processor time; with a checkpoint "
            f"{more(all_)}, of which records {spread([100 * x for x in keep], '+.0f')} %, Parquet at the end "
            f"{spread([100 * x for x in finish], '+.0f')} %; with write_parquet of the nodes instead {more(by_hands)}; checkpoint "
            f"beside that {more(beside)}",
            flush=True,
        )


def more(ratios: list[float]) -> str:
    """Return ratios as percentages above one."""
    return f"{spread([100 * (ratio - 1) for ratio in ratios], '+.0f')} %"


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
