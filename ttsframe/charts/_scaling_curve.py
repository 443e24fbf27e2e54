"""The chart of a curve: accuracy against the number of attempts, per selector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_references
from ttsframe._wording import CURVE_COLUMNS, percent, quantity_of, shorten
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import BudgetAxis, per_problem
from ttsframe.charts.lines import (
    DASHES,
    LinePlot,
    curve_tooltip,
    dash_by,
    share_domain,
    side_by_side,
)
from ttsframe.errors import ParameterError

__all__ = ["scaling_curve"]

_TABLE: Final = tables.Argument(
    "curve",
    "tts.scaling_curve(problems)",
    (
        "curve",
        "leveled",
        "frontier",
        "turns",
    ),
)
_N_REFERENCES_MAX: Final = 12
_MEANINGS: Final = {
    "accuracy": "oracle: right if any attempt within the budget is right",
    "agreement": "agreement: share of the attempts that gave the chosen answer",
}


def scaling_curve(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    references: Mapping[str, float] | None = None,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy against the budget, one line and interval band per selector.

    Every selector has its own color, the same in every chart, and its name at the end of its line.
    Majority vote is the baseline and the oracle the upper bound: the chart says if the table lacks
    one of them. Columns that tell runs apart, and more than three reductions, become panels on the
    same scales.

    Parameters
    ----------
    curve
        `curve`, one row per (by, `selector`, `reduction`, `budget`, `subsets`), with `accuracy`
        and, where known, `ci_low`, `ci_high` and the counts; collected if lazy. If it has
        `agreement` in place of `accuracy`, that is drawn. Any column that is not part of the
        contract of `curve` tells runs apart. A null budget is all attempts.
    references
        Accuracies to compare with, as fractions in [0, 1] by name, drawn as dashed lines.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Confidence level of the table's intervals, in (0, 1), which the subtitle names; None leaves
        it out.
    width, height
        Size of a panel in pixels, without its labels; None chooses a width at which the panels fit
        a page.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels. Lines of more
        than 64 budgets (fewer if there are more than 46 lines) are thinned evenly on the log scale,
        and the subtitle says so.

    Raises
    ------
    ColumnsError
        When the table is not a curve.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, several units
        of budget, a budget of 0, more than 20 lines in a panel, or more than 12 panels.
    ParameterError
        When a reference is not in [0, 1], there are more than 12 references, or `confidence_level`
        is not in (0, 1).

    Examples
    --------
    >>> import polars as pl
    >>> from ttsframe import charts
    >>> curve = pl.DataFrame({
    ...     "selector": ["majority_vote", "majority_vote", "oracle", "oracle"],
    ...     "reduction": pl.Series([None] * 4, dtype=pl.String),
    ...     "budget": [1, 4, 1, 4],
    ...     "accuracy": [0.4, 0.5, 0.4, 0.7],
    ...     "n_problems": [100] * 4,
    ... })
    >>> chart = charts.scaling_curve(curve, references={"greedy": 0.42})
    >>> print(chart.title.subtitle[0])
    100 problems · budgets up to 4 attempts · dashed: reference
    """
    interval = tables.name_interval(confidence_level)
    compared = _check_references(references or {})
    rows = _TABLE.collect_curve(curve)
    quantity = quantity_of(rows.columns)
    reductions = rows["reduction"].drop_nulls().unique(maintain_order=True).to_list()
    are_dashed = 1 < len(reductions) <= len(DASHES)
    if len(reductions) > len(DASHES):
        rows = _split_by_reduction(rows, reductions)
    apart = tables.find_run_columns(rows, CURVE_COLUMNS)
    rows = _TABLE.add_panels(rows, apart).drop(apart)
    rows = tables.add_line_names(rows, show_reduction=are_dashed)
    hint = "without gold answers, tts.build_report(trajectories) draws the agreement instead."
    known = _TABLE.require_values(rows, [quantity], quantity, hint=hint)
    drawn = _TABLE.thin_lines(known)
    budgets = BudgetAxis.of(drawn)
    colors = style.selector_colors(drawn["selector"].unique().sort().to_list())
    plot = LinePlot(
        x=budgets.x("x"),
        y=quantity,
        y_axis=style.axis(quantity.capitalize(), format=".0%", tickCount=6),
        domain=share_domain(drawn, quantity, list(compared.values())),
        color=style.color_by("selector", colors),
        tooltip=curve_tooltip(budgets, quantity),
        point_size=46 if budgets.is_sparse() else 16,
    )
    dashes = dict(zip(["no score", *reductions], [DASHES[0], *DASHES], strict=False))
    dash = dash_by("reads", dashes) if are_dashed else None

    def draw(panel: pl.DataFrame) -> list[alt.Chart]:
        placed = _place_points(panel)
        is_crowded = placed["line"].n_unique() > 4
        of_panel = plot._replace(band_opacity=0.08 if is_crowded else plot.band_opacity)
        layers = of_panel.layers(placed, dash=dash)
        if compared:
            layers.append(plot.rules(compared, "Reference"))
        labels = _label_ends(placed, plot, colors, budgets, compared)
        return [*layers, plot.name_ends(labels, height=height)]

    mark = "shaded" if len(budgets.budgets) > 1 else "bars"
    is_explained = quantity == "agreement" or "oracle" in colors
    n_budgets, n_drawn = known["budget"].n_unique(), len(budgets.budgets)
    expected = ("majority_vote", "oracle") if quantity == "accuracy" else ()
    absent = ", ".join(name for name in expected if name not in colors)
    return style.draw_panels(
        drawn,
        draw,
        width=width,
        height=height,
        title=style.heading(
            title or f"{quantity.capitalize()} by {per_problem(budgets.unit)}",
            [
                tables.count_problems(rows),
                budgets.largest,
                f"{mark}: {interval} over problems" if tables.has_interval(rows) else "",
                f"dashed: reference{'s' if len(compared) > 1 else ''}" if compared else "",
            ],
            [
                _MEANINGS[quantity] if is_explained else "",
                style.scores_from(reductions[0]) if len(reductions) == 1 else "",
                f"{n_drawn:,} of {n_budgets:,} budgets drawn" if n_drawn < n_budgets else "",
            ],
            [tables.describe_left_out(rows)],
            [f"Not in this table: {absent}" if absent else ""],
        ),
    )


def _check_references(references: Mapping[str, float]) -> dict[str, float]:
    """Return references as floats by name after checking that they can be drawn."""
    if len(references) > _N_REFERENCES_MAX:
        raise ParameterError(
            f"references holds {len(references)} lines, a chart holds at most {_N_REFERENCES_MAX}. "
            "Hint: name those to compare."
        )
    return check_references(references)


def _split_by_reduction(rows: pl.DataFrame, reductions: Sequence[str]) -> pl.DataFrame:
    """Give each reduction a panel that also has the selectors that read no score, to compare with."""
    return pl.concat([
        rows.filter(pl.col("reduction").fill_null(name) == name).with_columns(
            scores=pl.lit(style.scores_from(name))
        )
        for name in reductions
    ])


def _place_points(panel: pl.DataFrame) -> pl.DataFrame:
    """Place points at their budgets, or side by side where every line is a single point."""
    x = pl.col("budget").cast(pl.Float64)
    if panel["budget"].n_unique() == 1:
        return panel.sort("line").with_columns(x=x * 2.0 ** side_by_side("line"))
    return panel.with_columns(x=x)


def _label_ends(
    placed: pl.DataFrame,
    plot: LinePlot,
    colors: Mapping[str, str],
    budgets: BudgetAxis,
    references: Mapping[str, float],
) -> pl.DataFrame:
    """Return where each line and reference of a panel ends, with its name and value."""
    n_problems = pl.col("n_problems")
    is_fewer = n_problems < n_problems.max()
    of_fewer = pl.when(is_fewer).then(pl.format(" (of {})", n_problems)).fill_null("")
    label = pl.concat_str("line", pl.lit(" "), percent(pl.col(plot.y)), of_fewer)
    # A reference spans the panel, in which this run's lines may end before those of others.
    end = budgets.ends[1]
    last = max(placed["x"].to_list()) if len(budgets.budgets) > 1 else end
    names = plot.ends(placed, label, x=last, colors=colors, color_by="selector")
    values = pl.DataFrame({
        "name": [shorten(name, 40) for name in references],
        "y": list(references.values()),
    }).select(
        pl.lit(float(end)).alias("x"),
        "y",
        pl.concat_str("name", pl.lit(" "), percent(pl.col("y"))).alias("label"),
        pl.lit(style.MUTED).alias("color"),
    )
    return pl.concat([names, values]) if references else names
