"""``ttsframe curve``: accuracy by number of attempts, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click
import polars as pl

from ttsframe._settings import setting
from ttsframe.batch import BatchResult, Curve, Stage
from ttsframe.cli._choosing import chooses
from ttsframe.cli._console import Console
from ttsframe.cli._documents import is_document, save_document
from ttsframe.cli._jobs import (
    SHOWN_HELP,
    SHOWN_SUFFIXES,
    JobCommand,
    JobOptions,
    Runner,
    check_target,
    is_job,
    log_fields,
    logged,
    running,
    runs_job,
    summarize,
)
from ttsframe.cli._names import completes
from ttsframe.cli._options import (
    Run,
    cluster_option,
    examples,
    level_option,
    names_of,
    prints,
    reads_run,
)
from ttsframe.cli._output import guard_option, save
from ttsframe.cli._picking import choose, curves_of, pick, picking_stages
from ttsframe.cli._runs import keep_files_apart, refuse_same_problems
from ttsframe.cli._tables import curve_cells, curve_text
from ttsframe.curves import estimator_curve
from ttsframe.curves.at_k import EstimatorName
from ttsframe.defaults import Choice, PickOptions, join_curves, note_fewer_problems
from ttsframe.errors import SourceError
from ttsframe.schema import holds_counts


@click.command(
    cls=JobCommand,
    epilog=examples(
        "ttsframe curve runs/bon.jsonl",
        "ttsframe curve runs/bon.jsonl --budgets 1,4,16 --reductions last,min -o curve.csv",
        "ttsframe curve runs/bon.jsonl runs/beam.jsonl -o curve.tex",
        "ttsframe curve runs/bon.jsonl --estimators pass@k,maj@k --budgets 1,4",
        "ttsframe curve scored/ --by source_file -o curve.parquet --log-json",
    ),
)
@reads_run
@chooses
@click.option(
    "--estimators",
    callback=names_of(get_args(EstimatorName)),
    shell_complete=completes(get_args(EstimatorName)),
    metavar="NAME,...",
    help=f"In place of selectors, over all subsets of k attempts: {', '.join(get_args(EstimatorName))}; "
    "--budgets are k.",
)
@click.option(
    "--tau",
    type=click.FloatRange(0.0, 1.0),
    default=0.5,
    show_default=True,
    help="Share of right attempts that g_pass@k asks for.",
)
@cluster_option
@level_option
@click.option("-o", "--output", metavar="FILE|FOLDER/", help=SHOWN_HELP)
@runs_job
@guard_option
@prints
def curve(
    *,
    run: Run,
    choosing: PickOptions,
    estimators: tuple[EstimatorName, ...] | None,
    tau: float,
    output: str | None,
    job: JobOptions,
    console: Console,
) -> None:
    """Show how accuracy grows with the number of attempts."""
    check_target(output, run.sources, job, SHOWN_SUFFIXES)
    is_written_by_job = is_job(output, run.sources)
    if estimators is not None:
        _check_estimators(choosing, output, is_folder=is_written_by_job)
        is_written_by_job = False
    written: dict[str, object] = {}
    result: BatchResult | None = None
    with logged(run, output, console) as done:
        with console.status(f"Reading {run.label}"):
            attempts = run.scan(choosing.by)
            if is_written_by_job:
                refuse_same_problems(run, attempts, choosing.by)
            else:
                by = keep_files_apart(run, attempts, tuple(choosing.by), console)
                choosing = replace(choosing, by=by)
            choice = choose(run, choosing, attempts)
        if estimators is not None:
            with console.status(f"Estimating on {run.label}"), run.named_in_errors():
                tables = _estimate(choosing, choice, attempts, estimators, tau)
        elif output is not None and is_written_by_job:
            stages = picking_stages(choosing, choice, attempts)
            with running(run, job, console) as runner:
                tables, result = _run_jobs(
                    runner, choice, stages, Path(output), is_replaced=job.replace
                )
        else:
            with console.status(f"Voting on {run.label}"), run.named_in_errors():
                tables = curves_of(choice, pick(choosing, choice, attempts))
        made = [table for table in tables if table is not None]
        notes = [
            *(choice.notes if estimators is None else ()),
            *(note for table in made for note in note_fewer_problems(table, choice.options.by)),
        ]
        for table in made:
            text = curve_text(
                table,
                confidence_level=choosing.confidence_level,
                is_own_grade=choosing.grade is not None,
            )
            console.say(f"{text}\n")
        for note in notes:
            console.say(note)
        if result is not None and output is not None:
            written = summarize(result, output, console)
            done.update(log_fields(result))
        elif output is not None and is_document(Path(output)):
            level = choosing.confidence_level
            cells = [curve_cells(table, confidence_level=level) for table in made]
            written = save_document(cells, Path(output), console)
        elif output is not None:
            written = save(pl.concat(made, how="diagonal"), Path(output), console)
    rows = {
        name: None if table is None else table.to_dicts()
        for name, table in zip(("curve", "agreement"), tables, strict=True)
    }
    console.result({**rows, "notes": notes, **written})


def _check_estimators(choosing: PickOptions, output: str | None, *, is_folder: bool) -> None:
    """Refuse what only a choice of answers has."""
    if is_folder and Path(str(output)).suffix.lower() != ".parquet":
        raise click.UsageError(f"--estimators make one table: {output} must be a file.")
    if choosing.selectors is not None or choosing.reductions is not None:
        raise click.UsageError(
            "--estimators need no choice of an answer: leave out --selectors and --reductions."
        )
    if choosing.budgets == "all":
        raise click.UsageError("--estimators draw k attempts of all: give numbers as --budgets.")


def _estimate(
    choosing: PickOptions,
    choice: Choice,
    attempts: pl.LazyFrame,
    estimators: Sequence[EstimatorName],
    tau: float,
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Estimate the curve of each group of runs."""
    scored = attempts if holds_counts(attempts.collect_schema()) else choosing.score(attempts)
    found = []
    for group in choice.runs:
        if not group.is_graded or group.budgets is None:
            raise SourceError(
                "estimators need graded attempts that were sampled independently; a run has no grades, or is a search."
            )
        curve = estimator_curve(
            group.rows_of(scored),
            estimators=estimators,
            k=group.budgets,
            tau=tau,
            by=choice.options.by,
            cluster=choice.options.cluster,
            confidence_level=choice.options.confidence_level,
        )
        found.append(curve.collect(engine="streaming"))
    return join_curves(found, choice.options.by), None


def _run_jobs(
    runner: Runner, choice: Choice, stages: Sequence[Stage], target: Path, *, is_replaced: bool
) -> tuple[tuple[pl.DataFrame | None, pl.DataFrame | None], BatchResult | None]:
    """Return the curves of graded and of ungraded runs, and the job if it has written the output."""
    options = choice.options
    if len(choice.runs) == 1 and choice.runs[0].is_graded:
        average = Curve(confidence_level=options.confidence_level, cluster=options.cluster)
        result = runner.transform([*stages, average], target, by=choice.keys)
        curve = pl.scan_parquet(result.sink).collect()
        return (join_curves([curve], options.by), None), result
    # Runs that differ have their own budgets, or agreement in place of accuracy.
    if target.suffix.lower() != ".parquet":
        raise SourceError(
            f"{target}: is a folder, must be a file. Hint: curves of runs that differ in their numbers "
            f"of attempts, or in being graded, are one file, for example {target}.parquet."
        )
    if target.exists() and not is_replaced:
        raise SourceError(
            f"{target}: already exists. Hint: {setting('overwrite', True)} replaces it once the new "
            "one is complete."
        )
    problems = target.with_name(f".{target.name}.problems.parquet")
    runner.transform(stages, problems, by=choice.keys, is_intermediate=True)
    tables = curves_of(choice, pl.scan_parquet(problems))
    problems.unlink()
    return tables, None
