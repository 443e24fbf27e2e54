"""One JSON row at a time, in Python: the slow path that names faults and reads what Polars refuses.

Polars parses JSON fast and stops at the first thing it dislikes without a line number; it refuses
NaN, which Python tools write, and turns half of a surrogate pair into a NUL. Only the few lines
around such a place come here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from polars.datatypes import DataTypeClass

LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
ARRAY_END = "["
"""Stands for the missing end of an array."""
_MAX_DEPTH = 8
_MAX_FIELDS = 256
_SNIPPET = 60


class Fault(NamedTuple):
    """A row that cannot be read, and why."""

    row: int
    reason: str


class BadRowError(Exception):
    """What is wrong with one row; turned into a Fault by whoever knows its number."""


def parse_row(line: bytes, *, is_tail: bool) -> dict[str, Any]:
    """Parse one line; of a key that comes twice the first value counts, as in Polars."""
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
        raise BadRowError("holds a number of too many digits") from error
    if not isinstance(value, dict):
        raise BadRowError(f"holds {_describe(value)}, must hold one JSON object")
    return value


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    return row if len(row) == len(pairs) else dict(reversed(pairs))


def _explain(text: str, error: json.JSONDecodeError, *, is_tail: bool) -> str:
    at = error.pos
    if error.msg.startswith("Extra data"):
        what = "a second value follows" if text[at] in "{[" else "something follows the object"
        return f"{what} at column {at + 1}, near {_near(text, at)}; must hold one JSON object"
    is_open = at >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")
    if text == ARRAY_END:
        return "the array does not end; the file is cut off after the last element"
    if is_tail and is_open:
        return (
            f"is cut off after {len(text)} characters, ending in {_near(text, len(text))}; the file was "
            f"probably still being written, or the copy stopped"
        )
    reason = error.msg.removesuffix(" at")
    return f"not JSON at column {at + 1}, near {_near(text, at)} ({reason})"


def _near(text: str, at: int) -> str:
    start = max(0, min(at, len(text)) - _SNIPPET // 2)
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


_WORDS = {
    pl.String: "a string",
    pl.Boolean: "true or false",
    pl.List: "a list",
    pl.Struct: "an object",
}


def fit(value: Any, dtype: pl.DataType, where: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value as the dtype wants it, or say where it does not fit."""
    if value is None:
        return None
    if isinstance(dtype, pl.List) and isinstance(value, list):
        inner = instance(dtype.inner)
        return [fit(item, inner, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(dtype, pl.Struct) and isinstance(value, dict):
        return {
            field.name: fit(value.get(field.name), instance(field.dtype), f"{where}.{field.name}")
            for field in dtype.fields
        }
    if isinstance(dtype, pl.String):
        return _mended(value if isinstance(value, str) else json.dumps(value))
    if not _is_scalar(value, dtype):
        wanted = "a whole number" if dtype.is_integer() else _WORDS.get(type(dtype), "a number")
        raise BadRowError(f"{where} is {_describe(value)}, must be {wanted}")
    return float(value) if dtype.is_float() else value


def _is_scalar(value: object, dtype: pl.DataType) -> bool:
    # bool is an int to Python, and must not become 1 here
    if isinstance(value, bool):
        return isinstance(dtype, pl.Boolean)
    if isinstance(value, int):
        return dtype.is_float() or (dtype.is_integer() and -(2**63) <= value < 2**63)
    return isinstance(value, float) and dtype.is_float()


def _mended(text: str) -> str:
    """Put U+FFFD in place of half a surrogate pair, which no UTF-8 can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def instance(dtype: pl.DataType | DataTypeClass) -> pl.DataType:
    """Return the dtype; Polars types an inner dtype as a class or an instance of one."""
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def to_frame(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Build a frame from rows that fit the schema."""
    return pl.DataFrame(
        {
            name: pl.Series(name, [row[name] for row in rows], dtype)
            for name, dtype in schema.items()
        },
        schema=dict(schema),
    )


def dtype_of(value: object, depth: int = 0) -> pl.DataType:
    """Return the narrowest dtype that holds a JSON value."""
    if isinstance(value, list | dict) and depth >= _MAX_DEPTH:
        return pl.String()
    if isinstance(value, list):
        return pl.List(merged(dtype_of(item, depth + 1) for item in value))
    if isinstance(value, dict):
        if not 0 < len(value) <= _MAX_FIELDS:
            return pl.String()
        return pl.Struct({name: dtype_of(item, depth + 1) for name, item in value.items()})
    if type(value) is int and not -(2**63) <= value < 2**63:
        return pl.String()
    scalars = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String()}
    return scalars.get(type(value), pl.Null())


def merged(dtypes: Iterable[pl.DataType]) -> pl.DataType:
    """Return the dtype that holds values of all of them; String (of JSON text) as a last resort."""
    result: pl.DataType = pl.Null()
    for dtype in dtypes:
        result = _merge(result, dtype)
    return result


def _merge(left: pl.DataType, right: pl.DataType) -> pl.DataType:
    if left == right or isinstance(right, pl.Null):
        return left
    if isinstance(left, pl.Null):
        return right
    if isinstance(left, pl.List) and isinstance(right, pl.List):
        return pl.List(_merge(instance(left.inner), instance(right.inner)))
    if isinstance(left, pl.Struct) and isinstance(right, pl.Struct):
        fields = {field.name: instance(field.dtype) for field in left.fields}
        for field in right.fields:
            fields[field.name] = _merge(fields.get(field.name, pl.Null()), instance(field.dtype))
        return pl.Struct(fields) if len(fields) <= _MAX_FIELDS else pl.String()
    if {type(left), type(right)} == {pl.Int64, pl.Float64}:
        return pl.Float64()
    return pl.String()


def settled(dtype: pl.DataType, *, unseen: pl.DataType, depth: int = 0) -> pl.DataType:
    """Replace what is too wild by String, and what was never seen (nulls, empty lists) by `unseen`."""
    if isinstance(dtype, pl.Null):
        return unseen
    if isinstance(dtype, pl.List) and depth < _MAX_DEPTH:
        return pl.List(settled(instance(dtype.inner), unseen=unseen, depth=depth + 1))
    if isinstance(dtype, pl.Struct) and depth < _MAX_DEPTH and 0 < len(dtype.fields) <= _MAX_FIELDS:
        return pl.Struct({
            field.name: settled(instance(field.dtype), unseen=unseen, depth=depth + 1)
            for field in dtype.fields
        })
    return dtype if isinstance(dtype, pl.Boolean | pl.Int64 | pl.Float64) else pl.String()


def column_dtypes(rows: Iterable[Mapping[str, Any]]) -> dict[str, pl.DataType]:
    """Merge the dtypes of each column over rows."""
    dtypes: dict[str, pl.DataType] = {}
    for row in rows:
        for name, value in row.items():
            dtypes[name] = _merge(dtypes.get(name, pl.Null()), dtype_of(value))
    return dtypes
