"""Compare two checkouts: `python benchmarks/versions.py OLD NEW [--rounds 3] [-k EXPRESSION]`.

OLD and NEW are folders with a checkout each; their files of benchmarks run in turn on the same machine,
in the environment of this interpreter, and the ratio of their fastest rounds is printed. Sizes come
from the same environment variables as for `pytest benchmarks`. Start-up is timed as well, in processor
time, and alone with `--starts`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

SIZES = {"TTSFRAME_BENCH_MB": "20", "TTSFRAME_BENCH_ROWS": "200000"}
ATTEMPTS = {
    name: {"TTSFRAME_BENCH_ATTEMPTS": "256000"}
    for name in ("bench_curve.py", "bench_selectors.py", "bench_verifier.py")
}
"""Sizes of files whose own default is too small to time."""
STARTS = {
    "start: import polars": ["-c", "import polars"],
    "start: import ttsframe": ["-c", "import ttsframe"],
    "start: ttsframe --help": ["-m", "ttsframe", "--help"],
    "start: ttsframe report data/sample.jsonl": ["-m", "ttsframe", "report", "data/sample.jsonl"],
}
"""Programs whose time from start to end counts; the first is the least that the others can take."""


def environment(folder: Path) -> dict[str, str]:
    return SIZES | os.environ | {"PYTHONPATH": str(folder)}


def benchmark(folder: Path, name: str, expression: str) -> dict[str, float]:
    """Return the fastest round of each benchmark of one file, in seconds; none if the file fails."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        command = [sys.executable, "-m", "pytest", str(folder / "benchmarks" / name)]
        command += ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", expression]
        subprocess.run(
            [*command, f"--benchmark-json={report}", "--benchmark-max-time=0.3"],
            cwd=folder,
            env=ATTEMPTS.get(name, {}) | environment(folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if not report.exists():
            return {}
        found = json.loads(report.read_text(encoding="utf-8"))["benchmarks"]
    return {each["fullname"].rpartition("/")[2]: each["stats"]["min"] for each in found}


def start(folder: Path, arguments: list[str]) -> float:
    """Return the processor time of the fastest of seven starts, in seconds."""
    seconds = []
    with tempfile.TemporaryDirectory() as scratch:
        output = ["-o", str(Path(scratch, "report.html"))] if "report" in arguments else []
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, *arguments, *output],
                cwd=folder,
                env=environment(folder),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-k", default="not python", help="which benchmarks, as pytest takes it")
    parser.add_argument("--starts", action="store_true", help="time start-up only")
    options = parser.parse_args()
    best: dict[str, dict[str, float]] = {"old": {}, "new": {}}
    benchmarks = [] if options.starts else (options.new / "benchmarks").glob("bench_*.py")
    files = sorted(path.name for path in benchmarks)
    for number in range(options.rounds):
        # In turn and in both orders, since the machine changes its speed.
        order = ("old", "new") if number % 2 == 0 else ("new", "old")
        for name, version in itertools.product([*files, None], order):
            folder = getattr(options, version).resolve()
            if name is None:
                timed = {title: start(folder, arguments) for title, arguments in STARTS.items()}
            else:
                timed = benchmark(folder, name, options.k)
            for title, seconds in timed.items():
                best[version][title] = min(seconds, best[version].get(title, seconds))
    both = sorted(best["old"].keys() & best["new"].keys())
    table = pl.DataFrame({
        "benchmark": both,
        "old": [best["old"][name] for name in both],
        "new": [best["new"][name] for name in both],
    }).with_columns(ratio=(pl.col("new") / pl.col("old")).round(3))
    with pl.Config(tbl_rows=-1, fmt_str_lengths=120, tbl_hide_dataframe_shape=True):
        print(table.sort("ratio"))
    print(f"median ratio {table['ratio'].median():.3f} of {table.height}")
    for version, other in (("old", "new"), ("new", "old")):
        alone = sorted(best[version].keys() - best[other].keys())
        if alone:
            print(f"only in {version}: {', '.join(alone)}")


if __name__ == "__main__":
    main()
