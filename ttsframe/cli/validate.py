"""``ttsframe validate``: what would make the numbers of a run wrong."""

from __future__ import annotations

import click
import polars as pl

from ttsframe._typing import AnswerStyle
from ttsframe.cli._console import Console
from ttsframe.cli._errors import as_options
from ttsframe.cli._options import Run, by_option, examples, reads_run, style_option, talks
from ttsframe.scoring import score_trajectories
from ttsframe.validation import validate_trajectories

FOUND = 1


@click.command(
    short_help="What would make the numbers of a run wrong.",
    epilog=examples(
        "ttsframe validate runs/bon.jsonl",
    ),
)
@reads_run
@style_option
@by_option
@talks
@click.pass_context
def validate(
    ctx: click.Context, *, run: Run, by: tuple[str, ...], style: AnswerStyle, console: Console
) -> None:
    """Look for what would make the numbers of a run wrong, or mean something else.

    Duplicate, missing and ragged attempts, missing answers and scores, scores out of range or that
    look like logits, repeated completions: as counts with examples. Exit status 1 on errors and
    warnings, 0 without (notes do not count), 2 when the run cannot be read.
    """
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    with console.stage("Looking"):
        report = validate_trajectories(_with_answers(attempts, style), by=by)
    console.result(report.to_dict())
    console.say(as_options(str(report)))
    if any(finding.severity != "note" for finding in report.findings):
        ctx.exit(FOUND)


def _with_answers(attempts: pl.LazyFrame, style: AnswerStyle) -> pl.LazyFrame:
    """Add what can be found in the texts, so that what is missing there is reported."""
    columns = attempts.collect_schema().names()
    if not {"completion", "answer"} & set(columns):
        return attempts
    scored = score_trajectories(attempts, style=style)
    # a score made of step scores would repeat each finding about them
    return scored if "score" in columns else scored.drop("score", strict=False)
