"""verifiers: `results.jsonl` of an evaluation, a row per rollout of an example.

`reward` is what the environment computed, as a rule with the gold answer, and stays a column under its
own name, as the metrics do: neither is `score`, and none is known to be a grade. `answer` of the tool is
`gold`. Of conversations, the messages of the user are the problem and those of the assistant the completion.
"""

from __future__ import annotations

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
    refuse_mixed,
    set_apart,
    spoken,
)

_DTYPES: dict[str, pl.DataType] = {
    "answer": pl.String(),
    "reward": pl.Float64(),
    "is_truncated": pl.Boolean(),
    "is_completed": pl.Boolean(),
    "stop_condition": pl.String(),
}
_USAGE = {"input_tokens": "n_prompt_tokens", "output_tokens": "n_tokens"}
_LEFT_OUT = ("example_id", "prompt", "token_usage", "timing", "metrics", "tool_defs", "trajectory")


def _to_attempts(source: Table) -> pl.LazyFrame:
    apart = set_apart(source, ("completion", "answer"), "source_")
    typed = refuse_mixed(cast_columns(apart, _DTYPES), "prompt", "completion")
    names = typed.schema
    added = {
        "problem": spoken(typed, "prompt", "user"),
        "completion": spoken(typed, "completion", "assistant"),
    }
    if "answer" in names:
        added["gold"] = pl.col("answer").replace("", None)
    usage = struct_fields(names.get("token_usage", pl.Null()))
    added |= {
        ours: pl.col("token_usage").struct.field(theirs).cast(pl.Int64)
        for theirs, ours in _USAGE.items()
        if usage.get(theirs, pl.Null()).is_numeric()
    }
    ends = {
        "error": ("error", pl.col("error").is_not_null()) if "error" in names else None,
        "is_truncated": ("length", pl.col("is_truncated")) if "is_truncated" in names else None,
        "is_completed": ("stop", pl.col("is_completed")) if "is_completed" in names else None,
    }
    reasons = [pl.when(is_so).then(pl.lit(end)) for end, is_so in filter(None, ends.values())]
    if reasons:
        added["finish_reason"] = pl.coalesce(reasons)
    table = add_problem_id(typed, ("problem_id", "example_id"), "prompt")
    frame = table.frame.with_columns(expr.alias(name) for name, expr in added.items())
    return number_attempts(frame.drop(*_LEFT_OUT, "answer", strict=False))


FORMAT = FileFormat(
    summary="verifiers: results.jsonl, a row per rollout of an example",
    requires=(("example_id",), ("prompt",), ("completion",), ("reward",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="rollout",
    columns={
        "example_id": "problem_id",
        "prompt": "problem",
        "answer": "gold",
        "token_usage.output_tokens": "n_tokens",
        "token_usage.input_tokens": "n_prompt_tokens",
        "is_truncated": "finish_reason",
    },
    is_exchangeable=True,
    ignores=(
        "messages of other roles",
        "timing",
        "metrics (also columns)",
        "tool_defs",
        "trajectory",
    ),
    traps=(
        Trap(
            "rollout_errors",
            ("finish_reason", "reward"),
            pl.col("finish_reason") == "error",
            "ended in an error",
            "verifiers gives them the reward 0. Drop them with run.filter(pl.col('finish_reason') != 'error'), or "
            "count them as wrong.",
        ),
    ),
)
