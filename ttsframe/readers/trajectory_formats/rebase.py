"""REBASE and ETS: a JSON array with one element per problem, or one `answer_q{id}.json` per problem.

`total_tokens` counts the search tree of a problem and is kept under its name; only `num_gen_tokens`,
which the sampling baseline writes, becomes the tokens of an attempt. Candidates without it are marked as
not exchangeable, since candidates of a tree share their beginnings. The scored baseline writes the same
file as the search, so it is marked too.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    unpack_structs,
)

_DTYPES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "ground_truth_answer": pl.String(),
    "model_answer": pl.List(
        pl.Struct({
            "text": pl.String(),
            "step_scores": pl.List(pl.Float64()),
            "num_gen_tokens": pl.Int64(),
        })
    ),
}
_FIELDS = {"text": "completion", "num_gen_tokens": "n_tokens"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id", "id"), "question")
    attempts, columns = unpack_structs(
        explode_attempts(table, ["model_answer"]), table.schema, "model_answer", _FIELDS
    )
    is_tree = pl.col("n_tokens").is_null() if "n_tokens" in columns else pl.lit(value=True)
    return attempts.with_columns(
        pl.when(is_tree).then(statement=False).alias("is_exchangeable")
    ).rename({"question": "problem", "ground_truth_answer": "gold"}, strict=False)


FORMAT = FileFormat(
    summary="REBASE and ETS: a JSON array of problems, or a file answer_q{id}.json for each",
    requires=(("question",), ("model_answer",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    piece=r"answer_q[0-9]+\.json",
    unit="problem",
    columns={
        "question": "problem",
        "ground_truth_answer": "gold",
        **{f"model_answer.{name}": ours for name, ours in _FIELDS.items()},
    },
    scores=Scores("step_scores"),
)
