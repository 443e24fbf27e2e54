"""Best-of-infinity: `analysis_{dataset}_{model}.jsonl`, a row per problem with its answers, without texts.

`all_answers` has pairs of an answer and its tokens; an empty answer is no answer. `majority_answer` is what the tool
counted, kept for each attempt; there, no answer counts as one more answer. `model` is from the name of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.json_rows import FILE
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
)

_DTYPES: dict[str, pl.DataType] = {
    "gold_answer": pl.String(),
    "majority_answer": pl.String(),
    "all_answers": pl.List(pl.List(pl.String())),
}
_LARGEST = 2**53
_MODEL = r"analysis_(?:gpqa_diamond|[^_/\\]+)_([^/\\]+)\.jsonl$"
"""Of data sets, this one alone has an underscore in its name."""


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(
        cast_columns(source, _DTYPES), ("problem_id", "problem_num"), "gold_answer"
    )
    pair = pl.element().list
    number = pair.get(1, null_on_oob=True).cast(pl.Float64, strict=False)
    n_tokens = pl.when((number >= 0) & (number == number.floor()) & (number < _LARGEST)).then(
        number
    )
    is_pair = (pair.len() == 2) & n_tokens.is_not_null()
    parts = table.frame.with_columns(
        pl
        .col("all_answers")
        .list.eval(~is_pair.fill_null(value=False))
        .list.any()
        .alias("__is_bad"),
        pl
        .col("all_answers")
        .list.eval(pair.get(0, null_on_oob=True).replace("", None))
        .alias("answer"),
        pl.col("all_answers").list.eval(n_tokens.cast(pl.Int64)).alias("n_tokens"),
    )

    def reason(row: Mapping[str, object]) -> str:
        return (
            f"problem {row['problem_id']!r}: 'all_answers' has an element that is no pair of an answer and a "
            "whole number of tokens"
        )

    checked = table.check(parts, pl.col("__is_bad").fill_null(value=False), ["problem_id"], reason)
    renamed = checked.drop("__is_bad", "all_answers").rename({"gold_answer": "gold"})
    if "model" not in table.schema and any(re.search(_MODEL, name) for name in source.row_words):
        renamed = renamed.with_columns(model=pl.col(FILE).str.extract(_MODEL))
    attempts = explode_attempts(table._replace(frame=renamed), ["answer", "n_tokens"])
    return attempts.drop("problem_num", "answer_counts", "total_answers", strict=False)


FORMAT = FileFormat(
    summary="Best-of-infinity: analysis_{dataset}_{model}.jsonl, a row per problem with answers and tokens",
    requires=(("problem_num", "problem_id"), ("all_answers",), ("gold_answer",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    as_text=frozenset({"answer_counts"}),
    unit="problem",
    columns={"problem_num": "problem_id", "gold_answer": "gold", "all_answers": "answer"},
    is_exchangeable=True,
    ignores=("answer_counts", "total_answers"),
    traps=(
        Trap(
            "empty_majority",
            ("majority_answer",),
            pl.col("majority_answer") == "",
            "are at problems where no answer is the tool's 'majority_answer'",
            "the tool counts attempts without an answer as one more answer; here they abstain from votes.",
            severity="note",
        ),
    ),
)
