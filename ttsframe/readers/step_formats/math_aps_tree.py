"""MATH-APS, as a tree: ``{question, final_answer, question_id, reasoning_steps: {text, mc_value, children}}``.

The root is the problem before any step. Reading walks each tree in Python: its nesting has no end that
a column's type could state, and Polars turns what is nested deeper than a type says into text. Writing
goes level by level and needs no such walk. The problem is known by the hash of its text, as in the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from ttsframe.readers.engine.rows import BadRowError, fit
from ttsframe.readers.engine.table import Reader, Table
from ttsframe.readers.step_formats.math_aps import (
    ROW_DTYPES,
    carried_of_tree,
    node_members,
    texts_of_tree,
    tree_lines,
    value_text,
)
from ttsframe.readers.step_formats.nodes import nodes_of
from ttsframe.readers.step_formats.reading import identify, typed, without_faults
from ttsframe.readers.step_formats.step_format import Labels, StepFormat
from ttsframe.readers.step_formats.writing import json_array, json_object, json_text, refuse

_TREE: Final = "reasoning_steps"
_OF_NODE: Final = "node."
_DTYPES: dict[str, pl.DataType] = {**ROW_DTYPES, _TREE: pl.String()}
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
_KEYS: Final = {"text", "mc_value", "children"}


def _to_steps(source: Table) -> pl.LazyFrame:
    if isinstance(source.schema[_TREE], pl.Struct):
        encoded = source.frame.with_columns(pl.col(_TREE).struct.json_encode())
        source = source._replace(frame=encoded, schema={**source.schema, _TREE: pl.String()})
    table = typed(source, _DTYPES, made=("gold",))
    walked = (
        pl
        .struct("question", _TREE)
        .map_batches(_walk_all, return_dtype=_WALKED, is_elementwise=True)
        .alias("__walked")
    )
    read = table.frame.with_columns(walked).drop(_TREE).unnest("__walked")
    frame = without_faults(table, read, pl.col("__fault"))
    frame = frame.rename({"question": "problem", "final_answer": "gold"}, strict=False)
    schema = {**table.schema, "problem": pl.String()}
    named = identify(table._replace(frame=frame, schema=schema), texts_of_tree("__nodes"))
    return named.frame.explode("__nodes", empty_as_null=False, keep_nulls=False).unnest("__nodes")


def _walk_all(rows: pl.Series) -> pl.Series:
    questions, trees = (rows.struct.field(name).to_list() for name in ("question", _TREE))
    nodes: list[list[dict[str, object]] | None] = []
    faults: list[str | None] = []
    for question, tree in zip(questions, trees, strict=True):
        try:
            found, fault = list(_walk(tree, question)), None
        except BadRowError as reason:
            found, fault = None, str(reason)
        nodes.append(found)
        faults.append(fault)
    columns = {
        "__nodes": pl.Series(nodes, dtype=_NODES),
        "__fault": pl.Series(faults, dtype=pl.String),
    }
    return pl.DataFrame(columns).to_struct(rows.name)


def _walk(tree: str | None, question: str | None) -> Iterator[dict[str, object]]:
    """Yield the nodes of a tree, each before its children."""
    if question is None or tree is None:
        raise BadRowError(f"{'question' if question is None else _TREE!r} is null")
    ahead: list[tuple[Any, int | None, int, str]] = [(json.loads(tree), None, -1, _TREE)]
    count = 0
    while ahead:
        item, parent, step, place = ahead.pop()
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            raise BadRowError(f"{place} must be an object with a text")
        if strange := item.keys() - _KEYS:
            raise BadRowError(f"{place} has a key {min(strange)!r}, must have {sorted(_KEYS)} only")
        text = fit(item["text"], pl.String(), place)
        yield {
            "node": count,
            "parent": parent,
            "step": step,
            "text": None if step == -1 and text == question else text,
            "soft": fit(item.get("mc_value"), pl.Float64(), f"{place}.mc_value"),
        }
        children = item.get("children") or []
        if not isinstance(children, list):
            raise BadRowError(f"{place}.children must be a list")
        ahead.extend(
            (children[index], count, step + 1, f"{place}.children[{index}]")
            for index in reversed(range(len(children)))
        )
        count += 1


def _to_lines(steps: pl.DataFrame, _: Labels) -> pl.Series:
    nodes = nodes_of(steps)
    carried = carried_of_tree(nodes, "math_aps_tree", _OF_NODE)
    is_root = pl.col("step") == -1
    n_roots = is_root.sum().over("__row")
    refuse(
        nodes,
        is_root & (n_roots > 1),
        "the problem is there more than once, where format 'math_aps_tree' has one root",
    )
    refuse(
        nodes,
        ~is_root & pl.col("parent").is_null() & (n_roots > 0),
        "continues no other, although the problem before any step is there",
    )
    rootless = nodes.filter(n_roots == 0).unique("__row", keep="first", maintain_order=True)
    roots = rootless.with_columns(
        pl.lit(None, dtype=pl.String).alias("text"),
        pl.lit(-1, dtype=pl.Int64).alias("step"),
        pl.lit(None, dtype=pl.Int64).alias("parent"),
        pl.lit(-1, dtype=nodes.schema["node"]).alias("node"),
        *(pl.lit(None).alias(name) for name in nodes.columns if name == "soft"),
    )
    whole = pl.concat([nodes, roots], how="diagonal_relaxed")
    root = pl.col("node").filter(is_root).first().over("__row")
    whole = whole.with_columns(pl.when(~is_root).then(pl.coalesce("parent", root)).alias("parent"))
    text = pl.coalesce("text", "problem")
    inner = pl.DataFrame(
        schema={
            "__row": whole.schema["__row"],
            "node": whole.schema["node"],
            "__children": pl.String,
        }
    )
    for step in range(int(str(whole["step"].max() or 0)), -2, -1):
        level = whole.filter(pl.col("step") == step).join(inner, on=["__row", "node"], how="left")
        value = json_object(
            {
                "text": json_text(text),
                "mc_value": value_text(whole),
                "children": pl.coalesce("__children", pl.lit("[]")),
            },
            node_members(whole, _OF_NODE),
        )
        level = level.sort("__row", "node").with_columns(value.alias("__value"))
        inner = level.group_by("__row", node="parent").agg(
            json_array(pl.col("__value")).alias("__children")
        )
    return tree_lines(nodes, level.select("__row", "__value"), carried)


FORMAT = StepFormat(
    summary="MATH-APS tree: a row per problem with a tree of steps and their values (JSON)",
    reader=Reader(
        summary="MATH-APS tree",
        requires=(("question",), (_TREE,)),
        dtypes=_DTYPES,
        to_attempts=_to_steps,
        shapes={_TREE: pl.Struct},
        as_text=frozenset({_TREE}),
    ),
    to_lines=_to_lines,
)
