"""The look of every chart: colors, type, axes, titles and panels."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any, Final, Self
from zlib import crc32

import altair as alt
import polars as pl

from ttsframe._wording import shorten
from ttsframe.charts.tables import inline

INK: Final = "#1f1f1f"
MUTED: Final = "#595959"
FONT: Final = "Helvetica Neue, Arial, Liberation Sans, sans-serif"
_GRID: Final = "#e6e6e6"
_AXIS: Final = "#9a9a9a"

PANEL_NOTE: Final[Mapping[str, Any]] = {
    "type": "text",
    "font": FONT,
    "fontSize": 12,
    "color": MUTED,
    "clip": False,
}
PANEL_NAME: Final[Mapping[str, Any]] = {
    **PANEL_NOTE,
    "fontSize": 13,
    "fontWeight": "bold",
    "color": INK,
}

# Hues of Okabe and Ito, darkened until text in them reads on white (contrast above 4.5 to 1), and
# five more that were searched for: as far as can be from them and each other, color-blind or not.
_SELECTOR_COLORS: Final = {
    "majority_vote": "#0067a5",
    "weighted_vote": "#b84a00",
    "best_of_n": "#00775a",
    "borda_vote": "#8c6c39",
    "confidence_vote": "#4916a0",
    "top_fraction_vote": "#6c1c1c",
    "majority_of_the_bests": "#c82dbd",
    "best_of_majority": "#465000",
    "minimum_bayes_risk": "#0f70ef",
    "first_valid": "#a0407c",
    "oracle": "#4d4d4d",
    "compute_optimal": "#000000",
    "compute_optimal_in_sample": "#767676",
}
FALLBACK_COLORS: Final = (
    *("#0a788c", "#3c820a", "#5a1464", "#c81e64"),
    *("#1e328c", "#501e3c", "#003c14"),
)
"""Colors of selectors that are not in the table, as far from those in it as these are from each other."""

LINE_COLORS: Final = (
    *("#0067a5", "#b84a00", "#00775a", "#a0407c", "#7a5c00"),
    *("#3f3d99", "#4d4d4d", "#1c6b7a", "#8f1d2c"),
)
"""Colors of lines that are not selectors."""

# Green and purple stay apart under every common color blindness, and are no selector's color.
OUTCOME_COLORS: Final = {
    "right": "#1b7837",
    "wrong": "#7b3294",
    "not graded": "#3b6a8f",
    "no answer": "#8a8a8a",
}

SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")

_LINE_HEIGHT: Final = 15
_PANEL_NAME_MAX: Final = 56
_BESIDE: Final = 200
"""Pixels beside a panel that its axis and the names of its lines usually take."""
_CHARACTER: Final = 5.6
_N_CHARACTERS_MIN: Final = 60
WIDTH: Final = 480
_WIDTH_OF_SEVERAL: Final = 280


def selector_colors(selectors: Sequence[str]) -> dict[str, str]:
    """Return the color of each selector; one that is not in the table gets a color by its name."""
    colors = _SELECTOR_COLORS | run_colors([*set(selectors) - _SELECTOR_COLORS.keys()])
    return {name: colors[name] for name in selectors}


def run_colors(names: Sequence[str]) -> dict[str, str]:
    """Return a color for each name, which is no color of a known selector."""
    colors: dict[str, str] = {}
    free: list[str] = []
    # The last four are dark: they are easily taken for each other where there is room to choose.
    pool = FALLBACK_COLORS[:4] if len(names) <= 4 else FALLBACK_COLORS
    for name in sorted(names):
        free = free or list(pool)
        preferred = pool[crc32(name.encode()) % len(pool)]
        colors[name] = preferred if preferred in free else free[0]
        free.remove(colors[name])
    return colors


def strategy_colors(selectors: Sequence[str]) -> list[str]:
    """Return the color of each strategy: that of its selector, or a spare one if already taken."""
    by_selector = selector_colors(selectors)
    spares = (*FALLBACK_COLORS, *LINE_COLORS, *_SELECTOR_COLORS.values())
    unused = dict.fromkeys(color for color in spares if color not in by_selector.values())
    spare = cycle(unused or [MUTED])
    return [
        next(spare) if name in selectors[:i] else by_selector[name]
        for i, name in enumerate(selectors)
    ]


def assign_shapes(names: Sequence[str]) -> dict[str, str]:
    """Return the shape of each name's points, so that not only color tells them apart."""
    return dict(zip(names, cycle(SHAPES), strict=False))


def color_by(field: str, colors: Mapping[str, str], legend: alt.Legend | None = None) -> alt.Color:
    """Color marks by a column of names."""
    scale = alt.Scale(domain=list(colors), range=list(colors.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=legend)


def shape_by(field: str, shapes: Mapping[str, str], legend: alt.Legend | None = None) -> alt.Shape:
    """Shape points by a column of names."""
    scale = alt.Scale(domain=list(shapes), range=list(shapes.values()))
    return alt.Shape(f"{field}:N", scale=scale, legend=legend)


def name_outcome(is_correct: pl.Expr) -> pl.Expr:
    """Name a grade as charts show it."""
    graded = pl.when(is_correct).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    return pl.when(is_correct.is_null()).then(pl.lit("not graded")).otherwise(graded)


def decimals(value: pl.Expr, digits: int) -> pl.Expr:
    """Write numbers with the same number of decimals, so that they can be compared at a glance."""
    rounded = value.cast(pl.Float64).round(digits)
    whole = pl.when(rounded.abs() < 1e15).then(rounded)
    text = whole.cast(pl.Decimal(38, digits)).cast(pl.String)
    return text.fill_null(rounded.cast(pl.String))


def scores_from(reduction: str) -> str:
    """Name the scores that a selector reads."""
    return "scores: column score" if reduction == "score" else f"scores: {reduction} of step scores"


def axis(title: str | None, **options: Any) -> alt.Axis:  # noqa: ANN401  (Altair's own options)
    """Style an axis; charts have no global theme, so that they can be layered and concatenated."""
    style: dict[str, Any] = {
        "title": title,
        "labelFont": FONT,
        "labelFontSize": 12,
        "labelColor": INK,
        "titleFont": FONT,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titleColor": INK,
        "titlePadding": 10,
        "gridColor": _GRID,
        "labelFlush": False,
        "domainColor": _AXIS,
        "tickColor": _AXIS,
    }
    return alt.Axis(**(style | options))


def legend(**options: Any) -> alt.Legend:  # noqa: ANN401  (Altair's own options)
    """Style a legend: by default at the right and without a title."""
    style: dict[str, Any] = {
        "title": None,
        "titleFont": FONT,
        "orient": "right",
        "labelFont": FONT,
        "labelFontSize": 12,
        "labelColor": INK,
        "labelLimit": 240,
        "symbolOpacity": 1,
    }
    return alt.Legend(**(style | options))


def heading(text: str, *lines: Iterable[str], **options: Any) -> alt.TitleParams:  # noqa: ANN401
    """Style a title and the lines of facts below it; empty facts and lines are left out."""
    joined = [" · ".join(filter(None, facts)) for facts in lines]
    style: dict[str, Any] = {
        "anchor": "start",
        "font": FONT,
        "fontSize": 16,
        "color": INK,
        "subtitleFont": FONT,
        "subtitleFontSize": 12,
        "subtitleColor": MUTED,
        "subtitlePadding": 6,
        "subtitleLineHeight": 16,
        "offset": 14,
    }
    return alt.TitleParams(text, subtitle=[line for line in joined if line], **(style | options))


def panel_heading(text: str) -> alt.TitleParams:
    """Style the title of one of several panels; one that is too long for a line breaks at its dots."""
    lines = [text] if len(text) <= _PANEL_NAME_MAX else text.split(" · ")
    short = [shorten(line, _PANEL_NAME_MAX) for line in lines]
    return alt.TitleParams(
        short[0] if len(short) == 1 else short,
        anchor="start",
        font=FONT,
        fontSize=13,
        color=INK,
        offset=8,
    )


def at_x(pixels: float) -> alt.XValue:
    """Place a mark at a horizontal position."""
    return alt.XValue(pixels)  # type: ignore[no-untyped-call]


def at_y(pixels: float) -> alt.YValue:
    """Place a mark at a vertical position."""
    return alt.YValue(pixels)  # type: ignore[no-untyped-call]


def write_text(
    text: str, *, x: float, y: float, style: Mapping[str, Any] = PANEL_NOTE, align: str = "left"
) -> alt.Chart:
    """Write a text at a position in pixels, which is the same in every panel."""
    mark = alt.MarkDef(**(dict(style) | {"align": align}))
    chart = alt.Chart(inline(pl.DataFrame({"text": [text]})), mark=mark)
    # Named classes: for a dict or a string, Altair hashes the schemas of all its classes.
    return chart.encode(x=at_x(x), y=at_y(y), text=alt.Text("text:N"))


class _Layer(alt.Chart):
    """A layer whose copies share its encodings, data and mark."""

    # Altair copies each layer some ten times, deeply, while it is put into a panel and a page: that took
    # two thirds of the time of drawing. It only ever replaces what the copies share.
    def copy(self, deep: bool | Iterable[Any] = True, ignore: list[str] | None = None) -> Self:
        """Copy the layer, not what is in it; named attributes are copied as Altair does."""
        return super().copy(False if deep is True else deep, ignore)


class _Panel(alt.LayerChart):
    """A panel whose copies share what their layers share."""

    def copy(self, deep: bool | Iterable[Any] = True, ignore: list[str] | None = None) -> Self:
        """Copy the panel and its layers, not what is in them."""
        return super().copy(False if deep is True else deep, ignore)


def make_panel(
    layers: Sequence[alt.Chart], name: str = "", *, width: int, height: int
) -> alt.LayerChart:
    """Put layers into one panel, under its name if it has one."""
    view = alt.ViewBackground(stroke=None)
    shared = [_Layer(**layer._kwds) for layer in layers]  # noqa: SLF001  (as Altair copies)
    chart = _Panel(layer=shared, view=view, width=width, height=height)
    return chart.properties(title=panel_heading(name)) if name else chart


def _wrap_subtitle(title: alt.TitleParams, width: int) -> None:
    """Break lines of facts that are wider than the chart, between facts or else between words."""
    n_max = max(width / _CHARACTER, _N_CHARACTERS_MIN)
    lines: list[str] = []
    for text in title.subtitle:
        lines.append("")
        for i, fact in enumerate(text.split(" · ")):
            joined = f"{lines[-1]} · {fact}" if i else fact
            if i and len(joined) > n_max:
                lines.append("")
                joined = fact
            *whole, last = textwrap.wrap(joined, int(n_max)) or [""]
            lines[-1:] = [*whole, last]
    title.subtitle = lines


def draw_panels(
    rows: pl.DataFrame,
    draw: Callable[[pl.DataFrame], Sequence[alt.Chart]],
    *,
    title: alt.TitleParams,
    width: int | None,
    height: int | Callable[[pl.DataFrame], int],
    columns: int = 2,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the rows of each panel: one chart, or several side by side under one title."""
    panels = rows.partition_by("panel", as_dict=True, maintain_order=True)
    charts = [
        make_panel(
            draw(panel),
            str(name),
            width=width or (WIDTH if len(panels) == 1 else _WIDTH_OF_SEVERAL),
            height=height(panel) if callable(height) else height,
        )
        for (name,), panel in panels.items()
    ]
    n_columns = min(columns, len(charts))
    _wrap_subtitle(title, n_columns * (int(charts[0].width) + _BESIDE))
    if len(charts) == 1:
        return charts[0].properties(title=title)
    return alt.ConcatChart(concat=charts, columns=columns, spacing=28, title=title)


def write_end_labels(
    labels: pl.DataFrame, *, x: alt.X, domain: tuple[float, float], height: int
) -> alt.Chart:
    """Write each line's name beside its end: columns `x`, `y`, `label`, `color`."""
    low, high = domain
    labels = labels.sort("y", "label")
    distance = (high - low) * _LINE_HEIGHT / height
    # The axis would strike through a text on its height.
    spread = _spread(labels["y"].to_list(), distance=distance, low=low + distance / 2, high=high)
    chart: alt.Chart = (
        alt
        .Chart(inline(labels.with_columns(y=pl.Series(spread, dtype=pl.Float64))))
        .mark_text(align="left", baseline="middle", dx=10, font=FONT, fontSize=12, clip=False)
        .encode(
            x=x,
            y=alt.Y("y:Q", scale=alt.Scale(domain=[low, high], nice=False)),
            text=alt.Text("label:N"),
            color=alt.Color("color:N", scale=None),
            tooltip=alt.TooltipValue(None),
        )
    )
    return chart


def _spread(positions: Sequence[float], *, distance: float, low: float, high: float) -> list[float]:
    """Move ascending positions as little as possible until they are apart, within both ends."""
    groups: list[tuple[float, int]] = []
    for position in positions:
        middle, size = position, 1
        while (
            groups and groups[-1][0] + groups[-1][1] * distance / 2 > middle - size * distance / 2
        ):
            before, n_before = groups.pop()
            middle = (before * n_before + middle * size) / (n_before + size)
            size += n_before
        groups.append((max(middle, low + (size - 1) * distance / 2), size))
    spread = [
        middle + (i - (size - 1) / 2) * distance for middle, size in groups for i in range(size)
    ]
    limits = [high - i * distance for i in reversed(range(len(spread)))]
    return [min(position, limit) for position, limit in zip(spread, limits, strict=True)]
