"""The score threshold above which attempts are accepted, evaluated on held-out problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from ttsframe._checks import check_seed
from ttsframe._typing import ColumnNames, Floats, FrameT, Integers, Reduction
from ttsframe.verifier.sorted_scores import Group, SortedScores
from ttsframe.verifier.tables import Columns, Schema, Table, attempt_columns, is_held_out
from ttsframe.votes.engine.runs import run_starts

__all__ = ["best_threshold"]

Metric: TypeAlias = Literal["accuracy", "f1"]
Measure: TypeAlias = Callable[[Integers, Integers, int, int], Floats]

THRESHOLD: Final[Schema] = {
    "reduction": pl.String,
    "metric": pl.String,
    "threshold": pl.Float64,
    "value": pl.Float64,
    "accept_all": pl.Float64,
    "accept_none": pl.Float64,
    "fitted_value": pl.Float64,
    "n_attempts": pl.UInt32,
    "n_problems": pl.UInt32,
    "n_fitted_attempts": pl.UInt32,
    "n_fitted_problems": pl.UInt32,
}


def best_threshold(
    trajectories: FrameT,
    /,
    *,
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
    seed: int = 0,
) -> FrameT:
    r"""Choose the score from which attempts are accepted, and evaluate it on held-out problems.

    A threshold looks better than it is on the attempts that it was tuned on. Here it is chosen on
    half of the problems and evaluated on the other half.

    Parameters
    ----------
    trajectories
        As in `verifier_metrics`.
    reductions
        As in `verifier_metrics`.
    by
        Columns that define separate groups; a problem is in the same half in all of them.
    seed
        Seed of the halves, 0 to 2^64 - 1.

    Returns
    -------
    FrameT
        Two rows per (by, `reduction`), sorted, with `metric` (String) "accuracy" and "f1":

        - `threshold` (Float64): attempts with at least this score are accepted; the lowest of equally
          good thresholds; infinite: accept none; null if there is no attempt to choose on;
        - `value` (Float64 in [0, 1]): accuracy, or F1 of accepted attempts as "right", on the
          held-out problems; null if there are none, and for F1 if none of their attempts is right;
        - `accept_all`, `accept_none` (Float64): the same for accepting all attempts, or none;
        - `fitted_value` (Float64): the value on the problems used to choose, which is biased upward;
        - `n_attempts`, `n_problems` (UInt32): held out; `n_fitted_attempts`, `n_fitted_problems`
          (UInt32): used to choose.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.
    ParameterTypeError
        At once, when the seed is not an int.

    Notes
    -----
    If A of N attempts are accepted, R are right, and C are both, F1 is :math:`2C / (A + R)` and
    accuracy :math:`(2C - A - R + N) / N`. Candidates are the scores of the fitted half.

    References
    ----------
    Zheng et al. (2024), ProcessBench, arXiv:2412.06559, section 4, which tunes a threshold on one
    subset for all.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 8, seed=1, keys=True)
    >>> best = tts.verifier.best_threshold(run)
    >>> best.select("metric", "n_problems", "n_fitted_problems").rows()
    [('accuracy', 100, 100), ('f1', 100, 100)]
    >>> bool((best["value"] > best["accept_all"]).all())
    True
    """
    check_seed(seed)
    columns = attempt_columns(trajectories, reductions, by, THRESHOLD)
    return columns.tabulate(
        trajectories, lambda groups: threshold_table(groups, seed=seed), THRESHOLD
    )


def threshold_table(groups: Sequence[Group], *, seed: int) -> Table:
    """Return the table of `best_threshold`."""
    n_problems = 1 + max((int(group.problems[-1]) for group in groups), default=-1)
    problem_is_held_out = is_held_out(n_problems, seed)

    def rows(scores: SortedScores) -> Columns:
        of_group = problem_is_held_out[scores.problems]
        has_attempt = scores.n_by_problem.any(axis=1)
        held_out = np.repeat(of_group, 2)[scores.cell]
        is_hit = held_out & scores.is_right
        n_held_out, n_hits = (int(np.count_nonzero(of)) for of in (held_out, is_hit))
        n_fitted, n_right = scores.n - n_held_out, len(scores.right) - n_hits
        fitted_rows = np.flatnonzero(~held_out)
        # A score without a right attempt is a worse threshold than the next score, so the best is
        # the score of a right attempt, or none is accepted.
        first = np.flatnonzero(scores.is_right[fitted_rows])
        if scores.bounds is not None:
            ties = run_starts(scores.score[fitted_rows])
            first = ties[np.searchsorted(ties, first, side="right") - 1]
        new = np.append(run_starts(first), n_right)
        position = np.append(first, n_fitted)[new]
        right, accepted = n_right - new, n_fitted - position
        table = []
        for metric, measure in _METRICS.items():
            fitted = measure(right, accepted, n_right, n_fitted)
            best, is_chosen = int(np.argmax(fitted)), not np.isnan(fitted).all()
            threshold, start = np.inf, scores.n
            if position[best] < n_fitted:
                threshold = float(scores.score[fitted_rows[position[best]]])
                start = int(np.searchsorted(scores.score, threshold))
            starts = (start, 0, scores.n)
            value, accept_all, accept_none = measure(
                np.array([np.count_nonzero(is_hit[start:]) for start in starts]),
                np.array([np.count_nonzero(held_out[start:]) for start in starts]),
                n_hits,
                n_held_out,
            )
            table.append({
                "reduction": scores.reduction,
                "metric": metric,
                "threshold": threshold if is_chosen else None,
                "value": float(value) if is_chosen else None,
                "accept_all": float(accept_all),
                "accept_none": float(accept_none),
                "fitted_value": float(fitted[best]),
                "n_attempts": n_held_out,
                "n_problems": int(np.count_nonzero(has_attempt & of_group)),
                "n_fitted_attempts": n_fitted,
                "n_fitted_problems": int(np.count_nonzero(has_attempt & ~of_group)),
            })
        return {name: [row[name] for row in table] for name in THRESHOLD}

    return Table(THRESHOLD, rows)


def _accuracy(right: Integers, accepted: Integers, n_right: int, n: int) -> Floats:
    """Return the share of attempts accepted or refused correctly, NaN if there is none."""
    shares: Floats = (2 * right - accepted - n_right + n) / (n or np.nan)
    return shares


def _f1(right: Integers, accepted: Integers, n_right: int, _: int) -> Floats:
    """Return the harmonic mean of precision and recall, NaN if no attempt is right."""
    f1: Floats = 2 * right / (accepted + (n_right or np.nan))
    return f1


_METRICS: Final[Mapping[Metric, Measure]] = MappingProxyType({"accuracy": _accuracy, "f1": _f1})
