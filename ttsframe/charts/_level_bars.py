"""The chart of accuracy by level: bars for each level, budget and method."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, counted, shorten
from ttsframe.charts.budgets import per_problem, sentence, unit_name
from ttsframe.charts.curve_rows import about_levels, curve_rows, marks, named_lines, omitted
from ttsframe.charts.style import (
    INK,
    PANEL_NAME,
    axis,
    heading,
    legend,
    panel_column,
    panel_of,
    panel_text,
    scores_from,
    strategy_colours,
    tidy,
)
from ttsframe.errors import DataError

__all__ = ["level_bars"]

_N_BARS_MAX: Final = 120
_WIDTH: Final = 700
_ROW_SPACING: Final = 130
_NAME_MAX: Final = 100
_BAR: Final = 13


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    unit: str
    budgets: list[str]
    n_levels: int
    colours: dict[str, str]
    width: int
    height: int


def level_bars(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 240,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy by level of difficulty, budget and method, as bars side by side.

    Each level has a panel, each budget a group of bars in it, each method a bar in the group, in the
    order of the legend. What helps on hard problems and harms on easy ones is seen at a glance,
    which one average over all hides.

    Parameters
    ----------
    curve
        Table that `level_curve` makes, one row per (by, `level`, `selector`, `reduction`, `budget`);
        collected if lazy. Any column that is not part of its contract tells runs apart and becomes
        rows of panels. A null budget is all attempts. Of `cost_curve` with levels the budgets that
        were nominally given are drawn.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Coverage that the intervals of the table were made with, for the subtitle only; None leaves
        it out.
    width, height
        Size of a panel in pixels, without its labels; None is a width that the bars need.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart, its data inside; a concatenation where there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not a curve by level.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        more than 120 bars in a row of panels, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(200, 32, seed=0, keys=True)
    >>> levels = tts.difficulty_levels(run, n_levels=3)
    >>> problems = tts.select_answers(tts.curves.halve_attempts(run), budgets=[1, 4, 16], by="fold")
    >>> chart = charts.level_bars(tts.level_curve(problems, levels=levels))
    >>> len(chart.concat)
    3
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    table = tidy(
        curve,
        where="curve",
        numbers=["level"],
        hint="tts.level_curve(problems, levels=levels) makes this table.",
    )
    if "nominal_budget" in table.columns:
        # What was spent differs from bar to bar, and would part the bars of a group.
        table = table.with_columns(budget="nominal_budget", budget_unit=pl.lit("attempts"))
    rows = curve_rows(table.drop("basis", "caveat", strict=False), maker="level_curve")
    unknown = rows.filter(pl.col("level").is_null())
    rows = rows.drop_nulls("level")
    if rows["accuracy"].null_count() == rows.height:
        raise DataError(
            f"curve has no accuracy at a level: null in all {rows.height} rows. Hint: grade the "
            "attempts against gold answers first, tts.score_trajectories(trajectories)."
        )
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, "level"}]
    rows = panel_column(rows, apart, where="curve").drop(apart)
    rows = named_lines(rows, show_reduction=rows["reduction"].drop_nulls().n_unique() > 1)
    names = rows.select("line", "selector").unique(maintain_order=True)
    budgets = rows.sort("budget")["of_budget"].unique(maintain_order=True).to_list()
    levels = rows["level"].unique().sort().to_list()
    n_bars = len(levels) * len(budgets) * names.height
    if n_bars > _N_BARS_MAX:
        raise DataError(
            f"curve has {len(levels)} levels, {len(budgets)} budgets and {names.height} methods, "
            f"{n_bars} bars side by side, of which a chart holds at most {_N_BARS_MAX}. Hint: filter "
            "the table to the budgets and selectors to compare."
        )
    fitting = min(_WIDTH // len(levels), _BAR * len(budgets) * (names.height + 1))
    frame = _Frame(
        unit=rows["budget_unit"][0],
        budgets=budgets,
        n_levels=len(levels),
        colours=dict(
            zip(names["line"], strategy_colours(names["selector"].to_list()), strict=True)
        ),
        width=width or max(fitting, 60),
        height=height,
    )
    panels = [
        _panel(rows.filter(panel=name, level=level), str(name), level, frame, place=i)
        for name in rows["panel"].unique(maintain_order=True)
        for i, level in enumerate(levels)
    ]
    top = heading(
        title or "Accuracy by level of difficulty",
        _subtitle(rows, unknown, about_levels(table), confidence_level=confidence_level),
    )
    if len(panels) == 1:
        return panels[0].properties(title=top)
    return alt.ConcatChart(
        concat=panels,
        columns=len(levels),
        spacing=alt.RowColnumber(row=_ROW_SPACING, column=14),
        bounds="flush",
        title=top,
        # Shared, the legend would be missing with that of the first panel.
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent")),
    )


def _subtitle(
    rows: pl.DataFrame,
    unknown: pl.DataFrame,
    about: list[str],
    *,
    confidence_level: float | None,
) -> list[str]:
    """Say what a bar is, and what is not drawn."""
    facts = ["each panel a level, the last hardest"]
    if rows["ci_low"].null_count() < rows.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        facts.append(f"whiskers: {level}confidence interval over problems")
    reductions = rows["reduction"].drop_nulls().unique().to_list()
    if len(reductions) == 1:
        facts.append(scores_from(reductions[0]))
    subtitle = [" · ".join(facts), *([" · ".join(about)] if about else [])]
    what = omitted(rows)
    if n_unknown := max(unknown["n_problems"].fill_null(0).to_list(), default=0):
        subtitle.append(f"Left out: {counted([n_unknown], 'problem')} of unknown level")
    return [*subtitle, f"Left out of a level: {what}"] if what else subtitle


def _panel(
    drawn: pl.DataFrame, name: str, level: float, frame: _Frame, *, place: int
) -> alt.LayerChart:
    """Draw the bars of one level."""
    is_first, is_last = place == 0, place == frame.n_levels - 1
    is_middle = place == (frame.n_levels - 1) // 2
    y_axis = axis("Accuracy", format=".0%", tickCount=6)
    if not is_first:
        y_axis = axis(None, labels=False, ticks=False, domain=False, tickCount=6)
    y_scale = alt.Scale(domain=[0.0, 1.0], nice=False)
    colour = alt.Color(
        "line:N",
        scale=alt.Scale(domain=list(frame.colours), range=list(frame.colours.values())),
        legend=legend(symbolType="square", symbolSize=140, offset=12) if is_last else None,
    )
    base = alt.Chart(marks(drawn.drop_nulls("accuracy"))).encode(
        x=alt.X(
            "of_budget:N",
            sort=frame.budgets,
            axis=axis(
                sentence(per_problem(frame.unit)) if is_middle else None, labelAngle=0, grid=False
            ),
            scale=alt.Scale(domain=frame.budgets, paddingInner=0.25, paddingOuter=0.15),
        ),
        xOffset=alt.XOffset("line:N", scale=alt.Scale(domain=list(frame.colours))),
        tooltip=[
            alt.Tooltip("level:O", title="Level"),
            alt.Tooltip("line:N", title="Method"),
            alt.Tooltip("of_budget:N", title=f"Budget ({unit_name(frame.unit)})"),
            alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
            alt.Tooltip("interval:N", title="Interval"),
            alt.Tooltip("n_problems:Q", title="Problems"),
            alt.Tooltip("left_out:N", title="Left out"),
        ],
    )
    whisker = base.encode(y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2=alt.Y2("ci_high:Q"))
    layers = [
        # Not so dark that a whisker is lost in front of them.
        base.mark_bar(opacity=0.75).encode(
            y=alt.Y("accuracy:Q", axis=y_axis, scale=y_scale, stack=None), color=colour
        ),
        whisker.mark_rule(strokeWidth=1.2, color=INK, clip=True),
    ]
    n_problems = drawn["n_problems"].drop_nulls().to_list()
    # Titles would stand at different heights, as labels of axes and whiskers reach up.
    layers += [
        panel_text(f"Level {level:g}", x=0, y=-30, style=PANEL_NAME),
        panel_text(counted(n_problems, "problem") if n_problems else "", x=0, y=-14),
    ]
    if name and is_first:
        layers.append(panel_text(shorten(name, _NAME_MAX), x=-60, y=-54, style=PANEL_NAME))
    return panel_of(layers, width=frame.width, height=frame.height)
