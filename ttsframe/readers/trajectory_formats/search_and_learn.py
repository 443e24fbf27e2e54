"""search-and-learn: one row per problem, with lists of completions and step scores.

`answer` is the gold answer in this format and becomes `gold`. `agg_scores` (always the last step) is kept
for each attempt, but not used. The picks `pred_*@k` of the tool and all other columns of the problem are
repeated for each attempt.

`completion_tokens` also reveals the method. Best-of-N writes true counts; beam search writes zeros, and
DVTS a single -1. The latter two mean that tokens were not counted and that the attempts come from one
search tree, so these attempts are marked as not exchangeable. In other rows `is_exchangeable` is null,
since no column names the method.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.dtypes import as_instance
from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    is_no_count,
    shown,
)

_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "answer": pl.String(),
    "solution": pl.String(),
    "completions": pl.List(pl.String()),
    "scores": pl.List(pl.List(pl.Float64())),
    "agg_scores": pl.List(pl.Float64()),
}
_LISTS = ("completions", "scores", "agg_scores", "n_tokens")
_COUNT = r"-?[0-9]{1,15}(?:\.0+)?"
_COUNTS = rf"^(?:{_COUNT}|\[\s*(?:(?:{_COUNT}|null)\s*,\s*)*(?:{_COUNT}|null)?\s*\])$"
"""Of mixed types: a list, or a number."""
_RENAMED = {"answer": "gold", "completions": "completion", "scores": "step_scores"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id", "unique_id"), "problem")
    names = {*table.schema}
    if "completion_tokens" in names:
        dtype = table.schema["completion_tokens"]
        table = table._replace(frame=_with_counts_only(table, dtype))
        table = table._replace(frame=_with_tokens(table.frame, dtype))
        names.add("n_tokens")
    lists = [name for name in _LISTS if name in names]
    return explode_attempts(table, lists).rename(_RENAMED, strict=False)


def _with_counts_only(table: Table, dtype: pl.DataType) -> pl.LazyFrame:
    """Refuse rows whose token counts are no whole numbers."""
    written = pl.col("completion_tokens")
    if isinstance(dtype, pl.List):
        is_bad = is_no_count(pl.element(), as_instance(dtype.inner))
        broken = written.list.eval(is_bad).list.any()
    elif isinstance(dtype, pl.String):
        broken = ~written.str.contains(_COUNTS)
    else:
        broken = is_no_count(written, dtype)
    return table.check(
        table.frame,
        broken,
        ["completion_tokens"],
        lambda row: (
            f"completion_tokens is {shown(row['completion_tokens'])}, must be whole numbers"
        ),
    )


def _with_tokens(frame: pl.LazyFrame, dtype: pl.DataType) -> pl.LazyFrame:
    """Replace the token counts by `n_tokens`, a list or null, and `is_exchangeable`."""
    written = pl.col("completion_tokens")
    lists = pl.List(pl.Int64())
    if isinstance(dtype, pl.List):
        counts, number = written.cast(lists), pl.lit(None, dtype=pl.Int64)
    elif isinstance(dtype, pl.String):  # some rows hold a list, others a number
        is_list = written.str.starts_with("[")
        floats = pl.List(pl.Float64())
        counts = pl.when(is_list).then(written).str.json_decode(floats).cast(lists)
        number = pl.when(~is_list).then(written).cast(pl.Float64).cast(pl.Int64)
    else:
        counts, number = pl.lit(None, dtype=lists), written.cast(pl.Int64)
    largest = counts.list.max()
    return frame.with_columns(
        pl.when(largest > 0).then(counts).alias("n_tokens"),
        pl.when((largest <= 0) | (number < 0)).then(statement=False).alias("is_exchangeable"),
    ).drop("completion_tokens")


FORMAT = FileFormat(
    summary="search-and-learn: a row per problem with completions and scores (JSON or Parquet)",
    requires=(("problem",), ("completions",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="problem",
    columns={**_RENAMED, "completion_tokens": "n_tokens"},
    scores=Scores("step_scores"),
)
