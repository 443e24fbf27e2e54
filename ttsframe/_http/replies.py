"""Values of a reply, checked, because a server may send anything."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from ttsframe.errors import CompletionError

RowT = TypeVar("RowT", bound=Mapping[str, object])

_MAX_COUNT: Final = 1 << 40
_MAX_QUOTE: Final = 300


def count_of(value: object) -> int | None:
    """Return a number of tokens, or None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MAX_COUNT else None


def total_logprob(values: Sequence[object]) -> float | None:
    """Return the sum of log-probabilities; servers give null for a first token."""
    numbers = [number for value in values if (number := finite(value)) is not None]
    return math.fsum(numbers) if numbers else None


def finite(value: object) -> float | None:
    """Return a finite number, or None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_number = -sys.float_info.max <= value <= sys.float_info.max
    return float(value) if is_number else None


def quote(value: object) -> str:
    """Return the start of a value on one line."""
    return " ".join(repr(value).split())[:_MAX_QUOTE]


def in_order(rows: Sequence[RowT], what: str, where: str) -> list[RowT]:
    """Return the rows of a reply in the order of their indices; without indices, as they are."""
    indices = [row.get("index", i) for i, row in enumerate(rows)]
    if any(i not in indices for i in range(len(rows))):
        raise CompletionError(
            f"{where}: the {what} have the indices {quote(indices)}, must be 0 to {len(rows) - 1}."
        )
    return [rows[indices.index(i)] for i in range(len(rows))]
