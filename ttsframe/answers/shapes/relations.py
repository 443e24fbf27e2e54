"""Equations, inequalities and memberships."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.latex.tree import Node, has_symbols
from ttsframe.answers.shapes.intervals import punctured_line, solution_of
from ttsframe.answers.shapes.marks import (
    INEQUALITIES,
    RELATIONS,
    Mark,
    expand_signs,
    outer_brackets,
    split_at,
)
from ttsframe.answers.shapes.names import (
    is_function_name,
    is_name,
    is_quantity,
    is_tuple_of_names,
    is_variable,
    without_spaces,
)
from ttsframe.answers.shapes.scalars import Reading, ScalarReader
from ttsframe.answers.shapes.sets import read_alternatives
from ttsframe.answers.values.fingerprint import (
    Uncertified,
    Vanishes,
    real_number,
    scalar_key,
    scale_free_key,
)

__all__ = ["read_relation", "read_unequal"]

_TUPLE_AND_NAME: Final = re.compile(r"(?P<tuple>\([^()]*,[^()]*\))\s*(?P<name>.+)", re.DOTALL)
_DECIMAL: Final = re.compile(r"-?[0-9]+\.[0-9]+")


def read_relation(reader: ScalarReader, text: str, marks: list[Mark], depth: int) -> Reading | None:
    """Read a text with equals signs, inequality signs or a sign of membership at its top level."""
    relation = [mark for mark in marks if mark.sign in RELATIONS or mark.sign == "~"]
    near = next((mark for mark in relation if mark.sign == "~"), None)
    if near is not None:
        left, right = text[: near.start].strip(), text[near.end :].strip()
        if not left or is_name(left):
            return reader.read_part(right if not left else f"{left}={right}", depth + 1)
        # The value before the sign is exact; the value after it is rounded.
        return reader.read_part(left, depth + 1)
    operators = [mark.sign for mark in relation]
    parts = split_at(text, relation, RELATIONS)
    if len(parts) != len(operators) + 1:
        return None
    reader.note("relation", text)
    try:
        if operators == ["in"]:
            return _read_membership(reader, parts, depth)
        if operators == ["!="]:
            return read_unequal(reader, parts, depth)
        if set(operators) == {"="}:
            return _read_equation(reader, parts, depth)
        if set(operators) <= INEQUALITIES:
            return _read_inequality(reader, parts, operators)
    except (Uncertified, Unreadable):
        return None
    return None


def _read_membership(reader: ScalarReader, parts: list[str], depth: int) -> Reading | None:
    if not (is_name(parts[0]) or outer_brackets(parts[0])):
        return None
    reading = reader.read_part(parts[1], depth + 1)
    if reading is None or reader.policy.assignment != "kept":
        return reading
    return f"N{{{parts[0]}in{reading[0]}}}", "structure"


def read_unequal(reader: ScalarReader, parts: list[str], depth: int) -> Reading | None:
    """Read `x != 1, 2` as the real line without points, or as a named exclusion."""
    name, text = parts
    if not is_name(name):
        return None
    texts = [one for part in text.split(",") for one in expand_signs(part) or []]
    body = punctured_line([parse(reader.prepare(one)) for one in texts], reader.policy)
    if body is None:
        reading = reader.read_part(text, depth + 1)
        return None if reading is None else (f"N{{{name}!={reading[0]}}}", "structure")
    return (body if reader.policy.inequality == "interval" else f"N{{{name}in{body}}}"), "structure"


def _read_equation(reader: ScalarReader, parts: list[str], depth: int) -> Reading | None:
    while len(parts) > 1 and _is_rounding_of(reader, parts[-1], parts[-2]):
        parts = parts[:-1]
    if len(parts) == 1:
        return reader.read_part(parts[0], depth + 1)
    statements = _separate_statements(parts)
    if statements is not None:
        return reader.read_part(statements, depth + 1)
    left, right = parts[0], parts[-1]
    if is_name(left) or is_tuple_of_names(left):
        reading = reader.read_part(right, depth + 1)
        if reading is not None and reading[1] == "text" and right.isupper():
            # AB = CD states that two segments are equal; CD is not an answer in words.
            return None
        if reading is not None and reading[1] == "symbolic" and len(parts) > 2:
            middle = {reader.read_part(part, depth + 1) for part in parts[1:-1]}
            if middle != {reading}:
                reading = None
        if reading is not None and _names_value(reader, left, right, reading):
            if reader.policy.assignment != "kept":
                return reading
            return f"N{{{without_spaces(left)}={reading[0]}}}", reading[1]
        if reading is not None and reading[1] != "symbolic":
            return None
    elif len(parts) == 2 and is_name(right):
        reading = reader.read_part(left, depth + 1)
        if reading is not None and reading[1] in {"exact", "numeric", "structure"}:
            if reader.policy.assignment != "kept":
                return reading
            return f"N{{{without_spaces(right)}={reading[0]}}}", reading[1]
    if any("\\pm" in part or "\\mp" in part for part in parts):
        texts = expand_signs("=".join(parts))
        return None if texts is None else read_alternatives(reader, texts, depth)
    if any("\\begin" in part for part in parts):
        readings = reader.read_each(parts, depth)
        return readings[0] if readings and len(set(readings)) == 1 else None
    nodes = [reader.parsed(part) for part in parts]
    if len(nodes) > 2:
        return _read_chain(reader, nodes)
    if not has_symbols(nodes[0]) and not has_symbols(nodes[-1]):
        return _read_agreed(reader, nodes)
    body = _equation_key(reader, nodes[0], nodes[-1])
    if body is None:
        return scalar_key(nodes[0], reader.policy, reader.known)
    return body, "structure"


def _separate_statements(parts: list[str]) -> str | None:
    """Write a comma after each tuple in a(1)=(1, 2) a(2)=(3, 4), or return None for other chains."""
    middle = [_TUPLE_AND_NAME.fullmatch(part) for part in parts[1:-1]]
    if not middle or not all(match and is_name(match["name"]) for match in middle):
        return None
    return "=".join([
        parts[0],
        *(f"{match['tuple']}, {match['name']}" for match in middle if match),
        parts[-1],
    ])


def _read_chain(reader: ScalarReader, nodes: list[Node]) -> Reading | None:
    """Read a = b = c: the value if all agree, else every equation in it that is not trivial."""
    keys = {scalar_key(node, reader.policy, reader.known) for node in nodes}
    if len(keys) == 1:
        return keys.pop()
    bodies: set[str] = set()
    for left, right in pairwise(nodes):
        if not has_symbols(left) and not has_symbols(right):
            return None
        body = _equation_key(reader, left, right)
        if body is not None:
            bodies.add(body)
    return (
        bodies.pop() if len(bodies) == 1 else "&{" + ";".join(sorted(bodies)) + "}"
    ), "structure"


def _is_rounding_of(reader: ScalarReader, right: str, left: str) -> bool:
    """Tell whether a decimal only rounds the part before it, as in 1/3 = 0.333."""
    if not _DECIMAL.fullmatch(right) or _DECIMAL.fullmatch(left):
        return False
    try:
        exact = real_number(parse(reader.prepare(left)), reader.policy)
    except (Uncertified, Unreadable):
        return False
    if exact is None:
        return False
    unit = Fraction(1, 10 ** len(right.partition(".")[2]))
    return 0 < abs(Fraction(exact) - Fraction(right)) <= unit * Fraction(51, 100)


def _read_agreed(reader: ScalarReader, nodes: list[Node]) -> Reading | None:
    r"""Return the common value of both sides; \log takes the base that makes them agree."""
    policies = [reader.policy]
    if reader.policy.log_base == "unknown":
        policies += [replace(reader.policy, log_base=base) for base in ("10", "e")]
    for policy in policies:
        keys = {scalar_key(node, policy) for node in nodes}
        if len(keys) == 1:
            reader.last = nodes[-1] if policy is reader.policy else None
            return keys.pop()
    return None


def _names_value(reader: ScalarReader, left: str, right: str, reading: Reading) -> bool:
    """Tell whether an equation only names its right side, unlike the equation of a line or curve."""
    if reading[1] == "symbolic" and reader.policy.assignment != "dropped":
        # B = C states that two things are equal; f(x) = C names a value.
        return is_function_name(left) and (is_quantity(left) or not is_variable(right))
    return True


def _read_inequality(
    reader: ScalarReader, parts: list[str], operators: list[str]
) -> Reading | None:
    solution = solution_of([reader.prepare(part) for part in parts], operators, reader.policy)
    if solution is None:
        return None
    if isinstance(solution, str):
        return solution, "structure"
    name, body = solution
    return (body if reader.policy.inequality == "interval" else f"N{{{name}in{body}}}"), "structure"


def _equation_key(reader: ScalarReader, left: Node, right: Node) -> str | None:
    """Return the key of an equation up to a constant factor; None if both sides are the same."""
    try:
        return "E" + scale_free_key(left, right, reader.policy, signed=False, known=reader.known)
    except Vanishes:
        return None
