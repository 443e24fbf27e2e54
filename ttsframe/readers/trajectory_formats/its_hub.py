"""its_hub: `{model}-{algorithm}-{benchmark}.jsonl`, a row per problem and budget.

A row has the one response that an algorithm chose with its budget, so there is an attempt per problem and budget:
keep budgets apart by `budget`. Runs for the expected pass@1 of particle filtering have all particles of a row as its
attempts; `log_probs`, their log weights from the reward model, are `score`, and `correct`, the accuracy that
these weights expect, is `expected_accuracy`. Particles of a row are not independent.
"""

from __future__ import annotations

import polars as pl

from ttsframe._traps import Trap
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.table import (
    FileFormat,
    Scores,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    number_attempts,
    set_apart,
)

_DTYPES: dict[str, pl.DataType] = {
    "response": pl.String(),
    "responses": pl.List(pl.String()),
    "log_probs": pl.List(pl.Float64()),
    "budget": pl.Int64(),
}
_VERDICTS = {"true": "1", "false": "0"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = set_apart(cast_columns(source, _DTYPES), ("problem", "gold", "solution"), "source_")
    table = add_problem_id(typed, ("problem_id", "unique_id"), "unique_id")
    if table.schema["correct"].is_nested():
        raise ColumnsError(
            f"{', '.join(source.row_words)}: column 'correct' is {table.schema['correct']}, must be Boolean or a number."
        )
    # A verdict is true or false, and a number once pandas has read and written it again.
    correct = pl.col("correct").cast(pl.String).replace(_VERDICTS).cast(pl.Float64, strict=False)
    table = table._replace(frame=table.frame.with_columns(correct))
    lists = [name for name in ("responses", "log_probs") if name in table.schema]
    if "responses" in lists:
        attempts = explode_attempts(table, lists).with_columns(is_exchangeable=pl.lit(value=False))
        renamed = {"responses": "completion", "log_probs": "score", "correct": "expected_accuracy"}
        return attempts.drop("unique_id", strict=False).rename(renamed, strict=False)
    frame = number_attempts(table.frame, by=("budget",))
    grade = pl.when(pl.col("correct").is_in([0.0, 1.0])).then(pl.col("correct") == 1)
    frame = frame.with_columns(is_correct=grade).drop("correct", "unique_id", strict=False)
    return frame.rename({"response": "completion"}, strict=False)


FORMAT = FileFormat(
    summary="its_hub: {model}-{algorithm}-{benchmark}.jsonl, a row per problem and budget",
    requires=(("unique_id", "problem_id"), ("budget",), ("response", "responses"), ("correct",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"responses": pl.List(pl.String())},
    unit="problem and budget",
    columns={
        "unique_id": "problem_id",
        "response": "completion",
        "responses": "completion",
        "log_probs": "score",
        "correct": "is_correct",
    },
    scores=Scores("score", least=None, most=None),
    traps=(
        Trap(
            "several_budgets",
            ("budget",),
            pl.col("budget") != pl.col("budget").first(),
            "are of another budget than the first, so of another run of the algorithm",
            "by='budget' (--by budget) keeps the budgets apart.",
        ),
    ),
)
