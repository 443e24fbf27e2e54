"""Processor time of each section of a report, in multiples of reading the columns.

Usage: python benchmarks/report_sections.py [attempts]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import polars as pl

import ttsframe as tts
from ttsframe.defaults import PickOptions, plan_picks
from ttsframe.report import SECTIONS
from ttsframe.report.build import _make_section
from ttsframe.report.runs import RunData

ResultT = TypeVar("ResultT")
COLUMNS = ["problem_id", "attempt", "answer", "gold", "step_scores"]
FIRST = ["difficulty", "compute_optimal", "verifier", "steps", "cost"]


def timed(call: Callable[[], ResultT]) -> tuple[float, ResultT]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def main() -> None:
    n_attempts = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.parquet")
        tts.simulate_trajectories(max(1, n_attempts // 64), 64, seed=1).write_parquet(path)
        read = min(timed(pl.scan_parquet(path).select(COLUMNS).collect)[0] for _ in range(3))
        print(f"reading {', '.join(COLUMNS)}: {read:.2f} s of processor time")
        run = tts.scan_trajectories(path)
        parts = {}
        parts["answers, keys, grades"], picks = timed(lambda: plan_picks(run, PickOptions()))
        parts["selectors"], data = timed(lambda: RunData(picks))
        for name in [*FIRST, *[name for name in SECTIONS if name not in FIRST]]:
            parts[name], _ = timed(lambda name=name: _make_section(data, name))
        parts["validation"], _ = timed(lambda: tts.validate_trajectories(picks.validated))
        _, report = timed(lambda: tts.build_report(run))
        parts["page"], _ = timed(report.to_html)
        for name, seconds in parts.items():
            print(f"{name:24} {seconds:6.2f} s {seconds / read:6.1f}")


if __name__ == "__main__":
    main()
