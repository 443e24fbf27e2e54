"""eval-framework: `output.jsonl`, a row per completion.

Repeats of a problem have ids of their own (`id` is problem x repeats + repeat), and the number of repeats is in another file, so
equal prompts of a subject are one problem, as they are for the tool's own aggregators; `id` is kept as
`sample_id`. `raw_completion` is the text of the model; `completion`, what the task made of it, is
`processed_completion`. Grades are in `results.jsonl`, a row per metric, which is not read: attempts are graded by their answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.sniff import DataFile
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
    set_apart,
)

_DTYPES: dict[str, pl.DataType] = {
    "prompt": pl.String(),
    "subject": pl.String(),
    "completion": pl.String(),
    "raw_completion": pl.String(),
    "raw_completion_sequence_positions": pl.Int64(),
    "prompt_sequence_positions": pl.Int64(),
}
_RENAMED = {
    "prompt": "problem",
    "raw_completion": "completion",
    "raw_completion_sequence_positions": "n_tokens",
    "prompt_sequence_positions": "n_prompt_tokens",
}
_MARK = "\x1f"


def _to_attempts(source: Table) -> pl.LazyFrame:
    others = {"completion": "processed_completion", "id": "sample_id"}
    apart = set_apart(cast_columns(source, _DTYPES), ("answer",), "source_", others)
    has_subject = "subject" in apart.schema
    parts = [pl.col(name).fill_null("") for name in (["subject"] if has_subject else [])]
    keyed = apart._replace(
        frame=apart.frame.with_columns(
            pl.concat_str(*parts, pl.col("prompt"), separator=_MARK).alias("__text")
        )
    )
    table = add_problem_id(keyed, ("problem_id",), "__text")
    updates = _gold(table.schema.get("ground_truth", pl.Null()))
    if "error" in table.schema:
        is_error = pl.col("error").is_not_null()
        updates["finish_reason"] = pl.when(is_error).then(pl.lit("error"))
        has_message = "message" in struct_fields(table.schema["error"])
        message = pl.col("error").struct.field("message") if has_message else pl.lit(None)
        updates["error"] = message.cast(pl.String)
    frame = table.frame.with_columns(expr.alias(name) for name, expr in updates.items())
    dropped = ("__text", "ground_truth", "messages", "context", "concat_compression")
    return number_attempts(frame.drop(dropped, strict=False).rename(_RENAMED, strict=False))


def _gold(dtype: pl.DataType) -> dict[str, pl.Expr]:
    """Return the gold answer, or all of several, any of which is right."""
    truth = pl.col("ground_truth")
    if not isinstance(dtype, pl.List):
        return {} if dtype.is_nested() else {"gold": truth.cast(pl.String)}
    texts = truth.cast(pl.List(pl.String))
    is_one = texts.list.len() == 1
    return {
        "gold": pl.when(is_one).then(texts.list.first()),
        "targets": pl.when(~is_one).then(texts),
    }


def _notices(_file: DataFile, columns: Mapping[str, pl.DataType]) -> Iterator[str]:
    if "problem_id" not in columns:
        yield (
            "has no id of a problem, so equal prompts of a subject are taken for one problem. If a column has the id: "
            "rename={'yours': 'problem_id'} (--rename yours=problem_id)."
        )


FORMAT = FileFormat(
    summary="eval-framework: output.jsonl, a row per completion",
    requires=(("prompt",), ("raw_completion",), ("ground_truth",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"raw_completion": pl.String},
    unit="completion",
    columns={**_RENAMED, "ground_truth": "gold", "error": "finish_reason"},
    is_exchangeable=True,
    ignores=("messages", "context", "concat_compression", "error.error_class", "error.traceback"),
    notices=_notices,
)
