"""The plain table of steps, and the table of rollouts from which labels of steps are estimated."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.table import FileFormat, Table, cast_columns, is_no_count
from ttsframe.readers.step_formats.reading import is_no_share
from ttsframe.readers.step_formats.step_format import STEP_COLUMNS, StepFormat

_DTYPES = {
    name: column.dtype
    for name, column in STEP_COLUMNS.items()
    if name not in {"problem_id", "step", "rating"}
}
_ROLLOUT_KEYS = ("problem_id", "solution_id", "step", "rollout")


def _to_steps(source: Table) -> pl.LazyFrame:
    table = cast_columns(source, _DTYPES)
    files = ", ".join(table.row_words)
    if "rollout" in table.schema:
        raise ColumnsError(
            f"{files}: column 'rollout' marks a table of completions, expected one row per step. Hint: "
            f"tts.process.estimate_steps(rollouts) estimates labels from it."
        )
    step, rating = pl.col("step"), pl.col("rating")
    step = (
        pl.when(~is_no_count(step, table.schema["step"])).then(step).cast(pl.Float64).cast(pl.Int64)
    )
    rules = {"step": (step.is_null() | (step < -1), "a whole number from -1")}
    if "rating" in table.schema:
        rules["rating"] = (~rating.is_in([-1, 0, 1]), "-1, 0, 1 or null")
    if "soft" in table.schema:
        rules["soft"] = (is_no_share(pl.col("soft")), "a share from 0 to 1, or null")
    for name in rules:
        dtype = table.schema[name]
        is_mixed = name == "step" and isinstance(dtype, pl.String | pl.Boolean)
        if not (dtype.is_numeric() or isinstance(dtype, pl.Null) or is_mixed):
            raise ColumnsError(f"{files}: column {name!r} is {dtype}, must be {rules[name][1]}.")
    for name in ("problem_id", "solution_id"):
        rules[name] = (pl.col(name).is_null(), f"the id of a {name.removesuffix('_id')}")
    broken = {f"__bad_{name}": is_bad for name, (is_bad, _) in rules.items()}

    def reason(row: Mapping[str, object]) -> str:
        name = next(name for name in rules if row[f"__bad_{name}"])
        return f"{name} is {row[name]!r}, must be {rules[name][1]}"

    frame = table.check(
        table.frame.with_columns(**broken),
        pl.any_horizontal(pl.col(name).fill_null(value=False) for name in broken),
        [*rules, *broken],
        reason,
    ).drop(broken)
    return frame.with_columns(
        (step if name == "step" else pl.col(name)).cast(STEP_COLUMNS[name].dtype)
        for name in ("step", "rating")
        if name in rules
    )


def _keep_rows(table: Table) -> pl.LazyFrame:
    return table.frame


FORMAT = StepFormat(
    FileFormat(
        summary="ttsframe's own table: a row per step (Parquet, Arrow IPC or JSON)",
        requires=(("problem_id",), ("solution_id",), ("step",)),
        dtypes=_DTYPES,
        to_rows=_to_steps,
    )
)

ROLLOUTS = FileFormat(
    summary="completions of steps: a row per completion (Parquet, Arrow IPC or JSON)",
    requires=tuple((name,) for name in _ROLLOUT_KEYS),
    dtypes={},
    to_rows=_keep_rows,
)
"""Completions of steps, from which `tts.process.estimate_steps` estimates labels."""
