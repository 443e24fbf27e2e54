"""Coverage of the 95 % intervals and size of the paired tests, by simulation, on a fixed grid.

``python benchmarks/interval_coverage.py`` prints the grid that is kept in
``benchmarks/results/interval_coverage.txt``; ``--small`` runs a part of it in seconds. Runs are
simulated with numpy, and everything after that is the package's own functions on frames that hold
many runs at once, told apart by a column.

Problems are drawn from a distribution of difficulties, attempts from the problems; the truth is the
mean over that distribution, since a benchmark stands for more than its own problems.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import betaln

import ttsframe as tts

PROBLEMS: Final = (50, 200, 1000)
ATTEMPTS: Final = (1, 4, 16)
DIFFICULTIES: Final = ((0.5, 0.5), (8.0, 2.0))
N_RUNS: Final = 10_000
N_EXACT_RUNS: Final = 40_000
"""Exact tests have a limit instead of a range, and come close to it: more runs tell them apart."""
N_RESAMPLES: Final = 2_000
SEED: Final = 20_261_121

COVERAGE_GOAL: Final = (93.5, 96.5)
SIZE_GOAL: Final = (4.0, 6.0)
EXACT_GOAL: Final = (0.0, 5.0)

INTERVALS: Final = ("curve", "wilson", "student", "normal", "percentile", "bca", "attempts")
NULLS: Final = ("same", "independent", "unlike")
_ROWS_AT_ONCE: Final = 1_000_000

HEAD: Final = f"{'difficulty':<14}{'problems':>8}{'attempts':>9}"
COVERAGE_HEAD: Final = """\
Coverage in % of nominal 95 % intervals of the accuracy; {n_runs:,} runs a cell.
Goal 93.5 to 96.5; * misses it. One Monte-Carlo standard error is {error:.2f}.
curve: what scaling_curve gives. attempts: Wilson over attempts as if they were independent.
wilson (over problems) is too wide for fractions, which vary less than 0 and 1.
"""
NEAR_ONE_HEAD: Final = """
The same of pass@k, unbiased from all attempts. Near 1 it varies by a few problems alone, which a
sample may not hold: the default is then Wilson's, too wide rather than too narrow.
"""
SIZE_HEAD: Final = """
Rejections in % by the test of compare at 5 %, and intervals that miss 0, without a difference.
The other model's chance at a problem: the same, drawn independently from the same distribution,
or from one of the same mean and another shape. One attempt: McNemar's exact test, goal at most 5,
{n_exact_runs:,} runs a cell; more: paired t, goal 4 to 6. Intervals 3.5 to 6.5. student: Student's t
interval; for one attempt compare gives Bonett and Price's.
"""

Floats = npt.NDArray[np.float64]


class Cell(NamedTuple):
    """Problems, attempts at each, and the beta distribution of their difficulty."""

    n_problems: int
    n_attempts: int
    difficulty: tuple[float, float]

    @property
    def label(self) -> str:
        """What a line of the grid begins with."""
        a, b = self.difficulty
        return f"Beta({a:g}, {b:g})".ljust(14) + f"{self.n_problems:>8}{self.n_attempts:>9}"


def grid() -> list[Cell]:
    """Return the cells, in the order printed."""
    return [
        Cell(n_problems, n_attempts, difficulty)
        for difficulty in DIFFICULTIES
        for n_problems in PROBLEMS
        for n_attempts in ATTEMPTS
    ]


def blocks(cell: Cell, n_runs: int, stream: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Split the runs of a cell into blocks that fit into memory, each with its own generator."""
    step = max(1, _ROWS_AT_ONCE // cell.n_problems)
    key = [SEED, stream, cell.n_problems, cell.n_attempts, int(10 * cell.difficulty[0])]
    for start in range(0, n_runs, step):
        yield np.random.default_rng([*key, start]), min(step, n_runs - start)


def frame_of(values: Floats, model: str = "new") -> pl.DataFrame:
    """Bring values of shape (runs, problems) into a table of `problems`."""
    n_runs, n_problems = values.shape
    return pl.DataFrame({
        "run": np.repeat(np.arange(n_runs, dtype=np.uint32), n_problems),
        "problem_id": np.tile(np.arange(n_problems, dtype=np.uint32), n_runs),
        "value": values.ravel(),
    }).with_columns(
        budget=pl.lit(1, pl.UInt32),
        selector=pl.lit("simulated"),
        reduction=pl.lit(None, pl.String),
        status=pl.lit("ok"),
        model=pl.lit(model),
    )


def covers(ends: pl.Expr, truth: float) -> pl.Expr:
    """Say whether the interval holds the truth; a missing interval does not."""
    low, high = ends.struct.field("ci_low"), ends.struct.field("ci_high")
    return ((low <= truth) & (truth <= high)).fill_null(value=False)


def coverage(
    cell: Cell, n_runs: int, k: int = 1, kinds: tuple[str, ...] = INTERVALS
) -> dict[str, float]:
    """Return how often each kind of interval holds the true accuracy, or the true pass@k."""
    a, b = cell.difficulty
    truth = float(-np.expm1(betaln(a, b + k) - betaln(a, b)))
    n, correct = cell.n_attempts, np.arange(cell.n_attempts + 1)
    estimates = np.array([tts.closed_form_passatk(n, int(c), k) for c in correct], dtype=float)
    hits = dict.fromkeys(kinds, 0.0)
    for rng, n_block in blocks(cell, n_runs, stream=k):
        chances = rng.beta(a, b, (n_block, cell.n_problems))
        values = estimates[rng.binomial(n, chances)]
        problems = frame_of(values)
        curve = tts.scaling_curve(problems, by="run").with_columns(
            total=pl.col("accuracy") * pl.col("n_problems"),
            # Attempts as if each were a unit of its own.
            all_correct=pl.col("accuracy") * pl.col("n_problems") * n,
            n_all=pl.col("n_problems").cast(pl.Int64) * n,
        )
        ends = {
            "curve": pl.struct("ci_low", "ci_high"),
            "wilson": tts.wilson_interval("total", "n_problems"),
            "student": tts.student_t_interval("accuracy", "standard_error", "n_problems"),
            "normal": tts.normal_interval("accuracy", "standard_error"),
            "attempts": tts.wilson_interval("all_correct", "n_all"),
        }
        found = curve.select(
            covers(interval, truth).sum().alias(kind)
            for kind, interval in ends.items()
            if kind in kinds
        ).row(0, named=True)
        for method in ("percentile", "bca"):
            if method in kinds:
                interval = tts.bootstrap_interval("value", method=method, n_resamples=N_RESAMPLES)
                resampled = problems.group_by("run").agg(interval)
                found[method] = resampled.select(covers(pl.col("value"), truth).sum()).item()
        for kind in kinds:
            hits[kind] += found[kind]
    return {kind: 100.0 * hits[kind] / n_runs for kind in kinds}


def baseline_chances(cell: Cell, null: str, chances: Floats, rng: np.random.Generator) -> Floats:
    """Draw the other model's chances: equal on average, and alike problem by problem or not."""
    if null == "same":
        return chances
    if null == "independent":
        return rng.beta(*cell.difficulty, chances.shape)
    # The same mean from the other end of what a distribution can be: flat for steep, steep for flat.
    a, b = (8.0, 8.0) if cell.difficulty == (0.5, 0.5) else (0.8, 0.2)
    return rng.beta(a, b, chances.shape)


def size(cell: Cell, null: str, n_runs: int) -> dict[str, float]:
    """Return how often the test rejects, and the interval misses 0, without a difference."""
    counts = {"test": 0.0, "interval": 0.0, "student": 0.0}
    for rng, n_block in blocks(cell, n_runs, stream=100 + NULLS.index(null)):
        chances = rng.beta(*cell.difficulty, (n_block, cell.n_problems))
        others = baseline_chances(cell, null, chances, rng)
        sides = [
            frame_of(rng.binomial(cell.n_attempts, p) / cell.n_attempts, model=model)
            for model, p in (("new", chances), ("old", others))
        ]
        table = tts.compare(
            pl.concat(sides),
            column="model",
            baseline="old",
            by=("run",),
            correction="none",
            mcnemar="exact",
        )
        student = tts.student_t_interval("difference", "standard_error", "n_pairs", bounds=None)
        found = table.select(
            test=(pl.col("p_value") <= 0.05).sum(),
            interval=(~covers(pl.struct("ci_low", "ci_high"), 0.0)).sum(),
            student=(~covers(student, 0.0)).sum(),
        ).row(0, named=True)
        for name in counts:
            counts[name] += found[name]
    return {name: 100.0 * count / n_runs for name, count in counts.items()}


def marked(value: float, goal: tuple[float, float]) -> str:
    """Write a percentage, with an asterisk where it misses the goal."""
    return f"{value:.2f}{' ' if goal[0] <= value <= goal[1] else '*'}"


def show(label: str, cells: list[str]) -> int:
    """Print a line of the grid and return whether its first cell, the default, misses."""
    print(label + "".join(cell.rjust(12) for cell in cells), flush=True)
    return cells[0].endswith("*")


def print_coverage(pool: Executor, cells: list[Cell], n_runs: int) -> None:
    print(COVERAGE_HEAD.format(n_runs=n_runs, error=100 * (0.95 * 0.05 / n_runs) ** 0.5))
    show(HEAD, list(INTERVALS))
    misses = 0
    for cell, found in zip(cells, pool.map(coverage, cells, repeat(n_runs)), strict=True):
        misses += show(cell.label, [marked(value, COVERAGE_GOAL) for value in found.values()])
    print(f"\ncurve, the default, misses its goal in {misses} of {len(cells)} cells.")


def print_pass_at_k(pool: Executor, cells: list[Cell], n_runs: int) -> None:
    print(NEAR_ONE_HEAD)
    kinds = ("curve", "wilson", "student", "bca")
    show(f"{HEAD}   k", list(kinds))
    tasks = [(cell, k) for cell in cells for k in (2, 4, 8) if 1 < k < cell.n_attempts]
    columns = zip(*tasks, strict=True)
    found_at = pool.map(coverage, next(columns), repeat(n_runs), next(columns), repeat(kinds))
    short = 0
    for (cell, k), found in zip(tasks, found_at, strict=True):
        show(f"{cell.label}{k:>4}", [marked(value, COVERAGE_GOAL) for value in found.values()])
        short += found["curve"] < COVERAGE_GOAL[0]
    print(f"\ncurve, the default, covers less than its goal in {short} of {len(tasks)} cells.")


def print_size(pool: Executor, cells: list[Cell], n_runs: int, n_exact_runs: int) -> None:
    print(SIZE_HEAD.format(n_exact_runs=n_exact_runs))
    show(f"{HEAD}  {'other model':<12}", ["test", "interval", "student"])
    tasks = [(cell, null) for cell in cells for null in NULLS]
    runs = [n_exact_runs if cell.n_attempts == 1 else n_runs for cell, _ in tasks]
    missing = (100.0 - COVERAGE_GOAL[1], 100.0 - COVERAGE_GOAL[0])
    misses = 0
    for (cell, null), found in zip(
        tasks, pool.map(size, *zip(*tasks, strict=True), runs), strict=True
    ):
        goal = EXACT_GOAL if cell.n_attempts == 1 else SIZE_GOAL
        goals = {"test": goal, "interval": missing, "student": missing}
        misses += show(
            f"{cell.label}  {null:<12}", [marked(found[name], goals[name]) for name in goals]
        )
    print(f"\ntest misses its goal in {misses} of {len(tasks)} cells.")


def main(arguments: list[str]) -> None:
    """Print the whole grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="fewer runs and problems")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    n_runs, n_exact_runs = (500, 500) if options.small else (N_RUNS, N_EXACT_RUNS)
    cells = [cell for cell in grid() if not options.small or cell.n_problems <= 200]
    started = time.perf_counter()
    # Polars' threads do not survive a fork.
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        print_coverage(pool, cells, n_runs)
        print_pass_at_k(pool, cells, n_runs)
        print_size(pool, cells, n_runs, n_exact_runs)
    print(f"\nSeed {SEED}, bootstraps of {N_RESAMPLES:,} resamples.", end=" ")
    print(f"polars {pl.__version__}, numpy {np.__version__}.")
    seconds = time.perf_counter() - started
    print(f"{seconds:.0f} s with {options.processes} processes.", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
