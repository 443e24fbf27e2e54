"""Early stopping of a whole run, replayed on stored attempts: when the interval of its accuracy is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names, check_positive
from ttsframe._exprs import from_safe, in_order, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.curves.stopping import attempted_once
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns

__all__ = ["stop_when_narrow"]

_NARROW: Final[dict[str, pl.DataType]] = {
    "width": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "is_narrow": pl.Boolean(),
    "accuracy": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_available": pl.UInt32(),
    "tokens_per_problem": pl.Float64(),
}


def stop_when_narrow(
    trajectories: FrameT,
    /,
    *,
    width: float | Sequence[float],
    min_attempts: int = 8,
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Replay a run until the interval of its accuracy is narrow: one more attempt at each problem a time.

    Attempts shorten the interval for these problems only. How many more problems an interval for new
    ones needs, `variance_components` says.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `is_correct`; `n_tokens` is read if present.
    width
        Width of the interval, upper end less lower end, at which attempts stop, in (0, 1); one or
        several.
    min_attempts
        Attempts at each problem before the width is looked at, at least 2. Fewer than 8 can stop on a
        variance that is too small by luck.
    by
        Columns that identify a run.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `width`), sorted:

        - `n_attempts` (UInt32): attempts at each problem when the interval is narrow enough, or all of
          `n_available`; null where there are fewer than two;
        - `is_narrow` (Boolean): whether it is;
        - `accuracy`, `ci_low`, `ci_high` (Float64 in [0, 1]): mean over problems of their shares of right
          attempts, with the interval for other attempts at these problems;
        - `n_problems` (UInt32), `n_available` (UInt32): problems, and attempts that every one of them
          has, graded, from attempt 0 on;
        - `tokens_per_problem` (Float64): mean over problems of the tokens used; null without `n_tokens`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.
    DataError
        On collection, when an attempt at a problem appears twice.

    See Also
    --------
    stopping_points : Stops each problem for itself, when its vote is decided.

    Notes
    -----
    After n attempts at each of Q problems, of which :math:`c_q` are right, the interval is that of
    `scaling_curve` with target="these_problems",

    .. math::

        \bar p \pm z \sqrt{\frac{1}{Q^2} \sum_q \frac{p_q (1 - p_q)}{n - 1} + \frac{z^2}{4 (Q n)^2}},
        \qquad p_q = c_q / n

    It is looked at after every attempt, so a run stops when its estimated variance happens to be low.
    With at least 8 attempts this hardly matters, because the variance is a sum over all problems: in
    simulation 95 % intervals held the accuracy in 94.2 to 96.1 % of runs of 30 and 100 problems, in 92.6
    % in the worst case with at least 2 (`benchmarks/results/stopping.txt`). An asymptotic confidence
    sequence (Waudby-Smith et al.), which holds under any stopping, needs more than twice the attempts.

    References
    ----------
    Anscombe, "Large-sample theory of sequential estimation", Proceedings of the Cambridge Philosophical
    Society 48 (1952), 600-607. Waudby-Smith et al., "Time-uniform central limit theory and asymptotic
    confidence sequences", arXiv:2103.06476.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(30, 64, seed=0)
    >>> graded = run.with_columns(is_correct="true_is_correct")
    >>> found = tts.curves.stop_when_narrow(graded, width=[0.05, 0.1])
    >>> found.select("width", "n_attempts", "is_narrow").rows()
    [(0.05, 40, True), (0.1, 9, True)]
    """
    check_frame(trajectories, "trajectories")
    listed: Sequence[float] = width if isinstance(width, Sequence) else (width,)
    widths = sorted({float(check_fraction(one, "width")) for one in listed})
    if not widths:
        raise ParameterError("width is empty, must hold at least one.")
    if check_positive(min_attempts, "min_attempts") < 2:
        raise ParameterError(
            f"min_attempts == {min_attempts}, must be at least 2: one attempt at each problem has no "
            "variance."
        )
    level = check_fraction(confidence_level, "confidence_level")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_NARROW, "problem_id", "attempt"})
    schema: pl.Schema = require_columns(
        trajectories, [*groups, "problem_id", "attempt", "is_correct"]
    )
    keys: dict[str, str] = safe_names(groups)
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    tokens = pl.col("n_tokens") if "n_tokens" in schema else pl.lit(None)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lazy.select(
            *to_safe(keys),
            "problem_id",
            pl.col("attempt").cast(pl.Int64),
            right=pl.col("is_correct").cast(pl.Float64),
            tokens=tokens.cast(pl.Float64),
            run=pl.lit(0),
        )
        looks = _looks([*keys, "run"], rows.filter(attempted_once(keys)), z)
        return (
            looks
            .with_columns(width=pl.lit(widths))
            .explode("width", empty_as_null=False)
            .with_columns(
                is_narrow=(pl.col("ci_high") - pl.col("ci_low") <= pl.col("width"))
                & (pl.col("n_attempts") >= min_attempts)
            )
            .sort(*keys, "width", ~pl.col("is_narrow").fill_null(value=False), _when_last())
            .group_by(*keys, "run", "width", maintain_order=True)
            .first()
            .select(
                *from_safe(keys), *[pl.col(name).cast(dtype) for name, dtype in _NARROW.items()]
            )
        )

    return run_plan(trajectories, plan)


def _when_last() -> pl.Expr:
    """Order looks so that the first narrow one comes first, or the last of all."""
    n = pl.col("n_attempts").cast(pl.Int64)
    return pl.when(pl.col("is_narrow")).then(n).otherwise(-n)


def _looks(run: Sequence[str], rows: pl.LazyFrame, z: float) -> pl.LazyFrame:
    """Return the interval of each run after 2, 3, ... attempts at every problem."""
    of_problem = [*run, "problem_id"]
    n_available = (
        pl.col("attempt").filter(pl.col("right").is_not_null()).sort()
        == pl.int_range(pl.col("right").count())
    ).sum()
    available = (
        rows
        .group_by(of_problem)
        .agg(n=n_available)
        .group_by([*run])
        .agg(n_available=pl.col("n").min(), n_problems=pl.len().cast(pl.Float64))
    )
    n, share = pl.col("n_attempts"), pl.col("right") / pl.col("n_attempts")
    variance = pl.when(n > 1).then(share * (1.0 - share) / (n - 1.0))
    counted = (
        rows
        .join(available, on=[*run], how="left", nulls_equal=True)
        .filter(pl.col("attempt") < pl.col("n_available"))
        .sort(*of_problem, "attempt")
        .select(
            *of_problem,
            "n_problems",
            "n_available",
            n_attempts=pl.col("attempt").cast(pl.Float64) + 1.0,
            right=pl.col("right").cum_sum().over(of_problem),
            tokens=pl.col("tokens").cum_sum().over(of_problem),
        )
        .group_by(*run, "n_attempts", "n_problems", "n_available")
        .agg(
            in_order(share).list.mean().alias("accuracy"),
            in_order(variance).list.sum().alias("variance"),
            in_order(pl.col("tokens")).list.mean().alias("tokens_per_problem"),
        )
    )
    n_problems = pl.col("n_problems")
    half = z * (pl.col("variance") / n_problems**2 + (z / 2.0 / n / n_problems) ** 2).sqrt()
    looks = counted.filter(n > 1).with_columns(
        ci_low=(pl.col("accuracy") - half).clip(0.0, 1.0),
        ci_high=(pl.col("accuracy") + half).clip(0.0, 1.0),
    )
    # A run without two attempts at every problem keeps its row.
    return available.join(
        looks.drop("n_available", "n_problems"), on=[*run], how="left", nulls_equal=True
    )
