"""PRMBench: solutions with steps that were made wrong (`error_steps`, from 1), and what a verifier says of them.

The data has a row per solution: its `modified_process` is what is labeled. A step is wrong if `error_steps` names it. Solutions are
known by kind of error and `idx`, as in the results of the tool, so that the two join by `solution_id`; of several with one
`idx`, the tool scores the first, and the others get a suffix.

Results (`save_to_ckpt`) have a row per solution without its texts: `score` is the validity of a step, and
`is_correct_predicted` whether the tool counts it as valid.
"""

from __future__ import annotations

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import FileFormat, Table
from ttsframe.readers.step_formats.reading import (
    add_ids,
    cast_source,
    check_rows,
    explode_steps,
    first_fault,
    number_duplicates,
)
from ttsframe.readers.step_formats.step_format import StepFormat

_DTYPES: dict[str, pl.DataType] = {
    "idx": pl.String(),
    "classification": pl.String(),
    "question": pl.String(),
    "modified_question": pl.String(),
    "modified_process": pl.List(pl.String()),
    "error_steps": pl.List(pl.Int64()),
    "ground_truth": pl.String(),
}
_LEFT_OUT = (
    "idx",
    "question",
    "original_question",
    "original_process",
    "original_response",
    "modified_steps",
    "error_steps",
)
_FLAGS = pl.List(pl.Boolean())
_RESULTS: dict[str, pl.DataType] = {
    "model_name": pl.String(),
    "results": pl.Struct({
        "idx": pl.String(),
        "scores": pl.Struct({
            "step_level_validity_scores": pl.List(pl.Float64()),
            "step_level_validity_labels": _FLAGS,
        }),
    }),
}
_PROBLEM = r"(prm_test.*)$"
_SCORES = {
    "step_level_validity_scores": "score",
    "step_level_validity_labels": "is_correct_predicted",
}


def _to_steps(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _DTYPES, made=("gold",))
    steps, wrong = pl.col("modified_process").list, pl.col("error_steps").list
    n_steps = steps.len().cast(pl.Int64)
    is_outside = (wrong.min() < 1) | (wrong.max() > n_steps)
    outside = pl.format(
        "'error_steps' has {} to {}, but there are {} steps", wrong.min(), wrong.max(), n_steps
    )
    fault = pl.coalesce(
        first_fault({
            "'modified_question' is null": pl.col("modified_question").is_null(),
            "'modified_process' is null": pl.col("modified_process").is_null(),
            "'error_steps' is null": pl.col("error_steps").is_null(),
            "'modified_process' has a null element": steps.eval(pl.element().is_null()).list.any(),
            "'error_steps' has a null element": wrong.eval(pl.element().is_null()).list.any(),
        }),
        pl.when(is_outside.fill_null(value=False)).then(outside),
    )
    frame = check_rows(table, table.frame, fault)
    schema = {**table.schema, "problem": pl.String()}
    if "idx" in schema and "problem_id" not in schema:
        schema |= {"problem_id": pl.String(), "solution_id": pl.String()}
        named = pl.concat_str("classification", "idx", separator="_", ignore_nulls=True)
        run = [name for name in ("source_file",) if name in schema]
        frame = frame.with_columns(
            pl.col("idx").alias("problem_id"), named.alias("solution_id")
        ).with_columns(number_duplicates(pl.col("solution_id"), [*run, "solution_id"]))
    frame = frame.rename({"modified_question": "problem"})
    identified = add_ids(table._replace(frame=frame, schema=schema), pl.col("modified_process"))
    exploded = explode_steps(
        identified.frame.rename({"modified_process": "text", "ground_truth": "gold"}, strict=False),
        ["text"],
    )
    is_right = ~pl.col("step").add(1).is_in(pl.col("error_steps"))
    return exploded.with_columns(
        pl.when(pl.col("step") >= 0).then(is_right).alias("is_correct")
    ).drop(_LEFT_OUT, strict=False)


def _to_predictions(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _RESULTS, made=("score", "is_correct_predicted"))
    fields = struct_fields(table.schema["results"])
    scores = struct_fields(fields.get("scores", pl.Null()))
    if "idx" not in fields or "step_level_validity_scores" not in scores:
        raise ColumnsError(
            f"{', '.join(table.row_words)}: no row has 'results' with 'idx' and 'scores.step_level_validity_scores', which "
            "format 'prmbench_results' requires."
        )
    of_results = pl.col("results").struct.field
    named = {theirs: ours for theirs, ours in _SCORES.items() if theirs in scores}
    frame = table.frame.with_columns(
        of_results("idx").alias("solution_id"),
        pl.coalesce(of_results("idx").str.extract(_PROBLEM), of_results("idx")).alias("problem_id"),
        *(of_results("scores").struct.field(theirs).alias(ours) for theirs, ours in named.items()),
    )
    lists = list(named.values())
    lengths = [pl.col(name).list.len() for name in lists]
    fault = first_fault({
        "'results.idx' is null": pl.col("solution_id").is_null(),
        "has lists of scores and labels that differ in length": (
            pl.any_horizontal(each != lengths[0] for each in lengths).fill_null(value=False)
        ),
    })
    checked = check_rows(table, frame, fault).drop("results", "task_name", strict=False)
    filled = checked.with_columns(
        pl.col(name).fill_null(pl.lit(None).repeat_by(lengths[0])) for name in lists[1:]
    )
    return explode_steps(filled, lists).rename({"model_name": "model"}, strict=False)


FORMAT = StepFormat(
    FileFormat(
        summary="PRMBench: a row per solution with its steps and the wrong ones (JSON)",
        requires=(("modified_question",), ("modified_process",), ("error_steps",)),
        dtypes=_DTYPES,
        to_rows=_to_steps,
        shapes={"modified_process": pl.List(pl.String())},
    )
)
RESULTS_FORMAT = StepFormat(
    FileFormat(
        summary="PRMBench results: a row per solution with a verifier's scores of its steps (JSON lines)",
        requires=(("task_name",), ("model_name",), ("results",)),
        dtypes=_RESULTS,
        to_rows=_to_predictions,
        shapes={"results": pl.Struct},
    )
)
