r"""Exact values of constants in a tree, so that one number has one tree.

A root of a perfect power is rational: written as a number, `x + \sqrt{4}` is read like `x + 2`.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, comb, floor, isqrt
from typing import Final

from ttsframe.answers.latex.tree import Node

__all__ = [
    "exact_function",
    "exact_power",
    "exact_root",
    "exact_value",
    "number_node",
    "value_in_base",
]

MOST_BITS: Final = 2_000
"""Larger numbers are left to the evaluation, which bounds its work."""
MOST_NODES: Final = 40
LARGEST_DEGREE: Final = 64
LARGEST_CHOICE: Final = 200
LONGEST_DIGITS: Final = 400
"""Most digits of a number in a base."""
_ARITHMETIC: Final = frozenset({"q", "+", "*", "/", "^"})


def number_node(value: Fraction) -> Node:
    """Return the node of a rational number."""
    return ("q", value.numerator, value.denominator)


def exact_value(node: Node) -> Fraction | None:
    """Return the value of a small tree of rational numbers, else None."""
    return _value(node, [MOST_NODES])


def exact_root(inner: Node, degree: Node) -> Node | None:
    """Return the node of a root that is rational, else None."""
    if degree[0] != "q" or degree[2] != 1:
        return None
    value = exact_value(inner)
    root = None if value is None else _root(value, int(degree[1]))
    return None if root is None else number_node(root)


def exact_power(base: Node, exponent: Node) -> Node | None:
    """Return the node of a rational number's fractional power that is rational, else None."""
    if base[0] not in _ARITHMETIC or (exponent[0] == "q" and exponent[2] == 1):
        return None
    power = exact_value(exponent)
    if power is None or power.denominator == 1:
        return None
    value = exact_value(base)
    root = None if value is None else _root(value, power.denominator)
    if root is None:
        return None
    result = _power(root, power.numerator)
    return None if result is None else number_node(result)


def exact_function(name: str, arguments: tuple[Node, ...]) -> Node | None:
    """Return the node of a step function or binomial coefficient of numbers, else None."""
    values = [exact_value(argument) for argument in arguments]
    first = values[0]
    if first is None:
        return None
    if name == "abs":
        return number_node(abs(first))
    if name in {"floor", "ceil"}:
        return number_node(Fraction(floor(first) if name == "floor" else ceil(first)))
    low = values[-1]
    if name != "binomial" or low is None or first.denominator != 1 or low.denominator != 1:
        return None
    if not 0 <= low <= first <= LARGEST_CHOICE:
        return None
    return number_node(Fraction(comb(int(first), int(low))))


def value_in_base(digits: str, base: int) -> Fraction | None:
    """Return the value of digits in a base from 2 to 36, else None."""
    whole, _, decimals = digits.partition(".")
    joined = whole + decimals
    if not 2 <= base <= 36 or not joined or len(joined) > LONGEST_DIGITS or not joined.isalnum():
        return None
    if not joined.isascii() or any(int(digit, 36) >= base for digit in joined):
        return None
    return Fraction(int(joined, base), base ** len(decimals))


def _value(node: Node, left: list[int]) -> Fraction | None:
    """Return the value of a tree; `left` counts down the nodes that may still be read."""
    left[0] -= 1
    op = node[0]
    if left[0] < 0 or op not in _ARITHMETIC:
        return None
    if op == "q":
        small = max(abs(node[1]), node[2]).bit_length() <= MOST_BITS
        return Fraction(node[1], node[2]) if small else None
    if op == "^":
        exponent = _value(node[2], left)
        base = _value(node[1], left) if exponent is not None else None
        if base is None or exponent is None or exponent.denominator != 1:
            return None
        return _power(base, exponent.numerator)
    parts = node[1] if op != "/" else node[1:]
    total: Fraction | None = None
    for part in parts:
        value = _value(part, left)
        if value is None or (op == "/" and total is not None and not value):
            return None
        if total is None:
            total = value
        else:
            total = total + value if op == "+" else total * value if op == "*" else total / value
        if max(abs(total.numerator), total.denominator).bit_length() > MOST_BITS:
            return None
    return total


def _power(base: Fraction, exponent: int) -> Fraction | None:
    bits = max(abs(base.numerator), base.denominator).bit_length()
    if bits * abs(exponent) > MOST_BITS or (not base and exponent <= 0):
        return None
    return Fraction(base**exponent)


def _root(value: Fraction, degree: int) -> Fraction | None:
    """Return the real root of a rational number if it is rational."""
    if not 2 <= degree <= LARGEST_DEGREE or (value < 0 and degree % 2 == 0):
        return None
    top = _integer_root(abs(value.numerator), degree)
    low = _integer_root(value.denominator, degree)
    if top is None or low is None:
        return None
    return Fraction(-top if value < 0 else top, low)


def _integer_root(value: int, degree: int) -> int | None:
    if value < 2:
        return value
    if degree == 2:
        root = isqrt(value)
    else:
        # Newton's method from above
        root = 1 << -(-value.bit_length() // degree)
        while True:
            better = ((degree - 1) * root + value // root ** (degree - 1)) // degree
            if better >= root:
                break
            root = better
    return root if root**degree == value else None
