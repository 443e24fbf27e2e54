"""The chart of over-optimization: where more attempts begin to hurt."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import polars as pl

from ttsframe._wording import CURVE_COLUMNS, counted
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import BudgetAxis, short_number, unit_name
from ttsframe.charts.lines import (
    LinePlot,
    choose_bands,
    describe_bands,
    describe_equal_lines,
    share_domain,
)

__all__ = ["over_optimization"]

_TABLE: Final = tables.Argument("turns", "tts.verifier.over_optimization(problems)", ("turns",))
_NUMBERS: Final = ("budget", "accuracy", "ci_low", "ci_high", "n_problems", "peak_budget", "drop")
_ADDED: Final = (
    "peak_budget",
    "drop",
    "drop_standard_error",
    "drop_ci_low",
    "drop_ci_high",
    "drop_p_value",
    "is_turned_down",
)


def over_optimization(
    turns: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy against the budget, with the peak and the decline after it.

    A ring marks the best budget of a line. Triangles mark budgets at which accuracy is below the
    peak by more than chance: there, more attempts give the verifier more wrong ones to score too
    high. The default title says whether any line declines. Of more than two lines, only the highest
    and the lowest at their ends have bands.

    Parameters
    ----------
    turns
        Table that `over_optimization` makes, one row per (by, `selector`, `reduction`, `budget`,
        `subsets`); collected if lazy. Any column that is not part of its contract, and the selector
        if there are several, becomes panels.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels. Lines are
        thinned as in `scaling_curve`, and keep their peak.

    Raises
    ------
    ColumnsError
        When the table is not the one described.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, several units
        of budget, a budget of 0, more than 20 lines in a panel, or more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 16, seed=1, keys=True)
    >>> turns = tts.verifier.over_optimization(tts.best_of_n(run, budgets=[1, 2, 4, 8, 16]))
    >>> charts.over_optimization(turns).title.text
    'No decline up to 16 attempts'
    """
    interval = tables.name_interval(confidence_level)
    texts = ["selector", "reduction"]
    table = _TABLE.collect(turns, texts=texts, booleans=["is_turned_down"], numbers=_NUMBERS)
    table = _TABLE.require_values(table, ["budget"], "accuracy at any budget")
    _TABLE.require_values(table, ["accuracy"], "accuracy at any budget")
    rows = _TABLE.collect_curve(table, parts=["peak_budget", "drop"])
    apart = tables.find_run_columns(rows, {*CURVE_COLUMNS, *_ADDED})
    rows = _TABLE.add_panels(rows, ["selector", *apart]).drop(apart)
    is_peak = pl.col("budget") == pl.col("peak_budget").sort_by("budget").last().over(
        "panel", "line"
    )
    rows = rows.with_columns(
        line=pl.col("reduction").fill_null(pl.col("selector")),
        x=pl.col("budget").cast(pl.Float64),
    )
    undrawn = tables.describe_undrawn(rows.with_columns(of_budget=pl.col("budget").cast(pl.String)))
    rows = rows.drop_nulls("accuracy").with_columns(is_peak=is_peak)
    drawn = _TABLE.thin_lines(rows, keep=pl.col("is_peak"))
    budgets = BudgetAxis.of(drawn)
    names = drawn["line"].unique().sort().to_list()
    selectors = drawn["selector"].unique().to_list()
    # A single line has the color of its selector; scores have colors that no selector has.
    of_selector = style.selector_colors(selectors)[selectors[0]]
    colors = {names[0]: of_selector} if len(names) == 1 else style.run_colors(names)
    plot = LinePlot(
        x=budgets.x("x"),
        y_axis=style.axis("Accuracy", format=".0%", tickCount=6),
        domain=share_domain(drawn),
        color=style.color_by("line", colors),
        tooltip=[
            alt.Tooltip("line:N", title="Scores"),
            alt.Tooltip("budget:Q", title=budgets.tooltip_title, format=",.4~r"),
            alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
            alt.Tooltip("peak_budget:Q", title="Best budget so far", format=","),
            alt.Tooltip("drop:Q", title="Decline from it", format=".1%"),
            alt.Tooltip("n_problems:Q", title="Problems", format=","),
        ],
    )
    bands = choose_bands(drawn, first=_find_lowest(drawn))
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, plot, colors, bands, height=height),
        width=width,
        height=height,
        title=style.heading(
            title or _name_finding(rows, budgets),
            [
                selectors[0].replace("_", " ") if len(selectors) == 1 else "",
                tables.count_problems(drawn),
                describe_bands(drawn, bands, interval),
            ],
            [
                "ring: best budget",
                "triangle: below the best by more than chance"
                if drawn["is_turned_down"].any()
                else "",
            ],
            [tables.describe_left_out(drawn)],
            [describe_equal_lines(drawn)],
            [undrawn],
        ),
    )


def _find_lowest(drawn: pl.DataFrame) -> list[str]:
    """Return the line that is lowest at the largest budget."""
    ends = drawn.filter(budget=drawn["budget"].max()).sort("accuracy", "line")
    return ends["line"].head(1).to_list()


def _name_finding(rows: pl.DataFrame, budgets: BudgetAxis) -> str:
    """Say whether accuracy declines as the budget grows, and from where."""
    turned = rows.filter("is_turned_down")
    unit = unit_name(budgets.unit)
    if turned.is_empty():
        chance = " beyond chance" if (rows["drop"].fill_null(0) > 0).any() else ""
        return f"No decline{chance} up to {short_number(budgets.budgets[-1])} {unit}"
    lines = rows.select("panel", "line").n_unique()
    declining = turned.select("panel", "line").n_unique()
    peak = turned.sort("budget", "line")["peak_budget"][0]
    who = (
        "Accuracy declines" if lines == 1 else f"{declining} of {counted([lines], 'line')} decline"
    )
    end = "s" if declining == 1 and lines > 1 else ""
    return f"{who}{end} after {short_number(peak)} {unit} or more"


def _draw_panel(
    panel: pl.DataFrame,
    plot: LinePlot,
    colors: dict[str, str],
    bands: list[str],
    *,
    height: int,
) -> list[alt.Chart]:
    """Draw lines, with rings at their peaks and triangles where they have declined."""
    kinds = {False: ("circle", 40), True: ("triangle-down", 95)}
    shapes, sizes = zip(*kinds.values(), strict=True)
    marks: dict[str, Any] = {}
    if panel["is_turned_down"].any():
        marks["shape"] = alt.Shape(
            "is_turned_down:N", scale=alt.Scale(domain=[*kinds], range=[*shapes]), legend=None
        )
        marks["size"] = alt.Size(
            "is_turned_down:O", scale=alt.Scale(domain=[*kinds], range=[*sizes]), legend=None
        )
    points = plot.layers(panel, has_band=pl.col("line").is_in(bands), **marks)
    rings = plot.base(panel.filter("is_peak")).mark_point(
        filled=False, size=190, strokeWidth=2, opacity=1
    )
    decline = pl.format(
        " −{} points since {}{}",
        style.decimals(pl.col("drop") * 100, 1),
        pl.col("peak_budget").cast(pl.Int64),
        pl.when("is_turned_down").then(pl.lit("")).otherwise(pl.lit(", within chance")),
    )
    is_lower = pl.col("drop").fill_null(0) > 0
    label = pl.concat_str("line", pl.when(is_lower).then(decline), ignore_nulls=True)
    labels = plot.ends(panel, label, x=max(panel["x"].to_list()), colors=colors)
    return [
        *points,
        rings.encode(y=plot.on_y("accuracy"), tooltip=list(plot.tooltip)),
        plot.name_ends(labels, height=height),
    ]
