"""``ttsframe score``: answers, keys, grades and scores."""

from __future__ import annotations

from pathlib import Path

import click

from ttsframe._typing import AnswerStyle, StepReduction
from ttsframe.cli._console import Console
from ttsframe.cli._options import OUTPUT, Run, examples, names_of, reads_run, style_option, talks
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, save
from ttsframe.scoring import ADDED_COLUMNS, score_trajectories
from ttsframe.steps import STEP_REDUCTIONS

_TEXTS = ("problem", "completion", "solution")


@click.command(
    short_help="Add answers, grades and scores to attempts.",
    epilog=examples(
        "ttsframe score runs/bon.jsonl --gold math500.jsonl -o scored.parquet",
    ),
)
@reads_run
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    required=True,
    metavar="FILE",
    help=f"File to write: {', '.join(TABLE_SUFFIXES)}.",
)
@click.option(
    "--reduction",
    type=click.Choice(list(STEP_REDUCTIONS)),
    default="last",
    show_default=True,
    help="How the step scores of an attempt become its score.",
)
@style_option
@click.option(
    "--overwrite",
    callback=names_of(ADDED_COLUMNS),
    metavar="NAME,...",
    help=f"Columns to make anew although the run has them, among {', '.join(ADDED_COLUMNS)}.",
)
@click.option(
    "--texts/--no-texts",
    default=False,
    show_default=True,
    help=f"Keep {', '.join(_TEXTS)}, which are most of a run's size.",
)
@talks
def score(
    *,
    run: Run,
    output: Path,
    reduction: StepReduction,
    style: AnswerStyle,
    overwrite: tuple[str, ...] | None,
    texts: bool,
    console: Console,
) -> None:
    """Add answers, their keys, grades and scores to attempts.

    What the run recorded is kept, unless --overwrite names it.
    """
    check_output(output, TABLE_SUFFIXES, run.sources)
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    scored = score_trajectories(
        attempts, reduction=reduction, style=style, overwrite=overwrite or ()
    )
    if not texts:
        scored = scored.drop(_TEXTS, strict=False)
    console.result(save(scored, output, console))
