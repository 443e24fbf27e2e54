"""every_eval_ever: instances, a row per attempt, by version 0.2.2 of its schema.

`evaluation_id`, `model_id` (or `model`) and `evaluation_name` come from columns of these names, else from the name
of the file. `metadata` holds the number of the attempt, as text. `evaluation.score` is the grade: a
verifier's score has no place.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl

from ttsframe.errors import DataError
from ttsframe.readers.trajectory_writers.writer import Writer, one_run, write_lines
from ttsframe.schema import require_columns, require_kind

_VERSION = "0.2.2"
_HELD = ("problem_id", "attempt", "problem", "gold", "completion", "answer", "is_correct")
_NAMES = ("evaluation_id", "model_id", "evaluation_name")


def _write(attempts: pl.LazyFrame, path: Path) -> list[str]:
    schema = require_columns(
        attempts,
        ["problem", "completion", "is_correct"],
        hint="tts.score_trajectories(trajectories) grades; format='long_form' needs no grades.",
    )
    require_kind(schema, "Boolean", "is_correct")
    rows = one_run(attempts)
    if n_ungraded := rows["is_correct"].null_count():
        raise DataError(
            f"{n_ungraded:,} of {rows.height:,} attempts are not graded, and each instance of the format has "
            "a grade. Hint: trajectories.filter(pl.col('is_correct').is_not_null())."
        )
    names = {**{name: name for name in _NAMES if name in rows.columns}}
    if "model_id" not in names and "model" in rows.columns:
        names["model_id"] = "model"
    tokens = ("n_prompt_tokens", "n_tokens")
    has_tokens = all(name in rows.columns and not rows[name].null_count() for name in tokens)
    held = {*_HELD, *names.values(), *(tokens if has_tokens else ())}
    text = {name: _text(rows, name) for name in ("problem", "gold", "completion", "answer")}
    empty = pl.lit("")
    reference = (
        pl
        .when(text["gold"].is_null())
        .then(pl.lit([], pl.List(pl.String)))
        .otherwise(pl.concat_list(text["gold"]))
    )
    answer = pl.struct(
        pl.lit(0).alias("turn_idx"),
        pl.lit("output.raw").alias("source"),
        text["answer"].alias("extracted_value"),
        pl.lit("custom").alias("extraction_method"),
        pl.lit(value=True).alias("is_terminal"),
    )
    n_in, n_out = (pl.col(name).cast(pl.Int64) for name in tokens)
    usage = pl.struct(
        n_in.alias("input_tokens"),
        n_out.alias("output_tokens"),
        (n_in + n_out).alias("total_tokens"),
    )
    grade = pl.col("is_correct")
    stem = path.stem
    instances = rows.select(
        pl.lit(_VERSION).alias("schema_version"),
        *(
            (
                pl.col(names[name]).cast(pl.String).fill_null(stem)
                if name in names
                else pl.lit(stem)
            ).alias(name)
            for name in _NAMES
        ),
        pl.col("problem_id").cast(pl.String).alias("sample_id"),
        pl
        .struct(text["problem"].fill_null(empty).alias("raw"), text["gold"].alias("reference"))
        .map_batches(_hash_samples, return_dtype=pl.String, is_elementwise=True)
        .alias("sample_hash"),
        pl.lit("single_turn").alias("interaction_type"),
        pl.struct(
            text["problem"].fill_null(empty).alias("raw"), reference.alias("reference")
        ).alias("input"),
        pl.struct(pl.concat_list(text["completion"].fill_null(empty)).alias("raw")).alias("output"),
        pl
        .when(text["answer"].is_null())
        .then(
            pl.lit(
                [],
                pl.List(
                    pl.Struct({
                        "turn_idx": pl.Int32,
                        "source": pl.String,
                        "extracted_value": pl.String,
                        "extraction_method": pl.String,
                        "is_terminal": pl.Boolean,
                    })
                ),
            )
        )
        .otherwise(pl.concat_list(answer))
        .alias("answer_attribution"),
        pl.struct(grade.cast(pl.Float64).alias("score"), grade.alias("is_correct")).alias(
            "evaluation"
        ),
        *([usage.alias("token_usage")] if has_tokens else []),
        pl.struct(pl.col("attempt").cast(pl.String)).alias("metadata"),
    )
    write_lines(instances, path)
    return [name for name in rows.columns if name not in held]


def _text(rows: pl.DataFrame, name: str) -> pl.Expr:
    return (pl.col(name) if name in rows.columns else pl.lit(None)).cast(pl.String)


def _hash_samples(samples: pl.Series) -> pl.Series:
    """Hash each distinct problem and reference, as the tool's converters do."""
    distinct = samples.unique()
    hashes = [
        hashlib.sha256(json.dumps(sample, sort_keys=True).encode()).hexdigest()
        for sample in distinct.to_list()
    ]
    named = pl.DataFrame({"sample": distinct, "hash": hashes})
    found = samples.to_frame("sample").join(
        named, on="sample", how="left", nulls_equal=True, maintain_order="left"
    )
    return found["hash"]


WRITER = Writer(
    "every_eval_ever: instances, a row per graded attempt (JSON lines)", _write, ".jsonl"
)
