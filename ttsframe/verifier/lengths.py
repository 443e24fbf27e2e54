"""Whether scores follow the length of an attempt rather than what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.errors import ColumnsError
from ttsframe.verifier.marks import Marks
from ttsframe.verifier.ordered import rank_correlation
from ttsframe.verifier.sheet import Columns, Schema, Table, request

__all__ = ["length_bias"]

BIAS: Final[Schema] = {
    "reduction": pl.String,
    "unit": pl.String,
    "outcome": pl.String,
    "correlation": pl.Float64,
    "n_attempts": pl.UInt32,
    "n_unmeasured": pl.UInt32,
}


def length_bias(
    trajectories: FrameT,
    /,
    *,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    r"""Correlate scores with the length of attempts, overall and among right and wrong ones.

    A product of step scores falls with every step, so best-of-N by the product picks short
    attempts. Wrong attempts are often longer, which makes a correlation over all attempts
    ambiguous; one among right attempts alone is a bias.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `is_correct` (Boolean; null: left out), `score`
        (number; null or NaN: left out) or `step_scores`, and at least one of `step_scores` and
        `n_tokens`.
    reductions
        Names in `STEP_REDUCTIONS`, each of which gets rows; None is the column `score`.
    by
        Columns that get rows of their own.

    Returns
    -------
    FrameT
        One row per (by, `reduction`, `unit`, `outcome`), sorted:

        - `unit` (String): "steps" (elements of `step_scores`) and "tokens" (`n_tokens`), those that
          there are;
        - `outcome` (String): "all", "right", "wrong";
        - `correlation` (Float64 in [-1, 1]): Spearman's, ties at their mean rank; null where scores
          or lengths do not vary;
        - `n_attempts` (UInt32): graded attempts with a score and a length;
        - `n_unmeasured` (UInt32): those with a score and no length, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.

    References
    ----------
    Spearman (1904), The proof and measurement of association between two things, American Journal
    of Psychology 15, 72-101. Lightman et al. (2023), Let's Verify Step by Step, arXiv:2305.20050,
    appendix F, on the product's preference for few steps.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 8, seed=1, keys=True)
    >>> bias = tts.verifier.length_bias(run, reductions=["last", "prod"])
    >>> steps = bias.filter(unit="steps", outcome="right")
    >>> dict(steps.select("reduction", pl.col("correlation").round(2)).rows())
    {'last': -0.01, 'prod': -0.44}
    """
    asked = request(trajectories, reductions, by, BIAS)
    if not {"step_scores", "n_tokens"} & set(asked.schema):
        raise ColumnsError(
            "trajectories has neither 'step_scores' nor 'n_tokens', must have a length; found: "
            f"{asked.schema.names()}. Hint: n_tokens counts the generated tokens of an attempt."
        )
    return asked.tabulate(trajectories, lambda _: bias_table(), BIAS)


def bias_table() -> Table:
    """Ask what `length_bias` says.

    Returns
    -------
    Table
        The question.
    """
    return Table(BIAS, _rows)


def _rows(marks: Marks) -> Columns:
    """Return the rows of one reading in one group."""
    outcomes = {"all": None, "right": marks.right, "wrong": np.flatnonzero(~marks.is_right)}
    listed = []
    for unit, lengths in marks.lengths.items():
        for outcome, rows in outcomes.items():
            codes = lengths if rows is None else lengths[rows]
            scores = None
            if marks.bounds is not None:
                scores = marks.score if rows is None else marks.score[rows]
            is_known = codes >= 0
            n_known = int(np.count_nonzero(is_known))
            if n_known < len(codes):
                codes, scores = codes[is_known], scores if scores is None else scores[is_known]
            listed.append({
                "reduction": marks.reduction,
                "unit": unit,
                "outcome": outcome,
                "correlation": rank_correlation(codes, scores),
                "n_attempts": n_known,
                "n_unmeasured": len(is_known) - n_known,
            })
    return {name: [row[name] for row in listed] for name in BIAS}
