"""The command line: ``ttsframe COMMAND``; every command reads any format that `READERS` has."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from ttsframe import _program
from ttsframe.cli._console import is_unicode
from ttsframe.cli._errors import INTERRUPTED, Commands

__all__ = ["cli", "main"]

_SUMMARIES: Final[Mapping[str, str]] = {
    "report": "Curves in the terminal, and a page of charts.",
    "validate": "Check a run for problems in its data.",
    "convert": "Any format to a table of one row per attempt.",
    "score": "Add answers, grades and scores to attempts.",
    "vote": "The chosen answer of each problem.",
    "curve": "Accuracy by number of attempts, as a table.",
    "compare": "Paired differences on the same problems.",
    "rank": "Models, runs or selectors in order, with the ranks they can have.",
    "steps": "Labeled steps: counts, agreement, conversion.",
    "search": "Search with a verifier: simulated, on stored steps, or on servers.",
    "simulate": "Simulate a run with known true answers.",
}
"""The commands, each in the module of its name, as the list of commands shows them."""
_OBJECTS_PER_COLLECTION: Final = 50_000


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    commands=[click.Command(name, short_help=text) for name, text in _SUMMARIES.items()],
    epilog=(
        "\b\nExamples:\n"
        "  ttsframe report runs/bon.jsonl -o report.html\n"
        "  ttsframe report 'runs/*.jsonl'\n"
        "  ttsframe validate runs/bon.jsonl\n\n"
        "\b\nCompletion of commands, options, selectors, reductions and formats:\n"
        '  bash: eval "$(_TTSFRAME_COMPLETE=bash_source ttsframe)"\n'
        '  zsh:  eval "$(_TTSFRAME_COMPLETE=zsh_source ttsframe)"\n'
        "  fish: _TTSFRAME_COMPLETE=fish_source ttsframe | source"
    ),
)
@click.version_option(None, "-V", "--version", package_name="ttsframe", prog_name="ttsframe")
def cli() -> None:
    """Analyze test-time-compute scaling runs: many attempts per problem, scored step by step.

    SOURCE is a file, a folder, a quoted glob, a URL, or - for standard input. It holds the log of a
    tool, such as inspect_ai, lm-evaluation-harness, verl or search-and-learn (--format of each command
    lists all), or a table of one row per attempt (Parquet, JSON lines, Arrow, CSV). The format is
    recognized by content.

    Exit status: 0 success, 1 findings of validate, 2 bad input or options, 70 a fault of
    ttsframe, 130 interrupted.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status; None takes the arguments of the process."""
    # Loading makes many objects and no garbage: looking for it at every 700th took a tenth of a report.
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    _open_streams()
    _program.end()
    try:
        cli.main(args, prog_name="ttsframe")
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            # Python would wait for threads that are still at work.
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            os._exit(INTERRUPTED)
        raise
    finally:
        gc.set_threshold(*usual)


def _open_streams() -> None:
    """Make the three streams safe to use: closed ones lead nowhere, and no character is refused."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened takes the number, and what is printed goes there.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not is_unicode(stream):
            stream.reconfigure(errors="backslashreplace")
