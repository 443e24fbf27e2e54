"""The mean of `expected_accuracy` over simulated runs against the truth, for every selector.

Each run draws n attempts from a known distribution of answer, grade and score. The truth is the
accuracy of a fresh run with exactly `budget` attempts, from all such runs counted out (`oracle`,
`first_valid`, `best_of_n` and the majority by enumeration of what a run can be). The mean over
runs must be within 4 Monte-Carlo standard errors of it; the exit status is 1 where it is not.

``TTSFRAME_BIAS_RUNS`` sets the number of runs (default 10,000).
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

import ttsframe as tts

N_RUNS = int(os.environ.get("TTSFRAME_BIAS_RUNS", "10000"))
N_ATTEMPTS = 12
BUDGETS = [1, 2, 3, 4, 6]
KINDS: list[tuple[float, str | None, bool, float | None]] = [
    (0.30, "a", True, 0.75),
    (0.10, "a", True, 0.25),
    (0.15, "b", False, 0.75),
    (0.15, "b", False, 0.5),
    (0.10, "c", False, 1.0),
    (0.10, None, False, 0.5),
    (0.10, "a", True, None),
]
"""Chance, answer, grade and score of an attempt."""


def truth(selector: str, budget: int) -> float:
    """Add up the chances of all runs of `budget` attempts, each times its accuracy."""
    total = 0.0
    for counts in _compositions(budget, len(KINDS)):
        chance = float(math.factorial(budget))
        for n, kind in zip(counts, KINDS, strict=True):
            chance *= kind[0] ** n / math.factorial(n)
        total += chance * accuracy(selector, counts)
    return total


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    edges = [(-1, *bar, total + parts - 1) for bar in bars]
    return [tuple(b - a - 1 for a, b in itertools.pairwise(edge)) for edge in edges]


def accuracy(selector: str, counts: Sequence[int]) -> float:
    """Return the chance that a selector is right, over random orders of a run."""
    there = [(n, *kind[1:]) for n, kind in zip(counts, KINDS, strict=True) if n]
    if selector == "oracle":
        return float(any(right for _, _, right, _ in there))
    if selector == "first_valid":
        return _share([(n, right) for n, key, right, _ in there if key is not None])
    if selector == "best_of_n":
        top = max((score for *_, score in there if score is not None), default=None)
        return _share([(n, r) for n, _, r, score in there if score is not None and score == top])
    votes: Counter[str] = Counter()
    for n, key, _, score in there:
        if key is not None and (selector == "majority_vote" or score is not None):
            votes[key] += n * (1.0 if selector == "majority_vote" else score)
    leading = [key for key, total in votes.items() if total >= max(votes.values()) - 1e-9]
    return _share([(1, key == "a") for key in leading])


def _share(counted: Sequence[tuple[int, bool]]) -> float:
    n = sum(n for n, _ in counted)
    return sum(n for n, right in counted if right) / n if n else 0.0


def simulate(n_runs: int, seed: int) -> pl.DataFrame:
    """Return runs as problems of one table."""
    kinds = np.random.default_rng(seed).choice(
        len(KINDS), size=n_runs * N_ATTEMPTS, p=[kind[0] for kind in KINDS]
    )
    table = pl.DataFrame(
        [kind[1:] for kind in KINDS],
        schema={"answer_key": pl.String, "is_correct": pl.Boolean, "score": pl.Float64},
        orient="row",
    )
    index = pl.int_range(pl.len())
    return table[kinds].with_columns(
        problem_id=index // N_ATTEMPTS, attempt=(index % N_ATTEMPTS).cast(pl.UInt32)
    )


def compare(n_runs: int, seed: int = 0) -> pl.DataFrame:
    """Return mean, its standard error, truth and the distance in standard errors."""
    selectors = ["oracle", "first_valid", "best_of_n", "majority_vote", "weighted_vote"]
    found = tts.expected_accuracy(
        simulate(n_runs, seed), selectors=selectors, budgets=BUDGETS, n_subsets=50
    )
    means = found.group_by("selector", "budget", maintain_order=True).agg(
        pl.col("value").mean().alias("mean"),
        (pl.col("value").std() / pl.len().sqrt()).alias("standard_error"),
        pl.col("value").null_count().alias("n_null"),
    )
    truths = [truth(*row) for row in means.select("selector", "budget").rows()]
    distance = (pl.col("mean") - pl.col("truth")) / pl.col("standard_error")
    return means.with_columns(truth=pl.Series(truths)).with_columns(distance.alias("distance"))


def main() -> int:
    """Print the table; the exit status is 1 where a mean is too far from the truth."""
    table = compare(N_RUNS)
    print(f"{N_RUNS:,} runs of {N_ATTEMPTS} attempts\n")
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, float_precision=5):
        print(table.drop("n_null"))
    is_unbiased = (table["distance"].abs() <= 4.0).all() and table["n_null"].sum() == 0
    print("\nevery mean is within 4 standard errors" if is_unbiased else "\nBIASED")
    return int(not is_unbiased)


if __name__ == "__main__":
    sys.exit(main())
