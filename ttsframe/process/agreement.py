"""Agreement of step labels with a verifier's scores, and with labels from fewer rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import polars as pl

from ttsframe import _html
from ttsframe._checks import check_draws, check_fraction, check_frame, check_names, check_numbers
from ttsframe._exprs import safe_names, to_safe
from ttsframe._settings import SCORES
from ttsframe._typing import ColumnNames
from ttsframe.errors import ColumnsError, DataError
from ttsframe.process.rollout_agreement import ROLLOUTS, rollouts_table
from ttsframe.process.score_agreement import (
    FIRST_ERRORS,
    SEPARATION,
    THRESHOLDS,
    first_errors_table,
    separation_table,
    thresholds_table,
)
from ttsframe.schema import require_columns, require_kind
from ttsframe.statistics.problem_values import describe_row

__all__ = ["StepAgreement", "step_agreement"]

_STEP_KEYS: Final = ("problem_id", "solution_id", "step")
_HINT: Final = f"labels='...' and {SCORES} name the columns with them; join a verifier's scores."
_COUNTS: Final = ("n_rollouts", "n_correct")


@dataclass(frozen=True, kw_only=True, eq=False)
class StepAgreement:
    """Result of `step_agreement`: one tidy table per question, each with the columns of `by` first.

    Every `standard_error`, `ci_low` and `ci_high` uses problems as the units, because steps of one
    problem are not independent; null below two problems.

    Parameters
    ----------
    thresholds
        Labels against scores, one row per `threshold`: `n_right_accepted`, `n_right_rejected`,
        `n_wrong_accepted`, `n_wrong_rejected` (UInt32), steps labeled right or wrong whose score is
        at least the threshold or below it; `agreement` (Float64), the share of steps on which label
        and score agree, with its interval; `kappa` (Float64), Cohen's kappa, null where both call
        all steps the same; `n_problems`. None without scores or labels.
    separation
        How well scores separate right steps from wrong ones, one row: `auroc` (Float64), over all
        steps; `auroc_within`, the mean over solutions that have right and wrong steps, with its
        interval; `n_steps`, `n_right` (UInt32), steps with both a score and a label, and the steps
        labeled right among them; `n_unscored`, `n_unlabelled`, steps without a score or a label;
        `n_solutions`, `n_judged`, solutions with a step that has both, and the ones that
        `auroc_within` averages; `n_problems`. None without scores or labels.
    first_errors
        Whether scores find the first error, one row per `threshold`: `agreement` (Float64), the
        share of solutions in which the first step that scores below the threshold is the first step
        labeled wrong, or neither exists, with its interval; and the columns of `processbench_f1`.
        None without scores or labels.
    rollouts
        Hard labels from m rollouts per step instead of all, one row per `n_rollouts` m. `hard`
        (Float64): share of steps labeled right, which rises with m. `agreement`: with the labels
        from all rollouts, with its interval (null where m is all) and `kappa`. `repeat_agreement`:
        with the labels from m other rollouts, as in a second annotation, with its interval
        (`repeat_ci_low`, ...) and `repeat_kappa`; null where a step has fewer than 2 m rollouts.
        `first_error_agreement`: share of solutions whose first error is the same as with all
        rollouts, with its interval. `soft_error`: root mean square error of `soft` as an estimate
        of the true share; null where no step has two rollouts. `n_steps`, `n_short` (UInt32): steps
        with at least as many rollouts as the largest m, which all rows use, and steps with fewer;
        `n_solutions`: solutions in which no step has fewer; `n_problems`. None without counts of
        rollouts.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> steps = pl.DataFrame({
    ...     "problem_id": ["a", "a"],
    ...     "solution_id": [0, 0],
    ...     "step": [0, 1],
    ...     "is_correct": [True, False],
    ...     "score": [0.9, 0.2],
    ... })
    >>> report = tts.process.step_agreement(steps)
    >>> report.thresholds["agreement"].item()
    1.0
    >>> report.rollouts is None
    True
    """

    thresholds: pl.DataFrame | None
    separation: pl.DataFrame | None
    first_errors: pl.DataFrame | None
    rollouts: pl.DataFrame | None

    def _repr_html_(self) -> str:
        """Return the tables for notebooks."""
        tables = {field.name: getattr(self, field.name) for field in fields(self)}
        return _html.fragment(
            *(_html.table(rows, name) for name, rows in tables.items() if rows is not None)
        )

    def to_dict(self) -> dict[str, object]:
        """Return the tables in a form that `json.dumps` accepts.

        Returns
        -------
        dict[str, object]
            The rows of each table; None for a missing table.
        """
        tables = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: None if table is None else table.to_dicts() for name, table in tables.items()}


def step_agreement(
    steps: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    labels: str | None = None,
    scores: str | None = None,
    wrong_below: float | Sequence[float] = 0.5,
    n_rollouts: int | Sequence[int] | None = None,
    by: ColumnNames = (),
    confidence_level: float = 0.95,
) -> StepAgreement:
    r"""Measure how far labels of steps agree with a verifier's scores, and with fewer rollouts.

    Labels from completions are noisy, and more rollouts label more steps right. The agreement of the
    labels with themselves is therefore the limit for a process reward model.

    Parameters
    ----------
    steps
        One row per step, with `problem_id`, `solution_id`, `step` (integer; steps below 0 are left
        out), and labels and scores, or the counts `n_rollouts` and `n_correct` of `estimate_steps`,
        or all of these. A lazy frame is collected, with only the columns that are read.
    labels
        Boolean column that tells whether a step is right; null: not labeled. None: `is_correct`, if
        that and scores exist.
    scores
        Numeric column with the verifier's score of a step, higher is better; null or NaN: no score.
        None: `score`, if that and labels exist.
    wrong_below
        One or several thresholds: a step counts as wrong if its score is below. The results have
        them in the column `threshold`.
    n_rollouts
        Numbers of rollouts m to compare. None: powers of two up to the median number of rollouts of
        a step.
    by
        Columns that get rows of their own, such as the verifier or the benchmark.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    StepAgreement
        The tables; a table is None if `steps` lacks its columns.

    Raises
    ------
    ColumnsError
        When a column is missing or has a dtype that cannot be used, or when there is neither a label
        with a score nor a count of rollouts.
    ParameterError
        When a parameter is out of range or `by` names a column of a result.
    ParameterTypeError
        When a parameter is not a number.
    DataError
        When a step appears twice, because verifiers or runs are not told apart with `by`, or is
        null, or when it has more right rollouts than rollouts.

    See Also
    --------
    estimate_steps : Makes the labels, and counts the rollouts.

    Notes
    -----
    Nothing is drawn: the label from m of a step's N rollouts is averaged over all subsets of m. With
    c right rollouts it is right with probability

    .. math:: p_m = 1 - \binom{N-c}{m} \Big/ \binom{N}{m}

    The label from m agrees with the label from all N with probability :math:`p_m` if c > 0, else 1;
    labels from two disjoint subsets agree with probability :math:`1 + 2 p_m - 2 p_{2m}`; the first
    error stays in place with probability :math:`\prod p_m` over the steps before it. The columns
    `repeat_` are unbiased estimates for two annotations of m rollouts; `agreement` is higher,
    because the m are among the N. `soft` has the mean squared error
    :math:`c (N - c) / (N (N - 1)) / m`. Kappas are computed from the expected counts.

    References
    ----------
    Wang et al. (2024), Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human
    Annotations, arXiv:2312.08935, section 5, on the quality of annotations by number of
    completions. Cohen (1960), A coefficient of agreement for nominal scales, Educational and
    Psychological Measurement 20, 37-46.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> steps = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b", "b"],
    ...     "solution_id": [0, 0, 0, 0],
    ...     "step": [0, 1, 0, 1],
    ...     "n_rollouts": [4, 4, 4, 4],
    ...     "n_correct": [4, 1, 2, 0],
    ... })
    >>> report = tts.process.step_agreement(steps)
    >>> columns = ["n_rollouts", "hard", "agreement", "repeat_agreement", "first_error_agreement"]
    >>> report.rollouts.select(pl.col(columns).round(3))
    shape: (3, 5)
    ┌────────────┬───────┬───────────┬──────────────────┬───────────────────────┐
    │ n_rollouts ┆ hard  ┆ agreement ┆ repeat_agreement ┆ first_error_agreement │
    │ ---        ┆ ---   ┆ ---       ┆ ---              ┆ ---                   │
    │ u32        ┆ f64   ┆ f64       ┆ f64              ┆ f64                   │
    ╞════════════╪═══════╪═══════════╪══════════════════╪═══════════════════════╡
    │ 1          ┆ 0.438 ┆ 0.688     ┆ 0.708            ┆ 0.375                 │
    │ 2          ┆ 0.583 ┆ 0.833     ┆ 0.667            ┆ 0.667                 │
    │ 4          ┆ 0.75  ┆ 1.0       ┆ null             ┆ 1.0                   │
    └────────────┴───────┴───────────┴──────────────────┴───────────────────────┘
    """
    check_frame(steps, "steps")
    check_fraction(confidence_level, "confidence_level")
    thresholds = check_numbers(wrong_below, "wrong_below")
    sizes = None if n_rollouts is None else check_draws(n_rollouts, "n_rollouts")
    taken = {*_STEP_KEYS, *THRESHOLDS, *SEPARATION, *FIRST_ERRORS, *ROLLOUTS}
    names: tuple[str, ...] = check_names(by, "by", taken=taken)
    schema = require_columns(steps, [*names, *_STEP_KEYS], where="steps")
    require_kind(schema, "an integer", "step", where="steps")
    label, score = labels or "is_correct", scores or "score"
    if labels or scores:
        require_columns(steps, [label, score], where="steps", hint=_HINT)
    read = _columns(schema, label, score)
    # A constant key makes the tables without `by` a special case of those with it.
    keys: dict[str, str] = safe_names(names)
    groups = [*keys, "part"]
    table = (
        steps
        .lazy()
        .select(
            *to_safe(keys),
            "problem_id",
            "solution_id",
            pl.col("step").cast(pl.Int64, strict=False),
            **read,
        )
        .filter((pl.col("step") >= 0).fill_null(value=True))
        .with_columns(part=pl.lit(0, pl.Int8))
        .sort(*groups, *_STEP_KEYS)
        .collect()
    )
    _check_rows(table, keys)

    def named(made: pl.DataFrame) -> pl.DataFrame:
        return made.drop("part").rename(keys)

    cut = separation = first_errors = rollouts = None
    if "score" in read:
        cut = named(thresholds_table(table, groups, thresholds, confidence_level))
        separation = named(separation_table(table, groups, confidence_level))
        first_errors = named(first_errors_table(table, groups, thresholds, confidence_level))
    if "n_correct" in read:
        rollouts = named(rollouts_table(table, groups, sizes, confidence_level))
    return StepAgreement(
        thresholds=cut, separation=separation, first_errors=first_errors, rollouts=rollouts
    )


def _columns(schema: pl.Schema, labels: str, scores: str) -> dict[str, pl.Expr]:
    """Return the columns of labels, scores and counts that exist, after checking their dtypes."""
    read: dict[str, pl.Expr] = {}
    if {labels, scores} <= set(schema):
        hint = "labels='...' names the column with the labels."
        require_kind(schema, "Boolean", labels, where="steps", hint=hint)
        require_kind(schema, "a number", scores, where="steps")
        read["label"] = pl.col(labels).cast(pl.Boolean)
        read["score"] = pl.col(scores).cast(pl.Float64).fill_nan(None)
    if set(_COUNTS) <= set(schema):
        require_kind(schema, "an integer", *_COUNTS, where="steps")
        read |= {name: pl.col(name).cast(pl.Int64) for name in _COUNTS}
    if not read:
        raise ColumnsError(
            f"steps has neither labels and scores ({labels!r}, {scores!r}) nor counts of rollouts "
            f"('n_rollouts', 'n_correct'); found: {schema.names()}. Hint: tts.process.estimate_steps "
            "counts rollouts; join a verifier's scores as a column, and name it in "
            f"{SCORES}."
        )
    return read


def _check_rows(table: pl.DataFrame, keys: dict[str, str]) -> None:
    """Raise if a step appears twice or has impossible counts."""
    unit = {**keys, **{name: name for name in _STEP_KEYS}}
    repeated = table.filter(table.select([*unit]).is_duplicated())
    if repeated.height:
        row = repeated.row(0, named=True)
        raise DataError(
            f"{describe_row(row, unit)}: several rows, expected one per step. Hint: name the column that "
            "tells verifiers or runs apart in by=(...), or keep one of several texts for a step, such as "
            "those that are 'is_on_path'."
        )
    if table["step"].has_nulls():
        row = table.filter(pl.col("step").is_null()).row(0, named=True)
        raise DataError(f"{describe_row(row, unit)}: step is null, must be a number from 0.")
    if "n_correct" in table.columns:
        n, c = pl.col("n_rollouts"), pl.col("n_correct")
        broken = table.filter((c > n) | (c < 0) | (n < 0) | (n.is_null() != c.is_null()))
        if broken.height:
            row = broken.row(0, named=True)
            raise DataError(
                f"{describe_row(row, unit)}: n_correct {row['n_correct']} of n_rollouts "
                f"{row['n_rollouts']}, must be between 0 and n_rollouts."
            )
