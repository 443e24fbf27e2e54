"""Peak memory and time of `ttsframe curve` and `vote` on JSON lines: `python benchmarks/command_memory.py [GB] [OTHER]`.

OTHER is a second checkout to run beside this one. The run has the shape of search-and-learn files,
with long texts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import ttsframe as tts

HERE = Path(__file__).resolve().parents[1]


def write_run(path: Path, n_bytes: int) -> None:
    """Write a seeded run, problem by problem."""
    attempts, text = 64, "Let us think about the next step of this problem. " * 60
    run = tts.simulate_trajectories(200, attempts, seed=0, texts=True)
    problems = run.group_by("problem_id", maintain_order=True).agg(
        "completion", "step_scores", pl.col("gold").first()
    )
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        while written < n_bytes:
            row = problems.row(number % problems.height, named=True)
            line = json.dumps({
                "unique_id": f"{row['problem_id']}-{number}",
                "problem": "What is it?",
                "answer": row["gold"],
                "completions": [text + each for each in row["completion"]],
                "scores": row["step_scores"],
            })
            written += file.write(line + "\n")
            number += 1


def measure(folder: Path, command: str, source: Path) -> tuple[float, float, str]:
    """Return peak memory in MB, wall seconds and the output of one command."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "ttsframe", command, str(source), "--json", "--quiet"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, output
    return usage.ru_maxrss / 1024, time.perf_counter() - began, output


def main() -> None:
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    folders = [HERE, *map(Path, sys.argv[2:3])]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "run.jsonl")
        write_run(source, int(size * 1e9))
        print(f"{source.stat().st_size / 1e9:.2f} GB of JSON lines, {os.cpu_count()} cores")
        for command in ("curve", "vote"):
            for folder in folders:
                peak, seconds, _ = measure(folder, command, source)
                name = "this checkout" if folder == HERE else "the other one"
                print(f"{command:<6}{name:<15}{peak:8,.0f} MB{seconds:8.1f} s")


if __name__ == "__main__":
    main()
