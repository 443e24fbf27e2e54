"""The chart of over-optimisation: where more attempts begin to hurt."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, counted
from ttsframe.charts._style import (
    arrange,
    axis,
    end_labels,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
)
from ttsframe.errors import DataError

__all__ = ["over_optimization"]

_HINT: Final = "tts.over_optimization(problems) makes this table."
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

_N_BUDGETS_MAX: Final = 64


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
        budgets are thinned to those nearest to 64 even steps on the log scale, with every peak and
        the last.

    Raises
    ------
    ColumnsError
        When the table is not one of turns.
    DataError
        When the table has no rows, no accuracy, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 16, seed=1, keys=True)
    >>> turns = tts.over_optimization(tts.best_of_n(run, budgets=[1, 2, 4, 8, 16]))
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
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, *_DROPS}]
    framed = panel_column(rows, ["selector", *apart], where="turns").with_columns(
        line=pl.col("reduction").fill_null(pl.col("selector")),
        is_peak=pl.col("budget")
        == pl.col("peak_budget").last().over("reduction", *apart, "selector"),
    )
    drawn = _thinned(framed)
    names = drawn["line"].unique().sort().to_list()
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    low = drawn.select(pl.min_horizontal("accuracy", "ci_low").min()).item()
    high = drawn.select(pl.max_horizontal("accuracy", "ci_high").max()).item()
    margin = max((high - low) * 0.06, 0.01)
    domain = (max(low - margin, 0.0), min(high + margin, 1.0))
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
    problems = counted(
        [int(n) for n in drawn["n_problems"].drop_nulls().to_list()] or [0], "problem"
    )
    return arrange(
        [
            _panel(
                panel,
                str(name),
                colours=colours,
                domain=domain,
                width=panel_width(width, len(panels)),
                height=height,
            )
            for (name,), panel in panels.items()
        ],
        title=heading(
            title or "Where more attempts begin to hurt",
            [
                f"{problems} · shaded: {level}confidence interval over problems",
                "ring: best budget · triangle: below the best by more than chance",
            ],
        ),
    )


def _thinned(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out budgets where there are more than a line can show."""
    budgets = rows["budget"].unique().sort()
    if len(budgets) <= _N_BUDGETS_MAX:
        return rows
    step = pl.col("budget").log() / pl.col("budget").log().max() * (_N_BUDGETS_MAX - 1)
    kept = (
        budgets
        .to_frame()
        .group_by(step.round(0).alias("step"))
        .agg(pl.col("budget").last())["budget"]
        .to_list()
    )
    return rows.filter(pl.col("budget").is_in([*kept, budgets[0], budgets[-1]]) | pl.col("is_peak"))


def _panel(
    rows: pl.DataFrame,
    name: str,
    *,
    colours: dict[str, str],
    domain: tuple[float, float],
    width: int,
    height: int,
) -> alt.LayerChart:
    """Draw one panel: bands, lines, points, peaks, falls, and a name at each line's end."""
    unit = str(rows["budget_unit"][0]) if "budget_unit" in rows.columns else "attempts"
    budgets = rows["budget"].unique().sort().to_list()
    x_scale = alt.Scale(type="log", base=2, domain=[budgets[0], max(budgets[-1], budgets[0] + 1)])
    apart = 1.0 if len(budgets) < 2 else min(b / a for a, b in pairwise(budgets))
    options = {"values": budgets} if len(budgets) <= 12 and apart > 1.3 else {"tickCount": 6}
    x = alt.X(
        "budget:Q",
        axis=axis(f"Budget ({unit}, log scale)", grid=False, format=",", **options),
        scale=x_scale,
    )
    y_axis = axis("Accuracy", format=".0%", tickCount=6)
    y_scale = alt.Scale(domain=list(domain), nice=False)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=y_scale)
    colour = alt.Color(
        "line:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=None,
    )
    base = alt.Chart(inline(rows.with_columns(budget=pl.col("budget").cast(pl.Float64))))
    base = base.encode(x=x, color=colour)
    tooltip = [
        alt.Tooltip("line:N", title="Scores"),
        alt.Tooltip("budget:Q", title="Budget", format=","),
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
            pl.lit(float(budgets[-1])).alias("budget"),
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
            pl.col("line").replace_strict(colours).alias("colour"),
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
        end_labels(ends, x=alt.X("budget:Q", scale=x_scale), domain=domain, height=height),
    ]
    chart = panel_of(layers, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart
