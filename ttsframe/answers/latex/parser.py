"""A small, bounded parser for the LaTeX in which answers are written.

It knows arithmetic, roots, powers, elementary functions and named symbols, reads each string to its
end, and refuses whatever has two readings. Here are its commands; the rest is the grammar's.
"""

from __future__ import annotations

from typing import Final

from ttsframe.answers.latex.grammar import CLOSERS, PRODUCT, Grammar, number, product
from ttsframe.answers.latex.tokens import FUNCTIONS, TRIGONOMETRIC, Unreadable
from ttsframe.answers.latex.tree import INFINITY, MINUS_ONE, Node

__all__ = ["parse"]

_INVERSES: Final = {
    name: "arc" + name for name in ("sin", "cos", "tan", "cot", "sinh", "cosh", "tanh")
}
_GREEK: Final = frozenset(
    """
    alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau
    upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell
    hbar aleph mho wp nabla
    """.split()  # noqa: SIM905 (a word list reads best as one)
)
_ACCENTS: Final = frozenset(
    {"bar", "overline", "vec", "hat", "tilde", "dot", "ddot", "mathbf", "boldsymbol", "mathcal", "widehat",
     "overrightarrow", "mathbb", "mathfrak", "mathscr", "bm", "underline", "widetilde"}
)  # fmt: skip


def parse(text: str) -> Node:
    r"""Parse one scalar.

    Parameters
    ----------
    text
        Normalised LaTeX of one scalar.

    Returns
    -------
    tuple
        Its tree.

    Raises
    ------
    Unreadable
        When the text is outside the language or past a limit.
    """
    parser = _Parser(text)
    node = parser.expression()
    if parser.kinds[parser.at] != "end":
        raise Unreadable(text)
    return node


class _Parser(Grammar):
    """The grammar with the commands."""

    __slots__ = ()

    def command(self) -> Node:
        """Read a backslash command with its arguments."""
        name = self.values[self.at]
        self.at += 1
        if name == "frac":
            return self._fraction()
        if name in {"sqrt", "cbrt"}:
            return self._root(name)
        if name == "pi":
            return ("c", "pi")
        if name in FUNCTIONS:
            return self._function(name)
        if name in _GREEK:
            if name == "Gamma" and self.kinds[self.at] == "(":
                return ("f", "gamma", (self.atom(),))
            return ("s", self.decorated("\\" + name))
        if name == "infty":
            return INFINITY
        if name == "text":
            return self._text()
        if name == "binom":
            return ("f", "binomial", (self.argument(), self.argument()))
        if name in {"lfloor", "lceil"}:
            node = self.expression()
            if self.kinds[self.at] != "C" or self.values[self.at] != "r" + name[1:]:
                raise self.refuse()
            self.at += 1
            return ("f", name[1:], (node,))
        if name in {"abs", "floor", "ceil"} and self.kinds[self.at] in {"(", "{"}:
            return ("f", name, (self.atom(),))
        if name in _ACCENTS and self.kinds[self.at] in {"{", "L", "C"}:
            return ("s", self.decorated("\\" + name + "{" + self.raw() + "}"))
        if name in {"sum", "prod"}:
            return self._indexed(name)
        raise self.refuse()

    def _text(self) -> Node:
        """Read letters set upright: a constant, a symbol, or a function's name."""
        word = self.raw()
        if word in {"e", "i"}:
            return ("c", word)
        if len(word) == 1 and word.isalpha():
            return ("s", self.decorated(word))
        if word in FUNCTIONS:
            return self._function(word)
        raise self.refuse()

    def _fraction(self) -> Node:
        starts_with_d = self.kinds[self.at] == "{" and self.values[self.at + 1] == "d"
        top = self.argument()
        if starts_with_d and self._is_differential():
            raise self.refuse()
        low = self.argument()
        return ("/", top, low)

    def _is_differential(self) -> bool:
        """Tell whether the denominator is dx, or dx with a power."""
        kinds, values, at = self.kinds, self.values, self.at
        if kinds[at] != "{" or values[at + 1] != "d" or kinds[at + 2] not in {"L", "C"}:
            return False
        return kinds[at + 3] in {"}", "^"}

    def _root(self, name: str) -> Node:
        degree: Node = ("q", 3 if name == "cbrt" else 2, 1)
        if self.kinds[self.at] == "[":
            self.at += 1
            degree = self.expression()
            self.expect("]")
        kind = self.kinds[self.at]
        if kind == "N":
            # \sqrt12 prints as the root of 1 beside a 2, but the root of 12 is what is meant.
            self.at += 1
            return ("r", number(self.values[self.at - 1]), degree)
        inner = self.atom() if kind == "(" else self.argument()
        return ("r", inner, degree)

    def _function(self, name: str) -> Node:
        base: Node | None = None
        power: Node | None = None
        while self.kinds[self.at] in {"_", "^"}:
            if self.kinds[self.at] == "_":
                if name != "log" or base is not None:
                    raise self.refuse()
                self.at += 1
                base = self.argument() if self.kinds[self.at] != "N" else self._whole_number()
            else:
                if power is not None:
                    raise self.refuse()
                self.at += 1
                power = self.exponent()
        if power == ("*", (MINUS_ONE, ("q", 1, 1))):
            if name not in _INVERSES:
                raise self.refuse()
            name, power = _INVERSES[name], None
        node: Node
        self.degrees += name in TRIGONOMETRIC
        argument = self.operand()
        self.degrees -= name in TRIGONOMETRIC
        if base is not None:
            node = ("/", ("f", "ln", (argument,)), ("f", "ln", (base,)))
        elif name == "exp":
            node = ("^", ("c", "e"), argument)
        else:
            node = ("f", name, (argument,))
        return ("^", node, power) if power is not None else node

    def _whole_number(self) -> Node:
        # \log_28 may be the logarithm of 8 to base 2: only one digit is safe without braces.
        digits = self.values[self.at]
        if len(digits) == 1 or (digits == "10" and self.kinds[self.at + 1] != "end"):
            self.at += 1
            return number(digits)
        raise self.refuse()

    def operand(self) -> Node:
        """Read the argument of a function: what is in brackets, or the product that follows."""
        kind = self.kinds[self.at]
        if kind in {"(", "{", "["}:
            return self.raised_group()
        if kind == "|":
            return self.atom()
        if kind == "-":
            self.at += 1
            return ("*", (MINUS_ONE, self.factor()))
        factors = [self.factor()]
        while True:
            kind = self.kinds[self.at]
            value = self.values[self.at]
            if kind == "L" or (
                kind == "C" and not (value in FUNCTIONS or value in PRODUCT or value in CLOSERS)
            ):
                factors.append(self.factor())
            elif kind == "/" and _has_pi(factors):
                # \sin \pi/3: the sine of a third of pi to most, a third of the sine to a parser.
                raise self.refuse()
            else:
                return product(factors)

    def raised_group(self) -> Node:
        r"""Read a bracketed argument; the power in \sin(x)^2 belongs to the sine and is read later."""
        kind = self.kinds[self.at]
        if kind == "{":
            return self.group()
        self.at += 1
        bars, self.bars = self.bars, 0
        node = self.expression()
        self.bars = bars
        self.expect(")" if kind == "(" else "]")
        return node

    def _indexed(self, name: str) -> Node:
        """Read a sum or product over an index."""
        self.expect("_")
        self.expect("{")
        index = self.values[self.at]
        self.expect("L")
        self.expect("=")
        low = self.expression()
        self.expect("}")
        self.expect("^")
        high = self.argument() if self.kinds[self.at] != "N" else self.numeral()
        body = self.term()
        return ("S", name, index, low, high, body)


def _has_pi(factors: list[Node]) -> bool:
    return any(factor == ("c", "pi") for factor in factors)
