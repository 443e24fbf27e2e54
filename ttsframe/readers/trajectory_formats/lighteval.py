"""lighteval: `details_{task}_{date}.parquet`, a row per document with all of its texts.

`model_response.text` has the attempts. The metrics are of the document, not of an attempt, and are kept as
`metric_{name}`, repeated for each attempt; which attempt was right is not stored, so attempts are graded by
their answers. The gold answer is the choice that `doc.gold_index` points to; if it is worked out, it is the
`solution`, and its final answer is `gold`. Several are the list `targets`, without a gold answer. `doc.id`
counts the documents of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    explode_attempts,
    split_target,
)

_LISTS: Final = {"text_post_processed": "text_post_processed", "reasonings": "reasoning"}


def _to_attempts(source: Table) -> pl.LazyFrame:
    files = ", ".join(source.row_words)
    doc, metric, response = (
        struct_fields(source.schema[name]) for name in ("doc", "metric", "model_response")
    )
    missing = [
        name
        for name, fields in (("doc.id", doc), ("doc.query", doc), ("model_response.text", response))
        if name.partition(".")[2] not in fields
    ]
    if missing or response["text"] != pl.List(pl.String):
        what = (
            f"no {missing[0]!r}" if missing else f"'model_response.text' of type {response['text']}"
        )
        raise ColumnsError(
            f"{files}: the details have {what}; with texts, it is a list of them. Hint: tasks that compare "
            "log-likelihoods have no attempts."
        )
    of_doc, of_response = pl.col("doc").struct.field, pl.col("model_response").struct.field
    added: dict[str, pl.Expr] = {
        "id": of_doc("id"),
        "problem": of_doc("query"),
        "completion": of_response("text"),
    }
    lists = ["completion"]
    n_texts = of_response("text").list.len()  # what was not computed is an empty list
    for theirs, ours in _LISTS.items():
        if response.get(theirs) == pl.List(pl.String):
            texts = of_response(theirs)
            added[ours] = pl.when(texts.list.len() == n_texts).then(texts)
            lists.append(ours)
    written = response.get("output_tokens")
    if isinstance(written, pl.List) and isinstance(written.inner, pl.List):
        counts = of_response("output_tokens").list.eval(pl.element().list.len().cast(pl.Int64))
        added["n_tokens"] = pl.when(counts.list.len() == n_texts).then(counts)
        lists.append("n_tokens")
    if isinstance(response.get("input_tokens"), pl.List):
        n_prompt = of_response("input_tokens").list.len().cast(pl.Int64)
        added["n_prompt_tokens"] = pl.when(n_prompt > 0).then(n_prompt)
    if "task_name" in doc:
        added["task"] = of_doc("task_name")
    added |= _gold(doc)
    added |= {f"metric_{name}": pl.col("metric").struct.field(name) for name in metric}
    table = source._replace(
        frame=source.frame.with_columns(expr.alias(name) for name, expr in added.items()),
        schema={**source.schema, "id": doc["id"], "problem": doc["query"]},
    )
    attempts = explode_attempts(add_problem_id(table, ("problem_id", "id"), "problem"), lists)
    return attempts.drop("doc", "metric", "model_response", "id")


def _gold(doc: Mapping[str, pl.DataType]) -> dict[str, pl.Expr]:
    """Return the choice, or choices, that the gold index points to."""
    index = doc.get("gold_index", pl.Null())
    if doc.get("choices") != pl.List(pl.String):
        return {}
    of_doc = pl.col("doc").struct.field
    if isinstance(index, pl.List):
        targets = of_doc("choices").list.gather(of_doc("gold_index"), null_on_oob=True)
        gold: pl.Expr = pl.when(targets.list.len() == 1).then(targets.list.first())
        several = {"targets": pl.when(targets.list.len() > 1).then(targets)}
    elif index.is_integer():
        gold, several = of_doc("choices").list.get(of_doc("gold_index"), null_on_oob=True), {}
    else:
        return {}
    return {**split_target(gold), **several}


FORMAT = FileFormat(
    summary="lighteval: details_{task}_{date}.parquet, a row per document with its texts",
    requires=(("doc",), ("metric",), ("model_response",)),
    dtypes={},
    to_rows=_to_attempts,
    shapes={"doc": pl.Struct, "metric": pl.Struct, "model_response": pl.Struct},
    unit="document",
    columns={
        "doc.id": "problem_id",
        "doc.query": "problem",
        "doc.choices": "gold",
        "model_response.text": "completion",
        "model_response.output_tokens": "n_tokens",
        "model_response.input_tokens": "n_prompt_tokens",
    },
    is_exchangeable=True,
    ignores=(
        "model_response.input",
        "model_response.logprobs",
        "model_response.logits",
        "model_response.argmax_logits_eq_gold",
        "doc.specific",
        "doc.fewshot_samples",
        "doc.instruction",
        "doc.generation_size",
    ),
)
