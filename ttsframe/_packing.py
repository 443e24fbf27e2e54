"""Several facts in one integer, so that one minimum finds them all.

An attempt is packed with its grade, ``4 * attempt + code``: the smallest packed attempt of a group
says both which attempt came first and whether it is right. A score is packed with its attempt: the
smallest packed score belongs to the highest score, and to the earliest attempt that has it.
"""

from __future__ import annotations

from typing import Final

import polars as pl

ATTEMPT_BITS: Final = 34
"""`attempt` is UInt32 and its code has two bits."""

UNGRADED: Final = 2
"""Code of a null `is_correct`; 0 is false, 1 is true."""

UNNUMBERED: Final = -1
"""What a null `attempt` is packed as: below any attempt, so that it shows."""


def pack_attempt(attempt: pl.Expr, is_correct: pl.Expr) -> pl.Expr:
    """Pack an attempt with its grade.

    Parameters
    ----------
    attempt
        Integer expression, cast strictly to UInt32.
    is_correct
        Boolean expression.

    Returns
    -------
    pl.Expr
        Int64, never null; negative for a null attempt.
    """
    number = attempt.cast(pl.UInt32).cast(pl.Int64).fill_null(UNNUMBERED)
    return number * 4 + is_correct.cast(pl.Int64).fill_null(UNGRADED)


def attempt_of(packed: pl.Expr) -> pl.Expr:
    """Return the number of a packed attempt.

    Parameters
    ----------
    packed
        Int64 expression.

    Returns
    -------
    pl.Expr
        UInt32, null for null.
    """
    return (packed // 4).cast(pl.UInt32)


def is_correct_of(packed: pl.Expr) -> pl.Expr:
    """Return the grade of a packed attempt.

    Parameters
    ----------
    packed
        Int64 expression.

    Returns
    -------
    pl.Expr
        Boolean, null for null and for an attempt without a grade.
    """
    code = packed % 4
    return pl.when(code != UNGRADED).then(code == 1)


def pack_score(score: pl.Expr, packed: pl.Expr) -> pl.Expr:
    """Pack a score with its attempt.

    Parameters
    ----------
    score
        Float64 expression without NaN and without minus zero.
    packed
        Int64 expression, its packed attempt.

    Returns
    -------
    pl.Expr
        Int128, smallest for the highest, earliest score; null without a score. Its lowest
        `ATTEMPT_BITS` are the packed attempt.
    """
    bits: pl.Expr = score.reinterpret(dtype=pl.Int64)
    ascending = pl.when(bits < 0).then(bits ^ pl.lit(2**63 - 1, pl.Int64)).otherwise(bits)
    result: pl.Expr = (-1 - ascending).cast(pl.Int128) * 2**ATTEMPT_BITS + packed
    return result
