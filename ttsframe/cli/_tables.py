"""Tables for people, as wide as the terminal and no wider."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe._wording import (
    CURVE_COLUMNS,
    LEFT_OUT,
    counted,
    is_unreached,
    quantity_of,
    shorten_paths,
    units_of,
)
from ttsframe.cli._console import Console, printable
from ttsframe.cli._documents import Cells, is_document, save_document
from ttsframe.cli._output import save

_CELL_MAX: Final = 40
_GAP: Final = 2
_REASONS: Final = {
    "short": "fewer attempts than the largest budget",
    "unscored": "no attempt within the budget has a score",
    "undefined": "a weight is negative or not finite, as with logits (try --weights sigmoid), or there "
    "are neither answers to vote on nor gold answers, as for code",
    "ungraded": "no gold answer; --gold reads them from a second file",
}
_NO_OWN_GRADE: Final = "--grade gave null, neither right nor wrong, for a chosen attempt"


def table_text(
    names: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[bool], n_fixed: int
) -> str:
    """Draw a table; columns that do not fit the terminal continue below, after the fixed ones."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    room = shutil.get_terminal_size((100, 24)).columns
    cells = [[_cell(cell) for cell in row] for row in (names, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    texts = []
    for columns in _blocks(widths, n_fixed, room):
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for i in columns:
            name = Text(cells[0][i])
            table.add_column(name, justify="right" if numbers[i] else "left", overflow="fold")
        table.add_row(*["-" * widths[i] for i in columns])
        for row in cells[1:]:
            table.add_row(*[Text(row[i]) for i in columns])
        output = Console(file=io.StringIO(), width=room, color_system=None)
        output.print(table)
        lines = output.file.getvalue().splitlines()  # type: ignore[attr-defined]
        texts.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(texts)


def _cell(text: str) -> str:
    text = printable(text[: _CELL_MAX * 4])
    if len(text) <= _CELL_MAX:
        return text
    # Names of runs often differ at their ends.
    n_kept = (_CELL_MAX - 3) // 2
    return f"{text[: _CELL_MAX - 3 - n_kept]}...{text[-n_kept:]}"


def _blocks(widths: Sequence[int], n_fixed: int, room: int) -> Iterator[list[int]]:
    """Yield the columns of each part of a table."""
    fixed = list(range(n_fixed))
    fixed_width = sum(widths[i] + _GAP for i in fixed)
    columns: list[int] = []
    width = fixed_width
    for i in range(n_fixed, len(widths)):
        if columns and width + widths[i] > room:
            yield fixed + columns
            columns, width = [], fixed_width
        columns.append(i)
        width += widths[i] + _GAP
    yield fixed + columns


def curve_text(curve: pl.DataFrame, *, confidence_level: float, is_own_grade: bool = False) -> str:
    """Write a curve: one table per run, with a row per budget and a column per selector."""
    quantity = quantity_of(curve.columns)
    parts = [_curve_title(curve, confidence_level)]
    if quantity == "agreement":
        parts[0] += (
            "\nThe share of attempts that gave the chosen answer; the run has no gold answers."
        )
    groups, runs = _split_runs(curve)
    for run, rows in runs.items():
        heading = [f"{name}: {value}" for name, value in zip(groups, run, strict=True)]
        whole, *others = _split_by_problems(rows)
        parts.append("\n".join([*map(printable, heading), _run_text(whole, quantity)]))
        for other in others:
            n_problems = counted(other["n_problems"].to_list(), "problem")
            note = f"On {n_problems} only, not to be compared with the lines above:"
            parts.append(f"{note}\n{_run_text(other, quantity)}")
    left_out = _statuses(curve.filter(~is_unreached()))
    if left_out:
        why = {**_REASONS, "ungraded": _NO_OWN_GRADE} if is_own_grade else _REASONS
        reasons = [f"  {status}: {why[status]}" for status in left_out]
        parts.append("\n".join(["Problems left out:", *reasons]))
    return "\n\n".join(parts)


def curve_cells(curve: pl.DataFrame, *, confidence_level: float) -> Cells:
    """Return the cells of a curve for one table of all runs, whose columns come first."""
    quantity = quantity_of(curve.columns)
    groups, runs = _split_runs(curve)
    tables = {run: _run_cells(rows, quantity) for run, rows in runs.items()}
    names = list(dict.fromkeys(name for found, _ in tables.values() for name in found))
    rows = [
        [*map(str, run), *[dict(zip(found, row, strict=True)).get(name, "") for name in names]]
        for run, (found, cells) in tables.items()
        for row in cells
    ]
    numbers = [*[False] * len(groups), *[True] * len(names)]
    return Cells(_curve_title(curve, confidence_level), [*groups, *names], rows, numbers)


def _curve_title(curve: pl.DataFrame, confidence_level: float) -> str:
    quantity, units = quantity_of(curve.columns).capitalize(), units_of(curve.columns)
    return f"{quantity}, with {100 * confidence_level:g}% intervals over {units}"


def shorten_files(table: pl.DataFrame, *also: str) -> pl.DataFrame:
    """Shorten the paths of `source_file`, and of other columns of files, to what tells them apart."""
    if table.schema.get("source_file") != pl.String:
        return table
    columns = ["source_file", *also]
    paths = pl.concat([table[name] for name in columns]).drop_nulls().unique().sort()
    return table.with_columns(pl.col(columns).replace(shorten_paths(paths.to_list())))


def _split_runs(
    curve: pl.DataFrame,
) -> tuple[list[str], Mapping[tuple[object, ...], pl.DataFrame]]:
    """Return the columns that tell runs apart, and the curve of each run."""
    curve = shorten_files(curve)
    groups = [name for name in curve.columns if name not in CURVE_COLUMNS and name != "subsets"]
    if not groups:
        return groups, {(): curve}
    return groups, curve.partition_by(groups, as_dict=True, maintain_order=True)


def _split_by_problems(curve: pl.DataFrame) -> list[pl.DataFrame]:
    """Split the lines of a run by the problems that they average, those on the most problems first."""
    counts = pl.struct("n_problems", *[f"n_{status}" for status in LEFT_OUT])
    marked = curve.with_columns(
        most=pl.col("n_problems").max().over("selector", "reduction"),
        basis=counts.sort_by("budget").last().over("selector", "reduction"),
    )
    return [
        part.drop("most", "basis")
        for part in marked.sort("most", descending=True, maintain_order=True).partition_by(
            "basis", maintain_order=True
        )
    ]


def _run_text(curve: pl.DataFrame, quantity: str) -> str:
    """Write the table of a run."""
    names, cells = _run_cells(curve, quantity)
    return table_text(names, cells, numbers=[False, *[True] * (len(names) - 1)], n_fixed=1)


def _run_cells(curve: pl.DataFrame, quantity: str) -> tuple[list[str], list[tuple[str, ...]]]:
    """Write a row per budget and a column per selector, then rows of counts."""
    lines = curve.partition_by("selector", "reduction", as_dict=True, maintain_order=True)
    budgets = curve["budget"].unique().sort(nulls_last=True).to_list()
    averaged = curve.filter(~is_unreached())
    statuses = _statuses(averaged)
    names = [str(curve["budget_unit"][0])]
    first = ["all" if budget is None else f"{budget:,}" for budget in budgets]
    columns = [[*first, "problems", *statuses]]
    for (selector, reduction), points in lines.items():
        names.append(str(selector) if reduction is None else f"{selector} ({reduction})")
        counts = averaged.filter(
            pl.col("selector").eq_missing(selector), pl.col("reduction").eq_missing(reduction)
        )
        by_budget = {point["budget"]: point for point in points.iter_rows(named=True)}
        columns.append([
            *[
                _point(by_budget[budget], quantity) if budget in by_budget else ""
                for budget in budgets
            ],
            _range(counts["n_problems"]),
            *[_range(counts[f"n_{status}"]) for status in statuses],
        ])
    return names, list(zip(*columns, strict=True))


def _range(counts: pl.Series) -> str:
    """Write a count, or the range of several."""
    ends = counts.unique().sort().to_list() or [0]
    return f"{ends[0]:,}" if len(ends) == 1 else f"{ends[0]:,}-{ends[-1]:,}"


def _statuses(curve: pl.DataFrame) -> list[str]:
    """Return the reasons for which problems are left out."""
    return [status for status in LEFT_OUT if (curve[f"n_{status}"] > 0).any()]


def _point(point: Mapping[str, float | None], quantity: str) -> str:
    value, low, high = point[quantity], point["ci_low"], point["ci_high"]
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"


def rows_text(first: pl.DataFrame, *, n_rows: int, n_fixed: int, hint: str) -> str:
    """Write the first rows of a table with `n_rows` rows, and a hint if there are more."""
    _, names, cells, numbers = rows_cells(first)
    text = table_text(names, cells, numbers=numbers, n_fixed=n_fixed)
    rest = n_rows - first.height
    return f"{text}\n{rest:,} more rows; {hint}" if rest > 0 else text


def rows_cells(rows: pl.DataFrame, title: str = "") -> Cells:
    """Return the cells of a table as people read it."""
    numbers = [dtype.is_numeric() for dtype in rows.dtypes]
    cells = [[_text(value) for value in row] for row in rows.iter_rows()]
    return Cells(title, rows.columns, cells, numbers)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_table(
    table: pl.DataFrame,
    cells: tuple[Cells, int],
    *,
    notes: Sequence[str],
    output: Path | None,
    console: Console,
) -> dict[str, object]:
    """Print a table with its notes, save it if asked, and return what was written for JSON."""
    # The first columns of the cells name a row, and stay in view.
    shown, n_fixed = cells
    text = table_text(shown.names, shown.rows, numbers=shown.numbers, n_fixed=n_fixed)
    console.say(f"{shown.title}\n\n{text}\n")
    for note in notes:
        console.say(note)
    if output is None:
        return {}
    return (
        save_document([shown], output, console)
        if is_document(output)
        else save(table, output, console)
    )
