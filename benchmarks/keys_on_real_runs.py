"""What keys change on the real runs of ``../shared/data``, against equality of strings.

Each run is read, scored and voted on twice: once with keys, once with each answer and gold answer as its
own key. A table of problems whose majority answer or its grade changes, and a sample of the changes to be
read by eye, go to ``benchmarks/results/keys_on_real_runs.txt``.

    python benchmarks/keys_on_real_runs.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import ttsframe as tts

RUNS = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULT = Path(__file__).parent / "results" / "keys_on_real_runs.txt"
N_SAMPLED = 30
LONGEST = 48


def paths() -> list[Path]:
    return [
        *sorted((RUNS / "search_and_learn").glob("*.jsonl")),
        RUNS / "search_and_learn" / "synthetic_100x64.parquet",
        RUNS / "qwen_math" / "math_cot_50.jsonl",
        RUNS / "compute_optimal_tts" / "math500_best_of_n_1_1_1.jsonl",
    ]


def votes(path: Path) -> pl.DataFrame:
    """Return the majority of each problem by strings and by keys."""
    # What other tools extracted and graded is made anew, so that all runs are read alike.
    recorded = tts.read_trajectories(path).drop("answer", "is_correct", strict=False)
    keyed = tts.score_trajectories(recorded)
    is_equal = (pl.col("answer") == pl.col("gold")).fill_null(value=False)
    as_strings = keyed.with_columns(answer_key=pl.col("answer"), is_correct=is_equal)
    gold = keyed.select("problem_id", "gold").unique()
    key_of = keyed.select("answer", "answer_key").unique()
    by_string = tts.majority_vote(as_strings).select(
        "problem_id", string="answer", n_string="n_votes", is_string_correct="is_correct"
    )
    by_key = tts.majority_vote(keyed).select(
        "problem_id", "answer", "answer_key", "n_votes", "is_correct"
    )
    n_other_grades = (keyed["is_correct"] != as_strings["is_correct"]).sum()
    return (
        by_key
        .join(by_string, on="problem_id")
        .join(gold, on="problem_id")
        .join(key_of.rename({"answer": "string", "answer_key": "string_key"}), on="string", how="left")
        .with_columns(
            run=pl.lit(path.stem[:36]),
            n_attempts=pl.lit(keyed.height),
            n_other_grades=pl.lit(n_other_grades),
            is_other=pl.col("string_key").ne_missing(pl.col("answer_key")),
            is_regraded=pl.col("is_correct") != pl.col("is_string_correct"),
        )
        .sort("problem_id")
    )  # fmt: skip


def lines(changes: pl.DataFrame) -> Iterator[str]:
    yield (
        f"{'run':36} {'attempts':>8} {'regraded':>8} {'problems':>8} {'other':>6} {'now':>5} {'now':>5}"
    )
    yield f"{'':36} {'':8} {'':8} {'':8} {'answer':>6} {'right':>5} {'wrong':>5}"
    for (run,), group in changes.group_by("run", maintain_order=True):
        n_attempts, n_other_grades = group.select("n_attempts", "n_other_grades").row(0)
        now = group.filter("is_regraded")["is_correct"]
        yield (
            f"{run:36} {n_attempts:8} {n_other_grades:8} {group.height:8} "
            f"{group['is_other'].sum():6} {now.sum():5} {(~now).sum():5}"
        )
    others = changes.filter("is_other")
    yield ""
    yield f"{others.height} majorities of another answer:"
    for row in others.iter_rows(named=True):
        grade = {(False, True): ", now right", (True, False): ", now wrong"}.get(
            (row["is_string_correct"], row["is_correct"]), ""
        )
        yield (
            f"  {row['run'][:20]:20} {shown(row['answer'])} ({row['n_votes']} votes) for "
            f"{shown(row['string'])} ({row['n_string']}); gold {shown(row['gold'])}{grade}"
        )
    # Each pair of spellings once, and every so many of them.
    regraded = (
        changes
        .filter("is_regraded", ~pl.col("is_other"))
        .unique(["answer", "gold"], maintain_order=True)
        .sort("gold", "answer")
    )
    step = max(1, regraded.height // N_SAMPLED)
    yield ""
    yield f"{regraded.height} distinct majorities of the same answer, graded otherwise; every {step}.:"
    for row in regraded.gather_every(step).iter_rows(named=True):
        sign = "=" if row["is_correct"] else "is not"
        yield f"  {shown(row['answer'])} {sign} gold {shown(row['gold'])}"


def shown(answer: str | None) -> str:
    """Return an answer on one line, cut short."""
    if answer is None:
        return "none"
    text = " ".join(answer.split())
    return f"'{text}'" if len(text) <= LONGEST else f"'{text[:LONGEST]}...'"


def main() -> None:
    if not RUNS.is_dir():
        sys.exit("the real runs of ../shared/data are not here")
    changes = pl.concat([votes(path) for path in paths()], how="vertical_relaxed")
    report = "\n".join(lines(changes)) + "\n"
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(report, encoding="utf-8")
    print(report, end="")


if __name__ == "__main__":
    main()
