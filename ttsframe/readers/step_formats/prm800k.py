"""PRM800K: human ratings of each step, with all alternatives that were shown.

A row of the table is one alternative. `is_on_path` marks the alternative that was continued, or the first
if labeling ended without a choice, so `steps.filter("is_on_path")` has one row per step. A step without
alternatives keeps a row whose `text` is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import FileFormat, Table
from ttsframe.readers.step_formats.reading import (
    add_ids,
    cast_source,
    check_rows,
    first_fault,
    unpack_fields,
)
from ttsframe.readers.step_formats.step_format import StepFormat

_COMPLETION: Final = pl.Struct({
    "text": pl.String(),
    "rating": pl.Int64(),
    "flagged": pl.Boolean(),
    "source": pl.String(),
})
_DTYPES: dict[str, pl.DataType] = {
    "labeler": pl.String(),
    "timestamp": pl.String(),
    "generation": pl.Int64(),
    "is_quality_control_question": pl.Boolean(),
    "is_initial_screening_question": pl.Boolean(),
    "question": pl.Struct({
        "problem": pl.String(),
        "ground_truth_solution": pl.String(),
        "ground_truth_answer": pl.String(),
        "pre_generated_steps": pl.List(pl.String()),
        "pre_generated_answer": pl.String(),
        "pre_generated_verifier_score": pl.Float64(),
    }),
    "label": pl.Struct({
        "steps": pl.List(
            pl.Struct({
                "completions": pl.List(_COMPLETION),
                "human_completion": _COMPLETION,
                "chosen_completion": pl.Int64(),
            })
        ),
        "finish_reason": pl.String(),
    }),
}
ALTERNATIVE_COLUMNS: Final = ("alternative", "n_alternatives", "chosen_completion", "is_human")
"""Columns that describe the alternatives of a step, and the choice between them."""

_QUESTION_FIELDS: Final = {
    "problem": "problem",
    "ground_truth_answer": "gold",
    "ground_truth_solution": "solution",
    "pre_generated_steps": "pre_generated_steps",
    "pre_generated_answer": "pre_generated_answer",
    "pre_generated_verifier_score": "pre_generated_verifier_score",
}
_LABEL_FIELDS: Final = {
    "total_time": "total_time",
    "finish_reason": "finish_reason",
    "steps": "__steps",
}
_STEP_FIELDS: Final = {
    "completions": "__completions",
    "human_completion": "__human",
    "chosen_completion": "chosen_completion",
}
_COMPLETION_FIELDS: Final = {name: name for name in ("text", "rating", "flagged", "source")}
_MADE: Final = (
    *_QUESTION_FIELDS.values(),
    *(name for name in (*_LABEL_FIELDS, *_COMPLETION_FIELDS) if name != "steps"),
    *("n_alternatives", "chosen_completion", "is_human"),
)


def _to_steps(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _DTYPES, made=_MADE)
    question, label = table.schema["question"], table.schema["label"]
    frame = table.frame.with_columns(
        *unpack_fields("question", question, _QUESTION_FIELDS, "question"),
        *unpack_fields("label", label, _LABEL_FIELDS, "label"),
    ).drop("question", "label")
    steps = struct_fields(label).get("steps", pl.Null())
    fields = struct_fields(steps)
    for column, field in (("question", "problem"), ("label", "steps")):
        if field not in struct_fields(table.schema[column]):
            raise ColumnsError(
                f"{', '.join(table.row_words)}: no row has {field!r} in its {column!r}, which format "
                f"'prm800k' requires."
            )
    texts = _of_alternatives(fields, "text", lambda text: text)
    ratings = _of_alternatives(fields, "rating", lambda rating: ~rating.is_in([-1, 0, 1]))
    marked = frame.with_columns(
        texts.list.eval(pl.element().list.drop_nulls().list.join("\x1f")).alias("__texts"),
    )
    fault = first_fault({
        "'question' has no problem": pl.col("problem").is_null(),
        "'label' has no steps": pl.col("__steps").is_null(),
        "an alternative is null": _has_null_alternative(fields),
        "a rating must be -1, 0, 1 or null": ratings.list.eval(pl.element().list.any()).list.any(),
    })
    frame = check_rows(table, marked, fault)
    named = add_ids(
        table._replace(frame=frame, schema=dict(frame.collect_schema())), pl.col("__texts")
    )
    exploded = (
        named.frame
        .drop("__texts")
        .with_columns(pl.int_ranges(pl.col("__steps").list.len(), dtype=pl.Int64).alias("step"))
        .explode("__steps", "step", empty_as_null=True, keep_nulls=True)
        .with_columns(
            pl.col("step").fill_null(-1), *unpack_fields("__steps", steps, _STEP_FIELDS, "step")
        )
        .drop("__steps")
    )
    return _explode_alternatives(exploded, fields)


def _of_alternatives(
    fields: Mapping[str, pl.DataType], name: str, make: Callable[[pl.Expr], pl.Expr]
) -> pl.Expr:
    """Return a list per step of one field of its alternatives, that of the labeler last."""
    parts = []
    element = pl.element()
    if name in struct_fields(fields.get("completions", pl.Null())):
        shown = element.struct.field("completions").list.eval(make(element.struct.field(name)))
        parts.append(shown.fill_null([]))
    if name in struct_fields(fields.get("human_completion", pl.Null())):
        human = make(element.struct.field("human_completion").struct.field(name))
        parts.append(pl.concat_list(human))
    return pl.col("__steps").list.eval(pl.concat_list(parts) if parts else pl.lit([]))


def _has_null_alternative(fields: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return whether a list of alternatives has a null element."""
    if "completions" not in fields:
        return pl.lit(value=False)
    is_null = pl.element().struct.field("completions").list.eval(pl.element().is_null()).list.any()
    return pl.col("__steps").list.eval(is_null).list.any()


def _explode_alternatives(frame: pl.LazyFrame, fields: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Turn a row per step into a row per alternative; a text by the labeler comes last."""
    kinds = struct_fields(fields.get("human_completion", pl.Null()))
    kinds |= struct_fields(fields.get("completions", pl.Null()))
    alternative = pl.Struct(kinds)
    empty = pl.lit([], dtype=pl.List(alternative))
    missing = {
        "completions": pl.lit(None, dtype=pl.List(alternative)).alias("__completions"),
        "human_completion": pl.lit(None, dtype=alternative).alias("__human"),
        "chosen_completion": pl.lit(None, dtype=pl.Int64).alias("chosen_completion"),
    }
    frame = frame.with_columns(value for name, value in missing.items() if name not in fields)
    shown = pl.col("__completions").cast(pl.List(alternative))
    human = pl.col("__human").cast(alternative)
    by_labeler = pl.when(human.is_not_null()).then(pl.concat_list(human)).otherwise(empty)
    exploded = (
        frame
        .with_columns(
            shown.list.len().cast(pl.Int64).alias("n_alternatives"),
            human.is_not_null().alias("__has_human"),
            pl.concat_list(shown.fill_null(empty), by_labeler).alias("__all"),
        )
        .with_columns(pl.int_ranges(pl.col("__all").list.len(), dtype=pl.Int64).alias("__number"))
        .drop("__completions", "__human")
        .explode("__all", "__number", empty_as_null=True, keep_nulls=True)
        .with_columns(*unpack_fields("__all", alternative, _COMPLETION_FIELDS, "completion"))
    )
    chosen, number = pl.col("chosen_completion"), pl.col("__number")
    is_human = number >= pl.col("n_alternatives").fill_null(0)
    is_first = chosen.is_null() & ~pl.col("__has_human") & (number == 0)
    is_on_path = pl.when(is_human).then(chosen.is_null()).otherwise((number == chosen) | is_first)
    rating = pl.col("rating") if "rating" in kinds else pl.lit(None, dtype=pl.Int64)
    return exploded.with_columns(
        is_human.alias("is_human"),
        pl.when(~is_human).then(number).alias("alternative"),
        is_on_path.fill_null(value=False).alias("is_on_path"),
        rating.cast(pl.Int8).alias("rating"),
        pl.when(rating != 0).then(rating > 0).alias("is_correct"),
    ).drop("__all", "__number", "__has_human")


FORMAT = StepFormat(
    FileFormat(
        summary="PRM800K: a row per solution with alternatives for each step and their ratings (JSON)",
        requires=(("question",), ("label",)),
        dtypes=_DTYPES,
        to_rows=_to_steps,
        shapes={"question": pl.Struct, "label": pl.Struct},
    )
)
