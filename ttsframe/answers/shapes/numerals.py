"""Numbers in words."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

__all__ = ["number_in_words"]

_UNITS: Final = {
    word: value
    for value, word in enumerate(
        """
        zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
        sixteen seventeen eighteen nineteen
        """.split()  # noqa: SIM905 (a word list reads best as one)
    )
}
_TENS: Final = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_THOUSANDS: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS: Final = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10,
}  # fmt: skip
_MOST_WORDS: Final = 16
MOST_WHOLES: Final = 100
"""Two million and a half is 2,500,000 to most: parts are added only to smaller numbers."""


def number_in_words(text: str) -> Fraction | None:
    """Return the value of a whole number or a simple fraction in English words, else None."""
    words = text.casefold().replace("-", " ").split()
    if words[:1] in (["minus"], ["negative"]):
        value = number_in_words(" ".join(words[1:]))
        return None if value is None else -value
    if words in (["half"], ["a", "half"]):
        return Fraction(1, 2)
    if not words or len(words) > _MOST_WORDS or words[0] not in _UNITS.keys() | _TENS.keys():
        return None
    part = _part(words)
    if part is not None:
        return part
    if len(words) > 3 and words[-3] == "and":
        part = _part(["one" if words[-2] == "a" else words[-2], words[-1]])
        whole = None if part is None else number_in_words(" ".join(words[:-3]))
        if part is not None and whole is not None:
            is_mixed = part < 1 <= whole < MOST_WHOLES and whole.denominator == 1
            return whole + part if is_mixed else None
    if words == ["zero"]:
        return Fraction(0)
    total, limit = 0, 10**12
    group: list[str] = []
    for word in [*words, ""]:
        scale = _THOUSANDS.get(word, 0 if word else 1)
        if not scale:
            group.append(word)
            continue
        if word == "" and not group and total:
            break
        below = _below_thousand(group[1:] if total and group[:1] == ["and"] else group)
        if below is None or scale >= limit:
            return None
        total, limit, group = total + below * scale, scale, []
    return Fraction(total)


def _part(words: list[str]) -> Fraction | None:
    """Return the value of words such as two thirds, else None."""
    if len(words) != 2 or words[0] not in _UNITS or words[0] == "zero":
        return None
    singular = words[1] if words[0] == "one" else _singular(words[1])
    return Fraction(_UNITS[words[0]], _PARTS[singular]) if singular in _PARTS else None


def _below_thousand(words: list[str]) -> int | None:
    """Return the value of words such as two hundred and five, else None."""
    hundreds = 0
    if words[1:2] == ["hundred"] and 1 <= _UNITS.get(words[0], 0) <= 9:
        hundreds = 100 * _UNITS[words[0]]
        words = words[3:] if words[2:3] == ["and"] and len(words) > 3 else words[2:]
        if not words:
            return hundreds
    if len(words) == 1:
        value = _UNITS.get(words[0]) or _TENS.get(words[0])
    elif len(words) == 2 and words[0] in _TENS and 1 <= _UNITS.get(words[1], 0) <= 9:
        value = _TENS[words[0]] + _UNITS[words[1]]
    else:
        value = None
    return None if value is None else hundreds + value


def _singular(word: str) -> str | None:
    """Return the name of a part of which there are several; None for one."""
    if word == "halves":
        return "half"
    return word[:-1] if word.endswith("s") else None
