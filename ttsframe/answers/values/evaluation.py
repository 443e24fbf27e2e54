"""The value of a tree at one point and precision."""

from __future__ import annotations

from typing import Final

from flint import acb, arb, fmpq, fmpz

from ttsframe.answers.latex.tree import INFINITY, Node
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values.balls import (
    LARGEST_ARGUMENT,
    LARGEST_BITS,
    ONE,
    ZERO,
    OutsideDomain,
    TooImprecise,
    Uncertified,
    Value,
    as_rational,
    check_absorption,
    checked_exponent,
    checked_rational,
    exact_root,
    gamma_function,
    integer_power,
    magnitude_of,
    part_key,
    positive_power,
    resolve_zero,
    symbol_value,
)

__all__ = ["Evaluation"]

MOST_STEPS: Final = 10_000
"""Largest work: a node counts one, and an operation on a large exact number one for every 64 bits."""
LARGE_BITS: Final = 4_096
MOST_TERMS: Final = 200
"""Largest number of terms of a sum or product over an index."""
FLATTEST: Final = 1e-18
"""A cosine of a smaller argument hardly differs from one."""
FARTHEST: Final = 20
"""A hyperbolic tangent of a larger argument hardly differs from one."""
_FUNCTIONS: Final = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth",
    "sech": "sech", "csch": "csch", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "gamma": "gamma",
}  # fmt: skip
_FLAT_AT_ZERO: Final = frozenset({"cos", "cosh", "sec", "sech"})
_FLAT_FAR_OUT: Final = {"tanh": FARTHEST, "coth": FARTHEST, "arctan": 1e18}
_AT_ZERO: Final = dict.fromkeys(_FLAT_AT_ZERO, ONE) | dict.fromkeys(
    ("sin", "tan", "sinh", "tanh", "arcsin", "arctan", "arcsinh", "arctanh"), ZERO
)


class Evaluation:
    """One evaluation of a tree at one point and precision.

    `point` numbers the hidden point at which symbols stand (None: no symbols). `is_final` marks the last
    precision, at which values that may be zero are zero. With `is_real`, real functions may not leave their
    domain where that depends on symbols.
    """

    __slots__ = ("bound", "is_final", "is_real", "point", "policy", "steps")

    def __init__(
        self, policy: AnswerPolicy, point: int | None, *, is_final: bool, is_real: bool = False
    ) -> None:
        self.policy = policy
        self.point = point
        self.is_final = is_final
        self.is_real = is_real
        self.bound: dict[str, Value] = {}
        self.steps = 0

    def value(self, node: Node) -> Value:
        """Evaluate a node."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Uncertified
        op = node[0]
        if op == "q":
            return fmpq(node[1], node[2])
        if op == "s":
            name = node[1]
            if self.bound and name in self.bound:
                return self.bound[name]
            return symbol_value(name, self.point or 0)
        if op == "*":
            return self._product(node[1])
        if op == "+":
            return self._sum([self.value(term) for term in node[1]])
        if op == "/":
            return self._quotient(self.value(node[1]), self.value(node[2]))
        if op == "^":
            return self._power_of_nodes(node[1], node[2])
        if op == "r":
            degree = self.value(node[2])
            if not isinstance(degree, fmpq) or degree == 0:
                raise Uncertified
            return self.power(self.value(node[1]), 1 / degree)
        if op == "f":
            return self._function(node[1], [self.value(part) for part in node[2]])
        if op == "c":
            return self._constant(node[1])
        if op == "u":
            parts = [part_key(resolve_zero(self.value(part), self.is_final)) for part in node[2]]
            return symbol_value(f"{node[1]}({';'.join(parts)})", self.point or 0)
        if op == "S" and node[1] != "int":
            return self._indexed(node)
        # integrals, limits and derivatives are left to sympy
        raise Uncertified

    @staticmethod
    def _constant(name: str) -> Value:
        if name == "pi":
            return arb.pi()
        if name == "e":
            return arb.const_e()
        if name == "i":
            return acb(0, 1)
        raise Uncertified

    def _sum(self, terms: list[Value]) -> Value:
        exact = ZERO
        balls: list[Value] = []
        for term in terms:
            if isinstance(term, fmpq):
                exact += term
                self._count_large_work(exact)
            else:
                ball = resolve_zero(term, self.is_final)
                if isinstance(ball, fmpq):
                    exact += ball
                else:
                    balls.append(ball)
        if not balls:
            return exact
        total = balls[0]
        if exact != 0:
            balls.append(checked_rational(exact))
        for ball in balls[1:]:
            total = ball + total
        if len(balls) > 1:
            check_absorption(balls)
        return resolve_zero(total, self.is_final)

    def _product(self, nodes: tuple[Node, ...]) -> Value:
        exact = ONE
        ball: Value = None
        for node in nodes:
            factor = self.value(node)
            if isinstance(factor, fmpq):
                exact *= factor
                self._count_large_work(exact)
            else:
                ball = factor if ball is None else ball * factor
        if ball is None or exact == 0:
            return exact
        return ball if exact == 1 else ball * checked_rational(exact)

    def _quotient(self, top: Value, low: Value) -> Value:
        low = resolve_zero(low, self.is_final)
        if isinstance(low, fmpq):
            if low == 0:
                raise Uncertified
            if not isinstance(top, fmpq):
                checked_rational(low)
        elif isinstance(top, fmpq):
            if top == 0:
                return top
            checked_rational(top)
        if isinstance(top, fmpq) and isinstance(low, fmpq):
            self._count_large_work(top)
            self._count_large_work(low)
        return top / low

    def _count_large_work(self, value: Value) -> None:
        """Count the work on a large exact number."""
        bits = value.height_bits()
        if bits > LARGE_BITS:
            self.steps += bits >> 6
            if bits > LARGEST_BITS or self.steps > MOST_STEPS:
                raise Uncertified

    def _power_of_nodes(self, base_node: Node, exponent_node: Node) -> Value:
        exponent = self.value(exponent_node)
        if base_node == ("c", "e"):
            if isinstance(exponent, fmpq):
                if exponent == 0:
                    return ONE
                exponent = arb(checked_rational(exponent))
            return checked_exponent(resolve_zero(exponent, self.is_final)).exp()
        return self.power(self.value(base_node), exponent)

    def power(self, base: Value, exponent: Value) -> Value:
        """Raise a value; rational powers with odd denominators of negative reals are real."""
        base = resolve_zero(base, self.is_final)
        exponent = resolve_zero(exponent, self.is_final)
        if isinstance(exponent, fmpq):
            if exponent.q == 1:
                return integer_power(base, int(exponent.p))
            return self._fractional_power(base, exponent)
        if isinstance(base, fmpq):
            if base == 0:
                raise Uncertified
            if base == 1:
                return base
            base = arb(checked_rational(base)) if base > 0 else acb(checked_rational(base))
        if isinstance(base, arb):
            if base > 0:
                return checked_exponent(exponent * base.log()).exp()
            if self.is_real:
                raise OutsideDomain
            base = acb(base)
        return checked_exponent(exponent * base.log()).exp()

    def _fractional_power(self, base: Value, exponent: Value) -> Value:
        top, low = int(exponent.p), int(exponent.q)
        if isinstance(base, fmpq):
            if base == 0:
                if top < 0:
                    raise Uncertified
                return base
            root = exact_root(abs(base), low)
            if root is not None:
                positive = integer_power(root, top)
            else:
                positive = positive_power(arb(checked_rational(abs(base))), exponent)
            if base > 0:
                return positive
        elif isinstance(base, arb):
            if base > 0:
                return positive_power(base, exponent)
            positive = positive_power(-base, exponent)
        else:
            return checked_exponent(base.log() * exponent).exp()
        if low % 2:
            return -positive if top % 2 else positive
        if isinstance(base, arb) and self.is_real:
            raise OutsideDomain
        if low == 2:
            return acb(0, 1) ** (top % 4) * positive
        return (acb(0, 1) * arb.pi() * exponent).exp() * positive

    def _function(self, name: str, values: list[Value]) -> Value:
        if name == "percent":
            if self.policy.percent == "kept":
                raise Uncertified
            return fmpq(1, 100) if self.policy.percent == "fraction" else ONE
        if name == "binomial":
            return self._binomial(values[0], values[1])
        value = resolve_zero(values[0], self.is_final)
        if name == "ln":
            return self._logarithm(value)
        if name == "log":
            base = {"10": arb(10), "e": arb.const_e()}.get(self.policy.log_base)
            return (
                self._logarithm(value)
                / (7 + symbol_value("log", 0) if base is None else base).log()
            )
        if name == "abs":
            return abs(value)
        if name in {"floor", "ceil"}:
            return self._floor_or_ceil(name, value)
        if name == "factorial":
            return self._factorial(value)
        return self._elementary(name, value)

    def _logarithm(self, value: Value) -> Value:
        if isinstance(value, fmpq):
            if value == 1:
                return ZERO
            if value == 0:
                raise Uncertified
            value = arb(checked_rational(value)) if value > 0 else acb(checked_rational(value))
        elif isinstance(value, arb) and value < 0:
            if self.is_real:
                raise OutsideDomain
            value = acb(value)
        return value.log()

    def _floor_or_ceil(self, name: str, value: Value) -> Value:
        if isinstance(value, acb):
            raise Uncertified
        whole = value.floor() if name == "floor" else value.ceil()
        if isinstance(whole, arb):
            whole = whole.unique_fmpz()
            if whole is None:
                # The ball of an integer lies on both sides of the step.
                rational = as_rational(value)
                if rational is None or rational.q != 1:
                    raise TooImprecise
                whole = rational.p
        return fmpq(whole)

    def _factorial(self, value: Value) -> Value:
        if isinstance(value, fmpq):
            if value.q != 1 or value < 0 or value > 6_000:
                raise Uncertified
            result = fmpq(fmpz.fac_ui(value.p))
            self._count_large_work(result)
            return result
        return gamma_function(value + 1)

    def _binomial(self, top: Value, low: Value) -> Value:
        if isinstance(top, fmpq) and isinstance(low, fmpq):
            if top.q != 1 or low.q != 1 or top < 0 or not 0 <= low <= top or top > 10**9:
                raise Uncertified
            n, k = int(top.p), int(low.p)
            k = min(k, n - k)
            if k * n.bit_length() > LARGEST_BITS:
                raise Uncertified
            result = fmpq(fmpz.bin_uiui(n, k))
            self._count_large_work(result)
            return result
        if isinstance(low, fmpq) and low.q == 1 and 0 <= low <= 30:
            factors = ONE
            for step in range(int(low.p)):
                factors = self._quotient(factors * (top - step), fmpq(step + 1))
            return factors
        top, low = (arb(value) if isinstance(value, fmpq) else value for value in (top, low))
        return self._quotient(
            gamma_function(top + 1), gamma_function(low + 1) * gamma_function(top - low + 1)
        )

    def _elementary(self, name: str, value: Value) -> Value:
        if name == "arccot":
            name, value = "arctan", self._quotient(ONE, value)
        if isinstance(value, fmpq):
            if value == 0 and name in _AT_ZERO:
                return _AT_ZERO[name]
            value = arb(checked_rational(value))
        magnitude = magnitude_of(value)
        if magnitude > _FLAT_FAR_OUT.get(name, LARGEST_ARGUMENT):
            raise Uncertified
        if magnitude < FLATTEST and name in _FLAT_AT_ZERO:
            raise Uncertified
        if isinstance(value, arb) and not _is_in_domain(name, value):
            if name == "arccos" and abs(value) == 1:
                return ZERO if value > 0 else arb.pi()
            if not (name == "arcsin" and abs(value) == 1):
                if self.is_real:
                    raise OutsideDomain
                value = acb(value)
        result = getattr(value, _FUNCTIONS[name])()
        if not result.is_finite():
            raise Uncertified if self.is_final else TooImprecise
        return result

    def _indexed(self, node: Node) -> Value:
        _, kind, index, low_node, high_node, body = node
        if index in self.bound:
            raise Uncertified
        low = self.value(low_node)
        high = None if high_node == INFINITY else self.value(high_node)
        if not (isinstance(low, fmpq) and isinstance(high, fmpq) and low.q == high.q == 1):
            return self._unexpanded(node, low, high)
        first, last = int(low.p), int(high.p)
        if last - first > MOST_TERMS:
            raise Uncertified
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
                self._count_large_work(product)
        return product

    def _unexpanded(self, node: Node, low: Value, high: Value | None) -> Value:
        """Represent a sum with symbolic bounds by a hidden value of its terms and bounds."""
        _, kind, index, _, _, body = node
        if self.point is None:
            raise Uncertified
        self.bound[index] = symbol_value("index", self.point)
        term = self.value(body)
        self.bound.pop(index)
        parts = [
            "oo" if value is None else part_key(resolve_zero(value, self.is_final))
            for value in (low, high, term)
        ]
        return symbol_value(f"{kind}({index};{';'.join(parts)})", self.point)


def _is_in_domain(name: str, value: Value) -> bool:
    """Tell whether a real function is defined at a real value."""
    if name in {"arcsin", "arccos", "arctanh"}:
        return bool(-1 < value < 1)
    return bool(value >= 1) if name == "arccosh" else True
