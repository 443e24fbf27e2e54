"""``ttsframe convert``: any format to one row per attempt."""

from __future__ import annotations

from pathlib import Path

import click

from ttsframe.cli._console import Console
from ttsframe.cli._options import OUTPUT, Run, examples, reads_run, talks
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, save


@click.command(
    short_help="Any format to a table of one row per attempt.",
    epilog=examples(
        "ttsframe convert runs/bon.jsonl -o attempts.parquet",
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
@talks
def convert(run: Run, output: Path, console: Console) -> None:
    """Convert a run of any format to a table of one row per attempt.

    All columns are kept. CSV cannot hold step scores.
    """
    check_output(output, TABLE_SUFFIXES, run.sources)
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    console.result(save(attempts, output, console))
