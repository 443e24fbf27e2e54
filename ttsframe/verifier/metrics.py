"""How well scores tell right attempts from wrong ones, and whether they are probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_positive
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.statistics.intervals import student_t_interval
from ttsframe.verifier.marks import Marks
from ttsframe.verifier.ordered import (
    Floats,
    Ints,
    area_under_roc,
    average_precision,
    equal_mass_starts,
    equal_width_starts,
)
from ttsframe.verifier.sheet import Columns, Schema, Table, request

__all__ = ["verifier_metrics"]

METRICS: Final[Schema] = {
    "reduction": pl.String,
    "auroc": pl.Float64,
    "auroc_within": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "average_precision": pl.Float64,
    "brier": pl.Float64,
    "ece_equal_width": pl.Float64,
    "ece_equal_mass": pl.Float64,
    "calibration_status": pl.String,
    "n_attempts": pl.UInt32,
    "n_right": pl.UInt32,
    "n_out_of_range": pl.UInt32,
    "n_unscored": pl.UInt32,
    "n_ungraded": pl.UInt32,
    "n_problems": pl.UInt32,
    "n_judged": pl.UInt32,
    "n_all_right": pl.UInt32,
    "n_all_wrong": pl.UInt32,
}


def verifier_metrics(
    trajectories: FrameT,
    /,
    *,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
    n_bins: int = 10,
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Measure how well scores tell right attempts from wrong ones, and how well they are calibrated.

    Best-of-N compares attempts at one problem, so only the area under the curve *within* problems
    says what it can gain; the pooled one also rewards a verifier for knowing which problems are
    easy.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `is_correct` (Boolean; null: not graded, left out)
        and `score` (number; null or NaN: left out) or `step_scores`.
    reductions
        Names in `STEP_REDUCTIONS`, each of which gets rows; None is the column `score`.
    by
        Columns that get rows of their own, such as the model or the difficulty level.
    n_bins
        Number of bins of the calibration errors.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `reduction`), sorted:

        - `auroc` (Float64 in [0, 1]): over all attempts together; null unless some are right and
          some wrong. It has no interval: attempts at one problem are not independent;
        - `auroc_within` (Float64 in [0, 1]): mean over the problems that have right and wrong
          attempts, each counting once; `standard_error`, `ci_low`, `ci_high`: of that mean, by
          Student's t, null below two problems;
        - `average_precision` (Float64): null where no attempt is right;
        - `brier`, `ece_equal_width`, `ece_equal_mass` (Float64): null unless `calibration_status`
          is "ok";
        - `calibration_status` (String): "ok"; "out_of_range": scores outside [0, 1], which are no
          probabilities and are never rescaled into any; "unscored": no attempt is graded and scored;
        - `n_attempts`, `n_right`, `n_out_of_range` (UInt32): attempts that are graded and scored,
          those that are right, those with a score outside [0, 1];
        - `n_unscored`, `n_ungraded` (UInt32): graded attempts without a score, and attempts without
          a grade, which are left out;
        - `n_problems`, `n_judged`, `n_all_right`, `n_all_wrong` (UInt32): problems with an attempt
          that counts, and of these the ones that `auroc_within` averages, and those that it cannot
          judge.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.

    Notes
    -----
    With scores s, grades y in {0, 1} and N attempts:

    .. math::

        \mathrm{AUROC} = P(s_+ > s_-) + \tfrac12 P(s_+ = s_-), \qquad
        \mathrm{AP} = \sum_t (R_t - R_{t-1}) P_t, \qquad
        \mathrm{Brier} = \frac1N \sum_i (s_i - y_i)^2, \qquad
        \mathrm{ECE} = \sum_b \frac{n_b}{N} \left| \bar y_b - \bar s_b \right|

    with precision P and recall R at each distinct score t, from the highest down. Bins of equal
    width are ((b-1)/B, b/B], 0 in the first. Bins of equal mass never part equal scores: those go
    where their middle one belongs.

    References
    ----------
    Hanley and McNeil (1982), The meaning and use of the area under a receiver operating
    characteristic (ROC) curve, Radiology 143, 29-36. Brier (1950), Verification of forecasts
    expressed in terms of probability, Monthly Weather Review 78, 1-3. Guo et al. (2017), On
    Calibration of Modern Neural Networks, arXiv:1706.04599, section 2. Nixon et al. (2019),
    Measuring Calibration in Deep Learning, arXiv:1904.01685, section 3, on bins of equal mass.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["easy"] * 3 + ["hard"] * 3,
    ...     "is_correct": [True, True, False, False, False, True],
    ...     "score": [0.9, 0.8, 0.8, 0.3, 0.2, 0.1],
    ... })
    >>> metrics = tts.verifier_metrics(trajectories)
    >>> metrics.select(pl.col("auroc", "auroc_within", "brier").round(3), "n_judged")
    shape: (1, 4)
    ┌───────┬──────────────┬───────┬──────────┐
    │ auroc ┆ auroc_within ┆ brier ┆ n_judged │
    │ ---   ┆ ---          ┆ ---   ┆ ---      │
    │ f64   ┆ f64          ┆ f64   ┆ u32      │
    ╞═══════╪══════════════╪═══════╪══════════╡
    │ 0.611 ┆ 0.375        ┆ 0.272 ┆ 2        │
    └───────┴──────────────┴───────┴──────────┘
    """
    check_positive(n_bins, "n_bins")
    check_fraction(confidence_level, "confidence_level")
    asked = request(trajectories, reductions, by, METRICS)
    return asked.tabulate(
        trajectories,
        lambda _: metrics_table(n_bins=n_bins, confidence_level=confidence_level),
        METRICS,
    )


def metrics_table(*, n_bins: int, confidence_level: float) -> Table:
    """Ask what `verifier_metrics` says.

    Parameters
    ----------
    n_bins
        Number of bins.
    confidence_level
        Coverage of the interval.

    Returns
    -------
    Table
        The question.
    """
    interval = student_t_interval(
        "auroc_within", "standard_error", "n_judged", confidence_level=confidence_level
    )
    return Table(
        METRICS,
        lambda marks: _row(marks, n_bins),
        lambda table: table.with_columns(interval.struct.field("ci_low", "ci_high")),
    )


def calibration_status(marks: Marks) -> str:
    """Say whether scores can be read as probabilities.

    Parameters
    ----------
    marks
        Scores of one group under one reading.

    Returns
    -------
    str
        "ok", "out_of_range" or "unscored".
    """
    if not marks.n:
        return "unscored"
    return "out_of_range" if marks.n_out_of_range else "ok"


def _row(marks: Marks, n_bins: int) -> Columns:
    """Return the row of one reading in one group, its interval still to be filled in."""
    runs, by_problem = marks.right_runs, marks.by_problem
    areas = marks.areas_within()
    has_wrong, has_right = (by_problem > 0).T
    judged = np.sort(areas[has_right & has_wrong])
    status = calibration_status(marks)
    brier = width = mass = float("nan")
    if status == "ok":
        score = marks.score
        losses = score - marks.is_right
        losses *= losses
        brier = float(losses.mean())
        width = _calibration_error(marks, equal_width_starts(score, n_bins, 0.0, 1.0))
        mass = _calibration_error(marks, equal_mass_starts(score, n_bins))
    row = {
        "reduction": marks.reduction,
        "auroc": area_under_roc(runs),
        "auroc_within": _mean(judged),
        "standard_error": _standard_error(judged),
        "ci_low": None,
        "ci_high": None,
        "average_precision": average_precision(runs),
        "brier": brier,
        "ece_equal_width": width,
        "ece_equal_mass": mass,
        "calibration_status": status,
        "n_attempts": marks.n,
        "n_right": len(marks.right),
        "n_out_of_range": marks.n_out_of_range,
        "n_unscored": marks.n_unscored,
        "n_ungraded": marks.n_ungraded,
        "n_problems": int((has_right | has_wrong).sum()),
        "n_judged": len(judged),
        "n_all_right": int((has_right & ~has_wrong).sum()),
        "n_all_wrong": int((has_wrong & ~has_right).sum()),
    }
    return {name: [value] for name, value in row.items()}


def _calibration_error(marks: Marks, starts: Ints) -> float:
    """Return the mean distance of accuracy from score over bins, by their share of attempts."""
    n_right, is_there = np.diff(marks.n_right_before(starts)), np.diff(starts) > 0
    total = np.add.reduceat(marks.score, starts[:-1][is_there])
    return float(np.abs(n_right[is_there] - total).sum() / marks.n)


def _mean(values: Floats) -> float:
    """Return the mean, NaN of none."""
    return float(values.mean()) if len(values) else float("nan")


def _standard_error(values: Floats) -> float:
    """Return the standard error of the mean, NaN below two values."""
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
