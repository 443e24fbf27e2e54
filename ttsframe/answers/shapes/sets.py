"""Sets, tuples, intervals and unions."""

from __future__ import annotations

import re
from typing import Final

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.shapes.intervals import punctured_line, union_key
from ttsframe.answers.shapes.marks import Mark, outer_brackets, split_at, top_marks
from ttsframe.answers.shapes.names import is_name
from ttsframe.answers.shapes.scalars import Reading, ScalarReader
from ttsframe.answers.values.fingerprint import Uncertified

__all__ = ["EMPTY", "read_alternatives", "read_bracketed", "read_union", "unordered"]

EMPTY: Final = "{}"
"""Body of the key of the empty set."""


def read_bracketed(
    reader: ScalarReader, wrapped: tuple[str, str, str], depth: int
) -> Reading | None:
    """Read a text in one pair of brackets: a set, tuple, interval, or a text in parentheses."""
    opening, inside, closing = wrapped
    marks = top_marks(inside)
    if marks is None:
        return None
    if opening == "\\{" or (opening == "{" and any(mark.sign == "," for mark in marks)):
        return _read_set(reader, inside, marks, depth)
    separators = {mark.sign for mark in marks} & {",", ";"}
    if not separators:
        if opening == "[" and closing == "]" and "\\begin" not in inside:
            reading = reader.read_part(inside, depth + 1)
            return None if reading is None else (f"[{reading[0]}]", "structure")
        if opening == "\\langle" or (opening in "([" and opening + closing not in {"()", "[]"}):
            return None
        return reader.read_part(inside, depth + 1) if inside else None
    if any(mark.sign == "=" for mark in marks):
        return reader.read_part(inside, depth + 1)
    separator = ";" if ";" in separators else ","
    parts = split_at(inside, marks, frozenset({separator}))
    if len(parts) != sum(mark.sign == separator for mark in marks) + 1:
        return None
    reader.note("brackets", opening + inside + closing)
    readings = reader.read_each(parts, depth)
    if readings is None:
        return None
    if opening == "\\langle":
        opening, closing = "(", ")"
    return opening + ";".join(body for body, _ in readings) + closing, "structure"


def _read_set(reader: ScalarReader, inside: str, marks: list[Mark], depth: int) -> Reading | None:
    if not inside:
        return EMPTY, "structure"
    builder = re.split(r"\\mid(?![A-Za-z])|(?<!\\)\||(?<![A-Z0-9]):", inside, maxsplit=1)
    if len(builder) == 2 and is_name(builder[0].strip().split("\\in")[0].strip()):
        reader.note("set by condition", inside)
        return reader.read_part(builder[1].strip(), depth + 1)
    if any(mark.sign == "=" for mark in marks):
        return reader.read_part(inside, depth + 1)
    parts = split_at(inside, marks, frozenset({",", ";"}))
    reader.note("set", inside)
    readings = reader.read_each(parts, depth)
    if readings is None:
        return None
    # {1} is 1 as an answer, but not as an element of {{1}, {2}}
    readings = [
        (f"{{{body}}}", kind) if part.startswith("\\{") and body[0] != "{" else (body, kind)
        for part, (body, kind) in zip(parts, readings, strict=True)
    ]
    if len(readings) == 1 and readings[0][0][0] == "{":
        return f"{{{readings[0][0]}}}", "structure"
    return unordered(readings, is_set=True)


def read_alternatives(reader: ScalarReader, texts: list[str], depth: int) -> Reading | None:
    """Read texts each of which is an answer, such as both signs of a plus-minus."""
    readings = reader.read_each(texts, depth)
    return None if readings is None else unordered(readings, is_set=True)


def unordered(
    readings: list[Reading], *, is_set: bool, spread: list[bool] | None = None
) -> Reading:
    """Join readings without order; the elements of `spread` sets are joined, not the sets."""
    bodies: list[str] = []
    for index, (body, _) in enumerate(readings):
        if spread is not None and spread[index] and body[0] == "{" and body != EMPTY:
            bodies.extend(_split_set_key(body))
        else:
            bodies.append(body)
    bodies = sorted(set(bodies) if is_set else bodies)
    if len(bodies) == 1:
        return bodies[0], readings[0][1] if len(readings) == 1 or is_set else "structure"
    return "{" + ";".join(bodies) + "}", "structure"


def read_union(
    reader: ScalarReader, text: str, marks: list[Mark], signs: set[str], depth: int
) -> Reading | None:
    """Read a union of sets, or the real line without some points."""
    if "cap" in signs or ("minus" in signs and "cup" in signs):
        return None
    parts = split_at(text, marks, frozenset({"cup", "minus", ","}))
    reader.note("union", text)
    if "minus" in signs:
        if len(parts) != 2:
            return None
        whole = reader.read_part(parts[0], depth + 1)
        points = outer_brackets(parts[1])
        if whole is None or points is None or points[0] != "\\{" or whole[0] != "(-oo;oo)":
            return None
        try:
            nodes = [parse(reader.prepare(point)) for point in points[1].split(",")]
            body = punctured_line(nodes, reader.policy)
        except (Uncertified, Unreadable):
            return None
        return None if body is None else (body, "structure")
    readings = reader.read_each(parts, depth)
    if readings is None:
        return None
    bodies = {body for body, _ in readings}
    if all(body[0] == "{" or kind != "structure" for body, kind in readings):
        return unordered(readings, is_set=True, spread=[True] * len(readings))
    return union_key(bodies), "structure"


def _split_set_key(body: str) -> list[str]:
    """Return the keys of the elements of a set."""
    parts: list[str] = []
    depth = start = 0
    inside = body[1:-1]
    for index, char in enumerate(inside):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == ";" and not depth:
            parts.append(inside[start:index])
            start = index + 1
    return [*parts, inside[start:]]
