"""The chart of accuracy by level: bars for each level, budget and method."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import CURVE_COLUMNS, counted, shorten, units_of
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import per_problem, sentence, unit_name
from ttsframe.errors import DataError

__all__ = ["level_bars"]

_TABLE: Final = tables.Argument("curve", "tts.level_curve(problems, levels=levels)", ("leveled",))
_N_BARS_MAX: Final = 120
_WIDTH: Final = 700
_ROW_SPACING: Final = 130
_NAME_MAX: Final = 100
_BAR: Final = 13


def level_bars(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    level: str = "level",
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 240,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy by level of difficulty, budget and method, as bars side by side.

    Each level has a panel, each budget a group of bars in it, each method a bar in the group, in the
    order of the legend. The chart shows at a glance which methods help on hard problems and harm on
    easy ones, which an average over all problems hides.

    Parameters
    ----------
    curve
        Table that `level_curve` makes, one row per (by, `level`, `selector`, `reduction`, `budget`);
        collected if lazy. Any column that is not part of its contract tells runs apart and becomes
        rows of panels. A null budget is all attempts. Bars of `cost_curve` with levels are at the
        nominal budgets. With another `level`, any curve that has this column, such as
        ``tts.scaling_curve(problems, by="subject")``.
    level
        Column of the levels, numbers or texts: own levels, or subjects, each of which has a panel.
    title, confidence_level
        As in `scaling_curve`.
    width, height
        Size of a panel in pixels, without its labels; None is the width that the bars need.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not a curve by level.
    DataError
        When the table has no rows, no accuracy, several rows at one point, several units of budget,
        more than 120 bars in a row of panels, or more than 12 runs.
    ParameterError
        When `confidence_level` is not in (0, 1).

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
    interval = tables.name_interval(confidence_level)
    table = _collect_levels(curve, level)
    all_rows = _TABLE.collect_curve(table.drop("basis", "caveat", strict=False))
    unknown, rows = all_rows.filter(pl.col("level").is_null()), all_rows.drop_nulls("level")
    _TABLE.require_values(rows, ["accuracy"], "accuracy at a level", hint=tables.GRADE_HINT)
    apart = tables.find_run_columns(rows, {*CURVE_COLUMNS, "level"})
    rows = _TABLE.add_panels(rows, apart).drop(apart)
    reductions = rows["reduction"].drop_nulls().unique().to_list()
    rows = tables.add_line_names(rows, show_reduction=len(reductions) > 1)
    methods = rows.select("line", "selector").unique(maintain_order=True)
    budgets = (
        rows
        .drop_nulls("accuracy")
        .sort("budget")["of_budget"]
        .unique(maintain_order=True)
        .to_list()
    )
    levels = tables.sort_levels(rows["level"])
    n_bars = len(levels) * len(budgets) * methods.height
    if n_bars > _N_BARS_MAX:
        raise DataError(
            f"curve has {len(levels)} levels, {len(budgets)} budgets and {methods.height} methods, "
            f"{n_bars} bars side by side; a chart holds at most {_N_BARS_MAX}. Hint: filter the "
            "table to the budgets and selectors to compare."
        )
    fitting = min(_WIDTH // len(levels), _BAR * len(budgets) * (methods.height + 1))
    selectors = methods["selector"].to_list()
    colors = dict(zip(methods["line"], style.strategy_colors(selectors), strict=True))
    panels = [
        style.make_panel(
            [
                *_draw_bars(drawn, budgets, colors, i=i, n_levels=len(levels)),
                *_write_texts(
                    drawn,
                    shorten(tables.name_level(each), int((width or max(fitting, 60)) / 7)),
                    str(name) if i == 0 else "",
                ),
            ],
            width=width or max(fitting, 60),
            height=height,
        )
        for name in rows["panel"].unique(maintain_order=True)
        for i, each in enumerate(levels)
        for drawn in [rows.filter(panel=name, level=each)]
    ]
    n_unknown = max(unknown["n_problems"].fill_null(0).to_list(), default=0)
    top = style.heading(
        title or f"Accuracy by {tables.name_level_column(level)}",
        [
            f"one panel per {level.replace('_', ' ')}{tables.hardest_last(table)}",
            f"whiskers: {interval} over {units_of(rows.columns)}"
            if tables.has_interval(rows)
            else "",
            style.scores_from(reductions[0]) if len(reductions) == 1 else "",
        ],
        tables.describe_levels(table),
        [f"Left out: {counted([n_unknown], 'problem')} of unknown level" if n_unknown else ""],
        [tables.describe_left_out(rows, "Left out per level: ")],
        [tables.describe_undrawn_budgets(rows)],
    )
    if len(panels) == 1:
        return panels[0].properties(title=top)
    return alt.ConcatChart(
        concat=panels,
        columns=len(levels),
        spacing=alt.RowColnumber(row=_ROW_SPACING, column=14),
        bounds="flush",
        title=top,
        # If shared, the legend would be missing with that of the first panel.
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent")),
    )


def _collect_levels(curve: pl.DataFrame | pl.LazyFrame, level: str) -> pl.DataFrame:
    """Collect a curve by level, with the bars of costs at their nominal budgets."""
    table = _TABLE.collect_levels(curve, level)
    if "nominal_budget" not in table.columns:
        return table
    # The budgets that were spent differ from bar to bar, and would split the groups of bars.
    return table.with_columns(budget="nominal_budget", budget_unit=pl.lit("attempts"))


def _draw_bars(
    drawn: pl.DataFrame, budgets: list[str], colors: dict[str, str], *, i: int, n_levels: int
) -> list[alt.Chart]:
    """Draw the bars and whiskers of the level at a position in the row."""
    unit = drawn["budget_unit"][0]
    is_middle = i == (n_levels - 1) // 2
    y_axis = style.axis("Accuracy", format=".0%", tickCount=6)
    if i > 0:
        y_axis = style.axis(None, labels=False, ticks=False, domain=False, tickCount=6)
    y_scale = alt.Scale(domain=[0.0, 1.0], nice=False)
    squares = style.legend(symbolType="square", symbolSize=140, offset=12)
    base = alt.Chart(tables.inline_marks(drawn.drop_nulls("accuracy"))).encode(
        x=alt.X(
            "of_budget:N",
            sort=budgets,
            axis=style.axis(
                sentence(per_problem(unit)) if is_middle else None, labelAngle=0, grid=False
            ),
            scale=alt.Scale(domain=budgets, paddingInner=0.25, paddingOuter=0.15),
        ),
        xOffset=alt.XOffset("line:N", scale=alt.Scale(domain=list(colors))),
        tooltip=[
            alt.Tooltip("level:N", title="Level"),
            alt.Tooltip("line:N", title="Method"),
            alt.Tooltip("of_budget:N", title=f"Budget ({unit_name(unit)})"),
            alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
            alt.Tooltip("interval:N", title="Interval"),
            alt.Tooltip("n_problems:Q", title="Problems"),
            alt.Tooltip("left_out:N", title="Left out"),
        ],
    )
    return [
        # Light enough that whiskers show in front of the bars, and these thin enough not to hide them.
        base.mark_bar(opacity=0.8).encode(
            y=alt.Y("accuracy:Q", axis=y_axis, scale=y_scale, stack=None),
            color=style.color_by("line", colors, squares if i == n_levels - 1 else None),
        ),
        base.mark_rule(strokeWidth=0.8, opacity=0.7, color=style.INK, clip=True).encode(
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2=alt.Y2("ci_high:Q")
        ),
    ]


def _write_texts(drawn: pl.DataFrame, level: str, run: str) -> list[alt.Chart]:
    """Write the level, its number of problems and the run above a panel."""
    # Titles would be at different heights, because labels of axes and whiskers reach up.
    texts = [
        style.write_text(level, x=0, y=-30, style=style.PANEL_NAME),
        style.write_text(tables.count_problems(drawn), x=0, y=-14),
    ]
    if run:
        texts.append(
            style.write_text(shorten(run, _NAME_MAX), x=-60, y=-54, style=style.PANEL_NAME)
        )
    return texts
