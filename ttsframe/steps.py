"""Reductions of an attempt's step scores to one number.

A process reward model (PRM) scores every step of an attempt; a reduction turns these scores into one
score for the attempt. All reductions treat missing values alike: null elements are skipped, and a
list without any other element (null, empty, or all null) gives null, never 0 or 1. A NaN among the
elements that a reduction reads gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl

from ttsframe._exprs import into_expr, keep_name, map_column
from ttsframe._own import call, check_named, describe, failed, name_of
from ttsframe._typing import IntoExprColumn, OwnReduction, Reduction, StepReduction
from ttsframe.errors import ColumnsError, ParameterError, TtsframeError

__all__ = [
    "STEP_REDUCTIONS",
    "step_first",
    "step_geometric_mean",
    "step_last",
    "step_max",
    "step_mean",
    "step_min",
    "step_prod",
    "step_sum",
]


def step_last(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to the last one.

    The last score is the only one that depends on all steps; search-and-learn ranks by it.

    Parameters
    ----------
    step_scores
        List column of numbers (Array and all-null columns too): the scores of the steps of one
        attempt in order, in any range.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the last element, null where that is null or the
        list is empty.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.9, 0.2, 0.7], [0.9, None], []]})
    >>> frame.select(tts.step_last("step_scores")).to_series().to_list()
    [0.7, None, None]
    """
    source = into_expr(step_scores, "step_scores")
    return keep_name(_float_lists(source).list.last(), source)


def step_first(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to the first one.

    The first score shows how much of the verifier's judgment depends on the problem rather than on
    the attempt.

    Parameters
    ----------
    step_scores
        As in `step_last`.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the first element, null where that is null or the
        list is empty.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.9, 0.2, 0.7], [None, 0.9], []]})
    >>> frame.select(tts.step_first("step_scores")).to_series().to_list()
    [0.9, None, None]
    """
    source = into_expr(step_scores, "step_scores")
    return keep_name(_float_lists(source).list.first(), source)


def step_min(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to the smallest one.

    An attempt is only as good as its weakest step: the reduction of Math-Shepherd.

    Parameters
    ----------
    step_scores
        As in `step_last`.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the smallest element that is not null, NaN where
        an element is NaN, null where no element is left.

    References
    ----------
    Wang et al. (2024), Math-Shepherd, arXiv:2312.08935.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.9, None, 0.2], [0.9, float("nan")], []]})
    >>> frame.select(tts.step_min("step_scores")).to_series().to_list()
    [0.2, nan, None]
    """
    source = into_expr(step_scores, "step_scores")
    scores = _float_lists(source)
    return keep_name(_nan_where_any_is(scores, scores.list.min()), source)


def step_max(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to the largest one.

    A baseline to compare other reductions with.

    Parameters
    ----------
    step_scores
        As in `step_last`.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the largest element that is not null, NaN where
        an element is NaN, null where no element is left.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.9, None, 0.2], [0.9, float("nan")], []]})
    >>> frame.select(tts.step_max("step_scores")).to_series().to_list()
    [0.9, nan, None]
    """
    source = into_expr(step_scores, "step_scores")
    scores = _float_lists(source)
    return keep_name(_nan_where_any_is(scores, scores.list.max()), source)


def step_mean(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to their arithmetic mean.

    Unlike the product and the minimum, the mean does not favor attempts with few steps.

    Parameters
    ----------
    step_scores
        As in `step_last`.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the mean of the elements that are not null, NaN
        where an element is NaN, null where no element is left.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.75, None, 0.25], [0.9, float("nan")], []]})
    >>> frame.select(tts.step_mean("step_scores")).to_series().to_list()
    [0.5, nan, None]
    """
    source = into_expr(step_scores, "step_scores")
    return keep_name(_float_lists(source).list.mean(), source)


def step_sum(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to their sum.

    For log-probabilities the sum is the logarithm of the product. For probabilities it favors
    attempts with many steps.

    Parameters
    ----------
    step_scores
        As in `step_last`.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the sum of the elements that are not null, NaN
        where an element is NaN, null (never 0) where no element is left.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.75, None, 0.25], [0.9, float("nan")], []]})
    >>> frame.select(tts.step_sum("step_scores")).to_series().to_list()
    [1.0, nan, None]
    """
    source = into_expr(step_scores, "step_scores")
    scores = _float_lists(source)
    is_scored = scores.list.eval(pl.element().is_not_null()).list.any()
    return keep_name(pl.when(is_scored).then(scores.list.sum()), source)


def step_prod(step_scores: IntoExprColumn) -> pl.Expr:
    """Reduce step scores to their product.

    If each score is the probability that its step is correct given the steps before it, the product
    is the probability that all steps are. It favors attempts with few steps.

    Parameters
    ----------
    step_scores
        As in `step_last`.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the product of the elements that are not null,
        NaN where an element is NaN, null (never 1) where no element is left.

    References
    ----------
    Lightman et al. (2023), Let's Verify Step by Step, arXiv:2305.20050, section 2.6.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.5, None, 0.5], [0.9, float("nan")], []]})
    >>> frame.select(tts.step_prod("step_scores")).to_series().to_list()
    [0.25, nan, None]
    """
    source = into_expr(step_scores, "step_scores")
    product = _float_lists(source).map_batches(
        _list_products, return_dtype=pl.Float64, is_elementwise=True
    )
    return keep_name(product, source)


def step_geometric_mean(step_scores: IntoExprColumn) -> pl.Expr:
    r"""Reduce step scores to their geometric mean.

    The product without its preference for attempts with few steps.

    Parameters
    ----------
    step_scores
        As in `step_last`, each score at least 0.

    Returns
    -------
    pl.Expr
        Float64, elementwise, named as the input: the geometric mean of the elements that are not
        null, 0 where one of them is 0, NaN where an element is NaN or negative, null where no
        element is left.

    Notes
    -----
    .. math:: \exp\left(\frac{1}{m} \sum_{i=1}^{m} \log s_i\right)

    over the m elements that are not null.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"step_scores": [[0.5, 0.5], [0.9, 0.0], [0.9, -0.5], []]})
    >>> frame.select(tts.step_geometric_mean("step_scores")).to_series().to_list()
    [0.5, 0.0, nan, None]
    """
    source = into_expr(step_scores, "step_scores")
    logs = _float_lists(source).list.eval(pl.element().log())
    return keep_name(logs.list.mean().exp(), source)


STEP_REDUCTIONS: Final[Mapping[StepReduction, Callable[[IntoExprColumn], pl.Expr]]] = (
    MappingProxyType({
        "last": step_last,
        "min": step_min,
        "mean": step_mean,
        "prod": step_prod,
        "max": step_max,
        "sum": step_sum,
        "first": step_first,
        "geometric_mean": step_geometric_mean,
    })
)
"""The step reductions by name, as `reduction=` and `reductions=` take them."""


SCORE: Final = "score"
"""Name of the column `score` among reductions."""

_SAMPLE: Final = pl.Series("step_scores", [[0.5, 0.25], [0.75], [0.125, 0.5, 1.0]])
_SHAPE: Final = "reduction(pl.col('step_scores'))"


def named_reductions(
    reductions: Reduction | Sequence[Reduction], parameter: str = "reductions"
) -> dict[str, pl.Expr]:
    """Check reductions, names or functions; return the score that each makes, by its name."""
    chosen = check_named(reductions, parameter, STEP_REDUCTIONS, taken=[SCORE])
    return {name_of(one): reduce_steps(one, parameter) for one in chosen}


def reduce_steps(reduction: Reduction, parameter: str = "reduction") -> pl.Expr:
    """Reduce the column `step_scores` as a name or a function says."""
    if isinstance(reduction, str):
        return STEP_REDUCTIONS[reduction]("step_scores")
    own = _Own(reduction, parameter)
    own(_SAMPLE)
    return map_column(_float_lists(pl.col("step_scores")), own, pl.Float64())


@dataclass(frozen=True)
class _Own:
    """Reduces step scores by a user's function; its errors name the function."""

    function: OwnReduction
    parameter: str

    def __call__(self, lists: pl.Series) -> pl.Series:
        made = call(self.function, self.parameter, _SHAPE, pl.col("step_scores"))
        what = describe(self.function, self.parameter)
        frame = lists.alias("step_scores").to_frame()
        try:
            scores = frame.select(made.alias("score")).to_series()
        except TtsframeError:
            raise
        except Exception as error:
            hint = "it reads the lists of step scores, List(Float64), and nothing else."
            raise failed(what, error, hint) from error
        if len(scores) != len(lists):
            raise ParameterError(
                f"{what} made {len(scores)} values of {len(lists)} lists, must make one of each. Hint: "
                "step_scores.list has what works on the elements of a list, such as .list.mean()."
            )
        if not (scores.dtype.is_numeric() or scores.dtype == pl.Null):
            raise ParameterError(f"{what} made values of dtype {scores.dtype}, must make numbers.")
        return scores.cast(pl.Float64).alias(lists.name)


def _float_lists(source: pl.Expr) -> pl.Expr:
    """Return the column as lists of Float64; free for a column of that dtype."""
    return map_column(source, _to_float_lists, pl.List(pl.Float64))


def _to_float_lists(values: pl.Series) -> pl.Series:
    dtype = values.dtype
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    is_number = inner is not None and (inner.is_numeric() or inner in (pl.Boolean, pl.Null))
    if dtype != pl.Null and not is_number:
        name = repr(values.name)
        hint = "an attempt with a single score has it in the column score, which needs no reduction"
        if dtype == pl.String:
            hint = f"pl.col({name}).str.json_decode(pl.List(pl.Float64))"
        elif inner == pl.String:
            hint = f"pl.col({name}).cast(pl.List(pl.Float64))"
        raise ColumnsError(
            f"step_scores is the column {name} of dtype {dtype}, must be a list of numbers. Hint: "
            f"{hint}."
        )
    return values.cast(pl.List(pl.Float64))


def _nan_where_any_is(scores: pl.Expr, reduced: pl.Expr) -> pl.Expr:
    """Return the extremum, or NaN where a list holds a NaN, which Polars ignores."""
    has_nan = scores.list.eval(pl.element().is_nan()).list.any()
    return pl.when(has_nan).then(pl.lit(float("nan"))).otherwise(reduced)


def _list_products(lists: pl.Series) -> pl.Series:
    """Return the product of each list, computed on the Arrow values of all lists at once."""
    arrow = lists.to_arrow()
    values, offsets = arrow.values, arrow.offsets.to_numpy()
    # For an empty list reduceat raises or returns the next list's first value, and the offsets of a
    # null list may span values that belong to no list.
    if arrow.null_count or values.null_count or not (offsets[1:] > offsets[:-1]).all():
        is_scored = lists.list.eval(pl.element().is_not_null()).list.any().fill_null(value=False)
        scored = lists.filter(is_scored).list.eval(pl.element().fill_null(1.0))
        nulls = pl.Series(lists.name, [None], dtype=pl.Float64).new_from_index(0, len(lists))
        return nulls.scatter(is_scored.arg_true(), _list_products(scored))
    with np.errstate(all="ignore"):
        products = np.multiply.reduceat(values.to_numpy()[: offsets[-1]], offsets[:-1])
    return pl.Series(lists.name, products)
