"""Explain how an answer is read, layer by layer, and why two answers differ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ttsframe import _html
from ttsframe.answers.engine import AnswerKind, numeric_value, read_normalized
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy

__all__ = ["AnswerExplanation", "explain_answer"]

_LONGEST_SHOWN: Final = 100
_KINDS: Final[dict[AnswerKind, str]] = {
    "exact": "an exact number",
    "numeric": "a number known to its certified digits",
    "symbolic": "an expression with symbols",
    "structure": "a structure (list, tuple, interval, matrix, relation, ratio or date)",
    "text": "text",
    "missing": "no answer",
}


@dataclass(frozen=True)
class AnswerExplanation:
    """How an answer was read, and why it differs from another.

    Parameters
    ----------
    answer
        The answer as it was given.
    normalized
        The answer without wrappers, in one spelling.
    layers
        The layers from the outside in: name of the layer and the text that it read.
    kind
        The kind of the answer, as in `answer_kind`.
    key
        Its canonical key.
    value
        The value, if the answer is one real number; else None.
    unresolved
        Sums, integrals, limits and derivatives that only sympy may be able to evaluate.
    other
        The explanation of the other answer, or None.
    reason
        Why the two keys are equal or differ; empty without another answer.

    Examples
    --------
    >>> import ttsframe as tts
    >>> explanation = tts.explain_answer("0.5")
    >>> explanation.kind, explanation.value, explanation.key
    ('exact', Fraction(1, 2), '3:1/2')
    """

    answer: str
    normalized: str
    layers: tuple[tuple[str, str], ...]
    kind: AnswerKind
    key: str
    value: Fraction | float | None
    unresolved: tuple[str, ...] = ()
    other: AnswerExplanation | None = None
    reason: str = ""

    def _repr_html_(self) -> str:
        """Return the explanation as text for notebooks."""
        return _html.fragment(_html.preformatted(str(self)))

    def __str__(self) -> str:
        """Return the explanation as a few lines of text."""
        lines = [f"answer      {_shorten(self.answer)!r}"]
        if self.normalized != self.answer:
            lines.append(f"normalized  {_shorten(self.normalized)!r}")
        lines += [f"{layer:<11} {_shorten(text)}" for layer, text in self.layers]
        lines.append(f"kind        {self.kind}: {_KINDS[self.kind]}")
        if isinstance(self.value, float):
            lines.append(f"value       about {self.value:.12g}")
        if self.unresolved:
            lines.append(f"unresolved  {', '.join(self.unresolved)}")
        lines.append(f"key         {self.key}")
        if self.other is not None:
            lines += ["", str(self.other), "", self.reason]
        return "\n".join(lines)


def explain_answer(
    answer: str, other: str | None = None, *, policy: AnswerPolicy | None = None
) -> AnswerExplanation:
    r"""Explain how an answer is read, and why it differs from another.

    Use it to see why two attempts did or did not vote together.

    Parameters
    ----------
    answer
        The answer.
    other
        Another answer to compare with.
    policy
        The conventions; None is `AnswerPolicy()`.

    Returns
    -------
    AnswerExplanation
        Layers, kind and key, and with `other` the reason; `print` shows it as text.

    Examples
    --------
    >>> import ttsframe as tts
    >>> print(tts.explain_answer(r"\boxed{\frac{\sqrt{12}}{2}}", r"\sqrt3"))
    answer      '\\boxed{\\frac{\\sqrt{12}}{2}}'
    normalized  '\\frac{\\sqrt{12}}{2}'
    scalar      \frac{\sqrt{12}}{2}
    kind        numeric: a number known to its certified digits
    value       about 1.73205080757
    key         3:~4c8da4d5c94c684670a60ebe
    <BLANKLINE>
    answer      '\\sqrt3'
    scalar      \sqrt3
    kind        numeric: a number known to its certified digits
    value       about 1.73205080757
    key         3:~4c8da4d5c94c684670a60ebe
    <BLANKLINE>
    Equivalent: both have the same key.
    """
    conventions = AnswerPolicy() if policy is None else policy
    first = _explanation(answer, conventions)
    if other is None:
        return first
    second = _explanation(other, conventions)
    return AnswerExplanation(
        first.answer, first.normalized, first.layers, first.kind, first.key, first.value, first.unresolved,
        second, _reason(first, second),
    )  # fmt: skip


def _explanation(answer: str, policy: AnswerPolicy) -> AnswerExplanation:
    layers: list[tuple[str, str]] = []
    normalized = normalize_text(answer)
    canonical = read_normalized(
        normalized, policy, {}, lambda layer, text: layers.append((layer, text))
    )
    value = numeric_value(answer, policy) if canonical.kind in {"exact", "numeric"} else None
    return AnswerExplanation(
        answer,
        normalized,
        tuple(layers),
        canonical.kind,
        canonical.key,
        value,
        tuple(text for layer, text in layers if layer == "unresolved"),
    )


def _reason(first: AnswerExplanation, second: AnswerExplanation) -> str:
    if first.key == second.key:
        return "Equivalent: both have the same key."
    if first.unresolved or second.unresolved:
        return "Not compared: an unresolved expression must be evaluated by sympy first, as tts.answer_key does."
    if first.kind != second.kind:
        return f"Different: {_KINDS[first.kind]} against {_KINDS[second.kind]}."
    if first.value is not None and second.value is not None:
        return f"Different numbers: they differ by {_difference(first.value, second.value)}."
    if first.kind == "structure":
        return _structural_reason(first, second)
    if first.kind == "symbolic":
        return "Different expressions: their values differ at the hidden points of their symbols."
    if first.kind == "text":
        return (
            "Different texts: neither could be read as mathematics, so they are compared as text."
        )
    return "Different values."


def _difference(first: Fraction | float, second: Fraction | float) -> str:
    gap = abs(Fraction(first) - Fraction(second))
    if (
        isinstance(first, Fraction)
        and isinstance(second, Fraction)
        and gap.denominator < 10**12
        and gap < 10**30
    ):
        return str(gap)
    return f"about {float(gap):.3g}" if gap < 10**300 else "more than 1e300"


def _structural_reason(first: AnswerExplanation, second: AnswerExplanation) -> str:
    bodies = tuple(explanation.key.split(":", 1)[1] for explanation in (first, second))
    inner = [body.strip("(){}[]NMUEQ").split(";") for body in bodies]
    if inner[0] == inner[1]:
        return f"Different structures around the same parts: {bodies[0]} against {bodies[1]}."
    only = [
        ", ".join(part for part in mine if part not in others)
        for mine, others in ((inner[0], inner[1]), (inner[1], inner[0]))
    ]
    if not any(only):
        return "Different structures: the same parts in another order or number."
    return f"Different structures: {only[0] or 'nothing'} only in the first, {only[1] or 'nothing'} only in the second."


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
