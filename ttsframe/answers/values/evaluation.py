"""The value of a tree at some points and one precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, reduce
from typing import Final

from flint import acb, arb, fmpq, fmpz

from ttsframe.answers.latex.tree import INFINITY, MINUS_ONE, Node
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
    all_show,
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

__all__ = ["Evaluation", "KnownValues", "PointsDiffer"]

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
_METHODS: Final = {
    "percent": "_percent", "binomial": "_binomial", "ln": "_logarithm", "log": "_logarithm_of_unknown_base",
    "abs": "_absolute", "floor": "_floor", "ceil": "_ceiling", "factorial": "_factorial",
}  # fmt: skip
"""Methods that evaluate a function; flint has the others."""
_E: Final[Node] = ("c", "e")
_NEGATIVE: Final = fmpq(-1)
_NOWHERE: Final = arb.nan()
"""Stands in a list of balls at a point where a real function is outside its domain."""


class PointsDiffer(Exception):  # noqa: N818 (a verdict on a tree, not a failure)
    """A value is exact at some of the points only, so that each point must be evaluated by itself."""


class KnownValues:
    """Values at the hidden points that the trees of one answer share.

    `trees` has those of entire trees by identity, `functions` those of functions and roots. An entry also
    names the positions of points at which it is undefined. Without `may_have_bars`, none holds an absolute value.
    """

    __slots__ = ("functions", "may_have_bars", "trees")

    def __init__(self) -> None:
        self.may_have_bars = False
        self.trees: dict[tuple[int, tuple[int, ...]], tuple[Node, Value, set[int]]] = {}
        self.functions: dict[tuple[Node, tuple[int, ...]], tuple[Value, set[int]]] = {}


class Evaluation:
    """One evaluation of a tree at one or several points, and at one precision.

    `points` numbers the hidden points at which symbols stand; empty for a tree without symbols. A value is
    exact, one ball, or, where it differs between points, a list of balls. `is_final` marks the last
    precision, at which values that may be zero are zero. With `is_real`, real functions may not leave their
    domain where that depends on symbols: one point raises, of several the position goes to `undefined`.
    """

    __slots__ = (
        "bound",
        "is_final",
        "is_real",
        "known",
        "points",
        "policy",
        "shares",
        "steps",
        "undefined",
    )

    def __init__(
        self,
        policy: AnswerPolicy,
        points: tuple[int, ...],
        known: KnownValues | None = None,
        *,
        is_final: bool,
        is_real: bool = False,
    ) -> None:
        self.policy = policy
        self.points = points
        self.known = known or KnownValues()
        self.shares = is_real and not is_final and known is not None
        self.is_final = is_final
        self.is_real = is_real
        self.undefined: set[int] = set()
        self.bound: dict[str, Value] = {}
        self.steps = 0

    def value(self, node: Node) -> Value:
        """Evaluate a node; no ball that is returned may be zero."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Uncertified
        op = node[0]
        if op == "q":
            return _NEGATIVE if node is MINUS_ONE else _rational(node[1], node[2])
        if op == "s":
            if self.bound and node[1] in self.bound:
                return self.bound[node[1]]
            return self._symbol(node[1])
        if op == "*":
            factors = node[1]
            if factors[0] is MINUS_ONE and len(factors) == 2:
                return _negative(self.value(factors[1]))
            return self._product([self.value(factor) for factor in factors])
        if op == "+":
            return self.sum_of([self.value(term) for term in node[1]])
        if op == "^":
            exponent = node[2]
            if exponent[0] == "q" and exponent[2] == 1 and node[1] != _E:
                return self._integer_power(self.value(node[1]), exponent[1])
            return self._shared(node, self._power_of_nodes)
        if op == "/":
            return self._quotient(self.value(node[1]), self.value(node[2]))
        if op == "f":
            return self._shared(node, self._function_of_nodes)
        if op == "r":
            return self._shared(node, self._root_of_nodes)
        if op == "c":
            return self._constant(node[1])
        if op == "u":
            values = [self.value(part) for part in node[2]]
            return self._hidden(lambda parts: f"{node[1]}({';'.join(parts)})", values)
        if op == "S" and node[1] != "int":
            return self._indexed(node)
        # integrals, limits and derivatives are left to sympy
        raise Uncertified

    def tree(self, node: Node) -> Value:
        """Evaluate an entire tree, which may have been evaluated before."""
        if not self.shares:
            return self.value(node)
        key = id(node), self.points
        entry = self.known.trees.get(key)
        if entry is None:
            before, self.undefined = self.undefined, set()
            value = self.value(node)
            entry = self.known.trees[key] = node, value, self.undefined
            self.undefined = before
        self.undefined |= entry[2]
        return entry[1]

    def difference(self, left: Node, right: Node) -> Value:
        """Subtract two trees."""
        return self.sum_of([self.tree(left), _negative(self.tree(right))])

    def _shared(self, node: Node, evaluate: Callable[[Node], Value]) -> Value:
        """Evaluate a node that other trees of the answer may hold too."""
        if not self.shares or self.bound or self.undefined:
            return evaluate(node)
        entry = self.known.functions.get((node, self.points))
        if entry is None:
            value = evaluate(node)
            self.known.functions[node, self.points] = value, set(self.undefined)
            return value
        self.undefined |= entry[1]
        return entry[0]

    @staticmethod
    def _constant(name: str) -> Value:
        if name == "pi":
            return arb.pi()
        if name == "e":
            return arb.const_e()
        if name == "i":
            return acb(0, 1)
        raise Uncertified

    # ---- several points at once -----------------------------------------------------------------

    def _symbol(self, name: str) -> Value:
        points = self.points
        return _symbol_values(name, points) if len(points) > 1 else symbol_value(name, *points)

    def _columns(self, values: list[Value]) -> list[tuple[int, tuple[Value, ...]]]:
        """Return each position that is defined, and the values there."""
        n = len(self.points)
        columns = enumerate(zip(*[v if type(v) is list else [v] * n for v in values], strict=True))
        if self.undefined:
            return [column for column in columns if column[0] not in self.undefined]
        return list(columns)

    def _at_each_point(self, function: Callable[..., Value], values: list[Value]) -> Value:
        """Apply a function of the values at one point."""
        if list not in map(type, values):
            return resolve_zero(function(*values), self.is_final)
        results: list[Value] = [_NOWHERE] * len(self.points)
        for position, column in self._columns(values):
            try:
                results[position] = resolve_zero(function(*column), self.is_final)
            except OutsideDomain:
                self.undefined.add(position)
        return self._joined(results)

    def _hidden(self, name: Callable[[list[str]], str], values: list[Value]) -> Value:
        """Return hidden values whose names are built of the values at each point."""
        results: list[Value] = [_NOWHERE] * len(self.points)
        for position, column in self._columns(values):
            parts = [value if isinstance(value, str) else part_key(value) for value in column]
            results[position] = symbol_value(name(parts), self.points[position])
        return results if len(results) > 1 else results[0]

    def _joined(self, results: list[Value]) -> Value:
        """Return results of each point as a list of balls, or as the exact value that they share."""
        exact = [result for result in results if type(result) is fmpq]
        if not exact:
            return results
        if len(exact) + len(self.undefined) < len(results) or exact.count(exact[0]) < len(exact):
            raise PointsDiffer
        return exact[0]

    def _resolved(self, value: Value) -> Value:
        """Replace what may be zero by zero, and complex numbers that may be real by real ones."""
        if type(value) is not list:
            return (
                value if type(value) is arb and value != 0 else resolve_zero(value, self.is_final)
            )
        a, b, c = value
        if type(a) is type(b) is type(c) is arb and a != 0 and b != 0 and c != 0:
            return value
        results: list[Value] = [_NOWHERE] * len(value)
        for position, (ball,) in self._columns([value]):
            results[position] = resolve_zero(ball, self.is_final)
        return self._joined(results)

    # ---- sums, products, powers -----------------------------------------------------------------

    def sum_of(self, terms: list[Value]) -> Value:
        """Add values."""
        exact: Value = ZERO
        balls: list[Value] = []
        for term in terms:
            if type(term) is fmpq:
                exact += term
                if exact.height_bits() > LARGE_BITS:
                    self._count_large_work(exact)
            else:
                balls.append(term)
        if not balls:
            return exact
        if exact:
            balls.append(arb(checked_rational(exact)))
        if len(balls) == 1:
            return balls[0]
        if list not in map(type, balls):
            check_absorption(balls)
            return self._resolved(sum(balls[1:], balls[0]))
        if self.undefined or not all_show(balls):
            for _, column in self._columns(balls):
                check_absorption(column)
        return self._resolved(reduce(_plus, balls))

    def _product(self, factors: list[Value]) -> Value:
        exact: Value = None
        scale: Value = None
        balls: Value = None
        is_negative = False
        for factor in factors:
            if factor is _NEGATIVE:
                is_negative = not is_negative
            elif type(factor) is fmpq:
                exact = factor if exact is None else exact * factor
                self._count_large_work(exact)
            elif type(factor) is list:
                balls = factor if balls is None else _times(balls, factor)
            else:
                scale = factor if scale is None else scale * factor
        if exact is not None:
            if is_negative:
                exact, is_negative = -exact, False
            if not exact or (scale is None and balls is None):
                return exact
            if exact != 1:
                checked_rational(exact)
                scale = exact if scale is None else scale * exact
        elif scale is None and balls is None:
            return _NEGATIVE if is_negative else ONE
        if is_negative:
            if scale is None:
                return self._resolved(_negative(balls))
            scale = -scale
        if balls is None:
            return self._resolved(scale)
        return self._resolved(balls if scale is None else _times(balls, scale))

    def _quotient(self, top: Value, low: Value) -> Value:
        if type(low) is fmpq:
            if low == 0:
                raise Uncertified
            if type(top) is fmpq:
                self._count_large_work(top)
                self._count_large_work(low)
                return top / low
            checked_rational(low)
        elif type(top) is fmpq:
            if top == 0:
                return top
            checked_rational(top)
        return self._resolved(_over(top, low))

    def _count_large_work(self, value: Value) -> None:
        """Count the work on a large exact number."""
        bits = value.height_bits()
        if bits > LARGE_BITS:
            self.steps += bits >> 6
            if bits > LARGEST_BITS or self.steps > MOST_STEPS:
                raise Uncertified

    def _power_of_nodes(self, node: Node) -> Value:
        exponent = self.value(node[2])
        if node[1] == _E:
            return self._at_each_point(_exponential, [exponent])
        return self._power(self.value(node[1]), exponent)

    def _root_of_nodes(self, node: Node) -> Value:
        degree = self.value(node[2])
        if type(degree) is not fmpq or degree == 0:
            raise Uncertified
        return self._power(self.value(node[1]), 1 / degree)

    def _function_of_nodes(self, node: Node) -> Value:
        values = [self.value(part) for part in node[2]]
        method = _METHODS.get(node[1])
        function = partial(self._elementary, node[1]) if method is None else getattr(self, method)
        return self._at_each_point(function, values)

    def _power(self, base: Value, exponent: Value) -> Value:
        if type(exponent) is fmpq and exponent.q == 1:
            return self._integer_power(base, int(exponent.p))
        return self._at_each_point(self._power_at_point, [base, exponent])

    def _integer_power(self, base: Value, exponent: int) -> Value:
        if type(base) is not list:
            return self._resolved(integer_power(base, exponent))
        if exponent == 2:
            return self._resolved(_times(base, base))
        if 0 < exponent < LARGEST_ARGUMENT:
            return self._resolved([ball**exponent for ball in base])
        return self._resolved([integer_power(ball, exponent) for ball in base])

    def _power_at_point(self, base: Value, exponent: Value) -> Value:
        """Raise a value; rational powers with odd denominators of negative reals are real."""
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

    def _percent(self) -> Value:
        if self.policy.percent == "kept":
            raise Uncertified
        return fmpq(1, 100) if self.policy.percent == "fraction" else ONE

    def _logarithm_of_unknown_base(self, value: Value) -> Value:
        base = {"10": arb(10), "e": arb.const_e()}.get(self.policy.log_base)
        return self._logarithm(value) / (7 + symbol_value("log", 0) if base is None else base).log()

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

    def _absolute(self, value: Value) -> Value:
        self.known.may_have_bars = True
        return abs(value)

    def _floor(self, value: Value, name: str = "floor") -> Value:
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

    def _ceiling(self, value: Value) -> Value:
        return self._floor(value, "ceil")

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
        below = gamma_function(low + 1) * gamma_function(top - low + 1)
        return self._quotient(gamma_function(top + 1), resolve_zero(below, self.is_final))

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
        # A sum without terms does not evaluate its body.
        self.known.may_have_bars = True
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
        return self.sum_of(values) if kind == "sum" else self._product(values)

    def _unexpanded(self, node: Node, low: Value, high: Value | None) -> Value:
        """Represent a sum with symbolic bounds by a hidden value of its terms and bounds."""
        _, kind, index, _, _, body = node
        if not self.points:
            raise Uncertified
        self.bound[index] = self._symbol("index")
        term = self.value(body)
        self.bound.pop(index)
        return self._hidden(
            lambda parts: f"{kind}({index};{';'.join(parts)})",
            [low, "oo" if high is None else high, term],
        )


# A list holds one ball for each of three points: written out, arithmetic costs half of a comprehension.


def _negative(value: Value) -> Value:
    """Return minus a value."""
    if type(value) is not list:
        return -value
    a, b, c = value
    return [-a, -b, -c]


def _plus(left: Value, right: Value) -> Value:
    """Add values."""
    if type(left) is not list:
        left, right = right, left
    if type(left) is not list:
        return left + right
    a, b, c = left
    d, e, f = right if type(right) is list else (right, right, right)
    return [a + d, b + e, c + f]


def _times(left: Value, right: Value) -> Value:
    """Multiply a list by a value."""
    a, b, c = left
    d, e, f = right if type(right) is list else (right, right, right)
    return [a * d, b * e, c * f]


def _over(top: Value, low: Value) -> Value:
    """Divide values."""
    if type(top) is not list and type(low) is not list:
        return top / low
    a, b, c = top if type(top) is list else (top, top, top)
    d, e, f = low if type(low) is list else (low, low, low)
    return [a / d, b / e, c / f]


@lru_cache(maxsize=4_096)
def _rational(numerator: int, denominator: int) -> Value:
    return fmpq(numerator, denominator)


@lru_cache(maxsize=4_096)
def _symbol_values(name: str, points: tuple[int, ...]) -> list[Value]:
    return [symbol_value(name, point) for point in points]


def _exponential(exponent: Value) -> Value:
    """Raise e."""
    if isinstance(exponent, fmpq):
        if exponent == 0:
            return ONE
        exponent = arb(checked_rational(exponent))
    return checked_exponent(exponent).exp()


def _is_in_domain(name: str, value: Value) -> bool:
    """Tell whether a real function is defined at a real value."""
    if name in {"arcsin", "arccos", "arctanh"}:
        return bool(-1 < value < 1)
    return bool(value >= 1) if name == "arccosh" else True
