"""The vocabulary of the parser, and the scanner."""

from __future__ import annotations

import re
from functools import lru_cache
from string import ascii_letters, digits
from typing import Final

__all__ = [
    "FUNCTIONS",
    "GREEK",
    "LETTER_RUNS",
    "MOST_TOKENS",
    "TRIGONOMETRIC",
    "Unreadable",
    "scan",
]

MOST_TOKENS: Final = 500

_TOKEN: Final = re.compile(
    r"[0-9]+(?:\.[0-9]*)?|[A-Za-z]+|\\[A-Za-z]+|\.[0-9]+|\\.|\*\*|\S", re.DOTALL
)
_LETTERS: Final = frozenset(ascii_letters)
_KINDS: Final = {"**": "^"}
_DIGITS: Final = frozenset(digits)
TRIGONOMETRIC: Final = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
FUNCTIONS: Final = TRIGONOMETRIC | {
    "arcsin", "arccos", "arctan", "arccot", "sinh", "cosh", "tanh", "coth", "sech", "csch",
    "arcsinh", "arccosh", "arctanh", "exp", "ln", "log", "cis",
}  # fmt: skip
GREEK: Final = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu rho sigma tau phi chi omega".split()  # noqa: SIM905 (a word list reads best as one)
)
"""Without nu, xi, pi (a number) and psi (a unit)."""
LETTER_RUNS: Final = {name: name for name in FUNCTIONS | GREEK} | {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "arsinh": "arcsinh", "arcosh": "arccosh", "artanh": "arctanh", "sqrt": "sqrt", "pi": "pi",
    "infinity": "infty", "inf": "infty", "oo": "infty", "abs": "abs", "cbrt": "cbrt", "floor": "floor",
    "ceil": "ceil", "tg": "tan", "ctg": "cot", "gcd": "gcd", "lcm": "lcm", "min": "min", "max": "max",
}  # fmt: skip
_NOT_PRODUCTS: Final = frozenset(
    """
    or is if in at no to of on by as an am pm ft cm mm km kg hr mi yd lb oz me my so us we he it
    be do go dx dy dz dt du dv dr dw ds dp dq and the for not are was has one two six ten day
    men mod det lim sup sum all any odd but can cat did dog few get how its let
    lot man may new now off old our out per put see set she too use way who why yes yet you via
    due end far had her him his low net nor own red run sad say son sun top try van war web win
    won iff dim ker deg arg sgn cov var std erf DNE
    """.split()  # noqa: SIM905 (a word list reads best as one)
)
_DIFFERENTIAL: Final = re.compile(r"[k-z]{0,2}(?:d[k-np-z]){1,3}")
"""A run such as dx, xdx or dydx, read as letters in a text with an integral or a derivative."""
_CALCULUS: Final = re.compile(r"\\int(?![A-Za-z])|\\frac\s*\{\s*(?:d|\\partial)\s*[\^}]")
_INFIX: Final = {"over": "frac", "choose": "binom"}
"""Commands between the two parts of a group, and what they mean."""
MOST_INFIX: Final = 20
_OPENING: Final = frozenset({"(", "[", "{", "\\{"})
_CLOSING: Final = frozenset({")", "]", "}", "\\}"})
_IN_FORMULAS: Final = frozenset({"at", "it", "as", "is", "am", "an", "us", "be", "my", "by", "no"})
"""Short words that are products of symbols beside powers and fractions, as in e^{at}."""


class Unreadable(Exception):  # noqa: N818 (a verdict on a string, not a failure)
    """The string is outside the parser's language or exceeds a limit."""


def scan(text: str) -> tuple[list[str], list[str]]:
    """Return the kinds and the values of the tokens of a normalized text, each closed by two `end`."""
    # kinds: N number, L letter, C command, W word in a subscript, else the sign itself
    tokens = list(map(_classified, _TOKEN.findall(text)))
    kinds = [kind for kind, _ in tokens]
    values = [value for _, value in tokens]
    if "" in kinds:
        kinds, values = _with_runs(text, kinds, values)
    if len(kinds) > MOST_TOKENS:
        raise Unreadable(text[:20])
    if "\\over" in text or "\\choose" in text:
        _write_fractions(kinds, values)
    kinds.extend(("end", "end"))
    values.extend(("", ""))
    return kinds, values


def _with_runs(text: str, kinds: list[str], values: list[str]) -> tuple[list[str], list[str]]:
    """Read runs of letters as products or as words in subscripts; raise `Unreadable` for other words."""
    is_formula = "^" in text or "\\frac" in text
    is_calculus = is_formula and _CALCULUS.search(text) is not None
    new_kinds: list[str] = []
    new_values: list[str] = []
    for kind, value in zip(kinds, values, strict=True):
        if kind:
            new_kinds.append(kind)
            new_values.append(value)
        elif (
            len(value) <= 3
            and (value not in _NOT_PRODUCTS or (is_formula and value in _IN_FORMULAS))
        ) or (is_calculus and _DIFFERENTIAL.fullmatch(value)):
            new_kinds.extend("L" * len(value))
            new_values.extend(value)
        elif len(new_kinds) > 1 and new_kinds[-1] == "{" and new_kinds[-2] in {"C", "_"}:
            new_kinds.append("W")
            new_values.append(value)
        else:
            raise Unreadable(value)
    return new_kinds, new_values


@lru_cache(maxsize=2_048)
def _classified(token: str) -> tuple[str, str]:
    """Return the kind and the value of a token; no kind for a run of letters that depends on its neighbors."""
    first = token[0]
    if first in _DIGITS or (first == "." and len(token) > 1):
        return "N", token
    if first in _LETTERS:
        if len(token) == 1:
            return "L", token
        return ("C", LETTER_RUNS[token]) if token in LETTER_RUNS else ("", token)
    if first == "\\" and token[1:2] in _LETTERS:
        return "C", token[1:]
    return _KINDS.get(token, token), token


def _write_fractions(kinds: list[str], values: list[str]) -> None:
    r"""Write {a \over b} as \frac{a}{b}, and {a \choose b} as \binom{a}{b}."""
    for _ in range(MOST_INFIX):
        at = next((i for i, value in enumerate(values) if value in _INFIX and kinds[i] == "C"), -1)
        if at < 0:
            return
        start, end = _group_around(kinds, values, at)
        # The braces stay where they hold an argument: \sqrt{1 \over 2}.
        drops_braces = (
            start >= 0
            and kinds[start] == "{"
            and not (start and kinds[start - 1] in {"C", "^", "_", "}", "]"})
        )
        first, last = (start, end + 1) if drops_braces else (start + 1, end)
        for tokens, command in ((kinds, "C"), (values, _INFIX[values[at]])):
            top, low = tokens[start + 1 : at], tokens[at + 1 : end]
            tokens[first:last] = [command, "{", *top, "}", "{", *low, "}"]
    raise Unreadable


def _group_around(kinds: list[str], values: list[str], at: int) -> tuple[int, int]:
    """Return the positions of the brackets around a token: -1 and the end where there are none."""
    start, depth = at - 1, 0
    while start >= 0 and (depth or kinds[start] not in _OPENING):
        depth += (kinds[start] in _CLOSING) - (kinds[start] in _OPENING)
        start -= 1
    end = at + 1
    while end < len(kinds) and (depth or kinds[end] not in _CLOSING):
        if not depth and kinds[end] == "C" and values[end] in _INFIX:
            # {a \over b \over c} has no meaning
            raise Unreadable
        depth += (kinds[end] in _OPENING) - (kinds[end] in _CLOSING)
        end += 1
    return start, end
