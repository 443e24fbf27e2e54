"""The conventions under which two answers are the same."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, Literal, get_args, get_type_hints

from ttsframe._checks import check_choice

__all__ = ["CODE_VERSION", "POLICY_CHOICES", "AnswerPolicy"]

CODE_VERSION: Final = 3
"""Increased whenever a change of code changes any key; every key begins with it."""


@dataclass(frozen=True)
class AnswerPolicy:
    r"""The conventions under which two answers are the same.

    Mathematics leaves some readings open: whether 25% is 0.25, whether `x = 5` is 5. Each is one option,
    with the default that real runs support. Every key begins with a short form of its policy, so
    that keys of different policies are never equal.

    Parameters
    ----------
    percent
        `"ignored"`: 25% is 25, because models and gold answers leave the sign out; grading also accepts
        25% where the gold answer is 0.25. `"fraction"`: 25% is 1/4. `"kept"`: 25% is neither.
    assignment
        `"value"`: `x = 5` is 5, while `y = 2x + 1` is a line and `x = 1, y = 2` a point.
        `"dropped"`: every name is dropped, also in these. `"kept"`: the name belongs to the answer.
    list_order
        `"ignored"`: `1, 2` is `2, 1`. `"kept"`: they differ. Sets in braces are never
        ordered, tuples always are.
    inequality
        `"interval"`: `x < 2` is `(-\infty, 2)`. `"kept"`: the variable belongs to the
        answer.
    decimal_comma
        `"plain"`: `0,125` and `1000,99` are decimals, because lists and thousands are not written like
        this; `0,5` is the list of 0 and 5. `"refused"`: a comma is never decimal. `"accepted"`: `0,5` is
        one half; a comma before exactly three digits still separates thousands, unless the number begins
        with 0.
    log_base
        Base of a `\log` without one. `"unknown"` keeps it apart from `\ln` and from
        `\log_{10}` while the laws of logarithms still hold; `"10"` and `"e"` choose.
    case
        `"folded"`: words are compared without regard to case. `"kept"`: case matters. The case of single
        letters, and of words such as `AaBb`, always matters.
    units
        `"dropped"`: a unit or currency after or before a number is left out, so that `5 cm`, `5 dollars`,
        `5 cents`, `€5` and 5 are one answer, as are `50^\circ C`, `50^\circ F` and 50: a problem fixes the
        unit that its answers need not repeat. `"kept"`: the unit belongs to the answer; spellings of one unit
        are the same (`5 cm`, `5\text{ centimeters}`), and nothing is converted.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.answers.AnswerPolicy().prefix
    '3:'
    >>> tts.answers.AnswerPolicy(percent="fraction").prefix
    '3p1:'
    """

    percent: Literal["ignored", "fraction", "kept"] = "ignored"
    assignment: Literal["value", "dropped", "kept"] = "value"
    list_order: Literal["ignored", "kept"] = "ignored"
    inequality: Literal["interval", "kept"] = "interval"
    decimal_comma: Literal["plain", "refused", "accepted"] = "plain"
    log_base: Literal["unknown", "10", "e"] = "unknown"
    case: Literal["folded", "kept"] = "folded"
    units: Literal["dropped", "kept"] = "dropped"

    def __post_init__(self) -> None:
        for name, choices in POLICY_CHOICES.items():
            check_choice(getattr(self, name), name, choices)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the options alone: the cached prefix belongs to this version of the code."""
        return {name: getattr(self, name) for name in POLICY_CHOICES}

    @cached_property
    def prefix(self) -> str:
        """The beginning of every key of this policy and version of the code.

        Returns
        -------
        str
            Code version, then a letter and a digit per option that is not the default, then a
            colon.
        """
        changed = "".join(
            f"{letter}{choices.index(getattr(self, name))}"
            for letter, (name, choices) in zip("palidbcu", POLICY_CHOICES.items(), strict=True)
            if choices.index(getattr(self, name))
        )
        return f"{CODE_VERSION}{changed}:"


POLICY_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    field.name: get_args(get_type_hints(AnswerPolicy)[field.name]) for field in fields(AnswerPolicy)
}
"""The options of a policy and their choices, the default first."""
