"""sieval: the stage files of a result folder, `{iteration}/{stage}/{shard}.jsonl`, a row per sample and stage.

The files of a folder are one run, and the stages of a sample are put together: prompts (`preprocessed`), texts
(`inferred`), answers (`postprocessed`) and grades (`feedback`). Of a stage that ran again the last row counts, and of several
iterations the last that has it. Rollouts are the attempts. `score` of a judgement was computed with the
reference and is `source_score`. A sample that failed before it had rollouts is one attempt with `finish_reason` "error".

Copies of the data set (`repeat_index`) have ids of their own and are problems of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.dtypes import as_instance, struct_fields
from ttsframe.readers.engine.json_rows import FILE, ROW
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    spoken,
)

_TEXTS: Final = pl.List(pl.String())
_DTYPES: dict[str, pl.DataType] = {
    "iteration": pl.Int64(),
    "stage": pl.String(),
    "error_msg": pl.String(),
    "repeat_index": pl.Int64(),
    "infer_result": pl.Struct({"texts": _TEXTS, "finish_reasons": _TEXTS}),
    "feedback_result": pl.Struct({
        "rollouts": pl.List(pl.Struct({"correct": pl.Boolean(), "score": pl.Float64()})),
    }),
}
_LISTS: Final = {
    "completion": ("infer_result", ("texts",)),
    "finish_reason": ("infer_result", ("finish_reasons",)),
    "answer": ("postprocess_result", ("rollouts", "prediction")),
    "is_correct": ("feedback_result", ("rollouts", "correct")),
    "source_score": ("feedback_result", ("rollouts", "score")),
}
_REFERENCES: Final = ("feedback_result", "preprocess_result")


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = cast_columns(source, _DTYPES)
    table = add_problem_id(typed, ("problem_id", "sample_id"), "sample_id")
    schema = table.schema
    added: dict[str, pl.Expr] = {}
    for name, (column, path) in _LISTS.items():
        found = _list(schema, column, path)
        if found is not None:
            added[name] = found
    lists = list(added)
    prompt = struct_fields(schema.get("preprocess_result", pl.Null())).get("prompt")
    if prompt is not None:
        asked = pl.col("preprocess_result").struct.field("prompt").alias("__prompt")
        table = table._replace(
            frame=table.frame.with_columns(asked), schema={**schema, "__prompt": prompt}
        )
        added["problem"] = spoken(table, "__prompt", "user")
    references = [
        pl.col(name).struct.field("reference").cast(pl.String)
        for name in _REFERENCES
        if _is_value(struct_fields(schema.get(name, pl.Null())).get("reference"))
    ]
    if references:
        added["gold"] = pl.coalesce(references)
    kept = [name for name in ("error_msg", "repeat_index") if name in schema]
    rows = table.frame.with_columns(expr.alias(name) for name, expr in added.items())
    run = ["source_file"] if "source_file" in schema else []
    # An older iteration fills what a newer one has not reached.
    samples = (
        rows
        .sort("iteration", maintain_order=True)
        .group_by(*run, "problem_id", maintain_order=True)
        .agg(pl.col(*added, *kept).drop_nulls().last(), pl.col(ROW, FILE).last())
    )
    return _explode(table._replace(frame=samples), lists, kept)


def _explode(table: Table, lists: Sequence[str], kept: Sequence[str]) -> pl.LazyFrame:
    """Turn samples into attempts; one that has not got that far yet is left out."""
    n = pl.coalesce(*(pl.col(name).list.len() for name in lists), pl.lit(0))
    is_error = pl.col("error_msg").is_not_null() if "error_msg" in kept else pl.lit(value=False)
    ends = pl.col("finish_reason") if "finish_reason" in lists else pl.lit(None, dtype=_TEXTS)
    names = list(dict.fromkeys([*lists, "finish_reason"]))
    frame = (
        table.frame
        .with_columns(n.alias("__n"))
        .filter((pl.col("__n") > 0) | is_error)
        .with_columns(
            pl
            .when(pl.col("__n") == 0)
            .then(pl.lit("error").repeat_by(1))
            .otherwise(ends)
            .alias("finish_reason")
        )
        .with_columns(
            pl.lit(0).repeat_by(pl.max_horizontal("__n", pl.lit(1))).alias("rollouts"),
            *(
                pl.when(pl.col(name).list.len() > 0).then(pl.col(name)).alias(name)
                for name in names
            ),
        )
    )
    attempts = explode_attempts(table._replace(frame=frame), ["rollouts", *names])
    return attempts.drop("rollouts", "__n").rename({"error_msg": "error"}, strict=False)


def _list(schema: Mapping[str, pl.DataType], column: str, path: Sequence[str]) -> pl.Expr | None:
    """Return a list with a value per rollout, if the files have it."""
    dtype = struct_fields(schema.get(column, pl.Null())).get(path[0], pl.Null())
    if not isinstance(dtype, pl.List):
        return None
    values = pl.col(column).struct.field(path[0])
    if len(path) == 1:
        return values
    fields = struct_fields(as_instance(dtype.inner))
    if not _is_value(fields.get(path[1])):
        return None
    found = values.list.eval(pl.element().struct.field(path[1]))
    return found.cast(_TEXTS) if path[1] == "prediction" else found


def _is_value(dtype: pl.DataType | None) -> bool:
    return dtype is not None and not dtype.is_nested()


FORMAT = FileFormat(
    summary="sieval: a result folder of {iteration}/{stage}/{shard}.jsonl, a row per sample and stage",
    requires=(("sample_id",), ("iteration",), ("stage",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    # The manifest of a folder has the same columns, and this one.
    shapes={"final": pl.Null},
    piece=r"[0-9]+/(preprocessed|inferred|postprocessed|feedback|failed|final)/[0-9]+\.jsonl",
    unit="sample and stage",
    columns={
        "sample_id": "problem_id",
        "preprocess_result.prompt": "problem",
        "preprocess_result.reference": "gold",
        "infer_result.texts": "completion",
        "infer_result.finish_reasons": "finish_reason",
        "postprocess_result.rollouts.prediction": "answer",
        "feedback_result.reference": "gold",
        "feedback_result.rollouts.correct": "is_correct",
        "feedback_result.rollouts.score": "source_score",
    },
    is_exchangeable=True,
    ignores=(
        "meta_last",
        "stage_meta",
        "retry_count",
        "error_reason",
        "infer_result but for texts and finish_reasons",
        "extra and metrics of predictions and judgements",
        "manifest.json, report.json, meta.json, profile.json",
    ),
    traps=(
        Trap(
            "copied_samples",
            ("repeat_index",),
            pl.col("repeat_index") > 0,
            "are of a copy of the data set, and problems of their own",
            "the files do not say which samples are copies of which; make 'problem_id' from your data set to join them.",
        ),
    ),
)
