"""Lists: several answers, assignments to names, conditions."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.shapes.intervals import intersection_key, is_union, union_key
from ttsframe.answers.shapes.marks import INEQUALITIES, JOINERS, RELATIONS, Mark, split_at
from ttsframe.answers.shapes.names import (
    COORDINATES,
    assignments,
    is_function,
    is_name,
    is_tuple_of_names,
    is_variable,
    left_side,
    without_spaces,
)
from ttsframe.answers.shapes.relations import read_unequal
from ttsframe.answers.shapes.scalars import MOST_PARTS, Reading, ScalarReader
from ttsframe.answers.shapes.sets import unordered
from ttsframe.answers.shapes.words import read_words
from ttsframe.answers.values.fingerprint import Uncertified

__all__ = ["read_list"]

_CAPITAL: Final = re.compile(r"\(?[A-Z]\)?")
"""A choice, of which several may be right: A and C."""
_UNIT: Final = re.compile(r"(?<![\\A-Za-z])([A-Za-z]{2,})\s*\}?$")
_RELATION_SIGNS: Final = ("=", "<", ">", "\\leq", "\\geq", "\\neq", "\\in", "\\approx")
_CONDITIONS: Final = _RELATION_SIGNS[1:]
_EQUATIONS: Final = ("E", "&", "N")
"""Beginnings of the keys of equations, and of values that have their name."""
_NAMED_SET: Final = re.compile(r"N\{(.+?)in(.+)\}")


def read_list(reader: ScalarReader, text: str, marks: list[Mark], depth: int) -> Reading | None:
    """Read several answers."""
    signs = {mark.sign for mark in marks}
    joiners = signs & JOINERS
    separators = frozenset({";", "and", "or"} if ";" in joiners else joiners)
    parts = split_at(text, marks, separators)
    if not signs & (RELATIONS | {"~"}) and not all(map(_CAPITAL.fullmatch, parts)):
        words = read_words(text, reader.policy, as_text=False)
        if words is not None:
            return reader.words(text, words)
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
    pairs = _pairs_of(parts)
    if pairs is not None:
        reading = _read_assignments(reader, pairs, depth, is_choice="or" in joiners)
        if reading is not None:
            return reading
        groups = _groups_of(parts)
        readings = None if groups is None else reader.read_each(groups, depth)
        return None if readings is None else unordered(readings, is_set=True)
    if not signs & RELATIONS and joiners >= {"and", "or"}:
        # A and B or C has two readings
        return None
    if signs & INEQUALITIES:
        return _read_conditions(reader, parts, signs, depth)
    if "!=" in signs:
        return _read_exceptions(reader, parts, depth)
    if set(parts) == {"T", "F"}:
        # true and false, one for each statement
        return "<" + ";".join(parts) + ">", "structure"
    readings = _read_parts(reader, parts, depth)
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
    readings = _read_parts(reader.with_policy(policy), parts, depth)
    if readings is None:
        return None
    matches = [_NAMED_SET.fullmatch(body) for body, _ in readings]
    names = {match[1] if match else None for match in matches}
    if len(names) != 1 or None in names:
        sign = "O" if "or" in signs else "&"
        return sign + "{" + ";".join(sorted({body for body, _ in readings})) + "}", "structure"
    bodies = {match[2] for match in matches if match}
    body = None if "or" in signs else intersection_key(bodies)
    if body is None:
        # Beside intervals, x < 1, x > 3 can only mean both; what holds beside a union is not known.
        is_known = "or" in signs or not any(map(is_union, bodies))
        body = union_key(bodies) if is_known else "&{" + ";".join(sorted(bodies)) + "}"
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


def _pairs_of(parts: list[str]) -> list[tuple[str, str]] | None:
    """Return names and values of a list of assignments; a value without a name belongs to the last one."""
    pairs: list[tuple[str, str]] = []
    for part in parts:
        found = assignments(part)
        if found is not None:
            pairs.extend(found)
        elif not pairs or any(sign in part for sign in _RELATION_SIGNS):
            return None
        else:
            pairs.append((pairs[-1][0], part))
    return pairs


def _groups_of(parts: list[str]) -> list[str] | None:
    """Join assignments to one solution each, as in x = 1, y = 2 or x = 3, y = 4."""
    groups: list[list[str]] = []
    names: list[set[str]] = []
    for part in parts:
        found = {name for name, _ in assignments(part) or ()}
        if not names or names[-1] & found:
            groups.append([])
            names.append(set())
        groups[-1].append(part)
        names[-1] |= found
    is_regular = len(groups) > 1 and len(names[0]) > 1 and all(found == names[0] for found in names)
    return [", ".join(group) for group in groups] if is_regular else None


def _read_parts(reader: ScalarReader, parts: list[str], depth: int) -> list[Reading] | None:
    """Read parts of a list; the left side of an equation that states a value belongs to it."""
    readings = reader.read_each(parts, depth)
    if readings is None or reader.policy.assignment == "dropped":
        return readings
    lefts = [left_side(part) for part in parts]
    equations = [left for left in lefts if left is not None]
    if not equations or (len(set(equations)) == 1 and is_tuple_of_names(equations[0])):
        return readings
    if (
        len(equations) == 1
        and is_function(equations[0])
        and all(
            left is not None or any(sign in part for sign in _CONDITIONS)
            for part, left in zip(parts, lefts, strict=True)
        )
    ):
        # f(x) = x + 1, x > 0: the rest says where the one value holds
        return readings
    return [
        reading if left is None or reading[0].startswith(_EQUATIONS) else _with_name(left, reading)
        for left, reading in zip(lefts, readings, strict=True)
    ]


def _with_name(name: str, reading: Reading) -> Reading:
    return f"N{{{_name_key(name)}={reading[0]}}}", "structure"


def _name_key(name: str) -> str:
    """Return one spelling of a left side: its text if it is a name, else a digest of its tree."""
    if is_name(name):
        return without_spaces(name)
    try:
        tree = parse(name)
    except Unreadable:
        return without_spaces(name)
    return "#" + blake2b(repr(tree).encode(), digest_size=8).hexdigest()


def _read_assignments(
    reader: ScalarReader, pairs: list[tuple[str, str]], depth: int, *, is_choice: bool
) -> Reading | None:
    """Read `x = 1, 2` as values of one name, `x = 1, y = 2` as values of several."""
    names = [name for name, _ in pairs]
    if len(set(names)) == 1:
        readings = reader.read_each([f"{name}={value}" for name, value in pairs], depth)
        if readings is None:
            return None
        reading = unordered(readings, is_set=True, spread=[True] * len(pairs))
        if is_variable(names[0]) or reader.policy.assignment != "value" or reading[0][0] != "{":
            return reading
        return _with_name(names[0], reading)
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
