"""Discrimination and calibration of scores: AUROC, average precision, Brier score and ECE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_positive
from ttsframe._typing import ColumnNames, Floats, FrameT, Integers, Reduction
from ttsframe.statistics.clusters import cluster_error, cluster_interval, sum_by_cluster
from ttsframe.statistics.problem_values import mean_interval
from ttsframe.verifier.sorted_scores import SortedScores
from ttsframe.verifier.tables import (
    CLUSTERED,
    CLUSTERED_ALSO,
    Columns,
    Schema,
    Table,
    attempt_columns,
)

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
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
    cluster: str | None = None,
    n_bins: int = 10,
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Measure how well scores separate right from wrong attempts, and how well they are calibrated.

    Best-of-N compares attempts at one problem, so its gain depends on the area under the ROC curve
    *within* problems. The pooled area also rewards a verifier that knows which problems are easy.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `is_correct` (Boolean; null: left out) and `score`
        (number; null or NaN: left out) or `step_scores`.
    reductions
        Names in `STEP_REDUCTIONS` that reduce `step_scores`, each with rows of its own; None reads
        the column `score`.
    by
        Columns that define separate groups, for example the model or the difficulty level.
    cluster
        Column that groups problems that were drawn together; clusters are then the units of the
        standard error and the interval.
    n_bins
        Number of bins of the calibration errors.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `reduction`), sorted:

        - `auroc` (Float64 in [0, 1]): over all attempts; null unless some are right and some are
          wrong. It has no interval, because attempts at one problem are not independent;
        - `auroc_within` (Float64 in [0, 1]): mean over the problems that have right and wrong
          attempts, each counted once; `standard_error`, `ci_low`, `ci_high`: of that mean, by the
          rules of `scaling_curve` for fractions: Student's t, or Wilson's interval where the areas
          add up to less than 5, or to within 5 of their number; null below two problems;
        - `average_precision` (Float64): null if no attempt is right;
        - `brier`, `ece_equal_width`, `ece_equal_mass` (Float64): null unless `calibration_status`
          is "ok";
        - `calibration_status` (String): "ok"; "out_of_range" if scores are outside [0, 1], since
          these are not probabilities and are never rescaled; "unscored" if no attempt is graded and
          scored;
        - `n_attempts`, `n_right`, `n_out_of_range` (UInt32): graded and scored attempts, the right
          ones, and those with a score outside [0, 1];
        - `n_unscored`, `n_ungraded` (UInt32): graded attempts without a score, and attempts without
          a grade, which are left out;
        - `n_problems`, `n_judged`, `n_all_right`, `n_all_wrong` (UInt32): problems with a graded and
          scored attempt, of these the ones averaged in `auroc_within`, and those without wrong or
          without right attempts;
        - `n_clusters`, `df`: as in `scaling_curve`, only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.

    Notes
    -----
    With scores s, grades y in {0, 1} and N attempts:

    .. math::

        \mathrm{AUROC} = P(s_+ > s_-) + \tfrac12 P(s_+ = s_-), \qquad
        \mathrm{AP} = \sum_t (R_t - R_{t-1}) P_t, \qquad
        \mathrm{Brier} = \frac1N \sum_i (s_i - y_i)^2, \qquad
        \mathrm{ECE} = \sum_b \frac{n_b}{N} \left| \bar y_b - \bar s_b \right|

    with precision P and recall R at each distinct score t, from the highest down. Bins of equal
    width are ((b-1)/B, b/B], 0 in the first. Bins of equal mass never separate equal scores: all go
    into the bin of the middle one.

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
    columns = attempt_columns(trajectories, reductions, by, METRICS, cluster)
    is_clustered = cluster is not None
    table = metrics_table(
        n_bins=n_bins, confidence_level=confidence_level, is_clustered=is_clustered
    )
    return columns.tabulate(
        trajectories, lambda _: table, {**METRICS, **(CLUSTERED if is_clustered else {})}
    )


def metrics_table(*, n_bins: int, confidence_level: float, is_clustered: bool = False) -> Table:
    """Return the table of `verifier_metrics`."""
    built: Schema = {**METRICS, **CLUSTERED, **CLUSTERED_ALSO} if is_clustered else METRICS
    if is_clustered:
        interval = cluster_interval("n_judged", confidence_level, mean="auroc_within")
    else:
        interval = mean_interval(
            "n_judged", confidence_level, mean="auroc_within", n_problems="n_judged"
        )
    total = pl.col("auroc_within") * pl.col("n_judged")
    has_two = pl.col("standard_error").is_not_null()

    def finish(table: pl.DataFrame) -> pl.DataFrame:
        # Areas are fractions, even where all of them are 0 or 1.
        with_inputs = table.with_columns(total=total, is_fractional=pl.lit(value=True))
        ends = pl.when(has_two).then(interval).struct.field("ci_low", "ci_high")
        return with_inputs.with_columns(ends).drop(
            "total", "is_fractional", *(CLUSTERED_ALSO if is_clustered else ())
        )

    return Table(built, lambda scores: _row(scores, n_bins), finish)


def _row(scores: SortedScores, n_bins: int) -> Columns:
    """Return the row of one reduction in one group, without its interval."""
    auroc, precision = scores.auroc_and_precision()
    has_wrong, has_right = (scores.n_by_problem > 0).T
    is_judged = has_right & has_wrong
    areas = scores.areas_within()[is_judged]
    error, clustered = _standard_error(np.sort(areas)), {}
    if scores.clusters is not None:
        totals, sizes = sum_by_cluster(areas, scores.clusters[is_judged])
        spread = cluster_error(totals, sizes)
        error = spread.standard_error
        clustered = {
            "n_clusters": len(sizes),
            "df": spread.df,
            "most_share": spread.most_share,
        }
    areas = np.sort(areas)
    status = scores.calibration_status
    brier = width = mass = float("nan")
    if status == "ok":
        losses = scores.score - scores.is_right
        losses *= losses
        brier = float(losses.mean())
        width = _calibration_error(scores, scores.equal_width_starts(n_bins))
        mass = _calibration_error(scores, scores.equal_mass_starts(n_bins))
    row = {
        "reduction": scores.reduction,
        "auroc": auroc,
        "auroc_within": _mean(areas),
        "standard_error": error,
        "ci_low": None,
        "ci_high": None,
        "average_precision": precision,
        "brier": brier,
        "ece_equal_width": width,
        "ece_equal_mass": mass,
        "calibration_status": status,
        "n_attempts": scores.n,
        "n_right": len(scores.right),
        "n_out_of_range": scores.n_out_of_range,
        "n_unscored": scores.n_unscored,
        "n_ungraded": scores.n_ungraded,
        "n_problems": int((has_right | has_wrong).sum()),
        "n_judged": len(areas),
        "n_all_right": int((has_right & ~has_wrong).sum()),
        "n_all_wrong": int((has_wrong & ~has_right).sum()),
        **clustered,
    }
    return {name: [value] for name, value in row.items()}


def _calibration_error(scores: SortedScores, starts: Integers) -> float:
    """Return the mean distance of accuracy and mean score over bins, weighted by attempts."""
    n_right, is_filled = np.diff(scores.n_right_before(starts)), np.diff(starts) > 0
    total = np.add.reduceat(scores.score, starts[:-1][is_filled])
    return float(np.abs(n_right[is_filled] - total).sum() / scores.n)


def _mean(values: Floats) -> float:
    """Return the mean, NaN if there is no value."""
    return float(values.mean()) if len(values) else float("nan")


def _standard_error(values: Floats) -> float:
    """Return the standard error of the mean, NaN below two values."""
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
