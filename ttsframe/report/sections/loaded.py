"""The data that was read, and the validation's findings."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from ttsframe._checks import check_names
from ttsframe._wording import counted, shorten
from ttsframe.defaults import RUN
from ttsframe.report.parts import Context, Finding, Findings, Folded, Paragraph, Part, make_table
from ttsframe.report.runs import RunData
from ttsframe.report.wording import split_runs, start_sentence
from ttsframe.validation import ValidationReport

_VALUE_MAX: Final = 60
_COUNTS: Final = (
    "n_problems",
    "n_attempts",
    "attempts_min",
    "attempts_median",
    "attempts_max",
    "n_missing_answers",
    "n_ungraded_attempts",
    "n_unscored_attempts",
    "score_min",
    "score_max",
)


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Count attempts, answers, grades and scores per file and run."""
    check_names(data.by, "by", taken=_COUNTS)
    attempts, names = data.attempts, data.attempts.columns
    parts = [RUN, *data.by]
    if "source_file" in names and "source_file" not in data.by:
        parts.append("source_file")
    score = pl.col("score").fill_nan(None) if "score" in names else pl.lit(None, pl.Float64)
    is_correct = pl.col("is_correct") if "is_correct" in names else pl.lit(None, pl.Boolean)
    n_each = attempts.group_by([*parts, *data.replicates, "problem_id"]).agg(pl.len().alias("_n"))
    sizes = n_each.group_by(parts).agg(
        pl.col("problem_id").n_unique().cast(pl.UInt32).alias("n_problems"),
        pl.col("_n").sum().alias("n_attempts"),
        pl.col("_n").min().alias("attempts_min"),
        pl.col("_n").median().alias("attempts_median"),
        pl.col("_n").max().alias("attempts_max"),
    )
    counts = attempts.group_by(parts).agg(
        pl.col("answer_key").null_count().alias("n_missing_answers"),
        (pl.len() - is_correct.count()).alias("n_ungraded_attempts"),
        (pl.len() - score.count()).alias("n_unscored_attempts"),
        score.min().alias("score_min"),
        score.max().alias("score_max"),
    )
    return {"loaded": sizes.join(counts, on=parts, nulls_equal=True).sort(parts).drop(RUN)}


def answer(context: Context, loaded: pl.DataFrame, validation: ValidationReport) -> list[str]:
    """Count attempts, problems and missing answers, of each run."""
    if not context.by:
        return [_count(loaded, validation.n_problems)]
    return [
        start_sentence(prefix, _count(rows, sum(rows["n_problems"].to_list())))
        for prefix, rows in split_runs(loaded, context.by)
    ]


def _count(rows: pl.DataFrame, n_problems: int) -> str:
    """Count what a run has, which may be in several files."""
    sizes = [*rows["attempts_min"].to_list(), *rows["attempts_max"].to_list()]
    n_attempts, n_missing = (
        sum(rows[name].to_list()) for name in ("n_attempts", "n_missing_answers")
    )
    each = f", {counted(sizes, 'attempt')} each" if n_problems > 1 else ""
    return (
        f"{counted([n_attempts], 'attempt')} at {counted([n_problems], 'problem')}{each}; "
        f"{n_missing:,} ({n_missing / n_attempts:.1%}) without an answer."
    )


def draw(_: Context, loaded: pl.DataFrame, validation: ValidationReport) -> list[Part]:
    """List the counts and the findings."""
    missing = pl.col("n_missing_answers")
    counts = loaded.select(
        pl.col("n_problems").alias("problems"),
        pl.col("n_attempts").alias("attempts"),
        pl.format(
            "{}, {}, {}",
            "attempts_min",
            pl.col("attempts_median").round(1).cast(pl.String).str.strip_suffix(".0"),
            "attempts_max",
        ).alias("attempts per problem (fewest, median, most)"),
        pl.format("{} ({}%)", missing, (100 * missing / pl.col("n_attempts")).round(1)).alias(
            "without an answer"
        ),
        pl.col("n_ungraded_attempts").alias("ungraded"),
        pl.col("n_unscored_attempts").alias("without a score"),
        pl
        .format("{} to {}", *[pl.col(c).round_sig_figs(4) for c in ("score_min", "score_max")])
        .fill_null("no scores")
        .alias("range of scores"),
    )
    heads = loaded.select(loaded.columns[: loaded.columns.index("n_problems")])
    return [make_table("Problems and attempts", heads, counts), _list_findings(validation)]


def _list_findings(validation: ValidationReport) -> Part:
    """List the findings with their first examples; fold them if all are notes."""
    heading = "Findings of the validation"
    findings = [
        Finding(
            finding.severity,
            finding.message,
            "; ".join(
                ", ".join(
                    f"{name} {shorten(repr(value), _VALUE_MAX)}" for name, value in example.items()
                )
                for example in finding.examples
            ),
            finding.hint,
        )
        for finding in validation.findings
    ]
    if not findings:
        return Paragraph("The validation found nothing.")
    if all(finding.severity == "note" for finding in findings):
        summary = f"{heading}: {counted([len(findings)], 'note')}"
        return Folded(summary, [Findings("", findings)])
    return Findings(heading, findings)
