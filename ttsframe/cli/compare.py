"""``ttsframe compare``: paired differences on the same problems, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

import click
import polars as pl

from ttsframe._typing import Correction
from ttsframe._wording import LEFT_OUT, counted
from ttsframe.cli._console import Console, shown
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
from ttsframe.cli._tables import layout
from ttsframe.defaults import PickOptions, Picks, plan_picks
from ttsframe.errors import DataError
from ttsframe.statistics.comparison import compare as compare_pairs

_OF_PROBLEMS: Final = ("selector", "reduction", "budget")
"""Columns that are not told apart in the run, but made by picking answers."""


@click.command(
    short_help="Paired differences on the same problems.",
    epilog=examples(
        "ttsframe compare runs/bon.jsonl --budgets 4,16",
        "ttsframe compare runs/a.jsonl runs/b.jsonl --column source_file --baseline a.jsonl",
    ),
)
@reads_run
@click.option(
    "--column",
    default="selector",
    show_default=True,
    metavar="COLUMN",
    help="What to compare: selector, reduction, budget, or a column that tells runs apart, such as "
    "source_file or model.",
)
@click.option(
    "--baseline",
    metavar="VALUE",
    help="Which value of it the others are compared with. Without it: majority_vote, or the "
    "smallest value.",
)
@chooses
@click.option(
    "--replicates",
    multiple=True,
    metavar="COLUMN",
    help="Column that numbers repetitions of a run, such as seed; averaged per problem. Repeatable.",
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="Column that says which problems belong together, such as the text they ask about.",
)
@click.option(
    "--correction",
    type=click.Choice(get_args(Correction)),
    default="holm",
    show_default=True,
    help="Correction of the p-values for the number of tests in the table.",
)
@level_option
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help=f"File to write: {', '.join(TABLE_SUFFIXES)}.",
)
@talks
def compare(
    *,
    run: Run,
    choosing: Choosing,
    column: str,
    baseline: str | None,
    replicates: tuple[str, ...],
    cluster: str | None,
    correction: Correction,
    confidence_level: float,
    output: Path | None,
    console: Console,
) -> None:
    """Compare selectors, models or runs with a baseline, problem by problem.

    Two accuracies on the same problems share their hard and easy ones; the difference of each pair
    does not, and shows what two overlapping intervals hide. Without --budgets: the largest number of
    attempts that all runs have.
    """
    if output is not None:
        check_output(output, TABLE_SUFFIXES, run.sources)
    of_run = () if column in _OF_PROBLEMS else (column,)
    groups = tuple(name for name in choosing.by if name not in of_run)
    with console.stage(f"Reading {run.label}"):
        attempts = run.scan()
    with console.stage("Comparing") as stage:
        options = PickOptions(
            by=(*of_run, *groups),
            # Carried along like a seed: part of what identifies a problem, and not a run.
            replicates=(*replicates, *([] if cluster is None else [cluster])),
            budgets=choosing.budgets,
            selectors=choosing.selectors,
            reductions=choosing.reductions,
            weights=choosing.weights,
            style=choosing.style,
        )
        picks = plan_picks(attempts, options)
        problems = _problems(picks, choosing, column)
        standing = _baseline(problems, column) if baseline is None else baseline
        table = compare_pairs(
            problems,
            column=column,
            baseline=standing,
            by=groups,
            replicates=replicates,
            cluster=cluster,
            confidence_level=confidence_level,
            correction=correction,
        )
        stage.note = counted([picks.attempts.height], "attempt")
    _check(table, column, standing)
    console.say(_text(table, column, groups, confidence_level, correction))
    for note in picks.notes:
        console.say(note)
    written = {} if output is None else save(table, output, console)
    console.result({
        "comparison": table.to_dicts(),
        "column": column,
        "baseline": standing,
        "correction": correction,
        "notes": list(picks.notes),
        **written,
    })


def _check(table: pl.DataFrame, column: str, baseline: str | float | bool) -> None:
    """Raise unless there is a difference to show."""
    if table.is_empty():
        raise DataError(
            f"{column} has the one value {baseline!r}, so there is nothing to compare it with."
        )
    if not (table["n_pairs"] > 0).any():
        raise DataError(
            "no problem is graded on both sides of a pair. Hint: --gold names a file of reference "
            "answers; problems pair by 'problem_id'."
        )


def _problems(picks: Picks, choosing: Choosing, column: str) -> pl.DataFrame:
    """Return the chosen answers that were asked for, else those that a comparison is about."""
    # One budget, since each further one is a further test, and no oracle, which none can beat.
    problems = pl.concat(picks.problems())
    if choosing.selectors is None:
        problems = problems.filter(pl.col("selector") != "oracle")
    if choosing.budgets is None and column != "budget":
        shared = set.intersection(*[set(run.budgets or ()) for run in picks.runs])
        problems = problems.filter(pl.col("budget") == max(shared))
    return problems


def _baseline(problems: pl.DataFrame, column: str) -> str | float | bool:
    """Return what the others are compared with when it is not said."""
    if column == "selector":
        return "majority_vote"
    smallest = problems[column].drop_nulls().sort().first()
    if not isinstance(smallest, str | float | int):
        raise DataError(
            f"{column} holds {problems.schema[column]} and no values to compare by. Hint: --column "
            "names one of strings or numbers."
        )
    return smallest


def _text(
    table: pl.DataFrame,
    column: str,
    groups: tuple[str, ...],
    confidence_level: float,
    correction: str,
) -> str:
    """Write a row per difference, which runs it is of first."""
    n_tests = table["p_value"].count()
    corrected = "" if correction == "none" else f", corrected: for {n_tests} tests ({correction})"
    heading = [
        f"Difference of accuracies on the same problems, with {100 * confidence_level:g}% intervals",
        f"{column}: compared with {shown(str(table['baseline'][0]))}; p: {_tests(table)}{corrected}",
    ]
    # A column without a value, such as the budget of all attempts, says nothing here.
    fixed = [
        name
        for name in dict.fromkeys([*groups, "budget", column, "selector"])
        if table[name].count()
    ]
    left = [name for name in (*LEFT_OUT, "unpaired") if (table[f"n_{name}"] > 0).any()]
    names = [*fixed, "accuracy", "baseline", "difference", "p"]
    names += [] if correction == "none" else ["corrected"]
    names += ["better/equal/worse", *left]
    cells = [
        [
            *[_which(row, name, column) for name in fixed],
            _percent(row["accuracy"]),
            _percent(row["baseline_accuracy"]),
            _difference(row),
            _p_value(row["p_value"]),
            *([] if correction == "none" else [_p_value(row["p_adjusted"])]),
            f"{row['n_wins']:,}/{row['n_ties']:,}/{row['n_losses']:,}",
            *[f"{row[f'n_{name}']:,}" for name in left],
        ]
        for row in table.iter_rows(named=True)
    ]
    numbers = [False] * len(fixed) + [True] * (len(names) - len(fixed))
    rows = layout(names, cells, numbers=numbers, n_fixed=len(fixed))
    return "\n".join(heading) + f"\n\n{rows}\n"


def _which(row: dict[str, object], name: str, column: str) -> str:
    """Write what a row is of; a selector with the scores that it read."""
    reduction = row["reduction"] if name == "selector" and column != "reduction" else None
    value = "-" if row[name] is None else str(row[name])
    return value if reduction is None else f"{value} ({reduction})"


def _tests(table: pl.DataFrame) -> str:
    named = {
        "mcnemar": "McNemar's exact test",
        "paired_t": "paired t-test",
        "clustered_t": "t-test over clusters",
    }
    return " or ".join(named[test] for test in table["test"].drop_nulls().unique().sort())


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def _difference(row: dict[str, float | None]) -> str:
    value, low, high = row["difference"], row["ci_low"], row["ci_high"]
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{100 * value:+.1f}"
    return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _p_value(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
