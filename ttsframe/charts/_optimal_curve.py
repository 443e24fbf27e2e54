"""The chart of a compute-optimal curve: the line over its strategies, and those it chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_names
from ttsframe._typing import ColumnNames
from ttsframe._wording import percent
from ttsframe.charts import style, tables
from ttsframe.charts._scaling_curve import scaling_curve
from ttsframe.charts.budgets import BudgetAxis
from ttsframe.errors import DataError

__all__ = ["optimal_curve"]

_TABLE: Final = tables.Argument(
    "choices", "tts.curves.optimal_choices(problems, levels=levels)", ("choices",)
)
_CELL: Final = ("level", "budget")
_KNOWN: Final = frozenset({
    *_CELL,
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
_N_LEVELS_MAX: Final = 20
_SHOWN: Final = (
    *("level", "budget", "strategy", "key", "letter"),
    *("is_agreed", "chosen_by_fold", "n_problems"),
)
_INDEPENDENT: Final = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
_ROW_HEIGHT: Final = 30
_SQUARE: Final = 22


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
    """Draw compute-optimal accuracy with that of its strategies, and the strategies it chooses.

    Above is the curve as `scaling_curve` draws it. Below is a letter for each level and budget: the
    strategy that is best on all problems. Its square is filled if every fold of problems chose the
    same strategy, and hollow if folds differ, which means that another strategy is about as good.

    Parameters
    ----------
    curve
        `curve` with the rows of `optimal_curve` and, to compare with, those of `scaling_curve`;
        collected if lazy.
    choices
        Table that `optimal_choices` makes; collected if lazy. Columns that are neither part of its
        contract nor in `strategy` tell runs apart and get a strip each.
    strategy
        Columns of `choices` that tell strategies apart, as given to `optimal_choices`.
    references, title, confidence_level, width, height
        As in `scaling_curve`.

    Returns
    -------
    alt.VConcatChart
        The chart with its data inside. Budgets whose squares would overlap are left out of the strip.

    Raises
    ------
    ColumnsError
        When a table is not the one described.
    DataError
        When a table has no rows, the curve cannot be drawn, there are no choices on all problems, or
        there are more than 26 strategies, 20 levels, or 12 runs.
    ParameterError
        When a reference or `confidence_level` is out of range.

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
    rows = _check_choices(choices, check_names(strategy, "strategy"))
    counts = rows.group_by("strategy", "selector").len()
    counts = counts.sort("len", "strategy", descending=[True, False])
    strategies = counts["strategy"].to_list()
    hint = "filter it to some levels or budgets."
    n_levels = rows["level"].n_unique()
    _TABLE.check_at_most(len(strategies), len(ascii_uppercase), "strategies", hint=hint)
    _TABLE.check_at_most(n_levels, _N_LEVELS_MAX, "levels", hint=hint)
    width = width or style.WIDTH
    spread = _space_out(rows["budget"].unique().sort().to_list(), width)
    letters = dict(zip(strategies, ascii_uppercase, strict=False))
    keys = {name: f"{letter}  {name}" for name, letter in letters.items()}
    drawn = rows.filter(pl.col("budget").is_in(spread)).with_columns(
        key=pl.col("strategy").replace_strict(keys),
        letter=pl.col("strategy").replace_strict(letters),
    )
    colors = dict(
        zip(keys.values(), style.strategy_colors(counts["selector"].to_list()), strict=True)
    )
    budgets = BudgetAxis.of(drawn)
    below = style.draw_panels(
        drawn,
        lambda strip: _draw_squares(strip, budgets, colors),
        columns=1,
        width=width,
        height=lambda strip: _ROW_HEIGHT * strip["level"].n_unique(),
        title=style.heading(
            "Chosen strategy by level of difficulty",
            ["letter: the best strategy on all problems of the level"],
            ["filled: every fold of problems chose it too", "hollow: folds chose differently"],
            fontSize=13,
            subtitlePadding=4,
            offset=10,
        ),
    )
    return alt.VConcatChart(vconcat=[above, below], spacing=36, resolve=_INDEPENDENT)


def _check_choices(choices: pl.DataFrame | pl.LazyFrame, parts: Sequence[str]) -> pl.DataFrame:
    """Return the choice on all problems of each level and budget, and the choices of its folds."""
    rows = _TABLE.collect(
        choices,
        texts=["level", "problem_fold", *parts],
        numbers=["budget", "accuracy", "n_problems"],
    )
    _TABLE.check_budgets(rows)
    if "budget_unit" not in rows.columns:
        rows = rows.with_columns(budget_unit=pl.lit("attempts"))
    apart = tables.find_run_columns(rows, {*_KNOWN, *parts})
    first, *others = parts
    name = pl.col(first).cast(pl.String).fill_null("none")
    details = [
        pl.concat_str(pl.lit(" ("), pl.col(part).cast(pl.String), pl.lit(")")).fill_null("")
        for part in others
    ]
    rows = _TABLE.add_panels(rows, apart).with_columns(
        strategy=pl.concat_str(name.str.replace_all("_", " ", literal=True), *details),
        selector=name,
    )
    rows = tables.shorten_names(rows, "strategy")
    is_on_all = pl.col("problem_fold").is_null()
    if rows.filter(is_on_all).is_empty():
        raise DataError(
            f"choices has no row with a null problem_fold, the choice on all problems. Hint: {_TABLE.hint}"
        )
    cell = ["panel", *_CELL]
    strategy = pl.col("strategy")
    of_fold = pl.concat_str(pl.lit("fold "), "problem_fold", pl.lit(": "), strategy)
    is_same = strategy.filter(~is_on_all) == strategy.last()
    return (
        rows
        .sort("problem_fold", nulls_last=True, maintain_order=True)
        .with_columns(
            chosen_by_fold=of_fold.filter(~is_on_all).implode().list.join(", ").over(cell),
            is_agreed=is_same.all().over(cell),
        )
        .filter(is_on_all)
        .sort("level", "budget", maintain_order=True)
    )


def _space_out(budgets: Sequence[float], width: int) -> list[float]:
    """Keep budgets whose squares do not overlap on the log scale, the first and last among them."""
    first, last = budgets[0], budgets[-1]
    ratio = (last / first) ** ((_SQUARE + 4) / width)
    kept = [first]
    for budget in budgets[1:]:
        if budget >= kept[-1] * ratio:
            kept.append(budget)
    return kept if kept[-1] == last else [*kept[: max(len(kept) - 1, 1)], last]


def _draw_squares(
    strip: pl.DataFrame, budgets: BudgetAxis, colors: Mapping[str, str]
) -> list[alt.Chart]:
    """Draw a square with a letter for each level and budget."""
    squares = style.legend(
        orient="bottom",
        columns=2,
        symbolType="square",
        symbolSize=140,
        labelLimit=0,
        columnPadding=24,
    )
    color = style.color_by("key", colors, squares)
    levels = strip["level"].unique().sort().to_list()
    shown = strip.select(*_SHOWN, share=percent(pl.col("accuracy")))
    base = alt.Chart(tables.inline(shown)).encode(
        x=budgets.x(offset=14),
        y=alt.Y("level:O", sort=levels, axis=style.axis("Level", grid=False, offset=14)),
        tooltip=[
            alt.Tooltip("level:N", title="Level"),
            alt.Tooltip("budget:Q", title=budgets.tooltip_title),
            alt.Tooltip("strategy:N", title="Best on all problems"),
            alt.Tooltip("share:N", title="Accuracy (in sample)"),
            alt.Tooltip("chosen_by_fold:N", title="Chosen for each held-out fold"),
            alt.Tooltip("n_problems:Q", title="Problems"),
        ],
    )
    layers: list[alt.Chart] = []
    for is_agreed in (True, False):
        cells = base.transform_filter(alt.datum.is_agreed == is_agreed)
        square = cells.mark_point(
            shape="square",
            size=_SQUARE**2,
            filled=is_agreed,
            strokeWidth=1.8,
            opacity=1,
            clip=False,
        )
        letter = cells.mark_text(font=style.FONT, fontSize=12, fontWeight="bold", clip=False)
        layers += [
            square.encode(color=color),
            letter.encode(
                text=alt.Text("letter:N"), color=alt.ColorValue("white") if is_agreed else color
            ),
        ]
    return layers
