"""Answers of searches at several widths, each width a budget of its own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, Reduction, Weights
from ttsframe.schema import require_columns
from ttsframe.votes import select_answers
from ttsframe.votes.engine.registry import AnySelector

__all__ = ["select_by_width"]


def select_by_width(
    trajectories: FrameT,
    /,
    *,
    selectors: AnySelector | Sequence[AnySelector] = (
        "majority_vote",
        "weighted_vote",
        "best_of_n",
    ),
    reductions: Reduction | Sequence[Reduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answers of searches, with the width of the search as the budget.

    A search run at width 16 holds no search of width 4: its first four solutions are those that finished
    first. So every search gives one answer per problem, from all its solutions, and searches at
    several widths make the curve.

    Parameters
    ----------
    trajectories
        Solutions of searches at one or several widths, as `to_trajectories` returns them with
        `policy=`, scored by `tts.score_trajectories`.
    selectors, reductions, weights
        Those of `tts.select_answers`.
    by
        Further columns that identify a search.

    Returns
    -------
    FrameT
        A `problems` table by the columns of `by` and `policy`, with `budget` the width, which is also in
        `width`. For `tts.scaling_curve(..., by=(*by, "policy"))`, and by tokens for
        `tts.curves.add_costs(..., by=(*by, "policy", "width"), tree_tokens="tree_tokens")` and then
        `tts.cost_curve(..., by=(*by, "policy"))`. A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `trajectories` is not a Polars frame.
    ColumnsError
        When a column is missing.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(20, seed=0)
    >>> solutions = []
    >>> for policy in (tts.search.Beam(4), tts.search.Beam(16)):
    ...     nodes = tts.search.search(problems, generator, prm, policy, seed=0)
    ...     solutions.append(tts.search.to_trajectories(nodes, policy=policy, problems=problems))
    >>> scored = pl.concat(solutions).pipe(tts.score_trajectories)
    >>> answers = tts.search.select_by_width(scored, selectors="best_of_n")
    >>> tts.scaling_curve(answers, by="policy").select("policy", "budget", "n_problems").rows()
    [('beam', 4, 20), ('beam', 16, 20)]
    """
    check_frame(trajectories, "trajectories")
    names: tuple[str, ...] = check_names(by, "by", taken=["policy", "width", "problem_id"])
    require_columns(
        trajectories,
        [*names, "policy", "width"],
        hint="tts.search.to_trajectories(nodes, policy=...) adds them.",
    )
    picked = select_answers(
        trajectories,
        selectors=selectors,
        reductions=reductions,
        weights=weights,
        by=[*names, "policy", "width"],
    )
    budget = pl.col("width").cast(pl.UInt32).alias("budget")
    return run_plan(picked, lambda frame: frame.with_columns(budget))
