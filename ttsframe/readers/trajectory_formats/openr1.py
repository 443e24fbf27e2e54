"""OpenR1-Math: a row per problem with its `generations` and the verdicts of two graders (Parquet).

A generation is right if one of the graders says so. A grader that did not run has no list, and an attempt
that neither saw has no grade. Both verdicts stay as columns.
"""

from __future__ import annotations

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
)

_FLAGS = pl.List(pl.Boolean())
_GRADES = ("correctness_math_verify", "correctness_llama")
_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "solution": pl.String(),
    "answer": pl.String(),
    "generations": pl.List(pl.String()),
    **dict.fromkeys(_GRADES, _FLAGS),
    "is_reasoning_complete": _FLAGS,
    "finish_reasons": pl.List(pl.String()),
}
_LISTS = ("generations", *_GRADES, "is_reasoning_complete", "finish_reasons")
_RENAMED = {"generations": "completion", "finish_reasons": "finish_reason", "answer": "gold"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id", "uuid"), "problem")
    attempts = explode_attempts(table, [name for name in _LISTS if name in table.schema])
    grades = [name for name in _GRADES if name in table.schema]
    if grades:
        # One that says nothing is not one that says no.
        attempts = attempts.with_columns(is_correct=pl.max_horizontal(grades))
    return attempts.drop("uuid", "messages", "correctness_count", strict=False).rename(
        _RENAMED, strict=False
    )


FORMAT = FileFormat(
    summary="OpenR1-Math: a row per problem with generations and the verdicts of two graders (Parquet)",
    requires=(("problem",), ("answer",), ("generations",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    evidence=(*_GRADES, "is_reasoning_complete", "correctness_count"),
    shapes={"generations": pl.List(pl.String())},
    unit="problem",
    columns={**_RENAMED, "uuid": "problem_id", **dict.fromkeys(_GRADES, "is_correct")},
    is_exchangeable=True,
    ignores=("messages", "correctness_count"),
    traps=(
        Trap(
            "graders_differ",
            _GRADES,
            pl.col(_GRADES[0]) != pl.col(_GRADES[1]),
            "were graded differently by Math-Verify and by the model",
            "'is_correct' is true if one of them says so.",
            severity="note",
        ),
        Trap(
            "incomplete_reasoning",
            ("is_reasoning_complete",),
            ~pl.col("is_reasoning_complete"),
            "have reasoning that does not end",
            "they were cut off; drop them with run.filter('is_reasoning_complete').",
            severity="note",
        ),
    ),
)
