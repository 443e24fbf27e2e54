"""The same bytes in give the same bytes out: on every repetition, and for any number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "reference" / "determinism.py"


def check(seeds: range, threads: list[int], n_times: int, engines: list[str]) -> None:
    """Compare the digests of all tables between processes and repetitions."""
    seen: dict[tuple[int, str, str], set[str]] = {}
    for n_threads in threads:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), ",".join(engines), str(n_times), *map(str, seeds)],
            env={**os.environ, "POLARS_MAX_THREADS": str(n_threads)},
            cwd=SCRIPT.parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == len(engines) * len(seeds) * n_times
        for seed, engine, digests in lines:
            for name, digest in digests.items():
                seen.setdefault((seed, engine, name), set()).add(digest)
    assert [where for where, digests in seen.items() if len(digests) > 1] == []


def test_every_table_is_the_same_for_one_and_for_four_threads() -> None:
    check(range(1, 2), [1, 4], 1, ["in-memory"])


@pytest.mark.slow
def test_two_hundred_runs_twice() -> None:
    check(range(200), [1, 2, 4], 2, ["in-memory", "streaming"])
