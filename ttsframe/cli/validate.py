"""``ttsframe validate``: problems in the data of a run."""

from __future__ import annotations

import click
import polars as pl

from ttsframe._typing import AnswerStyle
from ttsframe.answers import AnswerPolicy
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
from ttsframe.defaults import PickOptions
from ttsframe.validation import validate_trajectories

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
    range or look like logits, and repeated completions, with examples. Exit status: 1 with errors or
    warnings, 0 without (notes do not count), 2 if the run cannot be read.
    """
    with console.status(f"Reading {run.label}"):
        attempts = run.scan(by)
    options = PickOptions(style=style, cut_at_next_question=cut_at_next_question, policy=policy)
    with console.status("Checking"):
        report = validate_trajectories(_with_answers(attempts, options), by=by)
    console.result(report.to_dict())
    console.say(in_options(str(report)))
    if any(finding.severity != "note" for finding in report.findings):
        ctx.exit(FOUND)


def _with_answers(attempts: pl.LazyFrame, options: PickOptions) -> pl.LazyFrame:
    """Add what can be extracted from the texts, so that missing answers are reported."""
    columns = attempts.collect_schema().names()
    if not {"completion", "answer"} & set(columns):
        return attempts
    scored = options.score(attempts)
    # A score computed from step scores would repeat each finding about them.
    return scored if "score" in columns else scored.drop("score", strict=False)
