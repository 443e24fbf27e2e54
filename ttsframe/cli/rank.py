"""``ttsframe rank``: models, runs or selectors in order, with the ranks that they can have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import polars as pl

from ttsframe.cli._choosing import chooses
from ttsframe.cli._console import Console
from ttsframe.cli._documents import DOCUMENT_SUFFIXES, Cells
from ttsframe.cli._options import (
    OUTPUT,
    Run,
    cluster_option,
    examples,
    level_option,
    prints,
    read_columns,
    reads_run,
)
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, guard_option
from ttsframe.cli._tables import shorten_files, show_table
from ttsframe.cli.compare import check_column, compared_column, problems_to_compare
from ttsframe.defaults import PickOptions, plan_picks
from ttsframe.errors import DataError
from ttsframe.statistics.ranking import rank as rank_problems

_SUFFIXES: Final = (*TABLE_SUFFIXES, *DOCUMENT_SUFFIXES)
_OF_PROBLEMS: Final = ("selector", "reduction", "budget")


@click.command(
    epilog=examples(
        "ttsframe rank runs/a.jsonl runs/b.jsonl runs/c.jsonl",
        "ttsframe rank runs.parquet --column model --selectors majority_vote",
    ),
)
@reads_run
@click.option(
    "--column",
    default="selector",
    show_default=True,
    metavar="COLUMN",
    help="What to rank: selector, reduction, budget, or a column that tells runs apart, for example "
    "source_file or model.",
)
@chooses
@cluster_option
@click.option(
    "--replicates",
    callback=read_columns,
    multiple=True,
    metavar="COLUMN",
    help="Column that numbers repetitions of a run, for example seed; averaged per problem. Repeatable.",
)
@level_option
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help=f"File to write: {', '.join(_SUFFIXES)}.",
)
@guard_option
@prints
def rank(
    *, run: Run, choosing: PickOptions, column: str, output: Path | None, console: Console
) -> None:
    """Rank models, runs or selectors on the same problems, with the ranks that they can have.

    All pairs are compared problem by problem. Default budget: the largest number of attempts that all
    runs have.
    """
    if output is not None:
        check_output(output, _SUFFIXES, run.sources)
    with console.status(f"Reading {run.label}"):
        attempts = run.scan((column, *choosing.by))
        check_column(column, attempts.collect_schema().names())
        column = compared_column(column, run, attempts, choosing, console)
    of_run = () if column in _OF_PROBLEMS else (column,)
    groups = tuple(name for name in choosing.by if name not in of_run)
    with console.status("Ranking"):
        picks = plan_picks(attempts, replace(choosing, by=(*of_run, *groups)))
        table = rank_problems(
            problems_to_compare(picks, choosing, column),
            column=column,
            by=groups,
            replicates=choosing.replicates,
            cluster=choosing.cluster,
            confidence_level=choosing.confidence_level,
        )
    _check(table, column)
    cells = _cells(table, column, choosing.confidence_level)
    written = show_table(table, cells, notes=picks.notes, output=output, console=console)
    console.result({
        "ranking": table.to_dicts(),
        "column": column,
        "notes": list(picks.notes),
        **written,
    })


def _check(table: pl.DataFrame, column: str) -> None:
    """Raise unless there is something to rank."""
    if not (table["n_problems"] > 0).any():
        raise DataError(
            f"no problem is graded under every value of {column}, so nothing can be ranked. Hint: "
            "--gold names a file of gold answers; problems pair by 'problem_id'."
        )


def _cells(table: pl.DataFrame, column: str, confidence_level: float) -> tuple[Cells, int]:
    """Write one row per ranked value, the columns that identify it first; return their number."""
    table = shorten_files(table)
    before = table.columns[: table.columns.index("rank")]
    is_constant = {name: table[name].n_unique() == 1 for name in before}
    fixed = [name for name in before if name == column or not is_constant[name]]
    same = [
        f"{name} {table[name][0]}"
        for name in before
        if name not in {*fixed, "subsets", "budget_unit"} and table[name][0] is not None
    ]
    title = (
        f"Ranks by accuracy on the same problems; with {100 * confidence_level:g}% confidence, all true "
        "ranks are in their ranges"
    )
    if same:
        title += f"\n{', '.join(same)}"
    names = [*fixed, "rank", "can be", "accuracy", "sets", "best in resamples", "problems"]
    cells = [
        [
            *["-" if row[name] is None else str(row[name]) for name in fixed],
            f"{row['rank']}",
            f"{row['rank_low']}-{row['rank_high']}",
            f"{100 * row['accuracy']:.1f}%",
            ",".join(map(str, row["sets"])),
            f"{100 * row['share_of_resamples_best']:.1f}%",
            f"{row['n_problems']:,}",
        ]
        for row in table.drop_nulls("rank").iter_rows(named=True)
    ]
    numbers = [False] * len(fixed) + [True] * (len(names) - len(fixed))
    return Cells(title, names, cells, numbers), len(fixed)
