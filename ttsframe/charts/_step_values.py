"""The chart of one problem's steps: how often completions from each reach the right answer."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import counted
from ttsframe.charts.style import (
    FONT,
    INK,
    MUTED,
    OUTCOME_COLOURS,
    arrange,
    axis,
    check_at_most,
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

__all__ = ["step_values"]

_HINT: Final = "tts.process.estimate_steps(rollouts) makes this table."
_NUMBERS: Final = ("step", "soft", "ci_low", "ci_high", "n_rollouts", "n_correct")
_LABELS: Final = ("is_correct", "is_first_error")
_ESTIMATED: Final = frozenset({
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
    """Draw the value of each step along some solutions, and where each goes wrong.

    A step after which hardly any completion reaches the right answer is where the solution broke;
    how long the intervals are says whether there were rollouts enough to know.

    Parameters
    ----------
    steps
        Table that `estimate_steps` makes, one row per (by, `problem_id`, `solution_id`, `step`),
        filtered to the solutions to look at; collected if lazy. Each solution is a panel, and so is
        what other columns tell apart. `text`, where it was joined, is in the tooltip.
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
        When the table is not one of estimated steps.
    DataError
        When the table has no rows, no value, several rows for a step, or too many solutions or
        steps.

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
    1 solution · 3 rollouts a step · bars: confidence interval
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    unit = ["problem_id", "solution_id"]
    rows = tidy(steps, where="steps", texts=[*unit, *_LABELS], numbers=_NUMBERS, hint=_HINT)
    if wrong := [name for name in _LABELS if rows[name].dtype not in {pl.Boolean, pl.Null}]:
        raise ColumnsError(f"steps: {wrong} must be Boolean. Hint: {_HINT}")
    apart = [
        name
        for name in rows.columns
        if name not in _ESTIMATED and name not in unit and not name.startswith("hard@")
    ]
    point = [*apart, *unit, "step"]
    repeated = rows.filter(pl.struct(point).is_duplicated())
    if repeated.height:
        raise DataError(
            f"steps has several rows for {repeated.select(point).row(0, named=True)}, must have one "
            "per step. Hint: keep the column that tells the runs apart."
        )
    check_at_most(
        rows["step"].n_unique(),
        _N_STEPS_MAX,
        "steps of a solution",
        where="steps",
        hint="filter the table to the first steps.",
    )
    named = rows.sort(point).with_columns(
        pl.col("problem_id").cast(pl.String).alias("problem"),
        pl.col("solution_id").cast(pl.String).alias("solution"),
    )
    panelled = panel_column(named, [*apart, "problem", "solution"], where="steps")
    if all(panelled[name].n_unique() == 1 for name in (*apart, "problem")):
        # A bare number would not say what it numbers.
        number = pl.concat_str(pl.lit("solution "), "panel")
        panelled = panelled.with_columns(
            pl.when(pl.col("panel") != "").then(number).otherwise("panel").alias("panel")
        )
    drawn = panelled.drop_nulls("soft").with_columns(outcome=outcome(pl.col("is_correct")))
    if drawn.is_empty():
        raise DataError("steps has no value in any row. Hint: the rollouts are not graded.")
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    ends = (int(drawn["step"].min()), int(drawn["step"].max()))  # type: ignore[arg-type]
    return arrange(
        [
            _panel(
                panel, str(name), ends=ends, width=panel_width(width, len(panels)), height=height
            )
            for (name,), panel in panels.items()
        ],
        title=heading(
            title or "How often completions from a step are right",
            _subtitle(panelled, drawn, confidence_level),
        ),
    )


def _subtitle(rows: pl.DataFrame, drawn: pl.DataFrame, confidence_level: float | None) -> list[str]:
    """Say what is drawn, and what is not."""
    sizes = sorted(set(drawn["n_rollouts"].to_list()))
    n_rollouts = " to ".join(f"{size:g}" for size in {sizes[0]: 0, sizes[-1]: 0})
    level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
    facts = [
        counted([drawn["panel"].n_unique()], "solution"),
        f"{n_rollouts} rollouts a step",
        f"bars: {level}confidence interval",
    ]
    called = {"right": "green", "wrong": "purple"}
    there = set(drawn.filter(pl.col("step") >= 0)["outcome"])
    colours = [f"{colour}: labelled {name}" for name, colour in called.items() if name in there]
    subtitle = [" · ".join(line) for line in (facts, colours) if line]
    if n_left_out := rows.height - drawn.height:
        subtitle.append(f"Left out: {counted([n_left_out], 'step')} without a graded rollout")
    return subtitle


def _panel(
    drawn: pl.DataFrame, name: str, *, ends: tuple[int, int], width: int, height: int
) -> alt.LayerChart:
    """Draw one solution: intervals, a line, points, and where it goes wrong first."""
    texts = pl.col("text") if "text" in drawn.columns else pl.lit(None, pl.String)
    is_problem = pl.col("step") < 0
    rows = drawn.select(
        pl.col("step").cast(pl.Int64),
        *["soft", "ci_low", "ci_high", "n_rollouts", "n_correct", "is_first_error"],
        pl.when(is_problem).then(pl.lit("not graded")).otherwise("outcome").alias("outcome"),
        pl
        .when(is_problem)
        .then(pl.lit("the problem itself"))
        .otherwise(pl.concat_str(pl.lit("step "), pl.col("step").cast(pl.String)))
        .alias("name"),
        texts.cast(pl.String).str.slice(0, _TEXT_MAX).fill_null("not known").alias("text"),
    )
    low, high = ends
    x = alt.X(
        "step:Q",
        axis=axis(
            "Step" if low >= 0 else "Step (-1: the problem itself)",
            format="d",
            tickMinStep=1,
            tickCount=min(high - low, 12) + 1,
            grid=False,
        ),
        scale=alt.Scale(domain=[low - 0.5, high + 0.5], nice=False),
    )
    y_axis = axis("Share of right rollouts", tickCount=6)
    y_scale = alt.Scale(domain=[0, 1], nice=False)
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=list(OUTCOME_COLOURS), range=list(OUTCOME_COLOURS.values())),
        legend=None,
    )
    base = alt.Chart(inline(rows)).encode(x=x)
    middle = alt.Y("soft:Q", axis=y_axis, scale=y_scale)
    errors = alt.Chart(inline(rows.filter("is_first_error"))).encode(x=x)
    layers = [
        errors.mark_rule(strokeDash=[4, 3], color=MUTED, strokeWidth=1.2),
        errors.mark_text(
            align="left", dx=5, dy=7, baseline="middle", font=FONT, fontSize=12, color=INK
        ).encode(y=alt.value(0), text=alt.value("first error")),
        base.mark_line(strokeWidth=1.2, color="#9a9a9a").encode(y=middle),
        base.mark_rule(strokeWidth=2).encode(
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale),
            y2=alt.Y2("ci_high:Q"),
            color=colour,
        ),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y=middle,
            color=colour,
            tooltip=[
                alt.Tooltip("name:N", title="Where"),
                alt.Tooltip("text:N", title="Text"),
                alt.Tooltip("n_correct:Q", title="Right rollouts"),
                alt.Tooltip("n_rollouts:Q", title="Rollouts"),
                alt.Tooltip("ci_low:Q", title="At least", format=".3f"),
                alt.Tooltip("ci_high:Q", title="At most", format=".3f"),
            ],
        ),
    ]
    chart = panel_of(layers, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart
