"""The chart of scores: how right and wrong attempts are spread over them."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted
from ttsframe.charts.style import (
    FONT,
    OUTCOME_COLOURS,
    arrange,
    axis,
    heading,
    inline,
    outcome,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
)
from ttsframe.errors import ColumnsError, DataError

__all__ = ["score_distribution"]

_HINT: Final = "tts.verifier.score_distribution(trajectories) makes this table."
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

    Where the two heaps lie on one another, the score cannot choose between attempts.

    Parameters
    ----------
    distribution
        Table that `score_distribution` makes, one row per (by, `reduction`, `is_correct`) and bin;
        collected if lazy. Reductions and any column that is not part of its contract become panels.
    title
        Heading; by default it says what is drawn.
    width, height
        Size of a panel in pixels, without its labels; None is a width at which the panels fit a
        page.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart, its data inside; a concatenation where there are several panels. More than 80
        bins are joined to at most 80.

    Raises
    ------
    ColumnsError
        When the table is not a distribution of scores.
    DataError
        When the table has no rows, no attempt, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> chart = charts.score_distribution(tts.verifier.score_distribution(run))
    >>> chart.title.text
    'Scores of right and of wrong attempts'
    """
    rows = tidy(
        distribution,
        where="distribution",
        texts=["reduction", "is_correct"],
        numbers=_NUMBERS,
        hint=_HINT,
    )
    if rows["is_correct"].dtype != pl.Boolean:
        raise ColumnsError(
            f"distribution: 'is_correct' is {rows['is_correct'].dtype}, must be Boolean. Hint: {_HINT}"
        )
    if not rows["n_attempts"].sum():
        raise DataError(f"distribution has no attempt in any bin. Hint: {_HINT}")
    apart = [name for name in rows.columns if name not in _KNOWN]
    bins = _joined(panel_column(rows, apart, where="distribution"))
    panels = bins.partition_by("panel", as_dict=True, maintain_order=True)
    # Each panel has the bins of its reduction, so that scores of all panels may differ in range.
    return arrange(
        [
            _panel(panel, str(name), width=panel_width(width, len(panels)), height=height)
            for (name,), panel in panels.items()
        ],
        title=heading(
            title or "Scores of right and of wrong attempts",
            ["each outcome adds up to 100% · a bin holds its upper end"],
        ),
    )


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Join neighbouring bins until few enough are left, and name outcomes."""
    line = ["panel", "is_correct"]
    n_bins = pl.len().over(line).cast(pl.Int64)
    place = pl.col("bin_low").rank("ordinal").over(line).cast(pl.Int64) - 1
    factor = -(-n_bins // _N_BINS_MAX)
    return (
        rows
        .with_columns(part=place // factor)
        .group_by(*line, "part", maintain_order=True)
        .agg(
            pl.col("bin_low").min(),
            pl.col("bin_high").max(),
            pl.col("n_attempts").sum(),
            pl.col("share").sum(),
        )
        .sort(*line, "part", maintain_order=True)
        .with_columns(outcome=outcome(pl.col("is_correct")))
    )


def _panel(bins: pl.DataFrame, name: str, *, width: int, height: int) -> alt.LayerChart:
    """Draw one panel: both histograms, and what they count above them."""
    low, high = min(bins["bin_low"].to_list()), max(bins["bin_high"].to_list())
    top = max(bins["share"].to_list()) * 1.18
    scale = alt.Scale(domain=[low, high], nice=False)
    y_scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X("bin_low:Q", axis=axis("Score", grid=False, tickCount=6), scale=scale)
    y = alt.Y(
        "share:Q",
        axis=axis("Share of the attempts of an outcome", format=".0%", tickCount=5),
        scale=y_scale,
        stack=None,
    )
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=list(OUTCOME_COLOURS), range=list(OUTCOME_COLOURS.values())),
        legend=None,
    )
    tooltip = [
        alt.Tooltip("outcome:N", title="Attempts that are"),
        alt.Tooltip("bin_low:Q", title="Score above", format=".3~f"),
        alt.Tooltip("bin_high:Q", title="up to", format=".3~f"),
        alt.Tooltip("n_attempts:Q", title="Attempts", format=","),
        alt.Tooltip("share:Q", title="Share", format=".1%"),
    ]
    base = alt.Chart(inline(bins))
    edges = pl.concat([
        bins.select("outcome", "bin_low", "share"),
        bins.group_by("outcome", maintain_order=True).agg(
            pl.col("bin_high").max().alias("bin_low"), pl.col("share").last()
        ),
    ])
    totals = bins.group_by("outcome", maintain_order=True).agg(pl.col("n_attempts").sum())
    labels = pl.DataFrame({
        "outcome": totals["outcome"],
        "label": [f"{name}: {counted([int(n)], 'attempt')}" for name, n in totals.rows()],
    })
    note = alt.Chart(inline(labels)).encode(
        text="label:N", color=colour, y=alt.value(4), x=alt.value(6)
    )
    layers = [
        base.mark_bar(opacity=0.28, binSpacing=0).encode(
            x=x, x2="bin_high:Q", y=y, y2=alt.Y2Datum(0), color=colour, tooltip=tooltip
        ),
        alt
        .Chart(inline(edges))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=colour),
        *[
            note.transform_filter(alt.datum.outcome == each).mark_text(
                align="left",
                baseline="top",
                dy=16 * i,
                font=FONT,
                fontSize=12,
                fontWeight=600,
            )
            for i, each in enumerate(("right", "wrong"))
        ],
    ]
    chart = panel_of(layers, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart
