"""The chart of the steps of a problem: how often completions from each reach the right answer."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted
from ttsframe.charts import style, tables
from ttsframe.charts.lines import side_by_side
from ttsframe.errors import ColumnsError

__all__ = ["step_values"]

_TABLE: Final = tables.Argument("steps", "tts.process.estimate_steps(rollouts)", ("steps",))
_UNIT: Final = ("problem_id", "solution_id")
_NUMBERS: Final = ("step", "soft", "ci_low", "ci_high", "n_rollouts", "n_correct")
_LABELS: Final = ("is_correct", "is_first_error")
_PLACES: Final = ("node", "alternative")
"""Columns that number the steps at one depth of a tree, or the alternatives to a step."""
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
    "parent",
    "is_on_path",
})
_HEIGHT: Final = 240
_HEIGHT_OF_LABELS: Final = 90
_TEXT_MAX: Final = 200
_N_STEPS_MAX: Final = 200


def step_values(
    steps: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int | None = None,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the value of each step along some solutions, and the first error of each.

    Where the value drops to almost 0, hardly any completion reaches the right answer any more, so
    that step broke the solution. Long intervals mean that there were too few rollouts to know.

    Parameters
    ----------
    steps
        Table that `estimate_steps` makes or `read_steps` reads, one row per (by, `problem_id`,
        `solution_id`, `step`), filtered to the solutions to look at; collected if lazy. Each
        solution is a panel, and so is each value of a column that tells runs apart. Steps with
        labels and no values are drawn as right or wrong; nodes of a tree are joined to their
        parents, and alternatives of a step stand side by side. `text` is in the tooltip.
    title, confidence_level, width
        As in `scaling_curve`.
    height
        Height of a panel in pixels; None chooses one, less where there are only labels.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not one of steps, or has neither values nor labels.
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
    rows, apart = _collect_steps(steps)
    is_labeled_only = "soft" not in steps.collect_schema()
    _TABLE.check_at_most(
        rows["step"].n_unique(),
        _N_STEPS_MAX,
        "steps of a solution",
        hint="filter the table to the first steps.",
    )
    rows = _name_panels(rows, apart)
    if is_labeled_only:
        rows = rows.with_columns(soft=pl.col("is_correct").cast(pl.Float64))
    hint = "the rollouts are not graded."
    drawn = _TABLE.require_values(rows, ["soft"], "value", hint=hint)
    drawn = drawn.with_columns(outcome=style.name_outcome(pl.col("is_correct")))
    x = _make_axis(drawn)
    n_rollouts = drawn["n_rollouts"].drop_nulls().cast(pl.Int64).to_list()
    labeled = set(drawn.filter(pl.col("step") >= 0)["outcome"])
    n_ungraded = rows.height - drawn.height
    left_out = (
        f"Left out: {counted([n_ungraded], 'step')} without a "
        f"{'label' if is_labeled_only else 'graded rollout'}"
    )
    by_default = (
        "Which steps are labeled right"
        if is_labeled_only
        else "How often completions from each step are right"
    )
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, x, is_labeled_only=is_labeled_only),
        width=width,
        height=height or (_HEIGHT_OF_LABELS if is_labeled_only else _HEIGHT),
        title=style.heading(
            title or by_default,
            [
                counted([drawn["panel"].n_unique()], "solution"),
                f"{counted(n_rollouts, 'rollout')} per step" if n_rollouts else "",
                f"bars: {interval}" if tables.has_interval(drawn) else "",
            ],
            [
                "green: labeled right" if "right" in labeled else "",
                "purple: labeled wrong" if "wrong" in labeled else "",
                "lines: from a step to those after it" if "parent" in drawn.columns else "",
                "side by side: alternatives of a step" if "alternative" in drawn.columns else "",
            ],
            [left_out if n_ungraded else ""],
        ),
    )


def _collect_steps(steps: pl.DataFrame | pl.LazyFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return estimated or read steps with all columns that are drawn, and those that tell runs apart."""
    rows = _TABLE.collect(steps, texts=[*_UNIT, "step"])
    given = [name for name in (*_NUMBERS, *_LABELS) if name in rows.columns]
    if not {"soft", "is_correct"} & set(given):
        raise ColumnsError.missing(
            ["soft", "is_correct"],
            rows.columns,
            where=f"{_TABLE.where}, of which it needs one",
            hint=f"{_TABLE.hint} tts.read_steps(file) reads one.",
        )
    rows = _TABLE.collect(
        rows,
        numbers=[name for name in given if name in _NUMBERS],
        booleans=[name for name in given if name in _LABELS],
    )
    dtypes = dict.fromkeys(_NUMBERS, pl.Float64) | dict.fromkeys(_LABELS, pl.Boolean)
    absent = {
        name: pl.lit(None, dtype) for name, dtype in dtypes.items() if name not in rows.columns
    }
    rows = rows.with_columns(**absent)
    point = [*_UNIT, "step", *[name for name in _PLACES if name in rows.columns]]
    # What a file holds beside its steps tells no runs apart where there is one row per step.
    is_unique = not rows.select(point).is_duplicated().any()
    others = [name for name in rows.columns if name not in _KNOWN and name not in point]
    apart = [
        name
        for name in others
        if not (is_unique or name.startswith("hard@") or rows[name].dtype.is_nested())
    ]
    _TABLE.check_one_per_point(
        rows, [*apart, *point], hint="keep the column that tells the runs apart."
    )
    rows = rows.sort(*apart, *point)
    if "is_first_error" in absent and "alternative" not in rows.columns:
        rows = rows.with_columns(is_first_error=_find_first_error([*apart, *_UNIT]))
    return rows, apart


def _find_first_error(solution: list[str]) -> pl.Expr:
    """Find the first step of each solution that is labeled wrong."""
    is_wrong = ~pl.col("is_correct").fill_null(value=True)
    return is_wrong & (is_wrong.cast(pl.Int64).cum_sum().over(solution) == 1)


def _name_panels(rows: pl.DataFrame, apart: list[str]) -> pl.DataFrame:
    """Give each solution a panel with its name."""
    rows = rows.with_columns(
        pl.col("problem_id").cast(pl.String).alias("problem"),
        pl.col("solution_id").cast(pl.String).alias("solution"),
    )
    # The name of a problem is enough where it has one solution.
    has_one = (
        rows.group_by(*apart, "problem").agg(pl.col("solution").n_unique())["solution"].max() == 1
    )
    rows = _TABLE.add_panels(rows, [*apart, "problem", *([] if has_one else ["solution"])])
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
    return alt.X("x:Q", axis=ticks, scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False))


def _draw_panel(panel: pl.DataFrame, x: alt.X, *, is_labeled_only: bool) -> list[alt.Chart]:
    """Draw the first error, lines between steps, intervals and points of one solution."""
    text = pl.col("text") if "text" in panel.columns else pl.lit(None, pl.String)
    step = pl.concat_str(pl.lit("step "), pl.col("step").cast(pl.Int64))
    is_problem = pl.col("step") < 0
    place = pl.col("step").cast(pl.Float64)
    if "alternative" in panel.columns:
        place += side_by_side("alternative").over("step") * 0.6
    elif "node" in panel.columns:
        place += side_by_side("node").over("step") * 0.6
    rows = panel.with_columns(
        x=place,
        outcome=pl.when(is_problem).then(pl.lit("not graded")).otherwise("outcome"),
        name=pl.when(is_problem).then(pl.lit("the problem itself")).otherwise(step),
        text=text.cast(pl.String).str.slice(0, _TEXT_MAX).fill_null("not known"),
    )
    shown = rows.select(
        *["x", "soft", "ci_low", "ci_high", "n_rollouts", "n_correct", "is_first_error"],
        *["outcome", "name", "text"],
    )
    y_axis = style.axis("Share of right rollouts", tickCount=6)
    if is_labeled_only:
        y_axis = style.axis(
            "Label", values=[0, 1], labelExpr="datum.value == 1 ? 'right' : 'wrong'"
        )
    margin = 0.1 if is_labeled_only else 0.0
    y_scale = alt.Scale(domain=[-margin, 1 + margin], nice=False)
    color = style.color_by("outcome", style.OUTCOME_COLORS)
    soft = alt.Y("soft:Q", axis=y_axis, scale=y_scale)
    base = alt.Chart(tables.inline(shown)).encode(x=x)
    errors = alt.Chart(tables.inline(shown.filter("is_first_error"))).encode(x=x)
    links = alt.Chart(tables.inline(_link_steps(rows))).mark_rule(strokeWidth=1.2, color="#9a9a9a")
    tooltip = [
        alt.Tooltip("name:N", title="Step"),
        alt.Tooltip("text:N", title="Text"),
        alt.Tooltip("outcome:N", title="Label"),
    ]
    if not is_labeled_only:
        tooltip += [
            alt.Tooltip("soft:Q", title="Share of right rollouts", format=".3f"),
            alt.Tooltip("n_correct:Q", title="Right rollouts"),
            alt.Tooltip("n_rollouts:Q", title="Rollouts"),
            alt.Tooltip("ci_low:Q", title="At least", format=".3f"),
            alt.Tooltip("ci_high:Q", title="At most", format=".3f"),
        ]
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
        links.encode(x=x, y=soft, x2=alt.X2("x2:Q"), y2=alt.Y2("soft2:Q")),
        base.mark_rule(strokeWidth=1.6, opacity=0.8).encode(
            y=alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), y2=alt.Y2("ci_high:Q"), color=color
        ),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y=soft, color=color, tooltip=tooltip
        ),
    ]


def _link_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the lines from each step to the next, or in a tree from each node to its children."""
    if "parent" in rows.columns and "node" in rows.columns:
        parents = rows.select(pl.col("node").alias("parent"), "x", "soft")
        children = rows.select("parent", x2="x", soft2="soft")
        return children.join(parents, on="parent", how="inner").drop("parent")
    path = rows
    if "alternative" in rows.columns:
        path = rows.filter("is_on_path") if "is_on_path" in rows.columns else rows.clear()
    after = pl.col("x", "soft").shift(-1).name.suffix("2")
    return path.sort("x").select("x", "soft", after).drop_nulls()
