"""Means over the problems of searches, by depth or round, as lines: what two charts draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted
from ttsframe.charts import style, tables
from ttsframe.charts.lines import LinePlot

_N_PLACES_MAX: Final = 200
_N_TICKS_MAX: Final = 16
_NUMBERS: Final = ("mean", "ci_low", "ci_high", "n_problems")


def collect_means(
    table: pl.DataFrame | pl.LazyFrame,
    argument: tables.Argument,
    place: str,
    names: Mapping[str, str],
) -> tuple[pl.DataFrame, list[str]]:
    """Return the measures to draw, with their names, and the columns that tell searches apart."""
    rows = argument.collect(table, texts=["measure"], numbers=[place, *_NUMBERS])
    rows = rows.filter(pl.col("measure").is_in([*names]))
    rows = argument.require_values(rows, ["mean"], f"mean of {', '.join(names)}")
    apart = tables.find_run_columns(rows, {place, "measure", *_NUMBERS})
    argument.check_one_per_point(rows, [*apart, "measure", place])
    argument.check_at_most(
        rows[place].n_unique(), _N_PLACES_MAX, f"{place}s", hint=f"filter {place}."
    )
    return rows.with_columns(
        name=pl.col("measure").replace_strict(dict(names)),
        x=pl.col(place).cast(pl.Float64),
        n_problems=pl.col("n_problems").cast(pl.Int64),
    ), apart


def plot_means(
    drawn: pl.DataFrame,
    *,
    title: str,
    y_title: str,
    colors: Mapping[str, str],
    domain: tuple[float, float],
    number_format: str,
) -> LinePlot:
    """Say how the lines of a column `line` are drawn over depths or rounds."""
    first, last = drawn.select(low=pl.min("x"), high=pl.max("x")).row(0)
    step = int(last - first) // _N_TICKS_MAX + 1
    ticks = style.axis(
        title, format="d", values=[*range(int(first), int(last) + 1, step)], grid=False
    )
    # A single depth or round stands in the middle.
    ends = [first, last] if last > first else [first - 0.5, last + 0.5]
    return LinePlot(
        x=alt.X("x:Q", axis=ticks, scale=alt.Scale(domain=ends, nice=False)),
        y="mean",
        y_axis=style.axis(y_title, tickCount=6, format=number_format),
        domain=domain,
        color=style.color_by("line", colors),
        tooltip=[
            alt.Tooltip("line:N", title="Line"),
            alt.Tooltip("name:N", title="Measure"),
            alt.Tooltip("x:Q", title=title),
            alt.Tooltip("mean:Q", title="Mean", format=".3f"),
            alt.Tooltip("ci_low:Q", title="At least", format=".3f"),
            alt.Tooltip("ci_high:Q", title="At most", format=".3f"),
            alt.Tooltip("n_problems:Q", title="Problems"),
        ],
    )


def describe_problems(drawn: pl.DataFrame) -> list[str]:
    """Count the problems, and say where later points have fewer of them."""
    counts = drawn["n_problems"].drop_nulls()
    if counts.is_empty():
        return []
    most = drawn.group_by("panel", "line").agg(pl.col("n_problems").max())["n_problems"].to_list()
    fewest = min(counts.to_list())
    fewer = f"fewer where searches have ended, at least {fewest:,}"
    return [counted(most, "problem"), fewer if fewest < min(most) else ""]


def name_last(
    plot: LinePlot, panel: pl.DataFrame, last: float, colors: Mapping[str, str], *, height: int
) -> alt.Chart:
    """Write the names of lines at the end of the axis."""
    ends = plot.ends(panel, pl.col("line"), x=last, colors=colors)
    return plot.name_ends(ends, height=height)
