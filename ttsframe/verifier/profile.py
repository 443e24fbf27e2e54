"""Mean step scores by position, of right and of wrong attempts."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names, check_positive
from ttsframe._exprs import name_numbers, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers
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
from ttsframe.verifier.tables import CLUSTERED, CLUSTERED_ALSO, Schema

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
_UNGRADED: Final = 2

_BLOCK_ROWS: Final = 1 << 14
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

    def apply(frame: pl.DataFrame) -> pl.DataFrame:
        return _profiles(
            frame, [*keys], n_bins, confidence_level, same_problems=same_problems
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


class _Sums(NamedTuple):
    """Sums over the attempts of cells, each of a problem and an outcome; arrays are (n_cells, n_bins)."""

    total: Floats
    n_attempts: Integers
    n_steps: Integers
    """(n_outcomes, n_bins)."""
    n_unscored: Integers
    """(n_outcomes, n_bins)."""
    ends: Floats
    """Smallest and largest score."""

    @classmethod
    def of_zeros(cls, n_cells: int, n_bins: int) -> _Sums:
        """Return sums of no attempts."""
        return cls(
            total=np.zeros((n_cells, n_bins)),
            n_attempts=np.zeros((n_cells, n_bins), dtype=np.int64),
            n_steps=np.zeros((3, n_bins), dtype=np.int64),
            n_unscored=np.zeros((3, n_bins), dtype=np.int64),
            ends=np.array([np.inf, -np.inf]),
        )


def _profiles(
    frame: pl.DataFrame,
    keys: list[str],
    n_bins: int,
    confidence_level: float,
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
        rows, low, high = _one_group(part, n_bins, same_problems=same_problems)
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


def _is_kept(problem: Integers, outcome: Integers) -> Flags | None:
    """Flag attempts at problems with right and wrong ones, and ungraded attempts; None: keep all."""
    has = np.zeros((int(problem.max()) + 1, len(_OUTCOMES)), dtype=bool)
    has[problem, outcome] = True
    is_mixed: Flags = has[:, 0] & has[:, 1]
    if is_mixed.all() or not is_mixed.any():
        return None
    is_kept: Flags = is_mixed[problem] | (outcome == _UNGRADED)
    return is_kept


def _one_group(
    part: pl.DataFrame, n_bins: int, *, same_problems: bool
) -> tuple[dict[str, list[object]], float, float]:
    """Return the rows of one group, and the smallest and largest score in it."""
    steps = part["steps"]
    n_steps = steps.list.len().cast(pl.Int64).to_numpy()
    # A missing score is NaN here.
    scores = steps.explode(empty_as_null=False).to_numpy()
    starts = np.cumsum(n_steps) - n_steps
    outcome = part["is_correct"].cast(pl.Int64).fill_null(_UNGRADED).to_numpy()
    problem = part["problem"].to_numpy()
    is_kept = _is_kept(problem, outcome) if same_problems else None
    rows = np.arange(len(problem)) if is_kept is None else np.flatnonzero(is_kept)
    outcome, starts, n_steps = outcome[rows], starts[rows], n_steps[rows]
    cell = problem[rows] * len(_OUTCOMES) + outcome
    occurs = np.zeros(int(cell.max()) + 1, dtype=bool)
    occurs[cell] = True
    of_cell = np.flatnonzero(occurs)
    cell = (np.cumsum(occurs) - 1)[cell]
    sums = _Sums.of_zeros(len(of_cell), n_bins)
    # Infinite scores of both signs have no mean. This setting is per thread.
    with np.errstate(invalid="ignore"):
        for begin in range(0, len(cell), _BLOCK_ROWS):
            block = slice(begin, begin + _BLOCK_ROWS)
            _add_block(sums, scores, (starts[block], n_steps[block]), outcome[block], cell[block])
    clusters = None
    if "cluster" in part.columns:
        clusters = np.empty(len(of_cell), dtype=np.int64)
        clusters[cell] = part["cluster"].to_numpy()[rows]
    low, high = sums.ends.tolist()
    return _rows(sums, of_cell % len(_OUTCOMES), clusters), low, high


def _rows(sums: _Sums, outcome: Integers, clusters: Integers | None) -> dict[str, list[object]]:
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


def _add_block(
    sums: _Sums,
    scores: Floats,
    steps: tuple[Integers, Integers],
    outcome: Integers,
    cell: Integers,
) -> None:
    """Average the bins of some attempts, and add them to the sums of their cells."""
    starts, n_steps = steps
    n_bins = sums.total.shape[1]
    means = np.zeros((n_bins, len(cell)))
    is_scored = np.zeros((n_bins, len(cell)), dtype=bool)
    for n in np.flatnonzero(np.bincount(n_steps)):
        rows = np.flatnonzero(n_steps == n)
        values = scores.take(starts[rows][:, None] + np.arange(n))
        bin_of_step = -(-np.arange(1, n + 1) * n_bins // n) - 1
        begins = np.flatnonzero(np.diff(bin_of_step, prepend=-1))
        bins, sizes = bin_of_step[begins], np.diff(begins, append=n)
        where = np.ix_(bins, rows)
        of_outcome = np.bincount(outcome[rows], minlength=3)
        sums.n_steps[:, bins] += of_outcome[:, None] * sizes
        low, high = values.min(), values.max()
        if np.isnan(low):
            is_missing = np.isnan(values)
            gaps = np.add.reduceat(is_missing, begins, axis=1, dtype=np.int64)
            for code in range(3):
                sums.n_unscored[code, bins] += gaps[outcome[rows] == code].sum(axis=0)
            of_bin = np.add.reduceat(np.where(is_missing, 0.0, values), begins, axis=1)
            counts = sizes - gaps
            means[where] = (of_bin / np.maximum(counts, 1)).T
            is_scored[where] = (counts > 0).T
            low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        else:
            is_whole = len(bins) == n
            of_bin = values if is_whole else np.add.reduceat(values, begins, axis=1) / sizes
            means[where] = of_bin.T
            is_scored[where] = True
        sums.ends[:] = np.fmin(sums.ends[0], low), np.fmax(sums.ends[1], high)
    first, end = int(cell.min()), int(cell.max()) + 1
    number, n_all = cell - first, np.bincount(cell - first)
    for i in np.flatnonzero(is_scored.any(axis=1)):
        is_full = is_scored[i].all()
        sums.total[first:end, i] += np.bincount(number, means[i])
        sums.n_attempts[first:end, i] += (
            n_all if is_full else np.bincount(number[is_scored[i]], minlength=end - first)
        )
