"""From one answer string to its canonical key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.words import text_key
from ttsframe.answers.values.rational import rational_key, read_plain, read_rational

__all__ = [
    "LONGEST_ANSWER",
    "AnswerKind",
    "Canonical",
    "canonicalise",
    "numeric_value",
    "read_normalized",
]

AnswerKind: TypeAlias = Literal["exact", "numeric", "symbolic", "structure", "text", "missing"]

LONGEST_ANSWER: Final = 1_000
"""Longer texts are compared as texts."""


class Canonical(NamedTuple):
    """The key of an answer and how it was found.

    Parameters
    ----------
    key
        Begins with the policy's prefix; equal keys mean equivalent answers.
    kind
        What the answer was read as.
    unresolved
        Bounded LaTeX of scalars that only a computer algebra system may know. Empty: the key is
        final. Otherwise the key is the text key, and `canonicalise` may be called again with what
        they were resolved to.
    """

    key: str
    kind: AnswerKind
    unresolved: tuple[str, ...] = ()


def canonicalise(
    answer: str, policy: AnswerPolicy, resolved: Mapping[str, str | None] | None = None
) -> Canonical:
    """Return the canonical key of an answer.

    A pure function of its arguments: nothing is evaluated but arithmetic, work is bounded by
    limits on length, depth, digits, exponents and nodes, and nothing is raised.

    Parameters
    ----------
    answer
        The answer as it was extracted.
    policy
        The conventions.
    resolved
        For scalars that an earlier call returned as unresolved: the same value written in LaTeX
        that the parser knows, or None where nobody knows it.

    Returns
    -------
    Canonical
        Key, kind, and what is still unresolved.
    """
    plain = read_plain(answer)
    if plain is not None:
        return Canonical(policy.prefix + plain, "exact")
    return read_normalized(normalize_text(answer), policy, resolved or {})


def read_normalized(
    text: str,
    policy: AnswerPolicy,
    resolved: Mapping[str, str | None],
    trace: Callable[[str, str], None] | None = None,
) -> Canonical:
    """Return the canonical key of a normalised text, telling ``trace`` what each layer read.

    Parameters
    ----------
    text
        What `normalize_text` returned.
    policy
        The conventions.
    resolved
        Values of scalars that were unresolved.
    trace
        Called with the name of a layer and the text it read.

    Returns
    -------
    Canonical
        Key, kind, and what is still unresolved.
    """
    prefix = policy.prefix
    if not text:
        return Canonical(prefix, "missing")
    rational = read_rational(text, policy)
    if rational is not None:
        if trace is not None:
            trace("number", text)
        value, is_percent = rational
        key = rational_key(value.numerator, value.denominator)
        return Canonical(f"{prefix}%{key}" if is_percent else prefix + key, "exact")
    unresolved: tuple[str, ...] = ()
    if len(text) <= LONGEST_ANSWER:
        # flint, which does the arithmetic, is loaded on the first answer that needs it.
        from ttsframe.answers.shapes.structure import Reader

        reader = Reader(policy, resolved, trace)
        reading = reader.read(text)
        if reading is not None:
            return Canonical(prefix + reading[0], cast(AnswerKind, reading[1]))
        unresolved = tuple(dict.fromkeys(reader.unresolved))
    if trace is not None:
        trace("text", text)
    return Canonical(prefix + text_key(text), "text", unresolved)


def numeric_value(answer: str, policy: AnswerPolicy) -> Fraction | float | None:
    """Return the value of an answer that is one real number, for comparison within a tolerance.

    Parameters
    ----------
    answer
        The answer as it was extracted.
    policy
        The conventions.

    Returns
    -------
    Fraction or float or None
        A Fraction where the number is rational, else the nearest float. None where the answer is
        not one real number, or is one past the range of floats.
    """
    text = normalize_text(answer)
    rational = read_rational(text, policy)
    if rational is not None:
        return None if rational[1] else rational[0]
    if not text or len(text) > LONGEST_ANSWER:
        return None
    from ttsframe.answers.shapes.structure import Reader

    return Reader(policy, {}).number(text)
