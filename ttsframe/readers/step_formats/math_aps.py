"""MATH-APS, as a list of prefixes and as a tree: `{question, final_answer, question_id, reasoning_steps}`.

In the list, `reasoning_steps` is `[{solution_prefix, mc_value}]`. Each prefix is the question and the
steps so far, so its parent is the longest other prefix that it begins with; of equal ones, the first.

In the tree, `reasoning_steps` is `{text, mc_value, children}`, and its root is the problem before any
step. Trees are read in Python, node by node: their depth is unlimited, so no dtype can describe them, and
Polars turns values below the depth of a dtype into text.

`question_id` repeats across questions in the published files. It is kept as a column, and problems are
identified by the hash of their text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.json_rows import BadRowError, fit_value
from ttsframe.readers.engine.table import FileFormat, Table
from ttsframe.readers.step_formats.reading import (
    add_ids,
    cast_source,
    check_rows,
    explode_steps,
    first_fault,
    is_no_share,
    unpack_fields,
)
from ttsframe.readers.step_formats.step_format import StepFormat

_STEPS: Final = "reasoning_steps"
_FIELDS: Final = {"solution_prefix": "__prefix", "mc_value": "soft"}
_ROW_DTYPES: Final[dict[str, pl.DataType]] = {"question": pl.String(), "final_answer": pl.String()}
_LIST_DTYPES: Final[dict[str, pl.DataType]] = {
    **_ROW_DTYPES,
    _STEPS: pl.List(pl.Struct({"solution_prefix": pl.String(), "mc_value": pl.Float64()})),
}
_TREE_DTYPES: Final[dict[str, pl.DataType]] = {**_ROW_DTYPES, _STEPS: pl.String()}
_LINKED: Final = pl.List(
    pl.Struct({
        "node": pl.Int64(),
        "parent": pl.Int64(),
        "depth": pl.Int64(),
        "text": pl.String(),
    })
)
_NODES: Final = pl.List(
    pl.Struct({
        "node": pl.Int64(),
        "parent": pl.Int64(),
        "step": pl.Int64(),
        "text": pl.String(),
        "soft": pl.Float64(),
    })
)
_WALKED: Final = pl.Struct({"__nodes": _NODES, "__fault": pl.String()})
_NO_SHARE: Final = "'reasoning_steps' has an 'mc_value' that is no share from 0 to 1"
_NODE_KEYS: Final = {"text", "mc_value", "children"}


def _list_to_steps(source: Table) -> pl.LazyFrame:
    table = cast_source(source, _LIST_DTYPES, made=("gold",))
    entries = table.schema[_STEPS]
    if "solution_prefix" not in struct_fields(entries):
        raise ColumnsError(
            f"{', '.join(table.row_words)}: column 'reasoning_steps' is {entries}, must be a list of objects "
            f"with 'solution_prefix' and 'mc_value'."
        )
    prefixes = pl.col("__prefixes")
    read = table.frame.with_columns(
        pl.col(_STEPS).list.eval(pl.element().struct.field("solution_prefix")).alias("__prefixes")
    )
    values = {}
    if "mc_value" in struct_fields(entries):
        is_bad = is_no_share(pl.element().struct.field("mc_value"))
        values[_NO_SHARE] = pl.col(_STEPS).list.eval(is_bad).list.any()
    checked = check_rows(
        table,
        read,
        first_fault({
            "'question' is null": pl.col("question").is_null(),
            "'reasoning_steps' is null": prefixes.is_null(),
            "'reasoning_steps' is empty": prefixes.list.len() == 0,
            "'reasoning_steps' has an object without 'solution_prefix'": prefixes.list.eval(
                pl.element().is_null()
            ).list.any(),
            **values,
        }),
    )
    linked = (
        pl
        .struct("question", "__prefixes")
        .map_batches(_link, return_dtype=_LINKED, is_elementwise=True)
        .alias("__nodes")
    )
    is_unrelated = pl.col("__nodes").list.eval(pl.element().struct.field("depth") < -1)
    fault = pl.format(
        "reasoning_steps[{}].solution_prefix does not begin with the question",
        pl.col("__is_unrelated").list.arg_max(),
    )
    frame = check_rows(
        table,
        checked.with_columns(linked).with_columns(is_unrelated.alias("__is_unrelated")),
        pl.when(pl.col("__is_unrelated").list.any()).then(fault),
    )
    frame = frame.drop("__is_unrelated").rename(
        {"question": "problem", "final_answer": "gold"}, strict=False
    )
    schema = {**table.schema, "problem": pl.String()}
    named = add_ids(table._replace(frame=frame, schema=schema), _tree_texts("__nodes"))
    fields = unpack_fields(_STEPS, entries, _FIELDS, _STEPS)
    return (
        explode_steps(named.frame.drop("__prefixes"), [_STEPS, "__nodes"])
        .with_columns(fields)
        .drop(_STEPS, "__prefix", "step")
        .unnest("__nodes")
        .rename({"depth": "step"})
        .with_columns(pl.col("step").fill_null(-1))
    )


def _tree_texts(nodes: str) -> pl.Expr:
    """Return the sorted texts of a tree, from which its id is made."""
    return pl.col(nodes).list.eval(pl.element().struct.field("text").fill_null("")).list.sort()


def _link(rows: pl.Series) -> pl.Series:
    """Find the parent of each prefix, and the text that it adds."""
    prefix, before, candidate = pl.col("__prefix"), pl.col("__before"), pl.col("candidate")
    # In sorted order, a text follows all its prefixes, and the text before it begins with all of them
    # too. So the search for the parent starts there and moves to the candidate of the candidate, in as
    # many rounds as a path has steps.
    frame = (
        rows.struct
        .unnest()
        .with_row_index("__row")
        .explode("__prefixes", empty_as_null=False, keep_nulls=False)
        .rename({"__prefixes": "__prefix"})
        .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over("__row").alias("node"))
        .sort("__row", "__prefix", "node", descending=[False, False, True])
        .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("position"))
        .with_columns(pl.col("position").shift(1).over("__row").alias("candidate"))
    )
    is_parent = (prefix != before) & prefix.str.starts_with(before)
    while True:
        frame = frame.with_columns(prefix.gather(candidate).alias("__before"))
        is_open = candidate.is_not_null() & ~is_parent
        if not frame.select(is_open.any()).item():
            break
        farther = pl.when(is_open).then(candidate.gather(candidate)).otherwise(candidate)
        frame = frame.with_columns(farther.alias("candidate"))
    is_problem = prefix == pl.col("question")
    depth = pl.col("depth")
    frame = frame.with_columns(
        pl.col("node").gather(candidate).alias("parent"),
        pl
        .when(~is_problem)
        .then(prefix.str.strip_prefix(pl.coalesce(before, "question")))
        .alias("text"),
        pl
        .when(~prefix.str.starts_with(pl.col("question")))
        .then(-2)
        .when(is_problem)
        .then(-1)
        .when(candidate.is_null())
        .then(0)
        .cast(pl.Int64)
        .alias("depth"),
    )
    while frame["depth"].null_count():
        frame = frame.with_columns(depth.fill_null(depth.gather(candidate) + 1))
    linked = (
        frame
        .sort("__row", "node")
        .group_by("__row", maintain_order=True)
        .agg(pl.struct("node", "parent", "depth", "text").alias("nodes"))
    )
    all_rows = pl.DataFrame({"__row": pl.int_range(len(rows), dtype=pl.UInt32, eager=True)})
    nodes = all_rows.join(linked, on="__row", how="left", maintain_order="left")["nodes"]
    return nodes.fill_null([]).cast(_LINKED).alias(rows.name)


def _tree_to_steps(source: Table) -> pl.LazyFrame:
    if isinstance(source.schema[_STEPS], pl.Struct):
        encoded = source.frame.with_columns(pl.col(_STEPS).struct.json_encode())
        source = source._replace(frame=encoded, schema={**source.schema, _STEPS: pl.String()})
    table = cast_source(source, _TREE_DTYPES, made=("gold",))
    walked = (
        pl
        .struct("question", _STEPS)
        .map_batches(_walk_all, return_dtype=_WALKED, is_elementwise=True)
        .alias("__walked")
    )
    read = table.frame.with_columns(walked).drop(_STEPS).unnest("__walked")
    frame = check_rows(table, read, pl.col("__fault"))
    frame = frame.rename({"question": "problem", "final_answer": "gold"}, strict=False)
    schema = {**table.schema, "problem": pl.String()}
    named = add_ids(table._replace(frame=frame, schema=schema), _tree_texts("__nodes"))
    return named.frame.explode("__nodes", empty_as_null=False, keep_nulls=False).unnest("__nodes")


def _walk_all(rows: pl.Series) -> pl.Series:
    questions, trees = (rows.struct.field(name).to_list() for name in ("question", _STEPS))
    nodes: list[list[dict[str, object]] | None] = []
    faults: list[str | None] = []
    for question, tree in zip(questions, trees, strict=True):
        try:
            nodes.append(list(_walk(tree, question)))
            faults.append(None)
        except BadRowError as reason:
            nodes.append(None)
            faults.append(str(reason))
    columns = {
        "__nodes": pl.Series(nodes, dtype=_NODES),
        "__fault": pl.Series(faults, dtype=pl.String),
    }
    return pl.DataFrame(columns).to_struct(rows.name)


def _walk(tree: str | None, question: str | None) -> Iterator[dict[str, object]]:
    """Yield the nodes of a tree, each before its children."""
    if question is None or tree is None:
        raise BadRowError(f"{'question' if question is None else _STEPS!r} is null")
    stack: list[tuple[Any, int | None, int, str]] = [(json.loads(tree), None, -1, _STEPS)]
    count = 0
    while stack:
        item, parent, step, place = stack.pop()
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            raise BadRowError(f"{place} must be an object with a text")
        if unknown := item.keys() - _NODE_KEYS:
            keys = sorted(_NODE_KEYS)
            raise BadRowError(f"{place} has a key {min(unknown)!r}, must only have {keys}")
        text = fit_value(item["text"], pl.String(), place)
        soft = fit_value(item.get("mc_value"), pl.Float64(), f"{place}.mc_value")
        if soft is not None and not 0 <= soft <= 1:
            raise BadRowError(f"{place}.mc_value is {soft}, must be a share from 0 to 1")
        yield {
            "node": count,
            "parent": parent,
            "step": step,
            "text": None if step == -1 and text == question else text,
            "soft": soft,
        }
        children = item.get("children") or []
        if not isinstance(children, list):
            raise BadRowError(f"{place}.children must be a list")
        stack.extend(
            (children[index], count, step + 1, f"{place}.children[{index}]")
            for index in reversed(range(len(children)))
        )
        count += 1


LIST_FORMAT = StepFormat(
    FileFormat(
        summary="MATH-APS list: a row per problem with prefixes of solutions and their values (JSON)",
        requires=(("question",), (_STEPS,)),
        dtypes=_LIST_DTYPES,
        to_rows=_list_to_steps,
        shapes={_STEPS: pl.List},
    )
)

TREE_FORMAT = StepFormat(
    FileFormat(
        summary="MATH-APS tree: a row per problem with a tree of steps and their values (JSON)",
        requires=(("question",), (_STEPS,)),
        dtypes=_TREE_DTYPES,
        to_rows=_tree_to_steps,
        shapes={_STEPS: pl.Struct},
        as_text=frozenset({_STEPS}),
    )
)
