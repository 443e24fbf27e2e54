"""The chart of scores: how right and wrong attempts are spread over them."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted
from ttsframe.charts import style, tables
from ttsframe.errors import DataError

__all__ = ["score_distribution"]

_TABLE: Final = tables.Argument(
    "distribution", "tts.verifier.score_distribution(trajectories)", ("distribution",)
)
_NUMBERS: Final = ("bin_low", "bin_high", "n_attempts", "share")
_KNOWN: Final = frozenset({*_NUMBERS, "is_correct"})
_N_BINS_MAX: Final = 80


def score_distribution(
    distribution: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int = 280,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how right and wrong attempts are spread over the scores.

    If the two histograms overlap fully, the score cannot choose between attempts.

    Parameters
    ----------
    distribution
        Table that `score_distribution` makes, one row per (by, `reduction`, `is_correct`) and bin;
        collected if lazy. Reductions and any column that is not part of its contract become panels.
    title, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels. More than 80
        bins are merged into at most 80.

    Raises
    ------
    ColumnsError
        When the table is not a distribution of scores.
    DataError
        When the table has no rows, no attempt, or more than 12 panels.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> chart = charts.score_distribution(tts.verifier.score_distribution(run))
    >>> chart.title.text
    'Scores of right and wrong attempts'
    """
    rows = _TABLE.collect(
        distribution, texts=["reduction"], booleans=["is_correct"], numbers=_NUMBERS
    )
    if not rows["n_attempts"].sum():
        raise DataError(f"distribution has no attempt in any bin. Hint: {_TABLE.hint}")
    rows = _TABLE.add_panels(rows, tables.find_run_columns(rows, _KNOWN))
    # Each panel has the bins of its reduction, so the panels may differ in the range of scores.
    return style.draw_panels(
        _merge_bins(rows),
        _draw_panel,
        width=width,
        height=height,
        title=style.heading(
            title or "Scores of right and wrong attempts",
            ["each outcome adds up to 100%", "a bin includes its upper end"],
        ),
    )


def _merge_bins(rows: pl.DataFrame) -> pl.DataFrame:
    """Merge neighboring bins until few enough are left, and name outcomes."""
    line = ["panel", "is_correct"]
    n_bins = pl.len().over(line).cast(pl.Int64)
    rank = pl.col("bin_low").rank("ordinal").over(line).cast(pl.Int64) - 1
    return (
        rows
        .with_columns(part=rank // -(-n_bins // _N_BINS_MAX))
        .group_by(*line, "part", maintain_order=True)
        .agg(
            pl.col("bin_low").min(),
            pl.col("bin_high").max(),
            pl.col("n_attempts").sum(),
            pl.col("share").sum(),
        )
        .sort(*line, "part", maintain_order=True)
        .with_columns(outcome=style.name_outcome(pl.col("is_correct")))
    )


def _draw_panel(panel: pl.DataFrame) -> list[alt.Chart]:
    """Draw both histograms, and above them how many attempts each counts."""
    ends = panel.select(low=pl.min("bin_low"), high=pl.max("bin_high"), top=pl.max("share") * 1.18)
    low, high, top = ends.row(0)
    x = alt.X(
        "bin_low:Q",
        axis=style.axis("Score", grid=False, tickCount=6),
        scale=alt.Scale(domain=[low, high], nice=False),
    )
    y = alt.Y(
        "share:Q",
        axis=style.axis("Share of attempts, per outcome", format=".0%", tickCount=5),
        scale=alt.Scale(domain=[0, top], nice=False),
        stack=None,
    )
    color = style.color_by("outcome", style.OUTCOME_COLORS)
    by_outcome = panel.group_by("outcome", maintain_order=True)
    last = by_outcome.agg(pl.col("bin_high").max().alias("bin_low"), pl.col("share").last())
    outline = pl.concat([panel.select("outcome", "bin_low", "share"), last])
    totals = by_outcome.agg(pl.col("n_attempts").sum()).rows()
    labels = pl.DataFrame({
        "outcome": [name for name, _ in totals],
        "label": [f"{name}: {counted([int(n)], 'attempt')}" for name, n in totals],
    })
    note = alt.Chart(tables.inline(labels)).encode(
        text=alt.Text("label:N"), color=color, y=style.at_y(4), x=style.at_x(6)
    )
    return [
        alt
        .Chart(tables.inline(panel))
        .mark_bar(opacity=0.28, binSpacing=0)
        .encode(
            x=x,
            x2=alt.X2("bin_high:Q"),
            y=y,
            y2=alt.Y2Datum(0),
            color=color,
            tooltip=[
                alt.Tooltip("outcome:N", title="Attempts"),
                alt.Tooltip("bin_low:Q", title="Score above", format=".3~f"),
                alt.Tooltip("bin_high:Q", title="up to", format=".3~f"),
                alt.Tooltip("n_attempts:Q", title="Number of attempts", format=","),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
            ],
        ),
        alt
        .Chart(tables.inline(outline))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=color),
        *[
            note.transform_filter(f"datum.outcome === '{name}'").mark_text(
                align="left", baseline="top", dy=dy, font=style.FONT, fontSize=12, fontWeight=600
            )
            for name, dy in (("right", 0), ("wrong", 16))
        ],
    ]
