"""Types that several modules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame)
"""DataFrame in, DataFrame out; LazyFrame in, LazyFrame out."""

ChoiceT = TypeVar("ChoiceT", bound=str)
"""The keys of a registry."""

IntoExprColumn: TypeAlias = pl.Expr | str | pl.Series
"""A column: an expression, the name of a column (never a literal), or a series."""

ColumnNames: TypeAlias = str | Sequence[str]

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

StepReduction: TypeAlias = Literal[
    "last", "min", "mean", "prod", "max", "sum", "first", "geometric_mean"
]
OwnReduction: TypeAlias = Callable[[pl.Expr], pl.Expr]
"""A reduction of the user: from lists of step scores to one score each."""
Reduction: TypeAlias = StepReduction | OwnReduction
OwnSelector: TypeAlias = Callable[[], pl.Expr]
"""A selector of the user: an aggregating expression that gives the picked `attempt`."""
Grader: TypeAlias = pl.Expr | Callable[[], pl.Expr]
"""A grade of the user: a Boolean expression, or a function that returns one."""
Utility: TypeAlias = Literal["token_f1", "equality"]
Weights: TypeAlias = Literal["score", "sigmoid", "softmax", "logit"]
ProblemSet: TypeAlias = Literal["common", "available"]
IntervalTarget: TypeAlias = Literal["new_problems", "these_problems"]
McNemar: TypeAlias = Literal["mid_p", "exact"]
"""How the p-value of McNemar's test is computed."""
ClusterTest: TypeAlias = Literal["t", "wild_bootstrap"]
"""How the mean of clusters is tested."""

Correction: TypeAlias = Literal["holm", "benjamini_hochberg", "bonferroni", "none"]
AnswerStyle: TypeAlias = Literal["auto", "boxed", "final_answer", "hash", "last_number"]
ExtractionRule: TypeAlias = Literal[
    "final_sentence",
    "tag",
    "box",
    "hash",
    "field",
    "phrase",
    "conclusion",
    "last_line",
    "whole_text",
    "last_number",
]
"""The rules by which an answer is found in a text."""
Status: TypeAlias = Literal["ok", "short", "unscored", "undefined", "ungraded"]
