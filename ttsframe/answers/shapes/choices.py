"""Letters of multiple choice: alone, as in `(A)`, or as the label of an option, as in `(B) 12`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["choice_letter", "labeled_option"]

_CHOICE: Final = re.compile(
    r"(?:\\text\s*\{\s*)?(?:(?i:option|choice)\s+)?\(?\s*([A-Z])\s*(?:\)|\.|:)?\s*\}?\)?\s*\.?"
)
_LABEL: Final = re.compile(
    r"(?:\\text\s*\{\s*)?(?P<named>(?i:option|choice)\s+)?(?:\(\s*(?:\\text\s*\{\s*)?(?P<round>[A-J])\s*\}?\s*\)"
    r"|(?P<half>[A-J])\s*\)|(?P<dotted>[A-J])\s*\.(?=\s)|(?(named)(?P<colon>[A-J])\s*(?=:)))"
    r"\s*[:.]?(?P<closed>\s*\})?\s*"
)
_OTHER_LABEL: Final = re.compile(r"(?:\(|\b)(?:\\text\s*\{\s*)?[A-Ja-j]\s*\}?\s*\)")
_OPTION_BEGINS: Final = re.compile(
    r"[0-9A-Za-z£€¥.$(\[]|-\s?[0-9.\\]|\\(?:frac|sqrt|text|pi|\$|\{|infty|pm|emptyset|log|ln|sin|cos|tan|begin|binom|langle)"
)
_JOINS: Final = re.compile(r"(?:and|or|is|are|to)\b|only\W*$|=", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Za-z]")
_LONGEST: Final = 200


def choice_letter(text: str) -> str | None:
    """Return the capital letter of a choice such as `(A)` or `B.`, else None."""
    match = _CHOICE.fullmatch(text)
    return match[1] if match else None


def labeled_option(text: str, *, may_be_name: bool = False) -> tuple[str, str] | None:
    """Split an option such as `(B) 12` into its letter and its content, or return None."""
    if len(text) > _LONGEST:
        return None
    match = _LABEL.match(text)
    if match is None:
        return None
    letter = match["round"] or match["half"] or match["dotted"] or match["colon"]
    option = text[match.end() :]
    is_set_as_text = match[0].startswith("\\text") and match["closed"] is None
    if is_set_as_text and option.endswith("}"):
        option = option[:-1].rstrip()
    if letter is None or not _OPTION_BEGINS.match(option) or _JOINS.match(option):
        return None
    if match["dotted"] and _WORD.match(option) and not may_be_name:
        # A. Smith is a person, unless the letters of two options are compared.
        return None
    if _OTHER_LABEL.search(option):
        # (A) 3, (B) 5 are the answers to two parts.
        return None
    return letter, option
