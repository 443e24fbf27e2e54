"""The rows of a curve as its chart draws them: checked, filled in, named, and not too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from ttsframe._wording import CURVE_COLUMNS, LEFT_OUT, counted, interval, left_out, quantity_of
from ttsframe.charts.style import check_at_most, inline, tidy, with_short_names
from ttsframe.errors import ColumnsError, DataError

_N_BUDGETS_MAX: Final = 64
_N_BUDGETS_MIN: Final = 8
_N_LINES_MAX: Final = 20
_N_POINTS_MAX: Final = 3_000
"""A point with its tooltip is some 300 bytes of the page that holds the chart."""

LEVEL_BASES: Final = {
    "cross_fitted": "levels: from the half of the attempts that is not judged",
    "reference": "levels: from another run",
    "same_sample": "levels: from the same attempts, which makes hard ones look harder and easy ones easier",
    "given": "levels: from the data",
}
LEVEL_CAVEATS: Final = {
    "few_attempts": "on fewer than 16 attempts",
    "not_exchangeable": "on attempts of a tree search, which share their luck",
}

_UNDRAWN: Final = (
    *("reduction", "budget_unit", "nominal_budget", "subsets", "standard_error"),
    *("panel", "scores", "basis", "caveat", *[f"n_{status}" for status in LEFT_OUT]),
)


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
    check_budgets(rows, where=where)
    return with_short_names(rows, ["selector", "reduction"])


def check_budgets(rows: pl.DataFrame, *, where: str) -> None:
    """Raise where a budget has no place on the axis, whose scale is logarithmic."""
    if (rows["budget"].drop_nulls() <= 0).any():
        raise DataError(
            f"{where} has budgets down to {rows['budget'].min()!r}, must be above 0, since they stand on "
            "a log scale. Hint: filter the rows that cost nothing."
        )


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


def thinned(
    rows: pl.DataFrame,
    *,
    panel: Sequence[str] = ("panel",),
    line: Sequence[str] = ("line",),
    n_max: int = _N_BUDGETS_MAX,
    also: pl.Expr | None = None,
    where: str = "curve",
) -> pl.DataFrame:
    """Keep so many points of each line that a page can bear them, evenly on the log scale."""
    # Each line by itself: budgets that are costs differ from line to line.
    whole = [*panel, *line]
    lines = rows.select(whole).unique()
    n_lines = lines.height
    most = int(lines.group_by(panel).len()["len"].max() or 0)  # type: ignore[arg-type]
    hint = "filter the table to those to compare."
    check_at_most(most, _N_LINES_MAX, "lines in a panel", where=where, hint=hint)
    fewest = _N_POINTS_MAX // _N_BUDGETS_MIN
    check_at_most(n_lines, fewest, "lines", where=where, hint=hint)
    n_kept = min(n_max, max(_N_POINTS_MAX // max(n_lines, 1), _N_BUDGETS_MIN))
    budget = pl.col("budget").cast(pl.Float64)
    first, last = budget.min().over(whole), budget.max().over(whole)
    is_kept = pl.len().over(whole) <= n_kept
    if also is not None:
        is_kept |= also
    place = (budget / first).log() / (last / first).log() * (n_kept - 1)
    nearest = (
        rows
        .with_row_index("at")
        .filter(~is_kept)
        .with_columns(step=place.round(), off=(place - place.round()).abs())
        .sort("off", "budget")
        .unique([*whole, "step"], keep="first")
    )
    numbered = rows.with_row_index("at")
    return numbered.filter(is_kept | pl.col("at").is_in(nearest["at"].to_list())).drop("at")


def omitted(rows: pl.DataFrame) -> str:
    """Say how many problems the rows leave out, by status; empty where none."""
    counts = {status: rows[f"n_{status}"].fill_null(0).to_list() for status in LEFT_OUT}
    return ", ".join(
        f"{counted(of, 'problem')} {status}" for status, of in counts.items() if max(of) > 0
    )


def about_levels(rows: pl.DataFrame) -> list[str]:
    """Say what levels were estimated on, and what they should not be trusted for."""
    basis, caveat = (
        set(rows[name]) if name in rows.columns else set() for name in ("basis", "caveat")
    )
    doubts = [f"some {what}" for name, what in LEVEL_CAVEATS.items() if name in caveat]
    return [*[text for name, text in LEVEL_BASES.items() if name in basis], *doubts]


def marks(rows: pl.DataFrame) -> alt.InlineData:
    """Put rows into the chart without the columns that no mark and no tooltip shows."""
    return inline(rows.drop(_UNDRAWN, strict=False))
