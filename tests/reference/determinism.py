"""Print digests of the bytes of analyses: run in processes with other numbers of threads."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
from collections.abc import Iterator

import polars as pl
from contract_analysis import analyse

import ttsframe as tts


def digests(seed: int, engine: pl.Engine) -> dict[str, str]:
    """Return a digest of every table of a random run."""
    draws = random.Random(seed)
    run = tts.simulate_trajectories(
        draws.choice([40, 200, 700]), draws.choice([8, 16]), seed=seed, keys=True
    ).with_columns(
        subject=pl.col("problem_id").hash(seed) % 7, seed=pl.col("attempt") % 2, model=pl.lit("m")
    )
    if seed % 2:
        run = run.sample(fraction=1.0, shuffle=True, seed=seed)
    found = {name: plan.collect(engine=engine) for name, plan in analyse(run.lazy()).items()}
    found |= {name: plan.lazy().collect(engine=engine) for name, plan in _more(run)}
    return {name: _digest(table) for name, table in found.items()}


def _more(run: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame | pl.LazyFrame]]:
    problems = tts.select_answers(
        run.lazy(), budgets=[1, 4, 8], selectors=["majority_vote", "weighted_vote"]
    ).join(
        run.lazy().select("problem_id", "subject").unique(), on="problem_id", maintain_order="left"
    )
    expected = tts.expected_accuracy(run.lazy(), budgets=[1, 4, 8])
    seeds = tts.select_answers(
        run.lazy().with_columns(attempt=pl.col("attempt") // 2), budgets=[1, 4], by="seed"
    )
    value = pl.col("value")
    yield "expected", expected
    yield "expected curve", tts.scaling_curve(expected)
    yield (
        "clusters",
        tts.scaling_curve(
            expected.join(
                run.lazy().select("problem_id", "subject").unique(),
                on="problem_id",
                maintain_order="left",
            ),
            cluster="subject",
        ),
    )
    yield "replicates", tts.scaling_curve(seeds, replicates=("seed",))
    yield "strata", tts.curves.stratified_curve(problems, strata="subject")
    yield "at once", tts.curves.simultaneous_curve(problems, seed=0, n_resamples=50)
    yield "cost", tts.cost_curve(tts.curves.add_costs(problems, budget_unit="attempts"))
    yield "pairs", tts.compare(problems, cluster="subject")
    yield "ranks", tts.statistics.rank(problems.filter(budget=4), column="selector", seed=0)
    sums = problems.with_columns(value=value * pl.col("agreement"))
    yield (
        "spread",
        sums
        .group_by("budget", "selector")
        .agg(tts.standard_error(value))
        .sort("budget", "selector"),
    )
    yield "alone", sums.select(tts.standard_error(value))
    yield "fit", pl.DataFrame({"x": [str(tts.statistics.fit_pass_at_k(run))]})


def _digest(table: pl.DataFrame) -> str:
    buffer = io.BytesIO()
    table.rechunk().write_parquet(buffer, compression="uncompressed")
    return hashlib.blake2b(buffer.getvalue(), digest_size=8).hexdigest()


def main(seeds: list[int], n_times: int) -> None:
    """Print the digests of each seed, engine and repetition."""
    for seed in seeds:
        for engine in ("in-memory", "streaming"):
            for _ in range(n_times):
                print(json.dumps([seed, engine, digests(seed, engine)]), flush=True)  # type: ignore[arg-type]


if __name__ == "__main__":
    main([int(text) for text in sys.argv[2:]], int(sys.argv[1]))
