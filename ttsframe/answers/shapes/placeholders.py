"""Words where an answer should be, as in a template that a model copied."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_placeholder"]

_LONGEST: Final = 40
_PLACEHOLDERS: Final = frozenset(
    {"answer", "the answer", "final answer", "the final answer", "your answer", "your final answer",
     "answer here", "your answer here", "your final answer here", "insert answer here", "must be incorrect"}
)  # fmt: skip
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_WORD: Final = re.compile(r"[^\W\d_]+")


def is_placeholder(text: str) -> bool:
    """Tell whether a normalized text is a placeholder."""
    if len(text) > _LONGEST:
        return False
    folded = text.casefold()
    if ("answer" not in folded and "incorrect" not in folded) or any(map(str.isdigit, text)):
        return False
    return " ".join(_WORD.findall(_TEXT.sub(r" \1 ", folded))) in _PLACEHOLDERS
