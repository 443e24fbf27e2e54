"""The chart of accuracy against cost, with the efficient points joined by a line."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import polars as pl

from ttsframe._wording import CURVE_COLUMNS
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import BudgetAxis, per_problem
from ttsframe.charts.lines import share_domain
from ttsframe.errors import DataError

__all__ = ["pareto_frontier"]

_TABLE: Final = tables.Argument("curve", "tts.pareto_frontier(curve)", ("frontier",))
_ADDED: Final = frozenset({"is_efficient", "basis", "caveat"})
_N_OTHERS_MAX: Final = 2000
"""Points off the frontiers that a chart shows, evenly over the budgets."""
_N_EFFICIENT_MAX: Final = 200
_N_SELECTORS_MAX: Final = 20
_N_NAMED_MAX: Final = 24
"""Points of a frontier that have room for their number of attempts."""


def pareto_frontier(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 340,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw which method at which budget gives the highest accuracy for its cost.

    Every point of the table is shown; those for which no other point has higher accuracy at the
    same or lower cost are filled and joined by steps, with their number of attempts, N, if the table
    has it as `nominal_budget`. Of equal points, the lower ones are larger, so that all are seen. If
    there are several reductions of step scores, each has a shape.

    Parameters
    ----------
    curve
        Table that `pareto_frontier` makes, with `is_efficient`; collected if lazy. Columns that
        tell frontiers apart, such as the level or the model, become panels.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside. At most 2,000 points off the frontiers are drawn, evenly
        over the budgets, and at most 200 points of a frontier, evenly on the log scale.

    Raises
    ------
    ColumnsError
        When the table is not a curve with `is_efficient`.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        a budget of 0, more than 20 selectors, or more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

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
    Accuracy by tokens per problem: the Pareto frontier
    """
    interval = tables.name_interval(confidence_level)
    rows = _TABLE.collect_curve(curve, booleans=["is_efficient"])
    apart = tables.find_run_columns(rows, {*CURVE_COLUMNS, *_ADDED})
    rows = _TABLE.add_panels(rows, apart).drop(apart)
    known = tables.add_line_names(rows, show_reduction=True).filter(
        pl.col("accuracy").is_not_null(), pl.col("of_budget") != "all"
    )
    if known.is_empty():
        raise DataError(
            f"curve has no accuracy at a budget: null in all {rows.height} rows. Hint: name budgets "
            "in tts.select_answers(trajectories, budgets=[...])."
        )
    is_efficient = pl.col("is_efficient")
    n_selectors = known["selector"].n_unique()
    _TABLE.check_at_most(n_selectors, _N_SELECTORS_MAX, "selectors")
    budgets, encodings = BudgetAxis.of(known), _encode_points(known)
    # Only points on the frontier have their intervals drawn.
    ends = pl.when(is_efficient).then(pl.col("ci_low", "ci_high"))
    domain = share_domain(known.with_columns(ends))
    drawn = _size_equal_points(_thin_points(known))
    has_attempts = "nominal_budget" in drawn.columns and budgets.unit != "attempts"
    n_shown = f"{drawn.height:,} drawn" if drawn.height < known.height else ""
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, budgets, domain, encodings),
        width=width,
        height=height,
        title=style.heading(
            title or f"Accuracy by {per_problem(budgets.unit)}: the Pareto frontier",
            [
                tables.count_problems(rows),
                budgets.largest,
                f"{known['is_efficient'].sum():,} of {known.height:,} points on the frontier",
                n_shown,
            ],
            [
                "filled and joined: no other point has higher accuracy at the same or lower cost",
                f"bars: {interval}" if tables.has_interval(known) else "",
                "N: attempts per problem" if has_attempts else "",
            ],
            [tables.describe_left_out(known)],
            [tables.describe_undrawn_panels(rows, known, "no accuracy at a budget")],
            [
                "one frontier over all panels; tts.pareto_frontier(curve, by=...) makes one for each"
                if known.filter("is_efficient")["panel"].n_unique() < known["panel"].n_unique()
                else ""
            ],
        ),
    )


def _thin_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out points where there are more than fit on a page."""
    efficient = _TABLE.thin_lines(rows.filter("is_efficient"), line=[], n_max=_N_EFFICIENT_MAX)
    others = rows.filter(~pl.col("is_efficient")).sort("panel", "budget", "line")
    n_max = _N_OTHERS_MAX // rows["panel"].n_unique()
    n_rows = pl.len().over("panel").cast(pl.Int64)
    row_number = pl.int_range(pl.len()).over("panel")
    return pl.concat([efficient, others.filter(row_number % -(-n_rows // n_max) == 0)])


def _size_equal_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the area of each point: equal ones are drawn from the largest to the smallest."""
    spot = ["panel", "is_efficient", "budget", "accuracy"]
    below = pl.len().over(spot).cast(pl.Int64) - pl.col("line").rank("ordinal").over(spot).cast(
        pl.Int64
    )
    area = pl.when("is_efficient").then(80.0).otherwise(34.0)
    return rows.with_columns(area=area * (1 + 1.6 * below))


def _encode_points(rows: pl.DataFrame) -> dict[str, Any]:
    """Color points by selector, and shape them by reduction if there are several."""
    names = style.legend(labelExpr="replace(datum.label, /_/g, ' ')", symbolSize=90, offset=34)
    selectors = rows["selector"].unique().sort().to_list()
    color = style.color_by("selector", style.selector_colors(selectors), names)
    if rows["reduction"].drop_nulls().n_unique() < 2:
        return {
            "color": color,
            "shape": style.shape_by("selector", style.assign_shapes(selectors), names),
        }
    reads = style.assign_shapes(rows["reads"].unique().sort().to_list())
    shape = style.shape_by("reads", reads, style.legend(title="Step scores", symbolSize=90))
    return {"color": color, "shape": shape}


def _draw_panel(
    panel: pl.DataFrame,
    budgets: BudgetAxis,
    domain: tuple[float, float],
    encodings: dict[str, Any],
) -> list[alt.Chart]:
    """Draw one frontier over the other points."""
    rows = panel.sort("budget", "area", descending=[False, True])
    efficient, others = rows.filter("is_efficient"), rows.filter(~pl.col("is_efficient"))
    steps = efficient.unique(["budget", "accuracy"], keep="first", maintain_order=True)
    size = alt.Size("area:Q", scale=None)
    x, y_axis = budgets.x(), style.axis("Accuracy", format=".0%", tickCount=6)
    y_scale = alt.Scale(domain=[*domain], nice=False)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=y_scale)
    tooltip = [
        alt.Tooltip("line:N", title="Selector"),
        alt.Tooltip("budget:Q", title=budgets.tooltip_title, format=".4~s"),
        alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("n_problems:Q", title="Problems"),
        alt.Tooltip("left_out:N", title="Left out"),
    ]
    return [
        alt
        .Chart(tables.inline(steps.select("budget", "accuracy")))
        .mark_line(interpolate="step-after", color=style.INK, strokeWidth=1.4, opacity=0.6)
        .encode(x=x, y=y),
        alt
        .Chart(tables.inline_marks(others))
        .mark_point(opacity=0.55, strokeWidth=1.4)
        .encode(x=x, y=y, size=size, tooltip=tooltip, **encodings),
        alt
        .Chart(tables.inline_marks(efficient))
        .mark_rule(strokeWidth=1.6, opacity=0.7)
        .encode(
            x=x,
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale),
            y2=alt.Y2("ci_high:Q"),
            color=encodings["color"],
        ),
        alt
        .Chart(tables.inline_marks(efficient))
        .mark_point(filled=True, opacity=1)
        .encode(x=x, y=y, size=size, tooltip=tooltip, **encodings),
        *_name_attempts(steps, budgets, x=x, y=y),
    ]


def _name_attempts(
    steps: pl.DataFrame, budgets: BudgetAxis, *, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """Write the number of attempts at each point of a frontier, where there is room."""
    if "nominal_budget" not in steps.columns or budgets.unit == "attempts":
        return []
    named = steps.drop_nulls("nominal_budget")
    if named.is_empty() or named.height > _N_NAMED_MAX:
        return []
    labels = named.select("budget", "accuracy", attempts=pl.format("N={}", "nominal_budget"))
    # Below and right of its point, where no step of the frontier is.
    mark = alt.Chart(tables.inline(labels)).mark_text(
        align="left",
        baseline="top",
        dx=8,
        dy=6,
        font=style.FONT,
        fontSize=11,
        color=style.INK,
        clip=False,
    )
    return [mark.encode(x=x, y=y, text="attempts:N")]
