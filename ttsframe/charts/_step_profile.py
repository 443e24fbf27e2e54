"""The chart of step scores: mean score along the solution, right against wrong attempts."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._wording import counted
from ttsframe.charts.style import (
    OUTCOME_COLOURS,
    arrange,
    axis,
    check_at_most,
    end_labels,
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

__all__ = ["step_profile"]

_HINT: Final = "tts.verifier.step_profile(trajectories) makes this table."
_N_POSITIONS_MAX: Final = 200
_NUMBERS: Final = ("position", "mean_score", "ci_low", "ci_high", "n_attempts", "n_problems")
_KNOWN: Final = frozenset({
    *_NUMBERS,
    "is_correct",
    "standard_error",
    "n_unscored_steps",
})


def step_profile(
    profile: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the mean step score along the solution, right against wrong attempts.

    A verifier that tells right from wrong shows two lines that part; where they part says how early
    it knows.

    Parameters
    ----------
    profile
        Table that `step_profile` makes, one row per (by, `is_correct`, `position`); collected if
        lazy. Any column that is not part of its contract tells runs apart and becomes panels on the
        same scales. A null `is_correct` is drawn as "not graded".
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
        When the table is not a step profile.
    DataError
        When the table has no rows, no score, several rows at one point, more than 200 positions, or
        too many groups.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b", "b"],
    ...     "step_scores": [[0.5, 0.9], [0.5, 0.2], [0.6, 0.7], [0.4, 0.1]],
    ...     "is_correct": [True, False, True, False],
    ... })
    >>> chart = charts.step_profile(tts.verifier.step_profile(trajectories, n_bins=2))
    >>> print(chart.title.subtitle[0])
    right: 2 attempts at 2 problems · wrong: 2 attempts at 2 problems · shaded: confidence interval...
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    rows = tidy(profile, where="profile", texts=["is_correct"], numbers=_NUMBERS, hint=_HINT)
    if rows["is_correct"].dtype not in {pl.Boolean, pl.Null}:
        raise ColumnsError(
            f"profile: 'is_correct' is {rows['is_correct'].dtype}, must be Boolean. Hint: {_HINT}"
        )
    apart = [name for name in rows.columns if name not in _KNOWN]
    point = [*apart, "is_correct", "position"]
    if rows.select(pl.struct(point).is_duplicated().any()).item():
        found = rows.filter(pl.struct(point).is_duplicated()).select(point).row(0, named=True)
        raise DataError(
            f"profile has several rows for {found}, must have one per point. Hint: keep the column "
            "that tells the runs apart, as tts.verifier.step_profile(trajectories, by=...) does."
        )
    rows = panel_column(rows, apart, where="profile").drop(apart)
    drawn = rows.with_columns(outcome=outcome(pl.col("is_correct"))).drop_nulls("mean_score")
    if drawn.is_empty():
        raise DataError("profile has no score in any row. Hint: the run has no step scores.")
    check_at_most(
        drawn["position"].n_unique(),
        _N_POSITIONS_MAX,
        "positions",
        where="profile",
        hint="tts.verifier.step_profile(trajectories, n_bins=20) makes fewer.",
    )
    low = drawn.select(pl.min_horizontal("mean_score", "ci_low").min()).item()
    high = drawn.select(pl.max_horizontal("mean_score", "ci_high").max()).item()
    domain = (0.0, 1.0) if low >= 0.0 and high <= 1.0 else _padded(low, high)
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    return arrange(
        [
            _panel(
                panel,
                str(name),
                domain=domain,
                width=panel_width(width, len(panels)),
                height=height,
            )
            for (name,), panel in panels.items()
        ],
        title=heading(
            title or "Step scores along the solution",
            _subtitle(drawn, confidence_level=confidence_level),
        ),
    )


def _padded(low: float, high: float) -> tuple[float, float]:
    """Return an axis a little wider than the marks."""
    margin = (high - low or 1.0) * 0.05
    return low - margin, high + margin


def _subtitle(rows: pl.DataFrame, *, confidence_level: float | None) -> list[str]:
    """Say how many attempts and problems are drawn, and what is not."""
    most = rows.group_by("panel", "outcome").agg(pl.col("n_attempts", "n_problems").max())
    facts = []
    for name, counts in most.sort("outcome").partition_by("outcome", as_dict=True).items():
        attempts = counted(counts["n_attempts"].to_list(), "attempt")
        problems = counted(counts["n_problems"].to_list(), "problem")
        facts.append(f"{name[0]}: {attempts} at {problems}")
    if rows["ci_low"].null_count() < rows.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        facts.append(f"shaded: {level}confidence interval over problems")
    subtitle = [" · ".join(facts)]
    if "n_unscored_steps" in rows.columns and (n_left_out := int(rows["n_unscored_steps"].sum())):
        subtitle.append(f"Left out: {counted([n_left_out], 'step')} without a score")
    return subtitle


def _panel(
    drawn: pl.DataFrame, name: str, *, domain: tuple[float, float], width: int, height: int
) -> alt.LayerChart:
    """Draw one panel: bands, lines, points, and the names at the lines' ends."""
    rows = drawn.with_columns(
        n_points=pl.len().over("outcome").cast(pl.Int64),
        interval=pl.concat_str(
            pl.col("ci_low").round(3), pl.lit(" to "), pl.col("ci_high").round(3)
        ).fill_null("unknown"),
    )
    x = alt.X(
        "position:Q",
        axis=axis(
            "Position in the solution, first step to last", format=".0%", grid=False, tickCount=5
        ),
        scale=alt.Scale(domain=[0, 1]),
    )
    y_axis, y_scale = (
        axis("Mean step score", tickCount=6),
        alt.Scale(domain=list(domain), nice=False),
    )
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=list(OUTCOME_COLOURS), range=list(OUTCOME_COLOURS.values())),
        legend=None,
    )
    base = alt.Chart(inline(rows.drop("panel", "is_correct", "standard_error", strict=False)))
    base = base.encode(x=x, color=colour)
    ends_of = {"y": alt.Y("ci_low:Q", axis=y_axis, scale=y_scale), "y2": alt.Y2("ci_high:Q")}
    middle = alt.Y("mean_score:Q", axis=y_axis, scale=y_scale)
    ends = (
        rows
        .sort("position")
        .group_by("outcome", maintain_order=True)
        .agg(pl.col("mean_score").last().alias("y"))
        .select(
            pl.lit(1.0).alias("x"),
            "y",
            pl.concat_str("outcome", pl.lit(" "), pl.col("y").round(2)).alias("label"),
            pl.col("outcome").replace_strict(OUTCOME_COLOURS).alias("colour"),
        )
    )
    layers = [
        base.transform_filter(alt.datum.n_points > 1).mark_area(opacity=0.16).encode(**ends_of),
        base.transform_filter(alt.datum.n_points == 1).mark_rule(strokeWidth=2).encode(**ends_of),
        base.mark_line(strokeWidth=2.2).encode(y=middle),
        base.mark_point(filled=True, size=46, opacity=1).encode(
            y=middle,
            tooltip=[
                alt.Tooltip("outcome:N", title="Attempts that are"),
                alt.Tooltip("position:Q", title="Position", format=".0%"),
                alt.Tooltip("mean_score:Q", title="Mean score", format=".3f"),
                alt.Tooltip("interval:N", title="Interval"),
                alt.Tooltip("n_attempts:Q", title="Attempts"),
                alt.Tooltip("n_problems:Q", title="Problems"),
            ],
        ),
        end_labels(
            ends, x=alt.X("x:Q", scale=alt.Scale(domain=[0, 1])), domain=domain, height=height
        ),
    ]
    chart = panel_of(layers, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart
