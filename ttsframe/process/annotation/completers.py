"""Completers of prefixes: any callable; its output is validated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import polars as pl

from ttsframe.errors import CompletionError

__all__ = ["Completer", "Failed", "Prefix"]


class Prefix(str):
    r"""A text for a completer to continue that knows where the problem ends.

    It is a string, which is enough for most completers. A completer that applies a chat template puts
    `context` into the user's message and `solution` at the start of the assistant's message.

    Parameters
    ----------
    context
        The text before the steps: the problem and the instructions around it.
    solution
        The steps so far, each followed by its separator; empty for the bare problem.

    Examples
    --------
    >>> import ttsframe as tts
    >>> prefix = tts.process.Prefix("What is 7 x 6 + 5?\n\n", "7 x 6 = 42\n")
    >>> prefix.solution
    '7 x 6 = 42\n'
    >>> prefix == "What is 7 x 6 + 5?\n\n7 x 6 = 42\n"
    True
    """

    __slots__ = ("context", "solution")

    context: str
    solution: str

    def __new__(cls, context: str, solution: str) -> Self:
        """Join the parts."""
        prefix = super().__new__(cls, context + solution)
        prefix.context = context
        prefix.solution = solution
        return prefix

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Return the parts, from which copies and pickles are made."""
        return self.context, self.solution


@dataclass(frozen=True)
class Failed:
    """What a completer returns in the place of a completion that it gave up.

    A request that failed for its length or its time must not be drawn again: the short completions
    would come through, the long ones would be replaced. It is recorded, and has no label.

    Parameters
    ----------
    finish_reason
        "error", or "length" where the text did not fit into the model's context.

    Examples
    --------
    >>> import ttsframe as tts
    >>> def completer(prefixes, n):
    ...     return [["So it is 47."] * (n - 1) + [tts.process.Failed()] for prefix in prefixes]
    >>> completer(["What is 7 x 6 + 5?"], 2)
    [['So it is 47.', Failed(finish_reason='error')]]
    """

    finish_reason: Literal["error", "length"] = "error"


class Completer(Protocol):
    """A function or callable object that continues texts.

    It is called with a list of prefixes (each a `Prefix`, which is a string) and the number of
    completions `n`, and returns one list of `n` strings per prefix, in the same order: the text after
    the prefix, without the prefix, or `Failed` where it was given up. It is called from one thread, one call at a time. A string
    attribute ``key`` that identifies the completer replaces the parameter `key` of `annotate`, which
    a cache needs.

    Examples
    --------
    >>> import ttsframe as tts
    >>> def of_length(prefixes, n):
    ...     return [[f"So it is {len(prefix)}."] * n for prefix in prefixes]
    >>> completer: tts.process.Completer = of_length
    >>> completer(["What is 7 x 6 + 5?"], 2)
    [['So it is 18.', 'So it is 18.']]
    """

    def __call__(self, prefixes: list[str], n: int, /) -> Sequence[Sequence[str | Failed]]:
        """Continue each prefix `n` times."""


def complete(completer: Completer, prefixes: list[str], n: int, *, batch: str) -> pl.DataFrame:
    """Complete a batch, and check the result; the completions of one prefix are consecutive."""
    result: object = completer(list(prefixes), n)
    texts: list[str | None] = []
    reasons: list[str | None] = []
    for i, row in enumerate(_sequence(result, len(prefixes), f"{batch}: the completer", "lists")):
        where = f"{batch}: the completer, for prefix {i} of the batch,"
        for j, text in enumerate(_sequence(row, n, where, "completions")):
            if not isinstance(text, str | Failed):
                raise CompletionError(
                    f"{where} returned a {type(text).__name__} as completion {j}, must be a str. "
                    "Hint: use '' for an empty completion, tts.process.Failed() for one that was given up."
                )
            texts.append(text if isinstance(text, str) else None)
            reasons.append(None if isinstance(text, str) else text.finish_reason)
    try:
        completions = pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        completions = pl.Series([text and _encodable(text) for text in texts], dtype=pl.String)
    return pl.DataFrame({
        "completion": completions,
        "finish_reason": pl.Series(reasons, dtype=pl.String),
    })


def _sequence(value: object, n: int, where: str, items: str) -> Sequence[object]:
    """Check that a value is a sequence of the expected length, and not a string."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise CompletionError(
            f"{where} returned a {type(value).__name__}, must be a list of {n:,} {items}. Hint: "
            "return list(...) of a generator or an array."
        )
    if len(value) != n:
        raise CompletionError(f"{where} returned {len(value):,} {items}, must be {n:,}.")
    return value


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no file could hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
