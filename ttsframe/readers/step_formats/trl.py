"""TRL's stepwise supervision: `{prompt, completions: [step], labels: [true or false]}`."""

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
from ttsframe.readers.step_formats.step_format import Labels, StepFormat
from ttsframe.readers.step_formats.writing import group_solutions, json_lines, json_text

_DTYPES: dict[str, pl.DataType] = {
    "prompt": pl.String(),
    "completions": pl.List(pl.String()),
    "labels": pl.List(pl.Boolean()),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _DTYPES)
    texts, labels = pl.col("completions").list, pl.col("labels").list
    uneven = pl.format(
        "has {} completions but {} labels; expected one label per completion",
        texts.len(),
        labels.len(),
    )
    fault = pl.coalesce(
        first_fault({
            "'prompt' is null": pl.col("prompt").is_null(),
            "'completions' is null": pl.col("completions").is_null(),
            "'labels' is null": pl.col("labels").is_null(),
            "'completions' has a null element": texts.eval(pl.element().is_null()).list.any(),
        }),
        pl.when(texts.len() != labels.len()).then(uneven),
    )
    frame = check_rows(table, table.frame, fault).rename({"prompt": "problem"})
    schema = {**table.schema, "problem": pl.String()}
    named = add_ids(table._replace(frame=frame, schema=schema), pl.col("completions"))
    return explode_steps(named.frame, ["completions", "labels"]).rename({
        "completions": "text",
        "labels": "is_correct",
    })


def _to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    rows = group_solutions(steps, labels, format_name="trl", taken=tuple(_DTYPES))
    return json_lines(
        rows.frame,
        {
            "prompt": json_text("problem"),
            "completions": json_text("__texts"),
            "labels": json_text("__labels"),
        },
        rows.carried,
    )


FORMAT = StepFormat(
    FileFormat(
        summary="TRL stepwise supervision: a row per solution with its steps and their labels (JSON)",
        requires=(("prompt",), ("completions",), ("labels",)),
        dtypes=_DTYPES,
        to_rows=_to_steps,
        shapes={"completions": pl.List, "labels": pl.List},
    ),
    to_lines=_to_lines,
)
