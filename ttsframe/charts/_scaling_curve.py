"""The chart of a curve: accuracy against the number of attempts, per selector."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import (
    CURVE_COLUMNS,
    counted,
    percent,
    quantity_of,
    shorten,
)
from ttsframe.charts.budgets import BudgetAxis, per_problem, unit_name
from ttsframe.charts.curve_rows import curve_rows, marks, named_lines, omitted, thinned
from ttsframe.charts.style import (
    MUTED,
    arrange,
    axis,
    end_labels,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    scores_from,
    selector_colours,
)
from ttsframe.errors import DataError, ParameterError

__all__ = ["scaling_curve"]

_N_DASHED_MAX: Final = 3
_N_REFERENCES_MAX: Final = 12
_SOLID: Final = [1, 0]
_DASHES: Final = (_SOLID, [6, 3], [2, 2])
_MEANINGS: Final = {
    "accuracy": "oracle: right if any attempt within the budget is",
    "agreement": "agreement: share of the attempts that gave the chosen answer",
}


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    quantity: str
    budgets: BudgetAxis
    domain: tuple[float, float]
    colours: dict[str, str]
    dashes: dict[str, list[int]]
    references: dict[str, float]
    width: int
    height: int


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

    Every selector in the table is drawn, each in its own colour, the same in every chart; a line is
    named at its end. Majority vote is the baseline and the oracle the bound: where the table lacks
    one of them, the chart says so. Columns that tell runs apart, and more than three reductions,
    become panels on the same scales.

    Parameters
    ----------
    curve
        `curve`, one row per (by, `selector`, `reduction`, `budget`, `subsets`), with `accuracy`
        and, as far as known, `ci_low`, `ci_high` and the counts; collected if lazy. With
        `agreement` in place of `accuracy`, that is drawn. Any column that is not part of the
        contract of `curve` tells runs apart. A null budget is all attempts.
    references
        Accuracies to compare with, as fractions in [0, 1] by name, drawn as dashed lines.
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
        The chart, its data inside; a concatenation where there are several panels. Lines of more
        than 64 budgets, fewer where there are more than 46 lines, are thinned evenly on the log
        scale, and the subtitle says so.

    Raises
    ------
    ColumnsError
        When the table is not a curve.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, several units
        of budget, a budget of 0, more than 20 lines in a panel, or too many groups.
    ParameterError
        When a reference is not within [0, 1], or there are more than 12.

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
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    lines = {name: float(value) for name, value in (references or {}).items()}
    for name, value in lines.items():
        if not 0.0 <= value <= 1.0:
            raise ParameterError(
                f"references[{name!r}] == {value}, must be an accuracy between 0 and 1. Hint: 42 % "
                f"is 0.42."
            )
    if len(lines) > _N_REFERENCES_MAX:
        raise ParameterError(
            f"references holds {len(lines)} lines, a chart holds at most {_N_REFERENCES_MAX}. Hint: "
            "name those to compare."
        )
    rows = curve_rows(curve)
    quantity = quantity_of(rows.columns)
    unit = rows["budget_unit"][0]
    reductions = rows["reduction"].drop_nulls().unique(maintain_order=True).to_list()
    are_dashed = 1 < len(reductions) <= _N_DASHED_MAX
    if len(reductions) > _N_DASHED_MAX:
        # A selector that reads no score stands in every panel: it is what the others are read against.
        rows = pl.concat([
            rows.filter(pl.col("reduction").fill_null(name) == name).with_columns(
                scores=pl.lit(scores_from(name))
            )
            for name in reductions
        ])
    apart = [name for name in rows.columns if name not in CURVE_COLUMNS]
    rows = panel_column(rows, apart, where="curve").drop(apart)
    rows = named_lines(rows, show_reduction=are_dashed)
    drawn = rows.drop_nulls(quantity)
    if drawn.is_empty():
        raise DataError(
            f"curve has no {quantity}: null in all {rows.height} rows. Hint: without gold answers, "
            "tts.build_report(trajectories) draws the agreement instead."
        )
    n_budgets = drawn["budget"].n_unique()
    drawn = thinned(drawn)
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    frame = _Frame(
        quantity=quantity,
        budgets=BudgetAxis.of(drawn, is_all=drawn["of_budget"][0] == "all"),
        domain=_domain(drawn, quantity, list(lines.values())),
        colours=selector_colours(drawn["selector"].unique().sort().to_list()),
        dashes=dict(zip(reductions, _DASHES, strict=False)) if are_dashed else {},
        references=lines,
        width=panel_width(width, len(panels)),
        height=height,
    )
    return arrange(
        [_panel(panel, str(name), frame) for (name,), panel in panels.items()],
        title=heading(
            title or f"{quantity.capitalize()} by {per_problem(unit)}",
            _subtitle(rows, frame, n_budgets=n_budgets, confidence_level=confidence_level),
        ),
    )


def _domain(drawn: pl.DataFrame, quantity: str, references: list[float]) -> tuple[float, float]:
    """Return the axis from the lowest to the highest mark, on multiples of 5 %."""
    marks = [
        *references,
        *drawn.select(pl.min_horizontal(quantity, "ci_low").min()).row(0),
        *drawn.select(pl.max_horizontal(quantity, "ci_high").max()).row(0),
    ]
    low = max(0, floor(min(marks) * 20 - 0.2))
    high = min(20, ceil(max(marks) * 20 + 0.2))
    return low / 20, high / 20


def _subtitle(
    rows: pl.DataFrame, frame: _Frame, *, n_budgets: int, confidence_level: float | None
) -> list[str]:
    """Say what is drawn, over how many problems, and what is not."""
    facts = []
    if rows["n_problems"].null_count() < rows.height:
        facts.append(counted(rows["n_problems"].drop_nulls().to_list(), "problem"))
    facts.append(frame.budgets.most)
    if rows["ci_low"].null_count() < rows.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        mark = "shaded" if len(frame.budgets.budgets) > 1 else "bars"
        facts.append(f"{mark}: {level}confidence interval over problems")
    if frame.references:
        facts.append("dashed: reference")
    subtitle = [" · ".join(facts)]
    reductions = rows["reduction"].drop_nulls().unique(maintain_order=True).to_list()
    explained = [_MEANINGS[frame.quantity]] if _is_explained(frame) else []
    if len(reductions) == 1:
        explained.append(scores_from(reductions[0]))
    if n_budgets > (n_drawn := len(frame.budgets.budgets)):
        explained.append(f"{n_drawn:,} of {n_budgets:,} budgets drawn")
    subtitle += [" · ".join(explained)] if explained else []
    if what := omitted(rows):
        subtitle.append(f"Left out: {what}")
    absent = [
        name
        for name in ("majority_vote", "oracle")
        if name not in frame.colours and frame.quantity == "accuracy"
    ]
    if absent:
        subtitle.append(f"Not in this table: {', '.join(absent)}")
    return subtitle


def _is_explained(frame: _Frame) -> bool:
    """Return whether the chart shows what the second line explains."""
    return frame.quantity == "agreement" or "oracle" in frame.colours


def _panel(drawn: pl.DataFrame, name: str, frame: _Frame) -> alt.LayerChart:
    """Draw one panel: bands, lines, points, references, and the names at the lines' ends."""
    placed = _placed(drawn)
    x = frame.budgets.x("x")
    y_scale = alt.Scale(domain=list(frame.domain), nice=False, zero=False)
    y_axis = axis(frame.quantity.capitalize(), format=".0%", tickCount=6)
    colour = alt.Color(
        "selector:N",
        scale=alt.Scale(domain=list(frame.colours), range=list(frame.colours.values())),
        legend=None,
    )
    base = alt.Chart(marks(placed)).encode(x=x, color=colour, detail="line:N")
    ends_of = {"y": alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), "y2": alt.Y2("ci_high:Q")}
    middle = alt.Y(f"{frame.quantity}:Q", axis=y_axis, scale=y_scale)
    tooltip = [
        alt.Tooltip("line:N", title="Selector"),
        alt.Tooltip("reads:N", title="Step scores"),
        alt.Tooltip("of_budget:N", title=f"Budget ({unit_name(frame.budgets.unit)})"),
        alt.Tooltip(f"{frame.quantity}:Q", title=frame.quantity.capitalize(), format=".1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("n_problems:Q", title="Problems"),
        alt.Tooltip("left_out:N", title="Left out"),
    ]
    dash = alt.StrokeDash(
        "reads:N",
        scale=alt.Scale(
            domain=["no score", *(frame.dashes or placed["reads"].unique().sort())],
            range=[_SOLID, *frame.dashes.values()],
        ),
        legend=None,
    )
    is_alone = alt.datum.n_points == 1
    layers: list[alt.Chart] = [
        base
        .transform_filter(~is_alone)
        .mark_area(opacity=0.14 if placed["line"].n_unique() <= 4 else 0.08)
        .encode(**ends_of),
        base.transform_filter(is_alone).mark_rule(strokeWidth=2).encode(**ends_of),
        base.mark_line(strokeWidth=2.2).encode(y=middle, strokeDash=dash),
        base.mark_point(
            filled=True, size=46 if frame.budgets.is_sparse() else 16, opacity=1
        ).encode(y=middle, tooltip=tooltip),
    ]
    if frame.references:
        layers.append(_references(frame, y_axis, y_scale))
    layers.append(end_labels(_ends(placed, frame), x=x, domain=frame.domain, height=frame.height))
    chart = panel_of(layers, width=frame.width, height=frame.height)
    return chart.properties(title=panel_heading(name)) if name else chart


def _ends(placed: pl.DataFrame, frame: _Frame) -> pl.DataFrame:
    """Return where each line and reference of a panel ends, with its name and value."""
    budgets = frame.budgets.budgets
    is_line = placed["x"].n_unique() > 1 and len(budgets) > 1
    n_problems = pl.col("n_problems")
    is_fewer = n_problems < n_problems.max()
    lines = (
        placed
        .sort("budget")
        .group_by("line", "selector", maintain_order=True)
        .agg(pl.col(frame.quantity).last().alias("y"), n_problems.last())
        .select(
            "y",
            pl.concat_str(
                "line",
                pl.lit(" "),
                percent(pl.col("y")),
                pl.when(is_fewer).then(pl.format(" (of {})", n_problems)).fill_null(""),
            ).alias("label"),
            pl.col("selector").replace_strict(frame.colours).alias("colour"),
        )
    )
    values = pl.Series("y", list(frame.references.values()), dtype=pl.Float64)
    references = pl.DataFrame({
        "y": values,
        "label": pl.Series([shorten(str(name), 40) for name in frame.references], dtype=pl.String),
    }).with_columns(pl.concat_str("label", pl.lit(" "), percent(pl.col("y"))), colour=pl.lit(MUTED))
    beside = budgets[0] * 2
    # A reference spans the panel, in which this run's lines may end before those of others.
    of_lines, of_references = (placed["x"].max(), budgets[-1]) if is_line else (beside, beside)
    return pl.concat([
        lines.with_columns(x=pl.lit(of_lines, pl.Float64)),
        references.with_columns(x=pl.lit(of_references, pl.Float64)),
    ])


def _placed(drawn: pl.DataFrame) -> pl.DataFrame:
    """Add where a point is drawn: at its budget, or beside it where every line is one point."""
    counted_points = drawn.with_columns(n_points=pl.len().over("line").cast(pl.Int64))
    if drawn["budget"].n_unique() > 1:
        return counted_points.with_columns(x=pl.col("budget").cast(pl.Float64))
    n_lines = drawn.height
    offset = (pl.int_range(pl.len()) - (n_lines - 1) / 2) / n_lines
    return counted_points.sort("line").with_columns(x=pl.col("budget") * 2.0**offset)


def _references(frame: _Frame, y_axis: alt.Axis, y_scale: alt.Scale) -> alt.Chart:
    """Draw the references as dashed lines across the panel."""
    table = pl.DataFrame({
        "name": [str(name) for name in frame.references],
        "accuracy": list(frame.references.values()),
    })
    chart: alt.Chart = (
        alt
        .Chart(inline(table))
        .mark_rule(strokeDash=[4, 4], strokeWidth=1.4, color=MUTED)
        .encode(
            y=alt.Y("accuracy:Q", axis=y_axis, scale=y_scale),
            tooltip=[
                alt.Tooltip("name:N", title="Reference"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
            ],
        )
    )
    return chart
