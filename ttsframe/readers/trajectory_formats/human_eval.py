"""human-eval: `{samples}.jsonl_results.jsonl`, a row per sample with the verdict of its tests.

`task_id` is the problem and `passed` the grade; `result` says why a sample failed. Samples of a task are
numbered in the order of the file, which is that of the samples.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
    set_apart,
)

_DTYPES: dict[str, pl.DataType] = {
    "completion": pl.String(),
    "result": pl.String(),
    "passed": pl.Boolean(),
}


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = set_apart(cast_columns(source, _DTYPES), ("completion",), "source_")
    table = add_problem_id(typed, ("problem_id", "task_id"), "task_id")
    frame = number_attempts(table.frame.rename({"passed": "is_correct"}))
    return frame.drop("task_id")


FORMAT = FileFormat(
    summary="human-eval: {samples}_results.jsonl, a row per sample with the verdict of its tests",
    requires=(("task_id",), ("completion",), ("passed",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"completion": pl.String},
    unit="sample",
    columns={"task_id": "problem_id", "passed": "is_correct"},
    is_exchangeable=True,
)
