"""The chart of the steps of a problem: how often completions from each reach the right answer."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted
from ttsframe.charts import style, tables

__all__ = ["step_values"]

_TABLE: Final = tables.Argument("steps", "tts.process.estimate_steps(rollouts)")
_UNIT: Final = ("problem_id", "solution_id")
_NUMBERS: Final = ("step", "soft", "ci_low", "ci_high", "n_rollouts", "n_correct")
_LABELS: Final = ("is_correct", "is_first_error")
_KNOWN: Final = frozenset({
    *_UNIT,
    *_NUMBERS,
    *_LABELS,
    "n_ungraded",
    "hard",
    "advantage",
    "advantage_ci_low",
    "advantage_ci_high",
    "problem",
    "gold",
    "text",
    "rating",
    "score",
})
_TEXT_MAX: Final = 200
_N_STEPS_MAX: Final = 200


def step_values(
    steps: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 240,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the value of each step along some solutions, and the first error of each.

    Where the value drops to almost 0, hardly any completion reaches the right answer any more, so
    that step broke the solution. Long intervals mean that there were too few rollouts to know.

    Parameters
    ----------
    steps
        Table that `estimate_steps` makes, one row per (by, `problem_id`, `solution_id`, `step`),
        filtered to the solutions to look at; collected if lazy. Each solution is a panel, and so is
        each value of a column that tells runs apart. `text`, if it was joined, is in the tooltip.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not one of estimated steps.
    DataError
        When the table has no rows, no value, several rows for a step, more than 200 steps of a
        solution, or more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> rollouts = pl.DataFrame({
    ...     "problem_id": ["p"] * 6,
    ...     "solution_id": [0] * 6,
    ...     "step": [0, 0, 0, 1, 1, 1],
    ...     "rollout": [0, 1, 2, 0, 1, 2],
    ...     "is_correct": [True, True, False, False, False, False],
    ... })
    >>> chart = charts.step_values(tts.process.estimate_steps(rollouts))
    >>> print(chart.title.subtitle[0])
    1 solution · 3 rollouts per step · bars: confidence interval
    """
    interval = tables.name_interval(confidence_level)
    rows = _TABLE.collect(steps, texts=_UNIT, booleans=_LABELS, numbers=_NUMBERS)
    apart = [name for name in rows.columns if name not in _KNOWN and not name.startswith("hard@")]
    point = [*apart, *_UNIT, "step"]
    hint = "keep the column that tells the runs apart."
    _TABLE.check_one_per_point(rows, point, hint=hint)
    _TABLE.check_at_most(
        rows["step"].n_unique(),
        _N_STEPS_MAX,
        "steps of a solution",
        hint="filter the table to the first steps.",
    )
    rows = _name_panels(rows.sort(point), apart)
    hint = "the rollouts are not graded."
    drawn = _TABLE.require_values(rows, ["soft"], "value", hint=hint)
    drawn = drawn.with_columns(outcome=style.name_outcome(pl.col("is_correct")))
    x = _make_axis(drawn)
    rollouts = counted(drawn["n_rollouts"].cast(pl.Int64).to_list(), "rollout")
    labeled = set(drawn.filter(pl.col("step") >= 0)["outcome"])
    n_ungraded = rows.height - drawn.height
    left_out = f"Left out: {counted([n_ungraded], 'step')} without a graded rollout"
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, x),
        width=width,
        height=height,
        title=style.heading(
            title or "How often completions from each step are right",
            [
                counted([drawn["panel"].n_unique()], "solution"),
                f"{rollouts} per step",
                f"bars: {interval}",
            ],
            [
                "green: labeled right" if "right" in labeled else "",
                "purple: labeled wrong" if "wrong" in labeled else "",
            ],
            [left_out if n_ungraded else ""],
        ),
    )


def _name_panels(rows: pl.DataFrame, apart: list[str]) -> pl.DataFrame:
    """Give each solution a panel with its name."""
    rows = rows.with_columns(
        pl.col("problem_id").cast(pl.String).alias("problem"),
        pl.col("solution_id").cast(pl.String).alias("solution"),
    )
    rows = _TABLE.add_panels(rows, [*apart, "problem", "solution"])
    if any(rows[name].n_unique() > 1 for name in (*apart, "problem")):
        return rows
    # A bare number would not say what it numbers.
    name = pl.concat_str(pl.lit("solution "), "panel")
    return rows.with_columns(panel=pl.when(pl.col("panel") != "").then(name).otherwise("panel"))


def _make_axis(rows: pl.DataFrame) -> alt.X:
    """Return the axis of steps."""
    first, last = (
        int(end) for end in rows.select(first=pl.min("step"), last=pl.max("step")).row(0)
    )
    ticks = style.axis(
        "Step" if first >= 0 else "Step (-1: the problem itself)",
        format="d",
        tickMinStep=1,
        tickCount=min(last - first, 12) + 1,
        grid=False,
    )
    return alt.X(
        "step:Q", axis=ticks, scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False)
    )


def _draw_panel(panel: pl.DataFrame, x: alt.X) -> list[alt.Chart]:
    """Draw the first error, a line, intervals and points of one solution."""
    text = pl.col("text") if "text" in panel.columns else pl.lit(None, pl.String)
    step = pl.concat_str(pl.lit("step "), pl.col("step").cast(pl.Int64))
    is_problem = pl.col("step") < 0
    rows = panel.select(
        pl.col("step").cast(pl.Int64),
        *["soft", "ci_low", "ci_high", "n_rollouts", "n_correct", "is_first_error"],
        outcome=pl.when(is_problem).then(pl.lit("not graded")).otherwise("outcome"),
        name=pl.when(is_problem).then(pl.lit("the problem itself")).otherwise(step),
        text=text.cast(pl.String).str.slice(0, _TEXT_MAX).fill_null("not known"),
    )
    y_axis = style.axis("Share of right rollouts", tickCount=6)
    y_scale = alt.Scale(domain=[0, 1], nice=False)
    color = style.color_by("outcome", style.OUTCOME_COLORS)
    soft = alt.Y("soft:Q", axis=y_axis, scale=y_scale)
    base = alt.Chart(tables.inline(rows)).encode(x=x)
    errors = alt.Chart(tables.inline(rows.filter("is_first_error"))).encode(x=x)
    return [
        errors.mark_rule(strokeDash=[4, 3], color=style.MUTED, strokeWidth=1.2),
        errors.mark_text(
            align="left",
            dx=5,
            dy=7,
            baseline="middle",
            font=style.FONT,
            fontSize=12,
            color=style.INK,
        ).encode(y=style.at_y(0), text=alt.TextValue("first error")),
        base.mark_line(strokeWidth=1.2, color="#9a9a9a").encode(y=soft),
        base.mark_rule(strokeWidth=2).encode(
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2=alt.Y2("ci_high:Q"), color=color
        ),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y=soft,
            color=color,
            tooltip=[
                alt.Tooltip("name:N", title="Step"),
                alt.Tooltip("text:N", title="Text"),
                alt.Tooltip("n_correct:Q", title="Right rollouts"),
                alt.Tooltip("n_rollouts:Q", title="Rollouts"),
                alt.Tooltip("ci_low:Q", title="At least", format=".3f"),
                alt.Tooltip("ci_high:Q", title="At most", format=".3f"),
            ],
        ),
    ]
