"""``ttsframe score``: answers, keys, grades and scores."""

from __future__ import annotations

from pathlib import Path

import click

from ttsframe._typing import AnswerStyle, Grader, Reduction
from ttsframe.answers import AnswerPolicy
from ttsframe.batch import Score
from ttsframe.batch.stages import TEXTS
from ttsframe.cli._console import Console
from ttsframe.cli._jobs import (
    OUTPUT_HELP,
    JobCommand,
    JobOptions,
    check_target,
    is_job,
    run_job,
    runs_job,
)
from ttsframe.cli._names import completes
from ttsframe.cli._options import (
    FUNCTION_HELP,
    Run,
    examples,
    grade_option,
    name_of,
    names_of,
    prints,
    question_option,
    reads_run,
    style_option,
)
from ttsframe.cli._output import guard_option, save
from ttsframe.cli._policy import policy_option
from ttsframe.scoring import ADDED_COLUMNS, score_trajectories
from ttsframe.steps import STEP_REDUCTIONS


@click.command(
    cls=JobCommand,
    epilog=examples(
        "ttsframe score runs/bon.jsonl --gold math500.jsonl -o scored.parquet",
        "ttsframe score 'runs/*.jsonl' --reduction min -o scored/ --log-json",
    ),
)
@reads_run
@click.option("-o", "--output", required=True, metavar="FILE|FOLDER/", help=OUTPUT_HELP)
@click.option(
    "--reduction",
    callback=name_of(STEP_REDUCTIONS, takes_functions=True),
    shell_complete=completes(STEP_REDUCTIONS),
    default="last",
    show_default=True,
    metavar="NAME",
    help=f"How to reduce the step scores of an attempt to its score: {', '.join(STEP_REDUCTIONS)}, "
    f"{FUNCTION_HELP}.",
)
@style_option
@policy_option
@question_option
@grade_option
@click.option(
    "--overwrite",
    callback=names_of(ADDED_COLUMNS),
    shell_complete=completes(ADDED_COLUMNS),
    metavar="NAME,...",
    help=f"Columns to compute even if the run has them: {', '.join(ADDED_COLUMNS)}.",
)
@click.option(
    "--texts/--no-texts",
    default=False,
    show_default=True,
    help=f"Keep {', '.join(TEXTS)}, which take most of the space.",
)
@runs_job
@guard_option
@prints
def score(
    *,
    run: Run,
    output: str,
    reduction: Reduction,
    style: AnswerStyle,
    cut_at_next_question: bool,
    policy: AnswerPolicy | None,
    overwrite: tuple[str, ...] | None,
    texts: bool,
    grade: Grader | None,
    job: JobOptions,
    console: Console,
) -> None:
    """Add answers, their keys, grades and scores to attempts.

    What the run recorded is kept, unless --overwrite names it.
    """
    check_target(output, run.sources, job)
    if is_job(output, run.sources):
        stage = Score(
            reduction=reduction,
            style=style,
            policy=policy,
            overwrite=overwrite or (),
            texts=texts,
            cut_at_next_question=cut_at_next_question,
            grade=grade,
        )
        run_job(run, job, [stage], output, console)
        return
    with console.status(f"Reading {run.label}"):
        attempts = run.scan()
    scored = score_trajectories(
        attempts,
        reduction=reduction,
        style=style,
        policy=policy,
        overwrite=overwrite or (),
        cut_at_next_question=cut_at_next_question,
        grade=grade,
    )
    if not texts:
        scored = scored.drop(TEXTS, strict=False)
    with run.named_in_errors():
        console.result(save(scored, Path(output), console))
