"""JSON documents that are no tables: parsed in Python, and asked for values of a kind."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ttsframe.errors import SourceError
from ttsframe.readers.engine.archive import BadMemberError
from ttsframe.readers.engine.sniff import DataFile, Unpacked, head_of, open_binary, read_whole
from ttsframe.readers.engine.table import shown

_DECODE: Final = json.JSONDecoder().decode


def begins(pattern: re.Pattern[bytes], file: DataFile) -> bool:
    """Return whether a file is JSON that begins as a pattern says."""
    return file.container in {"json", "jsonl"} and pattern.match(head_of(file)) is not None


def read_object(file: DataFile) -> dict[str, Any]:
    """Parse a file that holds one JSON object."""
    with open_binary(file) as stream:
        try:
            return parse_object(read_whole(stream, file))
        except BadMemberError as reason:
            raise SourceError(
                f"{file.name}: {reason}. Hint: it may be cut off, or still being written."
            ) from reason


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse one JSON object."""
    value = parse_value(data)
    if not isinstance(value, dict):
        raise BadMemberError(f"holds {shown(value)}, must hold one JSON object")
    return value


def parse_value(data: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a JSON value."""
    try:
        return _DECODE(data.removeprefix(codecs.BOM_UTF8).decode().strip())
    except UnicodeDecodeError as error:
        raise BadMemberError(f"is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise BadMemberError(
            f"is not JSON at line {error.lineno}, column {error.colno} ({error.msg})"
        ) from error
    except RecursionError as error:
        raise BadMemberError("has brackets that are nested too deeply") from error
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadMemberError("holds a number with too many digits") from error


def unpack_objects(
    values: Mapping[str, object], to_rows: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> Iterator[Unpacked]:
    """Yield the rows of each object by its place; a BadMemberError is the fault of one."""
    for place, value in values.items():
        if not isinstance(value, dict):
            yield Unpacked(place, fault=f"is {shown(value)}, must be an object")
            continue
        try:
            rows = to_rows(value)
        except BadMemberError as reason:
            yield Unpacked(place, fault=str(reason))
            continue
        for row in rows:
            yield Unpacked(place, {name: each for name, each in row.items() if each is not None})


def text_of(value: object) -> str | None:
    """Return a text; anything else is none."""
    return value if isinstance(value, str) else None


def dict_of(value: object) -> dict[str, Any]:
    """Return an object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list; anything else is an empty one."""
    return value if isinstance(value, list) else []
