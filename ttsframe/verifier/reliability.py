"""Accuracy by score, and the distribution of scores of right and of wrong attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choices, check_fraction, check_positive
from ttsframe._typing import ColumnNames, FrameT, Reduction
from ttsframe.statistics.clusters import cluster_error, cluster_interval
from ttsframe.verifier.sorted_scores import Group, SortedScores, bin_edges, count_by_problem
from ttsframe.verifier.tables import (
    CLUSTERED,
    CLUSTERED_ALSO,
    Columns,
    Schema,
    Table,
    attempt_columns,
    in_threads,
)

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
    "df": pl.Float64,
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
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
    cluster: str | None = None,
    n_bins: int = 10,
    binning: Binning | Sequence[Binning] = "equal_width",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Compare scores with the share of right attempts, in bins of the score.

    Read as probabilities, scores of 0.8 should be right 80 % of the time. If they are not, the
    scores cannot be used as probabilities in thresholds and weighted votes.

    Parameters
    ----------
    trajectories
        As in `verifier_metrics`, with scores in [0, 1].
    reductions, by, cluster
        As in `verifier_metrics`.
    n_bins
        Number of bins.
    binning
        "equal_width": bins ((b-1)/B, b/B], 0 in the first. "equal_mass": bins of equally many
        attempts, except that equal scores all go into the bin of the middle one. Or both.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `reduction`, `binning`) and bin with an attempt, sorted; none if a score is
        outside [0, 1], which `verifier_metrics` reports as "out_of_range":

        - `bin_low`, `bin_high` (Float64): ends of the bin; for equal mass the smallest and the
          largest score in it;
        - `mean_score`, `accuracy` (Float64 in [0, 1]): means over its attempts;
        - `standard_error`, `ci_low`, `ci_high` (Float64): of the accuracy, with the attempts at a
          problem (or in a cluster) as one unit, by the rules of `scaling_curve` for clusters: Wilson's
          interval of the attempts over the design effect; null below two units;
        - `n_attempts`, `n_problems` (UInt32): in the bin;
        - `df` (Float64): degrees of freedom of the standard error; with `cluster` also `n_clusters`
          (UInt32).

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.

    Notes
    -----
    With :math:`c_q` of :math:`n_q` attempts right at problem q in the bin, N attempts in all, and
    accuracy :math:`a = \sum c_q / N`, the standard error is CR2, as in `standard_error`:

    .. math::

        \mathrm{SE}^2 = \frac{1}{N^2} \sum_q \frac{(c_q - a \, n_q)^2}{1 - n_q / N}

    Intervals that assume independent attempts would be several times too narrow.

    References
    ----------
    Guo et al. (2017), On Calibration of Modern Neural Networks, arXiv:1706.04599, section 2. Miller
    (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 2.2, on clusters. Bell and McCaffrey (2002), Bias reduction in
    standard errors for linear regression with multi-stage samples, Survey Methodology 28, 169-181.

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
    columns = attempt_columns(trajectories, reductions, by, RELIABILITY, cluster)
    table = reliability_table(
        n_bins=n_bins,
        binnings=binnings,
        confidence_level=confidence_level,
        is_clustered=cluster is not None,
    )
    shown = {name: dtype for name, dtype in table.schema.items() if name not in CLUSTERED_ALSO}
    return columns.tabulate(trajectories, lambda _: table, shown)


def reliability_table(
    *,
    n_bins: int,
    binnings: Sequence[Binning],
    confidence_level: float,
    is_clustered: bool = False,
) -> Table:
    """Return the table of `reliability_curve`."""
    schema: Schema = {**RELIABILITY, **(CLUSTERED if is_clustered else {}), **CLUSTERED_ALSO}

    def rows(scores: SortedScores) -> Columns:
        bins = [_bins(scores, n_bins, binning) for binning in sorted(binnings)]
        return {name: np.concatenate([columns[name] for columns in bins]) for name in schema}

    interval = cluster_interval("n_attempts", confidence_level)

    def finish(table: pl.DataFrame) -> pl.DataFrame:
        graded = table.with_columns(is_fractional=pl.lit(value=False))
        ends = graded.with_columns(interval.struct.field("ci_low", "ci_high"))
        return ends.drop("is_fractional", *CLUSTERED_ALSO)

    return Table(schema, rows, finish)


def score_distribution(
    trajectories: FrameT,
    /,
    *,
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
    n_bins: int = 40,
) -> FrameT:
    """Count right and wrong attempts by their score.

    The distributions of a good verifier are separate, and those of a useless one coincide. A spike
    at an end shows that the scores saturate.

    Parameters
    ----------
    trajectories
        As in `verifier_metrics`.
    reductions
        As in `verifier_metrics`.
    by
        Columns that define separate groups, which have the same bins.
    n_bins
        Number of bins of equal width.

    Returns
    -------
    FrameT
        One row per (by, `reduction`, `is_correct`) and bin, sorted:

        - `bin_low`, `bin_high` (Float64): ends of the bin, which contains its upper end. Bins span
          [0, 1] if all scores of all groups are in it, otherwise the range of the finite scores,
          with infinite ones in the outer bins;
        - `n_attempts` (UInt32): attempts in the bin;
        - `share` (Float64): of all right (or wrong) attempts of the group; null if there are none.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.

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
    columns = attempt_columns(trajectories, reductions, by, DISTRIBUTION)
    return columns.tabulate(
        trajectories,
        lambda groups: distribution_table(groups, n_bins=n_bins, n_threads=columns.n_threads),
        DISTRIBUTION,
    )


def distribution_table(groups: Sequence[Group], *, n_bins: int, n_threads: int) -> Table:
    """Return the table of `score_distribution`."""
    ranges = _ranges(groups, n_threads)

    def rows(scores: SortedScores) -> Columns:
        low, high = ranges[scores.reduction]
        starts = scores.equal_width_starts(n_bins, low, high)
        edges = bin_edges(n_bins, low, high)
        n_right = np.diff(scores.n_right_before(starts))
        counts = [np.diff(starts) - n_right, n_right]
        with np.errstate(invalid="ignore"):
            shares = [of / of.sum() for of in counts]
        return {
            "reduction": [scores.reduction] * (2 * n_bins),
            "is_correct": np.repeat([False, True], n_bins),
            "bin_low": np.tile(edges[:-1], 2),
            "bin_high": np.tile(edges[1:], 2),
            "n_attempts": np.concatenate(counts),
            "share": np.concatenate(shares),
        }

    return Table(DISTRIBUTION, rows)


def _ranges(groups: Sequence[Group], n_threads: int) -> dict[str, tuple[float, float]]:
    """Return the range of each reduction over all groups, (0, 1) if that contains all scores."""
    sources = [(group, reduction) for group in groups for reduction in group.scores]

    def finite_range(source: tuple[Group, str]) -> tuple[float, float]:
        group, reduction = source
        score = group.scores[reduction]
        is_used = group.is_graded & np.isfinite(score)
        used = score if is_used.all() else score[is_used]
        return used.min(initial=np.inf), used.max(initial=-np.inf)

    ranges: dict[str, tuple[float, float]] = {}
    for (_, reduction), (low, high) in zip(
        sources, in_threads(finite_range, sources, n_threads), strict=True
    ):
        lowest, highest = ranges.get(reduction, (np.inf, -np.inf))
        ranges[reduction] = min(low, lowest), max(high, highest)
    for reduction, (low, high) in ranges.items():
        if low >= 0.0 and high <= 1.0:
            ranges[reduction] = 0.0, 1.0
        elif low == high:
            ranges[reduction] = low - 0.5, high + 0.5
    return ranges


def _bins(scores: SortedScores, n_bins: int, binning: Binning) -> Columns:
    """Return the bins of one reduction in one group, without their intervals."""
    if scores.calibration_status != "ok":
        return {name: [] for name in (*RELIABILITY, *CLUSTERED, *CLUSTERED_ALSO)}
    score = scores.score
    is_equal_width = binning == "equal_width"
    starts = (
        scores.equal_width_starts(n_bins) if is_equal_width else scores.equal_mass_starts(n_bins)
    )
    filled = np.flatnonzero(np.diff(starts))
    first, end = starts[filled], starts[filled + 1]
    n_attempts = end - first
    edges = bin_edges(n_bins, 0.0, 1.0)
    accuracy = (scores.n_right_before(end) - scores.n_right_before(first)) / n_attempts
    slices = [*zip(first, end, strict=True)]
    n_cells = len(scores.problems)
    counts = [count_by_problem(scores.cell[start:stop], n_cells) for start, stop in slices]
    units = counts
    if scores.clusters is not None:
        cell = 2 * scores.clusters[scores.cell >> 1] + (scores.cell & 1)
        units = [count_by_problem(cell[start:stop], n_cells) for start, stop in slices]
    errors = [cluster_error(of[:, 1].astype(np.float64), of.sum(axis=1)) for of in units]
    return {
        "reduction": [scores.reduction] * len(filled),
        "binning": [binning] * len(filled),
        "bin_low": edges[filled] if is_equal_width else score[first],
        "bin_high": edges[filled + 1] if is_equal_width else score[end - 1],
        "mean_score": np.add.reduceat(score, first) / n_attempts,
        "accuracy": accuracy,
        "standard_error": [error.standard_error for error in errors],
        "ci_low": [None] * len(filled),
        "ci_high": [None] * len(filled),
        "n_attempts": n_attempts,
        "n_problems": [*map(len, counts)],
        "df": [error.df for error in errors],
        "n_clusters": [*map(len, units)],
        "most_share": [error.most_share for error in errors],
    }
