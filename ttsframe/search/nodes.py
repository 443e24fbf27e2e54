"""The table `nodes`: one row per step that a search asked for, kept or dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.schema import Column, require_columns

__all__ = ["NODE_COLUMNS"]

FinishReason: TypeAlias = Literal["step", "stop", "length", "error"]

NODE_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({
    "problem_id": Column(pl.String(), "as in the table of problems; a string or an integer"),
    "node_id": Column(pl.UInt64(), "hash of the path from the problem; unique within a problem"),
    "parent_id": Column(pl.UInt64(), "node that this step continues; null for a first step"),
    "round": Column(pl.UInt16(), "round of the search that asked for the step, from 0"),
    "depth": Column(pl.UInt16(), "number of steps of the path up to here, at least 1"),
    "subtree": Column(pl.UInt32(), "part of the tree that the step belongs to, from 0"),
    "text": Column(pl.String(), "text of the step"),
    "lookahead_text": Column(pl.String(), "greedy continuation that only the verifier sees"),
    "step_score": Column(pl.Float64(), "verifier's score of the step; null = none was given"),
    "score_vector": Column(
        pl.List(pl.Float64()), "scores of all steps of the path, where the verifier gives them"
    ),
    "n_tokens": Column(pl.Int64(), "generated tokens of the step"),
    "n_lookahead_tokens": Column(pl.Int64(), "generated tokens of the lookahead"),
    "n_prompt_tokens_new": Column(pl.Int64(), "prompt tokens that no cache held, if reported"),
    "n_allocated": Column(pl.Int64(), "continuations that the policy gave to the step"),
    "n_children": Column(pl.Int64(), "continuations that exist"),
    "finish_reason": Column(pl.String(), "step, stop (end of the solution), length or error"),
    "is_terminal": Column(pl.Boolean(), "the step ends a solution"),
    "is_kept": Column(pl.Boolean(), "the step was continued, or is the end of a returned path"),
    "dropped_because": Column(
        pl.String(),
        "pruned, duplicate, truncated, zero_allocation, cost_model or budget; null if kept",
    ),
})
"""The columns of `nodes`, in order: dtype and meaning."""

NODE_SCHEMA: Final = {name: column.dtype for name, column in NODE_COLUMNS.items()}
FINISH_REASONS: Final = ("step", "stop", "length", "error")
DROP_REASONS: Final = (
    "pruned",
    "duplicate",
    "truncated",
    "zero_allocation",
    "cost_model",
    "budget",
)

_HINT: Final = "tts.search.search(...) returns such a table."


def require_nodes(frame: pl.DataFrame | pl.LazyFrame, names: Sequence[str]) -> pl.Schema:
    """Check that a frame has the columns of `nodes` that a function reads, with their dtypes."""
    schema = require_columns(frame, names, where="nodes", hint=_HINT)
    for name in names:
        expected, found = NODE_SCHEMA.get(name), schema[name]
        if name == "problem_id" or expected is None or found == expected:
            continue
        if not (expected.is_integer() and found.is_integer()):
            raise ColumnsError(f"nodes: {name!r} is {found}, must be {expected}. Hint: {_HINT}")
    return schema
