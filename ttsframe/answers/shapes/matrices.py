"""Matrices and vectors, and their sums with scalar factors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.latex.tree import MINUS_ONE, Node
from ttsframe.answers.shapes.marks import outer_brackets

__all__ = ["read_matrix"]

Rows: TypeAlias = list[list[Node]]

MOST_CELLS: Final = 64
DEEPEST: Final = 4

_ENVIRONMENT: Final = re.compile(
    r"\\begin\s*\{(?P<name>[pbB]?matrix|smallmatrix|array)\}\s*(?:\{[lcr| ]*\})?(?P<cells>.*?)"
    r"\\end\s*\{(?P=name)\}",
    re.DOTALL,
)
_TRANSPOSED: Final = re.compile(r"\^\s*(?:\{\s*(?:T|\\top)\s*\}|T(?![A-Za-z])|\\top(?![A-Za-z]))")
_DECORATION: Final = re.compile(r"\\hline|\[\s*-?[0-9.]+\s*(?:pt|em|ex|mm)\s*\]")
_STEP: Final = re.compile(
    r"\\(?:begin|end)(?:\s*\{[A-Za-z*]+\}|[A-Za-z]*)|\\[^A-Za-z]|[()\[\]{}+-]", re.DOTALL
)
_OPENING: Final = frozenset({"(", "[", "{", "\\{"})
_CLOSING: Final = frozenset({")", "]", "}", "\\}"})


def read_matrix(text: str, parse: Callable[[str], Node]) -> Rows | None:
    """Return the cells of a matrix or of a sum of matrices; None for products and determinants."""
    try:
        return _read_sum(text, parse, 0)
    except Unreadable:
        return None


def _read_sum(text: str, parse: Callable[[str], Node], depth: int) -> Rows | None:
    terms = _split_terms(text)
    if depth > DEEPEST or not terms:
        return None
    total: Rows | None = None
    for sign, term in terms:
        rows = _read_term(term, parse, depth)
        if rows is None:
            return None
        if sign == "-":
            rows = _scale(rows, MINUS_ONE)
        if total is None:
            total = rows
        elif [len(row) for row in total] == [len(row) for row in rows]:
            total = [
                [("+", pair) for pair in zip(left, right, strict=True)]
                for left, right in zip(total, rows, strict=True)
            ]
        else:
            return None
    return total


def _split_terms(text: str) -> list[tuple[str, str]]:
    """Split a text at the signs outside all brackets."""
    terms: list[tuple[str, str]] = []
    depth = start = 0
    sign = "+"
    for match in _STEP.finditer(text):
        step = match[0]
        if step in _OPENING or step.startswith("\\begin"):
            depth += 1
        elif step in _CLOSING or step.startswith("\\end"):
            depth -= 1
        elif step in {"+", "-"} and not depth:
            before = text[start : match.start()].strip()
            if before:
                terms.append((sign, before))
            elif terms or sign != "+":
                return []
            sign, start = step, match.end()
    terms.append((sign, text[start:].strip()))
    return terms


def _read_term(text: str, parse: Callable[[str], Node], depth: int) -> Rows | None:
    """Read the factors around one matrix, or around a bracketed sum of matrices."""
    begin = text.find("\\begin")
    if begin < 0:
        return None
    opening = _open_bracket_at(text, begin)
    cells = inside = ""
    if opening is None:
        match = _ENVIRONMENT.match(text, begin)
        if match is None:
            return None
        head, tail, cells = text[:begin], text[match.end() :], match["cells"]
    else:
        closing = _end_of_bracket(text, opening)
        wrapped = outer_brackets(text[opening:closing])
        if wrapped is None or wrapped[0] + wrapped[2] not in {"()", "[]"}:
            return None
        head, tail, inside = text[:opening], text[closing:], wrapped[1]
    tail = tail.strip()
    transposed = _TRANSPOSED.match(tail)
    if transposed:
        tail = tail[transposed.end() :].strip()
    head = head.strip().removesuffix("\\cdot").removesuffix("*").strip()
    if tail.startswith(("^", "_", "!", "'")) or "|" in head + tail or "\\begin" in tail:
        return None
    # most texts that are no matrix have words or another matrix beside the first one
    factors = [parse(factor) for factor in (head, tail) if factor]
    rows = _read_cells(cells, parse) if opening is None else _read_sum(inside, parse, depth + 1)
    if rows is None:
        return None
    if transposed:
        rows = [list(row) for row in zip(*rows, strict=True)]
    for factor in factors:
        rows = _scale(rows, factor)
    return rows


def _open_bracket_at(text: str, at: int) -> int | None:
    """Return the position of the outermost bracket that is open at a position."""
    open_at: list[int] = []
    for match in _STEP.finditer(text, 0, at):
        step = match[0]
        if step in _OPENING:
            open_at.append(match.start())
        elif step in _CLOSING and open_at:
            open_at.pop()
    return open_at[0] if open_at else None


def _end_of_bracket(text: str, opening: int) -> int:
    """Return the position after the bracket that closes the one at `opening`."""
    depth = 0
    for match in _STEP.finditer(text, opening):
        step = match[0]
        if step in _OPENING or step.startswith("\\begin"):
            depth += 1
        elif step in _CLOSING or step.startswith("\\end"):
            depth -= 1
            if not depth:
                return match.end()
    return len(text)


def _scale(rows: Rows, factor: Node) -> Rows:
    return [[("*", (factor, cell)) for cell in row] for row in rows]


def _read_cells(text: str, parse: Callable[[str], Node]) -> Rows | None:
    rows = [
        [cell.strip() for cell in row.split("&")]
        for row in _DECORATION.sub("", text).split("\\\\")
        if row.strip()
    ]
    if not rows or len({len(row) for row in rows}) != 1 or len(rows) * len(rows[0]) > MOST_CELLS:
        return None
    return [[parse(cell) for cell in row] for row in rows]
