"""Names before an equals sign: symbols, functions, geometric quantities."""

from __future__ import annotations

import re
from typing import Final

from ttsframe.answers.shapes.marks import (
    JOINERS,
    RELATIONS,
    Mark,
    is_thousands,
    outer_brackets,
    split_at,
    top_marks,
)

__all__ = [
    "COORDINATES",
    "assignments",
    "is_function",
    "is_function_name",
    "is_name",
    "is_quantity",
    "is_tuple_of_names",
    "is_variable",
    "left_side",
    "without_spaces",
]

_SUBSCRIPT: Final = r"(?:\s*_\s*(?:\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}|[A-Za-z0-9]))?"
_PRIMES: Final = r"(?:\s*'|\s*\^\s*\{\s*'+\s*\})*"
_LETTER: Final = (
    r"(?:[A-Za-z]|\\(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma"
    r"|tau|upsilon|phi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Sigma|Phi|Psi|Omega|ell|hbar)(?![A-Za-z])"
    r"|\\(?:mathbf|vec|bar|hat|overline|boldsymbol|mathcal|tilde|overrightarrow|text)\s*\{\s*[A-Za-z]{1,12}\s*\}"
    r"|\\Delta\s*[A-Za-z])"
)
_SYMBOL: Final = re.compile(_LETTER + _SUBSCRIPT + _PRIMES)
_PLAIN_LOWER: Final = re.compile(r"[a-z]|\\(?:alpha|beta|gamma|theta|lambda|mu|rho|phi|omega)")
_FUNCTION: Final = re.compile(
    rf"{_LETTER}{_SUBSCRIPT}{_PRIMES}(?:\s*\^\s*\{{\s*(?:-\s*1|\(\s*[0-9]+\s*\))\s*\}}){{0,1}}{_PRIMES}\s*\([^()=<>]{{1,40}}\)"
)
_POINTS: Final = r"[A-Z]{1,6}(?:_\s*(?:\{[^{}]*\}|[A-Za-z0-9]))?'?"
_GEOMETRY: Final = re.compile(
    rf"\|\s*{_POINTS}\s*\||(?:m\s*)?\\angle\s*{_POINTS}|{_POINTS}|\\frac\s*\{{\s*{_POINTS}\s*\}}\s*\{{\s*{_POINTS}\s*\}}"
    rf"|{_POINTS}\s*[:/]\s*{_POINTS}(?:\s*:\s*{_POINTS})?|{_POINTS}\s*\\?\s*\^\s*\{{?\s*(?:-1|T|2)\s*\}}?"
    r"|[A-Z]\^\{\s*[-0-9a-zT]+\s*\}|\\frac\s*\{\s*d[^{}]{1,8}\}\s*\{\s*d[^{}]{1,8}\}|[A-Za-z]?[a-z]{3,}(?: [a-z]+)*|max|min|sum"
    r"|(?:P|\\Pr|\\mathbb\s*\{\s*P\s*\})\s*\([^()]{1,40}\)|\\(?:det|dim|deg)\s*[A-Z]"
    r"|[a-z]\s*:\s*[a-z](?:\s*:\s*[a-z])?|\\(?:gcd|max|min|det|dim|deg)\s*[({\\][^=<>]{1,40}[)}]"
)
COORDINATES: Final = frozenset(
    {("x", "y"), ("x", "y", "z"), ("a", "b"), ("a", "b", "c"), ("m", "n"), ("p", "q"), ("u", "v"), ("r", "s"),
     ("a", "b", "c", "d"), ("w", "x", "y", "z"), ("p", "q", "r"), ("A", "B"), ("A", "B", "C")}
)  # fmt: skip


def is_name(text: str) -> bool:
    """Tell whether a left side only names the value on the right."""
    return len(text) <= 60 and bool(
        _SYMBOL.fullmatch(text) or _FUNCTION.fullmatch(text) or _GEOMETRY.fullmatch(text)
    )


def is_function_name(text: str) -> bool:
    """Tell whether a name may stand for an expression, unlike the coordinate in y = 2x + 1."""
    return _PLAIN_LOWER.fullmatch(text) is None


def is_tuple_of_names(text: str) -> bool:
    """Tell whether a left side names the coordinates of the value on the right."""
    wrapped = outer_brackets(text) if text[:1] == "(" else None
    names = [] if wrapped is None else [part.strip() for part in wrapped[1].split(",")]
    letters = "".join(names)
    if (
        len(letters) == len(names)
        and (letters.islower() or letters.isupper())
        and names != sorted(names)
    ):
        # (y, x) = (3, 4) is not (x, y) = (3, 4)
        return False
    return bool(names) and all(map(is_name, names))


def is_variable(text: str) -> bool:
    """Tell whether a name is a letter, perhaps with a subscript, whose values may be listed without it."""
    return len(text) <= 60 and "\\text" not in text and _SYMBOL.fullmatch(text) is not None


def is_function(text: str) -> bool:
    """Tell whether a name is a function of its variables, such as f(x)."""
    return len(text) <= 60 and _FUNCTION.fullmatch(text) is not None


def is_quantity(text: str) -> bool:
    """Tell whether a name describes what is asked, such as f(x) or area: unlike A or AB, it is no operand."""
    return (
        is_function(text)
        or "\\text" in text
        or (text[-1:].islower() and len(text) > 2 and text.isalpha())
    )


def assignments(part: str) -> list[tuple[str, str]] | None:
    """Split `name = value` or `name = name = value` into pairs of a name and a value."""
    equals = _equals_signs(part)
    if not equals:
        return None
    sides = split_at(part, equals, frozenset({"="}))
    if len(sides) != len(equals) + 1:
        return None
    n_names = 0
    while n_names < len(equals) and is_name(sides[n_names]):
        n_names += 1
    value = part[equals[n_names - 1].end :].strip()
    return [(without_spaces(name), value) for name in sides[:n_names]] or None


def left_side(part: str) -> str | None:
    """Return the left side of a part that is one equation, else None."""
    equals = _equals_signs(part)
    return part[: equals[0].start].strip() if equals else None


def _equals_signs(part: str) -> list[Mark]:
    """Return the equals signs of a part without other relations or separators."""
    marks = top_marks(part) if "=" in part else None
    others = RELATIONS | JOINERS
    signs = [mark for mark in marks or () if mark.sign in others and not is_thousands(part, mark)]
    return signs if all(mark.sign == "=" for mark in signs) else []


def without_spaces(text: str) -> str:
    """Remove white space, so that a name has one spelling."""
    return "".join(text.split())
