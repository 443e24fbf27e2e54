"""How runs, lines and numbers are written in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import polars as pl

from ttsframe._wording import shorten

N_RUNS_MAX: Final = 12
"""Runs that a chart holds, and that sentences are written of."""

N_PANELS_MAX: Final = 6
"""Panels that a chart of a further section holds."""

NONE: Final = "—"
_NAME_MAX: Final = 80


def run_name(rows: pl.DataFrame, by: Sequence[str]) -> str:
    """Name the run of some rows.

    Parameters
    ----------
    rows
        Rows of one run.
    by
        Columns that tell runs apart.

    Returns
    -------
    str
        Their values; empty without such columns.
    """
    return ", ".join(shorten(str(rows[name][0]), _NAME_MAX) for name in by)


def runs_of(table: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Part a table by run.

    Parameters
    ----------
    table
        Any table with the columns of `by`.
    by
        Columns that tell runs apart.

    Yields
    ------
    tuple[str, pl.DataFrame]
        What a sentence on the run begins with, and its rows.
    """
    if not by:
        if table.height:
            yield "", table
        return
    for rows in table.partition_by(by, maintain_order=True):
        yield f"{run_name(rows, by)}: ", rows


def telling_names(names: Sequence[str]) -> dict[str, str]:
    """Leave out of paths the folders, and the ends, that all of them share.

    Parameters
    ----------
    names
        Different names; nothing is left out of other texts than paths.

    Returns
    -------
    dict[str, str]
        The part of each that tells it from the others.
    """
    paths = [name.split("/") for name in names]
    room = min((len(path) for path in paths), default=0) - 1
    if room < 1 or len(names) < 2:
        return {name: name for name in names}
    n_before = _n_shared(paths, room)
    n_after = _n_shared([path[::-1] for path in paths], room - n_before)
    return {
        name: "/".join(path[n_before : len(path) - n_after])
        for name, path in zip(names, paths, strict=True)
    }


def _n_shared(paths: Sequence[Sequence[str]], room: int) -> int:
    """Count the parts that all paths begin with."""
    same = (len({path[i] for path in paths}) == 1 for i in range(room))
    return sum(1 for _ in takewhile(bool, same))


def with_telling_names(table: pl.DataFrame, names: Mapping[str, Mapping[str, str]]) -> pl.DataFrame:
    """Put telling names into a table.

    Parameters
    ----------
    table
        Any table.
    names
        For each column that tells runs apart, what `telling_names` gives of it.

    Returns
    -------
    pl.DataFrame
        The same rows.
    """
    return table.with_columns(
        pl.col(name).replace(dict(telling))
        for name, telling in names.items()
        if name in table.columns
    )


def said(name: str, text: str) -> str:
    """Begin a sentence with the run that it is about, as it is written, or with a capital.

    Parameters
    ----------
    name
        What `runs_of` gives.
    text
        The rest, in lower case.

    Returns
    -------
    str
        The sentence.
    """
    return f"{name}{text}" if name else text[:1].upper() + text[1:]


def first_runs(table: pl.DataFrame, by: Sequence[str], n_max: int = N_RUNS_MAX) -> pl.DataFrame:
    """Keep as many runs as a chart holds.

    Parameters
    ----------
    table
        Any table with the columns of `by`.
    by
        Columns that tell runs apart.
    n_max
        Number of runs.

    Returns
    -------
    pl.DataFrame
        The rows of the first ones.
    """
    if not by:
        return table
    kept = table.select(by).unique(maintain_order=True).head(n_max)
    return table.join(kept, on=by, how="semi", nulls_equal=True, maintain_order="left")


def best_row(rows: pl.DataFrame) -> dict[str, Any]:
    """Take the row of the highest accuracy; of equal ones the cheapest, and one that reads no score.

    Rows that are averaged over fewer problems than others do not compare, and are passed over.

    Parameters
    ----------
    rows
        Rows of a curve, at least one.

    Returns
    -------
    dict[str, Any]
        The row.
    """
    order = ["n_problems", "accuracy", "budget", pl.col("reduction").is_null()]
    ranked = rows.sort(order, descending=[True, True, False, True], maintain_order=True)
    return ranked.row(0, named=True)


def line_name(selector: str, reduction: str | None) -> str:
    """Name a line as charts do.

    Parameters
    ----------
    selector
        Name of a selector.
    reduction
        Name of a reduction; None where no score is read.

    Returns
    -------
    str
        Such as "weighted vote (last)".
    """
    name = selector.replace("_", " ")
    return name if reduction is None else f"{name} ({reduction})"


def percent_text(value: float | None) -> str:
    """Write a fraction as a percentage with one decimal.

    Parameters
    ----------
    value
        A fraction; None is unknown.

    Returns
    -------
    str
        Such as "36.7%".
    """
    return NONE if value is None else f"{_tenths(value)}%"


def _tenths(fraction: float) -> float:
    """Round as `percent` rounds a column."""
    return round(fraction * 100 * 10) / 10


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Write a fraction with its interval.

    Parameters
    ----------
    value, low, high
        Fractions; None is unknown.

    Returns
    -------
    str
        Such as "36.7% (25.6 to 49.3)".
    """
    if low is None or high is None:
        return percent_text(value)
    return f"{percent_text(value)} ({_tenths(low)} to {_tenths(high)})"


def decimals(value: float | None, digits: int) -> str:
    """Write a number with a fixed number of decimals.

    Parameters
    ----------
    value
        A number; None is unknown.
    digits
        How many.

    Returns
    -------
    str
        Such as "0.250".
    """
    return NONE if value is None else f"{value:,.{digits}f}"
