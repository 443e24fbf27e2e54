"""Print digests of the bytes of analyses: run in processes with other numbers of threads."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

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
    made = {name: _digest(table) for name, table in found.items()}
    return made | (_files(run, seed) if seed % 10 == 0 and engine == "in-memory" else {})


def _files(run: pl.DataFrame, seed: int) -> dict[str, str]:
    """Return digests of what jobs and a report write."""
    with tempfile.TemporaryDirectory() as folder:
        source, sink, page = (Path(folder, name) for name in ("run.parquet", "out", "page.html"))
        texts, scored = (Path(folder, name) for name in ("texts.parquet", "scored.parquet"))
        run.write_parquet(source, row_group_size=100)
        stages = [tts.batch.Select(budgets=[1, 4]), tts.batch.Curve()]
        tts.batch.transform(source, sink, stages=stages, rows_per_part=300)
        made = tts.simulate_trajectories(60, 8, seed=seed, texts=True)
        made.write_parquet(texts, row_group_size=50)
        tts.batch.transform(texts, scored, stages=tts.batch.Score(texts=True), rows_per_part=100)
        tts.build_report(run).save(page, date=datetime(2026, 1, 1, tzinfo=UTC))
        parts = [pl.read_parquet(path) for path in sorted(sink.iterdir())]
        return {
            "job": _digest(pl.concat(parts)),
            "scored": _digest(pl.read_parquet(scored)),
            "page": hashlib.blake2b(page.read_bytes(), digest_size=8).hexdigest(),
        }


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
    yield "at once", tts.curves.simultaneous_curve(problems, seed=0, n_draws=50)
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


def main(engines: list[str], n_times: int, seeds: list[int]) -> None:
    """Print the digests of each seed, engine and repetition."""
    for seed in seeds:
        for engine in engines:
            for _ in range(n_times):
                found = digests(seed, engine)  # type: ignore[arg-type]
                sys.stdout.write(json.dumps([seed, engine, found]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1].split(","), int(sys.argv[2]), [int(text) for text in sys.argv[3:]])
