"""The chart of step scores: mean score along the solution, right and wrong attempts apart."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted, units_of
from ttsframe.charts import style, tables
from ttsframe.charts.lines import LinePlot

__all__ = ["step_profile"]

_TABLE: Final = tables.Argument("profile", "tts.verifier.step_profile(trajectories)", ("profile",))
_N_POSITIONS_MAX: Final = 200
_NUMBERS: Final = ("position", "mean_score", "ci_low", "ci_high", "n_attempts", "n_problems")
_KNOWN: Final = frozenset({*_NUMBERS, "is_correct", "standard_error", "n_unscored_steps"})


def step_profile(
    profile: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the mean step score along the solution, right and wrong attempts apart.

    If the verifier tells right from wrong, the two lines part; the position where they part shows
    how early in the solution it can.

    Parameters
    ----------
    profile
        Table that `step_profile` makes, one row per (by, `is_correct`, `position`); collected if
        lazy. Any column that is not part of its contract tells runs apart and becomes panels on the
        same scales. A null `is_correct` is drawn as "not graded".
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not a step profile.
    DataError
        When the table has no rows, no score, several rows at one point, more than 200 positions, or
        more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

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
    right: 2 attempts on 2 problems · wrong: 2 attempts on 2 problems · shaded: confidence interval...
    """
    interval = tables.name_interval(confidence_level)
    drawn = _check_profile(profile)
    plot = LinePlot(
        x=alt.X(
            "x:Q",
            axis=style.axis(
                "Position in the solution, first step to last",
                format=".0%",
                grid=False,
                tickCount=5,
            ),
            scale=alt.Scale(domain=[0, 1]),
        ),
        y="mean_score",
        y_axis=style.axis("Mean step score", tickCount=6),
        domain=_find_domain(drawn),
        color=style.color_by("line", style.OUTCOME_COLORS),
        tooltip=[
            alt.Tooltip("line:N", title="Attempts"),
            alt.Tooltip("x:Q", title="Position", format=".0%"),
            alt.Tooltip("mean_score:Q", title="Mean score", format=".3f"),
            alt.Tooltip("interval:N", title="Interval"),
            alt.Tooltip("n_attempts:Q", title="Number of attempts"),
            alt.Tooltip("n_problems:Q", title="Problems"),
        ],
        band_opacity=0.16,
    )

    def draw(panel: pl.DataFrame) -> list[alt.Chart]:
        label = pl.concat_str("line", pl.lit(" "), style.decimals(pl.col("mean_score"), 2))
        labels = plot.ends(panel, label, x=1.0, colors=style.OUTCOME_COLORS)
        return [*plot.layers(panel), plot.name_ends(labels, height=height)]

    n_unscored = int(drawn["n_unscored_steps"].sum()) if "n_unscored_steps" in drawn.columns else 0
    return style.draw_panels(
        drawn,
        draw,
        width=width,
        height=height,
        title=style.heading(
            title or "Step scores along the solution",
            [
                *_count_outcomes(drawn),
                f"shaded: {interval} over {units_of(drawn.columns)}"
                if tables.has_interval(drawn)
                else "",
            ],
            [f"Left out: {counted([n_unscored], 'step')} without a score" if n_unscored else ""],
        ),
    )


def _check_profile(profile: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """Return the points of a step profile, with panels and texts."""
    rows = _TABLE.collect(profile, booleans=["is_correct"], numbers=_NUMBERS)
    apart = tables.find_run_columns(rows, _KNOWN)
    _TABLE.check_one_per_point(rows, [*apart, "is_correct", "position"])
    rows = _TABLE.add_panels(rows, apart).drop(apart)
    hint = "the run has no step scores."
    known = _TABLE.require_values(rows, ["mean_score"], "score", hint=hint)
    _TABLE.check_at_most(
        known["position"].n_unique(),
        _N_POSITIONS_MAX,
        "positions",
        hint="tts.verifier.step_profile(trajectories, n_bins=20) makes fewer.",
    )
    return _add_texts(known)


def _add_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Name the outcome of each line, and write the intervals as text."""
    low, high = (style.decimals(pl.col(name), 3) for name in ("ci_low", "ci_high"))
    return rows.with_columns(
        line=style.name_outcome(pl.col("is_correct")),
        x=pl.col("position").cast(pl.Float64),
        interval=pl.concat_str(low, pl.lit(" to "), high).fill_null("unknown"),
    )


def _find_domain(rows: pl.DataFrame) -> tuple[float, float]:
    """Return an axis from 0 to 1, or for other scores one a little wider than the marks."""
    low = rows.select(pl.min_horizontal("mean_score", "ci_low").min()).item()
    high = rows.select(pl.max_horizontal("mean_score", "ci_high").max()).item()
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    margin = (high - low or 1.0) * 0.05
    return low - margin, high + margin


def _count_outcomes(rows: pl.DataFrame) -> list[str]:
    """Write how many attempts and problems each outcome has."""
    most = rows.group_by("panel", "line").agg(pl.col("n_attempts", "n_problems").max())
    return [
        f"{name}: {counted(counts['n_attempts'].to_list(), 'attempt')} on "
        f"{counted(counts['n_problems'].to_list(), 'problem')}"
        for (name,), counts in most.sort("line").partition_by("line", as_dict=True).items()
    ]
