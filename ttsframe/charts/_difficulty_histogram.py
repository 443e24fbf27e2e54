"""The chart of difficulty: how many problems are how hard, and where levels part them."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_positive
from ttsframe._wording import counted
from ttsframe.charts.curve_rows import LEVEL_CAVEATS
from ttsframe.charts.style import (
    arrange,
    axis,
    check_at_most,
    heading,
    inline,
    legend,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
)
from ttsframe.errors import DataError, ParameterError

__all__ = ["difficulty_histogram"]

_LEVEL_COLUMNS: Final = frozenset({
    "problem_id",
    "fold",
    "level",
    "difficulty",
    "n_used",
    "metric",
    "basis",
    "caveat",
    "n_levels",
    "n_empty_levels",
})

_HALVES: Final = {0: "even attempts, by the odd", 1: "odd attempts, by the even"}
_METRICS: Final = {"pass_at_1": "pass@1", "mean_score": "mean score"}
_BASES: Final = {
    "cross_fitted": "estimated on the other half of the attempts",
    "reference": "estimated on another run",
    "same_sample": "estimated on the same attempts that it would judge",
    "given": "as given in the data",
}

_N_BINS_MAX: Final = 100
_N_LEVELS_MAX: Final = 20
_LIGHT: Final = "#c6dbef"
_DARK: Final = "#08306b"


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    edges: tuple[float, float]
    most: int
    n_levels: int
    title: str
    width: int
    height: int


def difficulty_histogram(
    levels: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    n_bins: int = 25,
    title: str | None = None,
    width: int | None = None,
    height: int = 240,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how many problems are how hard, coloured by the level that they are in.

    A run whose problems are nearly all solved, or nearly none, has little to say about methods; and
    where many problems are equally hard, levels are uneven or empty.

    Parameters
    ----------
    levels
        Table that `difficulty_levels` makes, one row per (by, `problem_id`, `fold`); collected if
        lazy. Halves are panels, and so is what other columns tell apart.
    n_bins
        Number of bars between the least and the most that difficulty can be (0 and 1), or that it
        is, where it goes beyond these.
    title
        Heading; by default it says what is drawn.
    width, height
        Size of a panel in pixels, without its labels; None is a width at which the panels fit a
        page.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart, its data inside: one row per bar and level, however many problems there are.

    Raises
    ------
    ColumnsError
        When the table is not one of levels.
    DataError
        When the table has no rows, no difficulty, more than 20 levels, or too many groups.
    ParameterError
        When `n_bins` is impossible, or above 100.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 32, seed=0, keys=True)
    >>> chart = charts.difficulty_histogram(tts.difficulty_levels(run, estimate="same_sample"))
    >>> print(chart.title.subtitle[0])
    100 problems in 5 levels · estimated on the same attempts that it would judge
    """
    if check_positive(n_bins, "n_bins") > _N_BINS_MAX:
        raise ParameterError(f"n_bins == {n_bins}, must be at most {_N_BINS_MAX} to be told apart.")
    rows = tidy(
        levels,
        where="levels",
        texts=["problem_id"],
        numbers=["level", "difficulty"],
        hint="tts.difficulty_levels(trajectories) makes this table.",
    )
    defaults: dict[str, pl.Expr] = {
        "fold": pl.lit(None, pl.UInt32),
        "basis": pl.lit(None, pl.String),
        "caveat": pl.lit(None, pl.String),
        "n_levels": pl.col("level").max(),
    }
    rows = rows.with_columns(**{
        name: value for name, value in defaults.items() if name not in rows.columns
    })
    apart = [name for name in rows.columns if name not in _LEVEL_COLUMNS]
    half = pl.col("fold").replace_strict(_HALVES, default=None, return_dtype=pl.String)
    rows = panel_column(rows.with_columns(half=half), [*apart, "half"], where="levels")
    drawn = rows.drop_nulls("difficulty").with_columns(pl.col("difficulty").cast(pl.Float64))
    if drawn.is_empty():
        raise DataError(
            f"levels have no difficulty: null in all {rows.height} rows. Hint: without grades, "
            "tts.difficulty_levels(trajectories, metric='mean_score') reads the verifier."
        )
    n_levels = int(rows["n_levels"].max() or 1)  # type: ignore[arg-type]
    check_at_most(
        n_levels,
        _N_LEVELS_MAX,
        "levels",
        where="levels",
        hint="tts.difficulty_levels(trajectories, n_levels=5) makes fewer.",
    )
    low, high = drawn.select(pl.col("difficulty").min(), b=pl.col("difficulty").max()).row(0)
    is_share = low >= 0.0 and high <= 1.0
    edges = (0.0, 1.0) if is_share else (low, high if high > low else low + 1.0)
    step = (edges[1] - edges[0]) / n_bins
    number = ((pl.col("difficulty") - edges[0]) / step + 1e-9).floor().clip(0, n_bins - 1)
    bars = (
        drawn
        .group_by("panel", number.alias("bar"), "level")
        .agg(pl.len().cast(pl.Int64).alias("n_problems"))
        .sort("panel", "bar", "level")
        .with_columns(
            begin=pl.col("bar") * step + edges[0],
            end=(pl.col("bar") + 1) * step + edges[0],
            top=pl.col("n_problems").cum_sum().over("panel", "bar"),
        )
        .with_columns(bottom=pl.col("top") - pl.col("n_problems"))
    )
    panels = bars.partition_by("panel", as_dict=True, maintain_order=True)
    frame = _Frame(
        edges=edges,
        most=int(bars["top"].max()),  # type: ignore[arg-type]
        n_levels=n_levels,
        title=_axis_title(rows, is_share=is_share),
        width=panel_width(width, len(panels)),
        height=height,
    )
    return arrange(
        [_panel(panel, str(name), frame) for (name,), panel in panels.items()],
        title=heading(title or "How hard the problems are", _subtitle(rows, frame)),
    )


def _axis_title(rows: pl.DataFrame, *, is_share: bool) -> str:
    """Say what difficulty is."""
    if not is_share or "given" in set(rows["basis"]):
        return "Difficulty (higher is harder)"
    metrics = rows["metric"].unique().to_list() if "metric" in rows.columns else []
    name = _METRICS.get(metrics[0], "metric") if len(metrics) == 1 else "metric"
    return f"Difficulty (1 − {name})"


def _subtitle(rows: pl.DataFrame, frame: _Frame) -> list[str]:
    """Say what is drawn, what it was estimated on, and what it is worth."""
    facts = [f"{counted([rows['problem_id'].n_unique()], 'problem')} in {frame.n_levels} levels"]
    facts += [_BASES[name] for name in _BASES if name in set(rows["basis"])]
    subtitle = [" · ".join(facts)]
    notes = []
    if n_unknown := rows.filter(pl.col("difficulty").is_null())["problem_id"].n_unique():
        notes.append(f"{counted([n_unknown], 'problem')} of unknown difficulty left out")
    for caveat, what in LEVEL_CAVEATS.items():
        if n := rows.filter(pl.col("caveat") == caveat)["problem_id"].n_unique():
            notes.append(f"{counted([n], 'problem')} {what}")
    empty = sorted(set(range(1, frame.n_levels + 1)) - set(rows["level"].drop_nulls()))
    if empty:
        notes.append(f"no problem in level {', '.join(map(str, empty))}")
    return [*subtitle, " · ".join(notes)] if notes else subtitle


def _panel(bars: pl.DataFrame, name: str, frame: _Frame) -> alt.LayerChart:
    """Draw the bars of one half or run, level on level."""
    x_scale = alt.Scale(domain=list(frame.edges), nice=False)
    y = axis("Problems", format=",d", tickMinStep=1, tickCount=5)
    levels = list(range(1, frame.n_levels + 1))
    chart = (
        alt
        .Chart(inline(bars.drop("panel", "bar")))
        .mark_rect(stroke="white", strokeWidth=0.6)
        .encode(
            x=alt.X("begin:Q", axis=axis(frame.title, grid=False), scale=x_scale),
            x2=alt.X2("end:Q"),
            y=alt.Y("bottom:Q", axis=y, scale=alt.Scale(domain=[0, frame.most])),
            y2=alt.Y2("top:Q"),
            color=alt.Color(
                "level:O",
                scale=alt.Scale(domain=levels, range=_shades(frame.n_levels)),
                legend=legend(title="Level", symbolType="square", symbolSize=120),
            ),
            tooltip=[
                alt.Tooltip("begin:Q", title="Difficulty from", format=".3~f"),
                alt.Tooltip("end:Q", title="to", format=".3~f"),
                alt.Tooltip("level:O", title="Level"),
                alt.Tooltip("n_problems:Q", title="Problems"),
            ],
        )
    )
    panel = panel_of([chart], width=frame.width, height=frame.height)
    return panel.properties(title=panel_heading(name)) if name else panel


def _shades(n: int) -> list[str]:
    """Return colours from light to dark, whose order is seen in grey as well."""
    ends = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (_LIGHT, _DARK)]
    shares = [i / max(n - 1, 1) for i in range(n)]
    return [
        "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
        for share in shares
    ]
