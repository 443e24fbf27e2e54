"""Inequalities solved for their one symbol, and unions and intersections of intervals."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple, TypeAlias

from flint import arb

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tree import MINUS_ONE, ONE, Node, infinity_sign, symbols_of
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values.fingerprint import scalar_key, scale_free_key, sign_of, value_of

__all__ = ["Bound", "bounds_of", "intersection_key", "punctured_line", "union_key"]

# ---- inequalities -------------------------------------------------------------------------------

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Bound(NamedTuple):
    """One end of an interval: the body of its key, and whether the end point is excluded."""

    key: str
    is_open: bool


def bounds_of(
    parts: list[str], operators: list[str], policy: AnswerPolicy
) -> tuple[str, Bound | None, Bound | None] | str | None:
    """Return symbol, lower and upper bound of a linear chain, the key of another chain, or None."""
    if operators[0][0] == ">":
        parts, operators = parts[::-1], [_FLIPPED[operator] for operator in reversed(operators)]
    if any(operator[0] == ">" for operator in operators):
        return None
    nodes = [parse(part) for part in parts]
    symbols = frozenset[str]().union(*(symbols_of(node) for node in nodes))
    if not symbols:
        return None
    if len(nodes) == 2:
        difference: Node = ("+", (nodes[0], ("*", (MINUS_ONE, nodes[1]))))
        linear = _linear(difference) if len(symbols) == 1 and not _has_infinity(nodes) else None
        if linear is None:
            if _has_infinity(nodes):
                return None
            return f"Q{operators[0]}" + scale_free_key(nodes[0], nodes[1], policy, signed=True)
        # slope x + rest < 0
        slope, rest = linear
        direction = sign_of(slope, policy)
        if not direction:
            return None
        end: Node = ("/", ("*", (MINUS_ONE, rest)), slope)
        bound = Bound(scalar_key(end, policy)[0], is_open=operators[0] == "<")
        name = next(iter(symbols))
        return (name, None, bound) if direction > 0 else (name, bound, None)
    if len(nodes) != 3:
        return None
    middle = symbols_of(nodes[1])
    linear = _linear(nodes[1]) if len(middle) == 1 and symbols == middle else None
    if linear is None:
        if _has_infinity(nodes):
            return None
        keys = [
            f"Q{operator}" + scale_free_key(low, high, policy, signed=True)
            for operator, low, high in zip(operators, nodes, nodes[1:], strict=False)
        ]
        return "&{" + ";".join(sorted(keys)) + "}"
    slope, rest = linear
    direction = sign_of(slope, policy)
    if not direction:
        return None
    low, high = (
        Bound(_end_key(node, slope, rest, direction, policy), is_open=operator == "<")
        for node, operator in ((nodes[0], operators[0]), (nodes[2], operators[1]))
    )
    name = next(iter(middle))
    return (name, low, high) if direction > 0 else (name, high, low)


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


def _end_key(node: Node, slope: Node, rest: Node, direction: int, policy: AnswerPolicy) -> str:
    infinite = infinity_sign(node)
    if infinite:
        return "oo" if infinite * direction > 0 else "-oo"
    end: Node = ("/", ("+", (node, ("*", (MINUS_ONE, rest)))), slope)
    return scalar_key(end, policy)[0]


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
    """Return the key of the intersection of intervals; None where it is empty or unknown."""
    pieces = [piece for piece in map(_parse_piece, bodies) if piece]
    if len(pieces) == len(bodies):
        low = max(piece.low for piece in pieces)
        high = min(piece.high for piece in pieces)
        return _piece_key(_Piece(low, high)) if low[0] < high[0] else None
    lower = [body for body in bodies if body.endswith(";oo)")]
    upper = [body for body in bodies if body.startswith("(-oo;")]
    if len(bodies) == 2 and len(lower) == len(upper) == 1:
        return lower[0].removesuffix("oo)") + upper[0].removeprefix("(-oo;")
    return None


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
