"""Processor time of searches with instant servers, beside plain Python and with a checkpoint, and of ETS.

``python benchmarks/search_speed.py [policies|checkpoint|rounds]`` at the size of ``TTSFRAME_BENCH_SEARCH`` (`bench_search.py`). Processor
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

SIZE = f"{bench.N_PROBLEMS} x {bench.WIDTH} x {bench.N_ROUNDS}"


def seconds(call: Callable[[], pl.DataFrame], rounds: int) -> tuple[float, pl.DataFrame]:
    """Return the least processor time of several calls, and what the last one returned."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return min(times), found


def policies() -> None:
    """Compare each policy with plain Python that ends with the same frame."""
    keys = ["problem_id", "node_id"]
    for name, (policy, oracle) in bench.CASES.items():
        mine, nodes = seconds(lambda policy=policy: bench.searched(policy), 3)
        plain, expected = seconds(lambda oracle=oracle: bench.in_python(oracle), 1)
        assert_frame_equal(nodes.sort(keys), expected.sort(keys))
        print(
            f"{SIZE} {name:16} {mine:6.2f} s, plain Python {plain:7.2f} s: {plain / mine:5.1f} times"
        )


def checkpoint() -> None:
    """Compare a search with the same search and a checkpoint, for instant and for simulated servers."""
    policy = tts.search.Rebase(bench.WIDTH)
    world = tts.search.simulate(
        bench.N_PROBLEMS, seed=0, n_steps=(bench.N_ROUNDS - 1, bench.N_ROUNDS - 1), text_length=200
    )
    servers = {"instant": (bench.PROBLEMS, bench.generate, bench.verify), "simulated": tuple(world)}
    for name, server in servers.items():
        without, nodes = seconds(lambda s=server: tts.search.search(*s, policy, seed=0), 3)

        def kept(s: tuple = server) -> pl.DataFrame:
            with tempfile.TemporaryDirectory() as folder:
                return tts.search.search(*s, policy, seed=0, checkpoint=Path(folder) / "run")

        with_, _ = seconds(kept, 3)
        print(
            f"{SIZE} {name} servers, {nodes.height:,} nodes of {nodes.estimated_size() / 1e6:.0f} MB: {without:.2f} s, "
            f"with a checkpoint {with_:.2f} s ({100 * (with_ / without - 1):+.0f} %)"
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
    for task in sys.argv[1:] or tasks:
        tasks[task]()
