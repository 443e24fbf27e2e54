"""Random numbers by position: each one is a hash of a seed, a purpose and where it is used.

No number depends on how many others are drawn, so a simulation that grows keeps what it had, and
can be made in blocks of any size. The hash is SplitMix64, whose stream is read at a position
instead of in sequence: 64-bit integer arithmetic alone, the same on every platform and under every
version of numpy, whose own generators promise no such thing for their distributions.

References
----------
G. L. Steele, D. Lea, C. H. Flood. Fast splittable pseudorandom number generators. OOPSLA 2014.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Bits: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_WORD: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E37_79B9_7F4A_7C15
_ROOT_3: Final = 1.732_050_807_568_877_2
_INT_FACTOR_1, _INT_FACTOR_2 = 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB
_SHIFT_1, _SHIFT_2, _SHIFT_3, _TO_53_BITS = (np.uint64(shift) for shift in (30, 27, 31, 11))
_FACTOR_1, _FACTOR_2 = np.uint64(_INT_FACTOR_1), np.uint64(_INT_FACTOR_2)


class Purpose(IntEnum):
    """What a number is drawn for; each purpose has a stream of its own."""

    ACCURACY = 1
    FAMILY = 2
    SIGN = 3
    DENOMINATOR = 4
    VALUE = 5
    STRIDE = 6
    OUTCOME = 7
    WRONG_ANSWER = 8
    SPELLING = 9
    N_STEPS = 10
    QUALITY = 11
    STEP = 12
    N_TOKENS = 13
    TEXT = 14
    HALF = 15


def bits_at(keys: Bits, positions: Ints) -> Bits:
    """Draw 64 bits at a position of each key's stream.

    Parameters
    ----------
    keys
        Start of each stream.
    positions
        Positions from 0, broadcast against the keys.

    Returns
    -------
    Bits
        The bits, each a possible key of a further stream.
    """
    x = keys + (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(_GAMMA)
    x ^= x >> _SHIFT_1
    x *= _FACTOR_1
    x ^= x >> _SHIFT_2
    x *= _FACTOR_2
    x ^= x >> _SHIFT_3
    return x


def problem_bits(seed: int, purpose: Purpose, problems: Ints) -> Bits:
    """Draw 64 bits for each problem.

    Parameters
    ----------
    seed
        Seed of the whole simulation, 0 to 2^64 - 1.
    purpose
        What the bits are for.
    problems
        Numbers of the problems.

    Returns
    -------
    Bits
        One per problem.
    """
    start = bits_at(np.array([seed], dtype=np.uint64), np.array([0]))
    return bits_at(bits_at(start, np.array([int(purpose)])), problems)


def uniforms(bits: Bits) -> Floats:
    """Turn bits into numbers in [0, 1), multiples of 2^-53.

    Parameters
    ----------
    bits
        64 random bits each.

    Returns
    -------
    Floats
        The numbers.
    """
    return (bits >> _TO_53_BITS).astype(np.float64) * 2.0**-53


def bells(bits: Bits) -> Floats:
    """Turn bits into bell-shaped numbers of mean 0 and variance 1, within -3.47 and 3.47.

    Four 16-bit uniforms are added, which unlike a logarithm or a cosine is exact arithmetic, the
    same on every machine; the sum differs from a normal variable by less than 0.01 in probability.

    Parameters
    ----------
    bits
        64 random bits each.

    Returns
    -------
    Floats
        The numbers.
    """
    low = np.uint64(0x0000_FFFF_0000_FFFF)
    pairs = (bits & low) + ((bits >> np.uint64(16)) & low)
    total = (pairs & np.uint64(_WORD >> 32)) + (pairs >> np.uint64(32))
    return (total.astype(np.float64) + 2.0 - 2.0**17) * (_ROOT_3 * 2.0**-16)


def integers_below(bits: Bits, bounds: Ints | int) -> Ints:
    """Turn bits into integers from 0 to a bound, which is excluded.

    Parameters
    ----------
    bits
        64 random bits each.
    bounds
        Positive bounds, small against 2^53.

    Returns
    -------
    Ints
        The integers.
    """
    return np.asarray(uniforms(bits) * bounds, dtype=np.int64)


def one_bits_at(key: int, position: int) -> int:
    """Draw 64 bits at one position of one key: `bits_at` on Python integers, much faster for one number."""
    x = (key + (position + 1) * _GAMMA) & _WORD
    x = (x ^ x >> 30) * _INT_FACTOR_1 & _WORD
    x = (x ^ x >> 27) * _INT_FACTOR_2 & _WORD
    return x ^ x >> 31
