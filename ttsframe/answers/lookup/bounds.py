"""Bounds on the work that sympy may be asked to do; they depend on the answer alone, never on a clock.

An answer can ask for more work than its length suggests: `9^{9^9}`, `(10^9)!`, `(a+b+c+d)^{50}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ttsframe.answers.latex.tree import Node, children, symbols_of

__all__ = ["is_bounded_text", "is_evaluable"]

_MOST_DIGITS: Final = 60
_LARGEST_POWER: Final = 5_000
_LARGEST_FACTORIAL: Final = 1_000
_LARGEST_GROUP_POWER: Final = 20

# ---- trees --------------------------------------------------------------------------------------

_MOST_NODES: Final = 200
_MOST_CALCULUS: Final = 3
_LARGEST_NUMBER: Final = 10**_MOST_DIGITS
_GROWING: Final = frozenset({"factorial", "gamma", "binomial"})
_LEAVES: Final = frozenset({"q", "c", "s", "f"})


def is_evaluable(node: Node) -> bool:
    r"""Tell whether sympy may evaluate a tree: bounded, without \log of unknown base or percent."""
    nodes = list(_descendants(node))
    return (
        len(nodes) <= _MOST_NODES
        and sum(part[0] in {"S", "L", "D"} for part in nodes) <= _MOST_CALCULUS
        and all(map(_is_bounded_node, nodes))
        and _largest_power(node) <= _LARGEST_POWER
    )


def _descendants(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _descendants(child)


def _is_bounded_node(node: Node) -> bool:
    """Check the numbers, exponents and factorials of one node."""
    op = node[0]
    if op == "q":
        return bool(max(abs(node[1]), node[2]) < _LARGEST_NUMBER)
    if op == "^":
        power = _constant_exponent(node[2])
        is_small = power <= _LARGEST_GROUP_POWER or node[1][0] in _LEAVES
        return is_small and all(map(_is_small_in_exponent, _descendants(node[2])))
    if op == "f" and node[1] in {"log", "percent"}:
        return False
    if op == "f" and node[1] in _GROWING:
        argument = node[2][0]
        if symbols_of(argument):
            return not any(
                part[0] == "f" and part[1] in _GROWING for part in _descendants(argument)
            )
        return bool(argument[0] == "q" and abs(argument[1]) <= _LARGEST_FACTORIAL * argument[2])
    return True


def _is_small_in_exponent(part: Node) -> bool:
    """Tell whether a node of an exponent is neither a large number nor grows by itself."""
    op = part[0]
    if op == "q":
        return bool(max(abs(part[1]), part[2]) <= _LARGEST_POWER)
    if op == "^":
        is_tower = any(inner[0] == "^" for inner in _descendants(part[2]))
        return bool(symbols_of(part)) and not is_tower
    return not (op == "f" and part[1] in _GROWING)


def _constant_exponent(exponent: Node) -> int:
    """Return the magnitude of an exponent that is a number, rounded up; 1 for any other."""
    if exponent[0] == "q":
        return -(-abs(int(exponent[1])) // int(exponent[2]))
    if exponent[0] == "*" and all(factor[0] == "q" for factor in exponent[1]):
        magnitude = 1
        for factor in exponent[1]:
            magnitude *= _constant_exponent(factor)
        return magnitude
    return 1


def _largest_power(node: Node) -> int:
    """Return the largest product of nested exponents: 6 in ((x + 1)^2)^3."""
    inner = max(map(_largest_power, children(node)), default=1)
    return inner * max(1, _constant_exponent(node[2])) if node[0] == "^" else inner


# ---- texts, for the published form --------------------------------------------------------------

_LONGEST: Final = 400
_DEEPEST: Final = 20
_MOST_OPERATORS: Final = 2
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_NUMBER: Final = re.compile(r"\d+")
_GROWS_IN_EXPONENT: Final = re.compile(r"\d[\s)}\]]*(?:\^|!|\*\*)")
_GROUP_POWER: Final = re.compile(r"[)\]}|]\s*\^\s*\{?\s*(\d+)")
_SUBSCRIPT: Final = re.compile(r"_\s*\{[^{}]*\}")
_FACTORIAL: Final = re.compile(r"(?:(\d+)|(\^[^!]{0,9}))[\s)}\]]*!|!\s*!|\*\*")
_BINOMIAL: Final = re.compile(r"\\[dt]?binom\s*\{?\s*(\d+)")
_BIG_OPERATOR: Final = re.compile(r"\\(?:sum|prod|int|iint|lim)(?![a-zA-Z])")
# of latex2sympy2's own functions these build objects as large as their arguments say
_BUILDER: Final = re.compile(r"operatorname|\\variable|\\mathit|\\bm\b")
_SCIENTIFIC: Final = re.compile(r"\d\s*[eE]\s*[-+]?\s*\d{4,}")


def is_bounded_text(text: str) -> bool:
    """Tell whether a text is small enough to be parsed and simplified by latex2sympy2 and sympy."""
    if len(text) > _LONGEST or not text.isprintable() or _depth(text) > _DEEPEST:
        return False
    if _BUILDER.search(text) or _SCIENTIFIC.search(text):
        return False
    factorials = [match[1] for match in _FACTORIAL.finditer(text)]
    return (
        len(_BIG_OPERATOR.findall(text)) <= _MOST_OPERATORS
        and all(len(number) <= _MOST_DIGITS for number in _NUMBER.findall(text))
        and all(
            number is not None and _is_at_most(number, _LARGEST_FACTORIAL) for number in factorials
        )
        and all(
            _is_at_most(number, _LARGEST_GROUP_POWER)
            for number in _GROUP_POWER.findall(_SUBSCRIPT.sub("_", text))
        )
        and all(_is_at_most(number, _LARGEST_FACTORIAL) for number in _BINOMIAL.findall(text))
        and all(_is_small_exponent(exponent) for exponent in _exponents(text))
    )


def _is_at_most(number: str, largest: int) -> bool:
    """Compare digits with a bound; the number of digits is bounded before."""
    return int(number) <= largest


def _is_small_exponent(exponent: str) -> bool:
    """Tell whether an exponent neither holds a tower nor a large number."""
    if _GROWS_IN_EXPONENT.search(exponent):
        return False
    return all(_is_at_most(number, _LARGEST_POWER) for number in _NUMBER.findall(exponent))


def _exponents(text: str) -> list[str]:
    """Return what stands after each `^`: a group in braces, or the next few characters."""
    exponents = []
    start = text.find("^")
    while start >= 0:
        rest = text[start + 1 :].lstrip()
        exponents.append(_group(rest) if rest.startswith("{") else rest[:2])
        start = text.find("^", start + 1)
    return exponents


def _group(text: str) -> str:
    """Return the group in braces that begins a text."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text[: position + 1]
    return text


def _depth(text: str) -> int:
    """Return the deepest nesting of brackets of any kind."""
    depth = deepest = 0
    for character in text:
        if character in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif character in _CLOSING:
            depth -= 1
    return deepest
