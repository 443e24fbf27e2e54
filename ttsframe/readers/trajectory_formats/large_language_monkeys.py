"""large-language-monkeys: a folder of YAML files, one per problem with its samples.

The name of a file is the id of its problem. The grades are `is_corrects`, or `is_correct` as the documentation of
the tool says; without an evaluation there are none. `gt_answer` is worked out: it is the `solution`, and its
final answer is `gold`. Problems of programming have no answer.

Reading YAML needs PyYAML (`ttsframe[yaml]`). Only texts, flags and flat lists of them are made of it, and
references are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import polars as pl

from ttsframe.errors import SourceError
from ttsframe.readers.engine.sniff import DataFile, Unpacked, head_of, open_binary
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    Unpacking,
    add_problem_id,
    cast_columns,
    explode_attempts,
    split_target,
)

_DTYPES: dict[str, pl.DataType] = {
    "id": pl.String(),
    "question": pl.String(),
    "prompt": pl.String(),
    "gt_answer": pl.String(),
    "theorem_name": pl.String(),
    "samples": pl.List(pl.String()),
    "is_corrects": pl.List(pl.Boolean()),
}
_TEXTS: Final = ("question", "prompt", "gt_answer", "theorem_name")
_GRADES: Final = ("is_corrects", "is_correct")
_MOST_BYTES: Final = 1 << 28
_DEEPEST: Final = 20
_KINDS: Final[Mapping[str, str]] = {
    "MappingStartEvent": "start",
    "SequenceStartEvent": "start",
    "MappingEndEvent": "end",
    "SequenceEndEvent": "end",
    "ScalarEvent": "text",
    "AliasEvent": "alias",
}
_WORDS: Final[Mapping[str, bool | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
}
_BEGINS: Final = re.compile(
    rb"(?:---\s*)?(?:gt_answer|is_corrects?|prompt|question|samples|theorem_name|header|id|name):"
)
_LISTS: Final = re.compile(rb"^(?:samples|is_corrects?):[ \t]*(?:\[|\r?$)", re.MULTILINE)


def _recognizes(file: DataFile) -> bool:
    # A first line with a comma may look like the header of a CSV file.
    if file.container not in {"text", "csv"}:
        return False
    head = head_of(file)
    return _BEGINS.match(head) is not None and _LISTS.search(head) is not None


def _rows(file: DataFile) -> Iterator[Unpacked]:
    try:
        row = _row(_fields(file))
    except SourceError:
        raise
    except ValueError as error:
        yield Unpacked("the document", fault=str(error))
        return
    if file.held is None or file.url is not None:
        row["id"] = Path(file.name).stem
    yield Unpacked("the document", row)


def _fields(file: DataFile) -> dict[str, Any]:
    """Return the fields that are plain values or lists of them; others, such as test cases, are None."""
    try:
        yaml = import_module("yaml")
    except ModuleNotFoundError as error:
        raise SourceError(
            f"{file.name}: YAML needs PyYAML, which is not installed. Hint: python -m pip install 'ttsframe[yaml]'."
        ) from error
    with open_binary(file) as stream:
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise SourceError(f"{file.name}: has more than {_MOST_BYTES:,} bytes, too many for YAML.")
    # The parser in C is many times as fast. Its constructor is not used: deep nesting overflows its stack.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _flat(yaml.parse(data, Loader=loader))
    except yaml.YAMLError as error:
        found = " ".join(str(error).split())[:200]
        raise ValueError(f"is not valid YAML ({found}), so it may be cut off") from error


def _flat(events: Iterable[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    key: str | None = None
    items: list[object] | None = None
    for depth, kind, event in _checked(events):
        if depth == 1 and key is None:
            if kind != "text":
                raise ValueError("is no mapping of names to values")
            key = event.value
        elif depth == 1 and key is not None:
            if kind == "start":
                items = [] if type(event).__name__ == "SequenceStartEvent" else None
            else:
                fields[key] = _value(event) if kind == "text" else items
                key = None
        elif depth == 2 and kind == "start":
            items = None
        elif depth == 2 and items is not None:
            items.append(_value(event))
    return fields


def _checked(events: Iterable[Any]) -> Iterator[tuple[int, str, Any]]:
    """Yield what one mapping consists of, with the number of lists and mappings around it."""
    depth = 0
    n_documents = 0
    for event in events:
        name = type(event).__name__
        kind = _KINDS.get(name)
        n_documents += name == "DocumentStartEvent"
        if kind is None:
            continue
        if kind == "alias":
            raise ValueError(f"refers to '*{event.anchor}', must have each value in its place")
        depth -= kind == "end"
        if n_documents > 1 or (depth == 0 and name not in {"MappingStartEvent", "MappingEndEvent"}):
            raise ValueError("is not one mapping of names to values")
        yield depth, kind, event
        depth += kind == "start"
        if depth > _DEEPEST:
            raise ValueError(f"has more than {_DEEPEST} lists within each other")


def _value(event: Any) -> object:  # noqa: ANN401 - PyYAML has no types
    """Return a text; without quotes, these words are none. Numbers stay as they are written."""
    text: str = event.value
    return _WORDS.get(text, text) if event.implicit[0] else text


def _row(fields: Mapping[str, Any]) -> dict[str, Any]:
    samples = fields.get("samples")
    if not isinstance(samples, list) or not all(isinstance(one, str) for one in samples):
        raise ValueError("'samples' must be a list of texts")
    row: dict[str, Any] = {"samples": samples}
    for name in _TEXTS:
        value = fields.get(name)
        if isinstance(value, bool | list):
            raise ValueError(f"{name!r} must be text")  # noqa: TRY004 - of the file, not of a call
        if value is not None:
            row[name] = value
    for name in _GRADES:
        grades = fields.get(name)
        if grades is None:
            continue
        if not isinstance(grades, list) or not all(isinstance(one, bool) for one in grades):
            raise ValueError(f"{name!r} must be a list of true and false")
        row["is_corrects"] = grades
    return row


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = cast_columns(source, _DTYPES)
    text = next((name for name in ("question", "prompt") if name in typed.schema), "id")
    table = add_problem_id(typed, ("problem_id", "id"), text)
    if "gt_answer" in table.schema:
        split = split_target(pl.col("gt_answer"))
        table = table._replace(frame=table.frame.with_columns(**split).drop("gt_answer"))
    lists = [name for name in ("samples", "is_corrects") if name in table.schema]
    attempts = explode_attempts(table, lists).drop("id", strict=False)
    return attempts.rename(
        {"samples": "completion", "is_corrects": "is_correct", text: "problem"}, strict=False
    )


FORMAT = FileFormat(
    summary="large-language-monkeys: a folder of YAML files, one per problem with its samples",
    requires=(("samples",),),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    piece=r"[^/\\]+\.ya?ml",
    unit="problem",
    columns={
        "question": "problem",
        "samples": "completion",
        "gt_answer": "gold",
        "is_corrects": "is_correct",
        "is_correct": "is_correct",
    },
    is_exchangeable=True,
    ignores=("test_cases", "timeout"),
    unpacking=Unpacking(
        _recognizes, _rows, "a YAML document with 'samples' (large-language-monkeys)"
    ),
)
