"""Many runs on one page: their order, and a table of them at the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from ttsframe._wording import counted
from ttsframe.report.parts import Context, Figure, Paragraph, Part, Table, make_table
from ttsframe.report.wording import (
    NONE,
    format_interval,
    format_percent,
    name_run,
)

_N_RUNS_FEW: Final = 4
"""Runs that sentences can list; more are sorted, and tables come before charts."""
_RANK: Final = "_rank"


def rank_runs(
    curve: pl.DataFrame | None, agreement: pl.DataFrame | None, by: Sequence[str]
) -> pl.DataFrame | None:
    """Rank many runs by majority vote with most attempts, the highest first; None for a few runs."""
    ends = [
        _keep_ends(table, by).select(*by, pl.lit(i).alias("kind"), pl.col(name).alias("value"))
        for i, (name, table) in enumerate((("accuracy", curve), ("agreement", agreement)))
        if table is not None and by
    ]
    if not ends:
        return None
    runs = pl.concat(ends).group_by(by).agg(pl.col("kind", "value").first())
    if runs.height <= _N_RUNS_FEW:
        return None
    order = ["kind", "value", *by]
    descending = [False, True, *[False] * len(by)]
    ranked = runs.sort(order, descending=descending, nulls_last=True)
    return ranked.select(by).with_row_index(_RANK)


def _keep_ends(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Keep majority vote with most attempts, for each run that has it."""
    votes = table.filter(selector="majority_vote")
    return votes.filter(pl.col("budget") == pl.col("budget").max().over(by))


def sort_runs(table: pl.DataFrame, ranks: pl.DataFrame | None) -> pl.DataFrame:
    """Put the rows of a table into the order of the runs."""
    if ranks is None:
        return table
    by = ranks.columns[1:]
    if not set(by) <= set(table.columns):
        return table
    ranked = table.join(ranks, on=by, how="left", nulls_equal=True, maintain_order="left")
    return ranked.sort(_RANK, maintain_order=True, nulls_last=True).drop(_RANK)


def tables_first(parts: Sequence[Part]) -> list[Part]:
    """Put what has tables before charts and what is said of them."""
    drawn = (Figure, Paragraph)
    return [
        *[part for part in parts if not isinstance(part, drawn)],
        *[part for part in parts if isinstance(part, drawn)],
    ]


def list_runs(
    context: Context, curve: pl.DataFrame | None, agreement: pl.DataFrame | None
) -> Table:
    """List each run with its lines at most attempts."""
    rows, names = [], []
    lines: list[str] = []
    for quantity, table in (("accuracy", curve), ("agreement", agreement)):
        if table is None:
            continue
        for run in table.partition_by(context.by, maintain_order=True):
            ends = run.filter(pl.col("budget") == pl.col("budget").max())
            cells: dict[str, object] = {
                "problems": max(ends["n_problems"].to_list()),
                "attempts": ends["budget"][0],
            }
            for row in ends.iter_rows(named=True):
                line = context.name_line(row)
                line = line if quantity == "accuracy" else f"{line}, agreement"
                lines += [line] if line not in lines else []
                cells[line] = _write_value(row[quantity], row["ci_low"], row["ci_high"])
            rows.append(cells)
            names.append(run.select(context.by).head(1))
    listed = [
        {name: cells.get(name, NONE) for name in ("problems", "attempts", *lines)} for cells in rows
    ]
    return make_table(
        f"Every run with all its attempts, sorted by majority vote; {context.level} intervals below",
        pl.concat(names),
        listed,
    )


def _write_value(value: float | None, low: float | None, high: float | None) -> str:
    """Write a value, its interval below."""
    first, _, second = format_interval(value, low, high).partition(" ")
    return f"{first}\n{second.strip('()')}"


def summarize_runs(
    context: Context, curve: pl.DataFrame | None, agreement: pl.DataFrame | None
) -> list[str]:
    """Name the first and the last of many runs."""
    texts = []
    for quantity, table in (("accuracy", curve), ("agreement", agreement)):
        if table is None:
            continue
        ends = _keep_ends(table, context.by).drop_nulls(quantity)
        if ends.is_empty():
            continue
        first, last = (
            f"{format_percent(ends[quantity][i])} ({name_run(ends[i : i + 1 or None], context.by)})"
            for i in (0, -1)
        )
        between = f"between {last} and {first}" if ends.height > 1 else first
        texts.append(
            f"{counted([ends.height], 'run')}: the {quantity} of majority vote with all attempts is "
            f"{between}."
        )
    return texts
