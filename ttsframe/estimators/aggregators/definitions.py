"""The aggregators, each a value with a name that can be called with a frame."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import polars as pl

from ttsframe._checks import check_between, check_choice, check_frame, check_names, check_positive
from ttsframe._exprs import in_order, run_plan
from ttsframe._typing import FrameT
from ttsframe.errors import ParameterError
from ttsframe.estimators.passk import NBelowK, g_pass_at_k, pass_at_k, pass_hat_k
from ttsframe.schema import require_columns

__all__ = [
    "Aggregator",
    "AtLeastK",
    "GPassAtK",
    "IdentifierMean",
    "Identity",
    "Majority",
    "Max",
    "Median",
    "PassAtK",
    "PassHatK",
]

NullOrZero: TypeAlias = Literal["null", "zero"]


@runtime_checkable
class Aggregator(Protocol):
    """The protocol of aggregators, which turn the attempts at a problem into one row.

    An aggregator has a `name` and can be called with a frame and the columns that identify a
    problem. The frame has one row per attempt and a numeric or Boolean column `value`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> isinstance(tts.PassAtK(k=4), tts.Aggregator)
    True
    """

    @property
    def name(self) -> str:
        """Name in tables and charts, such as ``Pass@8``."""
        ...

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Aggregate the attempts of each problem.

        Parameters
        ----------
        frame
            One row per attempt, with the column `value`.
        identifier_columns
            Columns that together identify a problem.

        Returns
        -------
        FrameT
            The same columns with the aggregated `value`; a LazyFrame for a LazyFrame.
        """
        ...


@dataclass(frozen=True)
class Identity:
    """Keep one row per attempt.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a", "a"], "value": [1.0, 0.0]})
    >>> tts.Identity()(frame, ["problem_id"]).equals(frame)
    True
    """

    name: ClassVar[str] = "Identity"

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Return the attempts unchanged, after the checks of every aggregator."""
        _check_frame(frame, identifier_columns)
        return frame


class PerProblem(ABC):
    """An aggregator that returns one row per problem."""

    @abstractmethod
    def _value(self) -> pl.Expr:
        """Build the value of a problem: an aggregating Float64 expression over `_values`."""

    def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
        """Aggregate the attempts of each problem.

        Parameters
        ----------
        frame
            One row per attempt, with the column `value`: numeric or Boolean, null if the attempt
            was not graded.
        identifier_columns
            Columns that together identify a problem; rows with the same values, nulls included,
            are attempts at the same problem.

        Returns
        -------
        FrameT
            One row per problem, in no particular order, columns as in `frame`: `value` is the
            aggregated Float64; any other column has its first non-null value in the order of rows.

        Raises
        ------
        ParameterError
            At once, if no identifier column is named, or `value` is.
        ColumnsError
            At once, if one of the columns is missing.
        """
        identifiers = _check_frame(frame, identifier_columns)
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


_values = pl.col("value").cast(pl.Float64)
"""The values to aggregate, null where an attempt was not graded."""


def _propagate_nan(aggregated: pl.Expr) -> pl.Expr:
    """Return NaN if a value is NaN, which Polars would skip or take for the largest number."""
    return pl.when(_values.is_nan().any()).then(pl.lit(math.nan)).otherwise(aggregated)


def _check_frame(
    frame: pl.DataFrame | pl.LazyFrame, identifier_columns: Sequence[str]
) -> tuple[str, ...]:
    """Check a frame, and return its identifier columns."""
    check_frame(frame, "frame")
    identifiers = check_names(identifier_columns, "identifier_columns")
    if not identifiers:
        raise ParameterError(
            "identifier_columns is empty, must name the columns that identify a problem."
        )
    if "value" in identifiers:
        raise ParameterError(
            "identifier_columns names 'value', the column to aggregate. Hint: name the columns that "
            "identify a problem, such as 'problem_id'."
        )
    hint = "frame.with_columns(value=pl.col('is_correct')) makes 'value' of a graded column."
    require_columns(frame, [*identifiers, "value"], where="an aggregator", hint=hint)
    return identifiers


@dataclass(frozen=True)
class IdentifierMean(PerProblem):
    """Average `value` over the attempts of each problem.

    Nulls are left out. The result is null if all values are, and NaN if one is.

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
        return in_order(_values).list.mean()


@dataclass(frozen=True)
class Max(PerProblem):
    """Take the largest `value` of the attempts of each problem.

    With 0 and 1 it is 1 if any attempt was correct. This rises with the number of attempts, so
    problems with different numbers do not compare; `PassAtK` estimates it for k attempts. Nulls and
    NaN as in `IdentifierMean`.

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
        return _propagate_nan(_values.max())


@dataclass(frozen=True)
class Median(PerProblem):
    """Take the median `value` of the attempts of each problem.

    An even number of values gives the mean of the middle two. Nulls and NaN as in `IdentifierMean`.

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
        return _propagate_nan(_values.median())


@dataclass(frozen=True)
class Majority(PerProblem):
    """Take the most frequent `value` of the attempts of each problem.

    Tied values are averaged, so the order of rows does not matter (the mode of inspect_ai takes the
    first of them): as many 0 as 1 give 0.5. Nulls and NaN as in `IdentifierMean`. This is a vote over
    values; `majority_vote` is the vote over answers.

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
        return _propagate_nan(in_order(_values.drop_nulls().mode()).list.mean())


class _OfDraws(PerProblem):
    """An aggregator of k attempts, with a rule for problems that have fewer."""

    k: int
    n_below_k: str
    _rules: ClassVar[tuple[str, ...]] = get_args(NullOrZero)

    def __post_init__(self) -> None:
        check_positive(self.k, "k")
        check_choice(self.n_below_k, "n_below_k", self._rules)

    def _where_short(self, value: pl.Expr) -> pl.Expr:
        """Replace a null, which means n < k, according to `n_below_k`."""
        return value.fill_null(0.0) if self.n_below_k == "zero" else value


@dataclass(frozen=True)
class PassAtK(_OfDraws):
    """Estimate pass@k of each problem without bias, as `pass_at_k` does.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1.
    n_below_k
        Result for a problem with n < k attempts: ``"null"``; or ``"any_correct"``, 1 if one of the n
        is correct and else 0, the convention of eval-framework, which mixes different k.

    Raises
    ------
    ParameterTypeError
        If k is not an int.
    ParameterError
        If k is below 1, or `n_below_k` is not one of its choices.

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
    _rules: ClassVar[tuple[str, ...]] = get_args(NBelowK)

    @property
    def name(self) -> str:
        """Name in tables and charts, such as ``Pass@8``."""
        return f"Pass@{self.k}"

    def _value(self) -> pl.Expr:
        value = pass_at_k("value", self.k)
        if self.n_below_k == "any_correct":
            value = pl.coalesce(value, (_values > 0).any())
        return value.cast(pl.Float64)


@dataclass(frozen=True)
class PassHatK(_OfDraws):
    """Estimate pass^k of each problem without bias, as `pass_hat_k` does.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1, all of which must be correct.
    n_below_k
        Result for a problem with n < k attempts: ``"null"`` or ``"zero"``.

    Raises
    ------
    ParameterTypeError
        If k is not an int.
    ParameterError
        If k is below 1, or `n_below_k` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 1, 1, 0, 1]})
    >>> tts.aggregators.PassHatK(k=2)(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 0.5), ('b', None)]
    """

    k: int = 1
    _: KW_ONLY
    n_below_k: NullOrZero = "null"

    @property
    def name(self) -> str:
        """Name in tables and charts, such as ``Pass^8``."""
        return f"Pass^{self.k}"

    def _value(self) -> pl.Expr:
        return self._where_short(pass_hat_k("value", self.k))


@dataclass(frozen=True)
class GPassAtK(_OfDraws):
    """Estimate G-Pass@k of each problem without bias, as `g_pass_at_k` does.

    Parameters
    ----------
    k
        Number of attempts drawn, at least 1.
    tau
        Share of them that must be correct, in [0, 1]; at least one must.
    n_below_k
        Result for a problem with n < k attempts: ``"null"``, or ``"zero"``, the convention of
        OpenCompass.

    Raises
    ------
    ParameterTypeError
        If k is not an int.
    ParameterError
        If k is below 1, tau lies outside [0, 1], or `n_below_k` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 1, 0, 0, 1]})
    >>> half = tts.aggregators.GPassAtK(k=3, tau=0.5)
    >>> half(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 0.5), ('b', None)]
    """

    k: int = 1
    tau: float = 0.5
    _: KW_ONLY
    n_below_k: NullOrZero = "null"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self.tau, "tau", 0.0, 1.0)

    @property
    def name(self) -> str:
        """Name in tables and charts, such as ``G-Pass@8_0.5``."""
        return f"G-Pass@{self.k}_{self.tau}"

    def _value(self) -> pl.Expr:
        return self._where_short(g_pass_at_k("value", self.k, tau=self.tau))


@dataclass(frozen=True)
class AtLeastK(_OfDraws):
    """Return 1 for each problem of which at least k attempts are correct, else 0.

    It counts all n attempts, so it rises with n, and problems with different n do not compare;
    `GPassAtK` estimates it for a fixed number of draws.

    Parameters
    ----------
    k
        Number of attempts that must be correct, at least 1.
    threshold
        Smallest `value` of a correct attempt.
    n_below_k
        Result for a problem with n < k attempts, of which k cannot be correct: ``"null"``, or
        ``"zero"``, the convention of inspect_ai.

    Raises
    ------
    ParameterTypeError
        If k is not an int.
    ParameterError
        If k is below 1, or `n_below_k` is not one of its choices.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"problem_id": ["a"] * 4 + ["b"], "value": [1, 1, 0, 0, 1]})
    >>> tts.aggregators.AtLeastK(k=2)(frame, ["problem_id"]).sort("problem_id").rows()
    [('a', 1.0), ('b', None)]
    """

    k: int = 1
    _: KW_ONLY
    threshold: float = 1.0
    n_below_k: NullOrZero = "null"

    @property
    def name(self) -> str:
        """Name in tables and charts, such as ``AtLeast4``."""
        return f"AtLeast{self.k}"

    def _value(self) -> pl.Expr:
        n_correct = (_values >= self.threshold).sum()
        is_enough = pl.when(_values.count() >= self.k).then(n_correct >= self.k)
        return _propagate_nan(self._where_short(is_enough.cast(pl.Float64)))
