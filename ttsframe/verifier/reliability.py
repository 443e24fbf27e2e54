"""What share of the attempts with a score is right, and how scores are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choices, check_fraction, check_positive
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.statistics.intervals import student_t_interval, wilson_interval
from ttsframe.verifier.marks import Marks
from ttsframe.verifier.metrics import calibration_status
from ttsframe.verifier.ordered import (
    Ints,
    bin_edges,
    count_by_problem,
    equal_mass_starts,
    equal_width_starts,
)
from ttsframe.verifier.sheet import Columns, Schema, Sheet, Table, request

__all__ = ["Binning", "reliability_curve", "score_distribution"]

Binning: TypeAlias = Literal["equal_width", "equal_mass"]

RELIABILITY: Final[Schema] = {
    "reduction": pl.String,
    "binning": pl.String,
    "bin_low": pl.Float64,
    "bin_high": pl.Float64,
    "mean_score": pl.Float64,
    "accuracy": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_attempts": pl.UInt32,
    "n_problems": pl.UInt32,
}

DISTRIBUTION: Final[Schema] = {
    "reduction": pl.String,
    "is_correct": pl.Boolean,
    "bin_low": pl.Float64,
    "bin_high": pl.Float64,
    "n_attempts": pl.UInt32,
    "share": pl.Float64,
}


def reliability_curve(
    trajectories: FrameT,
    /,
    *,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
    n_bins: int = 10,
    binning: Binning | Sequence[Binning] = "equal_width",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Compare scores with the share of right attempts among those that have about that score.

    Read as probabilities, scores of 0.8 should be right 80 % of the time. Where they are not, a
    threshold or a weighted vote means something else than it says.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `is_correct` (Boolean; null: left out) and `score`
        (number in [0, 1]; null or NaN: left out) or `step_scores`.
    reductions
        Names in `STEP_REDUCTIONS`, each of which gets rows; None is the column `score`.
    by
        Columns that get curves of their own.
    n_bins
        Number of bins.
    binning
        "equal_width": bins ((b-1)/B, b/B], 0 in the first. "equal_mass": bins of as equally many
        attempts as ties let them: equal scores go where their middle one belongs. Or both.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `reduction`, `binning`) and bin that holds an attempt, sorted; none for
        scores of which some lie outside [0, 1], which `verifier_metrics` reports as
        "out_of_range":

        - `bin_low`, `bin_high` (Float64): ends of the bin; of a bin of equal mass the smallest and
          the largest score in it;
        - `mean_score`, `accuracy` (Float64 in [0, 1]): means over its attempts;
        - `standard_error`, `ci_low`, `ci_high` (Float64): of the accuracy, with problems as the
          units: Student's t, or where all are right or all wrong Wilson's of as many problems; null
          below two problems;
        - `n_attempts`, `n_problems` (UInt32): in the bin.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.

    Notes
    -----
    With :math:`c_q` right ones of :math:`n_q` attempts at problem q in the bin, Q problems, and
    accuracy :math:`a = \sum c_q / \sum n_q`, the standard error is that of a ratio of sums over
    clusters:

    .. math::

        \mathrm{SE}^2 = \frac{Q}{Q-1} \frac{\sum_q (c_q - a \, n_q)^2}{(\sum_q n_q)^2}

    Attempts taken as independent would give intervals that are several times too narrow.

    References
    ----------
    Guo et al. (2017), On Calibration of Modern Neural Networks, arXiv:1706.04599, section 2. Miller
    (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 2.2, on clusters.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b", "b"],
    ...     "is_correct": [False, False, True, True],
    ...     "score": [0.1, 0.3, 0.6, 1.0],
    ... })
    >>> curve = tts.verifier.reliability_curve(trajectories, n_bins=2)
    >>> curve.select("bin_low", "bin_high", "mean_score", "accuracy", "n_attempts").rows()
    [(0.0, 0.5, 0.2, 0.0, 2), (0.5, 1.0, 0.8, 1.0, 2)]
    """
    check_positive(n_bins, "n_bins")
    check_fraction(confidence_level, "confidence_level")
    binnings = check_choices(binning, "binning", get_args(Binning))
    asked = request(trajectories, reductions, by, RELIABILITY)
    return asked.tabulate(
        trajectories,
        lambda _: reliability_table(
            n_bins=n_bins, binnings=binnings, confidence_level=confidence_level
        ),
        RELIABILITY,
    )


def reliability_table(
    *, n_bins: int, binnings: Sequence[Binning], confidence_level: float
) -> Table:
    """Ask what `reliability_curve` says.

    Parameters
    ----------
    n_bins
        Number of bins.
    binnings
        How to bin.
    confidence_level
        Coverage of the interval.

    Returns
    -------
    Table
        The question.
    """

    def rows(marks: Marks) -> Columns:
        found = [_bins(marks, n_bins, binning) for binning in sorted(binnings)]
        return {name: np.concatenate([columns[name] for columns in found]) for name in RELIABILITY}

    student = student_t_interval(
        "accuracy", "standard_error", "n_problems", confidence_level=confidence_level
    )
    n_right = pl.col("accuracy") * pl.col("n_problems")
    wilson = wilson_interval(n_right, "n_problems", confidence_level=confidence_level)
    is_pure = pl.col("accuracy").is_in([0.0, 1.0]) & (pl.col("n_problems") > 1)
    interval = pl.when(is_pure).then(wilson).otherwise(student)
    return Table(
        RELIABILITY,
        rows,
        lambda table: table.with_columns(interval.struct.field("ci_low", "ci_high")),
    )


def score_distribution(
    trajectories: FrameT,
    /,
    *,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
    n_bins: int = 40,
) -> FrameT:
    """Count right and wrong attempts by their score.

    Two heaps that part are a verifier that can choose; two that lie on one another are one that
    cannot; and a spike at an end says that the scores saturate.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `is_correct` (Boolean; null: left out) and `score`
        (number; null or NaN: left out) or `step_scores`.
    reductions
        Names in `STEP_REDUCTIONS`, each of which gets rows; None is the column `score`.
    by
        Columns that get distributions of their own, over the same bins.
    n_bins
        Number of bins of equal width.

    Returns
    -------
    FrameT
        One row per (by, `reduction`, `is_correct`) and bin, sorted:

        - `bin_low`, `bin_high` (Float64): ends of the bin, which holds its upper end. Bins span
          [0, 1] where that holds the scores of all groups, else from their smallest to their
          largest finite one, with infinite ones in the bins at the ends;
        - `n_attempts` (UInt32): attempts in the bin;
        - `share` (Float64): of all right (or wrong) attempts of the group; null without any.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b"],
    ...     "is_correct": [False, True, True],
    ...     "score": [0.1, 0.3, 0.9],
    ... })
    >>> counts = tts.verifier.score_distribution(trajectories, n_bins=2)
    >>> counts.select("is_correct", "bin_low", "n_attempts", "share").rows()
    [(False, 0.0, 1, 1.0), (False, 0.5, 0, 0.0), (True, 0.0, 1, 0.5), (True, 0.5, 1, 0.5)]
    """
    check_positive(n_bins, "n_bins")
    asked = request(trajectories, reductions, by, DISTRIBUTION)
    return asked.tabulate(
        trajectories, lambda sheet: distribution_table(sheet, n_bins=n_bins), DISTRIBUTION
    )


def distribution_table(sheet: Sheet, *, n_bins: int) -> Table:
    """Ask what `score_distribution` says.

    Parameters
    ----------
    sheet
        Attempts.
    n_bins
        Number of bins.

    Returns
    -------
    Table
        The question.
    """
    spans = sheet.spans()

    def rows(marks: Marks) -> Columns:
        low, high = spans[marks.reduction]
        starts = equal_width_starts(marks.score, n_bins, low, high)
        edges = bin_edges(n_bins, low, high)
        n_right = np.diff(marks.n_right_before(starts))
        counts = [np.diff(starts) - n_right, n_right]
        with np.errstate(invalid="ignore"):
            shares = [of / of.sum() for of in counts]
        return {
            "reduction": [marks.reduction] * (2 * n_bins),
            "is_correct": np.repeat([False, True], n_bins),
            "bin_low": np.tile(edges[:-1], 2),
            "bin_high": np.tile(edges[1:], 2),
            "n_attempts": np.concatenate(counts),
            "share": np.concatenate(shares),
        }

    return Table(DISTRIBUTION, rows)


def _bins(marks: Marks, n_bins: int, binning: Binning) -> Columns:
    """Return the bins of one reading in one group, their intervals still to be filled in."""
    if calibration_status(marks) != "ok":
        return {name: [] for name in RELIABILITY}
    score = marks.score
    if binning == "equal_width":
        starts = equal_width_starts(score, n_bins, 0.0, 1.0)
    else:
        starts = equal_mass_starts(score, n_bins)
    there = np.flatnonzero(np.diff(starts))
    first, end = starts[there], starts[there + 1]
    edges = bin_edges(n_bins, 0.0, 1.0)
    ends = {
        "equal_width": (edges[there], edges[there + 1]),
        "equal_mass": (score[first], score[end - 1]),
    }
    accuracy = (marks.n_right_before(end) - marks.n_right_before(first)) / (end - first)
    of_problem = [
        count_by_problem(marks.tag[place], len(marks.problems)) for place in map(slice, first, end)
    ]
    return {
        "reduction": [marks.reduction] * len(there),
        "binning": [binning] * len(there),
        "bin_low": ends[binning][0],
        "bin_high": ends[binning][1],
        "mean_score": np.add.reduceat(score, first) / (end - first),
        "accuracy": accuracy,
        "standard_error": [*map(_clustered_error, of_problem, accuracy)],
        "ci_low": [None] * len(there),
        "ci_high": [None] * len(there),
        "n_attempts": end - first,
        "n_problems": [*map(len, of_problem)],
    }


def _clustered_error(of_problem: Ints, accuracy: float) -> float:
    """Return the standard error of an accuracy over problems, of which each counts by attempts."""
    n = len(of_problem)
    if n < 2:
        return float("nan")
    counts = of_problem.sum(axis=1)
    squares = ((of_problem[:, 1] - accuracy * counts) ** 2).sum()
    return float(np.sqrt(n / (n - 1) * squares) / counts.sum())
