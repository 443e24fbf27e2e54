"""Single values inside an answer, and what the readers of its parts share.

Lists, sets, relations and ratios are read by functions of a reader, each in the module of that name;
what they find inside goes back to the reader's `read_part`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, Self, TypeAlias

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.latex.tree import Node, infinity_sign
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.words import strip_units
from ttsframe.answers.values.fingerprint import Lost, scalar_key
from ttsframe.answers.values.rational import rational_key

__all__ = ["MOST_PARTS", "Reading", "ScalarReader"]

Reading: TypeAlias = tuple[str, str]
"""Body of a key and its kind."""

MOST_PARTS: Final = 64
LONGEST_UNRESOLVED: Final = 200

_LEADING_COMMA: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_SPECIAL: Final = re.compile(r"\\(?:sum|prod|int|lim)(?![A-Za-z])")
_BOUND_NAME: Final = re.compile(
    r"\\(?:sum|prod)\s*_\s*\{\s*([a-zA-Z])\s*=|d\s*([a-zA-Z])\s*$|\\lim\s*_\s*\{\s*([a-zA-Z])\s*\\(?:to|rightarrow)"
)
_LETTERS: Final = re.compile(r"\\[A-Za-z]+|[A-Za-z]")
_HELPERS: Final = frozenset(
    {"\\infty", "\\pi", "\\frac", "\\sqrt", "\\to", "\\rightarrow", "\\sin", "\\cos", "\\tan", "\\ln", "\\log", "\\sum",
     "\\prod", "\\int", "\\lim", "\\cdot", "\\exp", "\\arctan", "\\binom", "\\times", "d", "e", "i", "\\limits"}
)  # fmt: skip
_UNIT_ENDS: Final = frozenset(".23}")


class ScalarReader(ABC):
    """Reads the scalars of one answer under one policy, and keeps what was seen on the way.

    Parameters
    ----------
    policy
        The conventions.
    resolved
        What a computer algebra system made of scalars that an earlier reading left unresolved.
    trace
        Called with a layer's name and what it saw, by `explain_answer`.
    """

    __slots__ = ("last", "policy", "resolved", "trace", "unresolved")

    def __init__(
        self,
        policy: AnswerPolicy,
        resolved: Mapping[str, str | None],
        trace: Callable[[str, str], None] | None = None,
    ) -> None:
        self.policy = policy
        self.resolved = resolved
        self.unresolved: list[str] = []
        self.trace = trace
        self.last: Node | None = None

    @abstractmethod
    def read_part(self, text: str, depth: int) -> Reading | None:
        """Return the reading of a part of the answer that lies so deep in it, or None."""

    def under(self, policy: AnswerPolicy) -> Self:
        """Return a reader of the same answer under another policy."""
        return type(self)(policy, self.resolved, self.trace)

    def read_each(self, parts: list[str], depth: int) -> list[Reading] | None:
        """Return the readings of several texts, or None where one has none."""
        if len(parts) > MOST_PARTS:
            return None
        readings: list[Reading] = []
        for part in parts:
            reading = self.read_part(part, depth + 1)
            if reading is None:
                return None
            readings.append(reading)
        return readings

    def see(self, layer: str, what: str) -> None:
        """Tell the trace what a layer read."""
        if self.trace is not None:
            self.trace(layer, what)

    def rational(self, text: str, rational: tuple[Fraction, bool]) -> Reading:
        """Return the reading of a rational number, which may be a percentage."""
        value, is_percent = rational
        self.see("number", text)
        self.last = None if is_percent else ("q", value.numerator, value.denominator)
        key = rational_key(value.numerator, value.denominator)
        return ("%" + key if is_percent else key), "exact"

    def words(self, text: str, body: str) -> Reading:
        """Return the reading of words."""
        self.see("words", text)
        if body[0] == "t":
            return body, "text"
        return body, "exact" if body.endswith("oo") else "structure"

    def spelled(self, text: str) -> str:
        """Prepare the text of a scalar for the parser."""
        if "\\text" in text or text[-1:].isalpha() or text[-1:] in _UNIT_ENDS:
            text = strip_units(text)
        if "," in text:
            text = _LEADING_COMMA.sub("", text)
        if text.startswith(("\\$", "£", "€", "¥")):
            text = text.lstrip("\\$£€¥ ")
        return text

    def scalar(self, text: str) -> Reading | None:
        """Return the reading of one scalar, or None."""
        if _SPECIAL.search(text):
            return self._special(text)
        return self._parsed(text)

    def _parsed(self, text: str) -> Reading | None:
        try:
            node = parse(self.spelled(text))
            sign = infinity_sign(node)
            if sign:
                self.last = None
                return ("oo" if sign > 0 else "-oo"), "exact"
            reading = scalar_key(node, self.policy)
        except (Lost, Unreadable):
            return None
        self.see("scalar", text)
        self.last = node
        return reading

    def _special(self, text: str) -> Reading | None:
        """Read a sum, product, integral or limit: here if it is finite, else by what was resolved."""
        if text in self.resolved:
            answer = self.resolved[text]
            return None if answer is None else self._parsed(answer)
        reading = self._parsed(text)
        if reading is None and _is_closed(text):
            self.see("unresolved", text)
            self.unresolved.append(text)
        return reading


def _is_closed(text: str) -> bool:
    """Tell whether a special scalar is short and has no symbols but its own bound ones."""
    if len(text) > LONGEST_UNRESOLVED or text.count("{") > 30:
        return False
    bound = {name for names in _BOUND_NAME.findall(text) for name in names if name}
    return bool(bound) and ("^" in text or "\\lim" in text) and all(
        letters in bound or letters in _HELPERS for letters in _LETTERS.findall(text)
    )  # fmt: skip
