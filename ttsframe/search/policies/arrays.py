"""From the frontier to arrays, and from allocations to the answer of a policy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._typing import Flags, Floats, Integers
from ttsframe.search.policies.kernels import Groups, make_groups


def column(frontier: pl.DataFrame, name: str) -> Integers:
    """Return an integer column as an array."""
    return frontier[name].to_numpy()


def scores_of(frontier: pl.DataFrame) -> Floats:
    """Return scores, NaN where there is none."""
    return frontier["score"].fill_null(float("nan")).to_numpy()


def by_problem(frontier: pl.DataFrame) -> Groups:
    """Group the rows of the frontier by problem."""
    return make_groups(column(frontier, "problem"))


def left_of(frontier: pl.DataFrame, groups: Groups, width: int) -> Integers:
    """Return the width that each problem has left after its finished solutions."""
    return np.maximum(width - groups.first(column(frontier, "n_finished")), 0)


def reasons(
    n_allocated: Integers, is_spent: Flags | npt.NDArray[np.bool_], reason: str
) -> pl.DataFrame:
    """Return the answer of a policy that drops what gets nothing; `is_spent` has no width left."""
    frame = pl.DataFrame({"n_allocated": n_allocated, "is_spent": is_spent})
    return frame.select(
        "n_allocated",
        pl
        .when(pl.col("n_allocated") > 0)
        .then(None)
        .when("is_spent")
        .then(pl.lit("budget"))
        .otherwise(pl.lit(reason))
        .alias("dropped_because"),
    )
