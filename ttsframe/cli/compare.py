"""``ttsframe compare``: paired differences on the same problems, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

import click
import polars as pl

from ttsframe._typing import ClusterTest, Correction, McNemar
from ttsframe._wording import LEFT_OUT, counted
from ttsframe.cli._choosing import chooses
from ttsframe.cli._console import Console, printable
from ttsframe.cli._documents import DOCUMENT_SUFFIXES, Cells
from ttsframe.cli._names import Name
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
from ttsframe.cli._runs import find_same_problems, refuse_same_problems
from ttsframe.cli._tables import shorten_files, show_table
from ttsframe.defaults import (
    PickOptions,
    Picks,
    check_run_names,
    number_by_text,
    plan_picks,
    with_own_ids,
)
from ttsframe.errors import ColumnsError, DataError
from ttsframe.statistics.comparison import compare as compare_pairs

_OF_PROBLEMS: Final = ("selector", "reduction", "budget")
"""Columns that picking answers creates; the others come from the run."""
_SUFFIXES: Final = (*TABLE_SUFFIXES, *DOCUMENT_SUFFIXES)


@click.command(
    epilog=examples(
        "ttsframe compare runs/bon.jsonl --budgets 4,16",
        "ttsframe compare runs/bon.jsonl runs/beam.jsonl --column source_file --baseline runs/bon.jsonl",
        "ttsframe compare runs/bon.jsonl --column budget --selectors weighted_vote -o compare.tex",
    ),
)
@reads_run
@click.option(
    "--column",
    default="selector",
    show_default=True,
    metavar="COLUMN",
    help="What to compare: selector, reduction, budget, or a column that tells runs apart, for "
    "example source_file or model.",
)
@click.option(
    "--baseline",
    metavar="VALUE",
    help="The value of the column to compare the others with. Default: majority_vote, or the "
    "smallest value.",
)
@chooses
@click.option(
    "--replicates",
    callback=read_columns,
    multiple=True,
    metavar="COLUMN",
    help="Column that numbers repetitions of a run, for example seed; averaged per problem. Repeatable.",
)
@cluster_option
@click.option(
    "--correction",
    type=Name(get_args(Correction)),
    default="holm",
    show_default=True,
    help="Correction of the p-values for the number of tests in the table.",
)
@click.option(
    "--mcnemar",
    type=Name(get_args(McNemar)),
    default="mid_p",
    show_default=True,
    help="P-value where all values are 0 or 1: mid_p, or exact, which finds fewer differences.",
)
@click.option(
    "--cluster-test",
    type=Name(get_args(ClusterTest)),
    default="t",
    show_default=True,
    help="With --cluster: t, or wild_bootstrap, for very unequal clusters that shift together.",
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
def compare(
    *,
    run: Run,
    choosing: PickOptions,
    column: str,
    baseline: str | None,
    correction: Correction,
    mcnemar: McNemar,
    cluster_test: ClusterTest,
    output: Path | None,
    console: Console,
) -> None:
    """Compare selectors, models or runs with a baseline, problem by problem.

    Paired differences on the same problems are more precise than two separate intervals. Default
    budget: the largest number of attempts that all runs have.
    """
    if output is not None:
        check_output(output, _SUFFIXES, run.sources)
    with console.status(f"Reading {run.label}"):
        attempts = run.scan((column, *choosing.by))
        check_column(column, attempts.collect_schema().names())
        column = compared_column(column, run, attempts, choosing, console)
    of_run = () if column in _OF_PROBLEMS else (column,)
    groups = tuple(name for name in choosing.by if name not in of_run)
    with console.status("Comparing"):
        options = replace(choosing, by=(*of_run, *groups))
        picks = plan_picks(attempts, options)
        problems = problems_to_compare(picks, choosing, column)
        baseline_value = _baseline(problems, column) if baseline is None else baseline
        table = compare_pairs(
            problems,
            column=column,
            baseline=baseline_value,
            by=groups,
            replicates=choosing.replicates,
            cluster=choosing.cluster,
            confidence_level=choosing.confidence_level,
            correction=correction,
            mcnemar=mcnemar,
            cluster_test=cluster_test,
        )
    _check(table, column, baseline_value)
    cells = _cells(table, column, groups, choosing.confidence_level, correction)
    written = show_table(table, cells, notes=picks.notes, output=output, console=console)
    console.result({
        "comparison": table.to_dicts(),
        "column": column,
        "baseline": baseline_value,
        "correction": correction,
        "notes": list(picks.notes),
        **written,
    })


def check_column(column: str, names: Sequence[str]) -> None:
    """Raise unless picked answers or the run have the column."""
    if column in _OF_PROBLEMS:
        return
    check_run_names(column, "--column")
    found = [*_OF_PROBLEMS, *names]
    if column not in {*found, "source_file"}:
        hint = "--column names what to compare."
        error = ColumnsError.missing([column], found, where="--column", hint=hint)
        raise error


def compared_column(
    column: str, run: Run, attempts: pl.LazyFrame, choosing: PickOptions, console: Console
) -> str:
    """Return the column to compare: the file, where nothing was said and files share problems."""
    by = tuple(choosing.by)
    source = click.get_current_context().get_parameter_source("column")
    if by or source is not click.core.ParameterSource.DEFAULT:
        told_apart = by if column in _OF_PROBLEMS else (*by, column)
        refuse_same_problems(run, attempts, (*told_apart, *choosing.replicates))
        return column
    with run.named_in_errors():
        same = find_same_problems(attempts, tuple(choosing.replicates))
    if same is None:
        return column
    console.note(
        f"{same}: the files are compared (--column source_file). --by source_file compares the "
        "selectors in each."
    )
    return "source_file"


def _check(table: pl.DataFrame, column: str, baseline: str | float | bool) -> None:
    """Raise unless there is a difference to show."""
    if table.is_empty():
        other = (
            "--column budget compares numbers of attempts, such as a vote with a single attempt; "
            if column == "selector"
            else ""
        )
        raise DataError(
            f"{column} has only the value {baseline!r}, so there is nothing to compare it with. Hint: "
            f"{other}--column names what to compare, for example selector, budget, source_file or model."
        )
    if not (table["n_pairs"] > 0).any():
        if (table["n_short"] > 0).all():
            raise DataError(
                f"no problem has so many attempts under two values of {column}. Hint: give smaller "
                "--budgets; without it, the largest that all have is taken."
            )
        if column in _OF_PROBLEMS:
            raise DataError(
                "no problem is graded on both sides of a pair. Hint: --gold names a file of reference "
                "answers; problems pair by 'problem_id'."
            )
        raise DataError(
            f"no problem is graded under two values of {column}. Hint: --column names what tells attempts "
            "at the same problem apart; --gold names a file of gold answers; problems pair by "
            "'problem_id'."
        )


def problems_to_compare(picks: Picks, choosing: PickOptions, column: str) -> pl.DataFrame:
    """Return the chosen answers; by default without the oracle, and at one budget."""
    # Each further budget is a further test, and no selector can beat the oracle.
    tables = picks.problems()
    ids = number_by_text(picks.attempts, picks.options.by)
    problems = with_own_ids(pl.concat(tables), ids)
    if choosing.selectors is None and picks.options.selectors != ("oracle",):
        problems = problems.filter(pl.col("selector") != "oracle")
    if choosing.budgets is None and column != "budget":
        shared = set.intersection(*[set(table["budget"]) for table in tables])
        if shared:
            problems = problems.filter(pl.col("budget") == max(shared))
        elif all(run.is_whole for run in picks.runs):
            # Searches of different widths, each with all its attempts.
            problems = problems.with_columns(budget=pl.lit(None, pl.UInt32))
        else:
            raise DataError(
                "the runs have no number of attempts in common. Hint: --budgets names the numbers of "
                "attempts to compare."
            )
    return problems


def _baseline(problems: pl.DataFrame, column: str) -> str | float | bool:
    """Return the default value to compare the others with."""
    if column == "selector" and (problems[column] == "majority_vote").any():
        return "majority_vote"
    smallest = problems[column].drop_nulls().sort().first()
    if not isinstance(smallest, str | float | int):
        raise DataError(
            f"{column} holds {problems.schema[column]} and cannot be compared. Hint: --column "
            "names a column of strings or numbers."
        )
    return smallest


def _cells(
    table: pl.DataFrame,
    column: str,
    groups: tuple[str, ...],
    confidence_level: float,
    correction: str,
) -> tuple[Cells, int]:
    """Write one row per difference, the columns that identify it first; return their number."""
    table = shorten_files(table, "baseline") if column == "source_file" else shorten_files(table)
    n_tests = counted([table["p_value"].count()], "test")
    corrected = "" if correction == "none" else f", corrected: for {n_tests} ({correction})"
    heading = [
        f"Difference of accuracies on the same problems, with {100 * confidence_level:g}% intervals",
        f"{column}: compared with {printable(str(table['baseline'][0]))}; p: {_tests(table)}{corrected}",
    ]
    if (table["interval"] == "bonett_price").any():
        heading.append(
            "Intervals: Bonett and Price's, which can disagree with p on whether 0 is plausible"
        )
    # A column without values, such as the budget of all attempts, is not shown.
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
            *[_label(row, name, column) for name in fixed],
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
    return Cells("\n".join(heading), names, cells, numbers), len(fixed)


def _label(row: dict[str, object], name: str, column: str) -> str:
    """Write a value that identifies a row; a selector with the reduction that it read."""
    reduction = row["reduction"] if name == "selector" and column != "reduction" else None
    value = "-" if row[name] is None else str(row[name])
    return value if reduction is None else f"{value} ({reduction})"


def _tests(table: pl.DataFrame) -> str:
    named = {
        "mcnemar_exact": "McNemar's exact test",
        "mcnemar_mid_p": "McNemar's mid-p test",
        "paired_t": "paired t-test",
        "clustered_t": "t-test over clusters",
        "clustered_wild": "wild bootstrap of clusters",
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
