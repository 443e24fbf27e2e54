"""Size of `compare` and coverage of curves where problems come in clusters, by simulation.

``python benchmarks/cluster_coverage.py [RUNS]`` prints the tables that are kept in
``benchmarks/results/cluster_coverage.txt``. Cluster sizes are log-normal; a cluster's chance is drawn from
a beta distribution with the given correlation within clusters.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
import polars as pl

import ttsframe as tts

N_RUNS: Final = 2_000
CLUSTERS: Final = (10, 20, 40)
SPREADS: Final = (0.5, 1.0)
"""Standard deviation of the logarithm of a cluster's size."""
CORRELATIONS: Final = (0.0, 0.1, 0.3)
MEAN_SIZE: Final = 8
BUDGETS: Final = (1, 2, 4, 8)
CONSTANTS: Final = {
    "selector": pl.lit("oracle"),
    "reduction": pl.lit(None, pl.String),
    "status": pl.lit("ok"),
}


def draw(
    rng: np.random.Generator, n_runs: int, n_clusters: int, *, spread: float, p: float, icc: float
) -> pl.DataFrame:
    """Return the grades of some runs, with the cluster of each problem and its chance."""
    logs = rng.normal(np.log(MEAN_SIZE) - spread**2 / 2, spread, (n_runs, n_clusters))
    sizes = np.maximum(1, np.rint(np.exp(logs))).astype(np.int64).ravel()
    chances = np.full(sizes.shape, p)
    if icc > 0.0:
        k = 1.0 / icc - 1.0
        chances = rng.beta(p * k, (1.0 - p) * k, sizes.shape)
    cluster = np.repeat(np.arange(sizes.size), sizes)
    return pl.DataFrame({
        "run": cluster // n_clusters,
        "problem_id": np.arange(cluster.size),
        "text": cluster,
        "chance": chances[cluster],
        "value": (rng.random(cluster.size) < chances[cluster]).astype(float),
    })


def coverage(n_runs: int, n_clusters: int, spread: float, p: float, icc: float) -> dict[str, float]:
    """Return how often the interval holds p, with the clusters named and not, and its mean width."""
    seed = [11, n_clusters, int(10 * spread), int(100 * p), int(100 * icc)]
    frame = draw(np.random.default_rng(seed), n_runs, n_clusters, spread=spread, p=p, icc=icc)
    found = {}
    for name, cluster in (("named", "text"), ("not named", None)):
        curve = tts.scaling_curve(frame, by="run", cluster=cluster)
        found[name], found[f"{name}, width"] = curve.select(
            100.0 * pl.lit(p).is_between("ci_low", "ci_high").mean(),
            (pl.col("ci_high") - pl.col("ci_low")).mean().alias("width"),
        ).row(0)
    return found


def averages(n_runs: int, n_clusters: int, spread: float, p: float, icc: float) -> dict[str, float]:
    """Return how often both averages over three subjects, with half, 3 and 2 tenths of the clusters, hold p."""
    seed = [13, n_clusters, int(10 * spread), int(100 * p), int(100 * icc)]
    frame = draw(np.random.default_rng(seed), n_runs, n_clusters, spread=spread, p=p, icc=icc)
    tenth = pl.col("text") % n_clusters * 10 // n_clusters
    frame = frame.with_columns(
        subject=(tenth >= 5).cast(pl.Int8) + (tenth >= 8), budget=1, **CONSTANTS
    )
    curve = tts.curves.stratified_curve(frame, strata="subject", by="run", cluster="text")
    held = 100.0 * pl.lit(p).is_between("ci_low", "ci_high").mean()
    return dict(curve.group_by("average").agg(held.alias("held")).rows())


def bands(n_runs: int, n_clusters: int, spread: float, p: float, icc: float) -> dict[str, float]:
    """Return how often the intervals at all budgets hold at once: in a band, and one by one."""
    seed = [14, n_clusters, int(10 * spread), int(100 * p), int(100 * icc)]
    rng = np.random.default_rng(seed)
    frame = draw(rng, n_runs, n_clusters, spread=spread, p=p, icc=icc)
    first_right = rng.geometric(frame["chance"].to_numpy())
    problems = pl.concat(
        frame.with_columns(
            value=pl.Series((first_right <= budget).astype(float)), budget=budget, **CONSTANTS
        )
        for budget in BUDGETS
    )
    many = rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), 1_000_000)
    truths = {budget: float((1 - (1 - many) ** budget).mean()) for budget in BUDGETS}
    found = {}
    for name, average in (
        ("band", tts.curves.simultaneous_curve),
        ("one by one", tts.scaling_curve),
    ):
        curve = average(problems, by="run", cluster="text")
        truth = pl.col("budget").replace_strict(truths)
        held = curve.group_by("run").agg(truth.is_between("ci_low", "ci_high").all().alias("all"))
        found[name] = 100.0 * float(held["all"].mean())  # type: ignore[arg-type]
    return found


def size(n_runs: int, n_clusters: int, spread: float, shift: float) -> dict[str, float]:
    """Return how often `compare` finds a difference that is not there, and with CR1 and t(G - 1)."""
    from scipy import stats

    rng = np.random.default_rng([12, n_clusters, int(10 * spread), int(10 * shift)])
    frame = draw(rng, n_runs, n_clusters, spread=spread, p=0.5, icc=0.0)
    # Models differ by text, one way or the other, alike: each text shifts the other model's chance.
    signs = rng.choice([-shift, shift], frame["text"].max() + 1)  # type: ignore[operator]
    other = (rng.random(frame.height) < 0.5 + signs[frame["text"].to_numpy()]).astype(float)
    both = pl.concat([
        frame.select("run", "problem_id", "text", "value", model=pl.lit("old")),
        frame.select("run", "problem_id", "text", value=pl.Series(other), model=pl.lit("new")),
    ])
    options = {"column": "model", "baseline": "old", "by": "run", "correction": "none"}
    table = tts.compare(both, cluster="text", **options)  # type: ignore[arg-type]
    wild = tts.compare(both, cluster="text", cluster_test="wild_bootstrap", **options)  # type: ignore[arg-type]
    sums = (
        frame
        .select("run", "text", d=pl.Series(other) - pl.col("value"))
        .with_columns(pl.col("d") - pl.col("d").mean().over("run"), n=pl.len().over("run"))
        .group_by("run", "text")
        .agg(pl.col("d").sum(), pl.col("n").first())
        .group_by("run")
        .agg((pl.col("d") ** 2).sum(), pl.col("n").first(), g=pl.len())
        .sort("run")
    )
    g, n = sums["g"].to_numpy(), sums["n"].to_numpy()
    cr1 = np.sqrt(g / (g - 1) * sums["d"].to_numpy()) / n
    p_cr1 = 2.0 * stats.t.sf(np.abs(table.sort("run")["difference"].to_numpy()) / cr1, g - 1)
    return {
        "CR2": 100.0 * float((table["p_value"] <= 0.05).mean()),  # type: ignore[arg-type]
        "wild": 100.0 * float((wild["p_value"] <= 0.05).mean()),  # type: ignore[arg-type]
        "CR1": 100.0 * float((p_cr1 <= 0.05).mean()),
        "df": float(table["df"].mean()),  # type: ignore[arg-type]
    }


def more_curves(n_runs: int) -> None:
    """Print the coverage of averages over subjects and of bands."""
    print(
        f"Coverage in % with the clusters named, sd of log size {SPREADS[-1]:g}, {n_runs:,} runs a row: both averages of stratified_curve over\n"
        f"three subjects, and all {len(BUDGETS)} budgets at once by simultaneous_curve and by scaling_curve.\n"
        "* misses 93.\n"
    )
    print("correlation  clusters    p    macro   micro    band   one by one")
    for icc in CORRELATIONS[1:]:
        for n_clusters in CLUSTERS:
            for p in (0.5, 0.1):
                of = (n_runs, n_clusters, SPREADS[-1], p, icc)
                found = averages(*of) | bands(*of)
                cells = [found[name] for name in ("macro", "micro", "band")]
                row = "".join(f"{one:>7.1f}{'*' if one < 93.0 else ' '}" for one in cells)
                print(
                    f"{icc:<11g}{n_clusters:>10}{p:>5g}{row}{found['one by one']:>12.1f}",
                    flush=True,
                )
    print()


def main(n_runs: int) -> None:
    """Print all tables."""
    print(
        f"Coverage in % of nominal 95 % intervals of scaling_curve, {n_runs:,} runs a row, clusters of mean\n"
        f"size {MEAN_SIZE}. Goal with the clusters named: at least 93; * misses it.\n"
    )
    print("sd of log size  correlation  clusters    p     named  not named  width  not named")
    misses = 0
    for spread in SPREADS:
        for icc in CORRELATIONS:
            for n_clusters in CLUSTERS:
                for p in (0.5, 0.1):
                    found = coverage(n_runs, n_clusters, spread, p, icc)
                    misses += found["named"] < 93.0
                    mark = "*" if found["named"] < 93.0 else " "
                    print(
                        f"{spread:<16g}{icc:>11g}{n_clusters:>10}{p:>5g}{found['named']:>9.1f}{mark}"
                        f"{found['not named']:>10.1f}{found['named, width']:>7.3f}"
                        f"{found['not named, width']:>11.3f}",
                        flush=True,
                    )
    print(f"\nmisses its goal in {misses} rows.\n")
    more_curves(n_runs)
    sizes(n_runs // 2)


def sizes(n_runs: int) -> None:
    """Print how often `compare` rejects without a difference."""
    print(
        f"Rejections in % at 5 % of compare without a difference, {n_runs:,} runs a row. CR1: the usual\n"
        "clustered error with t(clusters - 1). wild: cluster_test='wild_bootstrap'. shift: how far the other model's chance differs by text.\n"
    )
    print("sd of log size  shift  clusters     CR2    wild     CR1  mean df")
    for spread in SPREADS:
        for shift in (0.2, 0.4):
            for n_clusters in CLUSTERS:
                found = size(n_runs, n_clusters, spread, shift)
                print(
                    f"{spread:<16g}{shift:>5g}{n_clusters:>10}{found['CR2']:>8.1f}{found['wild']:>8.1f}{found['CR1']:>8.1f}"
                    f"{found['df']:>9.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS)
