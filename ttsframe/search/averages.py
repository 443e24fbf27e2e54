"""Measures of single searches, averaged over problems by depth or round."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names
from ttsframe._exprs import in_order, run_plan
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import ColumnsError
from ttsframe.schema import require_columns
from ttsframe.statistics import student_t_interval, wilson_interval

__all__ = ["average_measures"]

_PLACES: Final = ("depth", "round")
_MAKERS: Final = (
    "tts.search.diversity_by_depth(nodes), cache_by_round(nodes) and pruning_regret(nodes, ...) make such "
    "tables."
)
_ADDED: Final = ("measure", "mean", "ci_low", "ci_high", "n_problems")


def average_measures(
    table: FrameT, /, *, by: ColumnNames = (), confidence_level: float = 0.95
) -> FrameT:
    """Average what is measured of each search over problems, by depth or by round.

    Parameters
    ----------
    table
        One row per problem and `depth`, as `diversity_by_depth` returns, or per problem and `round`,
        as `cache_by_round` and `pruning_regret` return.
    by
        Columns that identify a search, such as the policy and the width.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    FrameT
        One row per depth or round and measure: the columns of `by`, `depth` or `round`, `measure` (name
        of the column that is averaged), `mean` (Float64; of a Boolean, the share), `ci_low` and
        `ci_high` (over problems, taken as independent: Wilson for a Boolean, else Student t, which is null for a single problem
        and for equal values) and
        `n_problems`. A problem counts where its search still had a step and the measure is known. A LazyFrame
        for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `table` is not a Polars frame.
    ParameterError
        When `confidence_level` is not in (0, 1).
    ColumnsError
        When the table is none of these.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(20, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.Beam(8), seed=0)
    >>> means = tts.search.average_measures(tts.search.diversity_by_depth(nodes))
    >>> means.filter(depth=1, measure="n_kept").select("mean", "n_problems").rows()
    [(2.0, 20)]
    """
    check_frame(table, "table")
    names: tuple[str, ...] = check_names(by, "by", taken=["problem_id", *_PLACES, *_ADDED])
    check_fraction(confidence_level, "confidence_level")
    schema = require_columns(table, [*names, "problem_id"], where="table", hint=_MAKERS)
    place = next((name for name in _PLACES if name in schema), None)
    measures = [
        name
        for name, dtype in schema.items()
        if name not in {*names, "problem_id", *_PLACES}
        and (dtype.is_numeric() or dtype == pl.Boolean)
    ]
    if place is None or not measures:
        error = ColumnsError.missing(["depth"], list(schema), where="table", hint=_MAKERS)
        raise error
    value = pl.col("value")
    shares = [name for name in measures if schema[name] == pl.Boolean]
    interval = (
        pl
        .when(pl.col("measure").is_in(shares))
        .then(
            wilson_interval(
                pl.col("mean") * pl.col("n_problems"),
                "n_problems",
                confidence_level=confidence_level,
            )
        )
        .otherwise(
            student_t_interval(
                "mean",
                "standard_error",
                "n_problems",
                confidence_level=confidence_level,
                bounds=None,
            )
        )
        .struct
    )

    def plan(frame: pl.LazyFrame) -> pl.LazyFrame:
        return (
            frame
            .with_columns(pl.col(measures).cast(pl.Float64))
            .unpivot(measures, index=[*names, place], variable_name="measure")
            .drop_nulls("value")
            .group_by(*names, place, "measure")
            .agg(
                in_order(value).list.mean().alias("mean"),
                (in_order(value).list.std() / value.len().sqrt()).alias("standard_error"),
                value.len().cast(pl.Int64).alias("n_problems"),
            )
            .with_columns(
                interval.field("ci_low").alias("ci_low"), interval.field("ci_high").alias("ci_high")
            )
            .with_columns(pl.col("measure").cast(pl.Enum(measures)).alias("__order"))
            .sort(*names, place, "__order")
            .select(*names, place, *_ADDED)
        )

    return run_plan(table, plan)
