"""The score from which an attempt is taken as right, chosen and judged on different problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from ttsframe._checks import check_seed
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.verifier.marks import Marks
from ttsframe.verifier.ordered import Floats, Ints
from ttsframe.verifier.sheet import Columns, Schema, Sheet, Table, held_out, request
from ttsframe.votes.engine.runs import run_starts

__all__ = ["best_threshold"]

Metric: TypeAlias = Literal["accuracy", "f1"]

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
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
    seed: int = 0,
) -> FrameT:
    r"""Choose the score from which attempts are accepted, and judge it on problems held out.

    A threshold tuned on the attempts that it is reported on looks better than it is. Here half of
    the problems choose it and the other half judge it.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `is_correct` (Boolean; null: left out) and `score`
        (number; null or NaN: left out) or `step_scores`.
    reductions
        Names in `STEP_REDUCTIONS`, each of which gets rows; None is the column `score`.
    by
        Columns that get thresholds of their own; a problem is in the same half in all of them.
    seed
        Decides which problems are in which half, 0 to 2^64 - 1.

    Returns
    -------
    FrameT
        Two rows per (by, `reduction`), sorted, with `metric` (String) "accuracy" and "f1":

        - `threshold` (Float64): an attempt is accepted from this score on; of thresholds that are
          equally good the lowest; infinite: accept none; null where nothing could be chosen from;
        - `value` (Float64 in [0, 1]): accuracy, or F1 of the accepted as "right", on the problems
          held out; null where there is none, F1 also where none of their attempts is right;
        - `accept_all`, `accept_none` (Float64): the same without reading a score;
        - `fitted_value` (Float64): on the problems that chose, where it is too high;
        - `n_attempts`, `n_problems` (UInt32): held out; `n_fitted_attempts`, `n_fitted_problems`
          (UInt32): that chose.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.
    ParameterTypeError
        At once, when the seed is no int.

    Notes
    -----
    With A accepted attempts of which C are right, of N with R right ones, F1 is
    :math:`2C / (A + R)` and accuracy :math:`(2C - A - R + N) / N`. Candidates are the scores of the
    fitted half.

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
    asked = request(trajectories, reductions, by, THRESHOLD)
    return asked.tabulate(trajectories, lambda sheet: threshold_table(sheet, seed=seed), THRESHOLD)


def threshold_table(sheet: Sheet, *, seed: int) -> Table:
    """Ask what `best_threshold` says.

    Parameters
    ----------
    sheet
        Attempts.
    seed
        Seed of the split.

    Returns
    -------
    Table
        The question.
    """
    of_problem = held_out(sheet.n_problems, seed)

    def rows(marks: Marks) -> Columns:
        is_held_out = of_problem[marks.problems]
        is_judging, is_there = np.repeat(is_held_out, 2)[marks.tag], marks.by_problem.any(axis=1)
        is_hit = is_judging & marks.is_right
        n_judged, n_hits = (int(np.count_nonzero(of)) for of in (is_judging, is_hit))
        n_fitted, n_right = marks.n - n_judged, len(marks.right) - n_hits
        # A score that no right attempt has is a worse threshold than the next one, so that the best
        # is one that some has, or accepts none.
        first = marks.first_equal(np.compress(~is_judging[marks.right], marks.right))
        new = np.append(run_starts(first), n_right)
        place = np.append(first, marks.n)[new]
        n_judged_before = np.zeros(marks.n + 1, np.int64)
        np.cumsum(is_judging, out=n_judged_before[1:])
        found, accepted = n_right - new, n_fitted - place + n_judged_before[place]
        listed = []
        for metric, measure in _METRICS.items():
            fitted = measure(found, accepted, n_right, n_fitted)
            best, is_chosen = int(np.argmax(fitted)), not np.isnan(fitted).all()
            starts = (int(place[best]), 0, marks.n)
            threshold = np.inf if starts[0] == marks.n else float(marks.score[starts[0]])
            judged = measure(
                np.array([np.count_nonzero(is_hit[start:]) for start in starts]),
                np.array([np.count_nonzero(is_judging[start:]) for start in starts]),
                n_hits,
                n_judged,
            )
            listed.append({
                "reduction": marks.reduction,
                "metric": metric,
                "threshold": threshold if is_chosen else None,
                "value": float(judged[0]) if is_chosen else None,
                "accept_all": float(judged[1]),
                "accept_none": float(judged[2]),
                "fitted_value": float(fitted[best]),
                "n_attempts": n_judged,
                "n_problems": int(np.count_nonzero(is_there & is_held_out)),
                "n_fitted_attempts": n_fitted,
                "n_fitted_problems": int(np.count_nonzero(is_there & ~is_held_out)),
            })
        return {name: [row[name] for row in listed] for name in THRESHOLD}

    return Table(THRESHOLD, rows)


def _accuracy(found: Ints, accepted: Ints, n_right: int, n: int) -> Floats:
    """Return the share of attempts that are rightly accepted or rightly refused, NaN of none."""
    shares: Floats = (2 * found - accepted - n_right + n) / (n or np.nan)
    return shares


def _f1(found: Ints, accepted: Ints, n_right: int, _: int) -> Floats:
    """Return the harmonic mean of precision and recall, NaN where no attempt is right."""
    f1: Floats = 2 * found / (accepted + (n_right or np.nan))
    return f1


_METRICS: Final[Mapping[Metric, Callable[[Ints, Ints, int, int], Floats]]] = MappingProxyType({
    "accuracy": _accuracy,
    "f1": _f1,
})
