"""Separators and relations outside all brackets, at which a text is split."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = [
    "INEQUALITIES",
    "JOINERS",
    "RELATIONS",
    "Mark",
    "expand_signs",
    "is_thousands",
    "outer_brackets",
    "split_at",
    "top_marks",
    "turn_brackets",
]

RELATIONS: Final = frozenset({"=", "<", "<=", ">", ">=", "!=", "in"})
INEQUALITIES: Final = frozenset({"<", "<=", ">", ">="})
JOINERS: Final = frozenset({",", ";", "and", "or"})


class Mark(NamedTuple):
    """A separator or relation at the top level: its span and its sign in one spelling."""

    start: int
    end: int
    sign: str


# Each alternative begins with a letter of its own, so that the search passes over the others quickly.
_SCAN: Final = re.compile(
    r"\\(?:(?:begin|end)\s*\{[A-Za-z*]+\}|text\s*\{[^{}]*\}|[A-Za-z]+|.)|\(|\)|\[|\]|\{|\}|,|;|:|=|<|>|!|&|\|"
    r"|and(?<![A-Za-z]and)(?![A-Za-z])|or(?<![A-Za-z]or)(?![A-Za-z])",
    re.DOTALL,
)
_COMMANDS: Final = r"\\(?:frac|sqrt|pi|cdot|times|sin|cos|tan|ln|log|theta|infty|circ)(?![A-Za-z])"
_INSIDE: Final = rf"(?:[^\\()\[\]{{}}]|{_COMMANDS})*+"
_UNMARKED: Final = re.compile(
    rf"(?:[^\\()\[\]{{}},;:=<>!&|ao]|a(?!nd)|o(?!r)|{_COMMANDS}|\({_INSIDE}\)|\{{(?:{_INSIDE}\{{{_INSIDE}\}})*+{_INSIDE}\}})*+"
)
"""The commonest texts without marks: brackets hold no brackets, and braces at most one level of braces."""
_PARTS: Final = re.compile(
    rf"\{{[^\\()\[\]{{}}]*\}}|\([^\\()\[\]{{}}]*\)|{_SCAN.pattern}", re.DOTALL
)
"""As `_SCAN`, but a group without brackets and commands is one part."""
_JOINING_TEXT: Final = re.compile(r"\\text\s*\{\s*(?:,\s*)?(and|or|if|when|where|for)\s*\}")
_WANTED: Final = {
    ",": ",", ";": ";", ":": ":", "=": "=", "<": "<", ">": ">", "and": "and", "or": "or", "&": "&",
    "\\\\": "\\\\", "\\leq": "<=", "\\geq": ">=", "\\neq": "!=", "\\approx": "~", "\\in": "in", "\\cup": "cup",
    "\\cap": "cap", "\\backslash": "minus", "\\mid": "|", "\\equiv": "?", "\\to": "?", "\\rightarrow": "?",
    "\\Rightarrow": "?", "\\leftrightarrow": "?", "\\Leftrightarrow": "?", "\\implies": "?", "\\iff": "?",
    "\\subset": "?", "\\subseteq": "?", "\\sim": "?", "\\propto": "?", "\\cong": "?", "\\perp": "?",
    "\\parallel": "?", "\\notin": "?", "\\wedge": "and", "\\forall": "?", "\\exists": "?", "\\mapsto": "?",
    "\\ldots": "...", "\\pm": "pm", "\\mp": "mp", "\\|": "?", "\\ll": "?", "\\gg": "?", "\\bmod": "?", "\\pmod": "?",
    "\\mod": "?", "\\neg": "?",
}  # fmt: skip
_OPENING: Final = frozenset({"(", "[", "{", "\\{", "\\langle", "\\lfloor", "\\lceil"})
_CLOSING: Final = frozenset({")", "]", "}", "\\}", "\\rangle", "\\rfloor", "\\rceil"})
# what each part adds to the depth of nesting
_STEPS: Final = (
    dict.fromkeys(_WANTED, 0)
    | dict.fromkeys(("\\frac", "\\sqrt", "\\pi"), 0)
    | dict.fromkeys(_OPENING, 1)
    | dict.fromkeys(_CLOSING, -1)
)
_PARTNER: Final = {"(": ")", "[": "]", "{": "}", "\\{": "\\}", "\\langle": "\\rangle"}
_SQUARE: Final = re.compile(r"\\sqrt\s*\[[^\[\]]*\]|[\[\]]")
_BEFORE_INTERVAL: Final = re.compile(r"(?:[^\[\](){},;]{1,40}(?:\\in(?![A-Za-z])|[=:]))?\s*")
_BETWEEN_INTERVALS: Final = re.compile(
    r"\s*(?:,|;|\\c[ua]p(?![A-Za-z])|and|or|\\text\s*\{\s*(?:and|or)\s*\})\s*"
)
_GROUPS: Final = re.compile(r"\d*(?:,\d+)*")
_SIGNS: Final = re.compile(r"\\(pm|mp)(?![A-Za-z])")


def top_marks(text: str) -> list[Mark] | None:
    """Return the marks outside all brackets, or None where brackets do not match."""
    return [] if _UNMARKED.fullmatch(text) else _searched_marks(text)


def _searched_marks(text: str) -> list[Mark] | None:
    marks: list[Mark] = []
    depth = 0
    for match in _PARTS.finditer(text):
        part = match[0]
        step = _STEPS.get(part)
        if step is None:
            step = (part[:6] == "\\begin") - (part[:4] == "\\end")
            if not step and not depth:
                if part == "!" and text[match.end() : match.end() + 1] == "=":
                    marks.append(Mark(match.start(), match.end() + 1, "!="))
                elif part[:5] == "\\text":
                    joining = _JOINING_TEXT.fullmatch(part)
                    if joining:
                        marks.append(Mark(match.start(), match.end(), joining[1]))
        if step:
            depth += step
            if depth < 0:
                return None
        elif not depth and part in _WANTED:
            wanted = _WANTED[part]
            if (
                wanted == "="
                and marks
                and marks[-1].end == match.start()
                and marks[-1].sign in {"<", ">"}
            ):
                marks[-1] = Mark(marks[-1].start, match.end(), marks[-1].sign + "=")
            elif not (wanted == "=" and marks and marks[-1].end == match.end()):
                marks.append(Mark(match.start(), match.end(), wanted))
    return marks if depth == 0 else None


def split_at(text: str, marks: list[Mark], signs: frozenset[str]) -> list[str]:
    """Split a text at marks of some signs, dropping empty parts."""
    parts: list[str] = []
    start = 0
    for mark in marks:
        if mark.sign in signs:
            parts.append(text[start : mark.start].strip())
            start = mark.end
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def is_thousands(text: str, mark: Mark) -> bool:
    """Tell whether a mark is a comma that separates groups of digits of one number."""
    if mark.sign != "," or not text[mark.end : mark.end + 3].isdigit():
        return False
    # All commas of 10,20,300 are those of a list, since not all groups are of three digits.
    start = mark.start
    while start and (
        text[start - 1].isdigit() or (text[start - 1] == "," and text[start].isdigit())
    ):
        start -= 1
    first, *others = _GROUPS.match(text, start)[0].split(",")  # type: ignore[index]
    if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in others):
        return False
    return first[0] != "0" and text[start - 1 : start] != "."


def outer_brackets(text: str) -> tuple[str, str, str] | None:
    """Return opening, content and closing of a text that one pair of brackets encloses."""
    first = _SCAN.match(text)
    if first is None or first[0] not in _PARTNER:
        return None
    depth = 1
    for match in _PARTS.finditer(text, first.end()):
        part = match[0]
        step = _STEPS.get(part)
        depth += (part[:6] == "\\begin") - (part[:4] == "\\end") if step is None else step
        if not depth:
            if match.end() != len(text):
                return None
            opening = first[0]
            # Half-open intervals close with the other bracket.
            if part != _PARTNER[opening] and not (opening in "([" and part in ")]"):
                return None
            return opening, text[first.end() : match.start()].strip(), part
    return None


def turn_brackets(text: str) -> str | None:
    """Write intervals such as ]0,1[ and [0,1[ with round brackets at their open ends; None for other texts."""
    found = [match for match in _SQUARE.finditer(text) if len(match[0]) == 1]
    if len(found) % 2 or all(
        pair[0][0] == "[" and pair[1][0] == "]"
        for pair in zip(found[::2], found[1::2], strict=True)
    ):
        return None
    written: list[str] = []
    end = 0
    for opening, closing in zip(found[::2], found[1::2], strict=True):
        between, inside = text[end : opening.start()], text[opening.end() : closing.start()]
        expected = _BETWEEN_INTERVALS if written else _BEFORE_INTERVAL
        marks = top_marks(inside)
        if expected.fullmatch(between) is None or marks is None:
            return None
        if (
            sum(mark.sign in {",", ";"} for mark in marks) != 1
            or len(split_at(inside, marks, JOINERS)) != 2
        ):
            return None
        signs = "(" if opening[0] == "]" else "[", ")" if closing[0] == "[" else "]"
        written.append(between + signs[0] + inside + signs[1])
        end = closing.end()
    return None if text[end:].strip() else "".join(written)


def expand_signs(text: str) -> list[str] | None:
    r"""Write out \pm and \mp: together where both occur, else separately; None for more than eight texts."""
    signs = _SIGNS.findall(text)
    if "mp" in signs:
        return [text.replace("\\pm", up).replace("\\mp", down) for up, down in ("+-", "-+")]
    if len(signs) > 3:
        return None
    texts = [text]
    for _ in signs:
        texts = [_SIGNS.sub(sign, one, count=1) for one in texts for sign in "+-"]
    return texts
