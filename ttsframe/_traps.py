"""What is known to mislead in the files of a tool: found by an expression, told by a sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

import polars as pl


class Trap(NamedTuple):
    """A rule about the attempts that a reader gives; `validate` counts the rows that break it."""

    code: str
    """Stable name of the finding."""
    columns: tuple[str, ...]
    """Columns that it reads; without one of them it is skipped. The first is named by the finding."""
    is_caught: pl.Expr
    """Whether an attempt is caught; a null counts as false."""
    clause: str
    """Completes the sentence "3 of 40 attempts ..."."""
    hint: str
    severity: Literal["error", "warning", "note"] = "warning"
