"""``ttsframe vote``: the chosen answer of each problem, or the votes behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import click
import polars as pl

from ttsframe.batch import Select, Votes
from ttsframe.cli._choosing import chooses
from ttsframe.cli._console import Console
from ttsframe.cli._documents import is_document, save_document
from ttsframe.cli._jobs import (
    SHOWN_HELP,
    SHOWN_SUFFIXES,
    JobCommand,
    JobOptions,
    check_target,
    is_job,
    logged,
    run_job,
    runs_job,
)
from ttsframe.cli._names import Name
from ttsframe.cli._options import Run, examples, prints, reads_run
from ttsframe.cli._output import guard_option, save
from ttsframe.cli._picking import choose, picking_stages
from ttsframe.cli._runs import refuse_same_problems
from ttsframe.cli._tables import rows_cells, rows_text
from ttsframe.defaults import PickOptions

_N_ROWS: Final = 20
_HIDDEN: Final = ("subsets", "attempt", "answer_key", "value", "n_valid")


@click.command(
    cls=JobCommand,
    epilog=examples(
        "ttsframe vote runs/bon.jsonl -o problems.parquet",
        "ttsframe vote runs/bon.jsonl --budgets 4,16 --selectors weighted_vote --table votes",
        "ttsframe vote 'runs/*.jsonl' --by source_file -o problems/ --log-json",
    ),
)
@reads_run
@chooses
@click.option(
    "--table",
    type=Name(["problems", "votes"]),
    default="problems",
    show_default=True,
    help="The chosen answer of each problem, or every answer with its votes and weight.",
)
@click.option("-o", "--output", metavar="FILE|FOLDER/", help=SHOWN_HELP)
@runs_job
@guard_option
@prints
def vote(
    *,
    run: Run,
    choosing: PickOptions,
    table: Literal["problems", "votes"],
    output: str | None,
    job: JobOptions,
    console: Console,
) -> None:
    """Choose an answer for each problem, from all attempts or from the first --budgets attempts."""
    check_target(output, run.sources, job, SHOWN_SUFFIXES)
    with console.status(f"Reading {run.label}"):
        attempts = run.scan(choosing.by)
        refuse_same_problems(run, attempts, choosing.by)
        choosing = replace(choosing, budgets=choosing.budgets or "all")
        choice = choose(run, choosing, attempts)
    *score, counting = picking_stages(choosing, choice, attempts)
    if table == "votes" and isinstance(counting, Select):
        counting = Votes(
            budgets=counting.budgets, reductions=counting.reductions, weights=counting.weights
        )
    if output is not None and is_job(output, run.sources):
        run_job(run, job, [*score, counting], output, console, by=choice.keys)
    else:
        with logged(run, output, console) as done:
            scored = choosing.score(attempts)
            with console.status(f"Voting on {run.label}"), run.named_in_errors():
                rows = counting.make(scored, choice.keys).collect(engine="streaming")
            done["rows"] = rows.height
            if output is not None and is_document(Path(output)):
                title = "The chosen answers" if table == "problems" else "The votes for each answer"
                cells = rows_cells(_shown(rows), title)
                console.result(save_document([cells], Path(output), console))
            elif output is not None:
                console.result(save(rows, Path(output), console))
            else:
                console.say(_text(rows, choice.options.by))
                console.result({table: rows.to_dicts(), "notes": list(choice.notes)})
    for note in choice.notes:
        console.say(note)


def _shown(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out columns that hold no value, such as the budget of all attempts."""
    counts = rows.select(pl.all().count()).row(0, named=True)
    return rows.select(name for name, count in counts.items() if count and name not in _HIDDEN)


def _text(rows: pl.DataFrame, by: Sequence[str]) -> str:
    """Write the first rows."""
    shown = _shown(rows)
    keys = {*by, "problem_id", "budget", "selector", "reduction"} & set(shown.columns)
    first = shown.head(_N_ROWS)
    return rows_text(first, n_rows=rows.height, n_fixed=len(keys), hint="-o writes all.")
