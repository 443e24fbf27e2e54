"""TRL's stepwise supervision: ``{prompt, completions: [step], labels: [true or false]}``."""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import Reader, Table
from ttsframe.readers.step_formats.reading import (
    explode_steps,
    first_fault,
    identify,
    typed,
    without_faults,
)
from ttsframe.readers.step_formats.step_format import Labels, StepFormat
from ttsframe.readers.step_formats.writing import json_lines, json_text, solutions

_DTYPES: dict[str, pl.DataType] = {
    "prompt": pl.String(),
    "completions": pl.List(pl.String()),
    "labels": pl.List(pl.Boolean()),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = typed(source, _DTYPES)
    texts, labels = pl.col("completions").list, pl.col("labels").list
    uneven = pl.format(
        "has {} completions but {} labels; there must be one for each", texts.len(), labels.len()
    )
    fault = pl.coalesce(
        first_fault({
            "'prompt' is null": pl.col("prompt").is_null(),
            "'completions' is null": pl.col("completions").is_null(),
            "'labels' is null": pl.col("labels").is_null(),
            "'completions' has a null in place of a step": texts.eval(
                pl.element().is_null()
            ).list.any(),
        }),
        pl.when(texts.len() != labels.len()).then(uneven),
    )
    frame = without_faults(table, table.frame, fault).rename({"prompt": "problem"})
    schema = {**table.schema, "problem": pl.String()}
    named = identify(table._replace(frame=frame, schema=schema), pl.col("completions"))
    return explode_steps(named.frame, ["completions", "labels"]).rename({
        "completions": "text",
        "labels": "is_correct",
    })


def _to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    rows = solutions(steps, labels, format_name="trl", taken=tuple(_DTYPES))
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
    summary="TRL stepwise supervision: a row per solution with its steps and their labels (JSON)",
    reader=Reader(
        summary="TRL stepwise supervision",
        requires=(("prompt",), ("completions",), ("labels",)),
        dtypes=_DTYPES,
        to_attempts=_to_steps,
        shapes={"completions": pl.List, "labels": pl.List},
    ),
    to_lines=_to_lines,
    takes=frozenset({"neutral", "threshold"}),
)
