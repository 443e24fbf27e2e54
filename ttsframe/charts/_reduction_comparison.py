"""The chart of reductions: how well each tells right attempts from wrong ones."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted, units_of
from ttsframe.charts import style, tables
from ttsframe.errors import DataError

__all__ = ["reduction_comparison"]

_TABLE: Final = tables.Argument(
    "metrics", "tts.verifier_metrics(trajectories, reductions=[...])", ("metrics",)
)
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
_WITHIN, _POOLED = style.FALLBACK_COLORS[0], style.FALLBACK_COLORS[3]
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

    The filled point is the AUROC within problems, which is what best-of-N can use; the open
    diamond, over all attempts together, also rewards knowing which problems are easy.

    Parameters
    ----------
    metrics
        Table that `verifier_metrics` makes, one row per (by, `reduction`); collected if lazy. Any
        column that is not part of its contract becomes panels.
    title, confidence_level, width
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside, the best reduction on top; a concatenation if there are
        several panels.

    Raises
    ------
    ColumnsError
        When the table is not one of metrics.
    DataError
        When the table has no rows, no AUROC in any row, more than 30 reductions, or more than 12
        panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> metrics = tts.verifier_metrics(run, reductions=["last", "min", "prod"])
    >>> charts.reduction_comparison(metrics).title.subtitle[0]
    'filled: within problems, mean of 40 problems with right and wrong attempts'
    """
    interval = tables.name_interval(confidence_level)
    rows = _TABLE.collect(metrics, texts=["reduction"], numbers=_NUMBERS)
    rows = _TABLE.add_panels(rows, tables.find_run_columns(rows, _KNOWN))
    drawn = tables.shorten_names(rows, "reduction").filter(
        pl.any_horizontal(pl.col("auroc", "auroc_within").is_not_null())
    )
    if drawn.is_empty():
        raise DataError(
            "metrics has no AUROC in any row: no run has both right and wrong attempts. Hint: "
            "is_correct grades attempts."
        )
    n_reductions = drawn["reduction"].n_unique()
    _TABLE.check_at_most(n_reductions, _N_REDUCTIONS_MAX, "reductions")
    best = drawn.group_by("reduction").agg(pl.col("auroc_within").mean())
    order = best.sort("auroc_within", "reduction", descending=[True, False], nulls_last=True)
    lowest = drawn.select(pl.min_horizontal("auroc", "auroc_within", "ci_low").min()).item()
    domain = (min(0.45, int(lowest * 20) / 20), 1.0)
    judged = counted([int(n) for n in drawn["n_judged"].to_list()], "problem")
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, order["reduction"].to_list(), domain),
        width=width,
        height=lambda panel: _ROW * panel["reduction"].n_unique() + 14,
        title=style.heading(
            title or "How well scores tell right attempts from wrong ones",
            [f"filled: within problems, mean of {judged} with right and wrong attempts"],
            [
                "open: all attempts together",
                f"line: {interval} over {units_of(rows.columns)}",
                "number: within problems",
            ],
            [tables.describe_undrawn_panels(rows, drawn, "not both right and wrong attempts")],
        ),
    )


def _draw_panel(
    panel: pl.DataFrame, order: list[str], domain: tuple[float, float]
) -> list[alt.Chart]:
    """Draw the line of a coin flip, and for each reduction an interval, a point and a diamond."""
    x_axis = style.axis("AUROC (0.5 = coin flip)", tickCount=6, format=".2f")

    def x(column: str) -> alt.X:
        scale = alt.Scale(domain=[*domain], nice=False)
        return alt.X(f"{column}:Q", axis=x_axis, scale=scale)

    y = alt.Y(
        "reduction:N",
        sort=[name for name in order if name in panel["reduction"]],
        axis=style.axis(
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
    tooltip = [
        alt.Tooltip("reduction:N", title="Reduction"),
        alt.Tooltip("auroc_within:Q", title="Within problems", format=".3f"),
        alt.Tooltip("ci_low:Q", title="from", format=".3f"),
        alt.Tooltip("ci_high:Q", title="to", format=".3f"),
        alt.Tooltip("auroc:Q", title="All together", format=".3f"),
        alt.Tooltip("n_judged:Q", title="Problems", format=","),
    ]
    coin = alt.Chart(tables.inline(pl.DataFrame({"x": [0.5]})))
    base = alt.Chart(tables.inline(panel.select("reduction", *_NUMBERS))).encode(y=y)
    return [
        coin.mark_rule(strokeDash=[5, 4], strokeWidth=1.4, color=style.MUTED).encode(x=x("x")),
        base.mark_rule(strokeWidth=2.2, color=_WITHIN).encode(
            x=x("ci_low"), x2=alt.X2("ci_high:Q")
        ),
        base.mark_point(filled=True, size=80, color=_WITHIN, opacity=1).encode(
            x=x("auroc_within"), tooltip=tooltip
        ),
        # Larger and in front, so that both are seen where they agree.
        base.mark_point(
            shape="diamond", size=190, strokeWidth=1.8, filled=False, color=_POOLED, opacity=1
        ).encode(x=x("auroc"), tooltip=tooltip),
        # Beside the panel, where no line runs through them.
        base.mark_text(
            align="left",
            baseline="middle",
            dx=10,
            font=style.FONT,
            fontSize=12,
            color=style.INK,
            clip=False,
        ).encode(x=alt.value("width"), text=alt.Text("auroc_within:Q", format=".3f")),
    ]
