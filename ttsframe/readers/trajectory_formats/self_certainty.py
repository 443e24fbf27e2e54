"""Self-Certainty: `{outputs}-confidence-list.json`, an array of problems with outputs and confidences.

`confidence_list` was computed from the model's own probabilities, without the gold answer: it is `score`.
The file has no gold answers unless the data set's are passed on.
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
    set_apart,
)

_DTYPES: dict[str, pl.DataType] = {
    "input": pl.String(),
    "model_input": pl.String(),
    "output": pl.List(pl.String()),
    "generator": pl.String(),
    "confidence_list": pl.List(pl.Float64()),
}
_RENAMED = {"output": "completion", "confidence_list": "score", "generator": "model"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    kept = ("problem", "gold", "solution")
    typed = set_apart(cast_columns(source, _DTYPES), kept, "source_", {"answer": "gold"})
    text = next(name for name in ("problem", "input", "model_input") if name in typed.schema)
    table = add_problem_id(typed, ("problem_id", "session_id", "id"), text)
    attempts = explode_attempts(table, ["output", "confidence_list"])
    left_out = [name for name in ("model_input", "processed_index") if name != text]
    return attempts.drop("session_id", "id", *left_out, strict=False).rename(
        {**_RENAMED, text: "problem"}, strict=False
    )


FORMAT = FileFormat(
    summary="Self-Certainty: {outputs}-confidence-list.json, an array of problems with outputs and confidences",
    requires=(("output",), ("confidence_list",), ("input", "model_input", "problem")),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"output": pl.List(pl.String())},
    unit="problem",
    columns={
        **_RENAMED,
        "session_id": "problem_id",
        "id": "problem_id",
        "input": "problem",
        "model_input": "problem",
        "answer": "gold",
    },
    is_exchangeable=True,
    scores=Scores("score", most=None),
    ignores=("model_input beside input", "processed_index"),
)
