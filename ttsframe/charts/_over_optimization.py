"""The chart of over-optimisation: where more attempts begin to hurt."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, counted
from ttsframe.charts.budgets import BudgetAxis, unit_name
from ttsframe.charts.curve_rows import check_budgets, marks, thinned
from ttsframe.charts.style import (
    arrange,
    axis,
    end_labels,
    heading,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
    with_short_names,
)
from ttsframe.errors import DataError

__all__ = ["over_optimization"]

_HINT: Final = "tts.verifier.over_optimization(problems) makes this table."
_NUMBERS: Final = ("budget", "accuracy", "ci_low", "ci_high", "n_problems", "peak_budget", "drop")
_DROPS: Final = (
    "peak_budget",
    "drop",
    "drop_standard_error",
    "drop_ci_low",
    "drop_ci_high",
    "drop_p_value",
    "is_turned_down",
)
_COLOURS: Final = (
    "#0067a5",
    "#b84a00",
    "#00775a",
    "#a0407c",
    "#7a5c00",
    "#3f3d99",
    "#4d4d4d",
    "#1c6b7a",
    "#8f1d2c",
)
"""Hues of Okabe and Ito, darkened; names at the ends tell lines apart where hues do not."""


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    budgets: BudgetAxis
    colours: dict[str, str]
    domain: tuple[float, float]
    width: int
    height: int


def over_optimization(
    turns: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy against the budget, with the peak and the fall behind it.

    A ring is the best budget of a line. Triangles are budgets at which the line has fallen below
    its peak by more than chance: there, more attempts give the verifier more to be fooled by.

    Parameters
    ----------
    turns
        Table that `over_optimization` makes, one row per (by, `selector`, `reduction`, `budget`,
        `subsets`); collected if lazy. Any column that is not part of its contract, and the selector
        where there are several, becomes panels.
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
        The chart, its data inside; a concatenation where there are several panels. More than 64
        budgets of a line are thinned to 64, evenly on the log scale, and its peak.

    Raises
    ------
    ColumnsError
        When the table is not one of turns.
    DataError
        When the table has no rows, no accuracy, a budget of 0, more than 20 lines in a panel, or too
        many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 16, seed=1, keys=True)
    >>> turns = tts.verifier.over_optimization(tts.best_of_n(run, budgets=[1, 2, 4, 8, 16]))
    >>> charts.over_optimization(turns).title.text
    'Where more attempts begin to hurt'
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    rows = tidy(
        turns,
        where="turns",
        texts=["selector", "reduction", "is_turned_down"],
        numbers=_NUMBERS,
        hint=_HINT,
    ).drop_nulls(["budget", "accuracy"])
    if rows.is_empty():
        raise DataError(f"turns has no accuracy at any budget. Hint: {_HINT}")
    check_budgets(rows, where="turns")
    rows = with_short_names(rows, ["selector", "reduction"])
    if "budget_unit" not in rows.columns:
        rows = rows.with_columns(budget_unit=pl.lit("attempts"))
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, *_DROPS}]
    framed = panel_column(rows, ["selector", *apart], where="turns").with_columns(
        line=pl.col("reduction").fill_null(pl.col("selector")),
        is_peak=pl.col("budget")
        == pl.col("peak_budget").last().over("reduction", *apart, "selector"),
    )
    drawn = thinned(framed, also=pl.col("is_peak"), where="turns")
    names = drawn["line"].unique().sort().to_list()
    who = framed["selector"].unique().sort().to_list()
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    low = drawn.select(pl.min_horizontal("accuracy", "ci_low").min()).item()
    high = drawn.select(pl.max_horizontal("accuracy", "ci_high").max()).item()
    margin = max((high - low) * 0.06, 0.01)
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    frame = _Frame(
        BudgetAxis.of(drawn),
        colours,
        (max(low - margin, 0.0), min(high + margin, 1.0)),
        panel_width(width, len(panels)),
        height,
    )
    level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
    problems = counted(
        [int(n) for n in drawn["n_problems"].drop_nulls().to_list()] or [0], "problem"
    )
    return arrange(
        [_panel(panel, str(name), frame) for (name,), panel in panels.items()],
        title=heading(
            title or "Where more attempts begin to hurt",
            [
                " · ".join([
                    *[name.replace("_", " ") for name in who if len(who) == 1],
                    f"{problems} · shaded: {level}confidence interval over problems",
                ]),
                "ring: best budget · triangle: below the best by more than chance",
            ],
        ),
    )


def _panel(rows: pl.DataFrame, name: str, frame: _Frame) -> alt.LayerChart:
    """Draw one panel: bands, lines, points, peaks, falls, and a name at each line's end."""
    x = frame.budgets.x()
    y_axis = axis("Accuracy", format=".0%", tickCount=6)
    y_scale = alt.Scale(domain=list(frame.domain), nice=False)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=y_scale)
    colour = alt.Color(
        "line:N",
        scale=alt.Scale(domain=list(frame.colours), range=list(frame.colours.values())),
        legend=None,
    )
    base = alt.Chart(marks(rows.with_columns(budget=pl.col("budget").cast(pl.Float64))))
    base = base.encode(x=x, color=colour)
    tooltip = [
        alt.Tooltip("line:N", title="Scores"),
        alt.Tooltip("budget:Q", title=f"Budget ({unit_name(frame.budgets.unit)})", format=",.4~r"),
        alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
        alt.Tooltip("peak_budget:Q", title="Best budget so far", format=","),
        alt.Tooltip("drop:Q", title="Drop from it", format=".1%"),
        alt.Tooltip("n_problems:Q", title="Problems", format=","),
    ]
    falls = alt.datum.is_turned_down == True  # noqa: E712  (Vega's comparison)
    ends = (
        rows
        .sort("budget")
        .group_by("line", maintain_order=True)
        .agg(pl.col("accuracy", "peak_budget", "drop", "is_turned_down").last())
        .select(
            pl.lit(float(frame.budgets.budgets[-1])).alias("budget"),
            pl.col("accuracy").alias("y"),
            pl.concat_str(
                "line",
                pl.when("is_turned_down").then(
                    pl.format(
                        " −{} points since {}",
                        (pl.col("drop") * 100).round(1),
                        pl.col("peak_budget").cast(pl.Int64),
                    )
                ),
                ignore_nulls=True,
            ).alias("label"),
            pl.col("line").replace_strict(frame.colours).alias("colour"),
        )
    )
    layers = [
        base.mark_area(opacity=0.12).encode(
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2="ci_high:Q"
        ),
        base.mark_line(strokeWidth=2.2).encode(y=y),
        base
        .transform_filter(~falls)
        .mark_point(filled=True, size=40, opacity=1)
        .encode(y=y, tooltip=tooltip),
        base
        .transform_filter(falls)
        .mark_point(filled=True, size=95, opacity=1, shape="triangle-down")
        .encode(y=y, tooltip=tooltip),
        base
        .transform_filter(alt.datum.is_peak == True)  # noqa: E712  (Vega's comparison)
        .mark_point(filled=False, size=190, strokeWidth=2, opacity=1)
        .encode(y=y, tooltip=tooltip),
        end_labels(ends, x=x, domain=frame.domain, height=frame.height),
    ]
    chart = panel_of(layers, width=frame.width, height=frame.height)
    return chart.properties(title=panel_heading(name)) if name else chart
