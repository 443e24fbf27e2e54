"""``ttsframe convert``: any format to one row per attempt."""

from __future__ import annotations

from pathlib import Path

import click

from ttsframe.cli._console import Console
from ttsframe.cli._job_options import Job, JobCommand, runs_job
from ttsframe.cli._jobs import (
    OUTPUT_HELP,
    check_target,
    is_job,
    tell,
    working,
)
from ttsframe.cli._options import Run, examples, reads_run, talks
from ttsframe.cli._output import save


@click.command(
    cls=JobCommand,
    short_help="Any format to a table of one row per attempt.",
    epilog=examples(
        "ttsframe convert runs/bon.jsonl -o attempts.parquet",
        "ttsframe convert 'runs/*.jsonl' -o attempts/ --log-json",
    ),
)
@reads_run
@click.option("-o", "--output", required=True, metavar="FILE|FOLDER/", help=OUTPUT_HELP)
@runs_job
@talks
def convert(run: Run, output: str, job: Job, console: Console) -> None:
    """Convert a run of any format to a table of one row per attempt.

    All columns are kept. CSV cannot hold step scores.
    """
    check_target(output, run.sources)
    if is_job(output):
        with working(run, job, output, console) as work:
            console.result(tell(work.transform([], Path(output)), output, console))
        return
    job.check_unused()
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    console.result(save(attempts, Path(output), console))
