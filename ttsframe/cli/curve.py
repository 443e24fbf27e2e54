"""``ttsframe curve``: accuracy by number of attempts, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import polars as pl

from ttsframe.batch import BatchResult, Curve, Select, Stage
from ttsframe.cli._console import Console
from ttsframe.cli._job_options import Job, JobCommand, runs_job
from ttsframe.cli._jobs import (
    OUTPUT_HELP,
    Work,
    check_target,
    is_job,
    tell,
    working,
)
from ttsframe.cli._options import (
    Choosing,
    Run,
    chooses,
    examples,
    level_option,
    reads_run,
    talks,
)
from ttsframe.cli._output import save
from ttsframe.cli._tables import curve_text
from ttsframe.defaults import Choice, join_curves, note_fewer_problems


@click.command(
    cls=JobCommand,
    short_help="Accuracy by number of attempts, as a table.",
    epilog=examples(
        "ttsframe curve runs/bon.jsonl",
        "ttsframe curve runs/bon.jsonl --budgets 1,4,16 --reductions last,min -o curve.csv",
        "ttsframe curve scored/ --by model -o curve.parquet --log-json",
    ),
)
@reads_run
@chooses
@level_option
@click.option("-o", "--output", metavar="FILE|FOLDER/", help=OUTPUT_HELP)
@runs_job
@talks
def curve(
    *,
    run: Run,
    choosing: Choosing,
    confidence_level: float,
    output: str | None,
    job: Job,
    console: Console,
) -> None:
    """Show how accuracy grows with the number of attempts."""
    check_target(output, run.sources)
    target = Path(output) if output is not None and is_job(output) else None
    written: dict[str, object] = {}
    with working(run, job, output, console) as work:
        choice, stages = work.choose(
            choosing, budgets=choosing.budgets, confidence_level=confidence_level
        )
        graded, ungraded, done = _average(work, choice, stages, target)
        tables = {"curve": graded, "agreement": ungraded}
        there = [table for table in tables.values() if table is not None]
        notes = [
            *choice.notes,
            *(note for table in there for note in note_fewer_problems(table, choosing.by)),
        ]
        for table in there:
            console.say(curve_text(table, confidence_level=confidence_level) + "\n")
        for note in notes:
            console.say(note)
        if output is not None:
            if done is not None:
                written = tell(done, output, console)
            else:
                written = save(pl.concat(there, how="diagonal"), Path(output), console)
    rows = {name: None if table is None else table.to_dicts() for name, table in tables.items()}
    console.result({**rows, "notes": notes, **written})


def _average(
    work: Work, choice: Choice, stages: Sequence[Stage], target: Path | None
) -> tuple[pl.DataFrame | None, pl.DataFrame | None, BatchResult | None]:
    """Make the curves of graded and of ungraded runs, and return what has written them, if it has."""
    options = choice.options
    budgets = {budget for run in choice.runs for budget in run.budgets or ()}
    select = Select(
        selectors=options.selectors,
        reductions=options.reductions,
        budgets=sorted(budgets) or None,
        weights=options.weights,
    )
    if len(choice.runs) == 1 and choice.runs[0].is_graded:
        average = Curve(confidence_level=options.confidence_level)
        sink = target or work.folder / "curve.parquet"
        done = work.transform([*stages, select, average], sink, by=choice.keys)
        made = pl.scan_parquet(done.sink).collect()
        return join_curves([made], options.by), None, None if target is None else done
    # Runs that are not alike have budgets of their own, or agreement in place of accuracy.
    sink = work.folder / "problems.parquet"
    if target is not None:
        work.check_alone(target)
        sink = target.with_name(f".{target.name}.problems.parquet")
    work.transform([*stages, select], sink, by=choice.keys, is_passing=True)
    problems = pl.scan_parquet(sink)
    parts = []
    for run in choice.runs:
        rows = run.rows_of(problems)
        parts.append(
            rows if run.budgets is None else rows.filter(pl.col("budget").is_in(run.budgets))
        )
    graded, ungraded = choice.curves(parts)
    sink.unlink()
    return graded, ungraded, None
