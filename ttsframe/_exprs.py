"""From what a caller passes to Polars expressions, and back to the caller's names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

import polars as pl

from ttsframe._typing import FrameT, IntoExprColumn
from ttsframe.errors import ParameterTypeError, TtsframeError


def into_expr(value: IntoExprColumn, parameter: str) -> pl.Expr:
    """Turn a column argument into an expression; a string is a column, never a literal.

    Parameters
    ----------
    value
        Expression, column name or series.
    parameter
        Name of the parameter, for the message.

    Returns
    -------
    pl.Expr
        The expression.

    Raises
    ------
    ParameterTypeError
        At once, when the value is of any other type.
    """
    if isinstance(value, pl.Expr):
        return value
    if isinstance(value, str):
        return pl.col(value)
    if isinstance(value, pl.Series):
        return pl.lit(value)
    raise ParameterTypeError(
        f"{parameter} is a {type(value).__name__}, must be a column name, a polars expression or a "
        f"polars series. Hint: wrap a constant as pl.lit(...)."
    )


def keep_name(result: pl.Expr, source: pl.Expr) -> pl.Expr:
    """Name the result as its source.

    Parameters
    ----------
    result
        An expression computed from ``source``.
    source
        The expression whose output name is to be kept.

    Returns
    -------
    pl.Expr
        ``result`` under the output name of ``source``; for an expression of many columns (a
        selector) each result keeps the name of its column.
    """
    name = source.meta.output_name(raise_if_undetermined=False)
    return result.name.keep() if name is None else result.alias(name)


def run_plan(frame: FrameT, plan: Callable[[pl.LazyFrame], pl.LazyFrame]) -> FrameT:
    """Apply a lazy plan to a frame of either kind.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame.
    plan
        What to do, written once on lazy frames.

    Returns
    -------
    FrameT
        A LazyFrame for a LazyFrame, uncollected; a DataFrame for a DataFrame.
    """
    if isinstance(frame, pl.DataFrame):
        return plan(frame.lazy()).collect()
    return plan(frame)


def raise_where(condition: pl.Expr, make_error: Callable[[pl.DataFrame], TtsframeError]) -> pl.Expr:
    """Build a filter that keeps every row, or raises when a row breaks a rule.

    A filter is never optimised away, so the check holds for whatever is collected later.

    Parameters
    ----------
    condition
        Struct expression; its field ``broken`` is Boolean, the other fields describe the row.
    make_error
        Called with the broken rows; returns the error to raise.

    Returns
    -------
    pl.Expr
        Boolean expression, true in every row.
    """

    def check(rows: pl.Series) -> pl.Series:
        broken = rows.struct.field("broken").fill_null(value=False)
        if broken.any():
            raise make_error(rows.struct.unnest().filter(broken).drop("broken"))
        return pl.Series(rows.name, [True], dtype=pl.Boolean).new_from_index(0, len(rows))

    return condition.map_batches(check, return_dtype=pl.Boolean, is_elementwise=True)


def unused_name(name: str, names: Container[str]) -> str:
    """Return a column name that is not taken yet.

    Parameters
    ----------
    name
        What it should be like.
    names
        Names that are taken.

    Returns
    -------
    str
        The name, with as many underscores behind it as it takes.
    """
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
