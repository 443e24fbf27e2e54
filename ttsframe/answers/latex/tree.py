"""What the parser returns: a scalar as a tree of tuples.

``("q", numerator, denominator)``, ``("c", name)`` a constant, ``("s", name)`` a symbol,
``("+", terms)``, ``("*", factors)``, ``("/", a, b)``, ``("^", base, exponent)``, ``("r", x, degree)`` a root,
``("f", name, arguments)`` a known function, ``("u", name, arguments)`` an unknown one,
``("S", "sum" | "prod", index, low, high, body)``.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

__all__ = ["INFINITY", "MINUS_ONE", "Node", "infinity_sign", "symbols_of", "uses_function"]

Node: TypeAlias = tuple[Any, ...]

INFINITY: Final[Node] = ("c", "oo")
MINUS_ONE: Final[Node] = ("q", -1, 1)


def symbols_of(node: Node) -> frozenset[str]:
    """Return the names of the free symbols and unknown functions of a tree."""
    found: set[str] = set()
    _collect(node, found)
    return frozenset(found)


def uses_function(node: Node, name: str) -> bool:
    """Tell whether a tree applies a function anywhere."""
    if node[0] == "f" and node[1] == name:
        return True
    parts = node[1] if node[0] in {"+", "*"} else node[2] if node[0] in {"f", "u"} else node[1:]
    return any(isinstance(part, tuple) and uses_function(part, name) for part in parts)


def infinity_sign(node: Node) -> int:
    """Return 1 for infinity, -1 for minus infinity, 0 for anything else."""
    if node == ("c", "oo"):
        return 1
    if node[0] == "*" and len(node[1]) == 2 and node[1][0] == MINUS_ONE:
        return -infinity_sign(node[1][1])
    return 0


def _collect(node: Node, found: set[str]) -> None:
    op = node[0]
    if op == "s":
        found.add(node[1])
    elif op in {"+", "*"}:
        for part in node[1]:
            _collect(part, found)
    elif op in {"/", "^", "r"}:
        _collect(node[1], found)
        _collect(node[2], found)
    elif op in {"f", "u"}:
        if op == "u":
            found.add(node[1])
        for part in node[2]:
            _collect(part, found)
    elif op == "S":
        inner: set[str] = set()
        _collect(node[5], inner)
        found |= inner - {node[2]}
