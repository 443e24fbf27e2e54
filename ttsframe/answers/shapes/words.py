"""Answers in words, single letters set as text, and units that trail an expression."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.units import is_unit_phrase

__all__ = ["choice_letter", "read_words", "strip_units", "text_key", "unwrap_text"]

_LONGEST_KEY: Final = 60
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_WHOLE_TEXT: Final = re.compile(r"\\text\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_CHOICE: Final = re.compile(r"(?:\\text\s*\{\s*)?\(?\s*([A-Z])\s*(?:\)|\.|:)?\s*\}?\)?\s*\.?")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_BETWEEN_WORDS: Final = re.compile(r"[\s,;:.!?&\"'()/-]*")
_SHORT_WORDS: Final = frozenset(
    """
    am an as at be by do go he hi if in is it me my no of oh ok on or so to up us we pm dx dy dt
    iv vi ii xi ix ab
    """.split()  # noqa: SIM905 (a word list reads best as one)
) - {"ab"}
_SYMBOL_RUN: Final = re.compile(r"[a-z]{2}|[bcdfghjklmnpqrstvwxyz]*[xyz][bcdfghjklmnpqrstvwxyz]*")
_TRAILING_UNIT: Final = re.compile(
    r"\s*(?:/|\\cdot|(?<=\})\s*-)?\s*\\text\s*\{(?P<text>[^{}]*)\}\s*(?:\^\s*(?:\{\s*-?[1234]\s*\}|[1234]))?\s*$"
)
_TRAILING_WORD: Final = re.compile(
    r"(?<=[\s})\]0-9])\s*(?P<word>[a-z]{2,}(?: [a-z]{2,})*)\.?(?:\s*\^\s*(?:\{\s*[23]\s*\}|[23]))?$"
)
_WORDS_FOR: Final = {
    "all real numbers": "(-oo;oo)",
    "all reals": "(-oo;oo)",
    "the set of all real numbers": "(-oo;oo)",
    "empty set": "{}",
    "the empty set": "{}",
    "infinity": "oo",
    "positive infinity": "oo",
    "negative infinity": "-oo",
    "minus infinity": "-oo",
}
_UPRIGHT_SYMBOLS: Final = frozenset({
    "e",
    "i",
    "d",
    "x",
    "y",
    "z",
    "a",
    "b",
    "c",
    "n",
    "k",
    "p",
    "q",
    "r",
    "t",
})
_NOT_UNITS: Final = frozenset({"sec", "min", "if", "in"})


def text_key(text: str) -> str:
    """Write the key of a text that nothing could read; its case counts, for it may be mathematics."""
    return "r" + _text_key(" ".join(text.split()))[1:]


def _text_key(text: str) -> str:
    if len(text) > _LONGEST_KEY:
        text = "#" + blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return "t" + text


def unwrap_text(text: str) -> str | None:
    r"""Return the content of a text that is one ``\text{...}``, else None."""
    found = _WHOLE_TEXT.fullmatch(text)
    return found[1].strip() if found else None


def choice_letter(text: str) -> str | None:
    """Return the capital letter of a choice such as ``(A)`` or ``B.``, else None."""
    found = _CHOICE.fullmatch(text)
    return found[1] if found else None


def read_words(text: str, policy: AnswerPolicy, *, as_text: bool) -> str | None:
    """Return the key of an answer that consists of words, else None.

    Parameters
    ----------
    text
        Normalised text.
    policy
        The conventions.
    as_text
        Whether it was set as text, so that short runs of letters are words too.

    Returns
    -------
    str or None
        Body of the key.
    """
    if "\\" in text:
        text = _TEXT.sub(r" \1 ", text)
        if "\\" in text:
            return None
    words = _WORD.findall(text)
    if not words or _BETWEEN_WORDS.fullmatch(_WORD.sub("", text)) is None:
        return None
    if " - " in text or "/" in text:
        return None
    if len(words) == 1 and len(words[0]) == 1:
        return None
    if len(words) == 1 and text.isalpha():
        word = words[0]
        if not as_text and word not in _SHORT_WORDS and _SYMBOL_RUN.fullmatch(word):
            return None
    elif not as_text and not any(
        max(map(len, re.split("['-]", word))) > 2 or word.casefold() in _SHORT_WORDS
        for word in words
    ):
        return None
    joined = " ".join(words)
    if joined.casefold() in _WORDS_FOR:
        return _WORDS_FOR[joined.casefold()]
    return _text_key(joined.casefold() if policy.case == "folded" else joined)


def strip_units(text: str) -> str:
    """Cut units off the end of an expression."""
    for _ in range(4):
        found = _TRAILING_UNIT.search(text)
        if found is None or found.start() == 0:
            break
        unit = found["text"]
        word = unit.strip()
        if word and (not is_unit_phrase(word, as_text=True) or (unit in _UPRIGHT_SYMBOLS)):
            break
        text = text[: found.start()].rstrip()
    found = _TRAILING_WORD.search(text)
    if found is not None and found.start() and found["word"] not in _NOT_UNITS:
        head = text[: found.start()].rstrip()
        if head and is_unit_phrase(found["word"], as_text=False) and head[-1] not in "+-*/^_=({[,":
            return head
    return text
