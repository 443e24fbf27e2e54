"""The chart of accuracy against complexity, one line for each number of trajectories."""

from __future__ import annotations

from math import ceil
from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_between
from ttsframe._wording import counted, interval, percent
from ttsframe.charts import style, tables
from ttsframe.charts.lines import LinePlot, describe_equal_lines, side_by_side

__all__ = ["complexity_curve"]

_MAKER: Final = "pl.concat(result.to_frame() for result in results.values())"
_TABLE: Final = tables.Argument("curve", _MAKER, ("complexity",))
_NUMBERS: Final = (
    "k",
    "complexity",
    "accuracy",
    "ci_low",
    "ci_high",
    "oracle_accuracy",
    "n_instances",
)
_KNOWN: Final = frozenset({"task", "selector", *_NUMBERS})
_N_LINES_MAX: Final = 12
_N_LEVELS_MAX: Final = 200
_N_TICKS_MAX: Final = 16

# From few trajectories to many: olive, green, blue, violet, each darker than the one before, and
# all dark enough for text on white. Shapes tell neighbors apart as well.
_RAMP: Final = ((138, 117, 0), (0, 128, 96), (0, 98, 168), (52, 10, 92))


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

    A line that falls below the threshold and stays there shows the collapse of reasoning; if lines
    of larger K fall later, more trajectories delay it. Dotted lines are the oracle: the accuracy of
    the best choice among the same trajectories. Only the smallest and the largest K have bands, so
    that they can be told apart; the tooltip of each point has its interval.

    Parameters
    ----------
    curve
        Table that `EvaluationResult.to_frame` makes, one row per (`task`, `selector`, `k`,
        `complexity`), those of several K stacked with `pl.concat`; collected if lazy. Tasks,
        selectors and the values of any further column become panels.
    threshold
        Accuracy from which on a level counts as solved, in [0, 1], drawn as a dashed line; None
        draws none.
    unit
        Unit of complexity for the title of its axis, such as "discs"; None names none.
    title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not the one described.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, more than 12
        numbers of trajectories, 200 levels, or more than 12 panels.
    ParameterError
        When `threshold` is not in [0, 1], or `confidence_level` not in (0, 1).

    Examples
    --------
    >>> import polars as pl
    >>> from ttsframe import charts
    >>> from ttsframe.evaluator import ArithmeticSequence, Evaluator
    >>> task = ArithmeticSequence(seed=0)
    >>> answers = {instance.prompt: instance.ground_truth for instance in task.generate_batch((1, 3), 10)}
    >>> results = Evaluator(task).evaluate(
    ...     lambda prompt, k: [answers[prompt] if i % 3 == 2 else "?" for i in range(k)],
    ...     (1, 3),
    ...     k_values=[1, 4],
    ...     verbose=False,
    ... )
    >>> chart = charts.complexity_curve(pl.concat(result.to_frame() for result in results.values()))
    >>> print(chart.title.subtitle[0])
    arithmetic sequence · majority vote · 10 instances per level
    """
    shown_interval = tables.name_interval(confidence_level)
    if threshold is not None:
        check_between(threshold, "threshold", 0.0, 1.0)
    rows = _TABLE.collect(curve, texts=["task", "selector"], numbers=_NUMBERS)
    apart = ["task", "selector", *tables.find_run_columns(rows, _KNOWN)]
    hint = "add a column that tells the runs apart."
    _TABLE.check_one_per_point(rows, [*apart, "k", "complexity"], hint=hint)
    known = _TABLE.require_values(rows, ["accuracy"], "accuracy")
    levels = known["complexity"].unique().sort().to_list()
    sizes = known["k"].unique().sort().to_list()
    _TABLE.check_at_most(len(sizes), _N_LINES_MAX, "values of k")
    _TABLE.check_at_most(len(levels), _N_LEVELS_MAX, "levels of complexity")
    named = known.with_columns(tables.space_words("task"), tables.space_words("selector"))
    drawn = _add_texts(_TABLE.add_panels(named, apart))
    names = [f"K = {size}" for size in sizes]
    # The legend is at the end of the first row of panels.
    with_legend = drawn["panel"].unique(maintain_order=True)[:2][-1]

    def draw(panel: pl.DataFrame) -> list[alt.Chart]:
        has_legend = panel["panel"][0] == with_legend
        return _draw_panel(panel, names, levels, unit, threshold, has_legend=has_legend)

    bars = f"bars: {shown_interval}"
    if len(levels) > 1:
        bars = f"shaded: {shown_interval} at {' and '.join(dict.fromkeys([names[0], names[-1]]))}"
    counts = drawn["n_instances"].drop_nulls().to_list()
    has_oracle = drawn["has_oracle"].any()
    chart = style.draw_panels(
        drawn,
        draw,
        width=width,
        height=height,
        title=style.heading(
            title or "Accuracy by complexity and number of trajectories, K",
            [
                *[drawn[name][0] for name in apart[:2] if drawn[name].n_unique() == 1],
                f"{counted(counts, 'instance')} per level" if counts else "",
            ],
            [
                bars if tables.has_interval(drawn) else "",
                "" if threshold is None else f"dashed: threshold {100 * threshold:g}%",
                "dotted: oracle (any of the K right)" if has_oracle else "",
            ],
            [describe_equal_lines(drawn) and "equal lines are drawn wide under narrow"],
        ),
    )
    if isinstance(chart, alt.ConcatChart):
        # If shared, the legend would be missing with that of the first panel.
        independent = alt.ScaleResolveMap(color="independent", shape="independent")
        chart.resolve = alt.Resolve(scale=independent)
    return chart


def _add_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what tooltips say, where points are, and which lines have a band and a dotted line."""
    k, complexity = pl.col("k"), pl.col("complexity")
    is_other = (pl.col("oracle_accuracy") - pl.col("accuracy")).abs() > 1e-9
    # On a single level, lines are points side by side, each with its interval.
    is_single = complexity.n_unique().over("panel") == 1
    beside = pl.when(is_single).then(side_by_side("k").over("panel")).otherwise(0.0)
    return rows.with_columns(
        line=pl.format("K = {}", "k"),
        x=complexity + beside,
        interval=interval().fill_null("unknown"),
        oracle=percent(pl.col("oracle_accuracy")).fill_null("unknown"),
        has_oracle=is_other.fill_null(value=False).any().over("panel", "k") & ~is_single,
        has_band=is_single | (k == k.min()) | (k == k.max()),
    ).sort("panel", "k", "complexity", maintain_order=True)


def _mix_colors(n_lines: int) -> list[str]:
    """Return colors at equal distances along the ramp; the first for a single line."""
    colors = []
    for i in range(n_lines):
        position = i / max(n_lines - 1, 1) * (len(_RAMP) - 1)
        left = min(int(position), len(_RAMP) - 2)
        pairs = zip(_RAMP[left], _RAMP[left + 1], strict=True)
        mixed = (round(a + (b - a) * (position - left)) for a, b in pairs)
        colors.append("#" + "".join(f"{value:02x}" for value in mixed))
    return colors


def _draw_panel(
    panel: pl.DataFrame,
    names: list[str],
    levels: list[float],
    unit: str | None,
    threshold: float | None,
    *,
    has_legend: bool,
) -> list[alt.Chart]:
    """Draw the threshold, bands, dotted lines of the oracle, lines and points."""
    options = {
        "titleFontWeight": "normal",
        "titleColor": style.MUTED,
        "offset": 14,
        "symbolSize": 80,
    }
    key = style.legend(title="Trajectories", rowPadding=5, **options) if has_legend else None
    plot = LinePlot(
        x=_make_axis(panel["complexity"].unique().sort().to_list(), unit),
        y_axis=style.axis("Accuracy", format=".0%", tickCount=6),
        domain=(0.0, 1.0),
        color=style.color_by("line", dict(zip(names, _mix_colors(len(names)), strict=True)), key),
        tooltip=[
            alt.Tooltip("line:N", title="Trajectories"),
            alt.Tooltip("complexity:Q", title="Complexity"),
            alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
            alt.Tooltip("interval:N", title="Interval"),
            alt.Tooltip("oracle:N", title="Oracle"),
            alt.Tooltip("n_instances:Q", title="Instances"),
        ],
        band_opacity=0.16,
        point_size=52 if len(levels) <= _N_TICKS_MAX else 18,
    )
    shapes = {name: style.SHAPES[i % len(style.SHAPES)] for i, name in enumerate(names)}
    *bands, line, points = plot.layers(
        panel, has_band=pl.col("has_band"), shape=style.shape_by("line", shapes, key)
    )
    drawn = [*bands, line, points]
    oracle = panel.filter("has_oracle")
    if not oracle.is_empty():
        dotted = plot.base(oracle).mark_line(strokeWidth=1.4, strokeDash=[1, 3], strokeCap="round")
        drawn.insert(len(bands), dotted.encode(y=plot.on_y("oracle_accuracy")))
    if threshold is not None:
        drawn.insert(0, plot.rules({"threshold": threshold}, "Line"))
    return drawn


def _make_axis(levels: list[float], unit: str | None) -> alt.X:
    """Return the axis of complexity, with a tick at each of a few levels."""
    first, last = levels[0], levels[-1]
    margin = 0.5 if first == last else (last - first) * 0.02
    ticks = style.axis(
        "Complexity" if unit is None else f"Complexity ({unit})",
        values=levels[:: ceil(len(levels) / _N_TICKS_MAX)],
        format="~g",
        grid=False,
    )
    scale = alt.Scale(domain=[first - margin, last + margin], nice=False)
    return alt.X("x:Q", axis=ticks, scale=scale)
