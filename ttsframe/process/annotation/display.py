"""A line on the terminal that tells how far an annotation is, how fast, and what it costs."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Self

from ttsframe._http import Usage, check_prices
from ttsframe.errors import ParameterTypeError
from ttsframe.process.annotation.completers import Completer

__all__ = ["RolloutProgress"]


class RolloutProgress:
    """Shows the progress of `annotate` on a terminal: rollouts, their rate, tokens and cost.

    It is a context manager; what it yields is the `progress` of `annotate`. Where standard error is no
    terminal, nothing is drawn.

    Parameters
    ----------
    completer
        An `openai_completer`, whose tokens are shown; None: no tokens.
    price_in, price_out
        Price of a million tokens of the prompts, and of a million generated tokens, at least 0, in any
        currency. None: no cost is shown.

    Raises
    ------
    ParameterTypeError
        When a price is no number, or is given for a completer that counts no tokens.
    ParameterError
        When a price is negative.

    Examples
    --------
    >>> import ttsframe as tts
    >>> completer = tts.process.openai_completer("http://localhost:8000/v1", "tiny")
    >>> with tts.process.RolloutProgress(completer, price_in=0.1, price_out=0.4) as progress:
    ...     progress(0, 200)
    >>> str(progress).partition(" (")[0]
    '0 of 200 rollouts'
    """

    def __init__(
        self,
        completer: Completer | None = None,
        *,
        price_in: float | None = None,
        price_out: float | None = None,
    ) -> None:
        usage = getattr(completer, "usage", None)
        self._usage = usage if isinstance(usage, Usage) else None
        self._prices = check_prices(price_in=price_in, price_out=price_out)
        if self._prices is not None and self._usage is None:
            raise ParameterTypeError(
                f"price_in and price_out need a completer that counts tokens, got "
                f"{type(completer).__name__}. Hint: tts.process.openai_completer(...) is one."
            )
        self._begun = time.monotonic()
        self._n_first: int | None = None
        self._n_done = self._n_all = 0
        self._is_drawn = False

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._is_drawn = sys.stderr.isatty()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        if self._is_drawn:
            self._draw("")
        self._is_drawn = False

    def __call__(self, n_done: int, n_all: int, /) -> None:
        """Take the numbers of finished and of all rollouts."""
        if self._n_first is None:  # what a cache held took no time
            self._n_first, self._begun = n_done, time.monotonic()
        self._n_done, self._n_all = n_done, n_all
        if self._is_drawn:
            self._draw(str(self))

    @staticmethod
    def _draw(line: str) -> None:
        n_columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{line[: n_columns - 1]}")
        sys.stderr.flush()

    def __str__(self) -> str:
        """Return what is known so far, in a line."""
        seconds = max(time.monotonic() - self._begun, 1e-9)
        rate = (self._n_done - (self._n_first or 0)) / seconds
        text = f"{self._n_done:,} of {self._n_all:,} rollouts ({rate:,.1f} a second)"
        usage = self._usage
        if usage is None:
            return text
        text += (
            f", {usage.n_prompt_tokens:,} prompt and {usage.n_completion_tokens:,} generated tokens"
        )
        if self._prices is not None:
            text += f", cost {usage.cost(*self._prices):,.4g}"
        return text + (f", {usage.n_lost:,} given up" if usage.n_lost else "")
