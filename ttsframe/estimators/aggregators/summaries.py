"""Aggregators that summarise a problem's values: mean, median, maximum, mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ttsframe.estimators.aggregators.protocol import PerProblem, nan_where_any_is, of_attempts


@dataclass(frozen=True)
class IdentifierMean(PerProblem):
    """Average `value` over the attempts of each problem.

    Values that are null are left out; null where all are, NaN where one is.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a", "a", "a"], "value": [1.0, 0.0, None]})
    >>> tts.IdentifierMean()(frame, ["problem_id"]).rows()
    [('a', 0.5)]
    """

    name: ClassVar[str] = "IdentifierMean"

    def _value(self) -> pl.Expr:
        return of_attempts().mean()


@dataclass(frozen=True)
class Max(PerProblem):
    """Take the largest `value` among the attempts of each problem.

    With 0 and 1 it says whether any attempt was correct, which rises with the number of attempts:
    problems of different numbers do not compare, and `PassAtK` is what estimates it for k of them.
    Values that are null are left out; null where all are, NaN where one is.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a", "a", "a"], "value": [0.25, 0.75, None]})
    >>> tts.aggregators.Max()(frame, ["problem_id"]).rows()
    [('a', 0.75)]
    """

    name: ClassVar[str] = "Max"

    def _value(self) -> pl.Expr:
        return nan_where_any_is(of_attempts().max())


@dataclass(frozen=True)
class Median(PerProblem):
    """Take the median `value` of the attempts of each problem.

    The mean of the middle two where their number is even. Values that are null are left out; null
    where all are, NaN where one is.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4, "value": [0.0, 0.25, 0.75, 1.0]})
    >>> tts.aggregators.Median()(frame, ["problem_id"]).rows()
    [('a', 0.5)]
    """

    name: ClassVar[str] = "Median"

    def _value(self) -> pl.Expr:
        return nan_where_any_is(of_attempts().median())


@dataclass(frozen=True)
class Majority(PerProblem):
    """Take the most frequent `value` among the attempts of each problem.

    Most frequent values that are tied are averaged: what a fair draw between them gives on average,
    whatever the order of the rows (the mode of inspect_ai takes the one that comes first). So 0 and
    1 in equal numbers give 0.5. Values that are null are left out; null where all are, NaN where
    one is.

    The vote is over values: `majority_vote` is the one over answers.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({
    ...     "problem_id": ["a", "a", "a", "b", "b"],
    ...     "value": [0.0, 1.0, 1.0, 0.0, 1.0],
    ... })
    >>> tts.aggregators.Majority()(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 1.0), ('b', 0.5)]
    """

    name: ClassVar[str] = "Majority"

    def _value(self) -> pl.Expr:
        return nan_where_any_is(of_attempts().drop_nulls().mode().mean())
