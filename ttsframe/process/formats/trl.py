"""TRL's stepwise supervision: ``{prompt, completions: [step], labels: [true or false]}``."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ttsframe.process.formats.reading import explode_steps, identify
from ttsframe.process.formats.step_format import Labels, StepFormat
from ttsframe.process.formats.writing import json_lines, json_text, solutions
from ttsframe.readers._table import Reader, Table, as_dtypes

_DTYPES: dict[str, pl.DataType] = {
    "prompt": pl.String(),
    "completions": pl.List(pl.String()),
    "labels": pl.List(pl.Boolean()),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = as_dtypes(source, _DTYPES)
    n_texts, n_labels = (pl.col(name).list.len() for name in ("completions", "labels"))
    counted = table.frame.with_columns(n_texts.alias("__n_texts"), n_labels.alias("__n_labels"))
    broken = pl.any_horizontal(
        pl.col("prompt").is_null(), ~n_texts.eq_missing(n_labels), n_texts.is_null()
    )

    def reason(row: Mapping[str, object]) -> str:
        for name in ("prompt", "completions", "labels"):
            if (
                row[
                    name
                    if name == "prompt"
                    else f"__n_{'texts' if name == 'completions' else name}"
                ]
                is None
            ):
                return f"{name!r} is null"
        return (
            f"has {row['__n_texts']} completions but {row['__n_labels']} labels; there must be one "
            f"for each"
        )

    frame = table.check(counted, broken, ["prompt", "__n_texts", "__n_labels"], reason)
    frame = frame.drop("__n_texts", "__n_labels").rename({"prompt": "problem"})
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
            "completions": json_text("texts"),
            "labels": json_text("labels"),
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
