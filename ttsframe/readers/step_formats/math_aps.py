"""MATH-APS, as a list: ``{question, final_answer, question_id, reasoning_steps: [{solution_prefix, mc_value}]}``.

Each prefix is the question and the steps so far, so it is the continuation of the longest other prefix
that it begins with; of equal ones the first is continued. ``question_id`` repeats across questions in
what OpenR ships, so it is kept as a column and problems are known by the hash of their text.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.table import Reader, Table
from ttsframe.readers.step_formats.nodes import nodes_of
from ttsframe.readers.step_formats.reading import (
    explode_steps,
    fields_of,
    first_fault,
    identify,
    typed,
    unpacked,
    without_faults,
)
from ttsframe.readers.step_formats.step_format import Labels, StepFormat
from ttsframe.readers.step_formats.writing import (
    IDS,
    carried_columns,
    json_array,
    json_lines,
    json_object,
    json_text,
    refuse,
    refuse_taken,
    underived,
)

_FIELDS: Final = {"solution_prefix": "__prefix", "mc_value": "soft"}
ROW_DTYPES: Final[dict[str, pl.DataType]] = {"question": pl.String(), "final_answer": pl.String()}
_DTYPES: dict[str, pl.DataType] = {
    **ROW_DTYPES,
    "reasoning_steps": pl.List(
        pl.Struct({"solution_prefix": pl.String(), "mc_value": pl.Float64()})
    ),
}
_OF_ENTRY: Final = "reasoning_steps."
_LINKED: Final = pl.List(
    pl.Struct({
        "node": pl.Int64(),
        "parent": pl.Int64(),
        "depth": pl.Int64(),
        "text": pl.String(),
    })
)


def _to_steps(source: Table) -> pl.LazyFrame:
    table = typed(source, _DTYPES, made=("gold",))
    entries = table.schema["reasoning_steps"]
    if "solution_prefix" not in fields_of(entries):
        raise ColumnsError(
            f"{', '.join(table.row_words)}: column 'reasoning_steps' is {entries}, must be a list of objects "
            f"with 'solution_prefix' and 'mc_value'."
        )
    prefixes = pl.col("__prefixes")
    read = table.frame.with_columns(
        pl
        .col("reasoning_steps")
        .list.eval(pl.element().struct.field("solution_prefix"))
        .alias("__prefixes")
    )
    checked = without_faults(
        table,
        read,
        first_fault({
            "'question' is null": pl.col("question").is_null(),
            "'reasoning_steps' is null": prefixes.is_null(),
            "'reasoning_steps' is empty": prefixes.list.len() == 0,
            "'reasoning_steps' has an object without 'solution_prefix'": prefixes.list.eval(
                pl.element().is_null()
            ).list.any(),
        }),
    )
    linked = (
        pl
        .struct("question", "__prefixes")
        .map_batches(_link, return_dtype=_LINKED, is_elementwise=True)
        .alias("__nodes")
    )
    strangers = pl.col("__nodes").list.eval(pl.element().struct.field("depth") < -1)
    place = pl.format(
        "reasoning_steps[{}].solution_prefix does not begin with the question",
        pl.col("__strangers").list.arg_max(),
    )
    frame = without_faults(
        table,
        checked.with_columns(linked).with_columns(strangers.alias("__strangers")),
        pl.when(pl.col("__strangers").list.any()).then(place),
    )
    frame = frame.drop("__strangers").rename(
        {"question": "problem", "final_answer": "gold"}, strict=False
    )
    schema = {**table.schema, "problem": pl.String()}
    named = identify(table._replace(frame=frame, schema=schema), texts_of_tree("__nodes"))
    fields = unpacked("reasoning_steps", entries, _FIELDS, _OF_ENTRY.removesuffix("."))
    return (
        explode_steps(named.frame.drop("__prefixes"), ["reasoning_steps", "__nodes"])
        .with_columns(fields)
        .drop("reasoning_steps", "__prefix", "step")
        .unnest("__nodes")
        .rename({"depth": "step"})
        .with_columns(pl.col("step").fill_null(-1))
    )


def texts_of_tree(nodes: str) -> pl.Expr:
    """Return the texts by which a tree is known, whatever the order of its nodes."""
    return pl.col(nodes).list.eval(pl.element().struct.field("text").fill_null("")).list.sort()


def _link(rows: pl.Series) -> pl.Series:
    """Find the parent of each prefix, and what it adds to it."""
    prefix, before, candidate = pl.col("__prefix"), pl.col("__before"), pl.col("candidate")
    # Sorted, a text comes after all its prefixes, and the text before it begins with all of them as
    # well. So its parent is found by going back from there, candidate by candidate: in as many rounds
    # as a path has steps, however many texts there are.
    frame = (
        rows.struct
        .unnest()
        .with_row_index("__row")
        .explode("__prefixes", empty_as_null=False, keep_nulls=False)
        .rename({"__prefixes": "__prefix"})
        .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over("__row").alias("node"))
        .sort("__row", "__prefix", "node", descending=[False, False, True])
        .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("at"))
        .with_columns(pl.col("at").shift(1).over("__row").alias("candidate"))
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
    every = pl.DataFrame({"__row": pl.int_range(len(rows), dtype=pl.UInt32, eager=True)})
    nodes = every.join(linked, on="__row", how="left", maintain_order="left")["nodes"]
    return nodes.fill_null([]).cast(_LINKED).alias(rows.name)


def carried_of_tree(nodes: pl.DataFrame, format_name: str, of_node: str) -> list[str]:
    """Name the columns of whole trees that become further keys; refuse what has no place."""
    refuse(
        nodes,
        pl.any_horizontal(
            pl.col(name).ne_missing(pl.col(name).first().over("__row"))
            for name in ("problem", "gold")
            if name in nodes.columns
        ),
        "has another problem or gold answer than the tree's first node",
    )
    for name in ("is_correct", "rating"):
        if name in nodes.columns and nodes[name].null_count() < nodes.height:
            raise ColumnsError(
                f"format {format_name!r} holds soft values and no labels, as in the column {name!r}. Hint: "
                f"{setting('drop', [name], text=f'steps.drop({name!r})')} leaves it out; soft=pl.col('is_correct').cast(pl.Float64) makes "
                f"values of labels."
            )
    settled = {
        "__row",
        *IDS,
        "step",
        "node",
        "parent",
        "problem",
        "gold",
        "text",
        "soft",
        "is_on_path",
    }
    settled |= {name for name in nodes.columns if name.startswith(of_node)}
    settled |= {"is_correct", "rating"}
    carried = carried_columns(nodes, settled, format_name)
    refuse_taken(carried, (*ROW_DTYPES, "reasoning_steps"), format_name)
    return carried


def tree_lines(nodes: pl.DataFrame, values: pl.DataFrame, carried: list[str]) -> pl.Series:
    """Write a JSON object per tree, its reasoning steps given as JSON in ``values``."""
    named = [name for name in ("gold", "question_id") if name in nodes.columns]
    rows = nodes.group_by("__row", maintain_order=True).agg(
        pl.col("text").fill_null("").sort().alias("__texts"),
        *(pl.col(name).first() for name in dict.fromkeys([*IDS, "problem", *named, *carried])),
    )
    gold = json_text("gold") if "gold" in rows.columns else pl.lit("null")
    members = {
        "question": json_text("problem"),
        "final_answer": gold,
        "reasoning_steps": pl.col("__value"),
    }
    if "question_id" in named:
        members["question_id"] = json_text("question_id")
    joined = rows.join(values, on="__row", how="left", maintain_order="left")
    further = [name for name in carried if name not in named]
    return json_lines(joined, members, [*underived(rows, tuple(members)), *further])


def node_members(nodes: pl.DataFrame, prefix: str) -> dict[str, pl.Expr]:
    """Return what a node has besides its text and value."""
    return {
        name.removeprefix(prefix): pl.col(name) for name in nodes.columns if name.startswith(prefix)
    }


def value_text(nodes: pl.DataFrame) -> pl.Expr:
    """Return the soft values as JSON."""
    return json_text("soft") if "soft" in nodes.columns else pl.lit("null")


def _to_lines(steps: pl.DataFrame, _: Labels) -> pl.Series:
    nodes = nodes_of(steps)
    carried = carried_of_tree(nodes, "math_aps", _OF_ENTRY)
    refuse(
        nodes,
        (pl.col("step") == -1) & pl.col("text").is_not_null(),
        "the problem itself has a text as a step has, which format 'math_aps' cannot hold",
    )
    own = pl.col("text").fill_null("")
    level = nodes.filter(pl.col("parent").is_null()).with_columns(
        pl.concat_str("problem", own).alias("__prefix")
    )
    levels = [level]
    while level.height:
        before = level.select("__row", parent="node", __before="__prefix")
        level = nodes.join(before, on=["__row", "parent"]).with_columns(
            pl.concat_str("__before", own).alias("__prefix")
        )
        levels.append(level.drop("__before"))
    found = pl.concat(levels, how="diagonal_relaxed").sort("__row", "node")
    _check_reading(found)
    entry = json_object(
        {"solution_prefix": json_text("__prefix"), "mc_value": value_text(found)},
        node_members(found, _OF_ENTRY),
    )
    values = found.group_by("__row", maintain_order=True).agg(json_array(entry).alias("__value"))
    return tree_lines(found, values, carried)


def _check_reading(nodes: pl.DataFrame) -> None:
    """Refuse trees that a list of prefixes does not tell from others."""
    numbered = nodes.with_columns(pl.int_range(pl.len()).over("__row").alias("at"))
    parents = numbered.select("__row", parent="node", parent_at="at")
    expected = numbered.join(parents, on=["__row", "parent"], how="left", maintain_order="left")
    lists = expected.group_by("__row", maintain_order=True).agg(
        question=pl.col("problem").first(), __prefixes=pl.col("__prefix")
    )
    linked = _link(lists.select(pl.struct("question", "__prefixes")).to_series())
    read = linked.explode(empty_as_null=False, keep_nulls=False).struct.unnest()
    refuse(
        expected.with_columns(read.select(read_parent="parent", read_text="text")),
        pl.col("parent_at").ne_missing(pl.col("read_parent"))
        | pl.col("text").ne_missing(pl.col("read_text")),
        (
            "in a list of prefixes it would seem to continue another step, because one text "
            "begins with another or is empty. Hint: format 'math_aps_tree' holds any tree"
        ),
    )


FORMAT = StepFormat(
    summary="MATH-APS list: a row per problem with prefixes of solutions and their values (JSON)",
    reader=Reader(
        summary="MATH-APS list",
        requires=(("question",), ("reasoning_steps",)),
        dtypes=_DTYPES,
        to_attempts=_to_steps,
        shapes={"reasoning_steps": pl.List},
    ),
    to_lines=_to_lines,
)
