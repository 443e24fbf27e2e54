"""Ten million nodes with texts of 200 characters, written in parts, then replayed in a process of its own.

``python benchmarks/replay_memory.py [folder] [nodes]`` prints sizes, processor time and peak memory of both.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

import ttsframe as tts

S = tts.search
PER_PROBLEM = 8 + 64 + 512
PER_PART = 1000


@dataclass(frozen=True)
class EveryNode(S.Policy):
    """Continues every path eight times."""

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Ask for all continuations."""
        return frontier.select(
            n_allocated=pl.repeat(self.width, pl.len()), dropped_because=pl.lit(None, pl.String)
        )


def write(folder: Path, n_nodes: int) -> str:
    """Write a bank, some problems at a time: a tree does not depend on other problems."""
    n_problems = -(-n_nodes // PER_PROBLEM)
    world = S.simulate(
        n_problems, seed=0, accuracy=0.35, n_steps=(3, 3), step_spread=0, text_length=200
    )
    n = 0
    for part, start in enumerate(range(0, n_problems, PER_PART)):
        problems = world.problems[start : start + PER_PART]
        nodes = S.search(problems, world.generator, world.prm, EveryNode(8), seed=0)
        nodes.write_parquet(folder / f"part-{part:05d}.parquet", compression="lz4")
        n += nodes.height
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    return f"{n:,} nodes of {n_problems:,} problems, {size / 1e9:.2f} GB on disk"


def replay(folder: Path, policy: S.Policy) -> str:
    """Replay all problems on the parts."""
    bank = pl.scan_parquet(folder / "*.parquet")
    found = S.replay(bank, policy, seed=1)
    statuses = found.problems["status"].value_counts().sort("status").rows()
    return f"{policy.name} {policy.width}: {found.nodes.height:,} nodes, problems {statuses}"


def size(folder: Path) -> str:
    """Return the size of a node without its texts."""
    path = folder / "part-00000.parquet"
    nodes = pl.read_parquet(path).drop("text", "lookahead_text")
    about = pq.ParquetFile(path).metadata
    on_disk = sum(
        group["total_compressed_size"]
        for row in about.to_dict()["row_groups"]
        for group in row["columns"]
        if not group["path_in_schema"].endswith("text")
    )
    return (
        f"a node without texts: {nodes.estimated_size() / nodes.height:.0f} bytes in memory, "
        f"{on_disk / nodes.height:.0f} on disk"
    )


TASKS: dict[str, Callable[[Path, int], str]] = {
    "write": write,
    "size": lambda folder, _: size(folder),
    "rebase": lambda folder, _: replay(folder, S.Rebase(8)),
}


def main() -> None:
    if len(sys.argv) > 3:
        start = time.process_time()
        said = TASKS[sys.argv[3]](Path(sys.argv[1]), int(sys.argv[2]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{said}; {time.process_time() - start:.0f} s of processor time, peak {peak:.2f} GB",
            flush=True,
        )
        return
    n_nodes = sys.argv[2] if len(sys.argv) > 2 else "10000000"
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for task in TASKS:
            subprocess.run([sys.executable, __file__, folder, n_nodes, task], check=True)


if __name__ == "__main__":
    main()
