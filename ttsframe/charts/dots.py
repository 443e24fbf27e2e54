"""One budget: a row for each line, with its value, its interval and the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import polars as pl

from ttsframe._wording import interval, percent, shorten
from ttsframe.charts import style
from ttsframe.charts.budgets import BudgetAxis, count_units
from ttsframe.charts.lines import LinePlot
from ttsframe.charts.tables import inline, inline_marks

ROW_HEIGHT: Final = 30


def draw_dots(
    panel: pl.DataFrame,
    plot: LinePlot,
    budgets: BudgetAxis,
    *,
    references: Mapping[str, float],
) -> list[alt.Chart]:
    """Draw the lines of a panel, which have one budget, as rows from the highest to the lowest."""
    ends = interval().str.replace_all("%", "", literal=True)
    value, n_problems = pl.col(plot.y), pl.col("n_problems")
    of_fewer = pl.when(n_problems < n_problems.max()).then(pl.format(" of {}", n_problems))
    rows = panel.with_columns(
        numbers=pl.concat_str(
            percent(value), pl.format(" ({})", ends).fill_null(""), of_fewer.fill_null("")
        )
    ).sort(plot.y, "line", descending=[True, False])
    compared = pl.DataFrame(
        {
            "line": [shorten(name, 40) for name in references],
            "x": list(references.values()),
        },
        schema={"line": pl.String, "x": pl.Float64},
    ).with_columns(numbers=percent(pl.col("x")))
    order = [*rows["line"], *compared["line"]]
    attempts = "all attempts"
    if not budgets.is_all:
        attempts = f"{count_units(budgets.budgets[0], budgets.unit)} per problem"
    axis = style.axis(
        f"{plot.y.capitalize()} with {attempts}",
        format=".0%",
        tickCount=6,
        labelOverlap="greedy",
        labelSeparation=6,
    )
    names = style.axis(None, grid=False, ticks=False, domain=False, labelPadding=10, labelLimit=260)

    def x(column: str) -> alt.X:
        scale = alt.Scale(domain=[*plot.domain], nice=False)
        return alt.X(f"{column}:Q", axis=axis, scale=scale)

    y = alt.Y("line:N", sort=order, axis=names, scale=alt.Scale(domain=order))
    base = alt.Chart(inline_marks(rows)).encode(y=y, color=plot.color)
    text: dict[str, Any] = {
        "align": "left",
        "baseline": "middle",
        "dx": 10,
        "font": style.FONT,
        "fontSize": 12,
    }
    layers = [
        base.mark_rule(strokeWidth=2).encode(x=x("ci_low"), x2=alt.X2("ci_high:Q")),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=x(plot.y), tooltip=list(plot.tooltip)
        ),
        base.mark_text(**text, clip=False).encode(x=alt.value("width"), text="numbers:N"),
    ]
    if references:
        lines = alt.Chart(inline(compared)).encode(y=y)
        layers += [
            alt
            .Chart(inline(compared.select("x")))
            .mark_rule(strokeDash=[4, 4], strokeWidth=1.4, color=style.MUTED)
            .encode(x=x("x")),
            lines.mark_text(**text, clip=False, color=style.MUTED).encode(
                x=alt.value("width"), text="numbers:N"
            ),
        ]
    return layers
