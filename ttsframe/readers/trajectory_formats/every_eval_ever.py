"""every_eval_ever: instances (`{run}_samples.jsonl`), a row per interaction with a model, by version 0.2 of the schema.

`evaluation.is_correct` is the grade, and `evaluation.score`, which was computed with it, is `source_score`. Of a
conversation, the messages of the assistant are the completion. A number of the attempt in `metadata.attempt`
orders the attempts at a sample; else they are in the order of the file. Several models or evaluations of a file
stay apart by `model` and `evaluation_name`.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.dtypes import as_instance, struct_fields
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
    set_apart,
    spoken,
)

_TEXTS = pl.List(pl.String())
_DTYPES: dict[str, pl.DataType] = {
    "sample_id": pl.String(),
    "model_id": pl.String(),
    "evaluation_name": pl.String(),
    "interaction_type": pl.String(),
    "error": pl.String(),
    "input": pl.Struct({"raw": pl.String(), "reference": _TEXTS, "choices": _TEXTS}),
    "output": pl.Struct({"raw": _TEXTS, "reasoning_trace": _TEXTS}),
    "evaluation": pl.Struct({"score": pl.Float64(), "is_correct": pl.Boolean()}),
    "token_usage": pl.Struct({"input_tokens": pl.Int64(), "output_tokens": pl.Int64()}),
    "answer_attribution": pl.List(
        pl.Struct({"extracted_value": pl.String(), "is_terminal": pl.Boolean()})
    ),
    "metadata": pl.Struct({"attempt": pl.String()}),
}
_LEFT_OUT = (
    "schema_version",
    "sample_id",
    "input",
    "output",
    "messages",
    "answer_attribution",
    "evaluation",
    "token_usage",
    "performance",
    "__order",
)
_RUN = ("model", "evaluation_id", "evaluation_name", "evaluation_result_id")


def _to_attempts(source: Table) -> pl.LazyFrame:
    apart = set_apart(cast_columns(source, _DTYPES), (), "source_", {"model_id": "model"})
    table = _check_outputs(add_problem_id(apart, ("problem_id", "sample_id"), "sample_id"))
    frame = table.frame.with_columns(expr.alias(name) for name, expr in _columns(table).items())
    is_numbered = "attempt" in struct_fields(table.schema.get("metadata", pl.Null()))
    numbered = number_attempts(frame, by=_RUN, order="__order" if is_numbered else None)
    return numbered.drop(_LEFT_OUT, strict=False)


def _columns(table: Table) -> dict[str, pl.Expr]:
    schema = table.schema
    fields = {name: struct_fields(schema.get(name, pl.Null())) for name in _DTYPES}

    def field(column: str, name: str, dtype: pl.DataType) -> pl.Expr:
        """Return a field, null where the file has none."""
        has = name in fields[column]
        return pl.col(column).struct.field(name) if has else pl.lit(None, dtype=dtype)

    reference = field("input", "reference", _TEXTS)
    n_references = reference.list.len()
    said = field("output", "raw", _TEXTS).list.first()
    if not isinstance(schema.get("messages", pl.Null()), pl.Null):
        said = pl.coalesce(said, spoken(table, "messages", "assistant"))
    columns: dict[str, pl.Expr] = {
        "problem": field("input", "raw", pl.String()),
        "completion": said,
        "gold": pl.when(n_references == 1).then(reference.list.first()),
        "is_correct": field("evaluation", "is_correct", pl.Boolean()),
        "source_score": field("evaluation", "score", pl.Float64()),
        "n_tokens": field("token_usage", "output_tokens", pl.Int64()),
        "n_prompt_tokens": field("token_usage", "input_tokens", pl.Int64()),
        "targets": pl.when(n_references > 1).then(reference),
        "choices": field("input", "choices", _TEXTS),
    }
    attributed = schema.get("answer_attribution", pl.Null())
    element = as_instance(attributed.inner) if isinstance(attributed, pl.List) else pl.Null()
    if {"extracted_value", "is_terminal"} <= struct_fields(element).keys():
        value, is_last = (
            pl.element().struct.field(name) for name in ("extracted_value", "is_terminal")
        )
        found = pl.col("answer_attribution").list.eval(pl.when(is_last).then(value))
        columns["answer"] = found.list.drop_nulls().list.last().replace("", None)
    if "attempt" in fields["metadata"]:
        columns["__order"] = field("metadata", "attempt", pl.String()).cast(pl.Int64, strict=False)
    if not isinstance(schema.get("error", pl.Null()), pl.Null):
        is_error = pl.col("error").is_not_null()
        columns["finish_reason"] = pl.when(is_error).then(pl.lit("error"))
    return columns


def _check_outputs(table: Table) -> Table:
    """Refuse an instance with several responses, of which one grade says nothing."""
    if "raw" not in struct_fields(table.schema.get("output", pl.Null())):
        return table
    counted = table.frame.with_columns(
        pl.col("output").struct.field("raw").list.len().alias("__n_responses")
    )

    def reason(row: Mapping[str, object]) -> str:
        return (
            f"sample {row['problem_id']!r} has {row['__n_responses']} responses in 'output.raw' and one grade; "
            "write an instance for each"
        )

    is_broken = (pl.col("__n_responses") > 1).fill_null(value=False)
    checked = table.check(counted, is_broken, ["problem_id", "__n_responses"], reason)
    return table._replace(frame=checked.drop("__n_responses"))


FORMAT = FileFormat(
    summary="every_eval_ever: instances, a row per interaction with its grade (JSON lines)",
    requires=(
        ("evaluation_id",),
        ("sample_id",),
        ("interaction_type",),
        ("input",),
        ("evaluation",),
    ),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"input": pl.Struct, "evaluation": pl.Struct},
    unit="instance",
    columns={
        "sample_id": "problem_id",
        "model_id": "model",
        "input.raw": "problem",
        "input.reference": "gold",
        "output.raw": "completion",
        "answer_attribution.extracted_value": "answer",
        "evaluation.is_correct": "is_correct",
        "token_usage.output_tokens": "n_tokens",
        "token_usage.input_tokens": "n_prompt_tokens",
    },
    is_exchangeable=True,
    ignores=(
        "schema_version",
        "input.formatted",
        "output.reasoning_trace",
        "messages of other roles",
        "answers that are not terminal",
        "evaluation.num_turns",
        "evaluation.tool_calls_count",
        "token_usage beyond input and output",
        "performance",
    ),
    traps=(
        Trap(
            "several_evaluations",
            ("evaluation_name", "model"),
            (pl.col("evaluation_name") != pl.col("evaluation_name").first())
            | (pl.col("model") != pl.col("model").first()),
            "are of another model or evaluation than the first",
            "by=['model', 'evaluation_name'] (--by model --by evaluation_name) keeps them apart.",
        ),
    ),
)
