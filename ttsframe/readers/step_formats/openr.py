"""OpenR's converted form: `{question, process, label: ["+", "-"]}`, with a tag after each step.

The default tag of OpenR is five line ends. A process with the tag of Math-Shepherd, once per label, is
read as well. Written files have the tag of OpenR.
"""

from __future__ import annotations

from typing import Final

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
from ttsframe.readers.step_formats.writing import group_solutions, json_lines, json_text, refuse

TAG: Final = "\n" * 5
_OTHER_TAG: Final = "ки"
_MARKS: Final = ("+", "-")
_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "process": pl.String(),
    "label": pl.List(pl.String()),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _DTYPES)
    process, label = pl.col("process"), pl.col("label")
    n = label.list.len()
    # With a space before the first step too, all pieces are alike.
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
    split_steps = table.frame.with_columns(pl.coalesce(is_tag.values()).alias("text"))
    n_steps = [process.str.count_matches(tag, literal=True) for tag in pieces]
    uneven = pl.format(
        "has {} labels but {} steps that end in five line ends (and {} that end in {}); expected one "
        "label per step, and nothing after the last step",
        n,
        *n_steps,
        pl.lit(repr(_OTHER_TAG)),
    )
    has_other_mark = ~label.list.eval(pl.element().is_in(_MARKS).fill_null(value=False)).list.all()
    fault = pl.coalesce(
        first_fault({
            "'question' is null": pl.col("question").is_null(),
            "'process' is null": process.is_null(),
            "'label' is null": label.is_null(),
            "'label' must hold '+' and '-' only": has_other_mark,
        }),
        pl.when(pl.col("text").is_null()).then(uneven),
    )
    frame = (
        check_rows(table, split_steps, fault)
        .with_columns(label.list.eval(pl.element() == "+").alias("is_correct"))
        .drop("process", "label")
        .rename({"question": "problem"})
    )
    schema = {**table.schema, "problem": pl.String()}
    named = add_ids(table._replace(frame=frame, schema=schema), pl.col("text"))
    return explode_steps(named.frame, ["text", "is_correct"])


def _to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    rows = group_solutions(steps, labels, format_name="openr", taken=tuple(_DTYPES))
    refuse(
        rows.steps,
        pl.col("text").str.contains(TAG, literal=True),
        "the text holds five consecutive line ends, which end a step in format 'openr'",
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
    FileFormat(
        summary="OpenR's converted form: a row per solution, its text with tags, and + and - (JSON)",
        requires=(("question",), ("process",), ("label",)),
        dtypes=_DTYPES,
        to_rows=_to_steps,
        shapes={"label": pl.List},
    ),
    to_lines=_to_lines,
)
