"""From what a caller passes to Polars expressions, and back to the caller's names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from ttsframe._typing import FrameT, IntoExprColumn
from ttsframe.errors import ColumnsError, ParameterTypeError, TtsframeError


def into_expr(value: IntoExprColumn, parameter: str) -> pl.Expr:
    """Turn a column argument into an expression; a string is a column name, never a literal."""
    if isinstance(value, pl.Expr):
        return value
    if isinstance(value, str):
        return pl.col(value)
    if isinstance(value, pl.Series):
        return pl.lit(value)
    raise ParameterTypeError(
        f"{parameter} must be a column name, a polars expression or a polars series, got "
        f"{type(value).__name__}. Hint: wrap a constant as pl.lit(...)."
    )


def keep_name(result: pl.Expr, source: pl.Expr) -> pl.Expr:
    """Give a result the name of its source; of a selector, each column keeps its own name."""
    name = source.meta.output_name(raise_if_undetermined=False)
    return result.name.keep() if name is None else result.alias(name)


def map_column(
    source: pl.Expr, function: Callable[[pl.Series], pl.Series], dtype: pl.DataType
) -> pl.Expr:
    """Apply a function whose value for a row depends on that row alone, and keep the name of the source."""
    # `Expr.map_batches` would wrap the function in a closure, which only cloudpickle can pickle.
    mapped = pl.map_batches(
        [source], _OfOneColumn(function), return_dtype=dtype, is_elementwise=True
    )
    return keep_name(mapped, source)


def as_numbers(source: pl.Expr, parameter: str) -> pl.Expr:
    """Cast a column of numbers or Booleans to Float64, with an error that names any other column."""
    return map_column(source, partial(_to_numbers, parameter=parameter), pl.Float64())


def _to_numbers(values: pl.Series, parameter: str) -> pl.Series:
    dtype = values.dtype
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        name = values.name
        mended = f"pl.col({name!r}).cast(pl.Float64)"
        if dtype == pl.String and parameter == "is_correct":
            mended = f"pl.col({name!r}).str.to_lowercase() == 'true'"
        raise ColumnsError(
            f"{parameter} is the column {name!r} of dtype {dtype}, must be Boolean or a number. Hint: "
            f"{mended}."
        )
    return values.cast(pl.Float64)


@dataclass(frozen=True)
class _OfOneColumn:
    """Passes a function its one column; it pickles if the function does."""

    function: Callable[[pl.Series], pl.Series]

    def __call__(self, columns: Sequence[pl.Series], **_: object) -> pl.Series:
        return self.function(columns[0])


def n_distinct(names: Iterable[str]) -> pl.Expr:
    """Count the distinct rows of some columns."""
    # Four times as fast without the struct.
    columns = [*names]
    return (pl.struct(columns) if len(columns) > 1 else pl.col(columns[0])).n_unique()


def run_plan(frame: FrameT, plan: Callable[[pl.LazyFrame], pl.LazyFrame]) -> FrameT:
    """Apply a lazy plan: a LazyFrame stays uncollected, a DataFrame gives a DataFrame."""
    if isinstance(frame, pl.DataFrame):
        return plan(frame.lazy()).collect()
    return plan(frame)


def raise_where(
    condition: pl.Expr,
    make_error: Callable[[pl.DataFrame], TtsframeError],
    *,
    sees_all_rows: bool = False,
) -> pl.Expr:
    """Build a filter that keeps every row, or raises when a row breaks a rule."""
    # The condition is a struct: its field `broken` marks the rows, its other fields describe them for
    # `make_error`, which sees the broken rows of one chunk or, if asked, all. Polars never removes a
    # filter, so the check runs whatever is collected.

    def check(rows: pl.Series) -> pl.Series:
        broken = rows.struct.field("broken").fill_null(value=False)
        if broken.any():
            raise make_error(rows.struct.unnest().filter(broken).drop("broken"))
        return pl.Series(rows.name, [True], dtype=pl.Boolean).new_from_index(0, len(rows))

    return condition.map_batches(check, return_dtype=pl.Boolean, is_elementwise=not sees_all_rows)


def unused_name(name: str, names: Container[str]) -> str:
    """Append underscores to a name until it is not among the names in use."""
    while name in names:
        name += "_"
    return name


def safe_names(names: Iterable[str], prefix: str = "key") -> dict[str, str]:
    """Map the names `key0`, `key1`, ... to the caller's columns, which could have any name."""
    return {f"{prefix}{i}": name for i, name in enumerate(names)}


def to_safe(names: Mapping[str, str]) -> list[pl.Expr]:
    """Select the caller's columns under their safe names."""
    return [pl.col(name).alias(key) for key, name in names.items()]


def from_safe(names: Mapping[str, str]) -> list[pl.Expr]:
    """Select safe names under the names that the caller gave the columns."""
    return [pl.col(key).alias(name) for key, name in names.items()]


def in_order(value: pl.Expr) -> pl.Expr:
    """Return the values of a group as an ascending list, so that a sum does not depend on their order."""
    # Polars takes the sort out of `value.sort().sum()`.
    return value.sort().implode()


def name_numbers(names: pl.Series) -> pl.Series:
    """Replace names by numbers from 0 in their order, a null one first."""
    # Equal names are mostly next to each other, so that few have to be compared.
    run = names.rle_id()
    firsts = names.filter(run != run.shift(fill_value=2**32 - 1))
    rank = firsts.rank("dense").cast(pl.Int64).fill_null(0)
    numbers = rank - int(rank.to_numpy().min(initial=1))
    return numbers.gather(run).alias(names.name)
