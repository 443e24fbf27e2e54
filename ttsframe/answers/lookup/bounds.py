"""What may be shown to sympy: bounds on the text alone, so that no clock decides a key."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_bounded"]

_LONGEST: Final = 400
_DEEPEST: Final = 20
_MOST_DIGITS: Final = 60
_LARGEST_POWER: Final = 5_000
_LARGEST_FACTORIAL: Final = 1_000
_LARGEST_GROUP_POWER: Final = 20
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


def is_bounded(text: str) -> bool:
    r"""Tell whether a text is small enough to be parsed and simplified.

    A text can ask for more work than its length suggests: ``9^{9^9}``, ``(10^9)!``,
    ``(a+b+c+d)^{50}``. The bounds are on length, nesting, digits, exponents, factorials and the
    number of sums and integrals; they depend on nothing but the text.

    Parameters
    ----------
    text
        LaTeX that a model wrote.

    Returns
    -------
    bool
        False when it must not be sent to a worker.
    """
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
    """Return what stands after each ``^``: a group in braces, or the next few characters."""
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
