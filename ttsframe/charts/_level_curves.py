"""The chart of accuracy against the budget at each level of difficulty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._wording import CURVE_COLUMNS, shorten
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import BudgetAxis, per_problem
from ttsframe.charts.lines import (
    DASHES,
    LinePlot,
    choose_bands,
    curve_tooltip,
    dash_by,
    describe_bands,
    find_equal_pieces,
)

__all__ = ["level_curves"]

_TABLE: Final = tables.Argument("curve", "tts.level_curve(problems, levels=levels)", ("leveled",))
_LEVEL_COLUMNS: Final = ("level", "basis", "caveat")
_N_LEVELS_MAX: Final = 10
_WIDTH: Final = 700
_WIDE: Final = 116
"""Width from which on a panel has room to say that its level is the hardest."""
_INDEPENDENT: Final = alt.Resolve(
    scale=alt.ScaleResolveMap(color="independent", shape="independent", strokeDash="independent")
)
"""If shared, the legend would be missing with that of the first panel."""


def level_curves(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    level: str = "level",
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 220,
) -> alt.VConcatChart:
    """Draw accuracy against the budget in a panel for each level of difficulty, easiest first.

    How much more attempts help differs by level: easy problems are solved at once, hopeless ones
    never. All panels have the same axes; a level without problems has an empty panel that says so.
    Of more than two lines, only majority vote and the one that ends highest have bands.

    Parameters
    ----------
    curve
        Table that `level_curve`, or `cost_curve` with levels, makes: one row per (by, `level`,
        `selector`, `reduction`, `budget`, `subsets`); collected if lazy. Columns that tell runs
        apart become rows of panels. With another `level`, any curve that has this column, such as
        ``tts.scaling_curve(problems, by="subject")``.
    level
        Column of the levels, numbers or texts: own levels, or subjects, each of which has a panel.
    title, confidence_level
        As in `scaling_curve`.
    width, height
        Width of a row of panels and height of a panel in pixels, without labels; None chooses a
        width that fits a page.

    Returns
    -------
    alt.VConcatChart
        The chart with its data inside; lines are thinned as in `scaling_curve`.

    Raises
    ------
    ColumnsError
        When the table is not a curve by level.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, several units
        of budget, a budget of 0, more than 10 levels, 3 reductions or 20 lines in a panel, or more
        than 12 runs.
    ParameterError
        When `confidence_level` is not in (0, 1).

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
    levels: estimated on the other half of the attempts
    """
    interval = tables.name_interval(confidence_level)
    table = _TABLE.collect_levels(curve, level)
    levels = tables.sort_levels(table["level"])
    # A level without problems has no budgets over costs, and still has its panel.
    spent = table.filter(pl.col("budget").is_not_null() | pl.col("budget").is_null().all())
    rows = _TABLE.collect_curve(spent)
    reductions = rows["reduction"].drop_nulls().unique(maintain_order=True).to_list()
    _TABLE.check_at_most(len(levels), _N_LEVELS_MAX, "levels")
    _TABLE.check_at_most(len(reductions), len(DASHES), "reductions")
    apart = tables.find_run_columns(rows, {*CURVE_COLUMNS, *_LEVEL_COLUMNS})
    rows = _TABLE.add_panels(rows, apart).drop(apart)
    rows = tables.add_line_names(rows, show_reduction=len(reductions) > 1)
    known = _TABLE.require_values(rows, ["accuracy"], "accuracy", hint=tables.GRADE_HINT)
    drawn = _TABLE.thin_lines(known, panel=["panel", "level"])
    drawn = drawn.with_columns(x=pl.col("budget").cast(pl.Float64))
    cells = drawn.with_columns(panel=pl.format("{} {}", "panel", "level"))
    bands = choose_bands(cells, first=["majority vote"], last=["oracle"])
    unscored = {"no score": DASHES[0]} if "no score" in set(known["reads"]) else {}
    panels = _Panels(
        budgets=BudgetAxis.of(drawn),
        levels=levels,
        colors=style.selector_colors(drawn["selector"].unique().sort().to_list()),
        dashes=unscored | dict(zip(reductions, DASHES, strict=False)),
        width=(width or _WIDTH) // max(len(levels), 2),
        height=height,
        bands=bands,
        is_ranked=tables.hardest_last(table) != "",
    )
    filled = rows.filter(pl.col("n_problems") > 0)
    return alt.VConcatChart(
        vconcat=[
            _draw_row(drawn.filter(panel=name), str(name), panels)
            for name in rows["panel"].unique(maintain_order=True)
        ],
        spacing=24,
        title=style.heading(
            title
            or f"Accuracy by {per_problem(panels.budgets.unit)} for each "
            f"{tables.name_level_column(level)}",
            [
                f"{tables.count_problems(filled)} per {level.replace('_', ' ')}"
                if filled.height
                else "",
                panels.budgets.largest,
                describe_bands(drawn, bands, interval),
            ],
            [
                *tables.describe_levels(rows),
                "easiest level first" if panels.is_ranked and panels.width < _WIDE else "",
                style.scores_from(reductions[0]) if len(reductions) == 1 else "",
            ],
            [tables.describe_left_out(rows, "Left out per level: ")],
            [_describe_equal(drawn)],
            [tables.describe_undrawn_budgets(rows)],
            [tables.describe_undrawn_panels(rows, known, "no accuracy at any level")],
        ),
    )


def _describe_equal(drawn: pl.DataFrame) -> str:
    """Say that lines lie on each other in some panels, whose names would be too many."""
    parts = drawn.partition_by("panel", "level")
    is_equal = any(not find_equal_pieces(part).is_empty() for part in parts)
    return "equal lines are drawn wide under narrow" if is_equal else ""


class _Panels(NamedTuple):
    """What the panels of all levels and runs share."""

    budgets: BudgetAxis
    levels: list[float | str | None]
    colors: dict[str, str]
    dashes: dict[str, list[int]]
    width: int
    height: int
    bands: list[str]
    is_ranked: bool
    """Whether the first level is the easiest and the last the hardest."""

    def name(self, level: float | str | None) -> str:
        """Return the name of a level."""
        known = [each for each in self.levels if each is not None]
        ends = {known[0]: " (easiest)", known[-1]: " (hardest)"} if len(known) > 1 else {}
        end = ends.get(level, "") if self.is_ranked and level is not None else ""
        n_max = max(int(self.width / 7), 8)
        return f"{shorten(tables.name_level(level), n_max)}{end if self.width >= _WIDE else ''}"

    def plot(self, i: int) -> LinePlot:
        """Return how to draw the lines of the level at a position in the row."""
        is_first, is_last = i == 0, i == len(self.levels) - 1
        is_middle = i == (len(self.levels) - 1) // 2
        return LinePlot(
            x=self.budgets.x("x", n_ticks_max=6, has_title=is_middle),
            y_axis=style.axis(
                "Accuracy" if is_first else None, format=".0%", tickCount=6, labels=is_first
            ),
            domain=(0.0, 1.0),
            color=style.color_by(
                "selector", self.colors, _make_legend(symbolSize=90) if is_last else None
            ),
            tooltip=[alt.Tooltip("level:N", title="Level"), *curve_tooltip(self.budgets)],
            band_opacity=0.12,
            point_size=34,
        )

    def layers(self, drawn: pl.DataFrame, i: int) -> Sequence[alt.Chart]:
        """Draw the lines of the level at a position in the row."""
        is_last = i == len(self.levels) - 1
        has_dashes = is_last and len(self.dashes.keys() - {"no score"}) > 1
        stroke = _make_legend(symbolType="stroke", symbolStrokeWidth=3, symbolSize=180)
        names = list(self.colors)
        return self.plot(i).layers(
            drawn,
            has_band=pl.col("line").is_in(self.bands),
            dash=dash_by("reads", self.dashes, stroke if has_dashes else None),
            # With the field and domain of the colors, so both have one legend.
            shape=style.shape_by(
                "selector",
                style.assign_shapes(names),
                _make_legend(symbolSize=90) if is_last else None,
            ),
        )


def _make_legend(**options: Any) -> alt.Legend:  # noqa: ANN401  (Altair's own options)
    """Style a legend whose names have spaces for underscores."""
    return style.legend(labelExpr="replace(datum.label, /_/g, ' ')", offset=12, **options)


def _draw_row(rows: pl.DataFrame, name: str, panels: _Panels) -> alt.HConcatChart:
    """Draw the levels of one run side by side."""
    charts = []
    for i, level in enumerate(panels.levels):
        drawn = rows.filter(pl.col("level").eq_missing(pl.lit(level)))
        # A title would be higher where points reach beyond the panel.
        texts = [style.write_text(panels.name(level), x=0, y=-14, style=style.PANEL_NAME)]
        if drawn.is_empty():
            x, y = panels.width / 2, panels.height / 2
            texts.append(style.write_text("no problems", x=x, y=y, align="center"))
        layers = [*panels.layers(drawn, i), *texts]
        charts.append(style.make_panel(layers, width=panels.width, height=panels.height))
    chart = alt.HConcatChart(hconcat=charts, spacing=16, bounds="flush", resolve=_INDEPENDENT)
    return chart.properties(title=style.panel_heading(name)) if name else chart
