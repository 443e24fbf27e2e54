"""Values of steps by completing them: what Monte-Carlo annotation says of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from ttsframe._checks import check_between, check_draws, check_fraction, check_frame, check_names
from ttsframe._exprs import raise_where, run_plan
from ttsframe._settings import BY
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import ColumnsError, DataError
from ttsframe.estimators.passk import pass_at_k
from ttsframe.schema import require_columns
from ttsframe.scoring import score_trajectories
from ttsframe.statistics.intervals import wilson_interval
from ttsframe.statistics.units import place

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

_HINT: Final = "without it, 'answer' is graded against 'gold', or 'answer_key' against 'gold_key'."

_LABELS: Final = (
    "advantage",
    "advantage_ci_low",
    "advantage_ci_high",
    "is_correct",
    "is_first_error",
)


def estimate_steps(
    rollouts: FrameT,
    /,
    *,
    n_rollouts: int | Sequence[int] | None = None,
    threshold: float = 0.0,
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Estimate the value of each step from the completions that were sampled from it.

    A step is as good as what can still be made of it: complete it some times, and count how often
    the right answer comes out. Math-Shepherd labels training data for process reward models in this
    way, without a person who reads the steps.

    Parameters
    ----------
    rollouts
        One row per completion sampled from a step: `problem_id`, `solution_id`, `step` (integer
        from 0; -1: sampled from the problem, before any step), `rollout` (its number within the
        step), and `is_correct` (Boolean; null: not graded) or what `score_trajectories` grades by:
        `answer_key` and `gold_key`, `answer` and `gold`, or `completion` and `gold`. `is_sampled`
        (Boolean), where `annotate` made it, is false where a solution left nothing to complete.
    n_rollouts
        Numbers of rollouts m for which `hard` is estimated besides; None: for no others than there
        are.
    threshold
        Share of right rollouts, in [0, 1], above which a step is labelled right. At 0 one right
        rollout is enough, which is Math-Shepherd's hard estimation; OpenR takes 0.5.
    by
        Columns that tell runs, models or annotations apart; rollouts never join across them.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    FrameT
        `steps`, one row per (by, `problem_id`, `solution_id`, `step`), sorted:

        - `n_rollouts`, `n_correct`, `n_ungraded` (UInt32): graded rollouts, those of them that are
          right, and rollouts without a grade, which count nowhere else;
        - `hard` (Boolean): whether any rollout is right; `soft` (Float64 in [0, 1]): the share that
          is; `ci_low`, `ci_high` (Float64): Wilson interval of the chance that `soft` estimates,
          without a width where nothing was sampled. All null without a graded rollout;
        - `hard@m` (Float64 in [0, 1]), one per m: the chance that `hard` is true with m rollouts;
          null where there are fewer;
        - `advantage` (Float64 in [-1, 1]): `soft` less that of the step numbered one lower, which
          before step 0 is the problem; `advantage_ci_low`, `advantage_ci_high` (Float64): Newcombe's
          interval of the difference. Null where either step is null or not there;
        - `is_correct` (Boolean): the step's label; null without a graded rollout and at step -1,
          which is no step;
        - `is_first_error` (Boolean, never null): the first step of its solution that is labelled
          wrong. Steps that are not labelled, or not there, are passed over.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.
    ParameterTypeError
        At once, when a number of rollouts is no int.
    DataError
        On collection, when a step has two rollouts of one number: rows of several runs were not
        told apart with `by`; or when a step is null or below -1.

    See Also
    --------
    step_agreement : How far labels agree at other numbers of rollouts, and with scores.

    Notes
    -----
    With c right ones of N rollouts,

    .. math::

        \mathrm{hard} = \mathbb 1[c > 0], \qquad \mathrm{soft} = \frac{c}{N}, \qquad
        \mathrm{hard@}m = 1 - \binom{N-c}{m} \Big/ \binom{N}{m}

    `hard` is pass@N of the step. Its mean rises with N, so that labels made with different numbers
    of rollouts are not comparable; `hard@m` is, without bias. `soft` has no bias at any N, and its
    standard error is :math:`\sqrt{p (1-p) / N}`. With the intervals (l, u) of a share p and
    (l', u') of the share p' before it, that of the advantage reaches from
    :math:`\sqrt{(p-l)^2 + (u'-p')^2}` below it to :math:`\sqrt{(u-p)^2 + (p'-l')^2}` above.

    References
    ----------
    Wang et al. (2024), Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human
    Annotations, arXiv:2312.08935, section 3.3. Setlur et al. (2024), Rewarding Progress,
    arXiv:2410.08146, section 3, on advantages of steps. Newcombe (1998), Interval estimation for
    the difference between independent proportions, Statistics in Medicine 17, 873-890, method 10.
    Chen et al. (2021), arXiv:2107.03374, equation 1, on pass@k.

    Examples
    --------
    Five completions of a first step towards 7 x 6 + 5, of which three reach 47:

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
    limit = check_between(threshold, "threshold", 0.0, 1.0)
    sizes: tuple[int, ...] = () if n_rollouts is None else check_draws(n_rollouts, "n_rollouts")
    at_sizes: list[str] = [f"hard@{size}" for size in sizes]
    made: tuple[str, ...] = (*_ESTIMATES, *at_sizes, *_LABELS)
    names: tuple[str, ...] = check_names(by, "by", taken={*_STEP_KEYS, *made})
    schema = require_columns(rollouts, [*names, *_STEP_KEYS, "rollout"], where="rollouts")
    if not (schema["step"].is_integer() or schema["step"] == pl.Null):
        raise ColumnsError(
            f"rollouts: 'step' is {schema['step']}, must be an integer from 0, or -1."
        )
    graded = _graded(rollouts)
    is_sampled = pl.col("is_sampled") if "is_sampled" in schema else pl.lit(value=True)
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: dict[str, str] = {f"key{i}": name for i, name in enumerate(names)}
    solution = [*keys, "problem_id", "solution_id"]
    unit = {**keys, **{name: name for name in _STEP_KEYS}}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        is_correct = pl.col("is_correct")
        counted = (
            lazy
            .select(
                *[pl.col(name).alias(key) for key, name in keys.items()],
                "problem_id",
                "solution_id",
                pl.col("step").cast(pl.Int64, strict=False),
                "rollout",
                is_correct.cast(pl.Boolean),
                is_sampled.cast(pl.Boolean).alias("is_sampled"),
            )
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
        )
        if sizes:
            fields = pl.col("at_sizes").struct.rename_fields(at_sizes)
            counted = counted.with_columns(fields).unnest("at_sizes")
        soft, step = pl.col("soft"), pl.col("step")
        is_known, is_wrong = pl.col("n_rollouts") > 0, ~pl.col("is_correct")
        interval = wilson_interval("n_correct", "n_rollouts", confidence_level=confidence_level)
        return (
            counted
            .sort(*unit)
            .with_columns(
                pl.col("n_rollouts", "n_correct", "n_ungraded").cast(pl.UInt32),
                pl.when(is_known).then(pl.col("n_correct") > 0).alias("hard"),
                *[
                    pl
                    .when("is_sampled")
                    .then(interval.struct.field(end))
                    .otherwise(soft)
                    .alias(end)
                    for end in ("ci_low", "ci_high")
                ],
            )
            .with_columns(**_advantage(solution))
            .with_columns(pl.when(step >= 0).then(soft > limit).alias("is_correct"))
            .with_columns(
                (step == pl.when(is_wrong).then(step).min().over(solution))
                .fill_null(value=False)
                .alias("is_first_error")
            )
            .select(
                *[pl.col(key).alias(name) for key, name in keys.items()],
                *_STEP_KEYS,
                *made,
            )
        )

    return run_plan(graded, plan)


def _graded(rollouts: FrameT) -> FrameT:
    """Return rollouts with `is_correct`, made from answers where it is not there."""
    schema = rollouts.collect_schema()
    graded = rollouts
    if "is_correct" not in schema:
        if not {"answer_key", "answer", "completion"} & set(schema):
            require_columns(rollouts, ["is_correct"], where="rollouts", hint=_HINT)
        # Not the scores of steps, which a rollout may have too.
        others = [name for name in ("step_scores", "score") if name in schema]
        graded = score_trajectories(rollouts.drop(others))
        schema = require_columns(graded, ["is_correct"], where="rollouts", hint=_HINT)
    if schema["is_correct"] not in {pl.Boolean, pl.Null}:
        raise ColumnsError(f"rollouts: 'is_correct' is {schema['is_correct']}, must be Boolean.")
    return graded


def _advantage(solution: Sequence[str]) -> dict[str, pl.Expr]:
    """Return the difference of each step to the one before it, and its interval."""
    names = ("step", "soft", "ci_low", "ci_high")
    before = pl.struct(names).shift(1).over(solution, order_by="step").struct
    step, soft, low, high = (pl.col(name) for name in names)
    step_before, soft_before, low_before, high_before = (before.field(name) for name in names)
    difference = soft - soft_before
    below = ((soft - low) ** 2 + (high_before - soft_before) ** 2).sqrt()
    above = ((high - soft) ** 2 + (soft_before - low_before) ** 2).sqrt()
    return {
        f"advantage{end}": pl.when(step - step_before == 1).then(value)
        for end, value in {
            "": difference,
            "_ci_low": difference - below,
            "_ci_high": difference + above,
        }.items()
    }


def _is_sound(unit: Mapping[str, str]) -> pl.Expr:
    """Build the filter that raises where rollouts cannot be those of one step."""
    step = pl.col("step")
    is_broken = step.is_null() | (step < -1) | (pl.col("n_numbers") < pl.col("n_rows"))

    def error(rows: pl.DataFrame) -> DataError:
        row = rows.sort([*unit]).row(0, named=True)
        where = place(row, unit)
        if row["step"] is None or row["step"] < -1:
            return DataError(
                f"{where}: step is {row['step']}, must be a number from 0, or -1 for rollouts from "
                "the problem itself."
            )
        return DataError(
            f"{where}: {row['n_rows']} rollouts with {row['n_numbers']} numbers, expected one of "
            "each number. Hint: name the column that tells runs or annotations apart in "
            f"{BY}."
        )

    described = pl.struct(is_broken.alias("broken"), *unit, "n_rows", "n_numbers")
    return raise_where(described, error)
