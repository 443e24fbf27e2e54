"""Random numbers by position: each is a hash of a seed, a purpose and the place of its use.

No number depends on how many others are drawn. A simulation that grows keeps its earlier rows and
can be made in blocks of any size. The hash is SplitMix64 (Steele, Lea and Flood, Fast splittable
pseudorandom number generators, OOPSLA 2014) read at a position instead of in sequence: 64-bit
integer arithmetic, the same on every platform and under every version of numpy.
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
_FACTOR_1: Final = 0xBF58_476D_1CE4_E5B9
_FACTOR_2: Final = 0x94D0_49BB_1331_11EB
_ROOT_3: Final = 1.732_050_807_568_877_2


class Purpose(IntEnum):
    """The purposes of draws; each has its own stream."""

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
    """Draw 64 bits at positions, from 0, of each key's stream; they can serve as keys again."""
    x = positions.astype(np.uint64)
    x += np.uint64(1)
    x *= np.uint64(_GAMMA)
    x = keys + x
    x ^= x >> np.uint64(30)
    x *= np.uint64(_FACTOR_1)
    x ^= x >> np.uint64(27)
    x *= np.uint64(_FACTOR_2)
    x ^= x >> np.uint64(31)
    return x


def one_bits_at(key: int, position: int) -> int:
    """Draw 64 bits at one position of one key: `bits_at` in Python's integers, faster for one number."""
    x = (key + (position + 1) * _GAMMA) & _WORD
    x = (x ^ x >> 30) * _FACTOR_1 & _WORD
    x = (x ^ x >> 27) * _FACTOR_2 & _WORD
    return x ^ x >> 31


def problem_bits(seed: int, purpose: Purpose, problems: Ints) -> Bits:
    """Draw 64 bits for each problem number; the seed is from 0 to 2^64 - 1."""
    start = bits_at(np.array([seed], dtype=np.uint64), np.array([0]))
    return bits_at(bits_at(start, np.array([int(purpose)])), problems)


def uniforms(bits: Bits) -> Floats:
    """Turn bits into numbers in [0, 1), multiples of 2^-53."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def bells(bits: Bits) -> Floats:
    """Turn bits into bell-shaped numbers of mean 0 and variance 1, within -3.47 and 3.47."""
    # The sum of four 16-bit uniforms is exact arithmetic, unlike a logarithm or a cosine. It differs
    # from a normal variable by less than 0.01 in probability.
    low = np.uint64(0x0000_FFFF_0000_FFFF)
    pairs = (bits & low) + ((bits >> np.uint64(16)) & low)
    total = (pairs & np.uint64(_WORD >> 32)) + (pairs >> np.uint64(32))
    return (total.astype(np.float64) + 2.0 - 2.0**17) * (_ROOT_3 * 2.0**-16)


def integers_below(bits: Bits, bounds: Ints | int) -> Ints:
    """Turn bits into integers from 0 to a bound, excluded; bounds are small against 2^53."""
    return np.asarray(uniforms(bits) * bounds, dtype=np.int64)
