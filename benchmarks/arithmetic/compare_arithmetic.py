"""Print what the searches with the trained models found: `python benchmarks/arithmetic/compare_arithmetic.py`.

Reads `data/arithmetic_search.parquet`. The unit of every test is the problem, averaged over the seeds.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

import ttsframe as tts

DATA = Path(__file__).parents[2] / "data"


def main() -> None:
    answers = pl.read_parquet(DATA / "arithmetic_search.parquet")
    n_seeds, n_problems = answers["seed"].n_unique(), answers["problem_id"].n_unique()
    print(f"{n_problems} held-out problems, {n_seeds} seeds\n")
    single = answers.filter(
        pl.col("policy") == "best_of_n", pl.col("width") == pl.col("width").max()
    )
    one = (
        single
        .unique(["problem_id", "seed", "digits"])
        .group_by("digits")
        .agg(pl.col("pass_at_1").mean(), pl.col("is_covered").mean())
    )
    print("pass@1 and coverage of the widest best-of-N by digits:")
    for digits, share, covered in one.sort("digits").iter_rows():
        print(f"  {digits}: {share:.3f} {covered:.3f}")
    print(f"  all: {one['pass_at_1'].mean():.3f} {one['is_covered'].mean():.3f}\n")

    table = (
        answers
        .group_by("selector", "policy", "width", maintain_order=True)
        .agg(accuracy=pl.col("value").mean(), tokens=pl.col("cost").mean())
        .sort("selector", "policy", "width")
    )
    for (selector,), rows in table.partition_by("selector", as_dict=True).items():
        print(f"{selector}: accuracy (tokens per problem) by width")
        for (policy,), line in rows.partition_by(
            "policy", as_dict=True, maintain_order=True
        ).items():
            cells = line.select(
                pl.format(
                    "{}: {} ({})",
                    "width",
                    pl.col("accuracy").round(3),
                    pl.col("tokens").round(0).cast(int),
                )
            )
            print(f"  {policy:10s}", ", ".join(cells.to_series()))
    print()
    for selector in ("weighted_vote", "best_of_n"):
        rows = answers.filter(selector=selector)
        print(
            f"{selector}: policy minus best-of-N of the same width; p-values by Holm over these 12 tests"
        )
        found = tts.compare(rows, column="policy", baseline="best_of_n", replicates="seed")
        for row in found.sort("policy", "budget").iter_rows(named=True):
            print(
                f"  {row['policy']:10s} {row['budget']:3d}: {row['difference']:+.3f} "
                f"[{row['ci_low']:+.3f}, {row['ci_high']:+.3f}], p {row['p_adjusted']:.2g} ({row['test']}), "
                f"{row['n_wins']} wins, {row['n_losses']} losses"
            )
        by = tts.compare(
            rows.filter(pl.col("width") == pl.col("width").max()),
            column="policy", baseline="best_of_n", replicates="seed", by="digits",
        )  # fmt: skip
        print("  by digits at the largest width, Holm over these tests:")
        for row in by.sort("policy", "digits").iter_rows(named=True):
            print(
                f"  {row['policy']:10s} {row['digits']} digits: {row['baseline_accuracy']:.3f} to "
                f"{row['accuracy']:.3f}, p {row['p_adjusted']:.2g}"
            )
        print()


if __name__ == "__main__":
    main()
