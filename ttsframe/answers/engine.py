"""The canonical key of one answer string."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

from ttsframe.answers.latex.tree import Node
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.placeholders import is_placeholder
from ttsframe.answers.shapes.words import text_key
from ttsframe.answers.values.rational import rational_key, read_plain, read_rational

if TYPE_CHECKING:
    from ttsframe.answers.shapes.structure import Reader

__all__ = [
    "LONGEST_ANSWER",
    "AnswerKind",
    "Canonical",
    "canonicalize",
    "numeric_value",
    "read_normalized",
]

AnswerKind: TypeAlias = Literal["exact", "numeric", "symbolic", "structure", "text", "missing"]

LONGEST_ANSWER: Final = 1_000
"""Longer texts are compared as texts."""


class Canonical(NamedTuple):
    """The key of an answer, and what it was read as.

    `unresolved` holds the sums, integrals, limits and derivatives that only sympy may know. If it is not
    empty, the key is that of the text, and `canonicalize` may be called again with their values.
    """

    key: str
    kind: AnswerKind
    unresolved: tuple[Node, ...] = ()


def canonicalize(
    answer: str, policy: AnswerPolicy, resolved: Mapping[Node, Node | None] | None = None
) -> Canonical:
    """Return the key of an answer; `resolved` has the values of nodes that an earlier call left open."""
    # A pure function: nothing is evaluated but arithmetic, and length, depth, digits, exponents and nodes
    # are bounded.
    plain = read_plain(answer)
    if plain is not None:
        return Canonical(policy.prefix + plain, "exact")
    return read_normalized(normalize_text(answer), policy, resolved or {})


def read_normalized(
    text: str,
    policy: AnswerPolicy,
    resolved: Mapping[Node, Node | None],
    trace: Callable[[str, str], None] | None = None,
) -> Canonical:
    """Return the canonical key of a normalized text, telling `trace` what each layer read."""
    prefix = policy.prefix
    if not text or is_placeholder(text):
        return Canonical(prefix, "missing")
    rational = read_rational(text, policy)
    if rational is not None:
        if trace is not None:
            trace("number", text)
        value, is_percent = rational
        key = rational_key(value.numerator, value.denominator)
        return Canonical(f"{prefix}%{key}" if is_percent else prefix + key, "exact")
    unresolved: tuple[Node, ...] = ()
    if len(text) <= LONGEST_ANSWER:
        reader = _reader_class()(policy, resolved, trace)
        reading = reader.read(text)
        if reading is not None:
            return Canonical(prefix + reading[0], cast(AnswerKind, reading[1]))
        unresolved = tuple(dict.fromkeys(reader.unresolved))
    if trace is not None:
        trace("text", text)
    return Canonical(prefix + text_key(text, policy), "text", unresolved)


def numeric_value(answer: str, policy: AnswerPolicy) -> Fraction | float | None:
    """Return the value of an answer that is one real number within the range of floats, else None."""
    text = normalize_text(answer)
    rational = read_rational(text, policy)
    if rational is not None:
        return None if rational[1] else rational[0]
    if not text or len(text) > LONGEST_ANSWER:
        return None
    return _reader_class()(policy, {}).number(text)


@lru_cache(maxsize=1)
def _reader_class() -> type[Reader]:
    """Load flint, which does the arithmetic, on the first answer that needs it."""
    from ttsframe.answers.shapes.structure import Reader

    return Reader
