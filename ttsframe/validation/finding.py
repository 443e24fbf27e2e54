"""One thing that a validation found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a validation found.

    Parameters
    ----------
    code
        Stable name of what was looked for, such as ``duplicate_attempts``.
    severity
        ``error`` where a number would be wrong or refused, ``warning`` where it may not mean what
        it seems to, ``note`` for what is worth knowing.
    column
        Column it was found in.
    count
        How often it was found: attempts, steps, problems or answers, as the message says.
    message
        One sentence with the count.
    examples
        The first few places, by key columns and value; empty where there is no place to name.
    hint
        One sentence on the way out.
    """

    code: str
    severity: Severity
    column: str
    count: int
    message: str
    examples: tuple[Mapping[str, object], ...]
    hint: str


class Found(NamedTuple):
    """A finding whose examples are still to be fetched, with the plan that fetches them."""

    finding: Finding
    places: pl.LazyFrame | None = None
