"""What a section is made of: a question, its answer in words, charts and tables as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import polars as pl

from ttsframe._wording import shorten
from ttsframe.errors import DataError
from ttsframe.report.names import NONE, line_name, runs_of

if TYPE_CHECKING:
    from ttsframe.report.report import Report

N_ROWS_MAX: Final = 200
_CELL_MAX: Final = 80
_N_ROWS_OPEN: Final = 16


class Chart(Protocol):
    """A chart of any kind."""

    def to_dict(self, validate: bool) -> dict[str, object]:
        """Return its specification."""


class Figure(NamedTuple):
    """A chart, what it is called in the page, and what is written under it."""

    name: str
    chart: Chart
    caption: str


Part: TypeAlias = Figure | str
"""A figure, or HTML."""


class Section(NamedTuple):
    """How one section of a report is written.

    `answers` says what came out, a sentence per run; `body` draws and lists it.
    """

    is_there: Callable[[Report], bool]
    question: Callable[[Report], str]
    answers: Callable[[Report], list[str]]
    body: Callable[[Report], list[Part]]


def asks(question: str) -> Callable[[Report], str]:
    """Ask the same of every report."""
    return lambda _: question


def drawn(
    name: str,
    caption: str,
    draw: Callable[..., Chart],
    *tables: pl.DataFrame,
    **options: object,
) -> Part:
    """Draw tables; a chart that cannot hold what there is says so in its place."""
    try:
        return Figure(name, draw(*tables, **options), caption)
    except DataError as error:
        reason, _, _ = str(error).partition(" Hint: ")
        return paragraph(f"Not drawn: {reason}")


def paragraph(text: str) -> str:
    """Write a text as a paragraph."""
    return f"<p>{escape(text)}</p>"


def folded(summary: str, parts: Iterable[str]) -> str:
    """Put tables behind a line that opens them, without a script."""
    return "\n".join(["<details>", f"<summary>{escape(summary)}</summary>", *parts, "</details>"])


def heads(names: Sequence[str]) -> list[pl.Expr]:
    """Select the columns that name a row of a table, under names that no other column has."""
    return [pl.col(name).alias(_head(i)) for i, name in enumerate(names)]


def head_values(row: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    """Return the same of one row."""
    return {_head(i): row[name] for i, name in enumerate(names)}


def _head(place: int) -> str:
    return f"head {place}"


def folded_if_long(summary: str, n_rows: int, listed: str) -> str:
    """Put a table that fills more than a screen behind a line that opens it."""
    return folded(summary, [listed]) if n_rows > _N_ROWS_OPEN else listed


def table(caption: str, names: Sequence[str], rows: pl.DataFrame | list[dict[str, object]]) -> str:
    """Write a small table: `heads` of ``names`` come first; a cell's second line is set small."""
    frame = pl.DataFrame(rows, infer_schema_length=None) if isinstance(rows, list) else rows
    n_heads = len(names)
    lines = [
        "<tr>"
        + "".join(f"<th scope='row'>{text(value)}</th>" for value in row[:n_heads])
        + "".join(f"<td>{_cell(value)}</td>" for value in row[n_heads:])
        + "</tr>"
        for row in frame.head(N_ROWS_MAX).iter_rows()
    ]
    more = frame.height - N_ROWS_MAX
    return "\n".join([
        # Reached with the keyboard, to be scrolled with it.
        "<div class='scroll' tabindex='0'><table>",
        f"<caption>{escape(caption)}</caption>",
        "<thead><tr>",
        *[f"<th scope='col' class='head'>{text(name)}</th>" for name in names],
        *[f"<th scope='col'>{text(name)}</th>" for name in frame.columns[n_heads:]],
        "</tr></thead>",
        "<tbody>",
        *lines,
        "</tbody>",
        "</table></div>",
        *([paragraph(f"{more:,} more rows are not shown.")] if more > 0 else []),
    ])


def by_budget(caption: str, names: Sequence[str], points: pl.DataFrame) -> str:
    """Write a row per line, with ``cell`` at each budget, and other columns at the largest one."""
    budgets = points["budget"].unique().sort().to_list()
    line = points.columns[: len(names)]
    at = [
        pl.col("cell").filter(pl.col("budget") == budget).first().alias(f"{budget:,}")
        for budget in budgets
    ]
    ends = pl.exclude(*line, "budget", "cell").sort_by("budget").last()
    wide = points.group_by(line, maintain_order=True).agg(*at, ends)
    return table(caption, names, wide)


def _cell(value: object) -> str:
    """Write a cell, its second line small."""
    if isinstance(value, int):
        return f"{value:,}"
    first, _, second = (NONE if value is None else str(value)).partition("\n")
    small = f"<small>{text(second)}</small>" if second else ""
    return f"{text(first)}{small}"


def text(value: object) -> str:
    """Write a value of the run, which may be anything, as text in the page."""
    return escape(NONE if value is None else shorten(str(value), _CELL_MAX))


def more_runs(table: pl.DataFrame, by: Sequence[str], n_max: int) -> list[Part]:
    """Say how many runs a chart does not show."""
    n_runs = table.select(by).n_unique() if by else 1
    if n_runs <= n_max:
        return []
    return [paragraph(f"Drawn are the first {n_max:,} of {n_runs:,} runs.")]


def left_lines(table: pl.DataFrame, report: Report) -> list[Part]:
    """Name the lines of the curve that a table does without: strategies compete on equal problems."""
    if report.curve is None:
        return []
    line = [*report.by, "selector", "reduction"]
    strategies = (
        report.curve.filter(pl.col("selector") != "oracle").select(line).unique(maintain_order=True)
    )
    if report.by:
        strategies = strategies.join(table, on=report.by, how="semi", nulls_equal=True)
    absent = strategies.join(table, on=line, how="anti", nulls_equal=True, maintain_order="left")
    names = [
        f"{name}{line_name(row['selector'], row['reduction'])}"
        for name, rows in runs_of(absent, report.by)
        for row in rows.iter_rows(named=True)
    ]
    if not names:
        return []
    return [
        paragraph(
            f"Left out, since more than one in ten problems are without it: {', '.join(names)}."
        )
    ]


def more_lines(n_lines: int, n_max: int) -> list[Part]:
    """Say how many lines a chart does not show."""
    return [paragraph(f"Drawn are the first {n_max} of {n_lines} lines.")] * (n_lines > n_max)
