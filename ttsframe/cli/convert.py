"""``ttsframe convert``: any format to one row per attempt."""

from __future__ import annotations

from pathlib import Path

import click

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
from ttsframe.cli._options import Run, examples, prints, reads_run
from ttsframe.cli._output import save


@click.command(
    cls=JobCommand,
    epilog=examples(
        "ttsframe convert runs/bon.jsonl -o attempts.parquet",
        "ttsframe convert 'runs/*.jsonl' -o attempts/ --log-json",
    ),
)
@reads_run
@click.option("-o", "--output", required=True, metavar="FILE|FOLDER/", help=OUTPUT_HELP)
@runs_job
@prints
def convert(run: Run, output: str, job: JobOptions, console: Console) -> None:
    """Convert a run of any format to a table of one row per attempt.

    All columns are kept. CSV cannot hold step scores.
    """
    check_target(output, run.sources, job)
    if is_job(output, run.sources):
        run_job(run, job, [], output, console)
        return
    with console.status(f"Reading {run.label}"):
        attempts = run.scan()
    with run.named_in_errors():
        console.result(save(attempts, Path(output), console))
