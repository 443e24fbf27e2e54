"""Math-Shepherd: ``{input, label, task}``; each step of ``input`` ends in ``ки``, where ``label`` has + or -.

The problem comes first and ends before ``Step 1:``. Steps keep their ``Step 1:``, which is part of their
text. Text after the last ``ки``, from a completion that was cut off, is a last step without a label. One
space before each ``ки`` and one line end after it belong to the format, and are written whether they
were there or not.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe.process.formats.reading import explode_steps, identify, typed, without_faults
from ttsframe.process.formats.step_format import Labels, StepFormat
from ttsframe.process.formats.writing import json_lines, json_text, refuse, solutions
from ttsframe.readers._table import Reader, Table

TOKEN: Final = "ки"  # noqa: S105 - no password
_START: Final = r"(?:\A|\s)Step 1:"
_SPLIT: Final = r"\A((?s:.*?))(?:\A|\s)(Step 1:(?s:.*))\z"
_DTYPES: dict[str, pl.DataType] = {
    "input": pl.String(),
    "label": pl.String(),
    "task": pl.String(),
}
_ALIGNED: Final = pl.Struct({
    "problem": pl.String(),
    "text": pl.List(pl.String()),
    "is_correct": pl.List(pl.Boolean()),
    "__fault": pl.String(),
})


def _to_steps(source: Table) -> pl.LazyFrame:
    table = typed(source, _DTYPES)
    aligned = (
        pl
        .struct("input", "label")
        .map_batches(_align, return_dtype=_ALIGNED, is_elementwise=True)
        .alias("__aligned")
    )
    read = table.frame.with_columns(aligned).drop("input", "label").unnest("__aligned")
    frame = without_faults(table, read, pl.col("__fault"))
    schema = {**table.schema, "problem": pl.String()}
    named = identify(table._replace(frame=frame, schema=schema), pl.col("text"))
    return explode_steps(named.frame, ["text", "is_correct"])


def _align(rows: pl.Series) -> pl.Series:
    """Cut inputs at their tokens, and find what each label has in the place of each token."""
    label = pl.col("label").cast(pl.Binary)
    piece, size = pl.col("piece"), pl.col("size")
    length = size + 1
    pieces = (
        rows.struct
        .unnest()
        .lazy()
        .with_row_index("__row")
        .with_columns(piece=pl.col("input").str.split(TOKEN))
        .with_columns(last=pl.col("piece").list.len().cast(pl.Int64) - 1)
        .with_columns(k=pl.int_ranges(pl.col("last") + 1, dtype=pl.Int64))
        .explode("piece", "k", empty_as_null=True, keep_nulls=True)
        .with_columns(size=piece.str.len_bytes().cast(pl.Int64))
        # where each piece begins in the label, which has one byte where the input has a token
        .with_columns(end=length.cum_sum().over("__row") - 1)
        .with_columns(
            body=label.bin.slice(pl.col("end") - size, size),
            mark=label.bin.slice(pl.col("end"), 1),
            rest=label.bin.size().cast(pl.Int64) - pl.col("end"),
            is_last=pl.col("k") == pl.col("last"),
            split=pl.when(pl.col("k") == 0).then(piece.str.extract_groups(_SPLIT)),
        )
    )
    is_last = pl.col("is_last")
    before = pl.format("before {} {}", pl.lit(f"{TOKEN!r}"), pl.col("k") + 1)
    before = (
        pl.when(is_last).then(pl.format("after the last {}", pl.lit(repr(TOKEN)))).otherwise(before)
    )
    fault = (
        pl
        .when(pl.col("input").is_null())
        .then(pl.lit("'input' is null"))
        .when(pl.col("label").is_null())
        .then(pl.lit("'label' is null"))
        .when(pl.col("last") == 0)
        .then(pl.lit(f"'input' has no {TOKEN!r}, which ends each step"))
        .when((pl.col("k") == 0) & pl.col("split").struct.field("2").is_null())
        .then(pl.lit("'input' has no 'Step 1:', which tells the problem from the first step"))
        .when((pl.col("body") != piece.cast(pl.Binary)) | (is_last & (pl.col("rest") > 0)))
        .then(pl.format("the texts of 'input' and 'label' differ {}", before))
        .when(~is_last & ~pl.col("mark").is_in([b"+", b"-"]).fill_null(value=False))
        .then(
            pl.format(
                "'label' has no + or - in the place of {} {}", pl.lit(repr(TOKEN)), pl.col("k") + 1
            )
        )
    )
    is_step = ~is_last | (piece.str.strip_chars() != "")
    text = pl.coalesce(pl.col("split").struct.field("2"), piece.str.strip_prefix("\n"))
    text = pl.when(is_last).then(text).otherwise(text.str.strip_suffix(" "))
    return (
        pieces
        .with_columns(fault=fault, text=text, is_step=is_step)
        .group_by("__row", maintain_order=True)
        .agg(
            problem=pl.col("split").struct.field("1").first(),
            text=pl.col("text").filter("is_step"),
            is_correct=pl
            .when(~is_last)
            .then(pl.col("mark") == pl.lit(b"+"))
            .filter(pl.col("is_step")),
            __fault=pl.col("fault").drop_nulls().first(),
        )
        .select(pl.struct("problem", "text", "is_correct", "__fault").alias(rows.name))
        .collect()
        .to_series()
    )


def _to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    rows = solutions(
        steps, labels, format_name="math_shepherd", taken=("input", "label"), may_end_open=True
    )
    text, step = pl.col("text"), pl.col("step")
    hint = "Hint: pl.format('Step {}: {}', pl.col('step') + 1, 'text') writes it before each step."
    refuse(
        rows.steps,
        step == -1,
        "the solution has no step, which format 'math_shepherd' cannot hold",
    )
    for column in ("problem", "text"):
        refuse(
            rows.steps,
            pl.col(column).str.contains(TOKEN, literal=True),
            f"the {column} holds {TOKEN!r}, which ends a step in format 'math_shepherd'",
        )
    refuse(
        rows.steps,
        pl.col("problem").str.contains(_START),
        "the problem holds 'Step 1:', which ends the problem in format 'math_shepherd'",
    )
    refuse(
        rows.steps,
        (step == 0) & ~text.str.starts_with("Step 1:"),
        (
            "the text of the first step must begin with 'Step 1:', which ends the problem in "
            f"format 'math_shepherd'. {hint}"
        ),
    )
    refuse(
        rows.steps,
        pl.col("__label").is_null() & (text.str.strip_chars() == ""),
        "the last step has neither text nor label, which format 'math_shepherd' cannot hold",
    )
    marked = {
        "input": pl.lit(TOKEN),
        "label": pl.when(pl.col("__label")).then(pl.lit("+")).otherwise(pl.lit("-")),
    }
    parts = rows.steps.with_columns(
        pl.when(step == 0).then(pl.format("{} {}", "problem", text)).otherwise(text).alias("part")
    )
    joined = parts.group_by("__row", maintain_order=True).agg(
        pl
        .when(pl.col("__label").is_null())
        .then(pl.col("part"))
        .otherwise(pl.format("{} {}", "part", mark))
        .str.join("\n")
        .alias(name)
        for name, mark in marked.items()
    )
    frame = rows.frame.join(joined, on="__row", how="left", maintain_order="left")
    return json_lines(frame, {name: json_text(name) for name in marked}, rows.carried)


FORMAT = StepFormat(
    summary="Math-Shepherd: a row per solution, its steps ending in ки, and in + or - (JSON)",
    reader=Reader(
        summary="Math-Shepherd",
        requires=(("input",), ("label",)),
        dtypes=_DTYPES,
        to_attempts=_to_steps,
        shapes={"label": pl.String},
    ),
    to_lines=_to_lines,
    takes=frozenset({"neutral", "threshold"}),
)
