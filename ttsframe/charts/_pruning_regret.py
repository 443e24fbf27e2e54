"""The chart of what searches lost by dropping steps, round by round."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe.charts import style, tables
from ttsframe.charts.lines import N_BANDS_MAX
from ttsframe.charts.search_means import collect_means, describe_problems, name_last, plot_means

__all__ = ["pruning_regret"]

_TABLE: Final = tables.Argument(
    "means",
    "tts.search.average_measures(tts.search.pruning_regret(nodes, values=values))",
    ("mean_regrets",),
)
_NAMES: Final = {
    "regret": "Regret: best dropped above best kept step",
    "is_lost": "Share of problems that lost the right answer",
}
_N_LINES_MAX: Final = 9


def pruning_regret(
    means: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 260,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how much searches lose in each round because the verifier dropped a better step.

    One panel has the regret, the other the share of problems for which a right answer was in reach before
    the round and not after it. Each search is a line.

    Parameters
    ----------
    means
        `average_measures` of `pruning_regret`; collected if lazy. Columns that tell searches apart name the
        lines.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside.

    Raises
    ------
    ColumnsError
        When the table is not the one described.
    DataError
        When the table has no rows, several rows at one point, more than 200 rounds, or more than 9
        searches.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> problems, bank = tts.search.simulate_bank(20, n_children=(4, 4, 4), seed=0, accuracy=0.5)
    >>> graded = tts.score_trajectories(tts.search.to_trajectories(bank, problems=problems))
    >>> values = tts.search.node_values(bank, solutions=graded)
    >>> nodes = tts.search.replay(bank, tts.search.Beam(4), seed=0).nodes
    >>> regret = tts.search.pruning_regret(nodes, values=values)
    >>> charts.pruning_regret(tts.search.average_measures(regret)).title.text
    'What dropping steps cost, by round'
    """
    interval = tables.name_interval(confidence_level)
    rows, apart = collect_means(means, _TABLE, "round", _NAMES)
    # The panel that `add_panels` would make of the search is the line here.
    drawn = _TABLE.add_panels(rows, apart).drop(apart)
    drawn = drawn.with_columns(
        line=pl.when(pl.col("panel") == "").then(pl.lit("search")).otherwise("panel"),
        panel=pl.col("name"),
        ci_low=pl.col("ci_low").clip(0.0),
    ).sort(pl.col("measure").replace_strict({name: i for i, name in enumerate(_NAMES)}), "x")
    drawn = tables.shorten_names(drawn, "line").drop("measure")
    lines = drawn["line"].unique().sort().to_list()
    _TABLE.check_at_most(len(lines), _N_LINES_MAX, "searches")
    colors = style.selector_colors(lines)
    last = float(drawn["x"].to_numpy().max())
    high = drawn.select(pl.max_horizontal("mean", "ci_high").max()).item()
    plot = plot_means(
        drawn,
        title="Round",
        y_title="Mean over problems",
        colors=colors,
        domain=(0.0, min(1.0, max(float(high), 0.02) * 1.05)),
        number_format=".0%",
    )

    has_bands = len(lines) <= N_BANDS_MAX

    def draw(panel: pl.DataFrame) -> list[alt.Chart]:
        names = [name_last(plot, panel, last, colors, height=height)] if len(lines) > 1 else []
        return [*plot.layers(panel, has_band=pl.lit(has_bands)), *names]

    return style.draw_panels(
        drawn,
        draw,
        width=width,
        height=height,
        title=style.heading(
            title or "What dropping steps cost, by round",
            [*describe_problems(drawn), f"shaded: {interval}" if has_bands else ""],
            ["value of a step: share of right solutions among those that continue it"],
            ["lost: a dropped step could still become right, no kept one could"],
        ),
    )
