"""Math-Shepherd: `{input, label, task}`; each step of `input` ends in `ки`, where `label` has + or -.

The problem comes first and ends before `Step 1:`, which is part of the text of the first step. Text after
the last `ки`, from a completion that was cut off, is a last step without a label. One space before each
`ки` and one line end after it belong to the format; they are optional in input and always written.
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

TOKEN: Final = "ки"  # noqa: S105 - no password
_START: Final = r"(?:\A|\s)Step 1:"
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
    table = cast_source(source, _DTYPES)
    aligned = (
        pl
        .struct("input", "label")
        .map_batches(_align, return_dtype=_ALIGNED, is_elementwise=True)
        .alias("__aligned")
    )
    read = table.frame.with_columns(aligned).drop("input", "label").unnest("__aligned")
    frame = check_rows(table, read, pl.col("__fault"))
    schema = {**table.schema, "problem": pl.String()}
    named = add_ids(table._replace(frame=frame, schema=schema), pl.col("text"))
    return explode_steps(named.frame, ["text", "is_correct"])


def _align(rows: pl.Series) -> pl.Series:
    """Cut inputs at their tokens, and read the mark in the place of each token from the labels."""
    text, marked = pl.col("input"), pl.col("label").cast(pl.Binary)
    start = text.str.find(_START).cast(pl.Int64)
    solution, pieces = pl.col("solution"), pl.col("pieces")
    before = text.str.len_bytes().cast(pl.Int64) - solution.str.len_bytes()
    head = text.cast(pl.Binary).bin.slice(0, before)
    cut = (
        rows
        # A file comes in hundreds of chunks, and each expression would loop over them.
        .rechunk()
        .struct.unnest()
        .with_row_index("__row")
        .with_columns(
            problem=text.cast(pl.Binary).bin.slice(0, start).cast(pl.String),
            # The match begins with white space unless it starts the text.
            solution=text.cast(pl.Binary).bin.slice(start).cast(pl.String).str.strip_chars_start(),
        )
        .with_columns(pieces=solution.str.split(TOKEN), marked=marked.bin.slice(before))
        .with_columns(
            n=pieces.list.len().cast(pl.Int64) - 1,
            rest=pieces.list.last().str.strip_prefix("\n"),
            fault=first_fault({
                "'input' is null": text.is_null(),
                "'label' is null": pl.col("label").is_null(),
                f"'input' has no {TOKEN!r}, which ends each step": ~text.str.contains(
                    TOKEN, literal=True
                ),
                "'input' has no 'Step 1:', which separates the problem from the first step": start.is_null()
                | pl.col("problem").str.contains(TOKEN, literal=True),
                f"the texts of 'input' and 'label' differ before {TOKEN!r} 1": head
                != marked.bin.slice(0, before),
            }),
        )
    )
    steps = pieces.list.head("n").list.eval(
        pl.element().str.strip_prefix("\n").str.strip_suffix(" ")
    )
    is_cut_off = pl.col("rest").str.strip_chars() != ""
    return (
        cut
        .join(_read_marks(cut), on="__row", how="left", maintain_order="left")
        .select(
            pl.struct(
                "problem",
                pl
                .when(is_cut_off)
                .then(pl.concat_list(steps, "rest"))
                .otherwise(steps)
                .alias("text"),
                pl
                .when(is_cut_off)
                .then(pl.concat_list("is_correct", pl.lit(None, dtype=pl.Boolean)))
                .otherwise("is_correct")
                .alias("is_correct"),
                pl.coalesce("fault", "fault_of_label").alias("__fault"),
            ).alias(rows.name)
        )
        .to_series()
    )


def _read_marks(cut: pl.DataFrame) -> pl.DataFrame:
    """Read marks of one byte in the places of tokens of four bytes."""
    k, n, end, size = (pl.col(name) for name in ("k", "n", "end", "size"))
    piece, marked = pl.col("pieces"), pl.col("marked")
    total = (size + 1).cum_sum()
    flat = (
        cut
        .filter(pl.col("fault").is_null())
        .select("__row", "marked", "pieces", "n", k=pl.int_ranges(n + 1, dtype=pl.Int64))
        .explode("pieces", "k", empty_as_null=True, keep_nulls=True)
        .with_columns(size=piece.str.len_bytes().cast(pl.Int64))
        .with_columns(end=total - pl.when(k == 0).then(total - size - 1).forward_fill() - 1)
        .with_columns(mark=marked.bin.slice(end, 1), is_last=k == n)
        .with_columns(
            is_other=(marked.bin.slice(end - size, size) != piece.cast(pl.Binary))
            | (pl.col("is_last") & (marked.bin.size().cast(pl.Int64) > end)),
            is_right=pl.col("mark") == pl.lit(b"+"),
            is_wrong=pl.col("mark") == pl.lit(b"-"),
        )
    )
    is_unmarked = ~(pl.col("is_last") | pl.col("is_right") | pl.col("is_wrong"))
    token = repr(TOKEN)
    where = (
        pl
        .when("is_last")
        .then(pl.lit(f"after the last {token}"))
        .otherwise(pl.format("before {} {}", pl.lit(token), k + 1))
    )
    faults = (
        flat
        .filter(pl.col("is_other") | is_unmarked)
        .unique("__row", keep="first", maintain_order=True)
        .select(
            "__row",
            fault_of_label=pl
            .when("is_other")
            .then(pl.format("the texts of 'input' and 'label' differ {}", where))
            .otherwise(
                pl.format("'label' has no + or - in the place of {} {}", pl.lit(token), k + 1)
            ),
        )
    )
    marks = (
        flat
        .filter(~pl.col("is_last"))
        .group_by("__row", maintain_order=True)
        .agg(pl.col("is_right").alias("is_correct"))
    )
    return marks.join(faults, on="__row", how="left", maintain_order="left")


def _to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    rows = group_solutions(
        steps,
        labels,
        format_name="math_shepherd",
        taken=("input", "label"),
        may_end_unlabeled=True,
    )
    text, step = pl.col("text"), pl.col("step")
    hint = "Hint: pl.format('Step {}: {}', pl.col('step') + 1, 'text') writes it before each step."
    refuse(
        rows.steps,
        step == -1,
        "the solution has no step, which format 'math_shepherd' cannot represent",
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
        "the last step has neither text nor label, which format 'math_shepherd' cannot represent",
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
    FileFormat(
        summary="Math-Shepherd: a row per solution, its steps ending in ки, and in + or - (JSON)",
        requires=(("input",), ("label",)),
        dtypes=_DTYPES,
        to_rows=_to_steps,
        shapes={"label": pl.String},
    ),
    to_lines=_to_lines,
)
