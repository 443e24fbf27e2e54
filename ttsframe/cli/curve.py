"""``ttsframe curve``: accuracy by number of attempts, as a table."""

from __future__ import annotations

from pathlib import Path

import click
import polars as pl

from ttsframe._wording import counted
from ttsframe.cli._console import Console
from ttsframe.cli._options import (
    OUTPUT,
    Choosing,
    Run,
    chooses,
    examples,
    level_option,
    reads_run,
    talks,
)
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, save
from ttsframe.cli._tables import curve_text
from ttsframe.report.picks import plan_picks, unlike_lines


@click.command(
    short_help="Accuracy by number of attempts, as a table.",
    epilog=examples(
        "ttsframe curve runs/bon.jsonl",
        "ttsframe curve runs/bon.jsonl --budgets 1,4,16 --reductions last,min -o curve.csv",
    ),
)
@reads_run
@chooses
@level_option
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help=f"File to write: {', '.join(TABLE_SUFFIXES)}.",
)
@talks
def curve(
    run: Run, choosing: Choosing, confidence_level: float, output: Path | None, console: Console
) -> None:
    """Show how accuracy grows with the number of attempts."""
    if output is not None:
        check_output(output, TABLE_SUFFIXES, run.sources)
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    with console.stage("Voting") as stage:
        picks = plan_picks(
            attempts,
            by=choosing.by,
            budgets=choosing.budgets,
            selectors=choosing.selectors,
            reductions=choosing.reductions,
            weights=choosing.weights,
            style=choosing.style,
            confidence_level=confidence_level,
        )
        graded, ungraded = picks.curves(picks.problems())
        stage.note = counted([picks.attempts.height], "attempt")
    notes = [
        *picks.notes,
        *unlike_lines(graded, choosing.by),
        *unlike_lines(ungraded, choosing.by),
    ]
    tables = {"curve": graded, "agreement": ungraded}
    there = [table for table in tables.values() if table is not None]
    for table in there:
        console.say(curve_text(table, confidence_level=confidence_level) + "\n")
    for note in notes:
        console.say(note)
    written = {} if output is None else save(pl.concat(there, how="diagonal"), output, console)
    rows = {name: None if table is None else table.to_dicts() for name, table in tables.items()}
    console.result({**rows, "notes": notes, **written})
