"""Random numbers in sequence: those of `ttsframe._draws` at the positions 0, 1, 2, ... of a key."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from hashlib import blake2b
from typing import TypeVar

from ttsframe._draws import one_bits_at

__all__ = ["Stream"]

ItemT = TypeVar("ItemT")


class Stream:
    """A stream of random numbers whose key is a function of numbers and texts."""

    def __init__(self, *parts: int | str) -> None:
        self._key = 0
        for part in parts:
            self._key = one_bits_at(self._key, _hashed(part) if isinstance(part, str) else part)
        self._position = -1

    def bits(self) -> int:
        """Draw 64 bits."""
        self._position += 1
        return one_bits_at(self._key, self._position)

    def uniform(self) -> float:
        """Draw a number in [0, 1), a multiple of 2^-53."""
        return (self.bits() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """Draw an integer from 0 to a bound, which is excluded and small against 2^64."""
        return self.bits() * bound >> 64

    def between(self, least: int, most: int) -> int:
        """Draw an integer from a closed range."""
        return least + self.below(most - least + 1)

    def chosen(self, shares: Sequence[float]) -> int:
        """Draw a position with probabilities that add up to 1; one with probability 0 is never drawn."""
        number, total, last = self.uniform(), 0.0, 0
        for position, share in enumerate(shares):
            total += share
            last = position if share else last
            if number < total:
                return position
        return last  # the shares add up to slightly less than 1

    def shuffle(self, items: MutableSequence[ItemT]) -> None:
        """Shuffle items in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def _hashed(text: str) -> int:
    """Hash a text, which may have lone surrogates, to 64 bits."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
