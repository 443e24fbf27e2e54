"""optillm: `evaluation_results_{model}_pass_at_{n}.json`, an array of problems with their attempts.

The grade of the tool is of the problem: whether any attempt gave the answer, kept as `is_any_correct`. An attempt
is right, as for the tool, if its `predicted_answer` is the `correct_answer`.
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
    unpack_structs,
)

_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "correct_answer": pl.String(),
    "is_correct": pl.Boolean(),
    "attempts": pl.List(
        pl.Struct({
            "response": pl.String(),
            "predicted_answer": pl.String(),
            "error": pl.String(),
        })
    ),
}
_FIELDS = {"response": "completion", "predicted_answer": "answer"}
_ANALYSES = ("thought_analysis", "logit_analysis")


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = cast_columns(source, _DTYPES)
    apart = set_apart(typed, ("problem",), "source_", {"is_correct": "is_any_correct"})
    table = add_problem_id(apart, ("problem_id", "index"), "problem")
    attempts, columns = unpack_structs(
        explode_attempts(table, ["attempts"]), table.schema, "attempts", _FIELDS
    )
    updates = {"gold": pl.col("correct_answer")}
    if "answer" in columns:
        is_right = (pl.col("answer") == pl.col("correct_answer")).fill_null(value=False)
        updates["is_correct"] = pl.when(pl.col("correct_answer").is_not_null()).then(is_right)
    if "error" in columns:
        updates["finish_reason"] = pl.when(pl.col("error").is_not_null()).then(pl.lit("error"))
    return attempts.with_columns(expr.alias(name) for name, expr in updates.items()).drop(
        "index",
        "correct_answer",
        "attempt_number",
        "first_correct_attempt",
        *_ANALYSES,
        strict=False,
    )


FORMAT = FileFormat(
    summary="optillm: evaluation_results_{model}_pass_at_{n}.json, an array of problems with attempts",
    requires=(("index", "problem_id"), ("attempts",), ("correct_answer",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="problem",
    columns={
        "index": "problem_id",
        "correct_answer": "gold",
        "attempts.response": "completion",
        "attempts.predicted_answer": "answer",
        "attempts.error": "finish_reason",
    },
    is_exchangeable=True,
    ignores=(
        "attempts.attempt_number",
        "attempts.thought_analysis",
        "attempts.logit_analysis",
        "first_correct_attempt",
    ),
)
