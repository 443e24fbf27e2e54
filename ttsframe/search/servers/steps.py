"""Where a step ends, and why: what servers say of it, brought to the words of `nodes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ttsframe.errors import CompletionError
from ttsframe.search.nodes import FinishReason

StepEnd: TypeAlias = Literal["auto", "text", "newline"]

UNSAID = "unsaid"
"""Stands for what stopped a text, where a server does not say it."""


class Step(NamedTuple):
    """A continuation."""

    text: str | None
    finish_reason: FinishReason
    n_tokens: int | None = None
    n_prompt_tokens_new: int | None = None
    logprob: float | None = None


class Ended(NamedTuple):
    """The text of a step and why it ended."""

    text: str | None
    finish_reason: FinishReason


@dataclass
class StepRule:
    """Decides whether a text that stopped is a step or the end of a solution."""

    separator: str
    step_end: StepEnd
    keeps_stops: bool = False
    """Whether the server was seen to leave the separator in its texts."""

    @property
    def stops(self) -> list[str]:
        return [] if self.step_end == "newline" else [self.separator]

    def ended(  # noqa: PLR0911 - a table of cases
        self, text: str, *, is_cut: bool, stopped_by: object, until: str, where: str
    ) -> Ended:
        """Return the step; `stopped_by` is the stop text, another value at the end of text, or `UNSAID`."""
        if until == "end":
            return Ended(text, "length" if is_cut else "stop")
        if self.step_end == "newline":
            head, found, _ = text.partition(self.separator)
            if found:
                return Ended(head + found, "step")
            return Ended(text, "length" if is_cut else "stop")
        if is_cut:
            return Ended(text, "length")
        has_separator = text.endswith(self.separator)
        if stopped_by is not UNSAID:
            if stopped_by != self.separator:
                return Ended(text, "stop")
            return Ended(text if has_separator else text + self.separator, "step")
        if has_separator:
            self.keeps_stops = True
            return Ended(text, "step")
        if self.step_end == "auto" and not self.keeps_stops:
            raise CompletionError(
                f"{where}: does not say whether a text ended by itself or at the end of a step: it gives no "
                "'stop_reason', and the text does not end with the separator. Hint: step_end='text' if "
                "the server leaves the separator in its texts; step_end='newline' lets the model write on and "
                "cuts the text here, which costs tokens."
            )
        return Ended(text, "stop")
