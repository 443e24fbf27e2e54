"""OpenR's converted form: ``{question, process, label: ["+", "-"]}``, a tag after each step.

OpenR's default tag is five line ends; a process that has Math-Shepherd's instead, as many as it has
labels, is read as well. What is written has OpenR's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from ttsframe.process.formats.reading import explode_steps, identify
from ttsframe.process.formats.step_format import Labels, StepFormat
from ttsframe.process.formats.writing import json_lines, json_text, refuse, solutions
from ttsframe.readers._table import Reader, Table, as_dtypes

TAG: Final = "\n" * 5
_OTHER_TAG: Final = "ки"
_MARKS: Final = {"+": True, "-": False}
_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "process": pl.String(),
    "label": pl.List(pl.String()),
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = as_dtypes(source, _DTYPES)
    process, label, n = pl.col("process"), pl.col("label"), pl.col("__n_labels")
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
    counted = table.frame.with_columns(
        label.list.len().cast(pl.Int64).alias("__n_labels"),
        label.list
        .eval(pl.element().is_in(list(_MARKS)).fill_null(value=False))
        .list.all()
        .alias("__is_marked"),
        *(
            process.str.count_matches(tag, literal=True).alias(f"__n_{i}")
            for i, tag in enumerate(pieces)
        ),
    ).with_columns(
        pl
        .when(fits[TAG])
        .then(texts[TAG])
        .when(fits[_OTHER_TAG])
        .then(texts[_OTHER_TAG])
        .alias("__texts")
    )
    broken = pl.any_horizontal(
        pl.col("question").is_null(),
        pl.col("__texts").is_null(),
        ~pl.col("__is_marked").fill_null(value=False),
    )

    def reason(row: Mapping[str, object]) -> str:
        if row["question"] is None:
            return "'question' is null"
        if row["__is_marked"] is None:
            return "'label' is null"
        if not row["__is_marked"]:
            return f"'label' is {row['label']}, must hold '+' and '-' only"
        if row["__n_0"] is None:
            return "'process' is null"
        return (
            f"has {row['__n_labels']} labels but {row['__n_0']} steps that end in five line ends (and "
            f"{row['__n_1']} that end in {_OTHER_TAG!r}); there must be one label for each, and nothing "
            f"after the last"
        )

    details = ["question", "label", "__n_labels", "__is_marked", "__n_0", "__n_1"]
    frame = (
        table
        .check(counted, broken, details, reason)
        .with_columns(label.list.eval(pl.element() == "+").alias("is_correct"))
        .drop("process", "label", "__n_labels", "__is_marked", "__n_0", "__n_1")
        .rename({"question": "problem", "__texts": "text"})
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
    tagged = pl.col("texts").list.eval(pl.format("{} {}", pl.element(), pl.lit(TAG)))
    marks = pl.col("labels").list.eval(
        pl.when(pl.element()).then(pl.lit("+")).otherwise(pl.lit("-"))
    )
    frame = rows.frame.with_columns(tagged.list.join(" ").alias("process"), marks.alias("marks"))
    return json_lines(
        frame,
        {
            "question": json_text("problem"),
            "process": json_text("process"),
            "label": json_text("marks"),
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
