"""verify_cot: `{task}_np.json` and `{task}_verification.json`, arrays of problems with sampled chains.

`pred_answers` are the answers of the tool, and `per_sample_correct` its grades. Its votes (`majority_results`, with
every tied answer) and its checks (`verify_correct`, of the samples in `sample_idx_need_verify`) are of the problem,
and repeated for each attempt.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    set_apart,
)

_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "final_answer": pl.String(),
    "model_outputs": pl.List(pl.String()),
    "pred_answers": pl.List(pl.String()),
    "per_sample_correct": pl.List(pl.Boolean()),
    "majority_results": pl.List(pl.String()),
    "majority_corrects": pl.List(pl.Boolean()),
}
_RENAMED = {
    "question": "problem",
    "final_answer": "gold",
    "model_outputs": "completion",
    "pred_answers": "answer",
    "per_sample_correct": "is_correct",
}
_LISTS = ("model_outputs", "pred_answers", "per_sample_correct")
_LEFT_OUT = (
    "model_input",
    "majority_count",
    "gt_count",
    "need_verify_samples_info",
    "verify_model_results",
    "verify_result",
)


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = set_apart(cast_columns(source, _DTYPES), (), "source_")
    table = add_problem_id(typed, ("problem_id", "example_idx"), "question")
    attempts = explode_attempts(table, [name for name in _LISTS if name in table.schema])
    frame = attempts.drop("example_idx", *_LEFT_OUT, strict=False).rename(_RENAMED, strict=False)
    return frame.with_columns(pl.col("answer").replace("", None))


FORMAT = FileFormat(
    summary="verify_cot: {task}_np.json, an array of problems with sampled chains, answers and grades",
    requires=(("question",), ("model_outputs",), ("pred_answers",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"model_outputs": pl.List(pl.String())},
    as_text=frozenset({"verify_model_results", "verify_result"}),
    unit="problem",
    columns={**_RENAMED, "example_idx": "problem_id"},
    is_exchangeable=True,
    ignores=_LEFT_OUT,
)
