"""Qwen2.5-Math evaluation: one row per problem, with lists of responses, answers and grades.

``response`` (else ``code``) is the completion, ``pred`` the answer that the tool extracted, ``score``
its grade, ``pred_score`` the reward model's score: a list of one logit per attempt. ``gt`` is the
reference answer; the data set's own ``answer`` column is the same before parsing and is kept as
``source_answer``, since ``answer`` is the attempt's here.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import Reader, Table, as_dtypes, explode_attempts, identified

_TEXTS = pl.List(pl.String())
_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "gt": pl.String(),
    "gt_cot": pl.String(),
    "answer": pl.String(),
    "solution": pl.String(),
    "code": _TEXTS,
    "response": _TEXTS,
    "pred": _TEXTS,
    "report": _TEXTS,
    "score": pl.List(pl.Boolean()),
    "pred_score": pl.List(pl.List(pl.Float64())),
}
_LISTS = ("response", "code", "pred", "report", "score", "pred_score")
_RENAMED = {
    "question": "problem",
    "answer": "source_answer",
    "gt": "gold",
    "pred": "answer",
    "score": "is_correct",
    "pred_score": "step_scores",
}


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = identified(as_dtypes(source, _DTYPES), ("problem_id", "idx"), "question")
    names = table.schema.keys()
    lists = [name for name in _LISTS if name in names]
    if "gt_cot" in names and "solution" not in names:
        table = table._replace(frame=table.frame.with_columns(pl.col("gt_cot").alias("solution")))
    return (
        explode_attempts(table, lists)
        # the tool writes "" where it found no answer
        .with_columns(pl.when(pl.col("pred") != "").then("pred"))
        .rename({**_RENAMED, lists[0]: "completion"}, strict=False)
    )


READER = Reader(
    summary="Qwen2.5-Math evaluation: a row per problem with responses, answers and rewards (JSON or Parquet)",
    requires=(("question",), ("gt",), ("pred",), ("response", "code")),
    dtypes=_DTYPES,
    to_attempts=_to_attempts,
)
