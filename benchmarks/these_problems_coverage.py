"""How often the interval for these problems holds the accuracy of endless attempts at them.

``python benchmarks/these_problems_coverage.py > benchmarks/results/these_problems_coverage.txt``

Chances are drawn once; each run draws new attempts at the same problems, 3,000 times. A * marks
coverage below .93 (at 4 attempts .92), a + above .97: near 1 the interval is rather too wide.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from ttsframe.statistics.extrapolation.model import Counts
from ttsframe.statistics.extrapolation.power_law import unbiased_passes
from ttsframe.statistics.these_problems import for_these_problems, sampling_columns

N_RUNS: Final = 3_000
WORLDS: Final = ((0.5, 0.5), (0.2, 2.0), (2.0, 2.0), (5.0, 0.3))
SCHEMA: Final = pl.Schema({
    "n_attempts": pl.Int64,
    "budget": pl.Int64,
    "selector": pl.String,
    "subsets": pl.String,
})


def main() -> None:
    print(__doc__)
    print(
        f"{'problems':>8}  {'Beta':<12}{'attempts':>8}{'k':>4}{'truth':>8}{'covered':>9}{'width':>8}"
    )
    draws = np.random.default_rng(0)
    for n_problems in (30, 200):
        for world in WORLDS:
            chance = draws.beta(*world, n_problems)
            for n in (4, 8, 16, 64):
                for k in (k for k in (1, 2, 4, 8, 32) if 2 * k <= n):
                    c = np.arange(n + 1.0)
                    ones = np.ones_like(c)
                    passes = unbiased_passes(Counts(ones * n, c, ones), np.array([float(k)]))[:, 0]
                    rows = pl.DataFrame({"value": passes}).with_columns(
                        n_attempts=n, budget=k, selector=pl.lit("oracle"), subsets=pl.lit("all")
                    )
                    variance = rows.select(sampling_columns(SCHEMA)["sampling_variance"])
                    counted = draws.binomial(n, chance, (N_RUNS, n_problems))
                    curve = pl.DataFrame({
                        "accuracy": passes[counted].mean(axis=1),
                        "sampling_variance": variance.to_series().to_numpy()[counted].mean(axis=1),
                    }).with_columns(
                        n_problems=n_problems,
                        n_subsets=n / k,
                        standard_error=1.0,
                        **dict.fromkeys(
                            ("is_prefix", "is_single", "is_beyond_half", "is_unlike"), 0.0
                        ),
                    )
                    ends = curve.select(for_these_problems(0.95))
                    truth = float(-np.expm1(k * np.log1p(-chance)).mean())
                    is_covered = pl.lit(truth).is_between("ci_low", "ci_high").mean()
                    width = (pl.col("ci_high") - pl.col("ci_low")).mean().alias("width")
                    covered, width = ends.select(is_covered, width).row(0)
                    sign = (
                        "*"
                        if covered < (0.92 if n == 4 else 0.93)
                        else "+"
                        if covered > 0.97
                        else ""
                    )
                    print(f"{n_problems:>8}  {world!s:<12}{n:>8}{k:>4}", end="")
                    print(f"{truth:>8.4f}{covered:>9.3f}{width:>8.4f} {sign}")


if __name__ == "__main__":
    main()
