"""The command line: ``ttsframe COMMAND``; every command reads any format that `READERS` has."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import click

from ttsframe.cli._errors import Commands
from ttsframe.cli._options import examples
from ttsframe.cli.compare import compare
from ttsframe.cli.convert import convert
from ttsframe.cli.curve import curve
from ttsframe.cli.report import report
from ttsframe.cli.score import score
from ttsframe.cli.simulate import simulate
from ttsframe.cli.steps import steps
from ttsframe.cli.validate import validate
from ttsframe.cli.vote import vote

__all__ = ["cli", "main"]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "ttsframe report runs/bon.jsonl -o report.html",
        "ttsframe report 'runs/*.jsonl' --by source_file",
        "ttsframe validate runs/bon.jsonl",
    ),
)
@click.version_option(version("ttsframe"), "-V", "--version", prog_name="ttsframe")
def cli() -> None:
    """Analyze test-time-compute scaling runs: many attempts per problem, scored step by step.

    SOURCE is a file, a folder or a quoted glob: JSONL or Parquet of search-and-learn, JSONL of
    Qwen2.5-Math, answers of REBASE or ETS, runs of compute-optimal-tts, or ttsframe's own table of
    one row per attempt (Parquet, JSONL, Arrow IPC). The format is recognized by content.

    Exit status: 0 success, 1 findings of validate, 2 bad input or options, 130 interrupted.
    """


for _command in (report, validate, convert, score, vote, curve, compare, steps, simulate):
    cli.add_command(_command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status; None takes the arguments of the process."""
    cli.main(args, prog_name="ttsframe")
