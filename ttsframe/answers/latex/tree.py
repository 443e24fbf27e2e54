"""Expression trees, as tuples: the result of the parser.

`("q", numerator, denominator)`, `("c", name)` a constant, `("s", name)` a symbol,
`("+", terms)`, `("*", factors)`, `("/", a, b)`, `("^", base, exponent)`, `("r", x, degree)` a root,
`("f", name, arguments)` a known function, `("u", name, arguments)` an unknown one,
`("S", "sum" | "prod" | "int", variable, low, high, body)`,
`("L", variable, "+" | "-" | "+-", point, body)` a limit from above, from below or from both sides,
`("D", variable, order, body)` a derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

__all__ = [
    "INFINITY",
    "MINUS_ONE",
    "ONE",
    "Node",
    "children",
    "closed_calculus",
    "has_symbols",
    "infinity_sign",
    "replace_nodes",
    "symbols_of",
    "uses_function",
]

Node: TypeAlias = tuple[Any, ...]

INFINITY: Final[Node] = ("c", "oo")
ONE: Final[Node] = ("q", 1, 1)
MINUS_ONE: Final[Node] = ("q", -1, 1)
_LEAVES: Final = frozenset({"q", "c", "s"})


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node."""
    op = node[0]
    if op in {"+", "*"}:
        return tuple(node[1])
    if op in {"/", "^", "r"}:
        return node[1:]
    if op in {"f", "u"}:
        return tuple(node[2])
    return node[3:] if op in {"S", "L", "D"} else ()


def symbols_of(node: Node) -> frozenset[str]:
    """Return the names of the free symbols and unknown functions of a tree."""
    found: set[str] = set()
    _collect_symbols(node, found)
    return frozenset(found)


def _collect_symbols(node: Node, found: set[str]) -> None:
    op = node[0]
    if op == "s":
        found.add(node[1])
    elif op in {"q", "c"}:
        return
    elif op in {"S", "L"}:
        found |= symbols_of(node[-1]) - {node[2 if op == "S" else 1]}
        for bound in node[3:-1]:
            _collect_symbols(bound, found)
    else:
        if op == "u":
            found.add(node[1])
        for child in children(node):
            _collect_symbols(child, found)


def has_symbols(node: Node) -> bool:
    """Tell whether a tree has free symbols or unknown functions."""
    op = node[0]
    if op == "s":
        return True
    if op in {"q", "c"}:
        return False
    if op in {"+", "*"}:
        return any(map(has_symbols, node[1]))
    if op in {"S", "L", "u"}:
        return bool(symbols_of(node))
    return any(map(has_symbols, children(node)))


def uses_function(node: Node, name: str) -> bool:
    """Tell whether a tree applies a function anywhere."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        op = node[0]
        if op in _LEAVES:
            continue
        if op == "f" and node[1] == name:
            return True
        waiting += children(node)
    return False


def infinity_sign(node: Node) -> int:
    """Return 1 for infinity, -1 for minus infinity, 0 for anything else."""
    if node == INFINITY:
        return 1
    if node[0] == "*" and len(node[1]) == 2 and node[1][0] == MINUS_ONE:
        return -infinity_sign(node[1][1])
    return 0


def closed_calculus(node: Node) -> tuple[Node, ...]:
    """Return the outermost sums, integrals and limits without free symbols, and derivatives."""
    if node[0] in {"S", "L"} and not symbols_of(node):
        return (node,)
    if node[0] == "D" and not _has_unknown_function(node):
        return (node,)
    return tuple(part for child in children(node) for part in closed_calculus(child))


def _has_unknown_function(node: Node) -> bool:
    return node[0] == "u" or any(map(_has_unknown_function, children(node)))


def replace_nodes(node: Node, replacement: Callable[[Node], Node | None]) -> Node:
    """Return a tree in which each outermost node that has a replacement is replaced."""
    new = replacement(node)
    if new is not None:
        return new
    op = node[0]
    if op in {"+", "*"}:
        return (op, tuple(replace_nodes(child, replacement) for child in node[1]))
    if op in {"f", "u"}:
        return (op, node[1], tuple(replace_nodes(child, replacement) for child in node[2]))
    n_kept = {"/": 1, "^": 1, "r": 1, "S": 3, "L": 3, "D": 3}.get(op, len(node))
    return node[:n_kept] + tuple(replace_nodes(child, replacement) for child in node[n_kept:])
