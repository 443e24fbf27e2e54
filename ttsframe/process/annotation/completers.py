"""What completes prefixes: any callable, whose word is not taken for what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import polars as pl

from ttsframe.errors import CompletionError

__all__ = ["Completer", "Prefix"]


class Prefix(str):
    r"""The text that a completer continues, which knows where the problem ends.

    It is a string, and most completers need no more. A completer that applies a chat template puts
    `context` into the user's message and `solution` at the beginning of the assistant's.

    Parameters
    ----------
    context
        What comes before the steps: the problem and the instructions around it.
    solution
        The steps so far, each with its separator behind it; empty for the bare problem.

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
        """Join the parts.

        Returns
        -------
        Self
            The text.
        """
        made = super().__new__(cls, context + solution)
        made.context = context
        made.solution = solution
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Give what a copy is made of; a string would be copied from its text alone.

        Returns
        -------
        tuple[str, str]
            The parts.
        """
        return self.context, self.solution


class Completer(Protocol):
    """Something that continues texts: a function, or an object that can be called.

    Called with a list of prefixes (each a `Prefix`, which is a string) and the number of
    completions wanted of each, it returns as many lists, in the same order, of as many strings:
    what follows the prefix, without the prefix. It is called from one thread, one call at a time.
    An attribute ``key`` (a string) that tells it from another completer saves naming it to
    `annotate` along with a cache.

    Examples
    --------
    >>> import ttsframe as tts
    >>> def of_length(prefixes, n):
    ...     return [[f"So it is {len(prefix)}."] * n for prefix in prefixes]
    >>> completer: tts.process.Completer = of_length
    >>> completer(["What is 7 x 6 + 5?"], 2)
    [['So it is 18.', 'So it is 18.']]
    """

    def __call__(self, prefixes: list[str], n: int, /) -> Sequence[Sequence[str]]:
        """Continue each prefix `n` times."""


def complete(completer: Completer, prefixes: list[str], n: int, *, batch: str) -> pl.Series:
    """Have a batch completed, and check what comes back.

    Parameters
    ----------
    completer
        Completes it.
    prefixes
        The batch.
    n
        Completions of each prefix.
    batch
        What the batch is, for the message.

    Returns
    -------
    pl.Series
        String, ``len(prefixes) * n`` values, those of one prefix together; a lone surrogate, which
        no file could hold, is a replacement character.

    Raises
    ------
    CompletionError
        When the completer returned something else than was asked for.
    """
    found: object = completer(list(prefixes), n)
    texts: list[str] = []
    for i, listed in enumerate(_listed(found, len(prefixes), f"{batch}: the completer", "lists")):
        where = f"{batch}: the completer, for prefix {i} of the batch,"
        for j, text in enumerate(_listed(listed, n, where, "completions")):
            if not isinstance(text, str):
                raise CompletionError(
                    f"{where} returned a {type(text).__name__} as completion {j}, must be a str. "
                    "Hint: a model that wrote nothing has the completion ''."
                )
            texts.append(text)
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        return pl.Series([_encodable(text) for text in texts], dtype=pl.String)


def _listed(found: object, n: int, where: str, what: str) -> Sequence[object]:
    """Return a sequence of the length that was asked for; a string is none."""
    if isinstance(found, str | bytes) or not isinstance(found, Sequence):
        hint = " Hint: return list(...) of a generator or an array."
        raise CompletionError(
            f"{where} returned a {type(found).__name__}, must be a list of {n:,} {what}.{hint}"
        )
    if len(found) != n:
        raise CompletionError(f"{where} returned {len(found):,} {what}, must be {n:,}.")
    return found


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
