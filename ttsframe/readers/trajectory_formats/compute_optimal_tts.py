"""compute-optimal-tts and OpenR: one record per search, with its question and output paths.

Attempts are numbered across all records of a question, in the order of the rows (and of the file names
`question_{i}/record_{j}.jsonl`). There are no ids, so a hash of the problem's text serves as one.
`groundtruth` holds a worked solution and becomes `solution`.

A record with one path is one sample, and its `completion_tokens` and `result.majority_vote` are those of
the attempt. In a record with several paths they are totals over all paths, which come from one tree, so
both stay unknown. OpenR writes `[0]` as the value of a single path without scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    is_no_number,
    number_attempts,
    shown,
    unpack_structs,
)

_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "groundtruth": pl.String(),
    "output": pl.List(
        pl.Struct({
            "text": pl.String(),
            "value": pl.List(pl.Float64()),
            "completion_tokens": pl.Int64(),
            "extracted_answer": pl.String(),
        })
    ),
}
_VOTE = "__vote"
_FIELDS = {
    "text": "completion",
    "value": "step_scores",
    "completion_tokens": "n_tokens",
    "extracted_answer": "answer",
}


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = add_problem_id(cast_columns(source, _DTYPES), ("problem_id",), "question")
    voted = _with_votes(typed)
    marked = voted.with_columns((pl.col("output").list.len() == 1).alias("__is_single"))
    table = typed._replace(frame=marked)
    attempts, columns = unpack_structs(
        explode_attempts(table, ["output"]), table.schema, "output", _FIELDS
    )
    is_single, scores = pl.col("__is_single"), pl.col("step_scores")
    corrected = {
        "step_scores": pl
        .when(is_single & (scores.list.len() == 1) & (scores.list.first() == 0))
        .then(None)
        .otherwise(scores),
        "n_tokens": pl.when(is_single & (pl.col("n_tokens") > 0)).then("n_tokens"),
        "answer": pl.when(pl.col("answer") != "").then("answer"),
    }
    updates = [expr.alias(name) for name, expr in corrected.items() if name in columns]
    updates.append(pl.when(~is_single).then(statement=False).alias("is_exchangeable"))
    if _holds_votes(table.schema):
        updates.append(pl.when(is_single).then(pl.col(_VOTE) == 1).alias("is_correct"))
    return number_attempts(
        attempts
        .with_columns(updates)
        .drop("__is_single", _VOTE, strict=False)
        .rename({"question": "problem", "groundtruth": "solution"}, strict=False)
    )


def _holds_votes(schema: Mapping[str, pl.DataType]) -> bool:
    dtype = schema.get("result", pl.Null())
    return isinstance(dtype, pl.String) or (
        isinstance(dtype, pl.Struct) and "majority_vote" in struct_fields(dtype)
    )


def _with_votes(table: Table) -> pl.LazyFrame:
    """Add the majority vote of each row, and refuse rows in which it cannot be read."""
    result, dtype = pl.col("result"), table.schema.get("result", pl.Null())
    if isinstance(dtype, pl.Null):
        return table.frame
    vote: pl.Expr | None = None
    if isinstance(dtype, pl.String):  # in some rows, it is no object
        vote = result.str.json_path_match("$.majority_vote")
        is_lost = vote.is_null() & result.str.contains(r'"majority_vote"\s*:\s*[^n\s]')
        broken = ~result.str.starts_with("{") | is_lost | is_no_number(vote, pl.String())
    elif isinstance(dtype, pl.Struct):
        field = struct_fields(dtype).get("majority_vote", pl.Null())
        vote = result.struct.field("majority_vote") if _holds_votes(table.schema) else None
        broken = pl.lit(value=False) if vote is None else is_no_number(vote, field)
    else:
        broken = result.is_not_null()
    checked = table.check(
        table.frame,
        broken,
        ["result"],
        lambda row: (
            f"result is {shown(row['result'])}, must be an object, with a number or null as majority_vote"
        ),
    )
    return checked if vote is None else checked.with_columns(vote.cast(pl.Float64).alias(_VOTE))


FORMAT = FileFormat(
    summary="compute-optimal-tts and OpenR: a record per search with its output paths (JSON)",
    requires=(("question",), ("groundtruth",), ("output",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="search",
    columns={
        "question": "problem",
        "groundtruth": "solution",
        **{f"output.{name}": ours for name, ours in _FIELDS.items()},
    },
    scores=Scores("step_scores"),
    piece=r"question_[0-9]+/record_[0-9]+\.jsonl",
)
