"""The rows of a curve as its chart draws them: checked, filled in, named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import polars as pl

from ttsframe._wording import CURVE_COLUMNS, LEFT_OUT, interval, left_out, quantity_of
from ttsframe.charts._style import tidy
from ttsframe.errors import ColumnsError, DataError

_N_BUDGETS_MAX: Final = 64


def curve_rows(
    curve: pl.DataFrame | pl.LazyFrame,
    *,
    where: str = "curve",
    maker: str = "scaling_curve",
    parts: Sequence[str] = (),
) -> pl.DataFrame:
    """Check the table, and that it has its parts; fill the columns that may be left out."""
    hint = f"tts.{maker}(problems) makes this table."
    rows = tidy(curve, where=where, texts=["selector"], numbers=["budget", *parts], hint=hint)
    quantity = quantity_of(rows.columns)
    for name in (quantity, "ci_low", "ci_high", "n_problems", *[f"n_{s}" for s in LEFT_OUT]):
        if name in rows.columns and not (
            rows[name].dtype.is_numeric() or rows[name].is_null().all()
        ):
            raise ColumnsError(
                f"{where}: {name!r} is {rows[name].dtype}, must be numbers. Hint: {hint}"
            )
    if quantity not in rows.columns:
        raise ColumnsError.missing(["accuracy"], rows.columns, where=where, hint=hint)
    defaults = {
        "reduction": pl.lit(None, pl.String),
        "budget_unit": pl.lit("attempts"),
        "ci_low": pl.lit(None, pl.Float64),
        "ci_high": pl.lit(None, pl.Float64),
        "n_problems": pl.lit(None, pl.Int64),
        **{f"n_{status}": pl.lit(0) for status in LEFT_OUT},
    }
    rows = rows.with_columns(**{
        name: value for name, value in defaults.items() if name not in rows.columns
    }).with_columns(pl.col(quantity, "ci_low", "ci_high").cast(pl.Float64).fill_nan(None))
    apart = [name for name in rows.columns if name not in {*CURVE_COLUMNS, *parts}]
    point = [*apart, "selector", "reduction", "budget"]
    if rows.select(pl.struct(point).is_duplicated().any()).item():
        found = rows.filter(pl.struct(point).is_duplicated()).select(point).row(0, named=True)
        raise DataError(
            f"{where} has several rows for {found}, must have one per point. Hint: keep the column "
            f"that tells the runs apart, as tts.{maker}(problems, by=...) does."
        )
    units = rows["budget_unit"].unique().sort().to_list()
    if len(units) > 1:
        raise DataError(
            f"{where} has budgets in {units}, one axis holds one unit. Hint: filter 'budget_unit'."
        )
    if rows["budget"].null_count() not in {0, rows.height}:
        raise DataError(
            f"{where} has budgets that are numbers and budgets that are null (all attempts). Hint: "
            "filter one kind, or name the number of attempts as a budget."
        )
    return rows


def named_lines(rows: pl.DataFrame, *, show_reduction: bool) -> pl.DataFrame:
    """Add what a reader sees: the line's name, its interval, and what was left out, as text."""
    name = pl.col("selector").cast(pl.String).str.replace_all("_", " ", literal=True)
    reduction = pl.concat_str(pl.lit(" ("), pl.col("reduction"), pl.lit(")")).fill_null("")
    return rows.with_columns(
        line=pl.concat_str(name, reduction) if show_reduction else name,
        interval=interval().fill_null("unknown"),
        left_out=left_out(),
        reads=pl.col("reduction").fill_null("no score"),
        of_budget=pl.col("budget").cast(pl.String).fill_null("all"),
        budget=pl.col("budget").fill_null(1),
    )


def thinned(budgets: list[int], n_max: int = _N_BUDGETS_MAX) -> list[int]:
    """Keep at most ``n_max`` budgets, evenly on the log scale, the first and last among them."""
    if len(budgets) <= n_max:
        return budgets
    ratio = (budgets[-1] / budgets[0]) ** (1 / (n_max - 1))
    targets = list(accumulate([budgets[0]] + [ratio] * (n_max - 1), lambda a, b: a * b))
    nearest = {min(budgets, key=lambda budget: abs(budget / target - 1)) for target in targets}
    return sorted(nearest | {budgets[0], budgets[-1]})
