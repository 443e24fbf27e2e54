"""The chart of a selection gap: accuracy, what selection loses, and what was never generated."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, counted, percent
from ttsframe.charts.budgets import BudgetAxis, unit_name
from ttsframe.charts.curve_rows import curve_rows, marks, named_lines, omitted, thinned
from ttsframe.charts.style import (
    INK,
    arrange,
    axis,
    end_labels,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
)
from ttsframe.errors import DataError

__all__ = ["selection_gap"]


class _Part(NamedTuple):
    """One band: its column, its name, its fill, and the colour of its name."""

    column: str
    name: str
    fill: str
    ink: str


# Blue, orange and grey differ in lightness too, so they stay apart under every colour blindness.
_PARTS: Final = (
    _Part("accuracy", "chosen right", "#5aa2d6", "#0067a5"),
    _Part("selection_gap", "lost by selection", "#f2a65a", "#a84300"),
    _Part("generation_gap", "not generated", "#e3e3e3", "#595959"),
)


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    budgets: BudgetAxis
    width: int
    height: int


def selection_gap(
    gap: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how accuracy is lost against the budget: by choosing wrongly, or before there is a choice.

    Three bands fill the panel at every budget: problems answered right; problems with a right
    attempt that was not chosen, which a better verifier would win; and problems without a right
    attempt, which need a better generator or more attempts. The edge between the last two is
    pass@k.

    Parameters
    ----------
    gap
        Table that `selection_gap` makes, one row per (by, `selector`, `reduction`, `budget`,
        `subsets`); collected if lazy. Each selector has a panel, and any column that is not part of
        the table's contract tells runs apart and becomes panels too. A null budget is all attempts.
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
        budgets of a panel are thinned to 64, evenly on the log scale.

    Raises
    ------
    ColumnsError
        When the table is not a selection gap.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        a budget of 0, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 8, seed=0, keys=True)
    >>> selectors = ["majority_vote", "oracle"]
    >>> problems = tts.select_answers(run, selectors=selectors, budgets=[1, 2, 4, 8])
    >>> chart = charts.selection_gap(tts.selection_gap(problems))
    >>> print(chart.title.subtitle[0])
    100 problems · budgets up to 8 attempts · bars: confidence interval of what selection loses
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    columns = [part.column for part in _PARTS]
    rows = curve_rows(gap, where="gap", maker="selection_gap", parts=columns)
    rows = named_lines(rows, show_reduction=True).with_columns(selector="line").drop("reduction")
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, *columns, *_MADE}]
    rows = panel_column(rows, [*apart, "selector"], where="gap")
    drawn = rows.drop_nulls(columns)
    if drawn.is_empty():
        raise DataError(
            f"gap has no accuracy: null in all {rows.height} rows. Hint: the run has no grades, "
            "which tts.score_trajectories(trajectories) makes from a gold answer."
        )
    drawn = thinned(drawn, where="gap")
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    budgets = BudgetAxis.of(drawn, is_all=drawn["of_budget"][0] == "all")
    frame = _Frame(budgets, panel_width(width, len(panels)), height)
    name = "" if len(panels) > 1 else f": {drawn['selector'][0]}"
    return arrange(
        [_panel(panel, str(panel_name), frame) for (panel_name,), panel in panels.items()],
        title=heading(
            title or f"Where accuracy is lost{name}",
            _subtitle(rows, frame, confidence_level=confidence_level),
        ),
    )


_MADE: Final = frozenset({"line", "interval", "left_out", "reads", "of_budget"})
"""Columns that `named_lines` adds."""


def _subtitle(rows: pl.DataFrame, frame: _Frame, *, confidence_level: float | None) -> list[str]:
    """Say what is drawn, over how many problems, and what is not."""
    facts = []
    if rows["n_problems"].null_count() < rows.height:
        facts.append(counted(rows["n_problems"].drop_nulls().to_list(), "problem"))
    facts.append(frame.budgets.most)
    if rows["ci_low"].null_count() < rows.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        facts.append(f"bars: {level}confidence interval of what selection loses")
    subtitle = [
        " · ".join(facts),
        "lost by selection: a right attempt was not chosen · not generated: no attempt was right",
    ]
    what = omitted(rows)
    return [*subtitle, f"Left out: {what}"] if what else subtitle


def _panel(drawn: pl.DataFrame, name: str, frame: _Frame) -> alt.LayerChart:
    """Draw one panel: bands, the two edges between them, intervals, and the names of the bands."""
    placed = drawn.sort("budget").with_columns(
        x=pl.col("budget").cast(pl.Float64),
        reached=pl.col("accuracy") + pl.col("selection_gap"),
        low=pl.col("accuracy") + pl.col("ci_low"),
        high=(pl.col("accuracy") + pl.col("ci_high")).clip(upper_bound=1.0),
    )
    x = frame.budgets.x("x")
    y_axis = axis("Share of problems", format=".0%", tickCount=6)
    y_scale = alt.Scale(domain=[0.0, 1.0], nice=False)

    def y(column: str) -> alt.Y:
        return alt.Y(f"{column}:Q", axis=y_axis, scale=y_scale)

    spread = _across(placed, frame)
    bands = (
        alt
        .Chart(inline(_bands(spread)))
        .mark_area(opacity=1)
        .encode(
            x=x,
            y=y("from"),
            y2=alt.Y2("to:Q"),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(
                    domain=[part.name for part in _PARTS], range=[part.fill for part in _PARTS]
                ),
                legend=None,
            ),
        )
    )
    tooltip = [
        alt.Tooltip("selector:N", title="Selector"),
        alt.Tooltip("of_budget:N", title=f"Budget ({unit_name(frame.budgets.unit)})"),
        *[
            alt.Tooltip(f"{part.column}:Q", title=part.name.capitalize(), format=".1%")
            for part in _PARTS
        ],
        alt.Tooltip("interval:N", title="Interval of what selection loses"),
        alt.Tooltip("n_problems:Q", title="Problems"),
        alt.Tooltip("left_out:N", title="Left out"),
    ]
    points = alt.Chart(marks(placed)).encode(x=x, tooltip=tooltip)
    edges = alt.Chart(marks(spread)).mark_line(strokeWidth=1.6, color=INK).encode(x=x)
    layers = [
        bands,
        edges.encode(y=y("accuracy")),
        edges.encode(y=y("reached")),
        points.mark_rule(strokeWidth=1.4, color=INK, clip=True).encode(
            y=y("low"), y2=alt.Y2("high:Q")
        ),
        *[
            points.mark_point(
                filled=True, size=34 if frame.budgets.is_sparse() else 14, color=INK, opacity=1
            ).encode(y=y(column))
            for column in ("accuracy", "reached")
        ],
        end_labels(_labels(placed, frame), x=x, domain=(0.0, 1.0), height=frame.height),
    ]
    chart = panel_of(layers, width=frame.width, height=frame.height)
    return chart.properties(title=panel_heading(name)) if name else chart


def _across(placed: pl.DataFrame, frame: _Frame) -> pl.DataFrame:
    """Let a single budget fill the panel's width."""
    if placed.height > 1:
        return placed
    return pl.concat([placed.with_columns(x=pl.lit(float(end))) for end in frame.budgets.ends])


def _bands(spread: pl.DataFrame) -> pl.DataFrame:
    """Return where each band begins and ends."""
    edges = [pl.lit(0.0), pl.col("accuracy"), pl.col("reached"), pl.lit(1.0)]
    return pl.concat([
        spread.select("x", pl.lit(part.name).alias("part"), below.alias("from"), above.alias("to"))
        for part, (below, above) in zip(_PARTS, pairwise(edges), strict=True)
    ])


def _labels(placed: pl.DataFrame, frame: _Frame) -> pl.DataFrame:
    """Return where each band ends, with its name and share."""
    ends = _bands(placed.tail(1))
    shares = ends["to"] - ends["from"]
    inks = [part.ink for part in _PARTS]
    return ends.select(
        pl.lit(float(frame.budgets.ends[1])).alias("x"),
        ((pl.col("from") + pl.col("to")) / 2).alias("y"),
        pl.concat_str("part", pl.lit(" "), percent(pl.lit(shares))).alias("label"),
        pl.Series("colour", inks),
    )
