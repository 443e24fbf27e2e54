"""What step scores say about right and wrong attempts."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names, check_positive
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import ColumnsError
from ttsframe.intervals import student_t_interval
from ttsframe.schema import require_columns

__all__ = ["step_profile"]

_PROFILE_COLUMNS: Final = (
    "is_correct",
    "position",
    "mean_score",
    "standard_error",
    "ci_low",
    "ci_high",
    "n_attempts",
    "n_problems",
    "n_unscored_steps",
)


def step_profile(
    trajectories: FrameT,
    /,
    *,
    n_bins: int = 10,
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average step scores by relative position in the attempt, right and wrong attempts apart.

    Where the two profiles part is where the verifier begins to know; profiles that do not part mean
    that it cannot help in choosing an answer.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `step_scores` (list of numbers, in order) and
        `is_correct` (Boolean; null: not graded, a profile of its own).
    n_bins
        Number of bins of equal width along the attempt.
    by
        Columns that get profiles each, such as the run or the model.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `is_correct`, `position`) in which there is a step, sorted:

        - `position` (Float64 in (0, 1)): the bin's centre;
        - `mean_score` (Float64): mean over problems; null where no step has a score;
        - `standard_error` (Float64): of that mean, over problems; null below two;
        - `ci_low`, `ci_high` (Float64): Student's t over problems, clipped to [0, 1] where all
          step scores in the frame lie there; null below two problems;
        - `n_attempts`, `n_problems` (UInt32): those with a score in the bin;
        - `n_unscored_steps` (UInt32): steps whose score is null or NaN, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.

    Notes
    -----
    Step :math:`i = 1 \dots n` of an attempt stands at :math:`i / n`, the share of the attempt that
    the verifier has seen when it gives the score, and in bin :math:`\lceil i B / n \rceil` of
    :math:`B`. So the last step of every attempt, and the only step of an attempt of one, is in the
    last bin; an attempt with fewer steps than bins is absent from some. Scores are averaged per
    attempt, then per problem, then over problems: the problem is the unit, and neither long
    attempts nor problems with many attempts count for more.

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
    >>> profile = tts.step_profile(trajectories, n_bins=2)
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
    groups: tuple[str, ...] = check_names(by, "by", taken=_PROFILE_COLUMNS)
    schema = require_columns(trajectories, [*groups, "problem_id", "step_scores", "is_correct"])
    _check_dtypes(schema)
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: list[str] = [f"key{i}" for i in range(len(groups))]

    # Polars divides by a literal through its reciprocal, which makes 0.9500000000000001 of 9.5 / 10.
    centres = {place: (place - 0.5) / n_bins for place in range(1, n_bins + 1)}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        attempts = lazy.select(
            *[pl.col(name).alias(key) for key, name in zip(keys, groups, strict=True)],
            "problem_id",
            pl.col("is_correct").cast(pl.Boolean),
            score=pl.col("step_scores").cast(pl.List(pl.Float64)),
        ).with_row_index("row")
        problems = _per_problem(attempts, [*keys, "is_correct"], n_bins)
        return (
            _over_problems(problems, [*keys, "is_correct", "bin"], confidence_level)
            .with_columns(position=pl.col("bin").replace_strict(centres, return_dtype=pl.Float64))
            .sort(*keys, "is_correct", "position")
            .select(
                *[pl.col(key).alias(name) for key, name in zip(keys, groups, strict=True)],
                *_PROFILE_COLUMNS,
            )
        )

    return run_plan(trajectories, plan)


def _check_dtypes(schema: pl.Schema) -> None:
    """Raise unless step scores are lists of numbers and grades are Boolean."""
    scores, grades = schema["step_scores"], schema["is_correct"]
    inner = scores.inner if isinstance(scores, pl.List | pl.Array) else scores
    is_list = isinstance(scores, pl.List | pl.Array) and (inner.is_numeric() or inner == pl.Null)
    if not (is_list or scores == pl.Null):
        raise ColumnsError(
            f"trajectories: 'step_scores' is {scores}, must be a list of numbers per attempt."
        )
    if grades not in {pl.Boolean, pl.Null}:
        raise ColumnsError(f"trajectories: 'is_correct' is {grades}, must be Boolean.")


def _per_problem(attempts: pl.LazyFrame, profile: list[str], n_bins: int) -> pl.LazyFrame:
    """Average the scores of each bin per attempt, then per problem."""
    n_steps = pl.col("score").list.len().cast(pl.Int64)
    steps = (
        attempts
        .with_columns(n_steps=n_steps)
        .filter(pl.col("n_steps") > 0)
        .with_columns(step=pl.int_ranges(1, pl.col("n_steps") + 1))
        .explode("score", "step")
    )
    place = -(-pl.col("step") * n_bins // pl.col("n_steps"))
    score = pl.col("score").fill_nan(None)
    per_attempt = steps.group_by(*profile, "problem_id", "row", place.alias("bin")).agg(
        score.mean().alias("score"),
        score.min().alias("lowest"),
        score.max().alias("highest"),
        score.null_count().alias("n_unscored_steps"),
    )
    return per_attempt.group_by(*profile, "problem_id", "bin").agg(
        pl.col("score").mean(),
        pl.col("lowest").min(),
        pl.col("highest").max(),
        pl.col("score").count().alias("n_attempts"),
        pl.col("n_unscored_steps").sum(),
    )


def _over_problems(
    problems: pl.LazyFrame, point: list[str], confidence_level: float
) -> pl.LazyFrame:
    """Average problems, with the interval of the mean."""
    n_problems = pl.col("score").count()
    interval = student_t_interval(
        "mean_score",
        "standard_error",
        "n_problems",
        confidence_level=confidence_level,
        bounds=None,
    )
    are_fractions = (pl.col("lowest").min() >= 0.0) & (pl.col("highest").max() <= 1.0)
    ends = pl.col("ci_low", "ci_high")
    return (
        problems
        .group_by(point)
        .agg(
            pl.col("score").mean().alias("mean_score"),
            pl.col("score").std(ddof=1).alias("deviation"),
            n_problems.alias("n_problems").cast(pl.UInt32),
            pl.col("n_attempts", "n_unscored_steps").sum().cast(pl.UInt32),
            pl.col("lowest").min(),
            pl.col("highest").max(),
        )
        .with_columns(standard_error=pl.col("deviation") / pl.col("n_problems").sqrt())
        .with_columns(interval.struct.field("ci_low", "ci_high"))
        .with_columns(pl.when(are_fractions).then(ends.clip(0.0, 1.0)).otherwise(ends).name.keep())
    )
