"""The chart of accuracy against cost, with the points that are worth it joined by a line."""

from __future__ import annotations

from itertools import cycle
from math import ceil, floor
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, LEFT_OUT, counted
from ttsframe.charts._budgets import budget_axis, per_problem, short_number, unit_name
from ttsframe.charts._curve_rows import curve_rows, named_lines
from ttsframe.charts._style import (
    FONT,
    INK,
    arrange,
    axis,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    selector_colours,
)
from ttsframe.errors import ColumnsError, DataError

__all__ = ["pareto_frontier"]

_MADE: Final = frozenset({"is_efficient", "basis"})
_N_BEATEN_MAX: Final = 2000
"""Points off the frontier that a panel shows, evenly over the budgets."""


_SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    unit: str
    budgets: list[float]
    domain: tuple[float, float]
    colours: dict[str, str]
    shapes: dict[str, str]
    width: int
    height: int


def pareto_frontier(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 340,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw which method at which budget gives the most accuracy for its cost.

    Every point of the table is shown; those that no other beats at the same cost or less are filled
    and joined by steps. Where there are several reductions of step scores, each has a shape.

    Parameters
    ----------
    curve
        Table that `pareto_frontier` makes, with `is_efficient`; collected if lazy. Columns that
        tell frontiers apart, such as the level or the model, become panels.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Coverage that the intervals of the table were made with, for the subtitle only; None leaves
        it out.
    width, height
        Size of a panel in pixels, without its labels; None is a width at which the panels fit a
        page.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart, its data inside. Of more than 2,000 points off the frontier in a panel as many
        are drawn, evenly over the budgets.

    Raises
    ------
    ColumnsError
        When the table is not a curve with `is_efficient`.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 16, seed=0, keys=True)
    >>> problems = tts.select_answers(
    ...     run, selectors=["majority_vote", "best_of_n"], budgets=[1, 4, 16]
    ... )
    >>> curve = tts.cost_curve(tts.with_costs(problems, trajectories=run))
    >>> chart = charts.pareto_frontier(tts.pareto_frontier(curve))
    >>> print(chart.title.text)
    Accuracy for tokens per problem: what is worth its cost
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    rows = curve_rows(curve, maker="pareto_frontier")
    if "is_efficient" not in rows.columns:
        error = ColumnsError.missing(
            ["is_efficient"],
            rows.columns,
            where="curve",
            hint="tts.pareto_frontier(curve) makes this table.",
        )
        raise error
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, *_MADE}]
    rows = panel_column(rows, apart, where="curve").drop(apart)
    drawn = named_lines(rows, show_reduction=True).filter(
        pl.col("accuracy").is_not_null(), pl.col("of_budget") != "all"
    )
    if drawn.is_empty():
        raise DataError(
            f"curve has no accuracy at a budget: null in all {rows.height} rows. Hint: name budgets "
            "in tts.select_answers(trajectories, budgets=[...])."
        )
    reads = drawn["reads"].unique().sort().to_list()
    reductions = drawn["reduction"].drop_nulls().unique()
    frame = _Frame(
        unit=rows["budget_unit"][0],
        budgets=drawn["budget"].unique().sort().to_list(),
        domain=_domain(drawn),
        colours=selector_colours(drawn["selector"].unique().sort().to_list()),
        shapes=dict(zip(reads, cycle(_SHAPES), strict=False)) if len(reductions) > 1 else {},
        width=panel_width(width, drawn["panel"].n_unique()),
        height=height,
    )
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    return arrange(
        [_panel(panel, str(name), frame) for (name,), panel in panels.items()],
        title=heading(
            title or f"Accuracy for {per_problem(frame.unit)}: what is worth its cost",
            _subtitle(rows, drawn, frame, confidence_level=confidence_level),
        ),
    )


def _domain(drawn: pl.DataFrame) -> tuple[float, float]:
    """Return the axis from the lowest to the highest mark, on multiples of 5 %."""
    is_efficient = pl.col("is_efficient")
    low = drawn.select(
        pl.min_horizontal("accuracy", pl.when(is_efficient).then("ci_low")).min()
    ).item()
    high = drawn.select(
        pl.max_horizontal("accuracy", pl.when(is_efficient).then("ci_high")).max()
    ).item()
    return max(0, floor(low * 20 - 0.2)) / 20, min(20, ceil(high * 20 + 0.2)) / 20


def _subtitle(
    rows: pl.DataFrame, drawn: pl.DataFrame, frame: _Frame, *, confidence_level: float | None
) -> list[str]:
    """Say what is drawn, over how many problems, and what is not."""
    facts = []
    if rows["n_problems"].null_count() < rows.height:
        facts.append(counted(rows["n_problems"].drop_nulls().to_list(), "problem"))
    facts.append(f"up to {short_number(frame.budgets[-1])} {unit_name(frame.unit)} each")
    n_efficient = int(drawn["is_efficient"].sum())
    facts.append(f"{n_efficient:,} of {drawn.height:,} points on the frontier")
    level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
    bars = (
        f" · bars: {level}confidence interval"
        if drawn["ci_low"].null_count() < drawn.height
        else ""
    )
    second = f"filled and joined: nothing is better for the same cost or less{bars}"
    omitted = [
        f"{counted(counts, 'problem')} {status}"
        for status in LEFT_OUT
        if max(counts := rows[f"n_{status}"].fill_null(0).to_list()) > 0
    ]
    third = [f"Left out: {', '.join(omitted)}"] if omitted else []
    return [" · ".join(facts), second, *third]


def _panel(drawn: pl.DataFrame, name: str, frame: _Frame) -> alt.LayerChart:
    """Draw one frontier over the points that it beats."""
    best = drawn.filter("is_efficient").sort("budget", "line")
    beaten = drawn.filter(~pl.col("is_efficient")).sort("budget", "line")
    beaten = beaten.gather_every(max(1, ceil(beaten.height / _N_BEATEN_MAX)))
    first, last = frame.budgets[0], frame.budgets[-1]
    scale = alt.Scale(
        type="log",
        base=2,
        domain=[first, last] if last > first else [first / 2, first * 2],
        nice=False,
    )
    x_axis = budget_axis(frame.unit, frame.budgets, is_sparse=len(frame.budgets) <= 16)
    x = alt.X("budget:Q", axis=x_axis, scale=scale)
    y_scale = alt.Scale(domain=list(frame.domain), nice=False, zero=False)
    y_axis = axis("Accuracy", format=".0%", tickCount=6)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=y_scale)
    colour = alt.Color(
        "selector:N",
        scale=alt.Scale(domain=list(frame.colours), range=list(frame.colours.values())),
        legend=alt.Legend(
            title=None,
            orient="right",
            labelFont=FONT,
            labelFontSize=12,
            labelColor=INK,
            labelExpr="replace(datum.label, /_/g, ' ')",
            labelLimit=240,
            symbolSize=90,
            symbolOpacity=1,
        ),
    )
    tooltip = [
        alt.Tooltip("line:N", title="Selector"),
        alt.Tooltip("budget:Q", title=f"Budget ({unit_name(frame.unit)})", format=".4~s"),
        alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("n_problems:Q", title="Problems"),
        alt.Tooltip("left_out:N", title="Left out"),
    ]
    shape = {}
    if frame.shapes:
        shape["shape"] = alt.Shape(
            "reads:N",
            scale=alt.Scale(domain=list(frame.shapes), range=list(frame.shapes.values())),
            legend=alt.Legend(title="Step scores", orient="right", symbolSize=90),
        )
    steps = best.unique(["budget", "accuracy"], keep="first", maintain_order=True)
    layers: list[alt.Chart] = [
        alt
        .Chart(inline(steps))
        .mark_line(interpolate="step-after", color=INK, strokeWidth=1.4, opacity=0.6)
        .encode(x=x, y=y),
        alt
        .Chart(inline(beaten))
        .mark_point(size=34, opacity=0.55, strokeWidth=1.4)
        .encode(x=x, y=y, color=colour, tooltip=tooltip, **shape),
        alt
        .Chart(inline(best))
        .mark_rule(strokeWidth=1.6, opacity=0.7)
        .encode(
            x=x,
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale),
            y2=alt.Y2("ci_high:Q"),
            color=colour,
        ),
        alt
        .Chart(inline(best))
        .mark_point(filled=True, size=80, opacity=1)
        .encode(x=x, y=y, color=colour, tooltip=tooltip, **shape),
    ]
    chart = panel_of(layers, width=frame.width, height=frame.height)
    return chart.properties(title=panel_heading(name)) if name else chart
