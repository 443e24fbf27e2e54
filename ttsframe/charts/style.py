"""How every chart looks: colours, type, axes, labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Final

import altair as alt
import polars as pl
from polars import selectors

from ttsframe._checks import check_frame
from ttsframe._wording import shorten
from ttsframe.errors import ColumnsError, DataError
from ttsframe.schema import require_columns

INK: Final = "#1f1f1f"
MUTED: Final = "#595959"
GRID: Final = "#e6e6e6"
FONT: Final = "Helvetica Neue, Arial, Liberation Sans, sans-serif"

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
# five more that were searched for: as far as can be from them and each other, colour-blind or not.
_SELECTOR_COLOURS: Final = {
    "majority_vote": "#0067a5",
    "weighted_vote": "#b84a00",
    "best_of_n": "#00775a",
    "borda_vote": "#8c6c39",
    "confidence_vote": "#4916a0",
    "top_fraction_vote": "#6c1c1c",
    "majority_of_the_bests": "#c82dbd",
    "minimum_bayes_risk": "#0f70ef",
    "first_valid": "#a0407c",
    "oracle": "#4d4d4d",
    "compute_optimal": "#000000",
    "compute_optimal_in_sample": "#767676",
}
_OTHER_COLOURS: Final = ("#3f3d99", "#7a5c00", "#8f1d2c", "#1c6b7a", "#5b5b00", "#6b3fa0")

# Green and purple stay apart under every common colour blindness, and are no selector's colour.
OUTCOME_COLOURS: Final = {
    "right": "#1b7837",
    "wrong": "#7b3294",
    "not graded": "#3b6a8f",
    "no answer": "#8a8a8a",
}

_SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")

N_PANELS_MAX: Final = 12
_NAME_WIDTH: Final = 44
_LINE_HEIGHT: Final = 15
_PANEL_NAME_MAX: Final = 56
_WIDTH: Final = 480
_WIDTH_OF_SEVERAL: Final = 280


def selector_colours(selectors: Sequence[str]) -> dict[str, str]:
    """Give each selector its colour, the same in every chart."""
    others = sorted(set(selectors) - _SELECTOR_COLOURS.keys())
    extra = {name: _OTHER_COLOURS[i % len(_OTHER_COLOURS)] for i, name in enumerate(others)}
    return {name: (_SELECTOR_COLOURS | extra)[name] for name in selectors}


def strategy_colours(selectors: Sequence[str]) -> list[str]:
    """Give strategies the colours of their selectors, and other ones where several share one."""
    own = selector_colours(selectors)
    kept = [None if name in selectors[:i] else own[name] for i, name in enumerate(selectors)]
    others = (*_OTHER_COLOURS, *_SELECTOR_COLOURS.values())
    spare = cycle([colour for colour in others if colour not in kept] or [MUTED])
    return [colour or next(spare) for colour in kept]


def shapes(names: Sequence[str]) -> dict[str, str]:
    """Give each name the shape of its points, so that colour is not all that tells them apart."""
    return dict(zip(names, cycle(_SHAPES), strict=False))


def outcome(is_correct: pl.Expr) -> pl.Expr:
    """Name a grade as the charts show it."""
    return (
        pl
        .when(is_correct)
        .then(pl.lit("right"))
        .when(~is_correct)
        .then(pl.lit("wrong"))
        .otherwise(pl.lit("not graded"))
    )


def tidy(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    where: str,
    texts: Sequence[str] = (),
    numbers: Sequence[str] = (),
    hint: str,
) -> pl.DataFrame:
    """Collect a table and check that it is the one that the chart draws."""
    check_frame(table, where)
    schema = require_columns(table, [*texts, *numbers], where=where, hint=hint)
    wrong = {
        name: schema[name]
        for name in numbers
        if not schema[name].is_numeric() and schema[name] != pl.Null
    }
    if wrong:
        found = ", ".join(f"{name!r} is {dtype}" for name, dtype in wrong.items())
        raise ColumnsError(f"{where}: {found}, must be numbers. Hint: {hint}")
    frame = table.collect() if isinstance(table, pl.LazyFrame) else table
    if frame.is_empty():
        raise DataError(f"{where} has no rows, so there is nothing to draw. Hint: {hint}")
    return frame.with_columns(pl.col(numbers).fill_nan(None) if numbers else [])


def panel_column(frame: pl.DataFrame, names: Sequence[str], *, where: str) -> pl.DataFrame:
    """Add the column ``panel``: the text of the columns that vary, empty where none does."""
    varying = [name for name in names if frame[name].n_unique() > 1]
    # A name of a run speaks for itself, a number of a level or seed does not.
    is_plain = len(varying) == 1 and not frame[varying[0]].dtype.is_numeric()
    texts = [
        pl.concat_str(
            pl.lit("" if is_plain else f"{name}: "),
            pl.col(name).cast(pl.String).fill_null("none"),
        )
        for name in varying
    ]
    panel = pl.concat_str(texts, separator=" · ") if texts else pl.lit("")
    framed = frame.with_columns(panel.alias("panel"))
    n_panels = framed["panel"].n_unique()
    if n_panels > N_PANELS_MAX:
        raise DataError(
            f"{where} has {n_panels} groups of {varying}, a chart holds at most {N_PANELS_MAX}. "
            f"Hint: filter the table to the groups to compare."
        )
    return framed


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Put names on one line of at most ``width`` characters each, numbered where they are alike."""
    labels = [shorten(name, width) for name in names]
    alike = Counter(labels)
    seen: Counter[str] = Counter()
    for i, label in enumerate(labels):
        if alike[label] > 1:
            seen[label] += 1
            labels[i] = f"{label} ({seen[label]})"
    return labels


def with_short_names(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Put texts that name lines, bars and the like on one line each, and keep them apart."""
    for column in columns:
        names = frame[column].cast(pl.String).drop_nulls().unique().sort().to_list()
        short = dict(zip(names, short_names(names, _NAME_WIDTH), strict=True))
        frame = frame.with_columns(pl.col(column).cast(pl.String).replace(short))
    return frame


def check_at_most(n: int, most: int, what: str, *, where: str, hint: str) -> None:
    """Raise where a chart would hold more than can be told apart, or than a page can bear."""
    if n > most:
        raise DataError(
            f"{where} has {n:,} {what}, this chart holds at most {most:,}. Hint: {hint}"
        )


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """Put a table's rows into the chart itself, untouched by Altair's row limit and transformers."""
    # Twelve digits: the last bits of a sum depend on its order, and a chart should not.
    rows = frame.with_columns(selectors.float().round_sig_figs(12)).to_dicts()
    # A tuple, which Altair does not copy deeply each time that a layer or panel is put together.
    return alt.InlineData(values=tuple(rows))


def axis(title: str | None, **options: Any) -> alt.Axis:  # noqa: ANN401  (Altair's own options)
    """Style an axis; charts carry no global theme, so that they can be layered and concatenated."""
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
        "gridColor": GRID,
        "labelFlush": False,
        "domainColor": "#9a9a9a",
        "tickColor": "#9a9a9a",
    }
    return alt.Axis(**(style | options))


def legend(**options: Any) -> alt.Legend:  # noqa: ANN401  (Altair's own options)
    """Style a legend: at the right and without a title, unless told otherwise."""
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


def heading(text: str, subtitle: Sequence[str] = ()) -> alt.TitleParams:
    """Style a title with the lines under it."""
    return alt.TitleParams(
        text,
        subtitle=list(subtitle),
        anchor="start",
        font=FONT,
        fontSize=16,
        color=INK,
        subtitleFont=FONT,
        subtitleFontSize=12,
        subtitleColor=MUTED,
        subtitlePadding=6,
        subtitleLineHeight=16,
        offset=14,
    )


def panel_heading(text: str) -> alt.TitleParams:
    """Style the title of one of several panels; what has no room on one line is broken at a dot."""
    lines = [text] if len(text) <= _PANEL_NAME_MAX else text.split(" · ")
    return alt.TitleParams(
        shorten(text, _PANEL_NAME_MAX)
        if len(lines) == 1
        else [shorten(line, _PANEL_NAME_MAX) for line in lines],
        anchor="start",
        font=FONT,
        fontSize=13,
        color=INK,
        offset=8,
    )


def panel_text(
    text: str, *, x: float, y: float, style: Mapping[str, Any] = PANEL_NOTE, align: str = "left"
) -> alt.Chart:
    """Write a text at a place of a panel, in pixels: at the same height beside every panel."""
    mark = alt.MarkDef(**(dict(style) | {"align": align}))
    chart = alt.Chart(inline(pl.DataFrame({"text": [text]})), mark=mark)
    return chart.encode(x=alt.value(x), y=alt.value(y), text="text:N")


def panel_of(layers: Sequence[alt.Chart], *, width: int, height: int) -> alt.LayerChart:
    """Put layers on one panel without a frame around it."""
    view = alt.ViewBackground(stroke=None)
    return alt.LayerChart(layer=list(layers), view=view, width=width, height=height)


def arrange(
    panels: Sequence[alt.LayerChart], *, title: alt.TitleParams, columns: int = 2
) -> alt.LayerChart | alt.ConcatChart:
    """Return the only panel under the title, or several side by side."""
    if len(panels) == 1:
        return panels[0].properties(title=title)
    return alt.ConcatChart(concat=list(panels), columns=columns, spacing=28, title=title)


def end_labels(
    labels: pl.DataFrame, *, x: alt.X, domain: tuple[float, float], height: int
) -> alt.Chart:
    """Write each line's name beside its end: columns ``x``, ``y``, ``label``, ``colour``."""
    low, high = domain
    step = (high - low) * _LINE_HEIGHT / height
    placed = labels.sort("y", "label")
    spots = _spread(placed["y"].to_list(), step=step, low=low, high=high)
    chart: alt.Chart = (
        alt
        .Chart(inline(placed.with_columns(y=pl.Series(spots, dtype=pl.Float64))))
        .mark_text(align="left", baseline="middle", dx=10, font=FONT, fontSize=12, clip=False)
        .encode(
            x=x,
            y=alt.Y("y:Q", scale=alt.Scale(domain=list(domain), nice=False)),
            text=alt.Text("label:N"),
            color=alt.Color("colour:N", scale=None),
            tooltip=alt.value(None),
        )
    )
    return chart


def _spread(spots: Sequence[float], *, step: float, low: float, high: float) -> list[float]:
    """Move ascending positions as little as keeps them ``step`` apart, within both ends."""
    groups: list[tuple[float, int]] = []
    for spot in spots:
        middle, size = spot, 1
        while groups and groups[-1][0] + groups[-1][1] * step / 2 > middle - size * step / 2:
            before, n_before = groups.pop()
            middle = (before * n_before + middle * size) / (n_before + size)
            size += n_before
        groups.append((max(middle, low + (size - 1) * step / 2), size))
    spread = [middle + (i - (size - 1) / 2) * step for middle, size in groups for i in range(size)]
    limits = [high - i * step for i in reversed(range(len(spread)))]
    return [min(spot, limit) for spot, limit in zip(spread, limits, strict=True)]


def panel_width(width: int | None, n_panels: int) -> int:
    """Return the width that was asked for, or one at which the panels fit a page."""
    return width or (_WIDTH if n_panels == 1 else _WIDTH_OF_SEVERAL)


def scores_from(reduction: str) -> str:
    """Say where the scores that a selector reads come from."""
    return "scores: column score" if reduction == "score" else f"scores: {reduction} of step scores"
