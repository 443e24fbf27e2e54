"""The chart of a compute-optimal curve: the line over its strategies, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe._checks import check_names
from ttsframe._typing import ColumnNames
from ttsframe._wording import percent
from ttsframe.charts._scaling_curve import scaling_curve
from ttsframe.charts.budgets import BudgetAxis, unit_name
from ttsframe.charts.curve_rows import check_budgets
from ttsframe.charts.style import (
    FONT,
    INK,
    MUTED,
    arrange,
    axis,
    check_at_most,
    inline,
    legend,
    panel_column,
    panel_heading,
    panel_of,
    panel_width,
    strategy_colours,
    tidy,
    with_short_names,
)
from ttsframe.errors import DataError

__all__ = ["optimal_curve"]

_CHOICE_COLUMNS: Final = frozenset({
    "level",
    "budget",
    "budget_unit",
    "problem_fold",
    "accuracy_seen",
    "accuracy",
    "n_seen",
    "n_problems",
    "n_strategies",
    "n_tied",
    "cost",
})

_ADDED: Final = ("strategy", "leader", "chosen_elsewhere", "is_agreed")

_N_LEVELS_MAX: Final = 20
_SHOWN: Final = (
    *("level", "budget", "strategy", "key", "letter"),
    *("is_agreed", "chosen_elsewhere", "n_problems"),
)
_RESOLVE: Final = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
_ROW_HEIGHT: Final = 30
_SIDE: Final = 22


class _Marks(NamedTuple):
    """What the marks of all strips stand for."""

    budgets: BudgetAxis
    keys: list[str]
    colours: list[str]
    width: int


def optimal_curve(
    curve: pl.DataFrame | pl.LazyFrame,
    choices: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    strategy: ColumnNames = ("selector", "reduction"),
    references: Mapping[str, float] | None = None,
    title: str | None = None,
    confidence_level: float | None = None,
    width: int | None = None,
    height: int = 320,
) -> alt.VConcatChart:
    """Draw compute-optimal accuracy over that of its strategies, and what was chosen where.

    Above, what `scaling_curve` draws of the curve. Below, a letter for each level and budget: the
    strategy that is best on all problems. Its square is filled where every fold of problems chose
    it too, and hollow where folds differ, that is, where another strategy is about as good.

    Parameters
    ----------
    curve
        `curve` with the rows of `optimal_curve` and, to be compared with, those of
        `scaling_curve`; collected if lazy.
    choices
        Table that `optimal_choices` makes; collected if lazy. Columns that are neither part
        of its contract nor in `strategy` tell runs apart and get a strip each.
    strategy
        Columns of `choices` that tell strategies apart, as they were given to make it.
    references
        Accuracies to compare with, as fractions in [0, 1] by name, drawn as dashed lines.
    title
        Heading; by default it says what is drawn.
    confidence_level
        Coverage that the intervals of the curve were made with, for the subtitle only.
    width, height
        Size of a panel of the curve in pixels, without its labels; None is a width at which the
        panels fit a page.

    Returns
    -------
    alt.VConcatChart
        The chart, its data inside. Budgets whose squares would overlap are left out of the strip.

    Raises
    ------
    ColumnsError
        When a table is not the one it should be.
    DataError
        When a table has no rows, the curve cannot be drawn, there are no choices on all problems, or
        there are more than 26 strategies, 20 levels, or too many groups.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> run = tts.simulate_trajectories(200, 32, seed=0, keys=True)
    >>> levels = tts.difficulty_levels(run)
    >>> problems = tts.select_answers(
    ...     tts.curves.halve_attempts(run), selectors=["majority_vote", "best_of_n"], budgets=[4, 16], by="fold"
    ... )
    >>> chart = charts.optimal_curve(
    ...     tts.optimal_curve(problems, levels=levels),
    ...     tts.curves.optimal_choices(problems, levels=levels),
    ... )
    >>> len(chart.vconcat)
    2
    """
    above = scaling_curve(
        curve,
        references=references,
        title=title or "Compute-optimal accuracy",
        confidence_level=confidence_level,
        width=width,
        height=height,
    )
    rows = _cells(choices, check_names(strategy, "strategy"))
    apart = [name for name in rows.columns if name not in {*_CHOICE_COLUMNS, *_ADDED}]
    rows = panel_column(rows, apart, where="choices")
    found = rows.group_by("strategy").len().sort("len", "strategy", descending=[True, False])
    names = found["strategy"].to_list()
    hint = "filter it to some levels or budgets."
    n_levels = rows["level"].n_unique()
    check_at_most(len(names), len(ascii_uppercase), "strategies", where="choices", hint=hint)
    check_at_most(n_levels, _N_LEVELS_MAX, "levels", where="choices", hint=hint)
    check_budgets(rows, where="choices")
    size = panel_width(width, 1)
    kept = _spaced(rows["budget"].unique().sort().to_list(), size)
    drawn = rows.filter(pl.col("budget").is_in(kept))
    selectors = dict(rows.select("strategy", "leader").unique().rows())
    marks = _Marks(
        budgets=BudgetAxis.of(drawn),
        keys=[f"{letter}  {name}" for letter, name in zip(ascii_uppercase, names, strict=False)],
        colours=strategy_colours([selectors[name] for name in names]),
        width=size,
    )
    keys = dict(zip(names, marks.keys, strict=True))
    drawn = drawn.with_columns(
        key=pl.col("strategy").replace_strict(keys),
        letter=pl.col("strategy").replace_strict({name: key[0] for name, key in keys.items()}),
    )
    strips = [
        _strip(panel, name, marks)
        for (name,), panel in drawn.partition_by("panel", as_dict=True, maintain_order=True).items()
    ]
    heading_of = alt.TitleParams(
        "What is chosen, by level of difficulty",
        subtitle=[
            "letter: the best strategy on all problems of the level",
            "filled: chosen on every fold of problems too · hollow: folds choose differently",
        ],
        anchor="start",
        font=FONT,
        fontSize=13,
        color=INK,
        subtitleFont=FONT,
        subtitleFontSize=12,
        subtitleColor=MUTED,
        subtitlePadding=4,
        offset=10,
    )
    below = arrange(strips, title=heading_of, columns=1)
    return alt.VConcatChart(vconcat=[above, below], spacing=36, resolve=_RESOLVE)


def _cells(choices: pl.DataFrame | pl.LazyFrame, parts: Sequence[str]) -> pl.DataFrame:
    """Return the choice on all problems of each level and budget, and what its folds chose."""
    hint = "tts.curves.optimal_choices(problems, levels=levels) makes this table."
    rows = tidy(
        choices,
        where="choices",
        texts=["level", "problem_fold", *parts],
        numbers=["budget", "accuracy", "n_problems"],
        hint=hint,
    )
    if "budget_unit" not in rows.columns:
        rows = rows.with_columns(budget_unit=pl.lit("attempts"))
    first, *others = parts
    leader = pl.col(first).cast(pl.String).fill_null("none")
    details = [
        pl.concat_str(pl.lit(" ("), pl.col(name).cast(pl.String), pl.lit(")")).fill_null("")
        for name in others
    ]
    rows = rows.with_columns(
        strategy=pl.concat_str(leader.str.replace_all("_", " ", literal=True), *details),
        leader=leader,
    ).drop(parts)
    rows = with_short_names(rows, ["strategy"])
    is_on_all = pl.col("problem_fold").is_null()
    cell = [name for name in rows.columns if name not in _CHOICE_COLUMNS - {"level", "budget"}]
    cell = [name for name in cell if name not in {"strategy", "leader"}]
    if rows.filter(is_on_all).is_empty():
        raise DataError(
            f"choices has no row with a null problem_fold, the choice on all problems. Hint: {hint}"
        )
    chosen = pl.col("strategy").filter(~is_on_all)
    folds = pl.concat_str(pl.lit("fold "), "problem_fold", pl.lit(": "), "strategy")
    return (
        rows
        .sort("problem_fold", nulls_last=True, maintain_order=True)
        .with_columns(
            chosen_elsewhere=folds.filter(~is_on_all).implode().list.join(", ").over(cell),
            is_agreed=(chosen == pl.col("strategy").last()).all().over(cell),
        )
        .filter(is_on_all)
        .sort("level", "budget", maintain_order=True)
    )


def _spaced(budgets: Sequence[float], width: int) -> list[float]:
    """Keep budgets whose squares do not overlap on the log scale, the first and last among them."""
    first, last = budgets[0], budgets[-1]
    ratio = (last / first) ** ((_SIDE + 4) / width)
    kept = [first]
    for budget in budgets[1:]:
        if budget >= kept[-1] * ratio:
            kept.append(budget)
    return kept if kept[-1] == last else [*kept[: max(len(kept) - 1, 1)], last]


def _strip(drawn: pl.DataFrame, name: object, marks: _Marks) -> alt.LayerChart:
    """Draw one strip: a square with a letter for each level and budget."""
    levels = drawn["level"].unique().sort().to_list()
    colour = alt.Color(
        "key:N",
        scale=alt.Scale(domain=marks.keys, range=marks.colours),
        legend=legend(
            orient="bottom",
            columns=2,
            symbolType="square",
            symbolSize=140,
            labelLimit=0,
            columnPadding=24,
        ),
    )
    shown = drawn.select(*_SHOWN, share=percent(pl.col("accuracy")))
    base = alt.Chart(inline(shown)).encode(
        x=marks.budgets.x(offset=14),
        y=alt.Y("level:O", sort=levels, axis=axis("Level", grid=False, offset=14)),
        tooltip=[
            alt.Tooltip("level:N", title="Level"),
            alt.Tooltip("budget:Q", title=f"Budget ({unit_name(marks.budgets.unit)})"),
            alt.Tooltip("strategy:N", title="Best on all problems"),
            alt.Tooltip("share:N", title="Accuracy there (in sample)"),
            alt.Tooltip("chosen_elsewhere:N", title="Chosen on the others of"),
            alt.Tooltip("n_problems:Q", title="Problems"),
        ],
    )
    layers: list[alt.Chart] = []
    for is_agreed in (True, False):
        some = base.transform_filter(alt.datum.is_agreed == is_agreed)
        square = some.mark_point(
            shape="square",
            size=_SIDE**2,
            filled=is_agreed,
            strokeWidth=1.8,
            opacity=1,
            clip=False,
        )
        letter = some.mark_text(font=FONT, fontSize=12, fontWeight="bold", clip=False)
        layers += [
            square.encode(color=colour),
            letter.encode(text="letter:N", color=alt.value("white") if is_agreed else colour),
        ]
    chart = panel_of(layers, width=marks.width, height=_ROW_HEIGHT * len(levels))
    return chart.properties(title=panel_heading(str(name))) if name else chart
