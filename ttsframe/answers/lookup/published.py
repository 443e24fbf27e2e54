r"""The canonical form that search-and-learn published, for parity with its results.

An answer is cleaned as a string, then becomes `latex(simplify(latex2sympy(answer)))`; where the libraries
reject it, it is the string cleaned twice. The form keeps its faults: `(x+1)^2` and `x^2+2x+1` differ,
`12:00` and `1:00` do not. Only the state that the parser keeps between strings is removed, so that a form
depends on its string alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ttsframe.answers.lookup.bounds import is_bounded_text
from ttsframe.answers.lookup.worker import WorkerStatus, run_tasks

__all__ = ["PublishedForm", "clean_as_published", "published_forms"]


class PublishedForm(NamedTuple):
    """LaTeX where the libraries read the answer, else the cleaned string, and how the work ended."""

    form: str
    is_parsed: bool
    status: WorkerStatus


def published_forms(answers: Sequence[str]) -> dict[str, PublishedForm]:
    """Return the published canonical form of each distinct answer."""
    cleaned = {answer: clean_as_published(answer) for answer in answers}
    outcomes = run_tasks("published", list(filter(is_bounded_text, cleaned.values())))
    forms = {}
    for answer, text in cleaned.items():
        outcome = outcomes.get(text)
        value = outcome.value if outcome is not None else None
        status = outcome.status if outcome is not None else "done"
        form = clean_as_published(text) if value is None else value
        forms[answer] = PublishedForm(form, value is not None, status)
    return forms


_UNITS: Final = (
    r"degrees?|dollars?|cents?|units?|square|sq|cubic|hours?|hrs?|minutes?|mins?|seconds?|secs?|days?"
    r"|weeks?|months?|years?|miles?|mi|mph|feet|foot|ft|inch(?:es)?|yards?|meters?|metres?|kilometers?"
    r"|km|cm|mm|ml|kg|kgs|grams?|gallons?|liters?|litres?|points?|students?|people|dogs?|cats?|books?"
    r"|apples?|pages?|items?|ways?|times?|percent(?:age)?|a\.m\.|p\.m\.|am|pm|g|m|s|h"
)
_UNIT: Final = re.compile(rf"(^|\W)(?:{_UNITS})(?=$|\W)")
_CLEANING: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\n|\\!", ""),
        (r"\.+$", ""),
        (r"\\begin\{(?:array\}\{[^{}]*|bmatrix)\}", r"\\begin{pmatrix}"),
        (r"\\end\{(?:array|bmatrix)\}", r"\\end{pmatrix}"),
        (r"\\[dt]frac", r"\\frac"),
        (r"\\(n|l|g)eq(?![a-z])", r"\\\1e"),
        (r"\\left|\\right", ""),
        (r"\\([{}])", r"\1"),
    )
)
_MARKS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\^\{?\\circ\}?|\\?\$|\\[()]", ""),
        (r"\\text\{(.*?)\}", r"\1"),
        (r"[xyz]=|[xyzn]\\in|[xyz]\\to", ""),
        (r"\\emptyset", "{}"),
        (r"\(-\\infty,\\infty\)", r"\\mathbb{R}"),
        (r"\\?%", ""),
        (r"(^| |\{)\.", r"\g<1>0."),
        (r"infinity", r"\\infty"),
        (r"^(?!.*\\infty)(.*?)inf", r"\1\\infty"),
        (r"and|\\mathbf|\\mbox\{.*?\}|'|\"", ""),
        (r"(\d)\.0*(?=\D|$)", r"\1"),
        (r"^.{0,2}=(?=[^=]*$)", ""),
        (r"\\sqrt(\w+)", r"\\sqrt{\1}"),
        (r" ", ""),
        (r"\\frac(?=[^{])(\d)(?=[^{])(\w)", r"\\frac{\1}{\2}"),
        (r"\\frac(?=[^{])(\d)\{", r"\\frac{\1}{"),
        (r"\\frac(\{[^{}]*\})(\d)", r"\\frac\1{\2}"),
        (r"^(-?\d+)/(-?\d+)$", r"\\frac{\1}{\2}"),
        (r"^([^/]*\\sqrt[^/]*|-?\d+)/([^/]*\\sqrt[^/]*|-?\d+)$", r"\\frac{\1}{\2}"),
    )
)
_TEXT_AT_END: Final = re.compile(r"\\text\{[^{}]*\}$")
_NUMBER_WORDS: Final = {
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
}


def clean_as_published(answer: str) -> str:
    """Clean an answer as search-and-learn does before and after its parser, without regard for meaning."""
    text = answer.strip()
    for pattern, replacement in _CLEANING:
        text = pattern.sub(replacement, text)
    text = _TEXT_AT_END.sub("", text).strip() or text
    for _ in range(2):
        text = _UNIT.sub(r"\1", text) or text
    text = _NUMBER_WORDS.get(text.strip().lower(), text)
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return text
