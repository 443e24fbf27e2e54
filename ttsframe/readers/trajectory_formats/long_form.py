"""The long form of ttsframe: one row per attempt, with its column names or renamed to them.

`problem_id` may be missing if `problem` exists (a hash of its text replaces it). `attempt` may be missing
(attempts are numbered within the problem, in the order of the rows).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
)
from ttsframe.schema import TRAJECTORY_COLUMNS

_COUNTS = ("attempt", "n_tokens", "n_prompt_tokens")
_DISCOVERED = {"problem_id", *_COUNTS, "is_correct", "is_exchangeable"}
_DTYPES = {
    name: column.dtype for name, column in TRAJECTORY_COLUMNS.items() if name not in _DISCOVERED
}
_FLAGS = ("is_correct", "is_exchangeable")
_EVIDENCE = ("attempt", "completion", "step_scores", "answer_key", "is_correct", "score")


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id",), "problem")
    schema = table.schema
    counts = [name for name in _COUNTS if name in schema]
    flags = [name for name in _FLAGS if name in schema and schema[name] != pl.Boolean()]
    for name in [*counts, *flags]:
        dtype = schema[name]
        if not (dtype.is_numeric() or isinstance(dtype, pl.Null | pl.Boolean)):
            wanted = "Boolean, or 0 and 1" if name in flags else "a whole number"
            raise ColumnsError(
                f"{', '.join(table.row_words)}: column {name!r} is {dtype}, must be {wanted}. Hint: cast "
                f"it, or rename it with {setting('rename', {name: f'source_{name}'})}."
            )
    rules: dict[str, tuple[pl.Expr, str]] = {
        "problem_id": (pl.col("problem_id").is_null(), "so the row belongs to no problem")
    }
    for name in counts:
        value = pl.col(name).cast(pl.Float64)
        is_bad = (value < 0) | (value != value.floor()) | value.is_nan() | (value >= 2**32)
        if name == "attempt":
            is_bad = is_bad.fill_null(value=True)
        rules[name] = (is_bad, "must be a whole number from 0")
    for name in flags:
        rules[name] = (
            ~pl.col(name).cast(pl.Float64).is_in([0.0, 1.0]),
            "must be true, false, 0 or 1",
        )

    def reason(row: Mapping[str, object]) -> str:
        name = next(name for name in rules if row[f"__{name}_is_bad"])
        return f"{name} is {row[name]!r}, {rules[name][1]}"

    marks = {f"__{name}_is_bad": is_bad for name, (is_bad, _) in rules.items()}
    checked = table.check(
        table.frame.with_columns(**marks),
        pl.any_horizontal(pl.col(mark).fill_null(value=False) for mark in marks),
        [*rules, *marks],
        reason,
    ).drop(marks)
    frame = checked.with_columns(
        pl.col(name).cast(TRAJECTORY_COLUMNS[name].dtype) for name in [*counts, *flags]
    )
    return frame if "attempt" in schema else number_attempts(frame)


FORMAT = FileFormat(
    summary="ttsframe's long form: a row per attempt (Parquet, Arrow IPC, JSON or CSV)",
    requires=(("problem_id", "problem"),),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    evidence=_EVIDENCE,
    is_row_attempt=True,
    scores=Scores("step_scores"),
)
