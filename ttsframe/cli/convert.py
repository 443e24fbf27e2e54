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
from ttsframe.cli._names import Name
from ttsframe.cli._options import Run, examples, prints, reads_run
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, guard_option, save
from ttsframe.readers.writing import WRITERS, WritableFormat, write_trajectories
from ttsframe.schema import holds_counts


@click.command(
    cls=JobCommand,
    epilog=examples(
        "ttsframe convert runs/bon.jsonl -o attempts.parquet",
        "ttsframe convert 'runs/*.jsonl' -o attempts/ --log-json",
        "ttsframe convert runs/bon.jsonl -o completions.jsonl --to search_and_learn",
    ),
)
@reads_run
@click.option("-o", "--output", required=True, metavar="FILE|FOLDER/", help=OUTPUT_HELP)
@click.option(
    "--to",
    "written_format",
    type=Name(WRITERS),
    metavar="FORMAT",
    help=f"Write the file in the format of a tool: {', '.join(WRITERS)}. What it cannot hold is named.",
)
@runs_job
@guard_option
@prints
def convert(
    run: Run,
    output: str,
    written_format: WritableFormat | None,
    job: JobOptions,
    console: Console,
) -> None:
    """Convert a run of any format to a table of one row per attempt, or to the format of another tool.

    All columns are kept, unless --to names a format that cannot hold them. CSV cannot hold step scores.
    """
    if written_format is not None:
        _write(run, Path(output), written_format, job, console)
        return
    check_target(output, run.sources, job)
    with console.status(f"Reading {run.label}"):
        attempts = run.scan()
    target = Path(output)
    of_counts = holds_counts(attempts.collect_schema()) and target.suffix.lower() in TABLE_SUFFIXES
    if is_job(output, run.sources) and not of_counts:
        run_job(run, job, [], output, console)
        return
    with run.named_in_errors():
        console.result(save(attempts, target, console))


def _write(
    run: Run, target: Path, written_format: WritableFormat, job: JobOptions, console: Console
) -> None:
    """Write a run in the format of a tool."""
    job.check_unused()
    check_output(target, (WRITERS[written_format].suffix,), run.sources)
    with console.status(f"Reading {run.label}"):
        attempts = run.scan()
    with console.status(f"Writing {target}"), run.named_in_errors():
        write_trajectories(attempts, target, format=written_format)
    console.say(f"Wrote {target}: {WRITERS[written_format].summary}")
    console.result({"output": str(target), "format": written_format})
