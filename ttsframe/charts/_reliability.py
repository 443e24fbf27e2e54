"""The chart of calibration: the share of right attempts against the score."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import counted
from ttsframe.charts.style import (
    FONT,
    MUTED,
    arrange,
    axis,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
)
from ttsframe.errors import DataError

__all__ = ["reliability"]

_HINT: Final = "tts.verifier.reliability_curve(trajectories) makes this table."
_NUMBERS: Final = ("mean_score", "accuracy", "ci_low", "ci_high", "n_attempts", "n_problems")
_KNOWN: Final = frozenset({*_NUMBERS, "bin_low", "bin_high", "standard_error"})
_COLOUR: Final = "#0067a5"
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

    Read as probabilities, scores are right as often as they say: points lie on the diagonal. Below
    it the verifier is too sure, above it not sure enough.

    Parameters
    ----------
    curve
        Table that `reliability_curve` makes, one row per (by, `reduction`, `binning`) and bin;
        collected if lazy. Reductions, binnings and any column that is not part of its contract
        become panels.
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
        The chart, its data inside; a concatenation where there are several panels. More than 50
        bins of a curve are joined to at most 50, without intervals, and the subtitle says so.

    Raises
    ------
    ColumnsError
        When the table is not a reliability curve.
    DataError
        When the table has no rows, as that of scores outside [0, 1], or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> chart = charts.reliability(tts.verifier.reliability_curve(run))
    >>> chart.title.subtitle[0]
    '400 attempts · area of a point: its attempts · lines: confidence interval over problems'
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    rows = tidy(curve, where="curve", texts=["reduction"], numbers=_NUMBERS, hint=_HINT)
    drawn = rows.drop_nulls(["mean_score", "accuracy"])
    if drawn.is_empty():
        raise DataError(f"curve has no accuracy in any row. Hint: {_HINT}")
    apart = [name for name in rows.columns if name not in _KNOWN]
    drawn = panel_column(drawn, apart, where="curve")
    n_bins = drawn.group_by("panel").len()["len"].to_list()
    points = _joined(drawn) if max(n_bins) > _N_BINS_MAX else drawn
    panels = points.partition_by("panel", as_dict=True, maintain_order=True)
    subtitle = _subtitle(points, confidence_level=confidence_level)
    if max(n_bins) > _N_BINS_MAX:
        subtitle.append(f"{max(n_bins):,} bins joined to {_N_BINS_MAX}, without intervals")
    return arrange(
        [
            _panel(panel, str(name), width=panel_width(width, len(panels)), height=height)
            for (name,), panel in panels.items()
        ],
        title=heading(title or "How often attempts are right, by their score", subtitle),
    )


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Join neighbouring bins until few enough are left."""
    size = pl.len().over("panel").cast(pl.Int64)
    place = pl.col("mean_score").rank("ordinal").over("panel").cast(pl.Int64) - 1
    weight = pl.col("n_attempts").cast(pl.Float64)
    means = [
        ((pl.col(name) * weight).sum() / weight.sum()).alias(name)
        for name in ("mean_score", "accuracy")
    ]
    return (
        rows
        .with_columns(part=place * _N_BINS_MAX // size)
        .group_by("panel", "part", maintain_order=True)
        .agg(*means, pl.col("n_attempts").sum(), pl.col("n_problems").max())
        .with_columns(ci_low=pl.lit(None, pl.Float64), ci_high=pl.lit(None, pl.Float64))
        .sort("panel", "part", maintain_order=True)
    )


def _subtitle(rows: pl.DataFrame, *, confidence_level: float | None) -> list[str]:
    """Say what is drawn."""
    totals = rows.group_by("panel").agg(pl.col("n_attempts").sum())["n_attempts"].to_list()
    facts = [counted([int(total) for total in totals], "attempt"), "area of a point: its attempts"]
    if rows["ci_low"].null_count() < rows.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        facts.append(f"lines: {level}confidence interval over problems")
    return [" · ".join(facts)]


def _panel(rows: pl.DataFrame, name: str, *, width: int, height: int) -> alt.LayerChart:
    """Draw one panel: the diagonal, intervals, the curve and its points."""
    whole = alt.Scale(domain=[0, 1], nice=False)
    x_axis = axis("Mean score of the attempts in the bin", tickCount=6, grid=False)
    y_axis = axis("Attempts that are right", format=".0%", tickCount=6)
    drawn = rows.with_columns(
        interval=pl.concat_str(
            (pl.col("ci_low") * 100).round(1),
            pl.lit("% to "),
            (pl.col("ci_high") * 100).round(1),
            pl.lit("%"),
        ).fill_null("unknown"),
    )
    x = alt.X("mean_score:Q", axis=x_axis, scale=whole)
    y = alt.Y("accuracy:Q", axis=y_axis, scale=whole)
    diagonal = pl.DataFrame({"mean_score": [0.0, 1.0], "accuracy": [0.0, 1.0]})
    note = pl.DataFrame({"mean_score": [0.93], "accuracy": [0.93], "label": ["calibrated"]})
    base = alt.Chart(inline(drawn)).encode(x=x)
    layers = [
        alt
        .Chart(inline(diagonal))
        .mark_line(strokeDash=[5, 4], strokeWidth=1.4, color=MUTED)
        .encode(x=x, y=y),
        alt
        .Chart(inline(note))
        .mark_text(align="right", baseline="middle", dx=-10, font=FONT, fontSize=12, color=MUTED)
        .encode(x=x, y=y, text="label:N"),
        base
        .transform_filter(alt.datum.ci_low != None)  # noqa: E711  (Vega's comparison)
        .mark_rule(strokeWidth=1.8, color=_COLOUR, opacity=0.65)
        .encode(y=alt.Y("ci_low:Q", axis=y_axis, scale=whole), y2="ci_high:Q"),
        base.mark_line(strokeWidth=1.6, color=_COLOUR).encode(y=y),
        base.mark_point(filled=True, opacity=1, color=_COLOUR).encode(
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
    chart = panel_of(layers, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart
