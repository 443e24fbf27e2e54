"""Extrapolated pass@k of real models, from 64 attempts, beside what up to 1,100 attempts show.

``python benchmarks/extrapolation_noises.py FOLDER > benchmarks/results/extrapolation_noises.txt``
reads the counts of the benchmarks in FOLDER (tables `model, problem_id, n, c`); names of benchmarks
behind FOLDER choose some of them. Each problem is thinned to 64 attempts by a hypergeometric draw,
three times; the zero-inflated fit, which takes longest, sees every sixth model and the first thinning.

The truth is the mean of the unbiased pass@k of all attempts at the same problems. "naive" takes
pass@64 for the answer.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from ttsframe._typing import Floats
from ttsframe.statistics.extrapolation.model import Counts, ExtrapolationModel
from ttsframe.statistics.extrapolation.power_law import unbiased_passes
from ttsframe.statistics.extrapolation.registry import MODELS, predict_range

BENCHMARKS: Final = ("human_eval_plus", "aime2024")
LEAST: Final = {256: 512, 1024: 1024}
"""Attempts that every problem of a model needs, to know its pass@k."""
N_FITTED: Final = 64
N_THINNINGS: Final = 3
LEVEL: Final = 0.95
GOALS: Final = {
    ("human_eval_plus", 256): 0.18,
    ("human_eval_plus", 1024): 0.28,
    ("aime2024", 256): 0.60,
    ("aime2024", 1024): 0.80,
}
"""Widest mean interval of the default that is accepted."""


def distinct(n: Floats, c: Floats) -> Counts:
    pairs, weight = np.unique(np.stack([n, c]), axis=1, return_counts=True)
    return Counts(*pairs, weight.astype(float))


def predictions(table: pl.DataFrame, seed: int, models: list[ExtrapolationModel]) -> pl.DataFrame:
    """Return the prediction of each model for each k, beside the truth."""
    n, c = table["n"].to_numpy(), table["c"].to_numpy()
    whole = distinct(n.astype(float), c.astype(float))
    draws = np.random.default_rng(seed)
    thinned = draws.hypergeometric(c, n - c, N_FITTED).astype(float)
    counts = distinct(np.full(len(n), float(N_FITTED)), thinned)
    ks = [k for k, least in LEAST.items() if n.min() >= least]
    k = np.array(ks, dtype=float)
    truth = whole.weight @ unbiased_passes(whole, k) / whole.weight.sum()
    naive = float((thinned > 0).mean())
    rows = [pl.DataFrame({"k": ks, "truth": truth, "passes": naive, "method": "naive"})]
    for name in models:
        started = time.process_time()
        found = predict_range(name, MODELS[name].fit(counts, LEVEL), k)
        seconds = time.process_time() - started
        columns = found._asdict() | {"k": ks, "truth": truth, "seconds": seconds, "method": name}
        rows.append(pl.DataFrame(columns))
    return pl.concat(rows, how="diagonal")


def main() -> None:
    folder = Path(sys.argv[1])
    print(__doc__)
    print("A power law has no fit where no attempt is right: its row is over the other thinnings.")
    print(
        "error: mean absolute error; covered: share of nominal 95 % intervals that hold the truth;"
    )
    print(
        "moved: share of estimates that lay outside of the interval; seconds: of the processor.\n"
    )
    print(
        f"{'benchmark':<16}{'k':>5}{'models':>7}  {'method':<15}{'error':>7}{'covered':>9}", end=""
    )
    print(f"{'width':>7}{'moved':>7}{'seconds':>9}{'most':>7}")
    for benchmark in sys.argv[2:] or BENCHMARKS:
        counts = pl.read_csv(folder / f"{benchmark}.csv")
        found = []
        tables = counts.partition_by("model", maintain_order=True)
        tables = [table for table in tables if table["n"].min() >= min(LEAST.values())]
        for place, table in enumerate(tables):
            model = table["model"][0]
            for seed in range(N_THINNINGS):
                is_all = seed == 0 and place % 6 == 0
                models = [name for name in MODELS if is_all or name != "zero_inflated"]
                one = predictions(table, seed, models)
                found.append(one.with_columns(model=pl.lit(model), seed=seed))
        width = pl.col("high") - pl.col("low")
        cells = (
            pl
            .concat(found, how="diagonal")
            .with_columns(pl.col("passes", "low", "high").fill_nan(None))
            .group_by("k", "method", maintain_order=True)
            .agg(
                pl.col("model").n_unique().alias("n_models"),
                (pl.col("passes") - pl.col("truth")).abs().mean().alias("error"),
                pl.col("truth").is_between("low", "high").mean().alias("covered"),
                width.mean().alias("width"),
                pl.col("is_moved").mean().alias("moved"),
                pl.col("seconds").median().alias("seconds"),
                pl.col("seconds").max().alias("most"),
            )
            .sort("k", maintain_order=True)
        )
        for cell in cells.rows(named=True):
            print(
                f"{benchmark:<16}{cell['k']:>5}{cell['n_models']:>7}  {cell['method']:<15}", end=""
            )
            print(f"{cell['error']:>7.4f}", end="")
            if cell["width"] is not None:
                print(f"{cell['covered']:>9.3f}{cell['width']:>7.3f}{cell['moved']:>7.3f}", end="")
                print(f"{cell['seconds']:>9.3f}{cell['most']:>7.3f}", end="")
            if cell["method"] == "nonparametric":
                print(f"  widest accepted {GOALS[benchmark, cell['k']]}", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
