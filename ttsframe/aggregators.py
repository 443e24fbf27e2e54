"""Aggregators: from a frame of attempts to one row per problem, column `value`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, get_args, runtime_checkable

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names, check_positive
from ttsframe._exprs import run_plan
from ttsframe._typing import FrameT
from ttsframe.errors import ParameterError
from ttsframe.passk import NBelowK, pass_at_k
from ttsframe.schema import require_columns

__all__ = ["Aggregator", "IdentifierMean", "Identity", "PassAtK"]


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
        _check(frame, identifier_columns)
        return frame


@dataclass(frozen=True)
class IdentifierMean:
    """Average `value` over the attempts of each problem.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a", "a", "a"], "value": [1.0, 0.0, None]})
    >>> tts.IdentifierMean()(frame, ["problem_id"]).rows()
    [('a', 0.5)]
    """

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            ``"IdentifierMean"``.
        """
        return "IdentifierMean"

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Average the attempts of each problem.

        Parameters
        ----------
        frame
            One row per attempt, with the column ``value``.
        identifier_columns
            Columns that together identify a problem; rows with the same values, nulls included,
            are attempts at the same problem.

        Returns
        -------
        FrameT
            One row per problem, in no particular order, columns as in ``frame``: ``value`` is
            Float64, the mean of the values that are not null, null where all are; any other column
            holds its first value, in the order of the rows, that is not null.

        Raises
        ------
        ParameterError
            At once, when no identifier column is named, or ``value`` is.
        ColumnsError
            At once, when one of the columns is missing.
        """
        return _per_problem(frame, identifier_columns, pl.col("value").cast(pl.Float64).mean())


@dataclass(frozen=True)
class PassAtK:
    """Estimate pass@k of each problem without bias.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1.
    n_below_k
        What to give a problem with n < k attempts: ``"null"``, or by ``"any_correct"`` 1 where one
        of the n is correct and else 0, the convention of eval-framework, which mixes different k
        under one name.

    Raises
    ------
    ParameterTypeError
        When k is not an int.
    ParameterError
        When k is below 1, or ``n_below_k`` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 0, 0, 0, 1]})
    >>> tts.PassAtK(k=2)(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 0.5), ('b', None)]
    """

    k: int = 1
    _: KW_ONLY
    n_below_k: NBelowK = "null"

    def __post_init__(self) -> None:
        check_positive(self.k, "k")
        check_choice(self.n_below_k, "n_below_k", get_args(NBelowK))

    @property
    def name(self) -> str:
        """What tables and charts call it.

        Returns
        -------
        str
            Such as ``"Pass@8"``.
        """
        return f"Pass@{self.k}"

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Estimate pass@k from the attempts of each problem.

        Parameters
        ----------
        frame
            One row per attempt, with the column ``value``: Boolean, or 0 and 1, null where the
            attempt was not graded.
        identifier_columns
            Columns that together identify a problem; rows with the same values, nulls included,
            are attempts at the same problem.

        Returns
        -------
        FrameT
            One row per problem, in no particular order, columns as in ``frame``: ``value`` is
            Float64, see `pass_at_k`; any other column holds its first value, in the order of the
            rows, that is not null.

        Raises
        ------
        ParameterError
            At once, when no identifier column is named, or ``value`` is.
        ColumnsError
            At once, when one of the columns is missing.
        """
        value = pass_at_k("value", self.k)
        if self.n_below_k == "any_correct":
            value = pl.coalesce(value, (pl.col("value").cast(pl.Float64) > 0).any())
        return _per_problem(frame, identifier_columns, value.cast(pl.Float64))


def _check(
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


def _per_problem(frame: FrameT, identifier_columns: Sequence[str], value: pl.Expr) -> FrameT:
    """Return one row per problem with the aggregated value, every other column by its first."""
    identifiers = _check(frame, identifier_columns)
    columns = frame.collect_schema().names()
    firsts = [
        pl.col(name).drop_nulls().first()
        for name in columns
        if name != "value" and name not in identifiers
    ]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return lazy.group_by(identifiers).agg(value.alias("value"), *firsts).select(columns)

    return run_plan(frame, plan)
