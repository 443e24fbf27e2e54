"""Time the hot paths beside the plain-Python loops that they replace.

``python benchmarks/table.py`` takes some minutes on an idle machine, writes every row to
``results/table.md`` and prints the rows of the README. ``--small`` uses the default sizes, to see that
everything works, and writes nothing. A row is a benchmark beside its baseline, both timed in one process
after their results were compared.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

FOLDER = Path(__file__).parent
PACKAGES = ("ttsframe", "polars", "numpy", "pyarrow")
HEAD = """\
| work | size | ttsframe, median (quartiles) | plain Python, or what is named | times |
|---|---|---|---|---|"""


class Row(NamedTuple):
    """A line of the table: names of two benchmarks of one file.

    The baseline does `1 / parts` of the work where all of it would take too long.
    """

    work: str
    ours: str
    baseline: str
    parts: int = 1
    in_readme: bool = False


class Bench(NamedTuple):
    """A file of benchmarks, its size and the rows that it fills."""

    file: str
    size: str
    environment: dict[str, str]
    rows: tuple[Row, ...]


BENCHES = (
    Bench(
        "bench_pipeline.py",
        "500 problems x 64 attempts",
        {"TTSFRAME_BENCH_PROBLEMS": "500"},
        (
            Row(
                "JSON lines to curve, beside votes on strings",
                "test_ttsframe",
                "test_python_script",
                in_readme=True,
            ),
            Row(
                "JSON lines to curve, beside votes on search-and-learn's form",
                "test_ttsframe",
                "test_python_script_with_sympy",
                parts=100,
                in_readme=True,
            ),
        ),
    ),
    Bench(
        "bench_readers.py",
        "200 MB",
        {"TTSFRAME_BENCH_MB": "200"},
        (
            Row(
                "read search-and-learn JSON lines",
                "test_read[scan]",
                "test_read[python]",
                in_readme=True,
            ),
        ),
    ),
    Bench(
        "bench_extract.py",
        "200 MB",
        {"TTSFRAME_BENCH_MB": "200"},
        (
            Row(
                "extract boxed answers",
                "test_extract[expression-boxed]",
                "test_extract[python-boxed]",
                in_readme=True,
            ),
            Row(
                "extract announced answers",
                "test_extract[expression-final_answer]",
                "test_extract[python-final_answer]",
            ),
        ),
    ),
    Bench(
        "bench_keys.py",
        "1 million rows, 5,000 distinct",
        {"TTSFRAME_BENCH_ROWS": "1000000", "TTSFRAME_BENCH_ANSWERS": "5000"},
        (
            Row(
                "answer keys",
                "test_answer_key[cold]",
                "test_answer_key[python, per row]",
                in_readme=True,
            ),
        ),
    ),
    Bench(
        "bench_reductions.py",
        "2 million lists",
        {"TTSFRAME_BENCH_ROWS": "2000000"},
        tuple(
            Row(
                f"step scores: {name}",
                f"test_expression[{name}]",
                f"test_python_loop[{name}]",
                in_readme=name == "last",
            )
            for name in ("last", "min", "mean", "prod")
        ),
    ),
    Bench(
        "bench_curve.py",
        "5 million attempts",
        {"TTSFRAME_BENCH_ATTEMPTS": "5000000"},
        (
            Row(
                "Parquet to curve, 4 selectors, 9 budgets",
                "test_plan[curve]",
                "test_python_loop",
                25,
            ),
            Row(
                "Parquet to curve, beside DuckDB",
                "test_plan[curve]",
                "test_duckdb",
                in_readme=True,
            ),
        ),
    ),
    Bench(
        "bench_batch.py",
        "1 GB of texts",
        {"TTSFRAME_BENCH_MB": "1000"},
        (
            Row(
                "score texts, Parquet to Parquet",
                "test_texts[score]",
                "test_score_in_python",
                340,
            ),
        ),
    ),
    Bench(
        "bench_simulate.py",
        "1 million attempts",
        {"TTSFRAME_BENCH_ROWS": "1000000"},
        (
            Row("simulate a run", "test_simulate[answers]", "test_simulate_in_python"),
            Row("validate a run", "test_validate[keys]", "test_validate_in_python"),
        ),
    ),
)


def run(bench: Bench, *, small: bool) -> dict[str, Any]:
    """Run one file of benchmarks and return its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        names = [name for row in bench.rows for name in (row.ours, row.baseline)]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"{FOLDER / bench.file}::{name}" for name in names]
        done = subprocess.run(
            [*command, f"--benchmark-json={report}"],
            env=os.environ | ({} if small else bench.environment),
            cwd=FOLDER.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{done.stdout}\n{bench.file} failed; nothing was printed.")
        return json.loads(report.read_text(encoding="utf-8"))


def seconds(value: float) -> str:
    """Write a time with three digits."""
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def times(ratio: float) -> str:
    """Write a ratio with two digits."""
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def line(row: Row, bench: Bench, found: dict[str, Any], *, small: bool) -> str:
    """Write one line of the table."""
    ours = found[row.ours]
    loop, parts = found[row.baseline]["median"], 1 if small else row.parts
    of_parts = f" ({parts} x {seconds(loop)})" if parts > 1 else ""
    spread = f"{seconds(ours['q1'])} to {seconds(ours['q3'])}, {ours['rounds']} rounds"
    return (
        f"| {row.work} | {'default' if small else bench.size} "
        f"| {seconds(ours['median'])} ({spread}) "
        f"| {seconds(parts * loop)}{of_parts} "
        f"| {times(parts * loop / ours['median'])} |"
    )


def main() -> None:
    """Time every row; write all of them, and print those of the README."""
    small = "--small" in sys.argv[1:]
    full, short = [HEAD], [HEAD]
    for bench in BENCHES:
        report = run(bench, small=small)
        found = {each["name"]: each["stats"] for each in report["benchmarks"]}
        for row in bench.rows:
            full.append(line(row, bench, found, small=small))
            short += full[-1:] if row.in_readme else []
    cpu = report["machine_info"]["cpu"].get("brand_raw", platform.processor())
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = (
        f"\n{cpu}, {pl.thread_pool_size()} threads, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}."
    )
    print("\n".join([*(full if small else short), machine]))
    if not small:
        text = "\n".join([*full, machine, ""])
        (FOLDER / "results" / "table.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
