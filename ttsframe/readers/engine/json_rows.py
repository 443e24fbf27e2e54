"""The slow path for JSON rows: one at a time in Python, with a reason for each faulty row.

Polars parses JSON fast but stops at the first error without a line number. It also refuses NaN,
which Python tools write, and turns lone surrogates into NUL. Only the few rows around such a place
are parsed here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from ttsframe.readers.engine.dtypes import as_instance

ROW = "\ue000row"
FILE = "\ue000file"
"""Names of added columns; their private character keeps them apart from columns of a source."""
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
ARRAY_END = "["
"""Placeholder row for an array without an end."""
_SNIPPET = 60


class Fault(NamedTuple):
    """A row that cannot be read, and why."""

    row: int
    reason: str


class BadRowError(Exception):
    """The reason why a row cannot be read; the caller knows its number."""


def parse_row(line: bytes, *, is_tail: bool) -> dict[str, Any]:
    """Parse one line; the first value of a repeated key counts, as in Polars."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise BadRowError(f"byte {error.start + 1} is not UTF-8 ({error.reason})") from error
    try:
        value = json.loads(text, object_pairs_hook=_first_wins)
    except json.JSONDecodeError as error:
        raise BadRowError(_explain(text, error, is_tail=is_tail)) from error
    except RecursionError as error:
        raise BadRowError("brackets are nested too deeply") from error
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadRowError("holds a number with too many digits") from error
    if not isinstance(value, dict):
        raise BadRowError(f"holds {_describe(value)}, must hold one JSON object")
    return value


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    return row if len(row) == len(pairs) else dict(reversed(pairs))


def _explain(text: str, error: json.JSONDecodeError, *, is_tail: bool) -> str:
    position = error.pos
    if error.msg.startswith("Extra data"):
        what = "a second value follows" if text[position] in "{[" else "text follows the object"
        place = f"column {position + 1}, near {_quote(text, position)}"
        return f"{what} at {place}; must hold one JSON object"
    is_open = position >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")
    if text == ARRAY_END:
        return "the array has no end; the file is cut off after its last element"
    if is_tail and is_open:
        return (
            f"is cut off after {len(text)} characters, at {_quote(text, len(text))}; the file was "
            f"probably still being written, or a copy was interrupted"
        )
    reason = error.msg.removesuffix(" at")
    return f"not JSON at column {position + 1}, near {_quote(text, position)} ({reason})"


def _quote(text: str, position: int) -> str:
    """Quote the text around a position."""
    start = max(0, min(position, len(text)) - _SNIPPET // 2)
    piece = text[start : start + _SNIPPET]
    before = "..." if start else ""
    after = "..." if start + _SNIPPET < len(text) else ""
    return f"{before}{piece!r}{after}"


def _describe(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    names |= {list: "a list", dict: "an object", type(None): "null"}
    if isinstance(value, list | dict):
        return names[type(value)]
    text = repr(value)
    return f"{names[type(value)]} ({text[:_SNIPPET]}{'...' if len(text) > _SNIPPET else ''})"


_NAMES = {
    pl.String: "a string",
    pl.Boolean: "true or false",
    pl.List: "a list",
    pl.Struct: "an object",
}


def fit_value(value: Any, dtype: pl.DataType, where: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value as a value of the dtype, or raise and say where it does not fit."""
    if value is None:
        return None
    if isinstance(dtype, pl.List) and isinstance(value, list):
        inner = as_instance(dtype.inner)
        return [fit_value(item, inner, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(dtype, pl.Struct) and isinstance(value, dict):
        return {
            field.name: fit_value(
                value.get(field.name), as_instance(field.dtype), f"{where}.{field.name}"
            )
            for field in dtype.fields
        }
    if isinstance(dtype, pl.String):
        return _replace_lone_surrogates(value if isinstance(value, str) else _as_text(value))
    if not _is_scalar(value, dtype):
        wanted = "a whole number" if dtype.is_integer() else _NAMES.get(type(dtype), "a number")
        raise BadRowError(f"{where} is {_describe(value)}, must be {wanted}")
    return float(value) if dtype.is_float() else value


def _as_text(value: object) -> str:
    """Write a value that is no text; a number as Polars writes it, so that no text depends on who parsed."""
    if not isinstance(value, float) or not math.isfinite(value):
        return json.dumps(value)
    digits = format(Decimal(repr(value)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _is_scalar(value: object, dtype: pl.DataType) -> bool:
    # In Python a bool is an int; it must not become 1.
    if isinstance(value, bool):
        return isinstance(dtype, pl.Boolean)
    if isinstance(value, int):
        return dtype.is_float() or (dtype.is_integer() and -(2**63) <= value < 2**63)
    return isinstance(value, float) and dtype.is_float()


def _replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def rows_to_frame(
    rows: Sequence[Mapping[str, Any]], schema: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Build a frame from rows that fit the schema."""
    return pl.DataFrame(
        {
            name: pl.Series(name, [row[name] for row in rows], dtype)
            for name, dtype in schema.items()
        },
        schema=dict(schema),
    )
