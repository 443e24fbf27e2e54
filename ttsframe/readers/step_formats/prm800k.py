"""PRM800K: what people said of each step, with all the alternatives that they were shown.

A row of the table is one alternative; ``is_on_path`` marks the one that was continued, or the first where
the labelling ended without a choice, so that ``steps.filter("is_on_path")`` has one row per step. A step
with no alternative keeps a row whose ``text`` is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.table import Reader, Table
from ttsframe.readers.step_formats.prm800k_lines import OF_QUESTION, to_lines
from ttsframe.readers.step_formats.reading import (
    fields_of,
    first_fault,
    identify,
    typed,
    unpacked,
    without_faults,
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
_OF_LABEL: Final = {
    "total_time": "total_time",
    "finish_reason": "finish_reason",
    "steps": "__steps",
}
_OF_STEP: Final = {
    "completions": "__completions",
    "human_completion": "__human",
    "chosen_completion": "chosen_completion",
}
_OF_COMPLETION: Final = {name: name for name in ("text", "rating", "flagged", "source")}


_MADE: Final = (
    *OF_QUESTION.values(),
    *(name for name in (*_OF_LABEL, *_OF_COMPLETION) if name != "steps"),
    *("n_alternatives", "chosen_completion", "is_human"),
)


def _to_steps(source: Table) -> pl.LazyFrame:
    table = typed(source, _DTYPES, made=_MADE)
    question, label = table.schema["question"], table.schema["label"]
    frame = table.frame.with_columns(
        *unpacked("question", question, OF_QUESTION, "question"),
        *unpacked("label", label, _OF_LABEL, "label"),
    ).drop("question", "label")
    steps = fields_of(label).get("steps", pl.Null())
    fields = fields_of(steps)
    for name, there in (("problem", fields_of(question)), ("steps", fields_of(label))):
        if name not in there:
            raise ColumnsError(
                f"{', '.join(table.row_words)}: no row has a {name!r} in its "
                f"{'question' if name == 'problem' else 'label'!r}, which format 'prm800k' needs."
            )
    texts = _of_alternatives(fields, "text", lambda text: text)
    ratings = _of_alternatives(fields, "rating", lambda rating: ~rating.is_in([-1, 0, 1]))
    marked = frame.with_columns(
        texts.list.eval(pl.element().list.drop_nulls().list.join("\x1f")).alias("__texts"),
    )
    fault = first_fault({
        "'question' has no problem": pl.col("problem").is_null(),
        "'label' has no steps": pl.col("__steps").is_null(),
        "an alternative is null": _has_hollow(fields),
        "a rating must be -1, 0, 1 or null": ratings.list.eval(pl.element().list.any()).list.any(),
    })
    frame = without_faults(table, marked, fault)
    named = identify(
        table._replace(frame=frame, schema=dict(frame.collect_schema())), pl.col("__texts")
    )
    exploded = (
        named.frame
        .drop("__texts")
        .with_columns(pl.int_ranges(pl.col("__steps").list.len(), dtype=pl.Int64).alias("step"))
        .explode("__steps", "step", empty_as_null=True, keep_nulls=True)
        .with_columns(pl.col("step").fill_null(-1), *unpacked("__steps", steps, _OF_STEP, "step"))
        .drop("__steps")
    )
    return _explode_alternatives(exploded, fields)


def _of_alternatives(
    fields: Mapping[str, pl.DataType], name: str, make: Callable[[pl.Expr], pl.Expr]
) -> pl.Expr:
    """Return a list per step of something of its alternatives, the person's own last."""
    parts = []
    element = pl.element()
    if name in fields_of(fields.get("completions", pl.Null())):
        shown = element.struct.field("completions").list.eval(make(element.struct.field(name)))
        parts.append(shown.fill_null([]))
    if name in fields_of(fields.get("human_completion", pl.Null())):
        human = make(element.struct.field("human_completion").struct.field(name))
        parts.append(pl.concat_list(human))
    return pl.col("__steps").list.eval(pl.concat_list(parts) if parts else pl.lit([]))


def _has_hollow(fields: Mapping[str, pl.DataType]) -> pl.Expr:
    """Tell whether a list of alternatives has a null in place of one."""
    if "completions" not in fields:
        return pl.lit(value=False)
    hollow = pl.element().struct.field("completions").list.eval(pl.element().is_null()).list.any()
    return pl.col("__steps").list.eval(hollow).list.any()


def _explode_alternatives(frame: pl.LazyFrame, fields: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Turn a row per step into a row per alternative; what a person wrote comes last."""
    kinds = fields_of(fields.get("human_completion", pl.Null()))
    kinds |= fields_of(fields.get("completions", pl.Null()))
    one = pl.Struct(kinds)
    empty = pl.lit([], dtype=pl.List(one))
    missing = {
        "completions": pl.lit(None, dtype=pl.List(one)).alias("__completions"),
        "human_completion": pl.lit(None, dtype=one).alias("__human"),
        "chosen_completion": pl.lit(None, dtype=pl.Int64).alias("chosen_completion"),
    }
    frame = frame.with_columns(value for name, value in missing.items() if name not in fields)
    shown = pl.col("__completions").cast(pl.List(one))
    human = pl.col("__human").cast(one)
    people = pl.when(human.is_not_null()).then(pl.concat_list(human)).otherwise(empty)
    exploded = (
        frame
        .with_columns(
            shown.list.len().cast(pl.Int64).alias("n_alternatives"),
            human.is_not_null().alias("__has_human"),
            pl.concat_list(shown.fill_null(empty), people).alias("__all"),
        )
        .with_columns(pl.int_ranges(pl.col("__all").list.len(), dtype=pl.Int64).alias("__nth"))
        .drop("__completions", "__human")
        .explode("__all", "__nth", empty_as_null=True, keep_nulls=True)
        .with_columns(*unpacked("__all", one, _OF_COMPLETION, "completion"))
    )
    chosen, nth = pl.col("chosen_completion"), pl.col("__nth")
    is_human = nth >= pl.col("n_alternatives").fill_null(0)
    is_first = chosen.is_null() & ~pl.col("__has_human") & (nth == 0)
    is_on_path = pl.when(is_human).then(chosen.is_null()).otherwise((nth == chosen) | is_first)
    rating = pl.col("rating") if "rating" in kinds else pl.lit(None, dtype=pl.Int64)
    return exploded.with_columns(
        is_human.alias("is_human"),
        pl.when(~is_human).then(nth).alias("alternative"),
        is_on_path.fill_null(value=False).alias("is_on_path"),
        rating.cast(pl.Int8).alias("rating"),
        pl.when(rating != 0).then(rating > 0).alias("is_correct"),
    ).drop("__all", "__nth", "__has_human")


FORMAT = StepFormat(
    summary="PRM800K: a row per solution with alternatives for each step and their ratings (JSON)",
    reader=Reader(
        summary="PRM800K",
        requires=(("question",), ("label",)),
        dtypes=_DTYPES,
        to_attempts=_to_steps,
        shapes={"question": pl.Struct, "label": pl.Struct},
    ),
    to_lines=to_lines,
    takes=frozenset({"threshold"}),
)
