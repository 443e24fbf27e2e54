"""Ranks of models, runs or selectors, with their intervals."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import counted, percent
from ttsframe.charts import style, tables
from ttsframe.errors import ColumnsError

__all__ = ["ranking"]

_TABLE: Final = tables.Argument("ranking", "tts.rank(problems)", ("ranking",))
_NUMBERS: Final = ("rank", "rank_low", "rank_high", "n_ranked", "n_problems")
_KNOWN: Final = frozenset({
    *_NUMBERS,
    *("accuracy", "n_better", "n_worse", "sets", "share_of_resamples_best", "n_left_out"),
})
_COLOR: Final = style.FALLBACK_COLORS[0]
_ROW: Final = 26
_N_RANKED_MAX: Final = 40
_N_TICKS_MAX: Final = 12


def ranking(
    ranking: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the rank of each model, run or selector, and the ranks that it may have.

    Parameters
    ----------
    ranking
        Table that `rank` makes, one row per ranked value; collected if lazy. Other columns than
        the ranked one, which is the last before `rank`, become panels where they vary.
    title, confidence_level, width
        As in `scaling_curve`.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside, the best on top; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When the table is not one of ranks.
    DataError
        When the table has no rows, more than 40 ranked values, or more than 12 panels.
    ParameterError
        When `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, keys=True)
    >>> problems = tts.select_answers(run, budgets=8)
    >>> charts.ranking(tts.rank(problems)).title.subtitle[0]
    'point: rank by accuracy on 50 problems · line: ranks within the confidence interval, all at once'
    """
    interval = tables.name_interval(confidence_level)
    rows = _TABLE.collect(ranking, numbers=_NUMBERS)
    before = rows.columns[: rows.columns.index("rank")]
    if not before:
        raise ColumnsError(
            "ranking: no column before 'rank', which names what is ranked. Hint: tts.rank(problems) "
            "makes this table."
        )
    # A selector is ranked with the reduction that it reads.
    n_names = 2 if before[-2:] == ["selector", "reduction"] else 1
    of_name = [pl.col(name).cast(pl.String) for name in before[-n_names:]]
    name = (
        of_name[0]
        if n_names == 1
        else (pl.concat_str(of_name[0], pl.format(" ({})", of_name[1]).fill_null("")))
    )
    apart = tables.find_run_columns(rows, {*_KNOWN, *before[-n_names:]})
    named = rows.with_columns(ranked=name.fill_null("none"))
    drawn = tables.shorten_names(_TABLE.add_panels(named, apart), "ranked")
    n_ranked = drawn.group_by("panel").len()["len"].to_list()
    _TABLE.check_at_most(max(n_ranked), _N_RANKED_MAX, "ranked values in a panel")
    problems = counted([int(n) for n in drawn["n_problems"].to_list()], "problem")
    return style.draw_panels(
        drawn,
        _draw_panel,
        width=width,
        height=lambda panel: _ROW * panel.height + 14,
        title=style.heading(
            title or "Ranks, and how far they can be trusted",
            [
                f"point: rank by accuracy on {problems}",
                f"line: ranks within the {interval}, all at once",
            ],
            ["number: accuracy"],
        ),
    )


def _draw_panel(panel: pl.DataFrame) -> list[alt.Chart]:
    """Draw for each ranked value an interval, a point, and its accuracy."""
    rows = panel.sort("rank", "ranked").with_columns(
        number=percent(pl.col("accuracy")) if "accuracy" in panel.columns else pl.lit("")
    )
    order = rows["ranked"].to_list()
    most = int(rows["n_ranked"].to_list()[0])
    step = -(-most // _N_TICKS_MAX)
    ticks = [1, *range(step, most + 1, step)] if step > 1 else [*range(1, most + 1)]
    x_axis = style.axis("Rank", values=ticks, format="d")

    def x(column: str) -> alt.X:
        scale = alt.Scale(domain=[0.5, most + 0.5], nice=False)
        return alt.X(f"{column}:Q", axis=x_axis, scale=scale)

    names = style.axis(None, grid=False, ticks=False, domain=False, labelPadding=10, labelLimit=260)
    y = alt.Y("ranked:N", sort=order, axis=names, scale=alt.Scale(domain=order))
    tooltip = [
        alt.Tooltip("ranked:N", title="Name"),
        alt.Tooltip("rank:Q", title="Rank"),
        alt.Tooltip("rank_low:Q", title="from"),
        alt.Tooltip("rank_high:Q", title="to"),
        alt.Tooltip("n_problems:Q", title="Problems", format=","),
    ]
    base = alt.Chart(tables.inline(rows.select("ranked", "number", *_NUMBERS))).encode(y=y)
    return [
        base.mark_rule(strokeWidth=2.2, color=_COLOR).encode(
            x=x("rank_low"), x2=alt.X2("rank_high:Q")
        ),
        base.mark_point(filled=True, size=80, color=_COLOR, opacity=1).encode(
            x=x("rank"), tooltip=tooltip
        ),
        base.mark_text(
            align="left",
            baseline="middle",
            dx=10,
            font=style.FONT,
            fontSize=12,
            color=style.INK,
            clip=False,
        ).encode(x=alt.value("width"), text="number:N"),
    ]
