"""The certified value of a parsed scalar, and its key.

Rational arithmetic is exact. Every other value is a ball of python-flint: a midpoint with a proven radius.
A key is the leading bits of the value, written only where the ball proves them. A ball that is too wide, or
that cannot be told from zero, is computed again with four times the digits; if it still cannot be told from
zero, it is zero. Free symbols stand at fixed hidden points, so that two expressions have the same key
exactly when they agree there.

A sum much larger than one of its terms, or a function too flat to show its argument, would merge different
answers. Such a scalar is not certified: its key is made of residues modulo large primes if it is a rational
expression, else of its text.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b
from math import isfinite
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from flint import acb, arb, ctx, fmpq

from ttsframe.answers.latex.tree import (
    MINUS_ONE,
    Node,
    children,
    has_symbols,
    replace_nodes,
    uses_function,
)
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values.balls import (
    FAR_POINTS,
    ZERO,
    OutsideDomain,
    TooImprecise,
    Uncertified,
    Value,
    as_rational,
    exact_root,
    leading_bits,
    part_key,
    resolve_zero,
)
from ttsframe.answers.values.evaluation import Evaluation, KnownValues, PointsDiffer
from ttsframe.answers.values.rational import rational_key
from ttsframe.answers.values.residues import residue_key

__all__ = [
    "KnownValues",
    "Scalar",
    "Uncertified",
    "Vanishes",
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
"""Stands for a value at a point outside the domain of a real function."""
_LARGEST_DEGREE: Final = 64
PRECISIONS: Final = ((576, False), (2_304, True))
"""Precisions in bits; at the last one, a value that may be zero is zero."""


class Vanishes(Uncertified):
    """The expression is zero, so that it has no key up to a factor."""


_lock = Lock()


def _release_lock() -> None:
    """Release a lock that another thread held at the moment of a fork: that thread is not in the child."""
    if _lock.locked():
        _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_lock)


def _at_enough_precision(read: Callable[[bool], _T]) -> _T:
    """Read at increasing precision until the balls are small enough."""
    # All threads share flint's precision.
    with _lock:
        before = ctx.prec
        try:
            for precision, is_final in PRECISIONS:
                ctx.prec = precision
                try:
                    return read(is_final)
                except TooImprecise:
                    continue
        finally:
            ctx.prec = before
    raise Uncertified


def scalar_key(node: Node, policy: AnswerPolicy, known: KnownValues | None = None) -> Scalar:
    """Return the body of a scalar's key and its kind; raise `Uncertified` where there is none."""
    if node[0] == "q":
        return _real_key(fmpq(node[1], node[2]))
    is_symbolic = has_symbols(node)
    try:
        if is_symbolic:
            return _symbolic_key(node, policy, known or KnownValues())
        return _constant_key(node, policy)
    except Uncertified:
        residue = residue_key(node, policy)
        if residue is None:
            raise
        return residue, "symbolic" if is_symbolic else "exact"


def scale_free_key(
    left: Node,
    right: Node,
    policy: AnswerPolicy,
    *,
    signed: bool,
    known: KnownValues | None = None,
) -> str:
    """Return the key of a difference up to a factor, positive if `signed`; raise `Vanishes` if it is zero."""
    return _ratio_key((left, right), policy, known or KnownValues(), signed=signed)


def sign_of(node: Node, policy: AnswerPolicy) -> int:
    """Return the sign of a real constant; raise `Uncertified` where there is none."""
    value = value_of(node, policy)
    if isinstance(value, acb):
        raise Uncertified
    return 1 if value > 0 else -1 if value < 0 else 0


def value_of(node: Node, policy: AnswerPolicy) -> Value:
    """Return the value of a constant: an fmpq, or a certified arb or acb."""
    return _at_enough_precision(
        lambda is_final: resolve_zero(
            Evaluation(policy, (), is_final=is_final).value(node), is_final
        )
    )


def real_number(node: Node, policy: AnswerPolicy) -> Fraction | float | None:
    """Return the value of a real constant within the range of floats, else None."""
    if has_symbols(node) or (policy.log_base == "unknown" and uses_function(node, "log")):
        return None
    value = value_of(node, policy)
    if isinstance(value, acb):
        return None
    if isinstance(value, fmpq):
        return Fraction(int(value.p), int(value.q))
    number = float(value)
    return number if isfinite(number) else None


def _constant_key(node: Node, policy: AnswerPolicy) -> Scalar:
    def read(is_final: bool) -> Scalar:
        value = Evaluation(policy, (), is_final=is_final).value(node)
        if type(value) is arb and _is_irrational(node):
            return _irrational_key(value)
        return _number_key(value)

    return _at_enough_precision(read)


def _is_irrational(node: Node) -> bool:
    """Tell whether the form of a tree proves that it is irrational: one root or pi, else rational numbers."""
    op = node[0]
    if op == "r":
        inner, degree = node[1], node[2]
        return (
            inner[0] == degree[0] == "q"
            and inner[1] > 0
            and degree[2] == 1
            and 2 <= degree[1] <= _LARGEST_DEGREE
            and exact_root(fmpq(inner[1], inner[2]), degree[1]) is None
        )
    if op in {"+", "*"}:
        others = [part for part in node[1] if not _is_nonzero_rational(part)]
        return len(others) == 1 and _is_irrational(others[0])
    if op == "/":
        top, low = node[1], node[2]
        if _is_nonzero_rational(low):
            return _is_irrational(top)
        return _is_nonzero_rational(top) and _is_irrational(low)
    return node in {("c", "pi"), ("c", "e")}


def _is_nonzero_rational(node: Node) -> bool:
    op = node[0]
    if op == "q":
        return bool(node[1])
    return op in {"*", "/"} and all(map(_is_nonzero_rational, children(node)))


def _number_key(value: Value) -> Scalar:
    return _complex_key(value) if type(value) is acb else _real_key(value)


def _real_key(value: Value) -> Scalar:
    rational = value if isinstance(value, fmpq) else as_rational(value)
    if rational is not None:
        return rational_key(int(rational.p), int(rational.q)), "exact"
    return _irrational_key(value)


def _irrational_key(value: Value) -> Scalar:
    return "~" + _digest(leading_bits(value)), "numeric"


def _complex_key(value: Value) -> Scalar:
    real, real_kind = _real_key(_exact_if_zero(value.real))
    imaginary, imaginary_kind = _real_key(value.imag)
    kind = "exact" if real_kind == imaginary_kind == "exact" else "numeric"
    return f"c({real},{imaginary})", kind


def _exact_if_zero(value: Value) -> Value:
    return ZERO if value.is_zero() else value


def _values_at(
    trees: tuple[Node, ...],
    policy: AnswerPolicy,
    points: tuple[int, ...],
    known: KnownValues | None,
    *,
    is_final: bool,
    is_real: bool = True,
) -> list[Value | None]:
    """Return the value of a tree, or the difference of two, at each point; None outside the domain."""
    evaluation = Evaluation(policy, points, known, is_final=is_final, is_real=is_real)
    try:
        value = evaluation.tree(*trees) if len(trees) == 1 else evaluation.difference(*trees)
    except OutsideDomain:
        return [None] * len(points)
    except PointsDiffer:
        return [
            value
            for point in points
            for value in _values_at(
                trees, policy, (point,), known, is_final=is_final, is_real=is_real
            )
        ]
    values = value if type(value) is list else [value] * len(points)
    if not evaluation.undefined:
        return values
    return [
        None if position in evaluation.undefined else one for position, one in enumerate(values)
    ]


def _hidden_values(
    trees: tuple[Node, ...], policy: AnswerPolicy, known: KnownValues, is_final: bool
) -> list[Value | None]:
    """Return the values at the first three hidden points, and at the fourth if one of them fails."""
    values = _values_at(trees, policy, (0, 1, 2), known, is_final=is_final)
    if type(None) in map(type, values):
        values = values + _values_at(trees, policy, (3,), known, is_final=is_final)
    return values


def _sign(value: Value | None) -> int:
    """Return the sign of a real value, 0 for any other."""
    if value is None or type(value) is acb:
        return 0
    return int(value > 0) - int(value < 0)


def _far_parts(
    trees: tuple[Node, ...],
    policy: AnswerPolicy,
    known: KnownValues,
    part: Callable[[Value], str],
    is_final: bool,
) -> list[str]:
    # |x + 1| is x + 1 at every hidden point; at the far points it is neither x + 1 nor -x - 1. Where such
    # bars change nothing, as in |x + 1|^2, there are no such parts, so the key is that of (x + 1)^2.
    if not known.may_have_bars or not any(uses_function(tree, "abs") for tree in trees):
        return []

    def parts(of: tuple[Node, ...]) -> list[str]:
        found = []
        for point in FAR_POINTS:
            try:
                (value,) = _values_at(of, policy, (point,), None, is_final=is_final)
                found.append(_UNDEFINED if value is None else part(value))
            except Uncertified:
                found.append(_UNDEFINED)
        return found

    def open_bars(node: Node) -> Node | None:
        if node[0] != "f" or node[1] != "abs":
            return None
        inner = replace_nodes(node[2][0], open_bars)
        signs = {
            _sign(value)
            for value in _values_at((inner,), policy, (0, 1, 2), None, is_final=is_final)
        }
        if len(signs) > 1 or 0 in signs:
            return ("f", "abs", (inner,))
        return inner if signs == {1} else ("*", (MINUS_ONE, inner))

    with_bars = parts(trees)
    without = parts(tuple(replace_nodes(tree, open_bars) for tree in trees))
    return [] if with_bars == without else with_bars


def _symbolic_key(node: Node, policy: AnswerPolicy, known: KnownValues) -> Scalar:
    def read(is_final: bool) -> Scalar:
        values = _hidden_values((node,), policy, known, is_final)
        parts = [_UNDEFINED if value is None else part_key(value) for value in values]
        parts += _far_parts((node,), policy, known, part_key, is_final)
        defined = [value for value in values if value is not None]
        if not defined:
            (value,) = _values_at((node,), policy, (0,), None, is_final=is_final, is_real=False)
            return "s" + _digest(part_key(value)), "symbolic"
        if len(defined) > 1 and len({*parts} - {_UNDEFINED}) == 1:
            # The symbols cancel, so that this is a number.
            return _number_key(defined[0])
        return "s" + _digest("|".join(parts)), "symbolic"

    return _at_enough_precision(read)


def _ratio_key(
    sides: tuple[Node, Node], policy: AnswerPolicy, known: KnownValues, *, signed: bool
) -> str:
    def read(is_final: bool) -> str:
        values = _hidden_values(sides, policy, known, is_final)
        defined = [value for value in values if value is not None]
        if len(defined) < 2:
            values = defined = [
                value
                for point in (0, 3)
                for value in _values_at(
                    sides, policy, (point,), None, is_final=is_final, is_real=False
                )
            ]
        if not any(value != 0 for value in defined):
            raise Vanishes
        first = defined[0]
        if first == 0 or (signed and type(first) is acb):
            raise Uncertified
        sign = ("+" if first > 0 else "-") if signed else ""
        scale = abs(first) if signed else first

        def part(value: Value) -> str:
            return part_key(resolve_zero(value / scale, is_final))

        parts = [_UNDEFINED if value is None else part(value) for value in values]
        parts += _far_parts(sides, policy, known, part, is_final)
        return sign + _digest("|".join(parts))

    return _at_enough_precision(read)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
