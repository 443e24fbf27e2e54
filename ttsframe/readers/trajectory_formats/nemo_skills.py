"""NeMo-Skills: `output-rs{seed}.jsonl`, one file per seed with a row per problem, or `output.jsonl`.

The files of a folder are one run: the seeds are the attempts, in the order of their numbers, and `seed` has
the number. Problems are joined by their `id`, else by their text, never by their line: rows of unfinished
runs are in the order in which they ended.

`predicted_answer` is the answer of the tool, and its grade is `symbolic_correct`; where only a model has
judged, "Judgement: Yes" is right and any other text is wrong. `reward_model_score` was given without the
gold answer and becomes `score`. Rows copy the fields of the data set: one that has the name of a column that the
tool's becomes, such as `answer`, which may be the reference, gets `source_` before it.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from ttsframe._traps import Trap
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.json_rows import FILE
from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
    set_apart,
)
from ttsframe.schema import TRAJECTORY_COLUMNS

_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "question": pl.String(),
    "generation": pl.String(),
    "reference_solution": pl.String(),
    "expected_answer": pl.String(),
    "predicted_answer": pl.String(),
    "symbolic_correct": pl.Boolean(),
    "is_correct": pl.Boolean(),
    "judgement": pl.String(),
    "reward_model_score": pl.Float64(),
    "num_generated_tokens": pl.Int64(),
    "num_input_tokens": pl.Int64(),
    "finish_reason": pl.String(),
}
_RENAMED: Final = {
    "question": "problem",
    "generation": "completion",
    "reference_solution": "solution",
    "expected_answer": "gold",
    "predicted_answer": "answer",
    "reward_model_score": "score",
    "num_generated_tokens": "n_tokens",
    "num_input_tokens": "n_prompt_tokens",
}
_FIRST: Final = frozenset({"problem", "solution", "gold"})
"""Columns that go before the tool's, whoever named them."""
_SEED: Final = r"output-rs([0-9]{1,18})\."


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = cast_columns(source, _DTYPES)
    taken = {_RENAMED[name] for name in _RENAMED if name in typed.schema} - _FIRST
    typed = set_apart(typed, TRAJECTORY_COLUMNS.keys() - taken, "source_")
    names = typed.schema.keys()
    text = "problem" if "problem" in names else "question"
    if text not in names and names.isdisjoint({"problem_id", "id", "unique_id"}):
        raise ColumnsError(
            f"{', '.join(source.row_words)}: has neither 'id' nor 'problem', which identify problems."
        )
    table = add_problem_id(typed, ("problem_id", "id", "unique_id"), text)
    renamed = {
        theirs: ours
        for theirs, ours in _RENAMED.items()
        if theirs in names and ours not in names and not (theirs == "question" and text != theirs)
    }
    updates: dict[str, pl.Expr] = {}
    if "symbolic_correct" in names:
        updates["is_correct"] = pl.col("symbolic_correct")
    elif "judgement" in names and "is_correct" not in names:
        verdict = pl.col("judgement").str.to_lowercase().str.contains(r"judge?ment:\W*yes\b")
        updates["is_correct"] = verdict
    if "predicted_answer" in names:
        updates["predicted_answer"] = pl.when(pl.col("predicted_answer") != "").then(
            "predicted_answer"
        )
    if any(re.search(_SEED, path) for path in source.row_words):
        updates["seed"] = pl.col(FILE).str.extract(_SEED).cast(pl.Int64)
    frame = table.frame.with_columns(expr.alias(ours) for ours, expr in updates.items())
    return number_attempts(frame.drop("symbolic_correct", strict=False).rename(renamed))


FORMAT = FileFormat(
    summary="NeMo-Skills: a folder of output-rs{seed}.jsonl, a row per problem in each, or output.jsonl",
    requires=(("generation",), ("expected_answer",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    evidence=(
        "predicted_answer",
        "symbolic_correct",
        "judgement",
        "num_generated_tokens",
        "generation_start_time",
        "reward_model_score",
    ),
    shapes={"generation": pl.String()},
    piece=r"output(-rs[0-9]+)?\.jsonl",
    unit="problem and seed",
    columns={
        **_RENAMED,
        "id": "problem_id",
        "symbolic_correct": "is_correct",
        "judgement": "is_correct",
    },
    is_exchangeable=True,
    scores=Scores("score", least=None, most=None),
    traps=(
        Trap(
            "judgement_differs",
            ("judgement", "is_correct"),
            pl.col("is_correct")
            != pl.col("judgement").str.to_lowercase().str.contains(r"judge?ment:\W*yes\b"),
            "were judged otherwise by a model than by rules",
            "'is_correct' follows the rules; NeMo-Skills reports both.",
            severity="note",
        ),
    ),
)
