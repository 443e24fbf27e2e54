"""The chart of accuracy against cost, with the points that are worth it joined by a line."""

from __future__ import annotations

from math import ceil, floor
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, counted
from ttsframe.charts.budgets import BudgetAxis, per_problem, unit_name
from ttsframe.charts.curve_rows import curve_rows, marks, named_lines, omitted, thinned
from ttsframe.charts.style import (
    INK,
    arrange,
    axis,
    check_at_most,
    heading,
    inline,
    legend,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    selector_colours,
    shapes,
)
from ttsframe.errors import ColumnsError, DataError

__all__ = ["pareto_frontier"]

_MADE: Final = frozenset({"is_efficient", "basis", "caveat"})
_N_BEATEN_MAX: Final = 2000
"""Points off the frontiers that a chart shows, evenly over the budgets."""
_N_BEST_MAX: Final = 200
_N_SELECTORS_MAX: Final = 20


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    budgets: BudgetAxis
    domain: tuple[float, float]
    colours: dict[str, str]
    shapes: dict[str, str]
    has_reductions: bool
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
        The chart, its data inside. Of more than 2,000 points off the frontiers as many are drawn,
        evenly over the budgets, and of more than 200 on one as many, evenly on the log scale.

    Raises
    ------
    ColumnsError
        When the table is not a curve with `is_efficient`.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        a budget of 0, more than 20 selectors, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 16, seed=0, keys=True)
    >>> problems = tts.select_answers(
    ...     run, selectors=["majority_vote", "best_of_n"], budgets=[1, 4, 16]
    ... )
    >>> curve = tts.cost_curve(tts.curves.add_costs(problems, trajectories=run))
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
    selectors = drawn["selector"].unique().sort().to_list()
    hint = "filter the table to those to compare."
    check_at_most(len(selectors), _N_SELECTORS_MAX, "selectors", where="curve", hint=hint)
    reads = drawn["reads"].unique().sort().to_list()
    reductions = drawn["reduction"].drop_nulls().unique()
    frame = _Frame(
        budgets=BudgetAxis.of(drawn),
        domain=_domain(drawn),
        colours=selector_colours(selectors),
        shapes=shapes(reads if len(reductions) > 1 else selectors),
        has_reductions=len(reductions) > 1,
        width=panel_width(width, drawn["panel"].n_unique()),
        height=height,
    )
    shown = _thinned(drawn)
    panels = shown.partition_by("panel", as_dict=True, maintain_order=True)
    return arrange(
        [_panel(panel, str(name), frame) for (name,), panel in panels.items()],
        title=heading(
            title or f"Accuracy for {per_problem(frame.budgets.unit)}: what is worth its cost",
            _subtitle(rows, drawn, frame, shown.height, confidence_level=confidence_level),
        ),
    )


def _thinned(drawn: pl.DataFrame) -> pl.DataFrame:
    """Leave out points of which there are more than a page can bear."""
    best = thinned(drawn.filter("is_efficient"), line=[], n_max=_N_BEST_MAX)
    beaten = drawn.filter(~pl.col("is_efficient")).sort("panel", "budget", "line")
    most = _N_BEATEN_MAX // drawn["panel"].n_unique()
    n = pl.len().over("panel").cast(pl.Int64)
    place = pl.int_range(pl.len()).over("panel")
    return pl.concat([best, beaten.filter(place % ((n + most - 1) // most) == 0)])


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
    rows: pl.DataFrame,
    drawn: pl.DataFrame,
    frame: _Frame,
    n_shown: int,
    *,
    confidence_level: float | None,
) -> list[str]:
    """Say what is drawn, over how many problems, and what is not."""
    facts = []
    if rows["n_problems"].null_count() < rows.height:
        facts.append(counted(rows["n_problems"].drop_nulls().to_list(), "problem"))
    facts.append(frame.budgets.most)
    n_efficient = int(drawn["is_efficient"].sum())
    facts.append(f"{n_efficient:,} of {drawn.height:,} points on the frontier")
    if n_shown < drawn.height:
        facts.append(f"{n_shown:,} drawn")
    level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
    bars = (
        f" · bars: {level}confidence interval"
        if drawn["ci_low"].null_count() < drawn.height
        else ""
    )
    second = f"filled and joined: nothing is better for the same cost or less{bars}"
    what = omitted(rows)
    third = [f"Left out: {what}"] if what else []
    return [" · ".join(facts), second, *third]


def _panel(drawn: pl.DataFrame, name: str, frame: _Frame) -> alt.LayerChart:
    """Draw one frontier over the points that it beats."""
    best = drawn.filter("is_efficient").sort("budget", "line")
    beaten = drawn.filter(~pl.col("is_efficient")).sort("budget", "line")
    x = frame.budgets.x()
    y_scale = alt.Scale(domain=list(frame.domain), nice=False, zero=False)
    y_axis = axis("Accuracy", format=".0%", tickCount=6)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=y_scale)
    of_selector = legend(labelExpr="replace(datum.label, /_/g, ' ')", symbolSize=90)
    colour = alt.Color(
        "selector:N",
        scale=alt.Scale(domain=list(frame.colours), range=list(frame.colours.values())),
        legend=of_selector,
    )
    shape = alt.Shape(
        "reads:N" if frame.has_reductions else "selector:N",
        scale=alt.Scale(domain=list(frame.shapes), range=list(frame.shapes.values())),
        legend=legend(title="Step scores", symbolSize=90) if frame.has_reductions else of_selector,
    )
    tooltip = [
        alt.Tooltip("line:N", title="Selector"),
        alt.Tooltip("budget:Q", title=f"Budget ({unit_name(frame.budgets.unit)})", format=".4~s"),
        alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("n_problems:Q", title="Problems"),
        alt.Tooltip("left_out:N", title="Left out"),
    ]
    steps = best.unique(["budget", "accuracy"], keep="first", maintain_order=True)
    layers: list[alt.Chart] = [
        alt
        .Chart(inline(steps.select("budget", "accuracy")))
        .mark_line(interpolate="step-after", color=INK, strokeWidth=1.4, opacity=0.6)
        .encode(x=x, y=y),
        alt
        .Chart(marks(beaten))
        .mark_point(size=34, opacity=0.55, strokeWidth=1.4)
        .encode(x=x, y=y, color=colour, tooltip=tooltip, shape=shape),
        alt
        .Chart(marks(best))
        .mark_rule(strokeWidth=1.6, opacity=0.7)
        .encode(
            x=x,
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale),
            y2=alt.Y2("ci_high:Q"),
            color=colour,
        ),
        alt
        .Chart(marks(best))
        .mark_point(filled=True, size=80, opacity=1)
        .encode(x=x, y=y, color=colour, tooltip=tooltip, shape=shape),
    ]
    chart = panel_of(layers, width=frame.width, height=frame.height)
    return chart.properties(title=panel_heading(name)) if name else chart
