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
from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b
from math import isfinite
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from flint import acb, ctx, fmpq

from ttsframe.answers.latex.tree import Node, symbols_of, uses_function
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values.balls import (
    ZERO,
    OutsideDomain,
    TooImprecise,
    Uncertified,
    Value,
    as_rational,
    leading_bits,
    part_key,
    resolve_zero,
)
from ttsframe.answers.values.evaluation import Evaluation
from ttsframe.answers.values.rational import rational_key
from ttsframe.answers.values.residues import residue_key

__all__ = [
    "Scalar",
    "Uncertified",
    "real_number",
    "scalar_key",
    "scale_free_key",
    "sign_of",
    "value_of",
]

_T = TypeVar("_T")

Scalar: TypeAlias = tuple[str, str]
"""Body of a key and its kind: exact, numeric or symbolic."""

_UNDEFINED: Final = "u"
"""In the place of a value where a real function left its domain."""
PRECISIONS: Final = ((576, False), (2_304, True))
"""In bits; the last one decides what is zero."""

_lock = Lock()


def _renew_lock() -> None:
    # A lock that another thread held at the moment of a fork would never be released in the child.
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class _FlintPrecision:
    """Hold flint's precision, which the whole process shares, and give it back unchanged."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        _lock.acquire()
        self.before = ctx.prec

    def __exit__(self, *_: object) -> None:
        ctx.prec = self.before
        _lock.release()


def _at_enough_precision(read: Callable[[bool], _T]) -> _T:
    """Read at growing precision until the balls are small enough."""
    for precision, is_final in PRECISIONS:
        ctx.prec = precision
        try:
            return read(is_final)
        except TooImprecise:
            continue
    raise Uncertified


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
    with _FlintPrecision():
        try:
            return _symbolic_key(node, policy) if symbols else _constant_key(node, policy)
        except Uncertified:
            residue = residue_key(node, policy)
            if residue is None:
                raise
            return residue, "symbolic" if symbols else "exact"


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
    with _FlintPrecision():
        return _ratio_key(node, policy, signed=signed)


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
        raise Uncertified
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
    with _FlintPrecision():
        return _at_enough_precision(
            lambda is_final: resolve_zero(
                Evaluation(policy, None, is_final=is_final).value(node), is_final
            )
        )


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


def _constant_key(node: Node, policy: AnswerPolicy, point: int | None = None) -> Scalar:
    def read(is_final: bool) -> Scalar:
        value = resolve_zero(Evaluation(policy, point, is_final=is_final).value(node), is_final)
        return _complex_key(value) if isinstance(value, acb) else _real_key(value)

    return _at_enough_precision(read)


def _real_key(value: Value) -> Scalar:
    rational = value if isinstance(value, fmpq) else as_rational(value)
    if rational is not None:
        return rational_key(int(rational.p), int(rational.q)), "exact"
    return "~" + _digest(leading_bits(value)), "numeric"


def _complex_key(value: Value) -> Scalar:
    real, real_kind = _real_key(_exact_if_zero(value.real))
    imaginary, imaginary_kind = _real_key(value.imag)
    kind = "exact" if real_kind == imaginary_kind == "exact" else "numeric"
    return f"c({real},{imaginary})", kind


def _exact_if_zero(value: Value) -> Value:
    return ZERO if value.is_zero() else value


def _symbolic_key(node: Node, policy: AnswerPolicy) -> Scalar:
    def at(point: int, *, is_real: bool = True) -> str:
        def read(is_final: bool) -> str:
            evaluation = Evaluation(policy, point, is_final=is_final, is_real=is_real)
            return part_key(resolve_zero(evaluation.value(node), is_final))

        try:
            return _at_enough_precision(read)
        except OutsideDomain:
            return _UNDEFINED

    parts = [at(point) for point in range(3)]
    if _UNDEFINED in parts:
        parts.append(at(3))
    defined = [point for point, part in enumerate(parts) if part != _UNDEFINED]
    if not defined:
        return "s" + _digest(at(0, is_real=False)), "symbolic"
    if len(defined) > 1 and len({parts[point] for point in defined}) == 1:
        # The symbols cancelled: this is a number, and has the key of one.
        return _constant_key(node, policy, defined[0])
    return "s" + _digest("|".join(parts)), "symbolic"


def _ratio_key(node: Node, policy: AnswerPolicy, *, signed: bool) -> str:
    def read(is_final: bool) -> str:
        values = [at(point, is_final=is_final) for point in range(4)]
        if sum(value is not None for value in values) < 2:
            values = [at(point, is_final=is_final, is_real=False) for point in (0, 3)]
        first = next(value for value in values if value is not None)
        if first == 0 or (signed and isinstance(first, acb)):
            raise Uncertified
        lead = ("+" if first > 0 else "-") if signed else ""
        scale = abs(first) if signed else first
        parts = [
            _UNDEFINED if value is None else part_key(resolve_zero(value / scale, is_final))
            for value in values
        ]
        return lead + _digest("|".join(parts))

    def at(point: int, *, is_final: bool, is_real: bool = True) -> Value | None:
        evaluation = Evaluation(policy, point, is_final=is_final, is_real=is_real)
        try:
            return resolve_zero(evaluation.value(node), is_final)
        except OutsideDomain:
            return None

    return _at_enough_precision(read)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
