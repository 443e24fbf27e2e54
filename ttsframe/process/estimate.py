"""Monte-Carlo values of steps, from the completions sampled from each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_between, check_draws, check_fraction, check_frame, check_names
from ttsframe._exprs import from_safe, raise_where, run_plan, safe_names, to_safe
from ttsframe._settings import BY
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import DataError
from ttsframe.estimators.passk import pass_at_k
from ttsframe.schema import require_columns, require_kind
from ttsframe.scoring import score_trajectories
from ttsframe.statistics.intervals import wilson_interval
from ttsframe.statistics.problem_values import describe_row

__all__ = ["estimate_steps"]

_STEP_KEYS: Final = ("problem_id", "solution_id", "step")

_ESTIMATES: Final = (
    "n_rollouts",
    "n_correct",
    "n_ungraded",
    "hard",
    "soft",
    "ci_low",
    "ci_high",
)

_HINT: Final = (
    "without 'is_correct', 'answer' is graded against 'gold', or 'answer_key' against 'gold_key'."
)

_LABELS: Final = (
    "advantage",
    "advantage_ci_low",
    "advantage_ci_high",
    "is_correct",
    "is_first_error",
    "first_error_chance",
)


def estimate_steps(
    rollouts: FrameT,
    /,
    *,
    n_rollouts: int | Sequence[int] | None = None,
    right_above: float = 0.0,
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Estimate the value of each step from the completions sampled from it.

    The value of a step is the share of its completions that reach the right answer. Math-Shepherd
    labels the training data of process reward models in this way, without human annotators.

    Parameters
    ----------
    rollouts
        One row per completion sampled from a step: `problem_id`, `solution_id`, `step` (integer
        from 0; -1: sampled from the problem, before any step), `rollout` (its number within the
        step), and `is_correct` (Boolean; null: not graded) or the columns that `score_trajectories`
        grades by: `answer_key` and `gold_key`, `answer` and `gold`, or `completion` and `gold`. The
        column `is_sampled` (Boolean) of `annotate`, if present, is false where a solution left
        nothing to complete.
    n_rollouts
        Numbers of rollouts m for which `hard@m` is estimated as well; None: none.
    right_above
        A step is labeled right if its share of right rollouts is above this number, in [0, 1]. At 0
        one right rollout is enough, which is Math-Shepherd's hard estimation; OpenR uses 0.5.
    by
        Columns that tell runs, models or annotations apart; rollouts never join across them.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    FrameT
        `steps`, one row per (by, `problem_id`, `solution_id`, `step`), sorted:

        - `n_rollouts`, `n_correct`, `n_ungraded` (UInt32): graded rollouts, the right ones among
          them, and rollouts without a grade, which are not used otherwise;
        - `hard` (Boolean): whether any rollout is right; `soft` (Float64 in [0, 1]): the share of
          right rollouts; `ci_low`, `ci_high` (Float64): Wilson interval of the probability that
          `soft` estimates, of width 0 where nothing was sampled. All null without a graded rollout;
        - `hard@m` (Float64 in [0, 1]), one per m: the probability that `hard` is true with m
          rollouts; null where there are fewer;
        - `advantage` (Float64 in [-1, 1]): `soft` minus that of the previous step, which is the
          problem for step 0; `advantage_ci_low`, `advantage_ci_high` (Float64): Newcombe's interval
          of the difference. Null where either step is null or missing;
        - `is_correct` (Boolean): the label of the step; null without a graded rollout and at step
          -1, which is the problem;
        - `is_first_error` (Boolean, never null): the first step of its solution that is labeled
          wrong. Steps that are unlabeled or missing are skipped;
        - `first_error_chance` (Float64 in [0, 1]): the chance that as many new rollouts would make it
          the first error, see the notes; null where `is_correct` is. A label from few rollouts is
          often a matter of luck.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.
    ParameterTypeError
        At once, when a number of rollouts is not an int.
    DataError
        On collection, when a step has two rollouts of the same number, because runs were not told
        apart with `by`, or when a step is null or below -1.

    See Also
    --------
    step_agreement : How far labels agree with scores, and with labels from fewer rollouts.

    Notes
    -----
    The chance that new rollouts label a step wrong is that of a beta-binomial number of right ones, with
    N draws and the posterior Beta(c + 1, N - c + 1) of a uniform prior; `first_error_chance` multiplies it
    by the chances that the steps before it are labeled right.

    With c right rollouts of N,

    .. math::

        \mathrm{hard} = \mathbb 1[c > 0], \qquad \mathrm{soft} = \frac{c}{N}, \qquad
        \mathrm{hard@}m = 1 - \binom{N-c}{m} \Big/ \binom{N}{m}

    `hard` is pass@N of the step. Its mean rises with N, so labels from different numbers of
    rollouts are not comparable; `hard@m` is comparable and unbiased. `soft` is unbiased at any N,
    with standard error :math:`\sqrt{p (1-p) / N}`. With the intervals (l, u) of a share p and
    (l', u') of the previous share p', the interval of the advantage extends from
    :math:`\sqrt{(p-l)^2 + (u'-p')^2}` below it to :math:`\sqrt{(u-p)^2 + (p'-l')^2}` above it.

    References
    ----------
    Wang et al. (2024), Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human
    Annotations, arXiv:2312.08935, section 3.3. Setlur et al. (2024), Rewarding Progress,
    arXiv:2410.08146, section 3, on advantages of steps. Newcombe (1998), Interval estimation for
    the difference between independent proportions, Statistics in Medicine 17, 873-890, method 10.
    Chen et al. (2021), arXiv:2107.03374, equation 1, on pass@k.

    Examples
    --------
    Three of five completions of a first step reach 47:

    >>> import polars as pl
    >>> import ttsframe as tts
    >>> rollouts = pl.DataFrame({
    ...     "problem_id": ["7 x 6 + 5"] * 5,
    ...     "solution_id": [0] * 5,
    ...     "step": [0] * 5,
    ...     "rollout": [0, 1, 2, 3, 4],
    ...     "answer": ["47", "46", "47", "47", "41"],
    ...     "gold": ["47"] * 5,
    ... })
    >>> steps = tts.process.estimate_steps(rollouts, n_rollouts=[1, 2])
    >>> steps.select("n_rollouts", "hard", "soft", "hard@1", "hard@2")
    shape: (1, 5)
    ┌────────────┬──────┬──────┬────────┬────────┐
    │ n_rollouts ┆ hard ┆ soft ┆ hard@1 ┆ hard@2 │
    │ ---        ┆ ---  ┆ ---  ┆ ---    ┆ ---    │
    │ u32        ┆ bool ┆ f64  ┆ f64    ┆ f64    │
    ╞════════════╪══════╪══════╪════════╪════════╡
    │ 5          ┆ true ┆ 0.6  ┆ 0.6    ┆ 0.9    │
    └────────────┴──────┴──────┴────────┴────────┘
    >>> steps.select(pl.col("ci_low", "ci_high").round(2)).row(0)
    (0.23, 0.88)
    """
    check_frame(rollouts, "rollouts")
    check_fraction(confidence_level, "confidence_level")
    check_between(right_above, "right_above", 0.0, 1.0)
    sizes: tuple[int, ...] = () if n_rollouts is None else check_draws(n_rollouts, "n_rollouts")
    at_sizes: list[str] = [f"hard@{size}" for size in sizes]
    result: tuple[str, ...] = (*_ESTIMATES, *at_sizes, *_LABELS)
    names: tuple[str, ...] = check_names(by, "by", taken={*_STEP_KEYS, *result})
    schema = require_columns(rollouts, [*names, *_STEP_KEYS, "rollout"], where="rollouts")
    require_kind(schema, "an integer", "step", where="rollouts")
    if "is_sampled" in schema:
        require_kind(schema, "Boolean", "is_sampled", where="rollouts")
    is_sampled = pl.col("is_sampled") if "is_sampled" in schema else pl.lit(value=True)
    # The caller's names are restored at the end, so none collides with a name used here.
    keys: dict[str, str] = safe_names(names)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        selected = lazy.select(
            *to_safe(keys),
            "problem_id",
            "solution_id",
            pl.col("step").cast(pl.Int64, strict=False),
            "rollout",
            pl.col("is_correct").cast(pl.Boolean),
            is_sampled.cast(pl.Boolean).alias("is_sampled"),
        )
        counted = _count(selected, keys, sizes)
        labeled = _label(counted, keys, right_above, confidence_level)
        return labeled.select(*from_safe(keys), *_STEP_KEYS, *result)

    return run_plan(_graded(rollouts), plan)


def _count(rollouts: pl.LazyFrame, keys: Mapping[str, str], sizes: Sequence[int]) -> pl.LazyFrame:
    """Count the rollouts of each step, and estimate `hard` at other numbers of them."""
    unit = {**keys, **{name: name for name in _STEP_KEYS}}
    is_correct = pl.col("is_correct")
    counted = (
        rollouts
        .group_by(*unit)
        .agg(
            pl.len().alias("n_rows"),
            pl.col("rollout").n_unique().alias("n_numbers"),
            is_correct.count().alias("n_rollouts"),
            is_correct.sum().alias("n_correct"),
            is_correct.null_count().alias("n_ungraded"),
            is_correct.mean().alias("soft"),
            pl.col("is_sampled").fill_null(value=True).any(),
            *([pass_at_k(is_correct, sizes).alias("at_sizes")] if sizes else []),
        )
        .filter(_is_sound(unit))
        .sort(*unit)
    )
    if not sizes:
        return counted
    fields = pl.col("at_sizes").struct.rename_fields([f"hard@{size}" for size in sizes])
    return counted.with_columns(fields).unnest("at_sizes")


def _label(
    counted: pl.LazyFrame, keys: Mapping[str, str], right_above: float, confidence_level: float
) -> pl.LazyFrame:
    """Add intervals, advantages and labels to the counts of each step."""
    solution = [*keys, "problem_id", "solution_id"]
    soft, step = pl.col("soft"), pl.col("step")
    wilson = wilson_interval("n_correct", "n_rollouts", confidence_level=confidence_level).struct
    first_error = pl.when(~pl.col("is_correct")).then(step).min().over(solution)
    return (
        counted
        .with_columns(
            pl.col("n_rollouts", "n_correct", "n_ungraded").cast(pl.UInt32),
            pl.when(pl.col("n_rollouts") > 0).then(pl.col("n_correct") > 0).alias("hard"),
            *[
                pl.when("is_sampled").then(wilson.field(end)).otherwise(soft).alias(end)
                for end in ("ci_low", "ci_high")
            ],
        )
        .with_columns(**_advantage(solution))
        .with_columns(pl.when(step >= 0).then(soft > right_above).alias("is_correct"))
        .with_columns((step == first_error).fill_null(value=False).alias("is_first_error"))
        .with_columns(first_error_chance=_first_error_chance(solution, right_above))
    )


def _first_error_chance(solution: Sequence[str], right_above: float) -> pl.Expr:
    """Build the chance that as many new rollouts would make a step the first error."""

    def wrong(rows: pl.Series) -> pl.Series:
        from scipy.stats import betabinom

        counts = rows.struct.unnest()
        n, right = (
            counts[name].cast(pl.Float64).to_numpy() for name in ("n_rollouts", "n_correct")
        )
        most = np.floor(n * right_above + 1e-9)
        return pl.Series(rows.name, betabinom.cdf(most, n, right + 1.0, n - right + 1.0))

    is_labeled = pl.col("is_correct").is_not_null()
    drawn = pl.struct("n_rollouts", "n_correct").map_batches(
        wrong, return_dtype=pl.Float64, is_elementwise=True
    )
    # A step that was graded without sampling is known.
    known = (~pl.col("is_correct")).cast(pl.Float64)
    is_wrong = pl.when(is_labeled).then(pl.when("is_sampled").then(drawn).otherwise(known))
    right_before = (1.0 - is_wrong.fill_null(0.0)).cum_prod().shift(1, fill_value=1.0)
    return is_wrong * right_before.over(solution, order_by="step")


def _graded(rollouts: FrameT) -> FrameT:
    """Return rollouts with `is_correct`, graded from answers if the column is missing."""
    schema = rollouts.collect_schema()
    graded = rollouts
    if "is_correct" not in schema:
        if not {"answer_key", "answer", "completion"} & set(schema):
            require_columns(rollouts, ["is_correct"], where="rollouts", hint=_HINT)
        # Scores of steps, which a rollout may have too, are not read.
        scores = [name for name in ("step_scores", "score") if name in schema]
        graded = score_trajectories(rollouts.drop(scores))
        schema = require_columns(graded, ["is_correct"], where="rollouts", hint=_HINT)
    require_kind(schema, "Boolean", "is_correct", where="rollouts")
    return graded


def _advantage(solution: Sequence[str]) -> dict[str, pl.Expr]:
    """Return the difference of each step from the previous one, and its interval."""
    names = ("step", "soft", "ci_low", "ci_high")
    before = pl.struct(names).shift(1).over(solution, order_by="step").struct
    step, soft, low, high = (pl.col(name) for name in names)
    step_before, soft_before, low_before, high_before = (before.field(name) for name in names)
    difference = soft - soft_before
    below = ((soft - low) ** 2 + (high_before - soft_before) ** 2).sqrt()
    above = ((high - soft) ** 2 + (soft_before - low_before) ** 2).sqrt()
    values = {
        "advantage": difference,
        "advantage_ci_low": difference - below,
        "advantage_ci_high": difference + above,
    }
    is_next = step - step_before == 1
    return {name: pl.when(is_next).then(value) for name, value in values.items()}


def _is_sound(unit: Mapping[str, str]) -> pl.Expr:
    """Build the filter that raises where rollouts cannot belong to one step."""
    step = pl.col("step")
    is_broken = step.is_null() | (step < -1) | (pl.col("n_numbers") < pl.col("n_rows"))

    def error(rows: pl.DataFrame) -> DataError:
        row = rows.sort([*unit]).row(0, named=True)
        where = describe_row(row, unit)
        if row["step"] is None or row["step"] < -1:
            return DataError(
                f"{where}: step is {row['step']}, must be a number from 0, or -1 for rollouts from "
                "the problem."
            )
        return DataError(
            f"{where}: {row['n_rows']} rollouts with {row['n_numbers']} numbers, expected one of "
            "each number. Hint: name the column that tells runs or annotations apart in "
            f"{BY}."
        )

    described = pl.struct(is_broken.alias("broken"), *unit, "n_rows", "n_numbers")
    return raise_where(described, error)
