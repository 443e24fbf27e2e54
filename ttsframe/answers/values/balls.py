"""Exact rationals, certified real and complex balls, and the leading bits that they prove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha512
from typing import Any, Final, TypeAlias

from flint import acb, arb, fmpq, fmpz

__all__ = [
    "LARGEST_ARGUMENT",
    "LARGEST_BITS",
    "ONE",
    "ZERO",
    "OutsideDomain",
    "TooImprecise",
    "Uncertified",
    "Value",
    "all_show",
    "as_rational",
    "check_absorption",
    "checked_exponent",
    "checked_rational",
    "exact_root",
    "gamma_function",
    "integer_power",
    "leading_bits",
    "magnitude_of",
    "part_key",
    "positive_power",
    "resolve_zero",
    "symbol_value",
]

Value: TypeAlias = Any
"""An fmpq if exact, else an arb or acb."""

ZERO: Final = fmpq(0)
ONE: Final = fmpq(1)

KEY_BITS: Final = 384
ABSORBED_BITS: Final = 119
"""A term that is smaller than its sum by more bits is lost in the sum."""
LARGEST_BITS: Final = 100_000
"""Largest size of an exact number; larger ones have keys made of residues."""
_ABSORBED: Final = 2.0**-ABSORBED_BITS
ROUGH_BITS: Final = 300
"""Largest size of a rational beside an irrational, without its small prime factors."""
RATIONAL_BITS: Final = 110
"""Largest denominator of a rational that is recognized in a ball."""
_LARGEST_DENOMINATOR: Final = 2**RATIONAL_BITS
_LARGE_QUOTIENT: Final = 2**40
LARGEST_ARGUMENT: Final = 1e7
"""Largest exponent and argument of a function."""
FLAT: Final = 1e-18
"""A smaller exponent gives a power too close to one."""
SMALL_PRIMES: Final = (2, 3, 5, 7, 11, 13)


class Uncertified(Exception):  # noqa: N818 (a verdict on a value, not a failure; so are the next two)
    """The value is undefined, out of bounds, or cannot be certified."""


class TooImprecise(Exception):  # noqa: N818
    """The ball is too wide at this precision."""


class OutsideDomain(Exception):  # noqa: N818
    """A real function is outside its domain at a point where some symbols are negative."""


# Where symbols stand: below one, where 1 - x and arcsin x are real; the same with mixed signs; a little
# above one with the opposite signs; and far enough out for ln(x - 3), if the first fails. Powers
# neither vanish nor swamp the rest at the first three. The last two, far out on both sides, are for |x - 5|.
# Least value and width, in thousandths.
_RANGES: Final = (
    (500, 450),
    (500, 450),
    (1_050, 850),
    (3_500, 1_000),
    (300_000, 400_000),
    (300_000, 400_000),
)
FAR_POINTS: Final = (4, 5)
_UNIT: Final = 2**448


@lru_cache(maxsize=4_096)
def symbol_value(name: str, point: int) -> Value:
    """Return the value of a symbol at one of the hidden points."""
    seed = name.encode(errors="surrogatepass")
    low, width = _RANGES[point]
    random = int.from_bytes(sha512(b"%d:" % point + seed).digest()[:56], "big")
    mantissa = (low * _UNIT + width * random) // 1_000
    # by the sum of its letters, so that neighbors such as x and y have opposite signs
    if point == FAR_POINTS[1] or (point in {1, 2} and (sum(seed) + point) % 2):
        mantissa = -mantissa
    return arb((mantissa, -448))


# Keys quantize the value times this offset: simple numbers lie on the edges of a decimal or binary grid, but
# not on the edges of this one.
_OFFSET: Final = arb((
    6 * 2**448 // 10 + int.from_bytes(sha512(b"offset").digest()[:56], "big"),
    -448,
))


def leading_bits(value: Value) -> str:
    """Return sign, exponent and leading bits of a real ball that proves them."""
    if not value.is_finite():
        raise Uncertified
    if value.rel_accuracy_bits() < KEY_BITS + 20:
        raise TooImprecise
    scaled = value * _OFFSET
    top = _binary_exponent(scaled)
    whole = (scaled * _power_of_two(KEY_BITS - top)).floor().unique_fmpz()
    if whole is None:
        raise TooImprecise
    return f"{whole.str(16)}p{top}"


@lru_cache(maxsize=1_024)
def _power_of_two(exponent: int) -> Value:
    return arb((1, exponent))


def part_key(value: Value) -> str:
    """Return the leading bits of a value at one point."""
    if type(value) is arb:
        return leading_bits(value)
    if type(value) is acb:
        real, imaginary = value.real, value.imag
        return f"{'0' if real.is_zero() else leading_bits(real)}i{leading_bits(imaginary)}"
    return leading_bits(arb(value)) if value else "0"


def as_rational(value: Value) -> Value | None:
    """Recognize a rational number of moderate size by its continued fraction."""
    if not value.is_finite():
        raise Uncertified
    if value.rel_accuracy_bits() < KEY_BITS + 20:
        raise TooImprecise
    mantissa, exponent = value.mid().man_exp()
    shift = int(exponent)
    if not -20_000 < shift < 400:
        return None
    a, b = (int(mantissa) << shift, 1) if shift >= 0 else (int(mantissa), 1 << -shift)
    is_negative = a < 0
    a = abs(a)
    p0, q0, p1, q1 = 0, 1, 1, 0
    while q1 < _LARGEST_DENOMINATOR:
        quotient, rest = divmod(a, b)
        # After such a large partial quotient, the convergent agrees with the ball to the last proven bit.
        if (
            quotient > _LARGE_QUOTIENT
            and q1
            and p1
            and quotient.bit_length() + q1.bit_length() + p1.bit_length() > KEY_BITS
        ):
            break
        p0, q0, p1, q1 = p1, q1, quotient * p1 + p0, quotient * q1 + q0
        if not rest:
            break
        a, b = b, rest
    if q1.bit_length() > RATIONAL_BITS or p1.bit_length() > 2 * RATIONAL_BITS:
        return None
    return fmpq(-p1 if is_negative else p1, q1)


def resolve_zero(value: Value, is_final: bool) -> Value:
    """Replace a value that cannot be told from zero at the last precision by zero."""
    if type(value) is fmpq:
        return value
    if type(value) is arb:
        if 0 not in value and value.is_finite():
            return value
        if not value.is_finite():
            raise Uncertified if is_final else TooImprecise
        if value.is_zero():
            return ZERO
        if not is_final:
            raise TooImprecise
        return ZERO
    if not value.is_finite():
        raise Uncertified if is_final else TooImprecise
    real, imaginary = value.real, value.imag
    if 0 in imaginary:
        if not is_final and not imaginary.is_zero():
            raise TooImprecise
        return resolve_zero(real, is_final)
    if 0 in real and not real.is_zero():
        if not is_final:
            raise TooImprecise
        return acb(0, imaginary)
    return value


def checked_rational(value: Value) -> Value:
    """Return a rational; raise if it has more digits than would show beside an irrational."""
    if value.height_bits() > ROUGH_BITS:
        rough = 0
        for part in (value.p, value.q):
            rest = part
            for prime in SMALL_PRIMES:
                rest = _divide_out(rest, prime)
            rough += rest.bit_length()
        if rough > ROUGH_BITS:
            raise Uncertified
    return value


def _divide_out(value: Value, prime: int) -> Value:
    """Divide by all powers of a prime, the largest first."""
    powers = [fmpz(prime)]
    while powers[-1].bit_length() * 2 <= value.bit_length():
        powers.append(powers[-1] ** 2)
    for power in reversed(powers):
        quotient, rest = divmod(value, power)
        if not rest:
            value = quotient
    return value


def magnitude_of(value: Value) -> float:
    """Return the magnitude of a ball as a float; infinity beyond the range of floats."""
    try:
        return abs(complex(value)) if type(value) is acb else abs(float(value))
    except OverflowError:
        return math.inf


def check_absorption(balls: Sequence[Value]) -> None:
    """Raise if a sum is so large that one of its terms no longer shows in it."""
    if all_show(balls):
        return
    tops = list(map(_binary_exponent, balls))
    if max(tops) - min(tops) > ABSORBED_BITS:
        raise Uncertified


def all_show(values: Sequence[Value]) -> bool:
    """Tell whether all of the terms of a sum, each a ball or a list of balls, are of similar size."""
    balls = [ball for value in values for ball in (value if type(value) is list else (value,))]
    try:
        sizes = sorted(map(abs, map(float, balls)))
    except TypeError:
        sizes = sorted(map(magnitude_of, balls))
    return 1e-250 < sizes[-1] < 1e290 and sizes[0] > sizes[-1] * _ABSORBED


def _binary_exponent(value: Value) -> int:
    """Return the binary exponent of a value that is not zero."""
    ball = abs(value) if type(value) is acb else value
    number = float(ball)
    if 1e-250 < abs(number) < 1e290:
        return math.frexp(number)[1]
    mantissa, exponent = ball.mid().man_exp()
    return int(mantissa.bit_length()) + int(exponent)


def checked_exponent(exponent: Value) -> Value:
    """Return an exponent; raise if its power is too large, or too close to one to show it."""
    if isinstance(exponent, fmpq):
        return arb(exponent)
    magnitude = magnitude_of(exponent)
    if magnitude > LARGEST_ARGUMENT or (magnitude < FLAT and not exponent.is_zero()):
        raise Uncertified
    return exponent


def gamma_function(value: Value) -> Value:
    """Return the gamma function of a ball of moderate size."""
    if magnitude_of(value) > LARGEST_ARGUMENT:
        raise Uncertified
    return value.gamma()


def integer_power(base: Value, exponent: int) -> Value:
    """Raise a value to an integer power."""
    if isinstance(base, fmpq):
        if not exponent:
            if base == 0:
                raise Uncertified
            return ONE
        if base == 0:
            if exponent < 0:
                raise Uncertified
            return base
        if abs(base) != 1 and base.height_bits() * abs(exponent) > LARGEST_BITS:
            raise Uncertified
        return base ** (exponent % 2) if abs(base) == 1 else base**exponent
    if abs(exponent) > LARGEST_ARGUMENT:
        raise Uncertified
    if not exponent:
        return ONE
    return base**exponent


def exact_root(base: Value, degree: int) -> Value | None:
    """Return the root of a positive rational if it is rational, else None."""
    if degree > 64:
        return None
    top = base.p.root(degree)
    if top**degree != base.p:
        return None
    low = base.q.root(degree)
    return fmpq(top, low) if low**degree == base.q else None


def positive_power(base: Value, exponent: Value) -> Value:
    """Raise a positive ball to a rational power."""
    top, low = int(exponent.p), int(exponent.q)
    if low == 2:
        root = base.sqrt()
    elif low <= 64:
        root = base.root(low)
    else:
        return checked_exponent(base.log() * exponent).exp()
    return root if top == 1 else integer_power(root, top)
