"""Correlation of scores with the length of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._typing import ColumnNames, FrameT, Integers, Reduction
from ttsframe.errors import ColumnsError
from ttsframe.verifier.sorted_scores import SortedScores, rank_correlation
from ttsframe.verifier.tables import Columns, Schema, Table, attempt_columns

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
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    r"""Correlate scores with the length of attempts, overall and among right and wrong ones.

    A product of step scores decreases with every step, so best-of-N by the product prefers short
    attempts. Since wrong attempts are often longer, a correlation over all attempts is ambiguous;
    a correlation among right attempts alone is a bias.

    Parameters
    ----------
    trajectories
        As in `verifier_metrics`, with at least one of `step_scores` and `n_tokens`.
    reductions, by
        As in `verifier_metrics`.

    Returns
    -------
    FrameT
        One row per (by, `reduction`, `unit`, `outcome`), sorted:

        - `unit` (String): "steps" (elements of `step_scores`) and "tokens" (`n_tokens`), if the
          column exists;
        - `outcome` (String): "all", "right", "wrong";
        - `correlation` (Float64 in [-1, 1]): Spearman's, ties at their mean rank; null if scores or
          lengths do not vary;
        - `n_attempts` (UInt32): graded attempts with a score and a length;
        - `n_unmeasured` (UInt32): graded attempts with a score but no length, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.

    References
    ----------
    Spearman (1904), The proof and measurement of association between two things, American Journal
    of Psychology 15, 72-101. Lightman et al. (2023), Let's Verify Step by Step, arXiv:2305.20050,
    appendix F, on the preference of the product for few steps.

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
    columns = attempt_columns(trajectories, reductions, by, BIAS)
    if not {"step_scores", "n_tokens"} & set(columns.schema):
        raise ColumnsError(
            "trajectories: neither 'step_scores' nor 'n_tokens' exists, expected one of them; found: "
            f"{columns.schema.names()}. Hint: n_tokens is the number of generated tokens."
        )
    return columns.tabulate(trajectories, lambda _: BIAS_TABLE, BIAS)


def _rows(scores: SortedScores) -> Columns:
    """Return the rows of one reduction in one group."""
    outcomes: dict[str, slice | Integers] = {
        "all": slice(None),
        "right": scores.right,
        "wrong": np.flatnonzero(~scores.is_right),
    }
    rows = []
    for unit, lengths in scores.lengths.items():
        for outcome, positions in outcomes.items():
            codes = lengths[positions]
            score = None if scores.bounds is None else scores.score[positions]
            is_known = codes >= 0
            n_known = int(np.count_nonzero(is_known))
            if n_known < len(codes):
                codes = codes[is_known]
                score = None if score is None else score[is_known]
            correlation = rank_correlation(codes, score)
            rows.append({
                "reduction": scores.reduction,
                "unit": unit,
                "outcome": outcome,
                "correlation": correlation,
                "n_attempts": n_known,
                "n_unmeasured": len(is_known) - n_known,
            })
    return {name: [row[name] for row in rows] for name in BIAS}


BIAS_TABLE: Final = Table(BIAS, _rows)
"""The table of `length_bias`."""
