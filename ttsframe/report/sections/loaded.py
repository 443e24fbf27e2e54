"""What was read, and what its validation found."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import polars as pl

from ttsframe._wording import counted, shorten
from ttsframe.report.sections.section import Part, Section, asks, folded, heads, paragraph, table

if TYPE_CHECKING:
    from ttsframe.report.report import Report

_VALUE_MAX: Final = 60


def answers(report: Report) -> list[str]:
    """Say how much was read, and how much of it has no answer."""
    found = report.validation
    loaded = report.loaded
    sizes = [*loaded["attempts_min"].to_list(), *loaded["attempts_max"].to_list()]
    n_missing = sum(loaded["n_missing_answers"].to_list())
    text = (
        f"{counted([found.n_attempts], 'attempt')} at {counted([found.n_problems], 'problem')}, "
        f"{counted(sizes, 'attempt')} each; {n_missing:,} ({n_missing / found.n_attempts:.1%}) "
        "without an answer."
    )
    return [text]


def body(report: Report) -> list[Part]:
    """List what was loaded and what its validation found."""
    loaded = report.loaded
    groups = loaded.columns[: loaded.columns.index("n_problems")]
    missing = pl.col("n_missing_answers")
    counts = loaded.select(
        *heads(groups),
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
        pl.col("n_ungraded_attempts").alias("not graded"),
        pl.col("n_unscored_attempts").alias("without a score"),
        pl
        .format("{} to {}", *[pl.col(c).round_sig_figs(4) for c in ("score_min", "score_max")])
        .fill_null("no scores")
        .alias("range of the score"),
    )
    return [table("Problems and attempts", groups, counts), _findings(report)]


def _findings(report: Report) -> str:
    """List what the validation found, with the first examples; notes alone are folded."""
    findings = report.validation.findings
    if not findings:
        return paragraph("The validation found nothing to report.")
    lines = ["<ul class='findings'>"]
    for finding in findings:
        examples = "; ".join(
            ", ".join(
                f"{name} {shorten(repr(value), _VALUE_MAX)}" for name, value in example.items()
            )
            for example in finding.examples
        )
        seen = f" <span class='examples'>For example {escape(examples)}.</span>" if examples else ""
        lines.append(
            f"<li><strong class='{finding.severity}'>{finding.severity}</strong> "
            f"{escape(finding.message)}.{seen} "
            f"<span class='hint'>Hint: {escape(finding.hint)}</span></li>"
        )
    lines.append("</ul>")
    heading = "What the validation found"
    if all(finding.severity == "note" for finding in findings):
        return folded(f"{heading}: {counted([len(findings)], 'note')}", lines)
    return "\n".join([f"<h3>{heading}</h3>", *lines])


SECTION = Section(
    is_there=lambda _: True,
    question=asks("What was loaded?"),
    answers=answers,
    body=body,
)
