"""The certified value of a parsed scalar, and the key of that value.

Rational arithmetic stays exact. Everything else is a ball of python-flint: a midpoint with a proven
radius. A key is the value's leading bits, written only where the ball proves them; a ball that is
too wide, or that cannot be told from zero, is computed again with four times the digits, and what is
still nothing then is zero. Free symbols stand at fixed hidden points, so that two expressions have
one key exactly when they agree there.

A sum that swallows one of its terms, or a function so flat that its argument no longer shows, would
merge different answers: such a scalar is lost here, and is left to residues modulo large primes
where it is a rational expression, else to its text.
"""

from __future__ import annotations

import os
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b, sha512
from math import isfinite
from threading import Lock
from typing import Any, Final, TypeAlias

from flint import acb, arb, ctx, fmpq, fmpz

from ttsframe.answers.latex import INFINITY, MOST_TERMS, Node, symbols_of, uses_function
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.rational import rational_key
from ttsframe.answers.residues import residue_key

__all__ = ["Lost", "Scalar", "real_number", "scalar_key", "scale_free_key", "sign_of", "value_of"]

Value: TypeAlias = Any
"""An fmpq while exact, else an arb or acb."""

Scalar: TypeAlias = tuple[str, str]
"""Body of a key and its kind: exact, numeric or symbolic."""

PRECISIONS: Final = ((576, False), (2_304, True))
KEY_BITS: Final = 384
ABSORBED: Final = 1e-36
"""A term smaller than this part of a sum, about 2^-120, no longer shows well enough in it."""
LARGEST_BITS: Final = 100_000
"""Of an exact number; larger ones are known by their residues."""
ROUGH_BITS: Final = 300
"""Of a rational that meets an irrational, without its small prime factors."""
RATIONAL_BITS: Final = 110
MOST_STEPS: Final = 10_000
"""Nodes evaluated, and 64 bits handled by an operation on large exact numbers, count one each."""
LARGE_BITS: Final = 4_096
LARGEST_ARGUMENT: Final = 1e7
FLAT: Final = 1e-18

ZERO: Final = fmpq(0)
ONE: Final = fmpq(1)
SMALL_PRIMES: Final = (2, 3, 5, 7, 11, 13)
_REAL_FUNCTIONS: Final = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth",
    "sech": "sech", "csch": "csch", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "gamma": "gamma",
}  # fmt: skip
_FLAT_AT_ZERO: Final = frozenset({"cos", "cosh", "sec", "sech"})
_FLAT_FAR_OUT: Final = frozenset({"tanh", "coth", "arctan"})

_lock = Lock()


def _renew_lock() -> None:
    # A lock that another thread held at the moment of a fork would never be released in the child.
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Lost(Exception):  # noqa: N818
    """The value is undefined, out of bounds, or cannot be certified."""


class _MoreDigits(Exception):  # noqa: N818
    """The ball is too wide at this precision."""


class _Outside(Exception):  # noqa: N818
    """A real function left its domain at a point where some symbols are negative."""


def scalar_key(node: Node, policy: AnswerPolicy) -> Scalar:
    """Return the key of a scalar.

    Parameters
    ----------
    node
        Its tree.
    policy
        The conventions.

    Returns
    -------
    tuple[str, str]
        Body of the key, and the kind: exact, numeric or symbolic.

    Raises
    ------
    Lost
        When no key can be certified within the limits.
    """
    symbols = symbols_of(node)
    with _lock:
        before = ctx.prec
        try:
            return _symbolic_key(node, policy) if symbols else _constant_key(node, policy)
        except Lost:
            residue = residue_key(node, policy)
            if residue is None:
                raise
            return residue, "symbolic" if symbols else "exact"
        finally:
            ctx.prec = before


def scale_free_key(node: Node, policy: AnswerPolicy, *, signed: bool) -> str:
    """Return the key of an expression up to a constant factor, a positive one if ``signed``.

    Parameters
    ----------
    node
        The tree of an expression with free symbols.
    policy
        The conventions.
    signed
        Whether only a positive factor is allowed, as for the two sides of an inequality.

    Returns
    -------
    str
        Body of the key: the ratios of the expression's values at hidden points.

    Raises
    ------
    Lost
        When no key can be certified within the limits.
    """
    with _lock:
        before = ctx.prec
        try:
            return _ratios(node, policy, signed=signed)
        finally:
            ctx.prec = before


def sign_of(node: Node, policy: AnswerPolicy) -> int:
    """Return the sign of a real constant.

    Parameters
    ----------
    node
        The tree of a scalar without free symbols.
    policy
        The conventions.

    Returns
    -------
    int
        -1, 0 or 1.

    Raises
    ------
    Lost
        When it is not a real constant that can be certified.
    """
    value = value_of(node, policy)
    if isinstance(value, acb):
        raise Lost
    return 1 if value > 0 else -1 if value < 0 else 0


def value_of(node: Node, policy: AnswerPolicy) -> Value:
    """Return the value of a constant: an fmpq, or a certified arb or acb.

    Parameters
    ----------
    node
        The tree of a scalar without free symbols.
    policy
        The conventions.

    Returns
    -------
    fmpq or arb or acb
        The value.

    Raises
    ------
    Lost
        When it cannot be certified.
    """
    with _lock:
        before = ctx.prec
        try:
            for precision, is_final in PRECISIONS:
                ctx.prec = precision
                try:
                    value = _settled(_Evaluation(policy, None, is_final).value(node), is_final)
                except _MoreDigits:
                    continue
                return value
        finally:
            ctx.prec = before
    raise Lost


def real_number(node: Node, policy: AnswerPolicy) -> Fraction | float | None:
    """Return the value of a constant as a Fraction or float.

    Parameters
    ----------
    node
        The tree of a scalar without free symbols.
    policy
        The conventions.

    Returns
    -------
    Fraction or float or None
        None where it is not real, or past the range of floats.

    Raises
    ------
    Lost
        When it cannot be certified.
    """
    if symbols_of(node) or (policy.log_base == "unknown" and uses_function(node, "log")):
        return None
    value = value_of(node, policy)
    if isinstance(value, acb):
        return None
    if isinstance(value, fmpq):
        return Fraction(int(value.p), int(value.q))
    number = float(value)
    return number if isfinite(number) else None


def _constant_key(node: Node, policy: AnswerPolicy) -> Scalar:
    for precision, is_final in PRECISIONS:
        ctx.prec = precision
        try:
            value = _settled(_Evaluation(policy, None, is_final).value(node), is_final)
            if isinstance(value, acb):
                return _complex_key(value)
            return _real_key(value)
        except _MoreDigits:
            continue
    raise Lost


def _real_key(value: Value) -> Scalar:
    rational = value if isinstance(value, fmpq) else _as_rational(value)
    if rational is not None:
        return rational_key(int(rational.p), int(rational.q)), "exact"
    return "~" + _digest(_leading(value)), "numeric"


def _complex_key(value: Value) -> Scalar:
    real, real_kind = _real_key(_whole_ball(value.real))
    imaginary, imaginary_kind = _real_key(value.imag)
    kind = "exact" if real_kind == imaginary_kind == "exact" else "numeric"
    return f"c({real},{imaginary})", kind


def _whole_ball(value: Value) -> Value:
    return ZERO if value.is_zero() else value


def _symbolic_key(node: Node, policy: AnswerPolicy) -> Scalar:
    parts: list[str] = []
    for point in range(3):
        for precision, is_final in PRECISIONS:
            ctx.prec = precision
            try:
                value = _settled(_Evaluation(policy, point, is_final).value(node), is_final)
                part = _part(value)
            except _MoreDigits:
                continue
            except _Outside:
                part = "u"
            break
        else:
            raise Lost
        parts.append(part)
    if parts[0] == parts[1] == parts[2]:
        # The symbols cancelled: this is a number, and has the key of one.
        for precision, is_final in PRECISIONS:
            ctx.prec = precision
            try:
                value = _settled(_Evaluation(policy, 0, is_final).value(node), is_final)
                return _complex_key(value) if isinstance(value, acb) else _real_key(value)
            except _MoreDigits:
                continue
        raise Lost
    return "s" + _digest("|".join(parts)), "symbolic"


def _ratios(node: Node, policy: AnswerPolicy, *, signed: bool) -> str:
    values: list[Value | None] = []
    for precision, is_final in PRECISIONS:
        ctx.prec = precision
        values.clear()
        try:
            # Two points with positive symbols, where hardly any function ends, decide the ratio alone.
            for point in (0, 3, 1, 2):
                try:
                    value = _Evaluation(policy, point, is_final).value(node)
                    values.append(_settled(value, is_final))
                except _Outside:
                    values.append(None)
            first = values[0]
            if isinstance(first, fmpq) and not first:
                raise Lost
            if signed:
                if isinstance(first, acb):
                    raise Lost
                first = abs(first)
                lead = "+" if values[0] > 0 else "-"
            else:
                lead = ""
            parts = ["u" if value is None else _part(_settled(value / first, is_final)) for value in values[1:]]
            return lead + _digest("|".join(parts))
        except _MoreDigits:
            continue
    raise Lost


def _part(value: Value) -> str:
    """Write the leading bits of a value at one point."""
    if isinstance(value, acb):
        real, imaginary = value.real, value.imag
        return f"{'0' if real.is_zero() else _leading(real)}i{_leading(imaginary)}"
    return _leading(arb(value)) if value else "0"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


@lru_cache(maxsize=4_096)
def _hidden(name: str, point: int) -> Value:
    """Where a symbol stands: positive at points 0 and 3, with mixed and then opposite signs at 1 and 2.

    Magnitudes lie between 0.6 and 1.6, so that powers neither vanish nor swamp the rest.
    """
    seed = name.encode(errors="surrogatepass")
    mantissa = 6 * 2**448 // 10 + int.from_bytes(sha512(b"%d:" % point + seed).digest()[:56], "big")
    if point in {1, 2} and (sha512(seed).digest()[0] + point) % 2:
        mantissa = -mantissa
    return arb((mantissa, -448))


# Keys quantise the value times this, because nice numbers lie on the edges of a decimal or binary
# grid and no number that anybody writes lies on the edges of this one.
_OFFSET: Final = 6 * 2**448 // 10 + int.from_bytes(sha512(b"offset").digest()[:56], "big")


def _leading(value: Value) -> str:
    """Write sign, exponent and the leading bits of a real ball, where it proves them."""
    if not value.is_finite():
        raise Lost
    if value.rel_accuracy_bits() < KEY_BITS + 20:
        raise _MoreDigits
    scaled = value * arb((_OFFSET, -448))
    mantissa, exponent = scaled.mid().man_exp()
    top = mantissa.bit_length() + int(exponent)
    whole = (scaled * arb((1, KEY_BITS - top))).floor().unique_fmpz()
    if whole is None:
        raise _MoreDigits
    return f"{int(whole):x}p{top}"


def _as_rational(value: Value) -> Value | None:
    """Recognise a rational number of moderate size by its continued fraction."""
    if not value.is_finite():
        raise Lost
    if value.rel_accuracy_bits() < KEY_BITS + 20:
        raise _MoreDigits
    mantissa, exponent = value.mid().man_exp()
    shift = int(exponent)
    if not -20_000 < shift < 400:
        return None
    a, b = (int(mantissa) << shift, 1) if shift >= 0 else (int(mantissa), 1 << -shift)
    is_negative = a < 0
    a = abs(a)
    p0, q0, p1, q1 = 0, 1, 1, 0
    while q1.bit_length() <= RATIONAL_BITS:
        quotient, rest = divmod(a, b)
        # A partial quotient this large means that the convergent is right to the last proven bit.
        if q1 and p1 and quotient.bit_length() + q1.bit_length() + p1.bit_length() > KEY_BITS:
            break
        p0, q0, p1, q1 = p1, q1, quotient * p1 + p0, quotient * q1 + q0
        if not rest:
            break
        a, b = b, rest
    if q1.bit_length() > RATIONAL_BITS or p1.bit_length() > 2 * RATIONAL_BITS:
        return None
    return fmpq(-p1 if is_negative else p1, q1)


def _settled(value: Value, is_final: bool) -> Value:
    """Turn what cannot be told from zero at the last precision into zero."""
    if isinstance(value, fmpq):
        return value
    if isinstance(value, arb):
        if not value.is_finite():
            raise Lost if is_final else _MoreDigits
        if 0 not in value:
            return value
        if value.is_zero():
            return ZERO
        if not is_final:
            raise _MoreDigits
        return ZERO
    if not value.is_finite():
        raise Lost if is_final else _MoreDigits
    real, imaginary = value.real, value.imag
    if 0 in imaginary:
        if not is_final and not imaginary.is_zero():
            raise _MoreDigits
        return _settled(real, is_final)
    if 0 in real and not real.is_zero():
        if not is_final:
            raise _MoreDigits
        return acb(0, imaginary)
    return value


def _guarded(value: Value) -> Value:
    """Refuse a rational with more digits than would show beside an irrational."""
    if value.height_bits() > ROUGH_BITS:
        rough = 0
        for part in (value.p, value.q):
            rest = part
            for prime in SMALL_PRIMES:
                rest = _without(rest, prime)
            rough += rest.bit_length()
        if rough > ROUGH_BITS:
            raise Lost
    return value


def _without(value: Value, prime: int) -> Value:
    """Divide out all powers of a prime, the largest first."""
    powers = [fmpz(prime)]
    while powers[-1].bit_length() * 2 <= value.bit_length():
        powers.append(powers[-1] ** 2)
    for power in reversed(powers):
        quotient, rest = divmod(value, power)
        if not rest:
            value = quotient
    return value


class _Evaluation:
    """One evaluation of one tree at one point and precision."""

    __slots__ = ("bound", "is_final", "is_real", "point", "policy", "steps")

    def __init__(self, policy: AnswerPolicy, point: int | None, is_final: bool) -> None:  # noqa: FBT001
        self.policy = policy
        self.point = point
        self.is_final = is_final
        self.is_real = point in {1, 2}
        self.bound: dict[str, Value] = {}
        self.steps = 0

    def value(self, node: Node) -> Value:
        """Evaluate a node."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Lost
        op = node[0]
        if op == "q":
            return fmpq(node[1], node[2])
        if op == "s":
            name = node[1]
            if self.bound and name in self.bound:
                return self.bound[name]
            return _hidden(name, self.point or 0)
        if op == "*":
            return self._product(node[1])
        if op == "+":
            return self._sum([self.value(term) for term in node[1]])
        if op == "/":
            return self._quotient(self.value(node[1]), self.value(node[2]))
        if op == "^":
            return self._raised(node[1], node[2])
        if op == "r":
            degree = self.value(node[2])
            if not isinstance(degree, fmpq) or not degree:
                raise Lost
            return self.power(self.value(node[1]), 1 / degree)
        if op == "f":
            return self._function(node[1], [self.value(part) for part in node[2]])
        if op == "c":
            return self._constant(node[1])
        if op == "u":
            parts = [_part(_settled(self.value(part), self.is_final)) for part in node[2]]
            return _hidden(f"{node[1]}({';'.join(parts)})", self.point or 0)
        return self._indexed(node)

    @staticmethod
    def _constant(name: str) -> Value:
        if name == "pi":
            return arb.pi()
        if name == "e":
            return arb.const_e()
        if name == "i":
            return acb(0, 1)
        raise Lost

    def _sum(self, terms: list[Value]) -> Value:
        exact = ZERO
        balls: list[Value] = []
        for term in terms:
            if isinstance(term, fmpq):
                exact += term
                self._spend(exact)
            else:
                settled = _settled(term, self.is_final)
                if isinstance(settled, fmpq):
                    exact += settled
                else:
                    balls.append(settled)
        if not balls:
            return exact
        total = balls[0]
        if exact:
            balls.append(_guarded(exact))
        for ball in balls[1:]:
            total = ball + total
        if len(balls) > 1:
            _check_absorption(balls)
        return _settled(total, self.is_final)

    def _product(self, nodes: tuple[Node, ...]) -> Value:
        exact = ONE
        ball: Value = None
        for node in nodes:
            factor = self.value(node)
            if isinstance(factor, fmpq):
                exact *= factor
                self._spend(exact)
            else:
                ball = factor if ball is None else ball * factor
        if ball is None or not exact:
            return exact
        return ball if exact == 1 else ball * _guarded(exact)

    def _quotient(self, top: Value, low: Value) -> Value:
        low = _settled(low, self.is_final)
        if isinstance(low, fmpq):
            if not low:
                raise Lost
            if not isinstance(top, fmpq):
                _guarded(low)
        elif isinstance(top, fmpq):
            if not top:
                return top
            _guarded(top)
        if isinstance(top, fmpq) and isinstance(low, fmpq):
            self._spend(top)
            self._spend(low)
        return top / low

    def _spend(self, value: Value) -> None:
        """Count the work on a large exact number."""
        bits = value.height_bits()
        if bits > LARGE_BITS:
            self.steps += bits >> 6
            if bits > LARGEST_BITS or self.steps > MOST_STEPS:
                raise Lost

    def _raised(self, base_node: Node, exponent_node: Node) -> Value:
        exponent = self.value(exponent_node)
        if base_node == ("c", "e"):
            if isinstance(exponent, fmpq):
                if not exponent:
                    return ONE
                exponent = arb(_guarded(exponent))
            return _bounded(_settled(exponent, self.is_final)).exp()
        return self.power(self.value(base_node), exponent)

    def power(self, base: Value, exponent: Value) -> Value:
        """Raise a value; rational powers with odd denominators of negative reals are real."""
        base = _settled(base, self.is_final)
        exponent = _settled(exponent, self.is_final)
        if isinstance(exponent, fmpq):
            if exponent.q == 1:
                return _whole_power(base, int(exponent.p))
            return self._fractional_power(base, exponent)
        if isinstance(base, fmpq):
            if not base:
                raise Lost
            if base == 1:
                return base
            base = arb(_guarded(base)) if base > 0 else acb(_guarded(base))
        if isinstance(base, arb):
            if base > 0:
                return _bounded(exponent * base.log()).exp()
            if self.is_real:
                raise _Outside
            base = acb(base)
        return _bounded(exponent * base.log()).exp()

    def _fractional_power(self, base: Value, exponent: Value) -> Value:
        top, low = int(exponent.p), int(exponent.q)
        if isinstance(base, fmpq):
            if not base:
                if top < 0:
                    raise Lost
                return base
            root = _exact_root(abs(base), low)
            if root is not None:
                positive = _whole_power(root, top)
            else:
                positive = _positive_power(arb(_guarded(abs(base))), exponent)
            if base > 0:
                return positive
        elif isinstance(base, arb):
            if base > 0:
                return _positive_power(base, exponent)
            positive = _positive_power(-base, exponent)
        else:
            return _bounded(base.log() * exponent).exp()
        if low % 2:
            return -positive if top % 2 else positive
        if isinstance(base, arb) and self.is_real:
            raise _Outside
        if low == 2:
            return acb(0, 1) ** (top % 4) * positive
        return (acb(0, 1) * arb.pi() * exponent).exp() * positive

    def _function(self, name: str, values: list[Value]) -> Value:
        if name == "percent":
            if self.policy.percent == "kept":
                raise Lost
            return fmpq(1, 100) if self.policy.percent == "fraction" else ONE
        if name == "binomial":
            return self._binomial(values[0], values[1])
        value = _settled(values[0], self.is_final)
        if name == "ln":
            return self._logarithm(value)
        if name == "log":
            base = {"10": arb(10), "e": arb.const_e()}.get(self.policy.log_base)
            return self._logarithm(value) / (7 + _hidden("log", 0) if base is None else base).log()
        if name == "abs":
            return abs(value)
        if name in {"floor", "ceil"}:
            return self._rounded(name, value)
        if name == "factorial":
            return self._factorial(value)
        return self._elementary(name, value)

    def _logarithm(self, value: Value) -> Value:
        if isinstance(value, fmpq):
            if value == 1:
                return ZERO
            if not value:
                raise Lost
            value = arb(_guarded(value)) if value > 0 else acb(_guarded(value))
        elif isinstance(value, arb) and value < 0:
            if self.is_real:
                raise _Outside
            value = acb(value)
        return value.log()

    def _rounded(self, name: str, value: Value) -> Value:
        if isinstance(value, acb):
            raise Lost
        whole = value.floor() if name == "floor" else value.ceil()
        if isinstance(whole, arb):
            whole = whole.unique_fmpz()
            if whole is None:
                # An integer that is not seen to be one lies on both sides of the step.
                rational = _as_rational(value)
                if rational is None or rational.q != 1:
                    raise _MoreDigits
                whole = rational.p
        return fmpq(whole)

    def _factorial(self, value: Value) -> Value:
        if isinstance(value, fmpq):
            if value.q != 1 or value < 0 or value > 6_000:
                raise Lost
            result = fmpq(fmpz.fac_ui(int(value.p)))
            self._spend(result)
            return result
        return _gamma(value + 1)

    def _binomial(self, top: Value, low: Value) -> Value:
        if isinstance(top, fmpq) and isinstance(low, fmpq):
            if top.q != 1 or low.q != 1 or top < 0 or not 0 <= low <= top or top > 10**9:
                raise Lost
            n, k = int(top.p), int(low.p)
            k = min(k, n - k)
            if k * n.bit_length() > LARGEST_BITS:
                raise Lost
            result = fmpq(fmpz.bin_uiui(n, k))
            self._spend(result)
            return result
        if isinstance(low, fmpq) and low.q == 1 and 0 <= low <= 30:
            factors = ONE
            for step in range(int(low.p)):
                factors = self._quotient(factors * (top - step), fmpq(step + 1))
            return factors
        top, low = (arb(value) if isinstance(value, fmpq) else value for value in (top, low))
        return self._quotient(_gamma(top + 1), _gamma(low + 1) * _gamma(top - low + 1))

    def _elementary(self, name: str, value: Value) -> Value:
        if name == "arccot":
            name, value = "arctan", self._quotient(ONE, value)
        if isinstance(value, fmpq):
            if not value:
                special = {"cos": ONE, "cosh": ONE, "sec": ONE, "sech": ONE, "sin": ZERO, "tan": ZERO, "sinh": ZERO,
                           "tanh": ZERO, "arcsin": ZERO, "arctan": ZERO, "arcsinh": ZERO, "arctanh": ZERO}.get(name)  # fmt: skip
                if special is not None:
                    return special
            value = arb(_guarded(value))
        size = abs(float(abs(value)))
        if size > LARGEST_ARGUMENT or (size < FLAT and name in _FLAT_AT_ZERO):
            raise Lost
        if size > 20 and name in _FLAT_FAR_OUT and (name != "arctan" or size > 1e18):
            raise Lost
        if isinstance(value, arb):
            outside = (name in {"arcsin", "arccos", "arctanh"} and not -1 < value < 1) or (
                name == "arccosh" and not value >= 1
            )
            if outside:
                if value == 1 or value == -1:
                    return value.asin() if name == "arcsin" else self._edge(name, value)
                if self.is_real:
                    raise _Outside
                value = acb(value)
        result = getattr(value, _REAL_FUNCTIONS[name])()
        if not result.is_finite():
            raise Lost if self.is_final else _MoreDigits
        return result

    @staticmethod
    def _edge(name: str, value: Value) -> Value:
        if name == "arccos":
            return ZERO if value > 0 else arb.pi()
        raise Lost

    def _indexed(self, node: Node) -> Value:
        _, kind, index, low_node, high_node, body = node
        if index in self.bound:
            raise Lost
        low = self.value(low_node)
        high = None if high_node == INFINITY else self.value(high_node)
        if not (isinstance(low, fmpq) and isinstance(high, fmpq) and low.q == high.q == 1):
            return self._unexpanded(node, low, high)
        first, last = int(low.p), int(high.p)
        if last - first > MOST_TERMS:
            raise Lost
        values = []
        for step in range(first, last + 1):
            self.bound[index] = fmpq(step)
            values.append(self.value(body))
            self.bound.pop(index)
        if kind == "sum":
            return self._sum(values)
        product = ONE
        for value in values:
            product *= value
            if isinstance(product, fmpq):
                self._spend(product)
        return product

    def _unexpanded(self, node: Node, low: Value, high: Value | None) -> Value:
        """Let a sum with symbols for bounds stand for itself: same terms and same bounds, same sum."""
        _, kind, index, _, _, body = node
        if self.point is None:
            raise Lost
        self.bound[index] = _hidden("index", self.point)
        term = self.value(body)
        self.bound.pop(index)
        parts = [
            "oo" if value is None else _part(_settled(value, self.is_final)) for value in (low, high, term)
        ]
        return _hidden(f"{kind}({index};{';'.join(parts)})", self.point)


def _size(value: Value) -> float:
    return abs(complex(value)) if isinstance(value, acb) else abs(float(value))


def _check_absorption(terms: list[Value]) -> None:
    sizes = [_size(term) for term in terms]
    largest = max(sizes)
    if largest < 1e290 and min(sizes) > ABSORBED * largest and largest > 1e-250:
        return
    tops = [_top(term) for term in terms]
    if max(tops) - min(tops) > 119:
        raise Lost


def _top(value: Value) -> int:
    """Return the binary exponent of a value that is not zero."""
    ball = abs(value) if isinstance(value, acb) else arb(value)
    mantissa, exponent = ball.mid().man_exp()
    return int(mantissa.bit_length()) + int(exponent)


def _bounded(exponent: Value) -> Value:
    """Refuse an exponent whose power is too large, or too near to one to show it."""
    if isinstance(exponent, fmpq):
        return arb(exponent)
    size = _size(exponent)
    if size > LARGEST_ARGUMENT or (size < FLAT and not exponent.is_zero()):
        raise Lost
    return exponent


def _gamma(value: Value) -> Value:
    if _size(value) > LARGEST_ARGUMENT:
        raise Lost
    return value.gamma()


def _whole_power(base: Value, exponent: int) -> Value:
    if isinstance(base, fmpq):
        if not exponent:
            if not base:
                raise Lost
            return ONE
        if not base:
            if exponent < 0:
                raise Lost
            return base
        if abs(base) != 1 and base.height_bits() * abs(exponent) > LARGEST_BITS:
            raise Lost
        return base ** (exponent % 2) if abs(base) == 1 else base**exponent
    if abs(exponent) > LARGEST_ARGUMENT:
        raise Lost
    if not exponent:
        return ONE
    return base**exponent


def _exact_root(base: Value, degree: int) -> Value | None:
    if degree > 64:
        return None
    top = base.p.root(degree)
    if top**degree != base.p:
        return None
    low = base.q.root(degree)
    return fmpq(top, low) if low**degree == base.q else None


def _positive_power(base: Value, exponent: Value) -> Value:
    top, low = int(exponent.p), int(exponent.q)
    if low == 2:
        root = base.sqrt()
    elif low <= 64:
        root = base.root(low)
    else:
        return _bounded(base.log() * exponent).exp()
    return root if top == 1 else _whole_power(root, top)
