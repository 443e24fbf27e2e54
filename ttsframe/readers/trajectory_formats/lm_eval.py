"""lm-evaluation-harness: `samples_{task}_{date}.jsonl`, a row per document and filter of its responses.

The repeats of a document are the attempts. A task with several filters, such as the two of GSM8K, writes
each document once for each: these rows stay apart, with the name in `filter`, and `by="filter"` analyses
each. `filtered_response` is what the filter made of an attempt, or of all attempts.

A metric of the tool is of the filtered response, and so is the answer. Where every document has one response it is the grade of
the attempt: the first metric whose values are all 0 or 1 becomes `is_correct`. If its filters extract short
texts, these are `answer`, and "[invalid]" is no answer. With repeats it grades the
first response, or the majority, so it stays a column under its own name and attempts are graded by their
answers. `target` is `gold`; if it is worked out, as in GSM8K, it is `solution`, and its final answer is
`gold`. `doc_id` identifies documents of one task, so attempts of several files are never joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.sniff import DataFile, open_binary
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    explode_attempts,
    set_apart,
    split_target,
)

_TEXTS: Final = pl.List(pl.String())
_DTYPES: dict[str, pl.DataType] = {
    "target": pl.String(),
    "resps": pl.List(_TEXTS),
    "filter": pl.String(),
    "metrics": _TEXTS,
}
_PROBLEM: Final = ("problem", "question", "query", "prompt", "input")
_FILTER: Final = re.compile(rb'"filter": ?"([^"\\]{0,200})"')
_LONGEST: Final = 256
_BLOCK: Final = 1 << 20
_NOTHING: Final = "[invalid]"
_LEFT_OUT: Final = ("target", "resps", "filtered_resps", "arguments", "metrics", "doc_id")


def _to_attempts(source: Table) -> pl.LazyFrame:
    # Metrics may have the name of a column of attempts, and a list of targets is none of texts.
    is_list = isinstance(source.schema.get("target"), pl.List)
    apart = set_apart(source, (), "metric_", {"target": "targets"} if is_list else {})
    table = _check_requests(
        add_problem_id(cast_columns(apart, _DTYPES), ("problem_id", "doc_id"), "target")
    )
    added: dict[str, pl.Expr] = {"completion": pl.col("resps").list.first()}
    lists = ["completion"]
    if (prompt := _prompt(table.schema)) is not None:
        added["prompt"] = prompt
    documents = struct_fields(table.schema.get("doc", pl.Null()))
    name = next((name for name in _PROBLEM if isinstance(documents.get(name), pl.String)), None)
    problem = [] if name is None else [pl.col("doc").struct.field(name)]
    if problem or prompt is not None:
        added["problem"] = pl.coalesce(*problem, *([] if prompt is None else [prompt]))
    if "target" in table.schema:
        added |= split_target(pl.col("target"))
    filtered = table.schema["filtered_resps"]
    if filtered in {_TEXTS, pl.List(_TEXTS)}:
        added["filtered_response"] = pl.col("filtered_resps").list.first()
    if filtered == pl.List(_TEXTS):
        lists.append("filtered_response")
    single = _look_at_single(table)
    if single.grade is not None:
        added["is_correct"] = pl.col(single.grade) == 1
    if single.is_answer:
        added["answer"] = pl.when(added["filtered_response"] != _NOTHING).then(
            added["filtered_response"]
        )
    named = table.frame.with_columns(expr.alias(ours) for ours, expr in added.items())
    attempts = explode_attempts(table._replace(frame=named), lists)
    return attempts.drop(_LEFT_OUT, strict=False)


def _check_requests(table: Table) -> Table:
    def reason(row: Mapping[str, object]) -> str:
        return (
            f"document {row['problem_id']!r} has {row['__n_requests'] or 'no'} requests in 'resps', must have one "
            "with its responses; several are those of choices"
        )

    counted = table.frame.with_columns(pl.col("resps").list.len().alias("__n_requests"))
    is_broken = (pl.col("__n_requests") != 1).fill_null(value=True)
    checked = table.check(counted, is_broken, ["problem_id", "__n_requests"], reason)
    return table._replace(frame=checked.drop("__n_requests"))


def _prompt(schema: Mapping[str, pl.DataType]) -> pl.Expr | None:
    """Return the text that the model was given."""
    fields = struct_fields(schema.get("arguments", pl.Null()))
    arguments = struct_fields(fields.get("gen_args_0", pl.Null()))
    if not isinstance(arguments.get("arg_0"), pl.String):
        return None
    return pl.col("arguments").struct.field("gen_args_0").struct.field("arg_0")


class _Single(NamedTuple):
    """What is known where every document has one response."""

    grade: str | None
    """The metric that grades it."""
    is_answer: bool
    """Whether every filter extracts an answer from it."""


def _look_at_single(table: Table) -> _Single:
    """Look for the grade and the answer of single responses; with repeats there is neither."""
    numbers = [
        name
        for name, dtype in table.schema.items()
        if dtype.is_numeric() or isinstance(dtype, pl.Boolean)
    ]
    response = pl.col("resps").list.first()
    looks = {
        "__n": response.list.len().max(),
        **{name: pl.col(name).cast(pl.Float64).is_in([0.0, 1.0]).all() for name in numbers},
    }
    if "metrics" in table.schema:
        names = pl.col("metrics").explode(empty_as_null=False, keep_nulls=False)
        looks["__metrics"] = names.unique(maintain_order=True).implode()
    if table.schema["filtered_resps"] == _TEXTS:
        filtered = pl.col("filtered_resps").list.first()
        is_changed = (filtered != response.list.first()).any()
        is_changed = is_changed.over("filter") if "filter" in table.schema else is_changed
        looks["__is_answer"] = is_changed.all() & (filtered.str.len_chars() <= _LONGEST).all()
    found = (
        table.frame
        .select(look.alias(name) for name, look in looks.items())
        .collect(engine="streaming")
        .row(0, named=True)
    )
    if found["__n"] != 1:
        return _Single(None, is_answer=False)
    grade = next((name for name in found.get("__metrics") or [] if found.get(name)), None)
    return _Single(grade, is_answer=bool(found.get("__is_answer")))


def _notices(file: DataFile, columns: Mapping[str, pl.DataType]) -> Iterator[str]:
    """Tell that a file has several filters, before the attempts of one meet those of the other."""
    if "filter" not in columns or not file.is_json:
        return
    found: dict[bytes, None] = {}
    with open_binary(file) as stream:
        before = b""
        while block := stream.read(_BLOCK):
            # Inside a text, the quotes would be escaped.
            found |= dict.fromkeys(_FILTER.findall(before + block))
            before = block[-_LONGEST:]
    if len(found) > 1:
        names = ", ".join(repr(name.decode("utf-8", "replace")) for name in found)
        yield (
            f"has the filters {names}, and each attempt once for each of them. Keep them apart by 'filter' "
            "(by='filter', --by filter), or keep one."
        )


FORMAT = FileFormat(
    summary="lm-evaluation-harness: samples_{task}_{date}.jsonl, a row per document and filter",
    requires=(("doc_id",), ("resps",), ("filtered_resps",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    shapes={"resps": pl.List(pl.List(pl.String()))},
    unit="document and filter",
    columns={
        "doc_id": "problem_id",
        "resps": "completion",
        "doc.problem": "problem",
        "doc.question": "problem",
        "target": "gold",
    },
    ignores=("arguments after the prompt", "metrics"),
    notices=_notices,
    traps=(
        Trap(
            "several_filters",
            ("filter",),
            pl.col("filter") != pl.col("filter").first(),
            "have another filter than the first, so attempts are there several times",
            "by='filter' (--by filter) keeps them apart, or keep one: "
            "run.filter(pl.col('filter') == 'strict-match').",
        ),
        Trap(
            "invalid_responses",
            ("filtered_response", "filter"),
            pl.col("filtered_response") == _NOTHING,
            "have a response in which the filter of the tool found nothing",
            "they have no answer and were graded as wrong. overwrite=['answer', 'is_correct'] extracts and "
            "grades again.",
            severity="note",
        ),
    ),
)
