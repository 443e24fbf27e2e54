"""Unions of intervals, joined where they touch."""

from __future__ import annotations

import re
from fractions import Fraction
from math import inf
from typing import Final, NamedTuple, TypeAlias

__all__ = ["intersection_key", "union_key"]

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
    """Return the key of a union.

    Parameters
    ----------
    bodies
        The keys of its members.

    Returns
    -------
    str
        One key for all ways to write the union of the same intervals with rational or infinite ends;
        other members are only sorted.
    """
    pieces = [_piece(body) for body in bodies]
    if None not in pieces:
        bodies = {_written(piece) for piece in _joined([piece for piece in pieces if piece])}
    return bodies.copy().pop() if len(bodies) == 1 else "U{" + ";".join(sorted(bodies)) + "}"


def intersection_key(bodies: set[str]) -> str | None:
    """Return the key of what several intervals share.

    Parameters
    ----------
    bodies
        The keys of the intervals.

    Returns
    -------
    str or None
        None where they are known to share no interval, or where that cannot be told.
    """
    pieces = [piece for piece in map(_piece, bodies) if piece]
    if len(pieces) == len(bodies):
        low = max(piece.low for piece in pieces)
        high = min(piece.high for piece in pieces)
        return _written(_Piece(low, high)) if low[0] < high[0] else None
    lower = [body for body in bodies if body.endswith(";oo)")]
    upper = [body for body in bodies if body.startswith("(-oo;")]
    if len(bodies) == 2 and len(lower) == len(upper) == 1:
        return lower[0].removesuffix("oo)") + upper[0].removeprefix("(-oo;")
    return None


def _piece(body: str) -> _Piece | None:
    if _RATIONAL.fullmatch(body):
        point = Fraction(body)
        return _Piece((point, 0), (point, 0))
    found = _INTERVAL.fullmatch(body)
    if found is None:
        return None
    low, high = _end(found["low"]), _end(found["high"])
    if low is None or high is None or low >= high:
        return None
    return _Piece((low, int(found["opening"] == "(")), (high, -int(found["closing"] == ")")))


def _end(text: str) -> End | None:
    if text in {"oo", "-oo"}:
        return inf if text == "oo" else -inf
    return Fraction(text) if _RATIONAL.fullmatch(text) else None


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    joined: list[_Piece] = []
    for piece in sorted(pieces):
        last = joined[-1] if joined else None
        # They touch unless a point is missing between them.
        if last and (
            piece.low[0] < last.high[0]
            or (piece.low[0] == last.high[0] and not (piece.low[1] and last.high[1]))
        ):
            joined[-1] = _Piece(last.low, max(last.high, piece.high))
        else:
            joined.append(piece)
    return joined


def _written(piece: _Piece) -> str:
    low, high = (_text(end) for end, _ in piece)
    if piece.low == piece.high:
        return low
    return f"{'(' if piece.low[1] else '['}{low};{high}{')' if piece.high[1] else ']'}"


def _text(end: End) -> str:
    if isinstance(end, float):
        return "oo" if end > 0 else "-oo"
    return str(end)
