"""The parts of a page as plain values, which its templates write as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

import polars as pl

from ttsframe._typing import Weights
from ttsframe._wording import shorten
from ttsframe.report.origin import Origin
from ttsframe.report.wording import NONE, count_runs, name_line, split_runs

N_ROWS_MAX: Final = 200
_CELL_MAX: Final = 80
_N_ROWS_OPEN: Final = 16


class Context(NamedTuple):
    """What every section reads besides its own tables."""

    by: tuple[str, ...]
    references: Mapping[str, float]
    confidence_level: float
    weights: Weights = "score"

    def name_line(self, row: Mapping[str, Any]) -> str:
        """Name the line of a row, with the weights of its votes unless they are the scores."""
        return name_line(row["selector"], row["reduction"], self.weights)

    @property
    def weighing(self) -> str:
        """Say what a weighted vote adds up, where it is not the scores; begins with a space."""
        return {
            "score": "",
            "sigmoid": " A weighted vote adds up sigmoid weights, 1 / (1 + exp(-score)).",
            "softmax": " A weighted vote adds up softmax weights: exp(score) over the sum of all "
            "attempts at the problem.",
            "logit": " A weighted vote adds up the log-odds of the scores, log(p / (1 - p)), with p "
            "between 0.5 and 0.999.",
        }[self.weights]

    @property
    def level(self) -> str:
        """The confidence level, such as "95%"."""
        return f"{100 * self.confidence_level:g}%"


class Chart(Protocol):
    """A chart of any kind."""

    def to_dict(self, validate: bool) -> dict[str, object]:
        """Return its specification."""


@dataclass(frozen=True)
class Figure:
    """A chart with a caption. `draw` may raise `DataError` where a chart cannot hold the data."""

    kind: ClassVar = "figure"
    name: str
    caption: str
    draw: Callable[[], Chart]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    kind: ClassVar = "paragraph"
    text: str


class Cell(NamedTuple):
    """A cell of a table; its second line is set small."""

    text: str
    small: str


@dataclass(frozen=True)
class Table:
    """A table: columns that name a row come first."""

    kind: ClassVar = "table"
    caption: str
    heads: list[str]
    columns: list[str]
    rows: list[tuple[list[str], list[Cell]]]
    n_more: int


@dataclass(frozen=True)
class Terms:
    """Texts with their names."""

    kind: ClassVar = "terms"
    items: list[tuple[str, str]]


@dataclass(frozen=True)
class Finding:
    """A finding of the validation."""

    severity: str
    message: str
    examples: str
    hint: str


@dataclass(frozen=True)
class Findings:
    """A list of findings, with a heading if it is not empty."""

    kind: ClassVar = "findings"
    heading: str
    findings: list[Finding]


@dataclass(frozen=True)
class Folded:
    """Parts behind a line that opens them, without a script."""

    kind: ClassVar = "folded"
    summary: str
    parts: Sequence[Part]


Part: TypeAlias = Figure | Paragraph | Table | Terms | Findings | Folded


class PageSection(NamedTuple):
    """A section as it is shown in the page."""

    anchor: str
    question: str
    answers: list[str]
    parts: list[Part]


class Page(NamedTuple):
    """The content of a page."""

    title: str
    origin: Origin | None
    lead: list[str]
    overview: Table | None
    """A table of many runs, below the lead."""
    notices: list[str]
    sections: list[PageSection]
    omitted: list[tuple[str, str]]
    """Sections that are left out, and why."""


def make_table(
    caption: str, heads: pl.DataFrame, cells: pl.DataFrame | Sequence[Mapping[str, object]]
) -> Table:
    """Make a table of the columns that name a row, and of its cells; both may share column names."""
    if isinstance(cells, pl.DataFrame):
        columns, n_rows = cells.columns, cells.height
        rows = list(cells.head(N_ROWS_MAX).iter_rows())
    else:
        columns, n_rows = list(cells[0]) if cells else [], heads.height
        rows = [tuple(row.values()) for row in cells[:N_ROWS_MAX]]
    # A frame without columns has no height.
    names = list(heads.head(N_ROWS_MAX).iter_rows()) if heads.width else [()] * len(rows)
    return Table(
        caption,
        [_shorten(name) for name in heads.columns],
        [_shorten(name) for name in columns],
        [
            ([_shorten(name) for name in row_names], [_make_cell(value) for value in row])
            for row_names, row in zip(names, rows, strict=True)
        ],
        n_more=max(0, n_rows - N_ROWS_MAX),
    )


def make_budget_table(caption: str, heads: pl.DataFrame, points: pl.DataFrame) -> Table:
    """Make a table with a row per line, `cell` at each budget, other columns at the largest budget."""
    line = [f"line {i}" for i in range(heads.width)]
    named = heads.rename(dict(zip(heads.columns, line, strict=True))).hstack(points)
    cells = [
        pl.col("cell").filter(pl.col("budget") == budget).first().alias(f"{budget:,}")
        for budget in points["budget"].unique().sort().to_list()
    ]
    ends = pl.exclude(*line, "budget", "cell").sort_by("budget").last()
    wide = named.group_by(line, maintain_order=True).agg(*cells, ends)
    return make_table(
        caption,
        wide.select(line).rename(dict(zip(line, heads.columns, strict=True))),
        wide.drop(line),
    )


def _make_cell(value: object) -> Cell:
    """Make a cell of a number, or of a text whose second line is set small."""
    if isinstance(value, int):
        return Cell(f"{value:,}", "")
    first, _, second = (NONE if value is None else str(value)).partition("\n")
    return Cell(_shorten(first), _shorten(second))


def _shorten(value: object) -> str:
    """Write a value of the run, which may be anything, as a short text."""
    return NONE if value is None else shorten(str(value), _CELL_MAX)


def fold_if_long(summary: str, table: Table) -> Part:
    """Fold a table that fills more than a screen."""
    return Folded(summary, [table]) if len(table.rows) > _N_ROWS_OPEN else table


def note_more_runs(table: pl.DataFrame, by: Sequence[str], n_max: int) -> list[Part]:
    """Note how many of the runs a chart shows, where it does not show all."""
    return note_more(count_runs(table, by), n_max, "runs")


def note_more(n: int, n_max: int, noun: str) -> list[Part]:
    """Note how many of something a chart shows, where it does not show all."""
    if n <= n_max:
        return []
    return [Paragraph(f"The chart shows the first {n_max:,} of {n:,} {noun}.")]


def note_missing_lines(
    context: Context,
    table: pl.DataFrame,
    curve: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
) -> list[Part]:
    """Name the lines that a table of strategies on equal problems leaves out."""
    by, line = context.by, ["selector", "reduction"]
    listed = [
        rows.select(*by, *line)
        for rows in (curve, None if incomplete is None else select_incomplete(incomplete))
        if rows is not None
    ]
    if not listed:
        return []
    strategies = pl.concat(listed).filter(pl.col("selector") != "oracle")
    strategies = strategies.unique(maintain_order=True)
    if by:
        strategies = strategies.join(
            table, on=by, how="semi", nulls_equal=True, maintain_order="left"
        )
    missing = strategies.join(
        table, on=[*by, *line], how="anti", nulls_equal=True, maintain_order="left"
    )
    names = [
        f"{prefix}{context.name_line(row)}"
        for prefix, rows in split_runs(missing, by)
        for row in rows.iter_rows(named=True)
    ]
    if not names:
        return []
    return [
        Paragraph(
            "Left out, because more than one in ten problems has no result for it: "
            f"{', '.join(names)}."
        )
    ]


def select_incomplete(incomplete: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of the lines that are shown alone, without those beside them."""
    is_own = [pl.col(name).eq_missing(pl.col(f"of_{name}")) for name in ("selector", "reduction")]
    return incomplete.filter(is_own)
