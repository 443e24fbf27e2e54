"""Search with the trained models: `python benchmarks/arithmetic/search_arithmetic.py`.

Best-of-N, beam search, DVTS and REBASE at four widths and three seeds on held-out problems. The
answers go to `data/arithmetic_search.parquet`; `compare_arithmetic.py` prints the paired tests.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import arithmetic_models as models
import polars as pl
from train_verifier import problems

import ttsframe as tts

WIDTHS, SEEDS, N_PROBLEMS = (4, 8, 16, 32), (0, 1, 2), 50
"""Problems are for each number of digits."""
SELECTORS = ("majority_vote", "weighted_vote", "best_of_n")


def narrower(solutions: pl.DataFrame, width: int) -> pl.DataFrame:
    """Return a smaller best-of-N run from a larger one, whose solutions are independent."""
    some = solutions.filter(pl.col("node_id").rank("ordinal").over("problem_id") <= width)
    return some.with_columns(
        width=pl.lit(width, pl.Int64),
        attempt=pl.int_range(pl.len(), dtype=pl.UInt32).over("problem_id"),
        tree_tokens=pl.col("n_tokens").sum().over("problem_id"),
    )


def searched(
    asked: pl.DataFrame, generator: models.LocalGenerator, judge: models.Judge, seed: int
) -> Iterator[tuple[str, pl.DataFrame]]:
    policies: list[tts.search.Policy] = [tts.search.BestOfN(max(WIDTHS))]
    for make in (tts.search.Beam, tts.search.DVTS, tts.search.Rebase):
        policies += [make(width) for width in WIDTHS]
    for policy in policies:
        nodes = tts.search.search(asked, generator, judge, policy, seed=seed)
        solutions = tts.search.to_trajectories(nodes, policy=policy, problems=asked)
        widths = WIDTHS if policy.is_exchangeable else (policy.width,)
        for width in widths:
            some = narrower(solutions, width) if policy.is_exchangeable else solutions
            yield f"{policy.name} {width}", some


def answers(solutions: pl.DataFrame) -> pl.DataFrame:
    scored = tts.score_trajectories(solutions)
    picked = tts.search.select_by_width(scored, selectors=list(SELECTORS))
    priced = tts.curves.add_costs(
        picked, trajectories=scored, by=["policy", "width"], tree_tokens="tree_tokens"
    )
    shares = scored.group_by("problem_id").agg(
        pass_at_1=pl.col("is_correct").fill_null(value=False).mean(),
        is_covered=pl.col("is_correct").fill_null(value=False).any(),
    )
    return priced.join(shares, on="problem_id", maintain_order="left")


def main() -> None:
    asked = problems(N_PROBLEMS, 7, held_out=True)
    generator = models.LocalGenerator(models.Writer(models.load("arithmetic_generator")))
    judge = models.Judge(models.load("arithmetic_verifier"))
    found = []
    for seed in SEEDS:
        for name, solutions in searched(asked, generator, judge, seed):
            rows = answers(solutions).with_columns(seed=pl.lit(seed, pl.Int64))
            found.append(rows.join(asked.select("problem_id", "digits"), on="problem_id"))
            by = found[-1].group_by("selector", maintain_order=True)
            accuracy = by.agg(pl.col("value").mean())
            print(
                f"seed {seed}, {name}:",
                dict(accuracy.select("selector", pl.col("value").round(3)).iter_rows()),
                f"{time.process_time():.0f} s",
                flush=True,
            )
            pl.concat(found).write_parquet(models.DATA / "arithmetic_search.parquet")


if __name__ == "__main__":
    main()
