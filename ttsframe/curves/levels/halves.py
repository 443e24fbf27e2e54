"""Halves of the attempts: one to measure difficulty on, one to be judged."""

from __future__ import annotations

import polars as pl

from ttsframe._checks import check_frame
from ttsframe._exprs import raise_where, run_plan
from ttsframe._typing import FrameT
from ttsframe.errors import ColumnsError, DataError
from ttsframe.schema import require_columns

__all__ = ["halve_attempts"]


def halve_attempts(trajectories: FrameT, /) -> FrameT:
    """Part the attempts at each problem into two halves, as cross-fitted levels have them.

    Select with ``by="fold"`` then, and no attempt is judged under a level that it decided.

    Parameters
    ----------
    trajectories
        One row per attempt, with `attempt` (0..n-1 within problem).

    Returns
    -------
    FrameT
        The same rows, with `fold` (UInt32), 0 for even and 1 for odd attempts, and `attempt`
        (UInt32) numbered from 0 in each half, so that budgets go up to half the attempts.

    Raises
    ------
    ColumnsError
        At once, when `attempt` is missing or `fold` is there.
    DataError
        On collection, when `is_exchangeable` is false in a row, as in tree search, whose attempts
        are no samples to be parted.

    See Also
    --------
    difficulty_levels : Levels for each half, estimated on the other.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({"problem_id": ["a"] * 4, "attempt": [0, 1, 2, 3]})
    >>> tts.curves.halve_attempts(run).select("fold", "attempt").rows()
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    check_frame(trajectories, "trajectories")
    schema: pl.Schema = require_columns(trajectories, ["attempt"])
    if "fold" in schema:
        raise ColumnsError(
            "trajectories have a column 'fold' already, which would be overwritten. Hint: they may "
            "be halved before; rename it if it is something else."
        )
    attempt = pl.col("attempt")

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        if "is_exchangeable" in schema:
            described = pl.struct((~pl.col("is_exchangeable")).alias("broken"), "attempt")
            lazy = lazy.filter(raise_where(described, _tree))
        return lazy.with_columns(
            fold=(attempt % 2).cast(pl.UInt32), attempt=(attempt // 2).cast(pl.UInt32)
        )

    return run_plan(trajectories, plan)


def _tree(rows: pl.DataFrame) -> DataError:
    """Describe attempts that depend on each other."""
    return DataError(
        f"attempt {rows['attempt'].min()!r}: is_exchangeable is false, expected true: attempts of a "
        "tree search depend on each other, so half of them is no run with half the budget. Hint: "
        "tts.difficulty_levels(run, reference=...) takes levels from independent samples, and needs "
        "no halves."
    )
