"""The chart of hard labels from fewer rollouts: how many are right, and how many stay the same."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._wording import counted
from ttsframe.charts import style, tables
from ttsframe.charts.lines import LinePlot

__all__ = ["label_agreement"]

_N_SIZES_MAX: Final = 200
_TABLE: Final = tables.Argument("rollouts", "tts.process.step_agreement(steps)", ("agreement",))


class _Line(NamedTuple):
    """One of the lines of a panel."""

    column: str
    name: str
    color: str
    interval: str | None
    """Prefix of the columns of its interval, which the share of right labels does not have."""


_LINES: Final = (
    _Line("hard", "labeled right", "#4d4d4d", None),
    _Line("agreement", "same as with all rollouts", "#0067a5", ""),
    _Line("repeat_agreement", "same if repeated", "#b84a00", "repeat_"),
    _Line("first_error_agreement", "same first error", "#7b3294", "first_error_"),
)
_COLORS: Final = {line.name: line.color for line in _LINES}
_PREFIXES: Final = [line.interval for line in _LINES if line.interval is not None]
_ENDS: Final = [f"{prefix}{end}" for prefix in _PREFIXES for end in ("ci_low", "ci_high")]
_COUNTS: Final = ("n_steps", "n_short", "n_solutions", "n_problems")
_NUMBERS: Final = ("n_rollouts", *[line.column for line in _LINES], *_COUNTS, *_ENDS)
_OTHERS: Final = [f"{prefix}{name}" for prefix in _PREFIXES for name in ("standard_error", "kappa")]
_KNOWN: Final = frozenset({*_NUMBERS, *_OTHERS, "soft_error"})


def label_agreement(
    rollouts: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw how hard labels from fewer rollouts compare with those from all rollouts.

    The share of steps labeled right rises with the number of rollouts, however good the steps are;
    where the lines of agreement flatten, more rollouts change few labels.

    Parameters
    ----------
    rollouts
        Table `rollouts` of `step_agreement`, one row per (by, `n_rollouts`); collected if lazy. Any
        column that is not part of its contract tells groups apart and becomes panels on the same
        scales.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not the one of rollouts.
    DataError
        When the table has no rows, several rows at one point, more than 200 numbers of rollouts, or
        more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> steps = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b"],
    ...     "solution_id": [0, 0, 0],
    ...     "step": [0, 1, 0],
    ...     "n_rollouts": [8, 8, 8],
    ...     "n_correct": [6, 1, 0],
    ... })
    >>> chart = charts.label_agreement(tts.process.step_agreement(steps).rollouts)
    >>> print(chart.title.subtitle[0])
    3 steps of 2 problems · shaded: confidence interval over problems
    """
    interval = tables.name_interval(confidence_level)
    rows = _check_rollouts(rollouts)
    sizes = rows["n_rollouts"].unique().sort().to_list()
    drawn = pl.concat([_take_line(rows, line) for line in _LINES]).drop_nulls("value")
    plot = LinePlot(
        x=_make_axis(sizes),
        y="value",
        y_axis=style.axis("Share", tickCount=6),
        domain=(0.0, 1.0),
        color=style.color_by("line", _COLORS),
        tooltip=[
            alt.Tooltip("line:N", title="Labels"),
            alt.Tooltip("x:Q", title="Rollouts per step"),
            alt.Tooltip("value:Q", title="Share", format=".3f"),
            alt.Tooltip("ci_low:Q", title="At least", format=".3f"),
            alt.Tooltip("ci_high:Q", title="At most", format=".3f"),
        ],
        band_opacity=0.16,
    )

    def draw(panel: pl.DataFrame) -> list[alt.Chart]:
        # Names are beside the panel, also that of a line that ends within it.
        label = pl.concat_str("line", pl.lit(" "), style.decimals(pl.col("value"), 2))
        labels = plot.ends(panel, label, x=sizes[-1], colors=_COLORS)
        return [*plot.layers(panel), plot.name_ends(labels, height=height)]

    steps, problems, short = (
        counted(rows[name].to_list(), noun)
        for name, noun in (("n_steps", "step"), ("n_problems", "problem"), ("n_short", "step"))
    )
    left_out = f"Left out: {short} with fewer rollouts than the largest number"
    return style.draw_panels(
        drawn,
        draw,
        width=width,
        height=height,
        title=style.heading(
            title or "Hard labels from fewer rollouts",
            [
                f"{steps} of {problems}",
                f"shaded: {interval} over problems" if tables.has_interval(drawn) else "",
            ],
            [left_out if any(rows["n_short"]) else ""],
        ),
    )


def _check_rollouts(rollouts: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """Return the rows of a table of rollouts, with panels."""
    rows = _TABLE.collect(rollouts, numbers=_NUMBERS)
    apart = tables.find_run_columns(rows, _KNOWN)
    _TABLE.check_one_per_point(rows, [*apart, "n_rollouts"])
    _TABLE.check_at_most(
        rows["n_rollouts"].n_unique(),
        _N_SIZES_MAX,
        "numbers of rollouts",
        hint="tts.process.step_agreement(steps, n_rollouts=[1, 2, 4, ...]) takes some.",
    )
    return _TABLE.add_panels(rows, apart)


def _take_line(rows: pl.DataFrame, line: _Line) -> pl.DataFrame:
    """Return the points of one line."""
    ends = [
        pl.lit(None) if line.interval is None else pl.col(f"{line.interval}{end}")
        for end in ("ci_low", "ci_high")
    ]
    return rows.select(
        "panel",
        pl.col("n_rollouts").cast(pl.Int64).alias("x"),
        pl.lit(line.name).alias("line"),
        pl.col(line.column).cast(pl.Float64).alias("value"),
        ends[0].cast(pl.Float64).alias("ci_low"),
        ends[1].cast(pl.Float64).alias("ci_high"),
    )


def _make_axis(sizes: list[int]) -> alt.X:
    """Return the axis of numbers of rollouts, logarithmic if there are several."""
    first, last = sizes[0], sizes[-1]
    ticks = style.axis(
        "Rollouts per step (log scale)",
        values=sizes,
        format=",d",
        grid=False,
        labelOverlap="greedy",
    )
    if first == last:
        return alt.X("x:Q", axis=ticks, scale=alt.Scale(domain=[first - 1, first + 1]))
    scale = alt.Scale(type="log", base=2, domain=[first, last], nice=False)
    return alt.X("x:Q", axis=ticks, scale=scale)
