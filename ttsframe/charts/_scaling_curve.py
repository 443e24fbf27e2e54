"""The chart of a curve: accuracy against the number of attempts, per selector or per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_references
from ttsframe._wording import CURVE_COLUMNS, percent, quantity_of, shorten
from ttsframe.charts import style, tables
from ttsframe.charts.budgets import BudgetAxis, per_problem
from ttsframe.charts.dots import ROW_HEIGHT, draw_dots
from ttsframe.charts.lines import (
    DASHES,
    LinePlot,
    choose_bands,
    curve_tooltip,
    dash_by,
    describe_bands,
    describe_equal_lines,
    share_domain,
)
from ttsframe.errors import ParameterError

__all__ = ["scaling_curve"]

_TABLE: Final = tables.Argument(
    "curve", "tts.scaling_curve(problems)", ("curve", "leveled", "frontier", "turns")
)
_ADDED: Final = frozenset({
    *("basis", "caveat", "is_efficient", "peak_budget", "drop", "drop_standard_error"),
    *("drop_ci_low", "drop_ci_high", "drop_p_value", "is_turned_down"),
})
"""Columns of other curves, which say nothing about the run."""
_FIRST_BANDS: Final = ("majority vote", "compute optimal")
_LAST_BANDS: Final = ("compute optimal in sample", "oracle")
"""Lines that are no choice that a user could make."""
_N_REFERENCES_MAX: Final = 12
_N_OVERLAID_MAX: Final = 8
_N_NAMED_MAX: Final = 3
_MEANINGS: Final = {
    "accuracy": "oracle: right if any attempt within the budget is right",
    "agreement": "agreement: share of the attempts that gave the chosen answer",
}


def scaling_curve(
    curve: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    overlay: str | None = None,
    references: Mapping[str, float] | None = None,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw accuracy against the budget, one line per selector, or one per run.

    Every selector has its own color, the same in every chart, and its name at the end of its line.
    If there are more than two lines, only majority vote and the line that ends highest below the
    oracle have bands. A single budget is drawn as a row for each line. If lines with scores are
    drawn without majority vote, the baseline, or the oracle, the upper bound, the subtitle says so.
    It also names what is not drawn and why, and lines that average other problems than the rest.

    A column that tells runs apart is overlaid if the table has a single selector: each run is a line
    in its own color. With several selectors, runs are panels on the same scales, unless `overlay`
    names the column; then selectors are panels. More than three reductions are panels as well.

    Parameters
    ----------
    curve
        `curve`, one row per (by, `selector`, `reduction`, `budget`, `subsets`), with `accuracy`
        and, where known, `ci_low`, `ci_high` and the counts; collected if lazy. If it has
        `agreement` in place of `accuracy`, that is drawn. Any column that is not part of the
        contract of `curve` tells runs apart. A null budget is all attempts.
    overlay
        Column that tells runs apart, such as "source_file" or "model", whose values are lines of one
        panel, so that runs can be compared; each selector has a panel then. None overlays the runs
        if there is one selector and at most 8 runs, and otherwise draws a panel for each run.
    references
        Accuracies to compare with, as fractions in [0, 1] by name, drawn as dashed lines.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Confidence level of the table's intervals, in (0, 1), which the subtitle names; None leaves
        it out.
    width, height
        Size of a panel in pixels, without its labels; None chooses a width at which the panels fit
        a page.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels. Lines of more
        than 64 budgets (fewer if there are more than 46 lines) are thinned evenly on the log scale,
        and the subtitle says so.

    Raises
    ------
    ColumnsError
        When the table is not a curve.
    DataError
        When the table has no rows, no accuracy, several rows at one point of a line, several units
        of budget, a budget of 0, more than 20 lines in a panel, or more than 12 panels.
    ParameterError
        When `overlay` is not a column that tells runs apart, a reference is not in [0, 1], there are
        more than 12 references, or `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import polars as pl
    >>> from ttsframe import charts
    >>> curve = pl.DataFrame({
    ...     "selector": ["majority_vote", "majority_vote", "oracle", "oracle"],
    ...     "reduction": pl.Series([None] * 4, dtype=pl.String),
    ...     "budget": [1, 4, 1, 4],
    ...     "accuracy": [0.4, 0.5, 0.4, 0.7],
    ...     "n_problems": [100] * 4,
    ... })
    >>> chart = charts.scaling_curve(curve, references={"greedy": 0.42})
    >>> print(chart.title.subtitle[0])
    100 problems · budgets up to 4 attempts · dashed: reference

    Two runs in one panel, and one panel for each selector:

    >>> runs = pl.concat([
    ...     curve.with_columns(model=pl.lit("3b")),
    ...     curve.with_columns(pl.col("accuracy") + 0.2, model=pl.lit("8b")),
    ... ])
    >>> len(charts.scaling_curve(runs, overlay="model").concat)
    2
    """
    interval = tables.name_interval(confidence_level)
    compared = _check_references(references or {})
    rows = _TABLE.collect_curve(curve, ignored=_ADDED)
    quantity = quantity_of(rows.columns)
    reductions = rows["reduction"].drop_nulls().unique(maintain_order=True).to_list()
    apart = tables.find_run_columns(rows, CURVE_COLUMNS)
    overlay = _choose_overlay(rows, apart, overlay)
    are_dashed = 1 < len(reductions) <= len(DASHES) and overlay is None
    if len(reductions) > len(DASHES) and overlay is None:
        rows = _split_by_reduction(rows, reductions)
        apart = [*apart, "scores"]
    rows = tables.add_line_names(rows, show_reduction=are_dashed or overlay is not None)
    hue = "selector"
    if overlay is not None:
        named = tables.name_values(rows[overlay])
        rows = rows.drop(overlay).with_columns(run=named, method="line")
        rows = tables.shorten_names(rows, "run").with_columns(line="run")
        apart = ["method", *[name for name in apart if name != overlay]]
        hue = "run"
    rows = _TABLE.add_panels(rows, apart).drop(apart, strict=False)
    known = rows.drop_nulls(quantity)
    if known.is_empty():
        raise _TABLE.refuse_unknown(rows, quantity)
    drawn = _TABLE.thin_lines(known).with_columns(x=pl.col("budget").cast(pl.Float64))
    budgets = BudgetAxis.of(drawn)
    hues = drawn[hue].unique().sort().to_list()
    colors = style.selector_colors(hues)
    plot = LinePlot(
        x=budgets.x("x"),
        y=quantity,
        y_axis=style.axis(quantity.capitalize(), format=".0%", tickCount=6),
        domain=share_domain(drawn, quantity, list(compared.values())),
        color=style.color_by(hue, colors),
        tooltip=curve_tooltip(budgets, quantity, line="Selector" if overlay is None else "Run"),
        point_size=46 if budgets.is_sparse() else 16,
    )
    dashes = dict(zip(["no score", *reductions], [DASHES[0], *DASHES], strict=False))
    dash = dash_by("reads", dashes) if are_dashed else None
    is_single = len(budgets.budgets) == 1
    bands = choose_bands(drawn, quantity, first=_FIRST_BANDS, last=_LAST_BANDS)

    def draw(panel: pl.DataFrame) -> list[alt.Chart]:
        if is_single:
            return draw_dots(panel, plot, budgets, references=compared)
        layers = plot.layers(panel, has_band=pl.col("line").is_in(bands), dash=dash)
        if compared:
            layers.append(plot.rules(compared, "Reference"))
        labels = [_label_ends(panel, plot, colors, hue)]
        if compared:
            labels.append(_label_references(compared, budgets.ends[1]))
        return [*layers, plot.name_ends(pl.concat(labels), height=height)]

    is_explained = quantity == "agreement" or "oracle" in drawn["selector"]
    n_budgets, n_drawn = known["budget"].n_unique(), len(budgets.budgets)
    expected = ("majority_vote", "oracle") if quantity == "accuracy" and overlay is None else ()
    # Only a choice by scores needs the others beside it.
    missing = [name for name in expected if reductions and name not in colors]
    absent = ", ".join(missing).replace("_", " ")
    n_rows = max(drawn.group_by("panel").agg(pl.col("line").n_unique())["line"].to_list())
    return style.draw_panels(
        drawn,
        draw,
        width=width,
        height=ROW_HEIGHT * (n_rows + len(compared)) if is_single else height,
        title=style.heading(
            title or f"{quantity.capitalize()} by {per_problem(budgets.unit)}",
            [
                _name_overlaid(rows) if overlay is not None else "",
                tables.count_problems(known),
                budgets.largest,
                describe_bands(drawn, bands, interval),
                f"dashed: reference{'s' if len(compared) > 1 else ''}" if compared else "",
            ],
            [
                _MEANINGS[quantity] if is_explained else "",
                style.scores_from(reductions[0]) if len(reductions) == 1 else "",
                f"{n_drawn:,} of {n_budgets:,} budgets drawn" if n_drawn < n_budgets else "",
            ],
            [tables.describe_left_out(known), tables.describe_few_problems(known)],
            [_describe_different_problems(drawn)],
            ["" if is_single else describe_equal_lines(drawn, quantity)],
            [tables.describe_undrawn(rows, quantity)],
            [f"Not in this table: {absent}" if absent else ""],
        ),
    )


def _choose_overlay(rows: pl.DataFrame, apart: Sequence[str], overlay: str | None) -> str | None:
    """Return the column whose values are lines: the one named, or the only one of a single selector."""
    if overlay is not None:
        if overlay not in apart:
            raise ParameterError(
                f"overlay == {overlay!r}, must be a column of curve that tells runs apart; found: "
                f"{list(apart)}. Hint: tts.scaling_curve(problems, by=[{overlay!r}]) keeps it."
            )
        return overlay
    if rows.select("selector", "reduction").n_unique() > 1:
        return None
    varying = [name for name in apart if rows[name].n_unique() > 1]
    is_one = len(varying) == 1 and rows[varying[0]].n_unique() <= _N_OVERLAID_MAX
    return varying[0] if is_one else None


def _name_overlaid(rows: pl.DataFrame) -> str:
    """Name the selector of overlaid runs if there is only one."""
    names = rows["selector"].unique().to_list()
    return str(names[0]).replace("_", " ") if len(names) == 1 else ""


def _describe_different_problems(drawn: pl.DataFrame) -> str:
    """Name the lines that average other problems than the rest, which makes them incomparable."""
    texts = []
    panels = drawn.drop_nulls("n_problems").partition_by("panel", as_dict=True, maintain_order=True)
    for (panel,), rows in panels.items():
        counts = rows.group_by("line", maintain_order=True).agg(pl.col("n_problems").max())
        if counts["n_problems"].n_unique() == 1:
            continue
        sizes = counts.group_by("n_problems").agg(pl.col("line").sort(), pl.len())
        sizes = sizes.sort("len", "n_problems", descending=True)
        usual, *others = sizes.rows(named=True)
        parts = [
            f"{', '.join(size['line'][:_N_NAMED_MAX])} on {size['n_problems']:,}" for size in others
        ]
        texts.append(
            f"{f'{panel}: ' if panel else ''}{'; '.join(parts[:_N_NAMED_MAX])}; the other lines on "
            f"{usual['n_problems']:,}"
        )
    if not texts:
        return ""
    more = f" and in {len(texts) - _N_NAMED_MAX} more panels" if len(texts) > _N_NAMED_MAX else ""
    return f"Not the same problems, so not comparable: {' · '.join(texts[:_N_NAMED_MAX])}{more}"


def _check_references(references: Mapping[str, float]) -> dict[str, float]:
    """Return references as floats by name after checking that they can be drawn."""
    if len(references) > _N_REFERENCES_MAX:
        raise ParameterError(
            f"references holds {len(references)} lines, a chart holds at most {_N_REFERENCES_MAX}. "
            "Hint: name those to compare."
        )
    return check_references(references)


def _split_by_reduction(rows: pl.DataFrame, reductions: Sequence[str]) -> pl.DataFrame:
    """Give each reduction a panel that also has the selectors that read no score, to compare with."""
    return pl.concat([
        rows.filter(pl.col("reduction").fill_null(name) == name).with_columns(
            scores=pl.lit(style.scores_from(name))
        )
        for name in reductions
    ])


def _label_ends(
    panel: pl.DataFrame, plot: LinePlot, colors: Mapping[str, str], hue: str
) -> pl.DataFrame:
    """Return where each line of a panel ends, with its name and value."""
    n_problems = pl.col("n_problems")
    is_fewer = n_problems < n_problems.max()
    of_fewer = pl.when(is_fewer).then(pl.format(" (of {})", n_problems)).fill_null("")
    label = pl.concat_str("line", pl.lit(" "), percent(pl.col(plot.y)), of_fewer)
    return plot.ends(panel, label, x=max(panel["x"].to_list()), colors=colors, color_by=hue)


def _label_references(references: Mapping[str, float], x: float) -> pl.DataFrame:
    """Return where each reference ends: it spans the panel, in which a run's lines may end earlier."""
    return pl.DataFrame({
        "name": [shorten(name, 40) for name in references],
        "y": list(references.values()),
    }).select(
        pl.lit(float(x)).alias("x"),
        "y",
        pl.concat_str("name", pl.lit(" "), percent(pl.col("y"))).alias("label"),
        pl.lit(style.MUTED).alias("color"),
    )
