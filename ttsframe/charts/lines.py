"""Lines with bands over a numeric axis, named at their ends: what most charts are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._wording import units_of
from ttsframe.charts.budgets import BudgetAxis
from ttsframe.charts.style import MUTED, write_end_labels
from ttsframe.charts.tables import inline, inline_marks

_STROKE: Final = 2.2
_N_EQUAL_MAX: Final = 3
_N_BELOW_MAX: Final = 3
N_BANDS_MAX: Final = 2
"""Bands of more lines than this mix into one color."""

DASHES: Final = ([1, 0], [6, 3], [2, 2])
"""Solid, dashed and dotted."""


class LinePlot(NamedTuple):
    """How a chart draws its lines, from rows with `line`, `x`, a value, `ci_low` and `ci_high`."""

    x: alt.X
    y_axis: alt.Axis
    domain: tuple[float, float]
    color: alt.Color
    tooltip: Sequence[alt.Tooltip]
    y: str = "accuracy"
    """Column of the values."""
    band_opacity: float = 0.14
    point_size: int = 46

    def on_y(self, column: str) -> alt.Y:
        """Place a column on the vertical axis, which all layers share."""
        scale = alt.Scale(domain=[*self.domain], nice=False)
        return alt.Y(f"{column}:Q", axis=self.y_axis, scale=scale)

    def base(self, rows: pl.DataFrame) -> alt.Chart:
        """Begin a layer: rows at their positions, in the colors of their lines."""
        chart: alt.Chart = alt.Chart(inline_marks(rows)).encode(
            x=self.x, color=self.color, detail=alt.Detail("line:N")
        )
        return chart

    def layers(
        self,
        rows: pl.DataFrame,
        *,
        has_band: pl.Expr | None = None,
        dash: alt.StrokeDash | None = None,
        **point: Any,  # noqa: ANN401  (Altair's own encodings)
    ) -> list[alt.Chart]:
        """Draw bands, bars for lines of a single point, then lines and points."""
        has_interval = pl.col("ci_low").is_not_null().any().over("line")
        is_drawn = has_interval if has_band is None else has_interval & has_band
        is_band = rows.select(pl.when(is_drawn).then(pl.len().over("line") > 1)).to_series()
        kinds = is_band.unique().to_list()
        if len(kinds) > 1:
            rows = rows.with_columns(is_band=is_band)
        base = self.base(rows)
        intervals = [
            # No filter where all lines are alike.
            self._interval(
                base if len(kinds) == 1 else base.transform_filter(alt.datum.is_band == kind),
                is_band=kind,
            )
            for kind in (True, False)
            if kind in kinds
        ]
        base = base.encode(y=self.on_y(self.y))
        line = base.mark_line(strokeWidth=_STROKE)
        points = base.mark_point(filled=True, size=self.point_size, opacity=1)
        return [
            *intervals,
            *self._underlay(rows),
            line if dash is None else line.encode(strokeDash=dash),
            points.encode(tooltip=list(self.tooltip), **point),
        ]

    def _underlay(self, rows: pl.DataFrame) -> list[alt.Chart]:
        """Draw the lower of equal pieces of lines wide, so that all are seen."""
        shared = find_equal_pieces(rows, self.y)
        if shared.is_empty():
            return []
        named = [name for name in ("line", "selector", "run") if name in rows.columns]
        pieces = shared.join(
            rows.select(named).unique(), on="line", how="left", maintain_order="left"
        )
        stroke = _STROKE + 2.8 * pl.col("below")
        width = alt.StrokeWidth("stroke:Q", scale=None)
        base = self.base(pieces.select(*named, "x", "x2", "from", "to", stroke=stroke))
        chart: alt.Chart = base.mark_rule(strokeCap="round").encode(
            y=self.on_y("from"), x2=alt.X2("x2:Q"), y2=alt.Y2("to:Q"), strokeWidth=width
        )
        return [chart]

    def _interval(self, base: alt.Chart, *, is_band: bool) -> alt.Chart:
        """Draw intervals as bands, or as bars."""
        mark = (
            base.mark_area(opacity=self.band_opacity)
            if is_band
            else base.mark_rule(strokeWidth=1.4, opacity=0.8)
        )
        chart: alt.Chart = mark.encode(y=self.on_y("ci_low"), y2=alt.Y2("ci_high:Q"))
        return chart

    def ends(
        self,
        rows: pl.DataFrame,
        label: pl.Expr,
        *,
        x: float,
        colors: Mapping[str, str],
        color_by: str = "line",
    ) -> pl.DataFrame:
        """Return the height of each line at its last point, with its name."""
        last = rows.sort("x").group_by("line", maintain_order=True).last()
        return last.select(
            pl.lit(x, pl.Float64).alias("x"),
            pl.col(self.y).alias("y"),
            label.alias("label"),
            pl.col(color_by).replace_strict(colors).alias("color"),
        )

    def name_ends(self, labels: pl.DataFrame, *, height: int) -> alt.Chart:
        """Write the names of lines beside their ends."""
        return write_end_labels(labels, x=self.x, domain=self.domain, height=height)

    def rules(self, values: Mapping[str, float], title: str) -> alt.Chart:
        """Draw dashed lines across the panel, whose tooltips have their names."""
        table = pl.DataFrame({"name": list(values), "value": list(values.values())})
        chart: alt.Chart = (
            alt
            .Chart(inline(table))
            .mark_rule(strokeDash=[4, 4], strokeWidth=1.4, color=MUTED)
            .encode(
                y=self.on_y("value"),
                tooltip=[
                    alt.Tooltip("name:N", title=title),
                    alt.Tooltip("value:Q", title="Accuracy", format=".1%"),
                ],
            )
        )
        return chart


def choose_bands(
    rows: pl.DataFrame,
    y: str = "accuracy",
    *,
    first: Sequence[str] = (),
    last: Sequence[str] = (),
) -> list[str]:
    """Return the lines that have a band: all of a few, else those named first, then the highest."""
    is_line = pl.col("ci_low").is_not_null() & (pl.col("x").n_unique() > 1).over("panel", "line")
    drawn = rows.filter(is_line)
    per_panel = drawn.group_by("panel").agg(pl.col("line").n_unique())["line"]
    names = drawn["line"].unique().sort().to_list()
    if max(per_panel.to_list(), default=0) <= N_BANDS_MAX:
        return names
    ends = (
        drawn
        .sort("x")
        .group_by("panel", "line")
        .agg(pl.col(y).last())
        .group_by("line")
        .agg(pl.col(y).mean())
        .sort(y, "line", descending=[True, False])
    )
    others = [name for name in ends["line"] if name not in last]
    ranked = dict.fromkeys([*[name for name in first if name in names], *others, *last])
    return [*ranked][:N_BANDS_MAX]


def describe_bands(rows: pl.DataFrame, bands: Sequence[str], interval: str) -> str:
    """Say which lines have bands, and where the intervals of the others are."""
    if rows["ci_low"].null_count() == rows.height:
        return ""
    if rows["x"].n_unique() == 1:
        return f"bars: {interval} over {units_of(rows.columns)}"
    if len(bands) == rows["line"].n_unique():
        return f"shaded: {interval} over {units_of(rows.columns)}"
    return f"shaded: {interval} over {units_of(rows.columns)}, of {' and '.join(bands)} only"


def find_equal_pieces(rows: pl.DataFrame, y: str = "accuracy") -> pl.DataFrame:
    """Return the pieces between points that a line shares with others, and how far `below` it is."""
    pieces = rows.sort("x").select(
        "line",
        pl.col("x").cast(pl.Float64),
        pl.col("x").cast(pl.Float64).shift(-1).over("line").alias("x2"),
        pl.col(y).cast(pl.Float64).alias("from"),
        pl.col(y).cast(pl.Float64).shift(-1).over("line").alias("to"),
    )
    piece = [pl.col(name).round_sig_figs(9) for name in ("x", "x2", "from", "to")]
    return (
        pieces
        .drop_nulls("x2")
        .with_columns(n_lines=pl.len().over(piece), rank=pl.col("line").rank("ordinal").over(piece))
        .with_columns(below=pl.col("n_lines").cast(pl.Int64) - pl.col("rank").cast(pl.Int64))
        # Wider ones would hide the chart.
        .filter(pl.col("below").is_between(1, _N_BELOW_MAX))
        .sort("below", "line", "x", descending=[True, False, False])
    )


def find_equal_lines(rows: pl.DataFrame, y: str = "accuracy") -> list[list[str]]:
    """Return groups of the lines of a panel that have the same points."""
    point = pl.format(
        "{} {}", *[pl.col(name).cast(pl.Float64).round_sig_figs(9) for name in ("x", y)]
    )
    lines = rows.sort("x").group_by("line").agg(point.str.join(";").alias("points"), pl.len())
    groups = lines.filter(pl.col("len") > 1).group_by("points").agg(pl.col("line").sort())
    return sorted(names for names in groups["line"].to_list() if len(names) > 1)


def describe_equal_lines(rows: pl.DataFrame, y: str = "accuracy") -> str:
    """Name the lines that lie on each other, or say that some do in part; empty where none do."""
    panels = rows.partition_by("panel", as_dict=True, maintain_order=True)
    found: dict[str, list[str]] = {}
    are_shared = False
    for (panel,), of_panel in panels.items():
        are_shared |= not find_equal_pieces(of_panel, y).is_empty()
        for names in find_equal_lines(of_panel, y):
            found.setdefault(" = ".join(names), []).append(str(panel))
    texts = [
        names if len(where) == len(panels) else f"{names} ({', '.join(where)})"
        for names, where in found.items()
    ]
    more = f" and {len(texts) - _N_EQUAL_MAX} more" if len(texts) > _N_EQUAL_MAX else ""
    if texts:
        return f"equal lines are drawn wide under narrow ({'; '.join(texts[:_N_EQUAL_MAX])}{more})"
    return "equal pieces of lines are drawn wide under narrow" if are_shared else ""


def curve_tooltip(
    budgets: BudgetAxis, quantity: str = "accuracy", *, line: str = "Selector"
) -> list[alt.Tooltip]:
    """Return the tooltip of a row of a curve."""
    return [
        alt.Tooltip("line:N", title=line),
        alt.Tooltip("reads:N", title="Step scores"),
        alt.Tooltip("of_budget:N", title=budgets.tooltip_title),
        alt.Tooltip(f"{quantity}:Q", title=quantity.capitalize(), format=".1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("n_problems:Q", title="Problems"),
        alt.Tooltip("left_out:N", title="Left out"),
    ]


def dash_by(
    field: str, dashes: Mapping[str, Sequence[int]], legend: alt.Legend | None = None
) -> alt.StrokeDash:
    """Dash lines by a column of names."""
    scale = alt.Scale(domain=list(dashes), range=[list(dash) for dash in dashes.values()])
    return alt.StrokeDash(f"{field}:N", scale=scale, legend=legend)


def side_by_side(name: str) -> pl.Expr:
    """Return positions of inline_marks beside each other, from -0.5 to 0.5, in the order of a column."""
    return (pl.col(name).rank("dense").cast(pl.Float64) - 0.5) / pl.col(name).n_unique() - 0.5


def share_domain(
    rows: pl.DataFrame, y: str = "accuracy", others: Sequence[float] = ()
) -> tuple[float, float]:
    """Return an axis from the lowest to the highest mark, on multiples of 5 %."""
    low = rows.select(pl.min_horizontal(y, "ci_low").min()).item()
    high = rows.select(pl.max_horizontal(y, "ci_high").max()).item()
    every = (low, high, *others)
    return max(0, floor(min(every) * 20 - 0.2)) / 20, min(20, ceil(max(every) * 20 + 0.2)) / 20
