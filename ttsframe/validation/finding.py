"""One finding of a validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a validation.

    Parameters
    ----------
    code
        Stable name of the rule, such as `duplicate_attempts`.
    severity
        `error` where a number would be wrong or a function refuses the run, `warning` where a number
        may be misleading, `note` for everything else worth knowing.
    column
        Column that breaks the rule.
    count
        Number of attempts, steps, problems or answers that break the rule; `message` says which.
    message
        One sentence with the count.
    examples
        The first few rows or groups that break the rule: key columns and value. Empty for findings
        about a whole column or run.
    hint
        One sentence that says how to fix it.
    """

    code: str
    severity: Severity
    column: str
    count: int
    message: str
    examples: tuple[Mapping[str, object], ...]
    hint: str


class Pending(NamedTuple):
    """A finding, and the query for its examples."""

    finding: Finding
    examples: pl.LazyFrame | None = None
