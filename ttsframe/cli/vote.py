"""``ttsframe vote``: the chosen answer of each problem, or the votes behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import click
import polars as pl

from ttsframe.batch import Select, Votes
from ttsframe.cli._console import Console
from ttsframe.cli._job_options import Job, JobCommand, runs_job
from ttsframe.cli._jobs import (
    OUTPUT_HELP,
    check_target,
    is_job,
    tell,
    working,
)
from ttsframe.cli._options import Choosing, Run, chooses, examples, reads_run, talks
from ttsframe.cli._output import save
from ttsframe.cli._tables import rows_text

_N_ROWS: Final = 20
_HIDDEN: Final = ("subsets", "attempt", "answer_key", "value", "n_valid")


@click.command(
    cls=JobCommand,
    short_help="The chosen answer of each problem.",
    epilog=examples(
        "ttsframe vote runs/bon.jsonl -o problems.parquet",
        "ttsframe vote runs/bon.jsonl --budgets 4,16 --selectors weighted_vote --table votes",
        "ttsframe vote 'runs/*.parquet' --by source_file -o problems/ --log-json",
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
@click.option("-o", "--output", metavar="FILE|FOLDER/", help=OUTPUT_HELP)
@runs_job
@talks
def vote(
    *,
    run: Run,
    choosing: Choosing,
    table: Literal["problems", "votes"],
    output: str | None,
    job: Job,
    console: Console,
) -> None:
    """Choose an answer for each problem, by all attempts or by the first --budgets."""
    check_target(output, run.sources)
    with working(run, job, output, console) as work:
        choice, stages = work.choose(choosing, budgets=choosing.budgets or "all")
        counting: Select | Votes = Votes(
            budgets=choice.runs[0].budgets,
            reductions=choice.options.reductions,
            weights=choice.options.weights,
        )
        if table == "problems":
            counting = Select(
                selectors=choice.options.selectors,
                reductions=counting.reductions,
                budgets=counting.budgets,
                weights=counting.weights,
            )
        stages.append(counting)
        if output is not None and is_job(output):
            done = work.transform(stages, Path(output), by=choice.keys)
            console.result(tell(done, output, console))
            return
        done = work.transform(stages, work.folder / "rows.parquet", by=choice.keys)
        rows = pl.scan_parquet(done.sink)
        if output is not None:
            console.result(save(rows, Path(output), console))
            return
        if console.is_json:
            console.result({table: rows.collect().to_dicts(), "notes": list(choice.notes)})
        elif not console.is_quiet:
            _show(rows, choosing.by, done.n_rows, console)
    for note in choice.notes:
        console.say(note)


def _show(rows: pl.LazyFrame, by: Sequence[str], n_rows: int, console: Console) -> None:
    """Print the first rows."""
    counts = rows.select(pl.all().count()).collect(engine="streaming").row(0, named=True)
    # a column without a value, such as the budget of all attempts, says nothing here
    shown = [name for name, count in counts.items() if count and name not in _HIDDEN]
    which = {*by, "problem_id", "budget", "selector", "reduction"} & set(shown)
    first = rows.select(shown).head(_N_ROWS).collect()
    text = rows_text(first, n_rows=n_rows, n_fixed=len(which), more="-o writes all.")
    console.say(text)
