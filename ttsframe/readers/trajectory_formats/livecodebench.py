"""LiveCodeBench: `{scenario}_eval_all.json`, a row per question with its outputs, programs and grades.

`output_list` has the texts of the model and `code_list` the programs found in them, kept as `code`.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    set_apart,
)

_TEXTS = pl.List(pl.String())
_DTYPES: dict[str, pl.DataType] = {
    "question_content": pl.String(),
    "output_list": _TEXTS,
    "code_list": _TEXTS,
    "graded_list": pl.List(pl.Boolean()),
}
_RENAMED = {
    "question_content": "problem",
    "output_list": "completion",
    "graded_list": "is_correct",
}


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = set_apart(cast_columns(source, _DTYPES), (), "source_")
    table = add_problem_id(typed, ("problem_id", "question_id"), "question_content")
    attempts = explode_attempts(table, ["output_list", "code_list", "graded_list"])
    return attempts.drop("question_id", "metadata", strict=False).rename(
        {**_RENAMED, "code_list": "code"}, strict=False
    )


FORMAT = FileFormat(
    summary="LiveCodeBench: {scenario}_eval_all.json, a row per question with its outputs and grades",
    requires=(("question_id", "problem_id"), ("output_list",), ("code_list",), ("graded_list",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    as_text=frozenset({"metadata"}),
    unit="question",
    columns={**_RENAMED, "question_id": "problem_id"},
    is_exchangeable=True,
    ignores=("metadata",),
)
