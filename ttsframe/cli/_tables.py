"""Tables for people, as wide as the terminal and no wider."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from ttsframe._wording import CURVE_COLUMNS, LEFT_OUT, quantity_of
from ttsframe.cli._console import shown

_CELL_MAX: Final = 40
_GAP: Final = "  "
_REASONS: Final = {
    "short": "fewer attempts than the largest budget",
    "unscored": "no attempt within the budget has a score",
    "undefined": "a weight is negative or not finite, as with logits; --weights sigmoid mends that",
    "ungraded": "no reference answer; --gold reads them from a second file",
}


def layout(
    names: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[bool], n_fixed: int
) -> str:
    """Lay a table out in columns; what is too wide for the terminal goes below, not away.

    Parameters
    ----------
    names
        Column names.
    rows
        Cells.
    numbers
        For each column, whether it is set flush right.
    n_fixed
        How many columns, from the first, are repeated where the table is continued below.

    Returns
    -------
    str
        Lines of text.
    """
    table = [list(map(_cell, names)), *[list(map(_cell, row)) for row in rows]]
    widths = [max(len(row[i]) for row in table) for i in range(len(names))]
    room = shutil.get_terminal_size((100, 24)).columns
    blocks = []
    for columns in _blocks(widths, n_fixed, room):
        lines = [
            _GAP.join(
                row[i].rjust(widths[i]) if numbers[i] else row[i].ljust(widths[i]) for i in columns
            ).rstrip()
            for row in table
        ]
        rule = _GAP.join("-" * widths[i] for i in columns)
        blocks.append("\n".join([lines[0], rule, *lines[1:]]))
    return "\n\n".join(blocks)


def _cell(text: str) -> str:
    text = shown(text[: _CELL_MAX * 4])
    return text if len(text) <= _CELL_MAX else text[: _CELL_MAX - 3] + "..."


def _blocks(widths: Sequence[int], n_fixed: int, room: int) -> Iterator[list[int]]:
    fixed = list(range(n_fixed))
    taken = sum(widths[i] + len(_GAP) for i in fixed)
    columns: list[int] = []
    used = taken
    for i in range(n_fixed, len(widths)):
        if columns and used + widths[i] > room:
            yield fixed + columns
            columns, used = [], taken
        columns.append(i)
        used += widths[i] + len(_GAP)
    yield fixed + columns


def curve_text(curve: pl.DataFrame, *, confidence_level: float) -> str:
    """Write a curve: a row per budget, a column per way of choosing, runs one below the other.

    Parameters
    ----------
    curve
        `curve`, or one with `agreement` in place of `accuracy`.
    confidence_level
        Coverage of its intervals.

    Returns
    -------
    str
        Lines of text.
    """
    quantity = quantity_of(curve.columns)
    groups = [name for name in curve.columns if name not in CURVE_COLUMNS and name != "subsets"]
    level = f"{100 * confidence_level:g}%"
    parts = [f"{quantity.capitalize()}, with {level} intervals over problems"]
    if quantity == "agreement":
        parts[0] += "\nThe share of attempts that gave the chosen answer; nothing is graded."
    runs = curve.partition_by(groups, as_dict=True, maintain_order=True) if groups else {(): curve}
    for run, rows in runs.items():
        heading = [f"{name}: {value}" for name, value in zip(groups, run, strict=True)]
        parts.append("\n".join([*map(shown, heading), _run_text(rows, quantity)]))
    left = _statuses(curve)
    if left:
        parts.append(
            "\n".join([
                "Problems left out:",
                *[f"  {status}: {_REASONS[status]}" for status in left],
            ])
        )
    return "\n\n".join(parts)


def _run_text(curve: pl.DataFrame, quantity: str) -> str:
    lines = curve.partition_by("selector", "reduction", as_dict=True, maintain_order=True)
    budgets = curve["budget"].unique().sort(nulls_last=True).to_list()
    names = [str(curve["budget_unit"][0])]
    cells: list[list[str]] = [["all" if budget is None else f"{budget:,}" for budget in budgets]]
    statuses = _statuses(curve)
    for (selector, reduction), points in lines.items():
        names.append(str(selector) if reduction is None else f"{selector} ({reduction})")
        at = {point["budget"]: point for point in points.iter_rows(named=True)}
        cells.append([
            *[_point(at[budget], quantity) if budget in at else "" for budget in budgets],
            _span(points["n_problems"]),
            *[_span(points[f"n_{status}"]) for status in statuses],
        ])
    cells[0] += ["problems", *statuses]
    rows = list(zip(*cells, strict=True))
    return layout(names, rows, numbers=[False, *[True] * len(lines)], n_fixed=1)


def _span(counts: pl.Series) -> str:
    """Return a count, or the range of several."""
    ends = counts.unique().sort().to_list()
    return f"{ends[0]:,}" if len(ends) == 1 else f"{ends[0]:,}-{ends[-1]:,}"


def _statuses(curve: pl.DataFrame) -> list[str]:
    """Return why problems are left out."""
    return [status for status in LEFT_OUT if (curve[f"n_{status}"] > 0).any()]


def _point(point: Mapping[str, float | None], quantity: str) -> str:
    value, low, high = point[quantity], point["ci_low"], point["ci_high"]
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"


def rows_text(first: pl.DataFrame, *, n_rows: int, n_fixed: int, more: str) -> str:
    """Write the first rows of a table.

    Parameters
    ----------
    first
        The rows to show.
    n_rows
        How many rows the table has.
    n_fixed
        How many columns say which row it is.
    more
        How to get the other rows, for the line below.

    Returns
    -------
    str
        Lines of text.
    """
    numbers = [dtype.is_numeric() for dtype in first.dtypes]
    cells = [[_text(value) for value in row] for row in first.iter_rows()]
    text = layout(first.columns, cells, numbers=numbers, n_fixed=n_fixed)
    rest = n_rows - first.height
    return f"{text}\n{rest:,} more rows; {more}" if rest > 0 else text


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
