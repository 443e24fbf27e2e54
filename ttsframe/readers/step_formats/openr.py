"""OpenR's converted form: ``{question, process, label: ["+", "-"]}``, a tag after each step.

OpenR's default tag is five line ends; a process that has Math-Shepherd's instead, as many as it has
labels, is read as well. What is written has OpenR's.
"""

from __future__ import annotations

from typing import Final

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
from ttsframe.readers.step_formats.writing import json_lines, json_text, refuse, solutions

TAG: Final = "\n" * 5
_OTHER_TAG: Final = "ки"
_MARKS: Final = ("+", "-")
_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "process": pl.String(),
    "label": pl.List(pl.String()),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = typed(source, _DTYPES)
    process, label = pl.col("process"), pl.col("label")
    n = label.list.len()
    # A space before the first step as well makes the pieces alike.
    pieces = {tag: pl.concat_str(pl.lit(" "), process).str.split(tag) for tag in (TAG, _OTHER_TAG)}
    fits = {
        tag: (split.list.len() == n + 1) & (split.list.last().str.strip_chars() == "")
        for tag, split in pieces.items()
    }
    stripped = {
        TAG: pl.element().str.strip_prefix(" ").str.strip_suffix(" "),
        _OTHER_TAG: pl.element().str.replace(r"\A[ \n]", "").str.strip_suffix(" "),
    }
    texts = {tag: pieces[tag].list.head(n).list.eval(stripped[tag]) for tag in pieces}
    is_tag = {tag: pl.when(fits[tag]).then(texts[tag]) for tag in pieces}
    found = table.frame.with_columns(pl.coalesce(is_tag.values()).alias("text"))
    n_steps = [process.str.count_matches(tag, literal=True) for tag in pieces]
    uneven = pl.format(
        "has {} labels but {} steps that end in five line ends (and {} that end in {}); there must be one "
        "label for each, and nothing after the last",
        n,
        *n_steps,
        pl.lit(repr(_OTHER_TAG)),
    )
    strange = ~label.list.eval(pl.element().is_in(_MARKS).fill_null(value=False)).list.all()
    fault = pl.coalesce(
        first_fault({
            "'question' is null": pl.col("question").is_null(),
            "'process' is null": process.is_null(),
            "'label' is null": label.is_null(),
            "'label' must hold '+' and '-' only": strange,
        }),
        pl.when(pl.col("text").is_null()).then(uneven),
    )
    frame = (
        without_faults(table, found, fault)
        .with_columns(label.list.eval(pl.element() == "+").alias("is_correct"))
        .drop("process", "label")
        .rename({"question": "problem"})
    )
    schema = {**table.schema, "problem": pl.String()}
    named = identify(table._replace(frame=frame, schema=schema), pl.col("text"))
    return explode_steps(named.frame, ["text", "is_correct"])


def _to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    rows = solutions(steps, labels, format_name="openr", taken=tuple(_DTYPES))
    refuse(
        rows.steps,
        pl.col("text").str.contains(TAG, literal=True),
        "the text holds five line ends in a row, which end a step in format 'openr'",
    )
    tagged = pl.col("__texts").list.eval(pl.format("{} {}", pl.element(), pl.lit(TAG)))
    marks = pl.col("__labels").list.eval(
        pl.when(pl.element()).then(pl.lit("+")).otherwise(pl.lit("-"))
    )
    frame = rows.frame.with_columns(tagged.list.join(" ").alias("process"), marks.alias("__marks"))
    return json_lines(
        frame,
        {
            "question": json_text("problem"),
            "process": json_text("process"),
            "label": json_text("__marks"),
        },
        rows.carried,
    )


FORMAT = StepFormat(
    summary="OpenR's converted form: a row per solution, its text with tags, and + and - (JSON)",
    reader=Reader(
        summary="OpenR's converted form",
        requires=(("question",), ("process",), ("label",)),
        dtypes=_DTYPES,
        to_attempts=_to_steps,
        shapes={"label": pl.List},
    ),
    to_lines=_to_lines,
    takes=frozenset({"neutral", "threshold"}),
)
