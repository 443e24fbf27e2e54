"""The score from which an attempt is taken as right, chosen and judged on different problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from ttsframe._checks import check_seed
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.verifier._cells import Floats, Ints
from ttsframe.verifier._sheet import Columns, Marks, Schema, Sheet, held_out, request

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
    >>> best = tts.best_threshold(run)
    >>> best.select("metric", "n_problems", "n_fitted_problems").rows()
    [('accuracy', 100, 100), ('f1', 100, 100)]
    >>> bool((best["value"] > best["accept_all"]).all())
    True
    """
    check_seed(seed)
    asked = request(trajectories, reductions, by, THRESHOLD)
    return asked.tabulate(trajectories, lambda sheet: threshold_table(sheet, seed=seed), THRESHOLD)


def threshold_table(sheet: Sheet, *, seed: int) -> pl.DataFrame:
    """Make the table of `best_threshold`.

    Parameters
    ----------
    sheet
        Attempts.
    seed
        Seed of the split.

    Returns
    -------
    pl.DataFrame
        The rows of each group.
    """
    of_problem = held_out(sheet.n_problems, seed)

    def rows(marks: Marks) -> Columns:
        n_values, is_held_out = len(marks.values), of_problem[marks.all_problem]
        right = np.bincount(marks.rank, is_held_out & marks.is_correct, minlength=n_values)
        n_held_out = np.bincount(marks.rank, is_held_out, minlength=n_values).astype(np.int64)
        judged = _Half(right.astype(np.int64), n_held_out)
        fitted = _Half(marks.n_right - judged.of_score, marks.counts - n_held_out)
        n_problems = int((np.bincount(marks.problem, is_held_out) > 0).sum())
        counts = {
            "n_attempts": judged.n,
            "n_problems": n_problems,
            "n_fitted_attempts": fitted.n,
            "n_fitted_problems": marks.n_problems - n_problems,
        }
        listed = []
        for metric in _METRICS:
            best, fitted_value = fitted.best(metric)
            at = np.append(marks.values, np.inf)
            listed.append({
                "reduction": marks.reduction,
                "metric": metric,
                "threshold": None if best is None else float(at[best]),
                "value": None if best is None else judged.value(metric, best),
                "accept_all": judged.value(metric, 0),
                "accept_none": judged.value(metric, len(marks.values)),
                "fitted_value": fitted_value,
                **counts,
            })
        return {name: [row[name] for row in listed] for name in THRESHOLD}

    return sheet.table(rows, THRESHOLD)


class _Half:
    """One half of the problems: what each threshold accepts of it."""

    def __init__(self, n_right: Ints, counts: Ints) -> None:
        self.counts, self.of_score = counts, n_right
        self.n = int(counts.sum())
        self.n_right = int(n_right.sum())
        self.accepted = np.append(_from_the_end(counts), 0)
        self.found = np.append(_from_the_end(n_right), 0)

    def values(self, metric: Metric, which: slice = slice(None)) -> Floats:
        """Return the metric at some thresholds, of which the last accepts none."""
        return _METRICS[metric](self.found[which], self.accepted[which], self.n_right, self.n)

    def value(self, metric: Metric, threshold: int) -> float:
        """Return the metric at one threshold."""
        return float(self.values(metric, slice(threshold, threshold + 1))[0])

    def best(self, metric: Metric) -> tuple[int | None, float]:
        """Return the best threshold among the scores of this half, and its metric."""
        values = self.values(metric)
        is_candidate = np.append(self.counts > 0, True)
        if not self.n or np.isnan(values).all():
            return None, float("nan")
        best = int(np.argmax(np.where(is_candidate, values, -1.0)))
        return best, float(values[best])


def _accuracy(found: Ints, accepted: Ints, n_right: int, n: int) -> Floats:
    """Return the share of attempts that are rightly accepted or rightly refused."""
    shares: Floats = (2 * found - accepted - n_right + n) / n if n else np.full(len(found), np.nan)
    return shares


def _f1(found: Ints, accepted: Ints, n_right: int, n: int) -> Floats:
    """Return the harmonic mean of precision and recall, NaN where no attempt is right."""
    if not (n and n_right):
        return np.full(len(found), np.nan)
    f1: Floats = 2 * found / (accepted + n_right)
    return f1


_METRICS: Final[Mapping[Metric, Callable[[Ints, Ints, int, int], Floats]]] = MappingProxyType({
    "accuracy": _accuracy,
    "f1": _f1,
})


def _from_the_end(counts: Ints) -> Ints:
    """Return how many are at each place or above."""
    total: Ints = np.cumsum(counts[::-1])[::-1]
    return total
