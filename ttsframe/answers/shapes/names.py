"""Names before an equals sign: symbols, functions, geometric quantities."""

from __future__ import annotations

import re
from typing import Final

from ttsframe.answers.shapes.marks import RELATIONS, outer_brackets, top_marks

__all__ = [
    "COORDINATES",
    "is_function_name",
    "is_name",
    "is_tuple_of_names",
    "named_value",
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
    return wrapped is not None and all(is_name(part.strip()) for part in wrapped[1].split(","))


def named_value(part: str) -> tuple[str, str] | None:
    """Split a part `name = value`."""
    left, equals, right = part.partition("=")
    left = left.strip()
    if not equals or "=" in right or left[-1:] in "<>!" or not is_name(left):
        return None
    if any(mark.sign in RELATIONS for mark in top_marks(right) or []):
        return None
    return without_spaces(left), right.strip()


def without_spaces(text: str) -> str:
    """Remove white space, so that a name has one spelling."""
    return "".join(text.split())
