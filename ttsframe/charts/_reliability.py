"""The chart of calibration: the share of right attempts against the score."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted, units_of
from ttsframe.charts import style, tables

__all__ = ["reliability"]

_TABLE: Final = tables.Argument(
    "curve",
    "tts.verifier.reliability_curve(trajectories)",
    ("reliability",),
    "scores outside 0 to 1 are no probabilities, so they have no calibration; "
    "charts.score_distribution draws any scores.",
)
_NUMBERS: Final = ("mean_score", "accuracy", "ci_low", "ci_high", "n_attempts", "n_problems")
_KNOWN: Final = frozenset({*_NUMBERS, "bin_low", "bin_high", "standard_error"})
_COLOR: Final = style.FALLBACK_COLORS[0]
_N_BINS_MAX: Final = 50


def reliability(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 340,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the share of right attempts against their score, bin by bin.

    If scores are calibrated probabilities, points lie on the diagonal. Below it the verifier is
    overconfident, above it underconfident.

    Parameters
    ----------
    curve
        Table that `reliability_curve` makes, one row per (by, `reduction`, `binning`) and bin;
        collected if lazy. Reductions, binnings and any column that is not part of its contract
        become panels.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels. More than 50
        bins of a curve are merged into at most 50, without intervals, and the subtitle says so.

    Raises
    ------
    ColumnsError
        When the table is not a reliability curve.
    DataError
        When the table has no rows (as for scores outside [0, 1]), no accuracy, or more than 12
        panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> chart = charts.reliability(tts.verifier.reliability_curve(run))
    >>> chart.title.subtitle[0]
    '400 attempts · size of a point: attempts in its bin · bars: confidence interval over problems'
    """
    interval = tables.name_interval(confidence_level)
    rows = _TABLE.collect(curve, texts=["reduction"], numbers=_NUMBERS)
    points = ["mean_score", "accuracy"]
    every = _TABLE.add_panels(rows, tables.find_run_columns(rows, _KNOWN))
    rows = _TABLE.require_values(every, points, "accuracy")
    n_bins = int(rows.group_by("panel").len()["len"].max() or 0)  # type: ignore[arg-type]
    drawn = _merge_bins(rows) if n_bins > _N_BINS_MAX else rows
    totals = drawn.group_by("panel").agg(pl.col("n_attempts").sum())["n_attempts"].to_list()
    merged = f"{n_bins:,} bins merged into {_N_BINS_MAX}, without intervals"
    return style.draw_panels(
        drawn,
        _draw_panel,
        width=width,
        height=height,
        title=style.heading(
            title or "How often attempts are right, by score",
            [
                counted([int(total) for total in totals], "attempt"),
                "size of a point: attempts in its bin",
                f"bars: {interval} over {units_of(every.columns)}"
                if tables.has_interval(drawn)
                else "",
            ],
            [merged if n_bins > _N_BINS_MAX else ""],
            [tables.describe_undrawn_panels(every, rows, "no graded attempt in any bin")],
        ),
    )


def _merge_bins(rows: pl.DataFrame) -> pl.DataFrame:
    """Merge neighboring bins until few enough are left."""
    n_bins = pl.len().over("panel").cast(pl.Int64)
    rank = pl.col("mean_score").rank("ordinal").over("panel").cast(pl.Int64) - 1
    weight = pl.col("n_attempts").cast(pl.Float64)
    means = [
        ((pl.col(name) * weight).sum() / weight.sum()).alias(name)
        for name in ("mean_score", "accuracy")
    ]
    return (
        rows
        .with_columns(part=rank * _N_BINS_MAX // n_bins)
        .group_by("panel", "part", maintain_order=True)
        .agg(*means, pl.col("n_attempts").sum(), pl.col("n_problems").max())
        .with_columns(ci_low=pl.lit(None, pl.Float64), ci_high=pl.lit(None, pl.Float64))
        .sort("panel", "part", maintain_order=True)
    )


def _draw_panel(panel: pl.DataFrame) -> list[alt.Chart]:
    """Draw the diagonal, intervals, the curve and its points."""
    x_axis = style.axis("Mean score of the attempts in the bin", tickCount=6, grid=False)
    y_axis = style.axis("Share of right attempts", format=".0%", tickCount=6)
    scale = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("mean_score:Q", axis=x_axis, scale=scale)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=scale)
    low, high = ((pl.col(name) * 100).round(1) for name in ("ci_low", "ci_high"))
    interval = pl.concat_str(low, pl.lit("% to "), high, pl.lit("%")).fill_null("unknown")
    base = alt.Chart(tables.inline(panel.with_columns(interval=interval))).encode(x=x)
    diagonal = pl.DataFrame({"mean_score": [0.0, 1.0], "accuracy": [0.0, 1.0]})
    # Beside the end of the diagonal, where no point is.
    note = pl.DataFrame({"mean_score": [1.0], "accuracy": [1.0], "label": ["calibrated"]})
    return [
        alt
        .Chart(tables.inline(diagonal))
        .mark_line(strokeDash=[5, 4], strokeWidth=1.4, color=style.MUTED)
        .encode(x=x, y=y),
        alt
        .Chart(tables.inline(note))
        .mark_text(
            align="left",
            baseline="middle",
            dx=6,
            clip=False,
            font=style.FONT,
            fontSize=12,
            color=style.MUTED,
        )
        .encode(x=x, y=y, text=alt.Text("label:N")),
        base
        .transform_filter("datum.ci_low !== null")
        .mark_rule(strokeWidth=1.8, color=_COLOR, opacity=0.65)
        .encode(y=alt.Y("ci_low:Q", axis=y_axis, scale=scale), y2=alt.Y2("ci_high:Q")),
        base.mark_line(strokeWidth=1.6, color=_COLOR).encode(y=y),
        base.mark_point(filled=True, opacity=1, color=_COLOR).encode(
            y=y,
            size=alt.Size("n_attempts:Q", scale=alt.Scale(range=[30, 320], zero=True), legend=None),
            tooltip=[
                alt.Tooltip("mean_score:Q", title="Mean score", format=".3f"),
                alt.Tooltip("accuracy:Q", title="Right", format=".1%"),
                alt.Tooltip("interval:N", title="Interval"),
                alt.Tooltip("n_attempts:Q", title="Attempts", format=","),
                alt.Tooltip("n_problems:Q", title="Problems", format=","),
            ],
        ),
    ]
