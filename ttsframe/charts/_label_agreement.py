"""The chart of labels by number of rollouts: what share they call right, and how far they hold."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import counted
from ttsframe.charts.style import (
    arrange,
    axis,
    check_at_most,
    end_labels,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
)
from ttsframe.errors import DataError

__all__ = ["label_agreement"]

_N_SIZES_MAX: Final = 200

_HINT: Final = "tts.process.step_agreement(steps).rollouts is this table."
_LINES: Final = {
    "hard": ("labelled right", "#4d4d4d", None),
    "agreement": ("same as by all", "#0067a5", ""),
    "repeat_agreement": ("same if repeated", "#b84a00", "repeat_"),
    "first_error_agreement": ("same first error", "#7b3294", "first_error_"),
}
"""Column of each line: what it is called, its colour, what the columns of its interval begin with."""

_ENDS: Final = ("ci_low", "ci_high")
_COUNTS: Final = ("n_steps", "n_short", "n_solutions", "n_problems")
_NUMBERS: Final = ("n_rollouts", *_LINES, *_COUNTS)
_OTHERS: Final = ("standard_error", "ci_low", "ci_high", "kappa")
_KNOWN: Final = frozenset({
    *_NUMBERS,
    *_OTHERS,
    *[f"repeat_{name}" for name in _OTHERS],
    *[f"first_error_{name}" for name in _OTHERS],
    "soft_error",
})


def label_agreement(
    rollouts: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw what hard labels from fewer rollouts would have said of the same steps.

    The share that is labelled right rises with the number of rollouts, whatever the steps are
    worth; where the lines of agreement flatten, more rollouts change few labels.

    Parameters
    ----------
    rollouts
        Table `rollouts` of `step_agreement`, one row per (by, `n_rollouts`); collected if lazy. Any
        column that is not part of its contract tells groups apart and becomes panels on the same
        scales.
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
        The chart, its data inside; a concatenation where there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not the one of rollouts.
    DataError
        When the table has no rows, several rows at one point, or too many groups or
        numbers of rollouts.

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
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    ends = [f"{each[2]}{end}" for each in _LINES.values() if each[2] is not None for end in _ENDS]
    rows = tidy(rollouts, where="rollouts", numbers=[*_NUMBERS, *ends], hint=_HINT)
    apart = [name for name in rows.columns if name not in _KNOWN]
    point = [*apart, "n_rollouts"]
    repeated = rows.filter(pl.struct(point).is_duplicated())
    if repeated.height:
        raise DataError(
            f"rollouts has several rows for {repeated.select(point).row(0, named=True)}, must have "
            "one per number of rollouts. Hint: keep the column that tells the groups apart, as "
            "tts.process.step_agreement(steps, by=...) does."
        )
    check_at_most(
        rows["n_rollouts"].n_unique(),
        _N_SIZES_MAX,
        "numbers of rollouts",
        where="rollouts",
        hint="tts.process.step_agreement(steps, n_rollouts=[1, 2, 4, ...]) takes some.",
    )
    rows = panel_column(rows, apart, where="rollouts")
    long = pl.concat([_line(rows, name) for name in _LINES]).drop_nulls("value")
    panels = long.partition_by("panel", as_dict=True, maintain_order=True)
    sizes = rows["n_rollouts"].unique().sort().to_list()
    return arrange(
        [
            _panel(
                panel, str(name), sizes=sizes, width=panel_width(width, len(panels)), height=height
            )
            for (name,), panel in panels.items()
        ],
        title=heading(
            title or "What labels from fewer rollouts would say",
            _subtitle(rows, long, confidence_level),
        ),
    )


def _line(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the points of one line."""
    called, _, prefix = _LINES[name]
    ends = [pl.lit(None) if prefix is None else pl.col(f"{prefix}{end}") for end in _ENDS]
    return rows.select(
        "panel",
        pl.col("n_rollouts").cast(pl.Int64),
        pl.lit(called).alias("line"),
        pl.col(name).cast(pl.Float64).alias("value"),
        *[each.cast(pl.Float64).alias(end) for each, end in zip(ends, _ENDS, strict=True)],
    )


def _subtitle(rows: pl.DataFrame, long: pl.DataFrame, confidence_level: float | None) -> list[str]:
    """Say how many steps are drawn, and what is not."""
    steps = counted(rows["n_steps"].to_list(), "step")
    facts = [f"{steps} of {counted(rows['n_problems'].to_list(), 'problem')}"]
    if long["ci_low"].null_count() < long.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        facts.append(f"shaded: {level}confidence interval over problems")
    subtitle = [" · ".join(facts)]
    if any(rows["n_short"]):
        short = counted(rows["n_short"].to_list(), "step")
        subtitle.append(f"Left out: {short} with fewer rollouts than the largest number")
    return subtitle


def _panel(
    drawn: pl.DataFrame, name: str, *, sizes: list[int], width: int, height: int
) -> alt.LayerChart:
    """Draw one panel: bands, lines, points, and the names at the lines' ends."""
    colours = {called: colour for called, colour, _ in _LINES.values()}
    domain = (0.0, 1.0)
    scale = (
        alt.Scale(type="log", base=2, domain=[sizes[0], sizes[-1]], nice=False)
        if sizes[0] < sizes[-1]
        else alt.Scale(domain=[sizes[0] - 1, sizes[0] + 1])
    )
    x = alt.X(
        "n_rollouts:Q",
        axis=axis(
            "Rollouts a step (log scale)",
            values=sizes,
            format=",d",
            grid=False,
            labelOverlap="greedy",
        ),
        scale=scale,
    )
    y_axis, y_scale = axis("Share", tickCount=6), alt.Scale(domain=list(domain), nice=False)
    colour = alt.Color(
        "line:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=None,
    )
    base = alt.Chart(inline(drawn)).encode(x=x, color=colour)
    middle = alt.Y("value:Q", axis=y_axis, scale=y_scale)
    last = (
        drawn
        .sort("n_rollouts")
        .group_by("line", maintain_order=True)
        .agg(pl.col("n_rollouts").last().alias("x"), pl.col("value").last().alias("y"))
        .select(
            # Names stand beside the panel, also that of a line which ends within it.
            pl.lit(sizes[-1]).alias("x"),
            "y",
            pl.concat_str("line", pl.lit(" "), pl.col("y").round(2)).alias("label"),
            pl.col("line").replace_strict(colours).alias("colour"),
        )
    )
    known = alt.Chart(inline(drawn.drop_nulls("ci_low"))).encode(x=x, color=colour)
    bands = known.mark_area(opacity=0.16) if len(sizes) > 1 else known.mark_rule(strokeWidth=2)
    layers = [
        bands.encode(y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2=alt.Y2("ci_high:Q")),
        base.mark_line(strokeWidth=2.2).encode(y=middle),
        base.mark_point(filled=True, size=46, opacity=1).encode(
            y=middle,
            tooltip=[
                alt.Tooltip("line:N", title="Labels"),
                alt.Tooltip("n_rollouts:Q", title="Rollouts a step"),
                alt.Tooltip("value:Q", title="Share", format=".3f"),
                alt.Tooltip("ci_low:Q", title="At least", format=".3f"),
                alt.Tooltip("ci_high:Q", title="At most", format=".3f"),
            ],
        ),
        end_labels(last, x=alt.X("x:Q", scale=scale), domain=domain, height=height),
    ]
    chart = panel_of(layers, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart
