"""The chart of difficulty: how many problems are how hard, and which level they are in."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_positive
from ttsframe._wording import counted
from ttsframe.charts import style, tables
from ttsframe.errors import ParameterError

__all__ = ["difficulty_histogram"]

_TABLE: Final = tables.Argument("levels", "tts.difficulty_levels(trajectories)", ("levels",))
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

_HALVES: Final = {0: "even attempts, levels from the odd", 1: "odd attempts, levels from the even"}
_METRICS: Final = {"pass_at_1": "pass@1", "mean_score": "mean score"}
_BASES: Final = {
    "cross_fitted": "estimated on the other half of the attempts",
    "reference": "estimated on another run",
    "same_sample": "estimated on the same attempts that the levels group",
    "given": "given in the data",
}

_N_BINS_MAX: Final = 100
_N_LEVELS_MAX: Final = 20
_LIGHT: Final = "#c6dbef"
_DARK: Final = "#08306b"


def difficulty_histogram(
    levels: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    n_bins: int = 25,
    title: str | None = None,
    width: int | None = None,
    height: int = 240,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how many problems are how hard, colored by the level that they are in.

    If nearly all problems are solved, or nearly none, the run says little about methods; if many
    problems are equally hard, levels are uneven or empty.

    Parameters
    ----------
    levels
        Table that `difficulty_levels` makes, one row per (by, `problem_id`, `fold`); collected if
        lazy. Each half of the attempts is a panel, and so is each value of any other column.
    n_bins
        Number of bars between 0 and 1, or between the lowest and highest difficulty if some are
        outside [0, 1]; at most 100.
    title, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside: one row per bar and level, however many problems there are.

    Raises
    ------
    ColumnsError
        When the table is not one of levels.
    DataError
        When the table has no rows, no difficulty, more than 20 levels, or more than 12 panels.
    ParameterError
        When `n_bins` is not between 1 and 100.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(100, 32, seed=0, keys=True)
    >>> chart = charts.difficulty_histogram(tts.difficulty_levels(run, estimate="same_sample"))
    >>> print(chart.title.subtitle[0])
    100 problems in 5 levels · estimated on the same attempts that the levels group
    """
    if check_positive(n_bins, "n_bins") > _N_BINS_MAX:
        raise ParameterError(f"n_bins == {n_bins}, must be at most {_N_BINS_MAX} to be told apart.")
    rows = _check_levels(levels)
    known = _TABLE.require_values(
        rows,
        ["difficulty"],
        "difficulty",
        hint="without grades, tts.difficulty_levels(trajectories, metric='mean_score') reads the "
        "verifier.",
    )
    n_levels = int(rows["n_levels"].max() or 1)  # type: ignore[arg-type]
    _TABLE.check_at_most(
        n_levels,
        _N_LEVELS_MAX,
        "levels",
        hint="tts.difficulty_levels(trajectories, n_levels=5) makes fewer.",
    )
    low, high = known.select(low=pl.min("difficulty"), high=pl.max("difficulty")).row(0)
    is_share = low >= 0.0 and high <= 1.0
    ends = (0.0, 1.0) if is_share else (low, high if high > low else low + 1.0)
    bars = _count_bars(known, n_bins, ends)
    x = alt.X(
        "begin:Q",
        axis=style.axis(_name_axis(rows, is_share=is_share), grid=False),
        scale=alt.Scale(domain=[*ends], nice=False),
    )
    y_scale = alt.Scale(domain=[0, max(bars["top"].to_list())])
    return style.draw_panels(
        bars,
        lambda panel: [_draw_histogram(panel, x, y_scale, n_levels)],
        width=width,
        height=height,
        title=style.heading(
            title or "How hard the problems are",
            [
                f"{_count_problems(rows)} in {counted([n_levels], 'level')}",
                *[text for name, text in _BASES.items() if name in set(rows["basis"])],
            ],
            _describe_doubts(rows, n_levels),
        ),
    )


def _check_levels(levels: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """Check a table of levels, fill the columns that may be absent, and name panels."""
    rows = _TABLE.collect(levels, texts=["problem_id"], numbers=["level", "difficulty"])
    defaults: dict[str, pl.Expr] = {
        "fold": pl.lit(None, pl.UInt32),
        "basis": pl.lit(None, pl.String),
        "caveat": pl.lit(None, pl.String),
        "n_levels": pl.col("level").max(),
    }
    absent = {name: value for name, value in defaults.items() if name not in rows.columns}
    half = pl.col("fold").replace_strict(_HALVES, default=None, return_dtype=pl.String)
    apart = tables.find_run_columns(rows, _LEVEL_COLUMNS)
    rows = rows.with_columns(pl.col("difficulty").cast(pl.Float64), **absent)
    return _TABLE.add_panels(rows.with_columns(half=half), [*apart, "half"])


def _count_bars(rows: pl.DataFrame, n_bins: int, ends: tuple[float, float]) -> pl.DataFrame:
    """Count the problems of each bar by level, stacked from the easiest level up."""
    step = (ends[1] - ends[0]) / n_bins
    number = ((pl.col("difficulty") - ends[0]) / step + 1e-9).floor().clip(0, n_bins - 1)
    return (
        rows
        .group_by("panel", number.alias("bar"), "level")
        .agg(pl.len().cast(pl.Int64).alias("n_problems"))
        .sort("panel", "bar", "level")
        .with_columns(
            begin=pl.col("bar") * step + ends[0],
            end=(pl.col("bar") + 1) * step + ends[0],
            top=pl.col("n_problems").cum_sum().over("panel", "bar"),
        )
        .with_columns(bottom=pl.col("top") - pl.col("n_problems"))
    )


def _name_axis(rows: pl.DataFrame, *, is_share: bool) -> str:
    """Name the measure of difficulty."""
    if not is_share or "given" in set(rows["basis"]):
        return "Difficulty (higher is harder)"
    metrics = rows["metric"].unique().to_list() if "metric" in rows.columns else []
    name = _METRICS.get(metrics[0], "metric") if len(metrics) == 1 else "metric"
    return f"Difficulty (1 − {name})"


def _count_problems(rows: pl.DataFrame) -> str:
    """Count the problems of some rows."""
    return counted([rows["problem_id"].n_unique()], "problem")


def _describe_doubts(rows: pl.DataFrame, n_levels: int) -> list[str]:
    """Write which problems are left out or doubtful, and which levels are empty."""
    notes = []
    unknown = rows.filter(pl.col("difficulty").is_null())
    if unknown.height:
        notes.append(f"{_count_problems(unknown)} of unknown difficulty left out")
    for caveat, text in tables.LEVEL_CAVEATS.items():
        doubtful = rows.filter(pl.col("caveat") == caveat)
        if doubtful.height:
            notes.append(f"{_count_problems(doubtful)} {text}")
    empty = sorted(set(range(1, n_levels + 1)) - set(rows["level"].drop_nulls()))
    if empty:
        notes.append(f"no problem in level {', '.join(map(str, empty))}")
    return notes


def _draw_histogram(bars: pl.DataFrame, x: alt.X, y_scale: alt.Scale, n_levels: int) -> alt.Chart:
    """Draw the bars of one panel, with the levels stacked."""
    colors = alt.Scale(domain=list(range(1, n_levels + 1)), range=_mix_shades(n_levels))
    level = style.legend(title="Level", symbolType="square", symbolSize=120)
    chart: alt.Chart = (
        alt
        .Chart(tables.inline(bars.drop("panel", "bar")))
        .mark_rect(stroke="white", strokeWidth=0.6)
        .encode(
            x=x,
            x2=alt.X2("end:Q"),
            y=alt.Y(
                "bottom:Q",
                axis=style.axis("Problems", format=",d", tickMinStep=1, tickCount=5),
                scale=y_scale,
            ),
            y2=alt.Y2("top:Q"),
            color=alt.Color("level:O", scale=colors, legend=level),
            tooltip=[
                alt.Tooltip("begin:Q", title="Difficulty from", format=".3~f"),
                alt.Tooltip("end:Q", title="to", format=".3~f"),
                alt.Tooltip("level:O", title="Level"),
                alt.Tooltip("n_problems:Q", title="Problems"),
            ],
        )
    )
    return chart


def _mix_shades(n: int) -> list[str]:
    """Return colors from light to dark, whose order shows in gray as well."""
    ends = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in (_LIGHT, _DARK)]
    shares = [i / max(n - 1, 1) for i in range(n)]
    return [
        "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
        for share in shares
    ]
