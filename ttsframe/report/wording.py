"""Write runs, lines and numbers in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from ttsframe._typing import Weights
from ttsframe._wording import shorten
from ttsframe.votes.engine.registry import SELECTORS

N_RUNS_MAX: Final = 12
"""Runs that a chart holds, and that the top of the page has sentences on."""

N_PANELS_MAX: Final = 6

_TIE: Final = 1e-9
"""Means closer than this are equal: they differ by rounding."""

NONE: Final = "—"
_NAME_MAX: Final = 80


def name_run(rows: pl.DataFrame, by: Sequence[str]) -> str:
    """Name the run of some rows by its values of `by`; empty without `by`."""
    return ", ".join(
        shorten(
            f"{name} {rows[name][0]}" if rows[name].dtype.is_numeric() else str(rows[name][0]),
            _NAME_MAX,
        )
        for name in by
    )


def count_runs(table: pl.DataFrame, by: Sequence[str]) -> int:
    """Count the runs of a table."""
    return table.select(by).n_unique() if by else 1


def split_runs(table: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Split a table by run; yield the prefix of a sentence about each run, and its rows."""
    if not by:
        if table.height:
            yield "", table
        return
    for rows in table.partition_by(by, maintain_order=True):
        yield f"{name_run(rows, by)}: ", rows


def keep_run_of(
    table: pl.DataFrame | None, rows: pl.DataFrame, by: Sequence[str]
) -> pl.DataFrame | None:
    """Keep the rows of a table that belong to the run of some rows of another; None without any."""
    if table is None or not by:
        return table
    run = rows.select(by).head(1)
    kept = table.join(run, on=by, how="semi", nulls_equal=True, maintain_order="left")
    return kept if kept.height else None


def start_sentence(prefix: str, text: str) -> str:
    """Put the prefix of `split_runs` before a sentence, or begin it with a capital letter."""
    return f"{prefix}{text}" if prefix else text[:1].upper() + text[1:]


def keep_first_runs(
    table: pl.DataFrame, by: Sequence[str], n_max: int = N_RUNS_MAX
) -> pl.DataFrame:
    """Keep as many runs as a chart holds."""
    if not by:
        return table
    kept = table.select(by).unique(maintain_order=True).head(n_max)
    return table.join(kept, on=by, how="semi", nulls_equal=True, maintain_order="left")


def name_shared(rows: pl.DataFrame, table: pl.DataFrame, by: Sequence[str]) -> str:
    """Name what the runs of some rows share and others of the table do not, as the end of a title."""
    shared = [name for name in by if rows[name].n_unique() == 1 < table[name].n_unique()]
    return f", {name_run(rows, shared)}" if shared and rows.height else ""


def find_best_rows(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of highest accuracy: the cheapest of them first, then those without scores."""
    # Rows that are averaged over fewer problems than others are not comparable, and are passed over.
    order = ["n_problems", "accuracy", "budget", pl.col("reduction").is_null()]
    ranked = rows.sort(order, descending=[True, True, False, True], maintain_order=True)
    best = ranked.row(0, named=True)
    tied = ranked.filter(
        pl.col("n_problems") == best["n_problems"], pl.col("accuracy") > best["accuracy"] - _TIE
    )
    return tied.to_dicts()


def find_best_row(rows: pl.DataFrame) -> dict[str, Any]:
    """Return the row of highest accuracy; among equal ones the cheapest, then one without scores."""
    return find_best_rows(rows)[0]


def name_line(selector: str, reduction: str | None, weights: Weights = "score") -> str:
    """Name a line as charts do, such as "weighted vote (last)"; weights other than scores are named."""
    name = selector.replace("_", " ")
    parts = [] if reduction is None else [reduction]
    if weights != "score" and any(
        selector == known and row.weighs_votes for known, row in SELECTORS.items()
    ):
        parts.append(f"{weights} weights")
    return f"{name} ({', '.join(parts)})" if parts else name


def list_names(names: Sequence[str]) -> str:
    """Write names as a list, such as "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def format_percent(value: float | None) -> str:
    """Write a fraction as a percentage with one decimal, such as "36.7%"."""
    return NONE if value is None else f"{_round_percent(value)}%"


def _round_percent(fraction: float) -> float:
    """Round as `percent` rounds a column."""
    return round(fraction * 100 * 10) / 10


def format_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Write a fraction with its interval, such as "36.7% (25.6 to 49.3)"."""
    if low is None or high is None:
        return format_percent(value)
    return f"{format_percent(value)} ({_round_percent(low)} to {_round_percent(high)})"


def format_decimals(value: float | None, digits: int) -> str:
    """Write a number with a fixed number of decimals, such as "0.250"."""
    return NONE if value is None else f"{value:,.{digits}f}"
