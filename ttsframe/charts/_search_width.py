"""The chart of the width of searches: how many steps are written and kept, and how many differ."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe.charts import style, tables
from ttsframe.charts.search_means import collect_means, describe_problems, name_last, plot_means

__all__ = ["search_width"]

_TABLE: Final = tables.Argument(
    "means", "tts.search.average_measures(tts.search.diversity_by_depth(nodes))", ("mean_widths",)
)
_NAMES: Final = {
    "n_nodes": "steps written",
    "n_kept": "kept",
    "n_distinct": "distinct texts",
    "n_origins": "distinct first steps",
}
_COLORS: Final = dict(zip(_NAMES.values(), style.LINE_COLORS, strict=False))


def search_width(
    means: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int = 260,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how wide searches are at each depth, and how many of their paths differ.

    A search that keeps many paths which all descend from one first step has collapsed: it looks wide and
    explores one idea.

    Parameters
    ----------
    means
        `average_measures` of `diversity_by_depth`; collected if lazy. Columns that tell searches apart, such
        as the policy and the width, become panels on the same scale.
    title, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not the one described.
    DataError
        When the table has no rows, several rows at one point, more than 200 depths, or more than 12
        panels.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> problems, generator, prm = tts.search.simulate(20, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.Beam(8), seed=0)
    >>> means = tts.search.average_measures(tts.search.diversity_by_depth(nodes))
    >>> charts.search_width(means).title.text
    'Width and diversity of the search by depth'
    """
    rows, apart = collect_means(means, _TABLE, "depth", _NAMES)
    drawn = _TABLE.add_panels(rows, apart).drop(*apart, "measure")
    # Without bands: where few problems are left, they would hide everything else.
    drawn = drawn.with_columns(
        line="name", ci_low=pl.lit(None, pl.Float64), ci_high=pl.lit(None, pl.Float64)
    )
    last = float(drawn["x"].to_numpy().max())
    high = drawn.select(pl.max("mean")).item()
    plot = plot_means(
        drawn,
        title="Depth (steps of the path)",
        y_title="Paths per problem",
        colors=_COLORS,
        domain=(0.0, max(float(high), 1.0) * 1.05),
        number_format="~s",
    )
    return style.draw_panels(
        drawn,
        lambda panel: [*plot.layers(panel), name_last(plot, panel, last, _COLORS, height=height)],
        width=width,
        height=height,
        title=style.heading(
            title or "Width and diversity of the search by depth",
            describe_problems(drawn),
            ["texts and first steps are those of the kept paths"],
        ),
    )
