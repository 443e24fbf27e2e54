"""The chart of accuracy against complexity, one line for each number of trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_between, check_fraction
from ttsframe._wording import counted, interval, percent
from ttsframe.charts.style import (
    FONT,
    INK,
    MUTED,
    arrange,
    axis,
    check_at_most,
    heading,
    inline,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    tidy,
)
from ttsframe.errors import DataError

__all__ = ["complexity_curve"]

_NUMBERS: Final = (
    "k",
    "complexity",
    "accuracy",
    "ci_low",
    "ci_high",
    "oracle_accuracy",
    "n_instances",
)
_COLUMNS: Final = {"task", "selector", *_NUMBERS}
_N_LINES_MAX: Final = 12
_N_LEVELS_MAX: Final = 200
_N_TICKS_MAX: Final = 16

# From few trajectories to many: olive, green, blue, violet, each darker than the one before, and
# all dark enough for text on white. Shapes tell neighbours apart as well.
_RAMP: Final = ((138, 117, 0), (0, 128, 96), (0, 98, 168), (52, 10, 92))
_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


class _Frame(NamedTuple):
    """What all panels of a chart share."""

    numbers: list[int]
    colours: list[str]
    threshold: float | None
    unit: str | None
    width: int
    height: int

    @property
    def names(self) -> list[str]:
        """Names of the lines."""
        return [f"K = {k}" for k in self.numbers]


def complexity_curve(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    threshold: float | None = 0.5,
    unit: str | None = None,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 300,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy against the complexity of a task, one line for each K.

    Where a line falls below the threshold for good, reasoning has collapsed; if lines of more
    trajectories fall later, K moves the collapse. Dotted lines are the oracle: what the best choice
    among the same trajectories would reach. Bands are those of the smallest and the largest K, so
    that they can be told apart; a point's tooltip has its interval.

    Parameters
    ----------
    curve
        Table that `EvaluationResult.to_frame` makes, one row per (`task`, `selector`, `k`,
        `complexity`), those of several K stacked with ``pl.concat``; collected if lazy. Tasks,
        selectors and the values of any further column become panels.
    threshold
        Accuracy from which on a level counts as solved, drawn as a dashed line; None draws none.
    unit
        What complexity counts, such as "discs", for the title of its axis.
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
        When the table is not the one described.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, more than 12
        numbers of trajectories, 200 levels, or too many groups.
    ParameterError
        When the threshold or the confidence level is impossible.

    Examples
    --------
    >>> import polars as pl
    >>> from ttsframe import charts
    >>> from ttsframe.evaluator import ArithmeticSequence, Evaluator
    >>> task = ArithmeticSequence(seed=0)
    >>> answers = {one.prompt: one.ground_truth for one in task.generate_batch((1, 3), 10)}
    >>> results = Evaluator(task).evaluate(
    ...     lambda prompt, k: [answers[prompt] if i % 3 == 2 else "?" for i in range(k)],
    ...     (1, 3),
    ...     k_values=[1, 4],
    ...     verbose=False,
    ... )
    >>> chart = charts.complexity_curve(pl.concat(one.to_frame() for one in results.values()))
    >>> print(chart.title.subtitle[0])
    arithmetic sequence · majority vote · 10 instances a level
    """
    if confidence_level is not None:
        check_fraction(confidence_level, "confidence_level")
    if threshold is not None:
        check_between(threshold, "threshold", 0.0, 1.0)
    rows = tidy(
        curve,
        where="curve",
        texts=["task", "selector"],
        numbers=_NUMBERS,
        hint="pl.concat(result.to_frame() for result in results.values()) makes this table.",
    )
    apart = ["task", "selector", *[name for name in rows.columns if name not in _COLUMNS]]
    point = [*apart, "k", "complexity"]
    repeated = rows.filter(pl.struct(point).is_duplicated())
    if not repeated.is_empty():
        raise DataError(
            f"curve has several rows for {repeated.select(point).row(0, named=True)}, must have one "
            "per point. Hint: add a column that tells the runs apart."
        )
    drawn = rows.drop_nulls("accuracy")
    if drawn.is_empty():
        raise DataError(f"curve has no accuracy: null in all {rows.height} rows.")
    numbers = drawn["k"].unique().sort().to_list()
    for n, most, what in (
        (len(numbers), _N_LINES_MAX, "values of k"),
        (drawn["complexity"].n_unique(), _N_LEVELS_MAX, "levels of complexity"),
    ):
        check_at_most(n, most, what, where="curve", hint="filter the table to those to compare.")
    drawn = _worded(panel_column(drawn.with_columns(_spaced(*apart[:2])), apart, where="curve"))
    panels = drawn.partition_by("panel", as_dict=True, maintain_order=True)
    frame = _Frame(
        numbers=numbers,
        colours=_colours(len(numbers)),
        threshold=threshold,
        unit=unit,
        width=panel_width(width, len(panels)),
        height=height,
    )
    # The legend stands at the end of the first row.
    chart: alt.LayerChart | alt.ConcatChart = arrange(
        [
            _panel(panel, str(name), frame, has_legend=i == min(1, len(panels) - 1))
            for i, ((name,), panel) in enumerate(panels.items())
        ],
        title=heading(
            title or "Accuracy by complexity and number of trajectories, K",
            _subtitle(drawn, frame, confidence_level=confidence_level),
        ),
    )
    if isinstance(chart, alt.ConcatChart):
        # Shared, the legend would be missing with that of the first panel.
        apart_scales = alt.ScaleResolveMap(color="independent", shape="independent")
        chart.resolve = alt.Resolve(scale=apart_scales)
    return chart


def _spaced(*names: str) -> list[pl.Expr]:
    """Write names as they are read."""
    return [pl.col(name).cast(pl.String).str.replace_all("_", " ", literal=True) for name in names]


def _worded(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what a reader sees, and whether a line's oracle is another line."""
    line = ["panel", "k"]
    is_wide = pl.col("complexity").n_unique().over("panel") > 1
    is_other = (pl.col("oracle_accuracy") - pl.col("accuracy")).abs() > 1e-9
    return rows.with_columns(
        pl.format("K = {}", "k").alias("line"),
        interval().fill_null("unknown").alias("interval"),
        percent(pl.col("oracle_accuracy")).fill_null("unknown").alias("oracle"),
        (is_other.fill_null(value=False).any().over(line) & is_wide).alias("has_oracle"),
        ((pl.col("k") == pl.col("k").min()) | (pl.col("k") == pl.col("k").max())).alias("has_band"),
    ).sort("panel", "k", "complexity", maintain_order=True)


def _colours(n_lines: int) -> list[str]:
    """Return colours evenly along the ramp."""
    colours = []
    for i in range(n_lines):
        place = i / max(n_lines - 1, 1) * (len(_RAMP) - 1) if n_lines > 1 else len(_RAMP) - 1
        left = min(int(place), len(_RAMP) - 2)
        share = place - left
        mixed = (
            round(a + (b - a) * share) for a, b in zip(_RAMP[left], _RAMP[left + 1], strict=True)
        )
        colours.append("#" + "".join(f"{value:02x}" for value in mixed))
    return colours


def _subtitle(drawn: pl.DataFrame, frame: _Frame, *, confidence_level: float | None) -> list[str]:
    """Say what is drawn, and over how many instances."""
    facts = [str(drawn[name][0]) for name in ("task", "selector") if drawn[name].n_unique() == 1]
    counts = drawn["n_instances"].drop_nulls().to_list()
    if counts:
        facts.append(f"{counted(counts, 'instance')} a level")
    marks = []
    if drawn["ci_low"].null_count() < drawn.height:
        level = "" if confidence_level is None else f"{100 * confidence_level:g}% "
        at = f" at {' and '.join(dict.fromkeys([frame.names[0], frame.names[-1]]))}"
        is_wide = drawn["complexity"].n_unique() > 1
        marks.append(
            f"shaded: {level}confidence interval{at}"
            if is_wide
            else f"bars: {level}confidence interval"
        )
    if frame.threshold is not None:
        marks.append(f"dashed: threshold {100 * frame.threshold:g}%")
    if drawn["has_oracle"].any():
        marks.append("dotted: oracle, right if any of the K is")
    return [" · ".join(line) for line in (facts, marks) if line]


def _panel(rows: pl.DataFrame, name: str, frame: _Frame, *, has_legend: bool) -> alt.LayerChart:
    """Draw one panel: threshold, bands, oracle, lines, points."""
    levels = rows["complexity"].unique().sort().to_list()
    step = ceil(len(levels) / _N_TICKS_MAX)
    first, last = levels[0], levels[-1]
    pad = 0.5 if first == last else (last - first) * 0.02
    x = alt.X(
        "x:Q",
        axis=axis(
            "Complexity" if frame.unit is None else f"Complexity ({frame.unit})",
            values=levels[::step],
            format="~g",
            grid=False,
        ),
        scale=alt.Scale(domain=[first - pad, last + pad], nice=False),
    )
    y_axis = axis("Accuracy", format=".0%", tickCount=6)
    y_scale = alt.Scale(domain=[0, 1], nice=False)

    def height_of(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", axis=y_axis, scale=y_scale)

    legend = _legend() if has_legend else None
    colour = alt.Color(
        "line:N",
        sort=None,
        scale=alt.Scale(domain=frame.names, range=frame.colours),
        legend=legend,
    )
    shape = alt.Shape(
        "line:N",
        sort=None,
        scale=alt.Scale(
            domain=frame.names,
            range=[_SHAPES[i % len(_SHAPES)] for i in range(len(frame.names))],
        ),
        legend=legend,
    )
    # On a single level, lines are points: side by side, each with its interval.
    place = (pl.col("k").rank("dense").cast(pl.Float64) - 0.5) / pl.col("k").n_unique() - 0.5
    placed = rows.with_columns(x="complexity" if first < last else pl.col("complexity") + place)
    base = alt.Chart(inline(placed)).encode(x=x, color=colour)
    ends = base.encode(y=height_of("ci_low"), y2=alt.Y2("ci_high:Q"))
    layers: list[alt.Chart] = [
        ends.transform_filter(alt.datum.has_band).mark_area(opacity=0.16)
        if first < last
        else ends.mark_rule(strokeWidth=2),
        base
        .transform_filter(alt.datum.has_oracle)
        .mark_line(strokeWidth=1.4, strokeDash=[1, 3], strokeCap="round")
        .encode(y=height_of("oracle_accuracy")),
        base.mark_line(strokeWidth=2.2).encode(y=height_of("accuracy")),
        base.mark_point(
            filled=True, size=52 if len(levels) <= _N_TICKS_MAX else 18, opacity=1
        ).encode(y=height_of("accuracy"), shape=shape, tooltip=_tooltip()),
    ]
    if frame.threshold is not None:
        layers.insert(0, _threshold(frame.threshold, y_axis, y_scale))
    chart = panel_of(layers, width=frame.width, height=frame.height)
    return chart.properties(title=panel_heading(name)) if name else chart


def _threshold(threshold: float, y_axis: alt.Axis, y_scale: alt.Scale) -> alt.Chart:
    """Draw the threshold across the panel."""
    chart: alt.Chart = (
        alt
        .Chart(inline(pl.DataFrame({"threshold": [threshold]})))
        .mark_rule(strokeDash=[5, 4], strokeWidth=1.4, color=MUTED)
        .encode(y=alt.Y("threshold:Q", axis=y_axis, scale=y_scale))
    )
    return chart


def _tooltip() -> Sequence[alt.Tooltip]:
    """Say what a point shows."""
    return [
        alt.Tooltip("line:N", title="Trajectories"),
        alt.Tooltip("complexity:Q", title="Complexity"),
        alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("oracle:N", title="Oracle"),
        alt.Tooltip("n_instances:Q", title="Instances"),
    ]


def _legend() -> alt.Legend:
    """Style the legend of the lines."""
    return alt.Legend(
        title="Trajectories",
        orient="right",
        titleFont=FONT,
        titleFontSize=12,
        titleFontWeight="normal",
        titleColor=MUTED,
        labelFont=FONT,
        labelFontSize=12,
        labelColor=INK,
        offset=14,
        symbolOpacity=1,
        symbolSize=80,
        rowPadding=5,
    )
