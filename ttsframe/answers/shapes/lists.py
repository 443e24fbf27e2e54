"""Lists: several answers, assignments to names, conditions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.shapes.intervals import intersection_key, union_key
from ttsframe.answers.shapes.marks import INEQUALITIES, JOINERS, RELATIONS, Mark, split_at
from ttsframe.answers.shapes.names import COORDINATES, named_value
from ttsframe.answers.shapes.relations import read_unequal
from ttsframe.answers.shapes.scalars import MOST_PARTS, Reading, ScalarReader
from ttsframe.answers.shapes.sets import unordered
from ttsframe.answers.shapes.words import read_words
from ttsframe.answers.values.fingerprint import Uncertified

__all__ = ["read_list"]

_UNIT: Final = re.compile(r"(?<![\\A-Za-z])([A-Za-z]{2,})\s*\}?$")
_NAMED_SET: Final = re.compile(r"N\{(.+?)in(.+)\}")


def read_list(reader: ScalarReader, text: str, marks: list[Mark], depth: int) -> Reading | None:
    """Read several answers."""
    signs = {mark.sign for mark in marks}
    joiners = signs & JOINERS
    if not signs & (RELATIONS | {"~"}):
        words = read_words(text, reader.policy, as_text=False)
        if words is not None:
            return reader.words(text, words)
    separators = frozenset({";", "and", "or"} if ";" in joiners else joiners)
    parts = split_at(text, marks, separators)
    if len(parts) > MOST_PARTS or not parts:
        return None
    if len(parts) == 1:
        return reader.read_part(parts[0], depth + 1) if parts[0] != text else None
    if len({unit[1] for unit in map(_UNIT.search, parts) if unit}) > 1 and any(
        map(_has_digit, parts)
    ):
        # 2 hours and 30 minutes are one quantity, not two answers.
        return None
    reader.note("list", text)
    named = [named_value(part) for part in parts]
    names = {pair[0] for pair in named if pair is not None}
    if named[0] is not None and ("or" not in joiners or len(names) > 1):
        if "or" in joiners and None not in named and 1 < len(names) < len(named):
            # x = 1, y = 2 or x = 3, y = 4: the word separates the solutions.
            readings = reader.read_each(split_at(text, marks, frozenset({"or", ";"})), depth)
            return None if readings is None else unordered(readings, is_set=True)
        return _read_assignments(reader, parts, named, depth, is_choice="or" in joiners)
    if signs & INEQUALITIES:
        return _read_conditions(reader, parts, signs, depth)
    if "!=" in signs:
        return _read_exceptions(reader, parts, depth)
    readings = reader.read_each(parts, depth)
    if readings is None:
        return None
    if reader.policy.list_order == "kept" and "or" not in joiners:
        return "<" + ";".join(body for body, _ in readings) + ">", "structure"
    spread = [not part.startswith("\\{") for part in parts]
    if ";" in joiners and any(
        is_spread and body[0] == "{" and "," in part
        for part, is_spread, (body, _) in zip(parts, spread, readings, strict=True)
    ):
        # Semicolons separate lists, which are not joined.
        return "L{" + "|".join(sorted(body for body, _ in readings)) + "}", "structure"
    return unordered(readings, is_set="or" in joiners, spread=spread)


def _read_conditions(
    reader: ScalarReader, parts: list[str], signs: set[str], depth: int
) -> Reading | None:
    """Read several inequalities: one set for one variable, else a set for each name."""
    policy = replace(reader.policy, inequality="kept")
    readings = reader.with_policy(policy).read_each(parts, depth)
    if readings is None:
        return None
    matches = [_NAMED_SET.fullmatch(body) for body, _ in readings]
    names = {match[1] if match else None for match in matches}
    if len(names) != 1 or None in names:
        return "&{" + ";".join(sorted({body for body, _ in readings})) + "}", "structure"
    bodies = {match[2] for match in matches if match}
    body = (None if "or" in signs else intersection_key(bodies)) or union_key(bodies)
    if reader.policy.inequality == "kept":
        body = f"N{{{names.pop()}in{body}}}"
    return body, "structure"


def _read_exceptions(reader: ScalarReader, parts: list[str], depth: int) -> Reading | None:
    """Read excluded values, as in x != 1, 2 or x != 1, x != 2."""
    name = ""
    points: list[str] = []
    for part in parts:
        left, sign, right = part.replace("!=", "\\neq").partition("\\neq")
        if sign and (not name or left.strip() == name):
            name = left.strip()
            points.append(right.strip())
        elif sign or not name:
            return None
        else:
            points.append(part)
    try:
        return read_unequal(reader, [name, ",".join(points)], depth)
    except (Uncertified, Unreadable):
        return None


def _read_assignments(
    reader: ScalarReader,
    parts: list[str],
    named: list[tuple[str, str] | None],
    depth: int,
    *,
    is_choice: bool,
) -> Reading | None:
    """Read `x = 1, 2` as values of one name, `x = 1, y = 2` as values of several."""
    pairs: list[tuple[str, str]] = []
    for part, pair in zip(parts, named, strict=True):
        if pair is not None:
            pairs.append(pair)
        elif "=" in part or not pairs or any(char in part for char in "<>"):
            pairs.clear()
            break
        else:
            pairs.append((pairs[-1][0], part))
    if not pairs:
        readings = reader.read_each(parts, depth)
        return None if readings is None else unordered(readings, is_set=False)
    names = [name for name, _ in pairs]
    if len(set(names)) == 1:
        readings = reader.read_each([f"{name}={value}" for name, value in pairs], depth)
        spread = [True] * len(pairs)
        return None if readings is None else unordered(readings, is_set=True, spread=spread)
    if len(set(names)) < len(names):
        return None
    values = reader.read_each([value for _, value in pairs], depth)
    if values is None:
        return None
    ordered = sorted(zip(names, (body for body, _ in values), strict=True))
    if reader.policy.assignment == "dropped":
        return unordered(values, is_set=False)
    if is_choice:
        return "O{" + ";".join(f"{name}={body}" for name, body in ordered) + "}", "structure"
    if reader.policy.assignment == "value" and tuple(name for name, _ in ordered) in COORDINATES:
        return "(" + ";".join(body for _, body in ordered) + ")", "structure"
    return "N{" + ";".join(f"{name}={body}" for name, body in ordered) + "}", "structure"


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
