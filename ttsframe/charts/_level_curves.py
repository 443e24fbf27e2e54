"""The chart of accuracy against the budget, level by level."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import CURVE_COLUMNS, counted
from ttsframe.charts.budgets import BudgetAxis, per_problem, unit_name
from ttsframe.charts.curve_rows import (
    about_levels,
    curve_rows,
    marks,
    named_lines,
    omitted,
    thinned,
)
from ttsframe.charts.style import (
    PANEL_NAME,
    axis,
    heading,
    legend,
    panel_column,
    panel_heading,
    panel_of,
    panel_text,
    scores_from,
    selector_colours,
    shapes,
    tidy,
)
from ttsframe.errors import DataError

__all__ = ["level_curves"]

_LEVEL_COLUMNS: Final = ("level", "basis", "caveat")
_N_LEVELS_MAX: Final = 10
_WIDTH: Final = 700
_WIDE: Final = 116
"""From here on a panel is wide enough to say that its level is the hardest."""
_DASHES: Final = ([1, 0], [6, 3], [2, 2])


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    budgets: BudgetAxis
    levels: list[int | None]
    colours: dict[str, str]
    dashes: dict[str, list[int]]
    width: int
    height: int


def level_curves(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 220,
) -> alt.VConcatChart:
    """Draw accuracy against the budget in a panel for each level of difficulty, easiest first.

    What more attempts are worth differs by level: easy problems are solved at once, and hopeless
    ones never. All panels have the same axes; a level that no problem is in keeps its place, and
    says so.

    Parameters
    ----------
    curve
        Table that `level_curve` or `cost_curve` with levels makes, one row per (by, `level`,
        `selector`, `reduction`, `budget`, `subsets`); collected if lazy. Columns that tell runs
        apart become rows of panels.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Coverage that the intervals of the table were made with, for the subtitle only; None leaves
        it out.
    width, height
        Width of a row of panels and height of a panel in pixels, without labels; None is a width
        that fits a page.

    Returns
    -------
    alt.VConcatChart
        The chart, its data inside. Lines of more than 64 budgets, fewer where there are more than 46
        lines, are thinned evenly on the log scale.

    Raises
    ------
    ColumnsError
        When the table is not a curve by level.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, several units
        of budget, a budget of 0, more than 10 levels, 3 reductions or 20 lines in a panel, or too
        many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 32, seed=0, keys=True)
    >>> problems = tts.select_answers(
    ...     tts.curves.halve_attempts(run), selectors=["majority_vote"], budgets=[1, 4, 16], by="fold"
    ... )
    >>> chart = charts.level_curves(tts.level_curve(problems, levels=tts.difficulty_levels(run)))
    >>> print(chart.title.subtitle[1])
    levels: from the half of the attempts that is not judged
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    table = tidy(
        curve,
        where="curve",
        numbers=["level", "budget"],
        hint="tts.level_curve(problems, levels=...) makes this table.",
    )
    levels = table["level"].unique().sort(nulls_last=True).to_list()
    # Nothing was spent on a level without problems, which has its panel by being a level.
    spent = table.filter(pl.col("budget").is_not_null() | pl.col("budget").is_null().all())
    rows = curve_rows(spent, maker="level_curve")
    reductions = rows["reduction"].drop_nulls().unique(maintain_order=True).to_list()
    for what, n, most in (
        ("levels", len(levels), _N_LEVELS_MAX),
        ("reductions", len(reductions), len(_DASHES)),
    ):
        if n > most:
            raise DataError(
                f"curve has {n} {what}, this chart holds at most {most}. Hint: filter the table to "
                "those to compare."
            )
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, *_LEVEL_COLUMNS}]
    rows = panel_column(rows, apart, where="curve").drop(apart)
    rows = named_lines(rows, show_reduction=len(reductions) > 1)
    drawn = rows.drop_nulls("accuracy")
    if drawn.is_empty():
        raise DataError(
            f"curve has no accuracy: null in all {rows.height} rows. Hint: the run has no grades, "
            "which tts.score_trajectories(trajectories) makes from a gold answer."
        )
    plain = {"no score": _DASHES[0]} if "no score" in set(drawn["reads"]) else {}
    drawn = thinned(drawn, panel=["panel", "level"])
    frame = _Frame(
        budgets=BudgetAxis.of(drawn, is_all=drawn["of_budget"][0] == "all"),
        levels=levels,
        colours=selector_colours(drawn["selector"].unique().sort().to_list()),
        dashes=plain | dict(zip(reductions, _DASHES, strict=False)),
        width=(width or _WIDTH) // max(len(levels), 2),
        height=height,
    )
    names = rows["panel"].unique(maintain_order=True)
    return alt.VConcatChart(
        vconcat=[_row(drawn.filter(panel=name), str(name), frame) for name in names],
        spacing=24,
        title=heading(
            title or f"Accuracy by {per_problem(frame.budgets.unit)}, level by level",
            _subtitle(rows, frame, confidence_level=confidence_level),
        ),
    )


def _subtitle(rows: pl.DataFrame, frame: _Frame, *, confidence_level: float | None) -> list[str]:
    """Say what is drawn, over how many problems, and what is not."""
    facts = []
    counts = rows.filter(pl.col("n_problems") > 0)["n_problems"].to_list()
    if counts:
        facts.append(f"{counted(counts, 'problem')} in a level")
    facts.append(frame.budgets.most)
    if rows["ci_low"].null_count() < rows.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        facts.append(f"shaded: {level}confidence interval over problems")
    subtitle = [" · ".join(facts)]
    explained = about_levels(rows)
    if frame.width < _WIDE:
        explained.append("easiest first")
    if len(reductions := [name for name in frame.dashes if name != "no score"]) == 1:
        explained.append(scores_from(reductions[0]))
    subtitle += [" · ".join(explained)] if explained else []
    what = omitted(rows)
    return [*subtitle, f"Left out of a level: {what}"] if what else subtitle


def _row(rows: pl.DataFrame, name: str, frame: _Frame) -> alt.HConcatChart:
    """Draw the panels of one run side by side."""
    panels = [
        _panel(
            rows.filter(pl.col("level").eq_missing(pl.lit(level))),
            frame,
            level=level,
            place=place,
        )
        for place, level in enumerate(frame.levels)
    ]
    chart = alt.HConcatChart(
        hconcat=panels,
        spacing=16,
        bounds="flush",
        # Shared, the legend would be missing with that of the first panel.
        resolve=alt.Resolve(
            scale=alt.ScaleResolveMap(
                color="independent", shape="independent", strokeDash="independent"
            )
        ),
    )
    return chart.properties(title=panel_heading(name)) if name else chart


def _panel(drawn: pl.DataFrame, frame: _Frame, *, level: int | None, place: int) -> alt.LayerChart:
    """Draw one level."""
    known = [number for number in frame.levels if number is not None]
    ends = {min(known, default=None): " (easiest)", max(known, default=None): " (hardest)"}
    name = "Unknown" if level is None else f"Level {level}"
    if frame.width >= _WIDE and len(known) > 1:
        name += ends.get(level, "")
    is_first, is_last = place == 0, place == len(frame.levels) - 1
    is_middle = place == (len(frame.levels) - 1) // 2
    x = frame.budgets.x(n_ticks_max=6, has_title=is_middle)
    y_axis = axis("Accuracy" if is_first else None, format=".0%", tickCount=6, labels=is_first)
    y_scale = alt.Scale(domain=[0, 1], nice=False)
    selectors = list(frame.colours)
    named = {"labelExpr": "replace(datum.label, /_/g, ' ')", "offset": 12}
    # Of one title and one domain, the legends of both become one.
    of_selector = legend(symbolSize=90, **named) if is_last else None
    colour = alt.Color(
        "selector:N",
        scale=alt.Scale(domain=selectors, range=list(frame.colours.values())),
        legend=of_selector,
    )
    shape = alt.Shape(
        "selector:N",
        scale=alt.Scale(domain=selectors, range=list(shapes(selectors).values())),
        legend=of_selector,
    )
    dash = alt.StrokeDash(
        "reads:N",
        scale=alt.Scale(domain=list(frame.dashes), range=list(frame.dashes.values())),
        legend=legend(symbolType="stroke", symbolStrokeWidth=3, symbolSize=180, **named)
        if is_last and len(set(frame.dashes) - {"no score"}) > 1
        else None,
    )
    base = alt.Chart(marks(drawn)).encode(x=x, color=colour, detail="line:N")
    middle = alt.Y("accuracy:Q", axis=y_axis, scale=y_scale)
    layers: list[alt.Chart] = [
        base.mark_area(opacity=0.12).encode(
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2=alt.Y2("ci_high:Q")
        ),
        base.mark_line(strokeWidth=2.2).encode(y=middle, strokeDash=dash),
        base.mark_point(filled=True, size=34, opacity=1).encode(
            y=middle,
            shape=shape,
            tooltip=[
                alt.Tooltip("level:Q", title="Level"),
                alt.Tooltip("line:N", title="Selector"),
                alt.Tooltip("reads:N", title="Step scores"),
                alt.Tooltip("of_budget:N", title=f"Budget ({unit_name(frame.budgets.unit)})"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
                alt.Tooltip("interval:N", title="Interval"),
                alt.Tooltip("n_problems:Q", title="Problems"),
                alt.Tooltip("left_out:N", title="Left out"),
            ],
        ),
    ]
    # A title would stand higher where points reach beyond the panel.
    layers.append(panel_text(name, x=0, y=-14, style=PANEL_NAME))
    if drawn.is_empty():
        layers.append(
            panel_text("no problems", x=frame.width / 2, y=frame.height / 2, align="center")
        )
    return panel_of(layers, width=frame.width, height=frame.height)
