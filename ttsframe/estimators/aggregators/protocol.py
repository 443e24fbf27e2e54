"""The protocol of aggregators, and what all of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import FrameT
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns


@runtime_checkable
class Aggregator(Protocol):
    """What turns the attempts at a problem into one row.

    Anything with a ``name`` that can be called with a frame and the columns that identify a problem
    is one; the frame has a numeric or Boolean column ``value`` with a row per attempt.

    Examples
    --------
    >>> import ttsframe as tts
    >>> isinstance(tts.PassAtK(k=4), tts.Aggregator)
    True
    """

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            Such as ``"Pass@8"``.
        """
        ...

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Aggregate the attempts of each problem.

        Parameters
        ----------
        frame
            One row per attempt, with the column ``value``.
        identifier_columns
            Columns that together identify a problem.

        Returns
        -------
        FrameT
            The same columns with the aggregated ``value``; a LazyFrame for a LazyFrame.
        """
        ...


@dataclass(frozen=True)
class Identity:
    """Leave every attempt as a row of its own.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a", "a"], "value": [1.0, 0.0]})
    >>> tts.Identity()(frame, ["problem_id"]).equals(frame)
    True
    """

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            ``"Identity"``.
        """
        return "Identity"

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Return the attempts as they are.

        Parameters
        ----------
        frame
            One row per attempt, with the column ``value``.
        identifier_columns
            Columns that together identify a problem.

        Returns
        -------
        FrameT
            The frame itself.

        Raises
        ------
        ParameterError
            At once, when no identifier column is named, or ``value`` is.
        ColumnsError
            At once, when one of the columns is missing.
        """
        _checked(frame, identifier_columns)
        return frame


class PerProblem(ABC):
    """An aggregator whose rows are problems."""

    @abstractmethod
    def _value(self) -> pl.Expr:
        """Give a problem's value: an aggregating Float64 expression over `of_attempts`."""

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Aggregate the attempts of each problem.

        Parameters
        ----------
        frame
            One row per attempt, with the column ``value``: numeric or Boolean, null where the
            attempt was not graded.
        identifier_columns
            Columns that together identify a problem; rows with the same values, nulls included,
            are attempts at the same problem.

        Returns
        -------
        FrameT
            One row per problem, in no particular order, columns as in ``frame``: ``value`` is the
            aggregated Float64; any other column holds its first value, in the order of the rows,
            that is not null.

        Raises
        ------
        ParameterError
            At once, when no identifier column is named, or ``value`` is.
        ColumnsError
            At once, when one of the columns is missing.
        """
        identifiers = _checked(frame, identifier_columns)
        columns = frame.collect_schema().names()
        firsts = [
            pl.col(name).drop_nulls().first()
            for name in columns
            if name != "value" and name not in identifiers
        ]

        def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
            value = self._value().alias("value")
            return lazy.group_by(identifiers).agg(value, *firsts).select(columns)

        return run_plan(frame, plan)


def of_attempts() -> pl.Expr:
    """Give the values to aggregate.

    Returns
    -------
    pl.Expr
        Float64, null where an attempt was not graded.
    """
    return pl.col("value").cast(pl.Float64)


def nan_where_any_is(aggregated: pl.Expr) -> pl.Expr:
    """Carry a NaN on, where Polars would pass over it or take it for the largest number.

    Parameters
    ----------
    aggregated
        Aggregating Float64 expression over `of_attempts`.

    Returns
    -------
    pl.Expr
        The same, NaN where a value is NaN.
    """
    return pl.when(of_attempts().is_nan().any()).then(pl.lit(math.nan)).otherwise(aggregated)


def _checked(
    frame: pl.DataFrame | pl.LazyFrame, identifier_columns: Sequence[str]
) -> tuple[str, ...]:
    """Return the identifier columns, or raise."""
    check_frame(frame, "frame")
    identifiers = check_names(identifier_columns, "identifier_columns")
    if not identifiers:
        raise ParameterError(
            "identifier_columns is empty, must name the columns that identify a problem."
        )
    if "value" in identifiers:
        raise ParameterError(
            "identifier_columns names 'value', which is what is aggregated. Hint: name the columns "
            "that identify a problem, such as 'problem_id'."
        )
    hint = "frame.with_columns(value=pl.col('is_correct')) makes 'value' of a graded column."
    require_columns(frame, [*identifiers, "value"], where="an aggregator", hint=hint)
    return identifiers
