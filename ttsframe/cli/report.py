"""``ttsframe report``: curves as a table here, and as a page of charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

import click
import polars as pl

from ttsframe._wording import shorten_paths
from ttsframe.cli._choosing import chooses
from ttsframe.cli._console import Console
from ttsframe.cli._errors import in_options, typed_command
from ttsframe.cli._names import completes
from ttsframe.cli._options import (
    OUTPUT,
    Run,
    cluster_option,
    examples,
    level_option,
    names_of,
    prints,
    reads_run,
    references_option,
)
from ttsframe.cli._output import check_output
from ttsframe.cli._runs import keep_files_apart
from ttsframe.cli._tables import curve_text
from ttsframe.cli._trees import beside, tell_searches_apart
from ttsframe.defaults import PickOptions
from ttsframe.report import SECTIONS, SectionName
from ttsframe.report.origin import page_date, refuse_pdf

if TYPE_CHECKING:
    from ttsframe.report import Report

_SUFFIXES: Final = (".html", ".htm")
_WIDTH: Final = 100
_N_SAID_MAX: Final = 4
_SAID: Final[tuple[SectionName, ...]] = ("difficulty", "verifier")
"""Sections whose answers are printed below the curve."""
_SAID_OF_RUNS: Final[tuple[SectionName, ...]] = ("comparison",)


@click.command(
    epilog=examples(
        "ttsframe report runs/bon.jsonl -o report.html",
        "ttsframe report runs/bon.jsonl runs/beam.jsonl --reference greedy=0.3 --title 'My model'",
    ),
)
@reads_run
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="Page to write; it opens without a network.",
)
@chooses
@cluster_option
@references_option
@click.option(
    "--sections",
    callback=names_of(SECTIONS),
    shell_complete=completes(SECTIONS),
    metavar="NAME,...",
    help=f"Sections of the page: {', '.join(SECTIONS)}. Default: all that the run allows.",
)
@click.option(
    "--title",
    metavar="TEXT",
    help="Heading of the page.",
)
@level_option
@prints
def report(
    *,
    run: Run,
    output: Path,
    choosing: PickOptions,
    references: Mapping[str, float],
    sections: tuple[SectionName, ...] | None,
    title: str | None,
    console: Console,
) -> None:
    """Show how accuracy grows with the number of attempts, and write a page of charts.

    A run without gold answers gets agreement instead of accuracy. Of a folder that ttsframe search
    wrote, and of a table with nodes.parquet beside it, the page shows the trees too.
    """
    from ttsframe.report import build_report

    budgets = _numbers(choosing)
    refuse_pdf(output)
    date = page_date()
    check_output(output, _SUFFIXES, run.sources)
    run, nodes = beside(run)
    with console.status(f"Reading {run.label}"):
        attempts = run.scan(choosing.by)
        choosing = tell_searches_apart(choosing, attempts, nodes, console)
        by = keep_files_apart(run, attempts, tuple(choosing.by), console)
    with console.status("Voting"):
        made = build_report(
            attempts,
            nodes=nodes,
            by=by,
            replicates=choosing.replicates,
            cluster=choosing.cluster,
            budgets=budgets,
            selectors=choosing.selectors,
            reductions=choosing.reductions,
            weights=choosing.weights,
            style=choosing.style,
            cut_at_next_question=choosing.cut_at_next_question,
            policy=choosing.policy,
            grade=choosing.grade,
            references=references,
            sections=sections,
            title=title,
            confidence_level=choosing.confidence_level,
        )
    with console.status(f"Drawing {output}"):
        made.save(output, sources=run.sources, command=typed_command(), date=date)
    console.result({"output": str(output), **made.to_dict()})
    size, *_ = str(made.validation).split("\n")
    console.say(f"{size}\n")
    files = made.loaded["source_file"] if "source_file" in made.by else pl.Series(dtype=pl.String)
    short = shorten_paths(files.drop_nulls().unique().sort().to_list())
    for table in (made.curve, made.agreement):
        if table is not None:
            text = curve_text(
                table.with_columns(pl.col("source_file").replace(short)) if short else table,
                confidence_level=choosing.confidence_level,
                is_own_grade=choosing.grade is not None,
            )
            console.say(f"{text}\n")
    said = "\n".join(_sentences(made))
    if said:
        console.say(said + "\n")
    for note in made.notes:
        console.say(in_options(note))
    for finding in made.validation.findings:
        # `validate` and the page have the hints of notes.
        hint = "" if finding.severity == "note" else f" Hint: {in_options(finding.hint)}"
        console.say(f"{finding.severity.capitalize()}: {finding.message}.{hint}")
    console.say(f"Wrote {output}")


def _sentences(made: Report) -> Iterator[str]:
    """Yield the answers of other sections: of a single run, or what sets several apart."""
    answers = made.answers()
    for name in _SAID_OF_RUNS if made.by else _SAID:
        said = answers.get(name, [])
        for answer in said[:_N_SAID_MAX]:
            yield fill(answer, _WIDTH)
        if len(said) > _N_SAID_MAX:
            yield f"{len(said) - _N_SAID_MAX} more differences are on the page."


def _numbers(choosing: PickOptions) -> int | Sequence[int] | None:
    """Return the budgets, which must be numbers for a chart."""
    if choosing.budgets == "all":
        raise click.BadParameter(
            "'all' has no place on the axis of a chart; expected numbers, for example 1,2,4,8. Hint: "
            "ttsframe curve prints all attempts as one budget.",
            param_hint="'--budgets'",
        )
    return choosing.budgets
