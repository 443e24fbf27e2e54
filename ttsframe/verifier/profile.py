"""Mean step scores by position, of right and of wrong attempts."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names, check_positive
from ttsframe._exprs import name_numbers, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, Floats, FrameT, Integers
from ttsframe.errors import ColumnsError
from ttsframe.schema import CLUSTER_COLUMNS, require_columns, require_kind
from ttsframe.statistics.clusters import (
    check_cluster,
    cluster_error,
    cluster_interval,
    in_one_cluster,
    sum_by_cluster,
)
from ttsframe.statistics.intervals import student_t_interval
from ttsframe.statistics.problem_values import mean_interval
from ttsframe.verifier.tables import CLUSTERED, CLUSTERED_ALSO, Schema, in_threads

__all__ = ["step_profile"]

PROFILE: Final[Schema] = {
    "is_correct": pl.Boolean,
    "position": pl.Float64,
    "mean_score": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_attempts": pl.UInt32,
    "n_problems": pl.UInt32,
    "n_unscored_steps": pl.UInt32,
}

_OUTCOMES: Final = (False, True, None)

_BLOCK_ROWS: Final = 1 << 15
"""Attempts that are averaged at a time, so that they fit into the cache of a core."""


def step_profile(
    trajectories: FrameT,
    /,
    *,
    n_bins: int = 10,
    same_problems: bool = False,
    by: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average step scores by relative position, separately for right and wrong attempts.

    The profiles separate at the position from which the verifier recognizes errors. If they do not
    separate, the verifier cannot help to choose an answer.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `step_scores` (list of numbers, in order) and
        `is_correct` (Boolean; null: not graded, a separate profile).
    n_bins
        Number of bins of equal width along the attempt.
    same_problems
        Whether to leave out the graded attempts at problems without right or without wrong ones, so
        that the profiles do not differ because easy problems have more right attempts. Where no
        problem has both, none is left out.
    by
        Columns that define separate profiles, for example the run or the model.
    cluster
        As in `verifier_metrics`.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `is_correct`, `position`) with a step, sorted:

        - `position` (Float64 in (0, 1)): center of the bin;
        - `mean_score` (Float64): mean over problems; null if no step has a score;
        - `standard_error` (Float64): of that mean, over problems; null below two problems;
        - `ci_low`, `ci_high` (Float64): if all step scores of the frame are in [0, 1], by the rules of
          `scaling_curve` for fractions; otherwise Student's t over problems; null below two problems;
        - `n_attempts`, `n_problems` (UInt32): those with a score in the bin;
        - `n_unscored_steps` (UInt32): steps whose score is null or NaN, which are left out;
        - `n_clusters`, `df`: as in `scaling_curve`, only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.

    Notes
    -----
    Step :math:`i = 1 \dots n` of an attempt has the position :math:`i / n`, the share of the attempt
    that the verifier has seen when it gives the score, and is in bin :math:`\lceil i B / n \rceil`
    of :math:`B`. Therefore the last step of every attempt is in the last bin, and an attempt with
    fewer steps than bins is missing from some bins. Scores are averaged per attempt, then per
    problem, then over problems: the problem is the unit, and neither long attempts nor problems
    with many attempts have more weight.

    References
    ----------
    Lightman et al., "Let's Verify Step by Step", arXiv:2305.20050, on scores of single steps.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b", "b"],
    ...     "step_scores": [[0.5, 0.75], [0.5, 0.25], [0.75, 1.0], [0.0]],
    ...     "is_correct": [True, False, True, False],
    ... })
    >>> profile = tts.verifier.step_profile(trajectories, n_bins=2)
    >>> profile.select("is_correct", "position", "mean_score", "n_problems")
    shape: (4, 4)
    ┌────────────┬──────────┬────────────┬────────────┐
    │ is_correct ┆ position ┆ mean_score ┆ n_problems │
    │ ---        ┆ ---      ┆ ---        ┆ ---        │
    │ bool       ┆ f64      ┆ f64        ┆ u32        │
    ╞════════════╪══════════╪════════════╪════════════╡
    │ false      ┆ 0.25     ┆ 0.5        ┆ 1          │
    │ false      ┆ 0.75     ┆ 0.125      ┆ 2          │
    │ true       ┆ 0.25     ┆ 0.625      ┆ 2          │
    │ true       ┆ 0.75     ┆ 0.875      ┆ 2          │
    └────────────┴──────────┴────────────┴────────────┘
    """
    check_frame(trajectories, "trajectories")
    check_positive(n_bins, "n_bins")
    check_fraction(confidence_level, "confidence_level")
    taken = {*PROFILE, *CLUSTER_COLUMNS, "problem_id", "step_scores"}
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    clusters: tuple[str, ...] = check_cluster(cluster, taken, groups)
    schema = require_columns(
        trajectories, [*groups, *clusters, "problem_id", "step_scores", "is_correct"]
    )
    _check_dtypes(schema)
    keys: dict[str, str] = safe_names(groups)
    # The number of threads is asked for here, because it is 1 inside of a query.
    n_threads = pl.thread_pool_size()

    def apply(frame: pl.DataFrame) -> pl.DataFrame:
        return _profiles(
            frame, [*keys], n_bins, confidence_level, n_threads, same_problems=same_problems
        ).rename(keys)

    result = {**PROFILE, **(CLUSTERED if clusters else {})}
    names = {**keys, "problem": "problem_id"}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lazy.select(
            *to_safe(keys),
            pl.col("problem_id").alias("problem"),
            *[pl.col(name).alias("cluster") for name in clusters],
            pl.col("is_correct").cast(pl.Boolean),
            pl.col("step_scores").cast(pl.List(pl.Float64)).alias("steps"),
        )
        for name in clusters:
            n_clusters = pl.col("cluster").n_unique().over(*names)
            rows = rows.with_columns(n_clusters=n_clusters).filter(in_one_cluster(names, name))
        return rows.map_batches(
            apply, schema={name: schema[name] for name in groups} | dict(result)
        )

    return run_plan(trajectories, plan)


def _check_dtypes(schema: pl.Schema) -> None:
    """Raise unless step scores are lists of numbers and grades are Boolean."""
    scores = schema["step_scores"]
    inner = scores.inner if isinstance(scores, pl.List | pl.Array) else scores
    is_list = isinstance(scores, pl.List | pl.Array) and (inner.is_numeric() or inner == pl.Null)
    if not (is_list or scores == pl.Null):
        raise ColumnsError(
            f"trajectories: 'step_scores' is {scores}, must be a list of numbers per attempt."
        )
    require_kind(schema, "Boolean", "is_correct")


class _Block(NamedTuple):
    """Sums over the attempts of some cells (a problem and an outcome); arrays are (n_cells, n_bins)."""

    total: Floats
    n_attempts: Integers
    n_steps: Integers
    """(n_outcomes, n_bins)."""
    n_unscored: Integers
    """(n_outcomes, n_bins)."""
    low: float
    high: float


def _profiles(
    frame: pl.DataFrame,
    keys: list[str],
    n_bins: int,
    confidence_level: float,
    n_threads: int,
    *,
    same_problems: bool,
) -> pl.DataFrame:
    """Make the table, with the columns of groups under safe names."""
    names = [name for name in ("problem", "cluster") if name in frame.columns]
    is_clustered = "cluster" in names
    schema = {**PROFILE, **({**CLUSTERED, **CLUSTERED_ALSO} if is_clustered else {})}
    numbered = frame.with_columns(name_numbers(frame[name]) for name in names)
    n_steps = numbered["steps"].list.len()
    if n_steps.null_count() or n_steps.min() == 0:
        numbered = numbered.filter(n_steps > 0)
    parts = numbered.partition_by(keys) if keys else [numbered]
    tables, lows, highs = [], [], []
    for part in parts:
        if not part.height:
            continue
        kept = _keep_mixed(part) if same_problems else part
        rows, low, high = _one_group(kept, n_bins, n_threads)
        table = pl.DataFrame(rows, schema=schema, strict=False)
        tables.append(part.select(keys).head(1).join(table, how="cross") if keys else table)
        lows.append(low)
        highs.append(high)
    shown = [name for name in schema if name not in CLUSTERED_ALSO]
    if not tables:
        dtypes = {key: frame.schema[key] for key in keys}
        return pl.DataFrame(schema={**dtypes, **{name: schema[name] for name in shown}})
    is_bounded = min(lows) >= 0.0 and max(highs) <= 1.0
    interval = _interval(confidence_level, is_bounded=is_bounded, is_clustered=is_clustered)
    return (
        pl
        .concat(tables)
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .with_columns(
            total=pl.col("mean_score") * pl.col("n_problems"), is_fractional=pl.lit(value=True)
        )
        .with_columns(interval.struct.field("ci_low", "ci_high"))
        .sort(*keys, "is_correct", "position")
        .select(*keys, *shown)
    )


def _interval(confidence_level: float, *, is_bounded: bool, is_clustered: bool) -> pl.Expr:
    """Build the interval of a mean step score."""
    if not is_bounded:
        n_units = pl.col("df") + 1.0 if is_clustered else pl.col("n_problems")
        return student_t_interval(
            "mean_score", "standard_error", n_units, confidence_level=confidence_level, bounds=None
        )
    if is_clustered:
        interval = cluster_interval("n_problems", confidence_level, mean="mean_score")
    else:
        interval = mean_interval("n_problems", confidence_level, mean="mean_score")
    return pl.when(pl.col("standard_error").is_not_null()).then(interval)


def _keep_mixed(part: pl.DataFrame) -> pl.DataFrame:
    """Keep problems with right and wrong attempts, and ungraded attempts; all rows if there are none."""
    problem = part["problem"].to_numpy()
    outcome = part["is_correct"].cast(pl.Int64).fill_null(2).to_numpy()
    n_problems = int(problem.max()) + 1
    has = np.zeros((n_problems, 3), dtype=bool)
    has[problem, outcome] = True
    is_mixed = has[:, 0] & has[:, 1]
    if not is_mixed.any():
        return part
    is_kept = is_mixed[problem] | (outcome == 2)
    return part if is_kept.all() else part.filter(pl.Series(is_kept))


def _one_group(
    part: pl.DataFrame, n_bins: int, n_threads: int
) -> tuple[dict[str, list[object]], float, float]:
    """Return the rows of one group, and the smallest and largest score in it."""
    steps = part["steps"]
    n_steps = steps.list.len().cast(pl.Int64).to_numpy()
    # A missing score is NaN here.
    scores = steps.explode(empty_as_null=False).to_numpy()
    starts = np.cumsum(n_steps) - n_steps
    outcome = part["is_correct"].cast(pl.Int64).fill_null(2).to_numpy()
    cell = part["problem"].to_numpy() * 3 + outcome
    # Sorting packed integers is several times faster than finding their order.
    order = np.sort(cell * len(cell) + np.arange(len(cell))) % len(cell)
    cell = cell[order]
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    ends = np.append(first[1:], len(cell))
    number = np.repeat(np.arange(len(first)), ends - first)
    # A cell is in one block, so that its sum does not depend on the number of threads.
    cuts = np.searchsorted(ends, np.arange(_BLOCK_ROWS, len(cell), _BLOCK_ROWS))
    bounds = np.unique(np.concatenate([[0], cuts + 1, [len(first)]]))

    def average(i: int) -> _Block:
        begin, end = bounds[i], bounds[i + 1]
        rows = order[first[begin] : ends[end - 1]]
        # Infinite scores of both signs have no mean. This setting is per thread.
        with np.errstate(invalid="ignore"):
            return _block(
                scores,
                (starts[rows], n_steps[rows]),
                outcome[rows],
                number[first[begin] : ends[end - 1]] - begin,
                n_bins,
            )

    blocks = in_threads(average, range(len(bounds) - 1), n_threads)
    merged = _Block(
        total=np.concatenate([block.total for block in blocks]),
        n_attempts=np.concatenate([block.n_attempts for block in blocks]),
        n_steps=np.add.reduce([block.n_steps for block in blocks]),
        n_unscored=np.add.reduce([block.n_unscored for block in blocks]),
        low=min(block.low for block in blocks),
        high=max(block.high for block in blocks),
    )
    clusters = part["cluster"].to_numpy()[order[first]] if "cluster" in part.columns else None
    return _rows(merged, cell[first] % 3, clusters), merged.low, merged.high


def _rows(sums: _Block, outcome: Integers, clusters: Integers | None) -> dict[str, list[object]]:
    """Average the cells of each outcome, which are problems, in each bin with a step."""
    n_bins = sums.total.shape[1]
    also = () if clusters is None else (*CLUSTERED, *CLUSTERED_ALSO)
    columns: dict[str, list[object]] = {name: [] for name in (*PROFILE, *also)}
    for code, is_correct in enumerate(_OUTCOMES):
        for i in np.flatnonzero(sums.n_steps[code]):
            n_attempts = sums.n_attempts[outcome == code, i]
            is_scored = n_attempts > 0
            means = sums.total[outcome == code, i][is_scored] / n_attempts[is_scored]
            n = len(means)
            with np.errstate(invalid="ignore"):
                mean = means.mean() if n else None
                error = means.std(ddof=1) / np.sqrt(n) if n > 1 else None
            row: dict[str, object] = {
                "is_correct": is_correct,
                "position": (i + 0.5) / n_bins,
                "mean_score": mean,
                "standard_error": error,
                "ci_low": None,
                "ci_high": None,
                "n_attempts": int(n_attempts.sum()),
                "n_problems": n,
                "n_unscored_steps": int(sums.n_unscored[code, i]),
            }
            if clusters is not None:
                totals, sizes = sum_by_cluster(means, clusters[outcome == code][is_scored])
                spread = cluster_error(totals, sizes)
                row |= {
                    "standard_error": spread.standard_error,
                    "n_clusters": len(sizes),
                    "df": spread.df,
                    "most_share": spread.most_share,
                }
            for name, value in row.items():
                columns[name].append(value)
    return columns


def _block(
    scores: Floats, steps: tuple[Integers, Integers], outcome: Integers, cell: Integers, n_bins: int
) -> _Block:
    """Average the bins of each attempt and sum them by cell, for attempts sorted by cell from 0."""
    starts, n_steps = steps
    n_cells = int(cell[-1]) + 1
    total, n_attempts = np.zeros((n_cells, n_bins)), np.zeros((n_cells, n_bins), dtype=np.int64)
    step_counts = np.zeros((3, n_bins), dtype=np.int64)
    unscored = np.zeros((3, n_bins), dtype=np.int64)
    low, high = np.inf, -np.inf
    for n in np.flatnonzero(np.bincount(n_steps)):
        rows = np.flatnonzero(n_steps == n)
        values = scores.take(starts[rows][:, None] + np.arange(n))
        bin_of_step = -(-np.arange(1, n + 1) * n_bins // n) - 1
        begins = np.flatnonzero(np.diff(bin_of_step, prepend=-1))
        bins, sizes = bin_of_step[begins], np.diff(begins, append=n)
        of_outcome = np.bincount(outcome[rows], minlength=3)
        step_counts[:, bins] += of_outcome[:, None] * sizes
        first = np.flatnonzero(np.diff(cell[rows], prepend=-1))
        where = np.ix_(cell[rows[first]], bins)
        smallest = float(values.min())
        if math.isnan(smallest):
            is_missing = np.isnan(values)
            gaps = np.add.reduceat(is_missing, begins, axis=1, dtype=np.int64)
            for code in range(3):
                unscored[code, bins] += gaps[outcome[rows] == code].sum(axis=0)
            sums = np.add.reduceat(np.where(is_missing, 0.0, values), begins, axis=1)
            counts = sizes - gaps
            is_scored = counts > 0
            means = sums / np.where(is_scored, counts, 1)
            n_attempts[where] += np.add.reduceat(is_scored, first, axis=0, dtype=np.int64)
            low, high = (
                np.fmin(low, np.nanmin(values, initial=np.inf)),
                np.fmax(high, np.nanmax(values, initial=-np.inf)),
            )
        else:
            means = np.add.reduceat(values, begins, axis=1) / sizes if len(bins) < n else values
            n_attempts[where] += np.diff(first, append=len(rows))[:, None]
            low, high = min(low, smallest), max(high, values.max())
        total[where] += np.add.reduceat(means, first, axis=0)
    return _Block(total, n_attempts, step_counts, unscored, float(low), float(high))
