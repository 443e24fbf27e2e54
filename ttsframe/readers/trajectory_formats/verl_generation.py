"""verl: the Parquet of `main_generation`, the rows of a data set, one per problem, with their `responses`.

`reward_model.ground_truth` is `gold`. There is no id of a problem, so equal prompts are one problem, as in the dumps of verl.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    number_attempts,
    set_apart,
    spoken,
)
from ttsframe.readers.trajectory_formats.verl import notices

_DTYPES: dict[str, pl.DataType] = {"responses": pl.List(pl.String())}


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = set_apart(cast_columns(source, _DTYPES), ("gold", "solution"), "source_")
    added = {"problem": spoken(typed, "prompt", "user")}
    truth = struct_fields(typed.schema["reward_model"]).get("ground_truth", pl.Null())
    if "gold" not in typed.schema and not (truth.is_nested() or isinstance(truth, pl.Null)):
        added["gold"] = pl.col("reward_model").struct.field("ground_truth").cast(pl.String)
    said = typed.frame.with_columns(expr.alias(name) for name, expr in added.items())
    table = add_problem_id(typed._replace(frame=said), ("problem_id",), "problem")
    # Two rows with one prompt are one problem, so the numbers of the second go on.
    attempts = number_attempts(explode_attempts(table, ["responses"]))
    return attempts.drop("prompt", "reward_model").rename({"responses": "completion"})


FORMAT = FileFormat(
    summary="verl: the Parquet of main_generation, a row per problem with its responses",
    requires=(("prompt",), ("responses",), ("reward_model",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"responses": pl.List(pl.String()), "reward_model": pl.Struct},
    unit="problem",
    columns={"prompt": "problem", "responses": "completion", "reward_model.ground_truth": "gold"},
    is_exchangeable=True,
    ignores=("messages of other roles", "reward_model but for ground_truth"),
    notices=notices,
)
