"""search-and-learn: one row per problem, with lists of completions and step scores.

``answer`` is the reference answer there and becomes ``gold``; ``agg_scores`` (always the last step)
is kept per attempt, and nothing is computed from it; the tool's own picks ``pred_*@k`` and every
other column of the problem are repeated for each attempt.

``completion_tokens`` tells more than it says. Best-of-N writes real counts; beam search leaves zeros
and DVTS a single -1, so these mean "not counted", and that the attempts come from one search tree: they
are marked as not exchangeable. All else is left unknown, since no row names the method that made it.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import Reader, Table, as_dtypes, explode_attempts, identified

_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "answer": pl.String(),
    "solution": pl.String(),
    "completions": pl.List(pl.String()),
    "scores": pl.List(pl.List(pl.Float64())),
    "agg_scores": pl.List(pl.Float64()),
}
_LISTS = ("completions", "scores", "agg_scores", "n_tokens")
_RENAMED = {"answer": "gold", "completions": "completion", "scores": "step_scores"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = identified(as_dtypes(source, _DTYPES), ("problem_id", "unique_id"), "problem")
    names = {*table.schema}
    if "completion_tokens" in names:
        dtype = table.schema["completion_tokens"]
        table = table._replace(frame=_with_tokens(table.frame, dtype))
        names.add("n_tokens")
    lists = [name for name in _LISTS if name in names]
    return explode_attempts(table, lists).rename(_RENAMED, strict=False)


def _with_tokens(frame: pl.LazyFrame, dtype: pl.DataType) -> pl.LazyFrame:
    """Replace the token counts by ``n_tokens``, a list or null, and ``is_exchangeable``."""
    written = pl.col("completion_tokens")
    lists = pl.List(pl.Int64())
    if isinstance(dtype, pl.List):
        counts, number = written.cast(lists), pl.lit(None, dtype=pl.Int64)
    elif isinstance(dtype, pl.String):  # some rows hold a list, others a number
        is_list = written.str.starts_with("[")
        counts = pl.when(is_list).then(written).str.json_decode(lists)
        number = pl.when(~is_list).then(written).cast(pl.Int64, strict=False)
    else:
        counts, number = pl.lit(None, dtype=lists), written.cast(pl.Int64)
    largest = counts.list.max()
    return frame.with_columns(
        pl.when(largest > 0).then(counts).alias("n_tokens"),
        pl.when((largest <= 0) | (number < 0)).then(statement=False).alias("is_exchangeable"),
    ).drop("completion_tokens")


READER = Reader(
    summary="search-and-learn: a row per problem with completions and scores (JSON or Parquet)",
    requires=(("problem",), ("completions",)),
    dtypes=_DTYPES,
    to_attempts=_to_attempts,
)
