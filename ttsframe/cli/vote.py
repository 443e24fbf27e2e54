"""``ttsframe vote``: the chosen answer of each problem, or the votes behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import click
import polars as pl

from ttsframe.cli._console import Console
from ttsframe.cli._options import OUTPUT, Choosing, Run, chooses, examples, reads_run, talks
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, save
from ttsframe.cli._tables import rows_text
from ttsframe.report.picks import plan_picks

_N_ROWS: Final = 20
_HIDDEN: Final = ("subsets", "attempt", "answer_key", "value", "n_valid")


@click.command(
    short_help="The chosen answer of each problem.",
    epilog=examples(
        "ttsframe vote runs/bon.jsonl -o problems.parquet",
        "ttsframe vote runs/bon.jsonl --budgets 4,16 --selectors weighted_vote --table votes",
    ),
)
@reads_run
@chooses
@click.option(
    "--table",
    type=click.Choice(["problems", "votes"]),
    default="problems",
    show_default=True,
    help="The chosen answer of each problem, or every answer with its votes and weight.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help=f"File to write: {', '.join(TABLE_SUFFIXES)}.",
)
@talks
def vote(
    run: Run,
    choosing: Choosing,
    table: Literal["problems", "votes"],
    output: Path | None,
    console: Console,
) -> None:
    """Choose an answer for each problem, by all attempts or by the first --budgets."""
    if output is not None:
        check_output(output, TABLE_SUFFIXES, run.sources)
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    with console.stage("Voting") as stage:
        picks = plan_picks(
            attempts,
            by=choosing.by,
            budgets=choosing.budgets or "all",
            selectors=choosing.selectors,
            reductions=choosing.reductions,
            weights=choosing.weights,
            style=choosing.style,
        )
        rows = pl.concat(picks.problems() if table == "problems" else picks.votes())
        stage.note = f"{rows.height:,} rows"
    if output is not None:
        console.result(save(rows, output, console))
        return
    console.result({table: rows.to_dicts(), "notes": list(picks.notes)})
    # a column without a value, such as the budget of all attempts, says nothing here
    shown = [name for name in rows.columns if name not in _HIDDEN and rows[name].count()]
    which = {*choosing.by, "problem_id", "budget", "selector", "reduction"} & set(shown)
    console.say(
        rows_text(rows.select(shown), n_rows=_N_ROWS, n_fixed=len(which), more="-o writes all.")
    )
    for note in picks.notes:
        console.say(note)
