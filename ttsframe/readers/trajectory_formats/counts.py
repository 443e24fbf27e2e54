"""Counts: one row per model and problem, with the number of attempts and of correct ones.

There are no attempts, so no format of attempts has these columns. eval-arena writes `example_id`, `count` and
`correct`; others `n` and `c`. The result keeps its own columns, such as `model`, and is what the functions
take that need only counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from polars.datatypes.classes import NumericType

from ttsframe.readers.engine.table import FileFormat, Table, add_problem_id, cast_columns

_IDS = ("problem_id", "example_id", "unique_id", "question_id", "task_id", "id", "idx")
_N = ("n_attempts", "n", "count")
_C = ("n_correct", "c", "correct")
_MOST = 2**32


def _to_counts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, {"problem": pl.String()}), _IDS, "problem")
    names = {next(name for name in known if name in table.schema): known[0] for known in (_N, _C)}
    n, c = (pl.col(name).cast(pl.Float64) for name in names)

    def is_no_count(value: pl.Expr) -> pl.Expr:
        return (value < 0) | (value != value.floor()) | value.is_nan() | (value >= _MOST)

    def reason(row: Mapping[str, object]) -> str:
        of_n, of_c = (f"{name} is {row[name]!r}" for name in names)
        if row["problem_id"] is None:
            return "problem_id is null, so the row belongs to no problem"
        return f"{of_c} and {of_n}, must be whole numbers from 0, the first at most the second"

    broken = pl.any_horizontal(
        pl.col("problem_id").is_null(),
        *(is_no_count(value).fill_null(value=False) for value in (n, c)),
        (c > n).fill_null(value=False),
    )
    checked = table.check(table.frame, broken, ["problem_id", *names], reason)
    identifier = next((name for name in _IDS if name in source.schema), None)
    kept = [name for name in table.schema if name not in {*names, "problem_id", identifier}]
    others = [name for name in checked.collect_schema().names() if name not in table.schema]
    return checked.select(
        "problem_id",
        *(pl.col(name).cast(pl.UInt32).alias(new) for name, new in names.items()),
        *kept,
        *others,
    )


FORMAT = FileFormat(
    summary="counts: a row per model and problem with n_attempts and n_correct, no attempts",
    requires=((*_IDS, "problem"), _N, _C),
    dtypes={"problem": pl.String()},
    to_rows=_to_counts,
    shapes=dict.fromkeys((*_N, *_C), NumericType),
    is_row_attempt=True,
    unit="model and problem",
    columns={
        **dict.fromkeys(_IDS[1:], "problem_id"),
        **dict.fromkeys(_N[1:], "n_attempts"),
        **dict.fromkeys(_C[1:], "n_correct"),
    },
)
