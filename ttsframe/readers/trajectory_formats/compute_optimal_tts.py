"""compute-optimal-tts and OpenR: one record per search, with its question and output paths.

Several records of one question are numbered on, in the order of the rows (and of the file names
``question_{i}/record_{j}.jsonl``). There is no id: the problem is its text's hash. ``groundtruth`` holds
a worked solution, so it becomes ``solution``.

A record of one path is one sample: its ``completion_tokens`` and its ``result.majority_vote`` are the
attempt's. Of a record with several paths neither is known (tokens are counted between paths, the vote
is over all of them), and the paths come from one tree. OpenR writes ``[0]`` for the value of a lone
path that it did not score.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    Reader,
    Table,
    as_dtypes,
    explode_attempts,
    identified,
    number_attempts,
    unpack,
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
_FIELDS = {
    "text": "completion",
    "value": "step_scores",
    "completion_tokens": "n_tokens",
    "extracted_answer": "answer",
}


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = identified(as_dtypes(source, _DTYPES), ("problem_id",), "question")
    marked = typed.frame.with_columns((pl.col("output").list.len() == 1).alias("__is_single"))
    table = typed._replace(frame=marked)
    attempts, columns = unpack(explode_attempts(table, ["output"]), table.schema, "output", _FIELDS)
    is_single, scores = pl.col("__is_single"), pl.col("step_scores")
    mended = {
        "step_scores": pl
        .when(is_single & (scores.list.len() == 1) & (scores.list.first() == 0))
        .then(None)
        .otherwise(scores),
        "n_tokens": pl.when(is_single & (pl.col("n_tokens") > 0)).then("n_tokens"),
        "answer": pl.when(pl.col("answer") != "").then("answer"),
    }
    found = [expr.alias(name) for name, expr in mended.items() if name in columns]
    found.append(pl.when(~is_single).then(statement=False).alias("is_exchangeable"))
    result = table.schema.get("result")
    if isinstance(result, pl.Struct) and any(
        field.name == "majority_vote" for field in result.fields
    ):
        vote = pl.col("result").struct.field("majority_vote").cast(pl.Float64)
        found.append(pl.when(is_single).then(vote == 1).alias("is_correct"))
    return number_attempts(
        attempts
        .with_columns(found)
        .drop("__is_single")
        .rename({"question": "problem", "groundtruth": "solution"}, strict=False)
    )


READER = Reader(
    summary="compute-optimal-tts and OpenR: a record per search with its output paths (JSON)",
    requires=(("question",), ("groundtruth",), ("output",)),
    dtypes=_DTYPES,
    to_attempts=_to_attempts,
    piece=r"question_[0-9]+/record_[0-9]+\.jsonl",
)
