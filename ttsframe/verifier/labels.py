"""Where a solution goes wrong, by its step scores and by its labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import into_expr, keep_name, run_plan
from ttsframe._typing import ColumnNames, FrameT, IntoExprColumn
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError
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


def first_error(step_scores: IntoExprColumn, threshold: float = 0.5) -> pl.Expr:
    """Find the first step that scores below a threshold.

    Applied to step labels (1 for a right step, 0 for a wrong one, or true and false) it gives the
    labelled first error in the same form.

    Parameters
    ----------
    step_scores
        List column of numbers or Booleans (Array and all-null columns too), (n_rows,) lists of
        (n_steps,) scores of one attempt in order, any range.
    threshold
        A step below it is an error, one at it is not.

    Returns
    -------
    pl.Expr
        Int64, elementwise, named as the input: the position of the first error from 0, -1 where no
        step is one. Null elements are skipped, and keep their position. Null where nothing is left
        (a null list, an empty list, only nulls) and where a NaN stands before the first error.

    Raises
    ------
    ParameterTypeError
        At once, when the threshold is no number, or the column is none.
    ParameterError
        At once, when the threshold is NaN.

    References
    ----------
    Zheng et al. (2024), ProcessBench: Identifying Process Errors in Mathematical Reasoning,
    arXiv:2412.06559, section 4: what a process reward model predicts.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.9, 0.2, 0.1], [0.9, 0.5], [None, 0.1], []]})
    >>> frame.select(tts.verifier.first_error("step_scores", 0.5)).to_series().to_list()
    [1, -1, 1, None]
    """
    limit = _check_threshold(threshold)
    source = into_expr(step_scores, "step_scores")
    scores = source.cast(pl.List(pl.Float64))
    step = pl.element()
    # A NaN ends the search too: whether that step is the first error is not known.
    position = (
        scores.list
        .eval((step < limit) | step.is_nan())
        .list.eval(step.fill_null(value=False).arg_true().first())
        .list.first()
        .cast(pl.Int64)
    )
    is_unknown = scores.list.get(position, null_on_oob=True).is_nan()
    is_scored = scores.list.eval(step.is_not_null()).list.any()
    found = pl.when(is_unknown).then(None).otherwise(position.fill_null(-1))
    return keep_name(pl.when(is_scored).then(found), source)


def processbench_f1(
    trajectories: FrameT,
    /,
    *,
    threshold: float | Sequence[float] = 0.5,
    labels: str = "step_labels",
    by: ColumnNames = (),
) -> FrameT:
    r"""Judge step scores by whether they find the first error, and none where there is none.

    A verifier that flags everything finds many first errors, one that flags nothing passes every
    right solution; the harmonic mean of the two accuracies rewards neither.

    Parameters
    ----------
    trajectories
        One row per solution, with `step_scores` (list of numbers, in order) and the labels.
    threshold
        A step that scores below is taken for an error; several give a row each. Tune it on other
        solutions than those that it is reported on.
    labels
        Column of labels: the position of the first error from 0 and -1 for none (integer), or a
        list per solution with a label per step, of which those below 0.5 are errors (numbers or
        Booleans).
    by
        Columns that get rows of their own, such as the benchmark's subset.

    Returns
    -------
    FrameT
        One row per (by, `threshold`), sorted:

        - `first_error_accuracy` (Float64 in [0, 1]): share of the wrong solutions whose first error
          is found at its very step; null without one;
        - `no_error_accuracy` (Float64 in [0, 1]): share of the right solutions in which no step is
          flagged; null without one;
        - `f1` (Float64 in [0, 1]): their harmonic mean, 0 where both are 0; null where one is;
        - `n_wrong`, `n_right` (UInt32): solutions counted, with and without a labelled error;
        - `n_unscored`, `n_unlabelled` (UInt32): labelled solutions for which `first_error` of the
          scores is null, and solutions without a label, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or has a dtype that cannot be used.
    ParameterError
        At once, when a threshold is NaN, there is none, or `by` names a column of the result.
    ParameterTypeError
        At once, when a threshold is no number.

    Notes
    -----
    With :math:`a_e` and :math:`a_c` the two accuracies, :math:`F_1 = 2 a_e a_c / (a_e + a_c)`.
    It is no F1 of precision and recall.

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
    >>> tts.verifier.processbench_f1(solutions, threshold=[0.25, 0.5]).select("threshold", "f1").rows()
    [(0.25, 0.6666666666666666), (0.5, 0.5)]
    """
    check_frame(trajectories, "trajectories")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_F1_COLUMNS, "step_scores", labels})
    listed = threshold if isinstance(threshold, Sequence) else (threshold,)
    limits = sorted({_check_threshold(each) for each in listed})
    if not limits:
        raise ParameterError("threshold is empty, must hold at least one number.")
    schema = require_columns(
        trajectories,
        [*groups, "step_scores", labels],
        hint=f"labels={labels!r} names the column with the labels of steps.",
    )
    label = _label(schema[labels], labels)
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: dict[str, str] = {f"key{i}": name for i, name in enumerate(groups)}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        found = pl.concat_list(first_error("step_scores", limit) for limit in limits)
        rows = lazy.select(
            *[pl.col(name).alias(key) for key, name in keys.items()],
            label.alias("label"),
            found.alias("found"),
            pl.lit(limits, pl.List(pl.Float64)).alias("threshold"),
        ).explode("found", "threshold", empty_as_null=False)
        is_labelled, is_scored = pl.col("label").is_not_null(), pl.col("found").is_not_null()
        counted = is_labelled & is_scored
        is_wrong, is_hit = pl.col("label") >= 0, pl.col("label") == pl.col("found")
        wrong, right = (
            pl.col("first_error_accuracy"),
            pl.col("no_error_accuracy"),
        )
        harmonic = pl.when(wrong + right > 0).then(2.0 * wrong * right / (wrong + right))
        return (
            rows
            .group_by(*keys, "threshold")
            .agg(
                is_hit.filter(counted & is_wrong).mean().alias("first_error_accuracy"),
                is_hit.filter(counted & ~is_wrong).mean().alias("no_error_accuracy"),
                (counted & is_wrong).sum().cast(pl.UInt32).alias("n_wrong"),
                (counted & ~is_wrong).sum().cast(pl.UInt32).alias("n_right"),
                (is_labelled & ~is_scored).sum().cast(pl.UInt32).alias("n_unscored"),
                (~is_labelled).sum().cast(pl.UInt32).alias("n_unlabelled"),
            )
            .with_columns(
                f1=pl.when(wrong.is_not_null() & right.is_not_null()).then(harmonic.fill_null(0.0))
            )
            .sort(*keys, "threshold")
            .select(*[pl.col(key).alias(name) for key, name in keys.items()], *_F1_COLUMNS)
        )

    return run_plan(trajectories, plan)


def _check_threshold(threshold: float) -> float:
    """Return a number that scores can be below of."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise ParameterTypeError(f"threshold is a {type(threshold).__name__}, must be a number.")
    if threshold != threshold:  # noqa: PLR0124  (NaN)
        raise ParameterError("threshold is NaN, which no score is below.")
    return float(threshold)


def _label(dtype: pl.DataType, name: str) -> pl.Expr:
    """Return the position of the labelled first error, -1 for none."""
    if isinstance(dtype, pl.List | pl.Array):
        return first_error(name)
    if dtype.is_integer() or dtype == pl.Null:
        return pl.col(name).cast(pl.Int64)
    raise ColumnsError(
        f"trajectories: {name!r} is {dtype}, must be the position of the first error (integer) or a "
        "list with a label per step."
    )
