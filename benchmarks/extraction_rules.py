"""How often each rule of extraction fires on the real runs of ``../shared/data``, and what it finds.

For every run and rule: texts, answers that are equivalent to the gold answer, other answers, and texts
in which the rule found its mark but no answer. The same follows for texts without their boxes, which are
made of the same runs, and the counts go to ``benchmarks/results/extraction_rules.txt``.

    python benchmarks/extraction_rules.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import ttsframe as tts

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULT = Path(__file__).parent / "results" / "extraction_rules.txt"
BOX = r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"


def trajectories(path: Path) -> pl.DataFrame:
    """Return texts and gold answers of a run in a known format."""
    frame = tts.read_trajectories(path)
    if "gold" not in frame.columns or frame["gold"].null_count() == frame.height:
        frame = frame.with_columns(gold=tts.extract_answer("solution", style="boxed"))
    return frame.select(
        pl.lit(f"{path.parent.name}/{path.stem[:28]}").alias("run"), "completion", "gold"
    )


def gsm8k() -> pl.DataFrame:
    """Return the solutions of four systems to GSM8K."""
    frame = pl.read_ndjson(DATA / "gsm8k" / "example_model_solutions.jsonl")
    gold = pl.col("ground_truth").str.extract(r"A: (.*)$", 1).alias("gold")
    systems = [name for name in frame.columns if name not in {"question", "ground_truth"}]
    return pl.concat([
        frame.select(
            pl.lit(f"gsm8k/{name}").alias("run"),
            pl.col(name).struct.field("solution").alias("completion"),
            gold,
        )
        for name in systems
    ])


def small_runs() -> pl.DataFrame:
    """Return the completions of NeMo-Skills and lm-eval."""
    nemo = pl.concat([
        pl.read_ndjson(path).select(
            pl.lit("nemo_skills").alias("run"),
            pl.col("generation").alias("completion"),
            pl.col("expected_answer").cast(pl.String).alias("gold"),
        )
        for path in sorted((DATA / "nemo_skills").glob("*.jsonl"))
    ])
    harness = pl.concat([
        pl.read_ndjson(path).select(
            pl.lit("lm_eval").alias("run"),
            pl.col("resps").list.get(0).list.get(0).alias("completion"),
            pl.col("target").cast(pl.String).alias("gold"),
        )
        for path in sorted((DATA / "lm_eval").glob("samples_*.jsonl"))
    ])
    return pl.concat([nemo, harness])


def runs() -> pl.DataFrame:
    paths = [
        *sorted((DATA / "search_and_learn").glob("*.jsonl")),
        DATA / "search_and_learn" / "synthetic_100x64.parquet",
        DATA / "qwen_math" / "math_cot_50.jsonl",
        DATA / "compute_optimal_tts" / "math500_best_of_n_1_1_1.jsonl",
        DATA / "ets" / "synthetic_20x16.json",
    ]
    return pl.concat([*map(trajectories, paths), gsm8k(), small_runs()])


def counted(texts: pl.DataFrame) -> pl.DataFrame:
    """Count texts by run and rule: answers that are right, wrong, and none."""
    read = texts.with_columns(
        answer=tts.extract_answer("completion"),
        rule=tts.answers.extraction_rule("completion").cast(pl.String).fill_null("(none)"),
    )
    is_right = tts.is_equivalent("answer", "gold").fill_null(value=False)
    return (
        read
        .with_columns(is_right=is_right)
        .group_by("run", "rule")
        .agg(
            pl.len().alias("texts"),
            right=pl.col("is_right").sum(),
            wrong=(pl.col("answer").is_not_null() & ~pl.col("is_right")).sum(),
            no_answer=pl.col("answer").is_null().sum(),
        )
        .sort("run", "texts", "rule", descending=[False, True, False])
    )


def lines(counts: pl.DataFrame, title: str) -> Iterator[str]:
    yield title
    header = f"{'run':48} {'rule':14} {'texts':>7} {'right':>7} {'wrong':>7} {'no answer':>9}"
    yield header
    total = (
        counts
        .group_by("rule")
        .agg(pl.col("texts", "right", "wrong", "no_answer").sum())
        .with_columns(run=pl.lit("all"))
        .select(counts.columns)
        .sort("texts", "rule", descending=[True, False])
    )
    for run, rule, *numbers in pl.concat([counts, total]).iter_rows():
        yield f"{run:48} {rule:14} " + " ".join(
            f"{number:{width}}" for number, width in zip(numbers, (7, 7, 7, 9), strict=True)
        )
    yield ""


def main() -> None:
    if not DATA.is_dir():
        sys.exit("the real runs of ../shared/data are not here")
    texts = runs()
    unboxed = texts.filter(pl.col("completion").str.contains(BOX)).with_columns(
        pl.col("completion").str.replace_all(BOX, "${1}")
    )
    report = "\n".join([
        *lines(counted(texts), "Texts as they are"),
        *lines(counted(unboxed), "The same texts without boxes"),
    ])
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(report, encoding="utf-8")
    print(report, end="")


if __name__ == "__main__":
    main()
