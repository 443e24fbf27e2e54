"""Sums, products, powers, brackets, numbers and symbols: the grammar of a scalar without its commands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from ttsframe.answers.latex.cursor import Cursor
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.latex.tree import MINUS_ONE, Node

__all__ = ["CLOSERS", "PRODUCT", "Grammar", "number", "product"]

DEEPEST: Final = 40
LONGEST_NUMBER: Final = 3_000

HALF_TURN: Final[Node] = ("/", ("c", "pi"), ("q", 180, 1))

_UNKNOWN_FUNCTIONS: Final = frozenset("fghFGH")
_STARTS: Final = frozenset("LC({[")
CLOSERS: Final = frozenset({"rfloor", "rceil"})
PRODUCT: Final = frozenset({"cdot", "times", "div"})


def number(text: str) -> Node:
    """Make the node of a decimal number."""
    if len(text) > LONGEST_NUMBER:
        raise Unreadable
    whole, _, decimals = text.partition(".")
    if not decimals:
        return ("q", int(whole or "0"), 1)
    return ("q", int((whole + decimals) or "0"), 10 ** len(decimals))


def product(factors: list[Node]) -> Node:
    """Join factors, of which one alone is no product."""
    return factors[0] if len(factors) == 1 else ("*", tuple(factors))


class Grammar(Cursor, ABC):
    """One pass over the tokens of one string, by recursive descent.

    Parameters
    ----------
    text
        Normalised LaTeX of one scalar.
    """

    __slots__ = ("bars", "degrees", "depth")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bars = 0
        self.degrees = 0
        self.depth = 0

    @abstractmethod
    def command(self) -> Node:
        """Read a backslash command with its arguments."""

    def expression(self) -> Node:
        """Read a sum of terms."""
        terms: list[Node] = []
        sign = self.kinds[self.at]
        if sign in {"+", "-"}:
            self.at += 1
        while True:
            term = self.term()
            terms.append(("*", (MINUS_ONE, term)) if sign == "-" else term)
            sign = self.kinds[self.at]
            if sign not in {"+", "-"}:
                break
            self.at += 1
        return terms[0] if len(terms) == 1 else ("+", tuple(terms))

    def term(self) -> Node:
        """Read a product of factors, written or implied."""
        factors = [self.factor()]
        while True:
            kind = self.kinds[self.at]
            if kind == "*" or (kind == "C" and self.values[self.at] in PRODUCT):
                divides = self.values[self.at] == "div"
                self.at += 1
                factor = self.signed_factor()
                if divides:
                    factors = [("/", product(factors), factor)]
                else:
                    factors.append(factor)
            elif kind == "/":
                self.at += 1
                factors = [("/", product(factors), self.signed_factor())]
            elif (kind in _STARTS and self.values[self.at] not in CLOSERS) or (
                (kind == "|" and not self.bars) or (kind == "N" and self.kinds[self.at - 1] == "!")
            ):
                factors.append(self.factor())
            elif kind in {"\\%", "%"}:
                self.at += 1
                factors.append(("f", "percent", ()))
            else:
                return product(factors)

    def signed_factor(self) -> Node:
        """Read a factor that may carry its own sign, as in 2 * -3."""
        sign = self.kinds[self.at]
        if sign in {"+", "-"}:
            self.at += 1
            factor = self.factor()
            return ("*", (MINUS_ONE, factor)) if sign == "-" else factor
        return self.factor()

    def _descend(self) -> None:
        """Count one level; every recursion passes here."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refuse()

    def factor(self) -> Node:
        """Read an atom with its factorials, degrees and exponent."""
        return self.raised(self.atom())

    def raised(self, base: Node) -> Node:
        """Read what follows an atom: factorial, degree sign, power."""
        while True:
            kind = self.kinds[self.at]
            if kind == "!":
                if self.kinds[self.at + 1] in {"!", "="}:
                    raise self.refuse()
                self.at += 1
                base = ("f", "factorial", (base,))
            elif kind == "^":
                if self._is_degree():
                    if self.degrees:
                        base = ("*", (base, HALF_TURN))
                    continue
                self.at += 1
                base = ("^", base, self.exponent())
                if self.kinds[self.at] == "^" and not self._peeks_degree():
                    raise self.refuse()
            else:
                return base

    def _peeks_degree(self) -> bool:
        kinds, values, at = self.kinds, self.values, self.at
        if kinds[at + 1] == "{":
            at += 1
        return kinds[at + 1] == "C" and values[at + 1] == "circ"

    def _is_degree(self) -> bool:
        if not self._peeks_degree():
            return False
        braced = self.kinds[self.at + 1] == "{"
        self.at += 3 if braced else 2
        if braced:
            self.expect("}")
        return True

    def exponent(self) -> Node:
        """Read what stands after a caret: a group, or one signed atom without braces."""
        kind = self.kinds[self.at]
        if kind == "{":
            return self.group()
        sign = kind
        if sign in {"+", "-"}:
            self.at += 1
        # Without braces LaTeX raises one digit; in plain text the whole number is meant, and 2^10 is common.
        if self.kinds[self.at] not in {"N", "L", "(", "C"}:
            raise self.refuse()
        if self.kinds[self.at] == "N":
            self.at += 1
            node = number(self.values[self.at - 1])
        else:
            node = self.atom()
        if self.kinds[self.at] == "^" and not self._peeks_degree():
            self._descend()
            self.at += 1
            node = ("^", node, self.exponent())
            self.depth -= 1
        return ("*", (MINUS_ONE, node)) if sign == "-" else node

    def group(self) -> Node:
        """Read an expression in braces."""
        self.expect("{")
        bars, self.bars = self.bars, 0
        node = self.expression()
        self.bars = bars
        self.expect("}")
        return node

    def argument(self) -> Node:
        r"""Read the argument of a command: a group, or one token as in \frac12."""
        kind = self.kinds[self.at]
        if kind == "{":
            return self.group()
        if kind == "N":
            digits = self.values[self.at]
            if not digits[0].isdigit():
                raise self.refuse()
            if len(digits) == 1:
                self.at += 1
            else:
                self.values[self.at] = digits[1:]
            return ("q", int(digits[0]), 1)
        if kind in {"L", "C"}:
            return self.atom()
        raise self.refuse()

    def atom(self) -> Node:
        """Read a number, symbol, group, or command with its arguments."""
        self._descend()
        node = self._atom()
        self.depth -= 1
        return node

    def _atom(self) -> Node:
        at = self.at
        kind = self.kinds[at]
        if kind == "N":
            return self.numeral()
        if kind == "L":
            return self.symbol()
        if kind == "C":
            return self.command()
        if kind == "{":
            return self.group()
        if kind == "(" or (kind == "[" and at):
            self.at += 1
            bars, self.bars = self.bars, 0
            node = self.expression()
            self.bars = bars
            self.expect(")" if kind == "(" else "]")
            return node
        if kind == "|":
            self.at += 1
            self.bars += 1
            node = self.expression()
            self.bars -= 1
            self.expect("|")
            if self.kinds[self.at] in _STARTS and "|" in self.kinds[self.at :]:
                # |2|x|-1| has two readings.
                raise self.refuse()
            return ("f", "abs", (node,))
        raise self.refuse()

    def numeral(self) -> Node:
        """Read a number: decimal, repeating, in a base, or mixed with a fraction."""
        text = self.values[self.at]
        self.at += 1
        kind, value = self.kinds[self.at], self.values[self.at]
        if kind == "C":
            if value == "frac" and text.isdigit():
                return self._mixed(text)
            if value in {"overline", "bar"} and "." in text:
                return self._repeating(text)
        elif kind == "_":
            return self._in_base(text)
        elif kind == "N":
            raise self.refuse()
        return number(text)

    def _mixed(self, whole: str) -> Node:
        fraction = self.command()
        if fraction[0] == "/" and fraction[1][0] == "q" and fraction[2][0] == "q":
            top, low = fraction[1], fraction[2]
            # 2\frac{3}{2} is a product to some and a mixed number to others.
            if not (0 <= top[1] < low[1] and top[2] == low[2] == 1):
                raise self.refuse()
            return ("+", (number(whole), fraction))
        if self.kinds[self.at] == "^":
            fraction = self.raised(fraction)
        return ("*", (number(whole), fraction))

    def _repeating(self, text: str) -> Node:
        self.at += 1
        self.expect("{")
        cycle = self.values[self.at]
        self.expect("N")
        self.expect("}")
        if not cycle.isdigit() or len(cycle) > 50:
            raise self.refuse()
        decimals = len(text.partition(".")[2])
        tail = ("q", int(cycle), (10 ** len(cycle) - 1) * 10**decimals)
        return ("+", (number(text), tail))

    def _in_base(self, text: str) -> Node:
        self.at += 1
        braced = self.kinds[self.at] == "{"
        self.at += braced
        base = self.values[self.at]
        self.expect("N")
        if braced:
            self.expect("}")
        if not (base.isdigit() and text.isdigit() and len(base) < 3 and 2 <= int(base) <= 36):
            raise self.refuse()
        if len(text) > 400 or any(int(digit) >= int(base) for digit in text):
            raise self.refuse()
        return ("q", int(text, int(base)), 1)

    def symbol(self) -> Node:
        """Read a letter with its subscript and primes; e and i are constants."""
        name = self.values[self.at]
        self.at += 1
        bare = name
        name = self.decorated(name)
        if name in {"e", "i"}:
            return ("c", name)
        if self.kinds[self.at] == "(" and (bare in _UNKNOWN_FUNCTIONS or self._applies_to_number()):
            return self._unknown(name)
        return ("s", name)

    def _applies_to_number(self) -> bool:
        # y(0) is a value of y: nobody writes a product so.
        return self.kinds[self.at + 1] == "N" and self.kinds[self.at + 2] == ")"

    def _unknown(self, name: str) -> Node:
        self.at += 1
        arguments = [self.expression()]
        while self.kinds[self.at] == ",":
            self.at += 1
            arguments.append(self.expression())
        self.expect(")")
        return ("u", name, tuple(arguments))
