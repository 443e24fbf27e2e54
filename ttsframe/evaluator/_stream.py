"""Random numbers in sequence, each stream started by what it is for.

The hash is that of `ttsframe._draws`, the same on every platform and under every version of Python
and numpy.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from hashlib import blake2b
from typing import TypeVar

from ttsframe._draws import GAMMA, WORD, mix

__all__ = ["Stream"]

ItemT = TypeVar("ItemT")


class Stream:
    """A stream of random numbers that is a function of numbers and texts."""

    def __init__(self, *parts: int | str) -> None:
        self._state = 0
        for part in parts:
            number = _hashed(part) if isinstance(part, str) else part
            self._state = mix(self._state + number * GAMMA + GAMMA)

    def bits(self) -> int:
        """Draw 64 bits.

        Returns
        -------
        int
            From 0 to 2^64 - 1.
        """
        self._state = (self._state + GAMMA) & WORD
        return mix(self._state)

    def uniform(self) -> float:
        """Draw a number in [0, 1), a multiple of 2^-53.

        Returns
        -------
        float
            The number.
        """
        return (self.bits() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """Draw an integer from 0 to a bound, which is excluded.

        Parameters
        ----------
        bound
            Positive, small against 2^64.

        Returns
        -------
        int
            The integer.
        """
        return self.bits() * bound >> 64

    def between(self, least: int, most: int) -> int:
        """Draw an integer from a closed range.

        Parameters
        ----------
        least
            Smallest.
        most
            Largest.

        Returns
        -------
        int
            The integer.
        """
        return least + self.below(most - least + 1)

    def chosen(self, shares: Sequence[float]) -> int:
        """Draw the position of one of some shares.

        Parameters
        ----------
        shares
            Chances that add up to 1.

        Returns
        -------
        int
            The position; one whose share is 0 is never drawn.
        """
        number, total, last = self.uniform(), 0.0, 0
        for position, share in enumerate(shares):
            total += share
            last = position if share else last
            if number < total:
                return position
        return last  # the shares add up to a little less than 1

    def shuffle(self, items: MutableSequence[ItemT]) -> None:
        """Put items into random order, in place.

        Parameters
        ----------
        items
            What is shuffled.
        """
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def _hashed(text: str) -> int:
    """Hash a text to 64 bits; a lone surrogate is a text like any other."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
