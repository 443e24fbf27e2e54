"""ProcessBench: `{id, generator, problem, steps, final_answer_correct, label}`, and the results of a model on it.

`label` is the number of the first wrong step, from 0, and -1 without one. Steps before it are right; what
follows a wrong step is not labeled. Results add `prediction`, the first wrong step by the model, and `match`; both stay
as columns of the solution, as `generated_critique` does.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import FileFormat, Table
from ttsframe.readers.step_formats.reading import (
    add_ids,
    cast_source,
    check_rows,
    explode_steps,
    first_fault,
)
from ttsframe.readers.step_formats.step_format import StepFormat

_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "steps": pl.List(pl.String()),
    "label": pl.Int64(),
    "prediction": pl.Int64(),
    "match": pl.Boolean(),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _DTYPES, own=("problem",))
    steps, label = pl.col("steps").list, pl.col("label")
    outside = pl.format("'label' is {} but there are {} steps", label, steps.len())
    fault = pl.coalesce(
        first_fault({
            "'problem' is null": pl.col("problem").is_null(),
            "'steps' is null": pl.col("steps").is_null(),
            "'label' is null": label.is_null(),
            "'steps' has a null element": steps.eval(pl.element().is_null()).list.any(),
        }),
        pl.when(~label.is_between(-1, steps.len().cast(pl.Int64) - 1)).then(outside),
    )
    frame = check_rows(table, table.frame, fault)
    if "id" in table.schema and "solution_id" not in table.schema:
        # It is that of a solution, of which a problem has several.
        table = table._replace(schema={**table.schema, "solution_id": table.schema["id"]})
        frame = frame.rename({"id": "solution_id"})
    named = add_ids(table._replace(frame=frame), pl.col("steps"))
    exploded = explode_steps(named.frame.rename({"steps": "text"}), ["text"])
    step = pl.col("step")
    is_right = pl.when((label == -1) | (step < label)).then(statement=True)
    return exploded.with_columns(
        pl
        .when(step >= 0)
        .then(is_right.when(step == label).then(statement=False))
        .alias("is_correct")
    )


FORMAT = StepFormat(
    FileFormat(
        summary="ProcessBench: a row per solution with its steps and the first wrong one, also with predictions (JSON)",
        requires=(("problem",), ("steps",), ("label",), ("final_answer_correct", "generator")),
        dtypes=_DTYPES,
        to_rows=_to_steps,
        shapes={"steps": pl.List(pl.String())},
    )
)
