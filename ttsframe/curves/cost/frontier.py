"""The Pareto frontier: the points of a curve that are worth their budget."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan, unused_name
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.schema import require_columns

__all__ = ["pareto_frontier"]


def pareto_frontier(curve: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    """Mark the points of a curve that no other point beats at the same budget or less.

    What is on the frontier was chosen by the same problems that it is shown on: among many points
    with the same true accuracy the luckiest is. The intervals of its rows do not know that.

    Parameters
    ----------
    curve
        `curve`, with `budget` (null: not comparable), `accuracy` and, if there, `budget_unit`, such
        as `cost_curve` makes it, for several selectors, reductions and methods.
    by
        Columns that get a frontier each, such as the level; all other rows compete.

    Returns
    -------
    FrameT
        The same rows in ascending order of `by`, `budget_unit`, `budget` and `accuracy`, with

        - `is_efficient` (Boolean): no row of the group has at least the accuracy for a smaller
          budget, or more for the same; equal points are both. False without accuracy or budget.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.

    See Also
    --------
    cost_curve : Brings methods on a common axis.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> curve = pl.DataFrame({
    ...     "selector": ["a", "a", "b", "b"],
    ...     "budget": [100.0, 400.0, 200.0, 800.0],
    ...     "accuracy": [0.5, 0.55, 0.6, 0.7],
    ... })
    >>> tts.pareto_frontier(curve).filter("is_efficient")["budget"].to_list()
    [100.0, 200.0, 800.0]
    """
    check_frame(curve, "curve")
    groups: tuple[str, ...] = check_names(by, "by", taken=("budget", "accuracy", "is_efficient"))
    schema: pl.Schema = require_columns(
        curve,
        [*groups, "budget", "accuracy"],
        where="curve",
        hint="tts.cost_curve(problems) makes this table.",
    )
    unit: list[str] = [name for name in ("budget_unit",) if name in schema and name not in groups]
    group: list[str] = [*groups, *unit]
    columns = [name for name in schema if name != "is_efficient"]
    highest, before = (unused_name(name, schema) for name in ("highest", "before"))

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        # Means of the same values differ in their last bits by the order of adding them up.
        accuracy = pl.col("accuracy").cast(pl.Float64).fill_nan(None).round(12)
        best = (
            lazy
            .group_by(*group, "budget")
            .agg(accuracy.max().alias(highest))
            .sort(*group, "budget")
            .with_columns(
                _over(pl.col(highest).cum_max().forward_fill().shift(), group).alias(before)
            )
        )
        is_best = (accuracy == pl.col(highest)) & pl.col("budget").is_not_null()
        is_more = (accuracy > pl.col(before)).fill_null(value=True)
        others = [name for name in columns if not schema[name].is_nested()]
        return (
            lazy
            .join(best, on=[*group, "budget"], how="left", nulls_equal=True)
            .with_columns(is_efficient=(is_best & is_more).fill_null(value=False))
            .sort(*group, "budget", "accuracy", *others, nulls_last=True)
            .select(*columns, "is_efficient")
        )

    return run_plan(curve, plan)


def _over(expr: pl.Expr, group: Sequence[str]) -> pl.Expr:
    """Evaluate within groups in the order of budgets, or over all rows where there is no group."""
    ordered: list[str | pl.Expr] = [*group] if group else [pl.lit(0)]
    return expr.over(*ordered, order_by="budget", nulls_last=True)
