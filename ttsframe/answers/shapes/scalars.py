"""Single values inside an answer, and the state that the readers of its parts share.

Lists, sets and relations are read by functions of a reader, in modules of these names; they pass the
parts that they find back to `read_part`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, Self, TypeAlias

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.latex.tree import Node, closed_calculus, infinity_sign, replace_nodes
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.numerals import number_in_words
from ttsframe.answers.shapes.words import strip_units
from ttsframe.answers.values.fingerprint import KnownValues, Uncertified, scalar_key
from ttsframe.answers.values.rational import rational_key

__all__ = ["MOST_PARTS", "Reading", "ScalarReader"]

Reading: TypeAlias = tuple[str, str]
"""Body of a key and its kind."""

MOST_PARTS: Final = 64

_LEADING_COMMA: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_UNIT_ENDS: Final = frozenset(".23}")


class ScalarReader(ABC):
    """Reads the scalars of one answer under one policy, and records what it sees.

    `resolved` holds what sympy made of nodes that an earlier reading left in `unresolved`; `trace` is
    called with the name of a layer and the text it read, for `explain_answer`.
    """

    __slots__ = ("_trees", "known", "last", "policy", "resolved", "trace", "unresolved")

    def __init__(
        self,
        policy: AnswerPolicy,
        resolved: Mapping[Node, Node | None],
        trace: Callable[[str, str], None] | None = None,
    ) -> None:
        self.policy = policy
        self.resolved = resolved
        self.unresolved: list[Node] = []
        self.trace = trace
        self.last: Node | None = None
        self.known = KnownValues()
        """Values of the trees read so far, so that each side of a relation is evaluated once."""
        self._trees: dict[str, Node] = {}

    @abstractmethod
    def read_part(self, text: str, depth: int) -> Reading | None:
        """Return the reading of a part of the answer at a depth of nesting, or None."""

    def with_policy(self, policy: AnswerPolicy) -> Self:
        """Return a reader of the same answer under another policy."""
        return type(self)(policy, self.resolved, self.trace)

    def read_each(self, parts: list[str], depth: int) -> list[Reading] | None:
        """Return the readings of several texts, or None if one has none."""
        if len(parts) > MOST_PARTS:
            return None
        readings: list[Reading] = []
        for part in parts:
            reading = self.read_part(part, depth + 1)
            if reading is None:
                return None
            readings.append(reading)
        return readings

    def note(self, layer: str, what: str) -> None:
        """Report a layer and its text to the trace."""
        if self.trace is not None:
            self.trace(layer, what)

    def rational(self, text: str, rational: tuple[Fraction, bool]) -> Reading:
        """Return the reading of a rational number, which may be a percentage."""
        value, is_percent = rational
        self.note("number", text)
        self.last = None if is_percent else ("q", value.numerator, value.denominator)
        key = rational_key(value.numerator, value.denominator)
        return ("%" + key if is_percent else key), "exact"

    def words(self, text: str, body: str) -> Reading:
        """Return the reading of words, which may be a number."""
        number = number_in_words(text)
        if number is not None:
            return self.rational(text, (number, False))
        self.note("words", text)
        if body[0] == "t":
            return body, "text"
        return body, "exact" if body.endswith("oo") else "structure"

    def prepare(self, text: str) -> str:
        """Prepare the text of a scalar for the parser."""
        if self.policy.units == "kept":
            return _LEADING_COMMA.sub("", text)
        if "\\text" in text or text[-1:].isalpha() or text[-1:] in _UNIT_ENDS:
            # the dm of an integral is not a length
            text = text if "\\int" in text else strip_units(text)
        if "," in text:
            text = _LEADING_COMMA.sub("", text)
        if text.startswith(("\\$", "£", "€", "¥")):
            text = text.lstrip("\\$£€¥ ")
        return text

    def parsed(self, text: str) -> Node:
        """Return the tree of a scalar; the same object for the same text."""
        node = self._trees.get(text)
        if node is None:
            node = self._trees[text] = parse(self.prepare(text))
        return node

    def scalar(self, text: str) -> Reading | None:
        """Return the reading of one scalar, or None."""
        try:
            node = self.parsed(text)
        except Unreadable:
            return None
        reading = self._read_tree(text, node)
        if reading is None:
            resolved = self._with_values(text, node)
            reading = None if resolved is None else self._read_tree(text, resolved)
        return reading

    def _read_tree(self, text: str, node: Node) -> Reading | None:
        """Return the reading of a tree without sympy, or None."""
        sign = infinity_sign(node)
        if sign:
            self.last = None
            return ("oo" if sign > 0 else "-oo"), "exact"
        try:
            reading = scalar_key(node, self.policy, self.known)
        except Uncertified:
            return None
        self.note("scalar", text)
        self.last = node
        return reading

    def _with_values(self, text: str, node: Node) -> Node | None:
        """Return a tree with sympy's values for its sums, integrals, limits and derivatives."""
        parts = closed_calculus(node)
        missing = [part for part in parts if part not in self.resolved]
        if missing:
            self.note("unresolved", text)
            self.unresolved.extend(missing)
        if not parts or missing or any(self.resolved[part] is None for part in parts):
            return None
        return replace_nodes(node, self.resolved.get)
