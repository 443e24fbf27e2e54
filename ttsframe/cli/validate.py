"""``ttsframe validate``: problems in the data of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click
import polars as pl

from ttsframe._typing import AnswerStyle
from ttsframe.answers import AnswerPolicy, extraction_rule
from ttsframe.cli._console import Console
from ttsframe.cli._errors import in_options
from ttsframe.cli._options import (
    Run,
    by_option,
    examples,
    prints,
    question_option,
    reads_run,
    style_option,
)
from ttsframe.cli._policy import policy_option
from ttsframe.cli._tables import table_text
from ttsframe.defaults import PickOptions
from ttsframe.schema import holds_counts
from ttsframe.validation import (
    ValidationReport,
    run_health,
    severity_rank,
    validate_trajectories,
)

FOUND = 1


@click.command(
    epilog=examples(
        "ttsframe validate runs/bon.jsonl",
        "ttsframe validate 'runs/*.jsonl' --by source_file --json",
    ),
)
@reads_run
@style_option
@question_option
@policy_option
@by_option
@prints
@click.pass_context
def validate(
    ctx: click.Context,
    *,
    run: Run,
    by: tuple[str, ...],
    style: AnswerStyle,
    cut_at_next_question: bool,
    policy: AnswerPolicy | None,
    console: Console,
) -> None:
    """Check a run for problems in its data that would make its numbers wrong or misleading.

    Counts duplicate, missing and ragged attempts, missing answers and scores, scores that are out of
    range or look like logits, and repeated completions, with examples. Then lists how many attempts
    were cut off, have no answer, or were found by which rule, and the accuracy that each of this costs
    at most. Exit status: 1 with errors or warnings, 0 without (notes do not count), 2 if the run cannot
    be read.
    """
    with console.status(f"Reading {run.label}"):
        read = run.plan(by)
    options = PickOptions(style=style, cut_at_next_question=cut_at_next_question, policy=policy)
    with console.status("Checking"):
        scored = _with_answers(read.frame, options)
        report = validate_trajectories(scored, by=by, traps=read.survey.format.traps)
        report = _compare_grades(report, read.frame, options)
        is_run = report.is_valid and not holds_counts(read.frame.collect_schema())
        health = _health(scored, options, by) if is_run else None
    console.result({**report.to_dict(), "health": None if health is None else health.to_dicts()})
    console.say(in_options(str(report)))
    if health is not None and health.height:
        console.say(f"\n{_health_text(health, by)}")
    if any(finding.severity != "note" for finding in report.findings):
        ctx.exit(FOUND)


def _compare_grades(
    report: ValidationReport, attempts: pl.LazyFrame, options: PickOptions
) -> ValidationReport:
    """Add where the grades of the tool differ from ours."""
    columns = set(attempts.collect_schema().names())
    if "is_correct" not in columns or not ({"gold", "solution"} & columns and report.is_valid):
        return report
    regraded = options.score(attempts, overwrite=["is_correct"])
    found = validate_trajectories(regraded).findings
    differing = tuple(finding for finding in found if finding.code == "grades_differ")
    return replace(
        report, findings=tuple(sorted((*report.findings, *differing), key=severity_rank))
    )


def _health(scored: pl.LazyFrame, options: PickOptions, by: Sequence[str]) -> pl.DataFrame:
    """Find the issues that attempts have."""
    if "completion" in scored.collect_schema():
        rule = extraction_rule(
            "completion", style=options.style, cut_at_next_question=options.cut_at_next_question
        )
        scored = scored.with_columns(extraction_rule=rule)
    health = run_health(scored, by=by)
    return health.filter(pl.col("n_attempts") > 0).collect(engine="streaming")


def _health_text(health: pl.DataFrame, by: Sequence[str]) -> str:
    """Write the issues for people."""
    names = [*by, "attempts with", "attempts", "share", "problems", "cost at most (points)"]
    rows = []
    for row in health.iter_rows(named=True):
        issue = row["issue"] if row["rule"] is None else f"{row['issue']} by {row['rule']}"
        lost = row["lost_at_most"]
        rows.append([
            *[str(row[name]) for name in by],
            issue.replace("_", " "),
            f"{row['n_attempts']:,}",
            f"{row['share']:.1%}",
            f"{row['n_problems']:,}",
            "-" if lost is None else f"{100 * lost:.1f}",
        ])
    numbers = [*[False] * (len(by) + 1), True, True, True, True]
    table = table_text(names, rows, numbers=numbers, n_fixed=len(by) + 1)
    return f"{table}\n\nHad all these attempts been right, pass@1 over all attempts would be higher by at most this."


def _with_answers(attempts: pl.LazyFrame, options: PickOptions) -> pl.LazyFrame:
    """Add what can be extracted from the texts, so that missing answers are reported."""
    columns = attempts.collect_schema().names()
    if not {"completion", "answer"} & set(columns):
        return attempts
    scored = options.score(attempts)
    # A score computed from step scores would repeat each finding about them.
    return scored if "score" in columns else scored.drop("score", strict=False)
