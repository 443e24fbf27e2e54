"""The first wrong step of a solution, by its step scores and by its labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names, check_number, check_numbers
from ttsframe._exprs import from_safe, into_expr, keep_name, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, FrameT, IntoExprColumn
from ttsframe.errors import ColumnsError
from ttsframe.schema import require_columns

__all__ = ["first_error", "processbench_f1"]

_F1_COLUMNS: Final = (
    "threshold",
    "first_error_accuracy",
    "no_error_accuracy",
    "f1",
    "n_wrong",
    "n_right",
    "n_unscored",
    "n_unlabelled",
)


def first_error(step_scores: IntoExprColumn, error_threshold: float = 0.5) -> pl.Expr:
    """Find the first step with a score below a threshold.

    Applied to step labels (1 or true for a right step, 0 or false for a wrong one), it returns the
    labeled first error in the same form.

    Parameters
    ----------
    step_scores
        List column of numbers or Booleans (Array and all-null columns too), (n_rows,) lists of
        (n_steps,) scores of one attempt in order, any range.
    error_threshold
        A step with a score strictly below it is an error.

    Returns
    -------
    pl.Expr
        Int64, elementwise, named as the input: the position of the first error from 0, -1 if there
        is none. Null elements are skipped but counted in positions. Null if no element is left (a
        null list, an empty list, only nulls) or a NaN precedes the first error.

    Raises
    ------
    ParameterTypeError
        At once, when the threshold is not a number, or the input is not a column.
    ParameterError
        At once, when the threshold is NaN.

    References
    ----------
    Zheng et al. (2024), ProcessBench: Identifying Process Errors in Mathematical Reasoning,
    arXiv:2412.06559, section 4, on predictions of process reward models.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.9, 0.2, 0.1], [0.9, 0.5], [None, 0.1], []]})
    >>> frame.select(tts.verifier.first_error("step_scores", 0.5)).to_series().to_list()
    [1, -1, 1, None]
    """
    limit = check_number(error_threshold, "error_threshold")
    source = into_expr(step_scores, "step_scores")
    scores = source.cast(pl.List(pl.Float64))
    step = pl.element()
    # A NaN ends the search too, because that step could be the first error.
    position = (
        scores.list
        .eval((step < limit) | step.is_nan())
        .list.eval(step.fill_null(value=False).arg_true().first())
        .list.first()
        .cast(pl.Int64)
    )
    is_unknown = scores.list.get(position, null_on_oob=True).is_nan()
    is_scored = scores.list.eval(step.is_not_null()).list.any()
    error = pl.when(is_unknown).then(None).otherwise(position.fill_null(-1))
    return keep_name(pl.when(is_scored).then(error), source)


def processbench_f1(
    trajectories: FrameT,
    /,
    *,
    error_threshold: float | Sequence[float] = 0.5,
    labels: str = "step_labels",
    by: ColumnNames = (),
) -> FrameT:
    r"""Measure how often step scores find the first error, and none in right solutions.

    A verifier that flags every step finds many first errors, and one that flags none passes every
    right solution. The harmonic mean of the two accuracies rewards neither.

    Parameters
    ----------
    trajectories
        One row per solution, with `step_scores` (list of numbers, in order) and the labels.
    error_threshold
        As in `first_error`; each of several values gets a row. Tune it on other solutions than
        those that it is evaluated on.
    labels
        Column of labels: the position of the first error from 0 and -1 for none (integer), or a
        list with one label per step, where labels below 0.5 are errors (numbers or Booleans).
    by
        Columns that define separate groups, for example the subset of the benchmark.

    Returns
    -------
    FrameT
        One row per (by, `threshold`), sorted:

        - `first_error_accuracy` (Float64 in [0, 1]): share of the wrong solutions whose first error
          is found at the right step; null if there are none;
        - `no_error_accuracy` (Float64 in [0, 1]): share of the right solutions in which no step is
          flagged; null if there are none;
        - `f1` (Float64 in [0, 1]): their harmonic mean, 0 if both are 0, null if one is null;
        - `n_wrong`, `n_right` (UInt32): solutions counted, with and without a labeled error;
        - `n_unscored`, `n_unlabelled` (UInt32): labeled solutions for which `first_error` of the
          scores is null, and solutions without a label, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has an unsuitable dtype.
    ParameterError
        At once, when a threshold is NaN, there is none, or `by` names a column of the result.
    ParameterTypeError
        At once, when a threshold is not a number.

    Notes
    -----
    With :math:`a_e` and :math:`a_c` the two accuracies, :math:`F_1 = 2 a_e a_c / (a_e + a_c)`.
    It is not the F1 of precision and recall.

    References
    ----------
    Zheng et al. (2024), ProcessBench: Identifying Process Errors in Mathematical Reasoning,
    arXiv:2412.06559, section 3.3, and github.com/QwenLM/ProcessBench, ``code/run_eval.py``.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> solutions = pl.DataFrame({
    ...     "step_scores": [[0.9, 0.2, 0.1], [0.9, 0.8, 0.3], [0.9, 0.8], [0.4, 0.9]],
    ...     "step_labels": [[1, 0, 0], [1, 0, 0], [1, 1], [1, 1]],
    ... })
    >>> f1 = tts.verifier.processbench_f1(solutions, error_threshold=[0.25, 0.5])
    >>> f1.select("threshold", "f1").rows()
    [(0.25, 0.6666666666666666), (0.5, 0.5)]
    """
    check_frame(trajectories, "trajectories")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_F1_COLUMNS, "step_scores", labels})
    limits = check_numbers(error_threshold, "error_threshold")
    schema = require_columns(
        trajectories,
        [*groups, "step_scores", labels],
        hint=f"labels={labels!r} names the column with the step labels.",
    )
    label = _label(schema[labels], labels)
    keys: dict[str, str] = safe_names(groups)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        predicted = pl.concat_list(first_error("step_scores", limit) for limit in limits)
        rows = lazy.select(
            *to_safe(keys),
            label.alias("label"),
            predicted.alias("predicted"),
            pl.lit(limits, pl.List(pl.Float64)).alias("threshold"),
        ).explode("predicted", "threshold", empty_as_null=False)
        is_labeled, is_scored = pl.col("label").is_not_null(), pl.col("predicted").is_not_null()
        is_wrong, is_hit = pl.col("label") >= 0, pl.col("label") == pl.col("predicted")
        wrong, right = is_labeled & is_scored & is_wrong, is_labeled & is_scored & ~is_wrong
        accuracies = pl.col("first_error_accuracy"), pl.col("no_error_accuracy")
        product, total = accuracies[0] * accuracies[1], accuracies[0] + accuracies[1]
        harmonic = pl.when(total > 0).then(2.0 * product / total).otherwise(0.0)
        return (
            rows
            .group_by(*keys, "threshold")
            .agg(
                is_hit.filter(wrong).mean().alias("first_error_accuracy"),
                is_hit.filter(right).mean().alias("no_error_accuracy"),
                wrong.sum().cast(pl.UInt32).alias("n_wrong"),
                right.sum().cast(pl.UInt32).alias("n_right"),
                (is_labeled & ~is_scored).sum().cast(pl.UInt32).alias("n_unscored"),
                (~is_labeled).sum().cast(pl.UInt32).alias("n_unlabelled"),
            )
            .with_columns(f1=pl.when(total.is_not_null()).then(harmonic))
            .sort(*keys, "threshold")
            .select(*from_safe(keys), *_F1_COLUMNS)
        )

    return run_plan(trajectories, plan)


def _label(dtype: pl.DataType, name: str) -> pl.Expr:
    """Return the position of the labeled first error, -1 if there is none."""
    if isinstance(dtype, pl.List | pl.Array):
        return first_error(name)
    if dtype.is_integer() or dtype == pl.Null:
        return pl.col(name).cast(pl.Int64)
    raise ColumnsError(
        f"trajectories: {name!r} is {dtype}, must be the position of the first error (integer) or a "
        "list with a label per step."
    )
