"""LaTeX answers as plain text that labels can show: fractions, roots, powers and symbols."""
# ruff: noqa: RUF001  (Greek letters and signs of sets are what this module writes)

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(r"\\(?:[A-Za-z]+|.)|.", re.DOTALL)
_DEPTH_MAX: Final = 20
_TEXT_MAX: Final = 2_000
_FRACTIONS: Final = frozenset({"\\frac", "\\dfrac", "\\tfrac", "\\cfrac"})
_WRAPPERS: Final = frozenset({
    *(
        "\\text",
        "\\textbf",
        "\\textit",
        "\\textrm",
        "\\mathrm",
        "\\mathbf",
        "\\mathbb",
        "\\mathcal",
    ),
    *("\\mathit", "\\operatorname", "\\mbox", "\\boxed", "\\fbox", "\\overline"),
})
_SYMBOLS: Final = {
    **{f"\\{name}": "" for name in ("left", "right", "displaystyle", "limits", "big", "Big")},
    **{f"\\{mark}": "" for mark in "!()[]"},
    **{f"\\{mark}": " " for mark in ",;: "},
    **{f"\\{mark}": mark for mark in "%$#&_{}"},
    "\\quad": " ",
    "\\qquad": " ",
    "\\\\": "; ",
    "&": ", ",
    "$": "",
    "~": " ",
    "\\pi": "π",
    "\\theta": "θ",
    "\\alpha": "α",
    "\\beta": "β",
    "\\gamma": "γ",
    "\\lambda": "λ",
    "\\mu": "μ",
    "\\phi": "φ",
    "\\omega": "ω",
    "\\sigma": "σ",
    "\\Delta": "Δ",
    "\\delta": "δ",
    "\\epsilon": "ε",
    "\\rho": "ρ",
    "\\tau": "τ",
    "\\infty": "∞",
    "\\circ": "°",
    "\\degree": "°",
    "\\emptyset": "∅",
    "\\angle": "∠",
    "\\cdot": "·",
    "\\times": "×",
    "\\div": "÷",
    "\\pm": "±",
    "\\mp": "∓",
    "\\le": "≤",
    "\\leq": "≤",
    "\\ge": "≥",
    "\\geq": "≥",
    "\\ne": "≠",
    "\\neq": "≠",
    "\\lt": "<",
    "\\gt": ">",
    "\\in": "∈",
    "\\cup": "∪",
    "\\cap": "∩",
    "\\approx": "≈",
    "\\to": "→",
    "\\rightarrow": "→",
    "\\ldots": "…",
    "\\dots": "…",
    "\\cdots": "⋯",
    "\\langle": "⟨",
    "\\rangle": "⟩",
    "\\lfloor": "⌊",
    "\\rfloor": "⌋",
    "\\mid": "|",
    **{
        f"\\{name}": name for name in ("sin", "cos", "tan", "log", "ln", "exp", "min", "max", "gcd")
    },
}
_ABOVE: Final = dict(zip("0123456789+-n°", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ°", strict=True))
_BELOW: Final = dict(zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True))


class _UnreadableError(Exception):
    """The text is not LaTeX that can be written plainly."""


def plain_text(text: str) -> str:
    """Write LaTeX as plain text; what is no LaTeX, or cannot be read, stays as it is."""
    if len(text) > _TEXT_MAX or not any(mark in text for mark in ("\\", "^{", "_{")):
        return text
    pieces = _PIECE.findall(text)
    try:
        written, end = _write_until(pieces, 0, "", 0)
    except _UnreadableError:
        return text
    line = " ".join(written.split())
    return line.replace(" ,", ",").replace(" ;", ";") if end == len(pieces) else text


def _write_until(pieces: list[str], i: int, closing: str, depth: int) -> tuple[str, int]:
    """Write pieces up to a closing one or the end, and return where that is."""
    written: list[str] = []
    while i < len(pieces) and pieces[i] != closing:
        if pieces[i] in {"}", "\\end"}:
            raise _UnreadableError
        text, i = _write_one(pieces, i, depth)
        written.append(text)
    if closing and i == len(pieces):
        raise _UnreadableError
    return "".join(written), i


def _write_argument(pieces: list[str], i: int, depth: int) -> tuple[str, int]:
    """Write the argument of a command: a group, or the next piece."""
    while i < len(pieces) and pieces[i] == " ":
        i += 1
    if i == len(pieces):
        raise _UnreadableError
    return _write_one(pieces, i, depth)


def _write_one(pieces: list[str], i: int, depth: int) -> tuple[str, int]:
    """Write a piece with its arguments, and return where the next begins."""
    if depth > _DEPTH_MAX:
        raise _UnreadableError
    head, i, depth = pieces[i], i + 1, depth + 1
    if head == "{":
        text, end = _write_until(pieces, i, "}", depth)
        i = end + 1
    elif head in _FRACTIONS:
        above, i = _write_argument(pieces, i, depth)
        below, i = _write_argument(pieces, i, depth)
        text = f"{_group(above)}/{_group(below)}"
    elif head == "\\sqrt":
        index = ""
        if pieces[i : i + 1] == ["["]:
            index, end = _write_until(pieces, i + 1, "]", depth)
            i = end + 1
        inside, i = _write_argument(pieces, i, depth)
        text = f"{_shift(index, _ABOVE) or index}√{_group(inside)}"
    elif head in _WRAPPERS:
        text, i = _write_argument(pieces, i, depth)
    elif head in {"^", "_"}:
        inside, i = _write_argument(pieces, i, depth)
        shifted = _shift(inside, _ABOVE if head == "^" else _BELOW)
        text = shifted or f"{head}{_group(inside)}"
    elif head == "\\begin":
        _, i = _write_argument(pieces, i, depth)
        inside, end = _write_until(pieces, i, "\\end", depth)
        _, i = _write_argument(pieces, end + 1, depth)
        text = f"({inside.strip()})"
    else:
        text = _SYMBOLS.get(head, head)
    return text, i


def _shift(text: str, marks: dict[str, str]) -> str:
    """Write a short text above or below the line; empty where a character has no such form."""
    return "".join(marks[mark] for mark in text) if set(text) <= marks.keys() else ""


def _group(text: str) -> str:
    """Put a text of several terms into parentheses."""
    text = text.strip()
    is_single = re.fullmatch(r"√?[\w.,°]*|\(.*\)", text) is not None
    return text if is_single else f"({text})"
