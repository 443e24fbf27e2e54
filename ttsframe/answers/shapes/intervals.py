"""Inequalities solved for their one symbol, and unions and intersections of intervals."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple, TypeAlias

from flint import arb

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tree import (
    MINUS_ONE,
    ONE,
    Node,
    children,
    infinity_sign,
    replace_nodes,
    symbols_of,
)
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values.fingerprint import scalar_key, scale_free_key, sign_of, value_of

__all__ = ["intersection_key", "is_union", "punctured_line", "solution_of", "union_key"]

# ---- inequalities -------------------------------------------------------------------------------

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _End(NamedTuple):
    """One end of an interval, and whether it is excluded."""

    node: Node
    is_open: bool


_Ends: TypeAlias = tuple[_End | None, _End | None]
"""Lower and upper end; None where there is none."""

_NAMES_OF_COMPLEX: Final = frozenset({"z", "w", "\\omega", "\\zeta"})
"""An absolute value of these may be a distance in the plane."""
_ABSOLUTE: Final[Node] = ("s", "|")
"""Stands for the absolute value in an inequality."""


def solution_of(
    parts: list[str], operators: list[str], policy: AnswerPolicy
) -> tuple[str, str] | str | None:
    """Return symbol and body of a linear chain's solutions, the key of another chain, or None."""
    if operators[0][0] == ">":
        parts, operators = parts[::-1], [_FLIPPED[operator] for operator in reversed(operators)]
    if any(operator[0] == ">" for operator in operators):
        return None
    nodes = [parse(part) for part in parts]
    symbols = frozenset[str]().union(*(symbols_of(node) for node in nodes))
    if not symbols:
        return None
    if len(symbols) == 1 and len(nodes) <= 3:
        name = next(iter(symbols))
        ends = _ends_of(nodes, operators, policy)
        if ends is not None:
            return name, _interval_body(ends, policy)
        body = _absolute_body(nodes, operators, policy)
        if body is not None and name not in _NAMES_OF_COMPLEX:
            return name, body
    if len(nodes) > 3 or _has_infinity(nodes):
        return None
    keys = [
        f"Q{operator}" + scale_free_key(low, high, policy, signed=True)
        for operator, low, high in zip(operators, nodes, nodes[1:], strict=False)
    ]
    return keys[0] if len(keys) == 1 else "&{" + ";".join(sorted(keys)) + "}"


def _ends_of(nodes: list[Node], operators: list[str], policy: AnswerPolicy) -> _Ends | None:
    """Solve a chain that is linear in its symbol."""
    if len(nodes) == 2:
        linear = None if _has_infinity(nodes) else _linear(_difference(*nodes))
        if linear is None:
            return None
        # slope x + rest < 0
        return _solved((None, _End(("q", 0, 1), operators[0] == "<")), linear, policy)
    if symbols_of(nodes[0]) or symbols_of(nodes[2]):
        return None
    linear = _linear(nodes[1])
    if linear is None or infinity_sign(nodes[0]) > 0 or infinity_sign(nodes[2]) < 0:
        return None
    low, high = (
        None if infinity_sign(node) else _End(node, operator == "<")
        for node, operator in ((nodes[0], operators[0]), (nodes[2], operators[1]))
    )
    return _solved((low, high), linear, policy)


def _solved(ends: _Ends, linear: tuple[Node, Node], policy: AnswerPolicy) -> _Ends | None:
    """Return the ends of x, given those of slope x + rest."""
    slope, rest = linear
    direction = sign_of(slope, policy)
    if not direction:
        return None
    low, high = (
        None if end is None else _End(("/", _difference(end.node, rest), slope), end.is_open)
        for end in ends
    )
    return (low, high) if direction > 0 else (high, low)


def _absolute_body(nodes: list[Node], operators: list[str], policy: AnswerPolicy) -> str | None:
    """Return the body of the solutions of an inequality of one absolute value, such as |x - 2| < 3."""
    absolutes = {part for node in nodes for part in _absolutes(node)}
    if len(absolutes) != 1:
        return None
    absolute = absolutes.pop()
    hidden = [
        replace_nodes(node, lambda part: _ABSOLUTE if part == absolute else None) for node in nodes
    ]
    linear = _linear(absolute[2][0])
    if linear is None or any(symbols_of(node) - {_ABSOLUTE[1]} for node in hidden):
        return None
    ends = _ends_of(hidden, operators, policy)
    if ends is None:
        return None
    low, high = ends
    if high is not None and sign_of(high.node, policy) <= 0:
        return None
    low_sign = -1 if low is None else sign_of(low.node, policy)
    pieces: list[_Ends]
    if low is None or low_sign < 0 or (low_sign == 0 and not low.is_open):
        if high is None:
            return None
        pieces = [(_negative(high), high)]
    else:
        pieces = [(None if high is None else _negative(high), _negative(low)), (low, high)]
    solved = [_solved(piece, linear, policy) for piece in pieces]
    bodies = {_interval_body(ends, policy) for ends in solved if ends is not None}
    return union_key(bodies) if len(bodies) == len(pieces) else None


def _absolutes(node: Node) -> list[Node]:
    """Return the outermost absolute values that hold a symbol."""
    if node[0] == "f" and node[1] == "abs" and symbols_of(node):
        return [node]
    return [part for child in children(node) for part in _absolutes(child)]


def _interval_body(ends: _Ends, policy: AnswerPolicy) -> str:
    low, high = ends
    left = (
        "(-oo" if low is None else ("(" if low.is_open else "[") + scalar_key(low.node, policy)[0]
    )
    right = (
        "oo)" if high is None else scalar_key(high.node, policy)[0] + (")" if high.is_open else "]")
    )
    return f"{left};{right}"


def _negative(end: _End) -> _End:
    return _End(("*", (MINUS_ONE, end.node)), end.is_open)


def _difference(left: Node, right: Node) -> Node:
    return ("+", (left, ("*", (MINUS_ONE, right))))


def punctured_line(nodes: list[Node], policy: AnswerPolicy) -> str | None:
    """Return the key of the real line without some points, or None where a point is not real."""
    points: dict[str, float] = {}
    for node in nodes:
        if symbols_of(node):
            return None
        value = value_of(node, policy)
        if not hasattr(value, "q") and not isinstance(value, arb):
            return None
        points[scalar_key(node, policy)[0]] = float(arb(value))
    ends = ["-oo", *sorted(points, key=lambda key: points[key]), "oo"]
    if len(set(points.values())) != len(points):
        return None
    return "U{" + ";".join(sorted(f"({low};{high})" for low, high in pairwise(ends))) + "}"


def _has_infinity(nodes: list[Node]) -> bool:
    return any(infinity_sign(node) for node in nodes)


def _linear(node: Node) -> tuple[Node, Node] | None:
    """Write a tree in one symbol as (slope, rest), or return None."""
    zero: Node = ("q", 0, 1)
    if not symbols_of(node):
        return zero, node
    op = node[0]
    if op == "s":
        return ONE, zero
    if op == "+":
        parts = [_linear(part) for part in node[1]]
        if None in parts:
            return None
        slopes = tuple(part[0] for part in parts if part)
        rests = tuple(part[1] for part in parts if part)
        return ("+", slopes), ("+", rests)
    if op == "*":
        with_symbol = [part for part in node[1] if symbols_of(part)]
        if len(with_symbol) != 1:
            return None
        inner = _linear(with_symbol[0])
        if inner is None:
            return None
        others = tuple(part for part in node[1] if part is not with_symbol[0])
        return ("*", (*others, inner[0])), ("*", (*others, inner[1]))
    if op == "/" and not symbols_of(node[2]):
        inner = _linear(node[1])
        return None if inner is None else (("/", inner[0], node[2]), ("/", inner[1], node[2]))
    return None


# ---- unions and intersections -------------------------------------------------------------------

End: TypeAlias = Fraction | float

_INTERVAL: Final = re.compile(
    r"(?P<opening>[(\[])(?P<low>[^;()\[\]]+);(?P<high>[^;()\[\]]+)(?P<closing>[)\]])"
)
MOST_PIECES: Final = 64
_RATIONAL: Final = re.compile(r"-?[0-9]+(?:/[0-9]+)?")


class _Piece(NamedTuple):
    """An interval; a closed low end sorts before an open one, a closed high end after."""

    low: tuple[End, int]
    high: tuple[End, int]


def union_key(bodies: set[str]) -> str:
    """Return the key of a union; intervals with rational or infinite ends are joined where they touch."""
    pieces = [_parse_piece(body) for body in bodies]
    if None not in pieces:
        bodies = {
            _piece_key(piece) for piece in _merge_pieces([piece for piece in pieces if piece])
        }
    return bodies.copy().pop() if len(bodies) == 1 else "U{" + ";".join(sorted(bodies)) + "}"


def intersection_key(bodies: set[str]) -> str | None:
    """Return the key of the intersection of intervals and unions; None where it is empty or unknown."""
    sets = [_parse_pieces(body) for body in bodies]
    if all(sets):
        first, *rest = sets
        for pieces in rest:
            first = [met for one in first for other in pieces if (met := _meet(one, other))]
        found = {_piece_key(piece) for piece in _merge_pieces(first)}
        return union_key(found) if found else None
    lower = [body for body in bodies if body.endswith(";oo)")]
    upper = [body for body in bodies if body.startswith("(-oo;")]
    if len(bodies) == 2 and len(lower) == len(upper) == 1:
        return lower[0].removesuffix("oo)") + upper[0].removeprefix("(-oo;")
    return None


def is_union(body: str) -> bool:
    """Tell whether the body of a key is that of a union of intervals."""
    return body.startswith("U{")


def _meet(one: _Piece, other: _Piece) -> _Piece | None:
    low, high = max(one.low, other.low), min(one.high, other.high)
    return _Piece(low, high) if low[0] < high[0] else None


def _parse_pieces(body: str) -> list[_Piece]:
    """Return the intervals of a key; none if an end is not rational."""
    texts = _INTERVAL.findall(body) if is_union(body) else []
    if texts:
        texts = [f"{opening}{low};{high}{closing}" for opening, low, high, closing in texts]
        if len(";".join(texts)) + 3 != len(body) or len(texts) > MOST_PIECES:
            return []
    pieces = [_parse_piece(text) for text in texts or [body]]
    return [] if None in pieces else [piece for piece in pieces if piece]


def _parse_piece(body: str) -> _Piece | None:
    if _RATIONAL.fullmatch(body):
        point = Fraction(body)
        return _Piece((point, 0), (point, 0))
    match = _INTERVAL.fullmatch(body)
    if match is None:
        return None
    low, high = _parse_end(match["low"]), _parse_end(match["high"])
    if low is None or high is None or low >= high:
        return None
    return _Piece((low, int(match["opening"] == "(")), (high, -int(match["closing"] == ")")))


def _parse_end(text: str) -> End | None:
    if text in {"oo", "-oo"}:
        return inf if text == "oo" else -inf
    return Fraction(text) if _RATIONAL.fullmatch(text) else None


def _merge_pieces(pieces: list[_Piece]) -> list[_Piece]:
    joined: list[_Piece] = []
    for piece in sorted(pieces):
        last = joined[-1] if joined else None
        # They touch unless the point between them is missing in both.
        if last and (
            piece.low[0] < last.high[0]
            or (piece.low[0] == last.high[0] and not (piece.low[1] and last.high[1]))
        ):
            joined[-1] = _Piece(last.low, max(last.high, piece.high))
        else:
            joined.append(piece)
    return joined


def _piece_key(piece: _Piece) -> str:
    low, high = (_end_text(end) for end, _ in piece)
    if piece.low == piece.high:
        return low
    return f"{'(' if piece.low[1] else '['}{low};{high}{')' if piece.high[1] else ']'}"


def _end_text(end: End) -> str:
    if isinstance(end, float):
        return "oo" if end > 0 else "-oo"
    return str(end)
