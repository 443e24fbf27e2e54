"""Qwen2.5-Math evaluation: one row per problem, with lists of responses, answers and grades.

`response` (else `code`) is the completion, `pred` the extracted answer, `score` its grade, and
`pred_score` the score of the reward model: a list of one logit per attempt. `gt` is the gold answer. The
`answer` of the data set is the same before parsing; it is kept as `source_answer`, since `answer` is that
of the attempt here.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
)

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
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id", "idx"), "question")
    names = table.schema.keys()
    lists = [name for name in _LISTS if name in names]
    if "gt_cot" in names and "solution" not in names:
        table = table._replace(frame=table.frame.with_columns(pl.col("gt_cot").alias("solution")))
    return (
        explode_attempts(table, lists)
        # The tool writes "" if it found no answer.
        .with_columns(pl.when(pl.col("pred") != "").then("pred"))
        .rename({**_RENAMED, lists[0]: "completion"}, strict=False)
    )


FORMAT = FileFormat(
    summary="Qwen2.5-Math evaluation: a row per problem with responses, answers and rewards (JSON or Parquet)",
    requires=(("question",), ("gt",), ("pred",), ("response", "code")),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="problem",
    columns={**_RENAMED, "response": "completion", "code": "completion", "gt_cot": "solution"},
    scores=Scores("step_scores", least=None, most=None),
)
