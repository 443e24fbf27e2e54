"""Ratios and times of day: what colons separate."""

from __future__ import annotations

import re
from typing import Final

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.shapes.marks import Mark, split_at
from ttsframe.answers.shapes.scalars import Reading, ScalarReader
from ttsframe.answers.values.fingerprint import Lost, scalar_key

__all__ = ["read_ratio", "read_time"]

_TIME: Final = re.compile(
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9]))?(?::(?P<second>[0-5][0-9]))?\s*"
    r"(?:\\text\s*\{\s*)?(?P<half>[aApP]\.?\s?[mM]\.?)?\s*\}?"
)


def read_ratio(reader: ScalarReader, text: str, marks: list[Mark]) -> Reading | None:
    """Read a time of day or a ratio, which is the same for every common factor."""
    time = read_time(reader, text)
    if time is not None:
        return time
    parts = split_at(text, marks, frozenset({":"}))
    if len(parts) != sum(mark.sign == ":" for mark in marks) + 1 or len(parts) > 8:
        return None
    reader.see("ratio", text)
    try:
        nodes = [parse(reader.spelled(part)) for part in parts]
        first = nodes[0]
        bodies = [scalar_key(("/", node, first), reader.policy)[0] for node in nodes[1:]]
    except (Lost, Unreadable):
        return None
    return "R" + ":".join(bodies), "structure"


def read_time(reader: ScalarReader, text: str) -> Reading | None:
    """Read a time of day, or return None."""
    if not text[0].isdigit():
        return None
    found = _TIME.fullmatch(text)
    if found is None or (found["minute"] is None and found["half"] is None):
        return None
    hour = int(found["hour"])
    half = (found["half"] or "").casefold().replace(".", "").replace(" ", "")
    if hour > (12 if half else 24):
        return None
    reader.see("time", text)
    second = f":{found['second']}" if found["second"] else ""
    return f"T{hour}:{found['minute'] or '00'}{second}{half}", "structure"
