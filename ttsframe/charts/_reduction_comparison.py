"""The chart of reductions: how well each tells right attempts from wrong ones."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import counted
from ttsframe.charts.style import (
    FONT,
    INK,
    MUTED,
    arrange,
    axis,
    check_at_most,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
    with_short_names,
)
from ttsframe.errors import DataError

__all__ = ["reduction_comparison"]

_HINT: Final = "tts.verifier_metrics(trajectories, reductions=[...]) makes this table."
_NUMBERS: Final = ("auroc", "auroc_within", "ci_low", "ci_high", "n_judged")
_KNOWN: Final = frozenset({
    *_NUMBERS,
    "reduction",
    "standard_error",
    "average_precision",
    "brier",
    "ece_equal_width",
    "ece_equal_mass",
    "calibration_status",
    "n_attempts",
    "n_right",
    "n_out_of_range",
    "n_unscored",
    "n_ungraded",
    "n_problems",
    "n_all_right",
    "n_all_wrong",
})
_MARKS: Final = {"within problems": "#0067a5", "all attempts together": "#b84a00"}
_ROW: Final = 30
_N_REDUCTIONS_MAX: Final = 30


def reduction_comparison(
    metrics: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how well each reduction of the step scores tells right attempts from wrong ones.

    The filled point is the area under the ROC curve within problems, which is what best-of-N can
    use; the open diamond, over all attempts together, also counts knowing which problems are easy.

    Parameters
    ----------
    metrics
        Table that `verifier_metrics` makes, one row per (by, `reduction`); collected if lazy. Any
        column that is not part of its contract becomes panels.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Coverage that the intervals of the table were made with, for the subtitle only; None leaves
        it out.
    width
        Width of a panel in pixels, without its labels; None is one at which the panels fit a page.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart, its data inside, the best reduction on top; a concatenation where there are
        several panels.

    Raises
    ------
    ColumnsError
        When the table is not one of metrics.
    DataError
        When the table has no rows, no area in any row, more than 30 reductions, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> metrics = tts.verifier_metrics(run, reductions=["last", "min", "prod"])
    >>> charts.reduction_comparison(metrics).title.subtitle[0]
    'filled: within problems, mean of 40 problems with right and wrong attempts'
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    rows = tidy(metrics, where="metrics", texts=["reduction"], numbers=_NUMBERS, hint=_HINT)
    apart = [name for name in rows.columns if name not in _KNOWN]
    rows = with_short_names(rows, ["reduction"])
    drawn = panel_column(rows, apart, where="metrics").filter(
        pl.any_horizontal(pl.col("auroc", "auroc_within").is_not_null())
    )
    if drawn.is_empty():
        raise DataError(
            "metrics has no area in any row: no run has both right and wrong attempts. Hint: "
            "is_correct grades attempts."
        )
    check_at_most(
        drawn["reduction"].n_unique(),
        _N_REDUCTIONS_MAX,
        "reductions",
        where="metrics",
        hint="filter the table to those to compare.",
    )
    best = drawn.group_by("reduction").agg(pl.col("auroc_within").mean())
    order = best.sort("auroc_within", "reduction", descending=[True, False], nulls_last=True)
    lowest = drawn.select(pl.min_horizontal("auroc", "auroc_within", "ci_low").min()).item()
    domain = (min(0.45, int(lowest * 20) / 20), 1.0)
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    judged = counted([int(n) for n in drawn["n_judged"].to_list()], "problem")
    level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
    return arrange(
        [
            _panel(
                panel,
                str(name),
                order=order["reduction"].to_list(),
                domain=domain,
                width=panel_width(width, len(panels)),
            )
            for (name,), panel in panels.items()
        ],
        title=heading(
            title or "How well scores tell right attempts from wrong ones",
            [
                f"filled: within problems, mean of {judged} with right and wrong attempts",
                f"open: all attempts together · line: {level}confidence interval over problems",
            ],
        ),
    )


def _panel(
    rows: pl.DataFrame, name: str, *, order: list[str], domain: tuple[float, float], width: int
) -> alt.LayerChart:
    """Draw one panel: a line of the table per reduction."""
    shown = [each for each in order if each in rows["reduction"]]
    y = alt.Y(
        "reduction:N",
        sort=shown,
        axis=axis(
            "Reduction",
            grid=False,
            ticks=False,
            domain=False,
            labelPadding=14,
            titleAngle=0,
            titleAnchor="end",
            titleAlign="right",
            titleBaseline="bottom",
            titleX=-8,
            titleY=-6,
        ),
    )
    scale = alt.Scale(domain=list(domain), nice=False)
    x_axis = axis("Area under the ROC curve (0.5 = coin flip)", tickCount=6, format=".2f")
    base = alt.Chart(inline(rows.select("reduction", *_NUMBERS))).encode(y=y)
    coin = alt.Chart(inline(pl.DataFrame({"x": [0.5]})))
    within = alt.X("auroc_within:Q", axis=x_axis, scale=scale)
    tooltip = [
        alt.Tooltip("reduction:N", title="Reduction"),
        alt.Tooltip("auroc_within:Q", title="Within problems", format=".3f"),
        alt.Tooltip("ci_low:Q", title="from", format=".3f"),
        alt.Tooltip("ci_high:Q", title="to", format=".3f"),
        alt.Tooltip("auroc:Q", title="All together", format=".3f"),
        alt.Tooltip("n_judged:Q", title="Problems judged", format=","),
    ]
    colours = list(_MARKS.values())
    layers = [
        coin.mark_rule(strokeDash=[5, 4], strokeWidth=1.4, color=MUTED).encode(
            x=alt.X("x:Q", axis=x_axis, scale=scale)
        ),
        base.mark_rule(strokeWidth=2.2, color=colours[0]).encode(
            x=alt.X("ci_low:Q", axis=x_axis, scale=scale), x2="ci_high:Q"
        ),
        base.mark_point(filled=True, size=80, color=colours[0], opacity=1).encode(
            x=within, tooltip=tooltip
        ),
        # Larger and in front, so that both are seen where they agree.
        base.mark_point(
            shape="diamond", size=190, strokeWidth=1.8, filled=False, color=colours[1], opacity=1
        ).encode(x=alt.X("auroc:Q", axis=x_axis, scale=scale), tooltip=tooltip),
        base.mark_text(dy=-13, font=FONT, fontSize=11, color=INK).encode(
            x=within, text=alt.Text("auroc_within:Q", format=".3f")
        ),
    ]
    chart = panel_of(layers, width=width, height=_ROW * len(shown) + 14)
    return chart.properties(title=panel_heading(name)) if name else chart
