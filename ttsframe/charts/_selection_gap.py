"""The chart of a selection gap: accuracy, what selection loses, and what was never generated."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._wording import CURVE_COLUMNS, interval, percent
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import BudgetAxis

__all__ = ["selection_gap"]

_TABLE: Final = tables.Argument("gap", "tts.selection_gap(problems)", ("gap",))


class _Part(NamedTuple):
    """One of the bands that fill a panel."""

    column: str
    name: str
    fill: str
    ink: str
    """Color of the name."""


# Blue, orange and gray differ in lightness too, so they stay apart under every color blindness.
_PARTS: Final = (
    _Part("accuracy", "answered right", "#5aa2d6", "#0067a5"),
    _Part("selection_gap", "lost by selection", "#f2a65a", "#a84300"),
    _Part("generation_gap", "not generated", "#e3e3e3", "#595959"),
)
_COLUMNS: Final = [part.column for part in _PARTS]
_DOMAIN: Final = (0.0, 1.0)


def selection_gap(
    gap: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how accuracy is lost against the budget: by wrong selection or by missing generation.

    Three bands fill the panel at every budget: problems answered right; problems with a right
    attempt that was not chosen, which a better verifier would win; and problems without a right
    attempt, which need a better generator or more attempts. The edge between the last two is
    pass@k. The interval is that of the middle band, so it stands beside the band's name, and in the
    tooltip of every other budget.

    Parameters
    ----------
    gap
        Table that `selection_gap` makes, one row per (by, `selector`, `reduction`, `budget`,
        `subsets`); collected if lazy. Each selector has a panel, and any column that is not part of
        the table's contract tells runs apart and becomes panels too. A null budget is all attempts.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels. More than 64
        budgets of a panel are thinned to 64, evenly on the log scale.

    Raises
    ------
    ColumnsError
        When the table is not a selection gap.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        a budget of 0, or more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 8, seed=0, keys=True)
    >>> selectors = ["majority_vote", "oracle"]
    >>> problems = tts.select_answers(run, selectors=selectors, budgets=[1, 2, 4, 8])
    >>> chart = charts.selection_gap(tts.selection_gap(problems))
    >>> print(chart.title.subtitle[0])
    100 problems · budgets up to 8 attempts · in brackets: confidence interval of what...
    """
    name_of_interval = tables.name_interval(confidence_level)
    rows = _TABLE.collect_curve(gap, parts=_COLUMNS)
    apart = tables.find_run_columns(rows, {*CURVE_COLUMNS, *_COLUMNS})
    rows = tables.add_line_names(rows, show_reduction=True).with_columns(selector="line")
    rows = _TABLE.add_panels(rows, [*apart, "selector"]).drop(apart)
    known = _TABLE.require_values(rows, _COLUMNS, "accuracy", hint=tables.GRADE_HINT)
    drawn = _TABLE.thin_lines(known)
    budgets = BudgetAxis.of(drawn)
    name = "" if drawn["panel"].n_unique() > 1 else f": {drawn['selector'][0]}"
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, budgets, height),
        width=width,
        height=height,
        title=style.heading(
            title or f"Where accuracy is lost{name}",
            [
                tables.count_problems(known),
                budgets.largest,
                f"in brackets: {name_of_interval} of what selection loses"
                if tables.has_interval(rows)
                else "",
            ],
            [
                "lost by selection: a right attempt was not chosen",
                "not generated: no attempt was right",
            ],
            [tables.describe_left_out(known)],
            [tables.describe_undrawn(rows)],
        ),
    )


def _draw_panel(panel: pl.DataFrame, budgets: BudgetAxis, height: int) -> list[alt.Chart]:
    """Draw bands, the two edges between them, and the names of the bands."""
    rows = panel.sort("budget").with_columns(
        x=pl.col("budget").cast(pl.Float64),
        reached=pl.col("accuracy") + pl.col("selection_gap"),
    )
    x, y_axis = budgets.x("x"), style.axis("Share of problems", format=".0%", tickCount=6)

    def y(column: str) -> alt.Y:
        scale = alt.Scale(domain=[*_DOMAIN], nice=False)
        return alt.Y(f"{column}:Q", axis=y_axis, scale=scale)

    # A single budget fills the width of the panel.
    ends = [rows.with_columns(x=pl.lit(float(end))) for end in budgets.ends]
    across = rows if rows.height > 1 else pl.concat(ends)
    fills = style.color_by("part", {part.name: part.fill for part in _PARTS})
    bands = alt.Chart(tables.inline(_stack_bands(across))).mark_area(opacity=1)
    edges = (
        alt
        .Chart(tables.inline_marks(across))
        .mark_line(strokeWidth=1.6, color=style.INK)
        .encode(x=x)
    )
    points = alt.Chart(tables.inline_marks(rows)).encode(
        x=x,
        tooltip=[
            alt.Tooltip("selector:N", title="Selector"),
            alt.Tooltip("of_budget:N", title=budgets.tooltip_title),
            *[
                alt.Tooltip(f"{part.column}:Q", title=part.name.capitalize(), format=".1%")
                for part in _PARTS
            ],
            alt.Tooltip("interval:N", title="Interval of the selection gap"),
            alt.Tooltip("n_problems:Q", title="Problems"),
            alt.Tooltip("left_out:N", title="Left out"),
        ],
    )
    dots = points.mark_point(
        filled=True, size=34 if budgets.is_sparse() else 14, color=style.INK, opacity=1
    )
    return [
        bands.encode(x=x, y=y("from"), y2=alt.Y2("to:Q"), color=fills),
        edges.encode(y=y("accuracy")),
        edges.encode(y=y("reached")),
        dots.encode(y=y("accuracy")),
        dots.encode(y=y("reached")),
        style.write_end_labels(_label_bands(rows, budgets), x=x, domain=_DOMAIN, height=height),
    ]


def _stack_bands(rows: pl.DataFrame) -> pl.DataFrame:
    """Return where each band begins and ends."""
    edges = [pl.lit(0.0), pl.col("accuracy"), pl.col("reached"), pl.lit(1.0)]
    return pl.concat([
        rows.select("x", pl.lit(part.name).alias("part"), below.alias("from"), above.alias("to"))
        for part, (below, above) in zip(_PARTS, pairwise(edges), strict=True)
    ])


def _label_bands(rows: pl.DataFrame, budgets: BudgetAxis) -> pl.DataFrame:
    """Return the middle of each band at the last budget, with its name and share."""
    begin, end = pl.col("from"), pl.col("to")
    last = rows.tail(1)
    texts = _stack_bands(last).select(
        pl.lit(float(budgets.ends[1])).alias("x"),
        ((begin + end) / 2).alias("y"),
        pl.concat_str("part", pl.lit(" "), percent(end - begin)).alias("label"),
        pl.Series("color", [part.ink for part in _PARTS]),
    )
    # The interval is that of a width, so it stands below the name of the band and not on an edge.
    ends = interval().str.replace_all("%", "", literal=True)
    of_gap = last.select(pl.format("({})", ends)).item()
    return pl.concat([
        texts,
        texts[1:2].with_columns(y=pl.col("y") - 1e-6, label=pl.lit(of_gap, pl.String)),
    ]).drop_nulls("label")
