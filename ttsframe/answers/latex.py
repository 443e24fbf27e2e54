"""A small, bounded parser for the LaTeX in which answers are written.

It knows arithmetic, roots, powers, elementary functions and named symbols, reads each string to its
end, and refuses whatever has two readings. What it returns is a tree of tuples:

``("q", numerator, denominator)``, ``("c", name)`` a constant, ``("s", name)`` a symbol,
``("+", terms)``, ``("*", factors)``, ``("/", a, b)``, ``("^", base, exponent)``, ``("r", x, degree)`` a root,
``("f", name, arguments)`` a known function, ``("u", name, arguments)`` an unknown one,
``("S", "sum" | "prod", index, low, high, body)``.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from ttsframe.answers.tokens import FUNCTIONS, TRIGONOMETRIC, Unreadable, scan

__all__ = [
    "DEEPEST",
    "INFINITY",
    "Node",
    "Unreadable",
    "parse",
    "symbols_of",
    "uses_function",
]

Node: TypeAlias = tuple[Any, ...]

DEEPEST: Final = 40
LONGEST_NUMBER: Final = 3_000
MOST_TERMS: Final = 200
"""Of a sum or product written with an index."""

INFINITY: Final[Node] = ("c", "oo")
MINUS_ONE: Final[Node] = ("q", -1, 1)
HALF_TURN: Final[Node] = ("/", ("c", "pi"), ("q", 180, 1))

_UNKNOWN_FUNCTIONS: Final = frozenset("fghFGH")
_STARTS: Final = frozenset("LC({[")
_CLOSERS: Final = frozenset({"rfloor", "rceil"})
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
_PRODUCT: Final = frozenset({"cdot", "times", "div"})


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


def symbols_of(node: Node) -> frozenset[str]:
    """Return the names of the free symbols and unknown functions of a tree."""
    found: set[str] = set()
    _collect(node, found)
    return frozenset(found)


def uses_function(node: Node, name: str) -> bool:
    """Tell whether a tree applies a function anywhere."""
    if node[0] == "f" and node[1] == name:
        return True
    parts = node[1] if node[0] in {"+", "*"} else node[2] if node[0] in {"f", "u"} else node[1:]
    return any(isinstance(part, tuple) and uses_function(part, name) for part in parts)


def _collect(node: Node, found: set[str]) -> None:
    op = node[0]
    if op == "s":
        found.add(node[1])
    elif op in {"+", "*"}:
        for part in node[1]:
            _collect(part, found)
    elif op in {"/", "^", "r"}:
        _collect(node[1], found)
        _collect(node[2], found)
    elif op in {"f", "u"}:
        if op == "u":
            found.add(node[1])
        for part in node[2]:
            _collect(part, found)
    elif op == "S":
        inner: set[str] = set()
        _collect(node[5], inner)
        found |= inner - {node[2]}


def number(text: str) -> Node:
    """Make the node of a decimal number."""
    if len(text) > LONGEST_NUMBER:
        raise Unreadable
    whole, _, decimals = text.partition(".")
    if not decimals:
        return ("q", int(whole or "0"), 1)
    return ("q", int((whole + decimals) or "0"), 10 ** len(decimals))


class _Parser:
    """One pass over the tokens of one string, by recursive descent."""

    __slots__ = ("at", "bars", "degrees", "depth", "kinds", "values")

    def __init__(self, text: str) -> None:
        self.kinds, self.values = scan(text)
        self.at = 0
        self.bars = 0
        self.degrees = 0
        self.depth = 0

    def _refuse(self) -> Unreadable:
        return Unreadable(self.values[self.at])

    def _expect(self, kind: str) -> None:
        if self.kinds[self.at] != kind:
            raise self._refuse()
        self.at += 1

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
            if kind == "*" or (kind == "C" and self.values[self.at] in _PRODUCT):
                divides = self.values[self.at] == "div"
                self.at += 1
                factor = self.signed_factor()
                if divides:
                    factors = [("/", _product(factors), factor)]
                else:
                    factors.append(factor)
            elif kind == "/":
                self.at += 1
                factors = [("/", _product(factors), self.signed_factor())]
            elif (kind in _STARTS and self.values[self.at] not in _CLOSERS) or (
                (kind == "|" and not self.bars) or (kind == "N" and self.kinds[self.at - 1] == "!")
            ):
                factors.append(self.factor())
            elif kind in {"\\%", "%"}:
                self.at += 1
                factors.append(("f", "percent", ()))
            else:
                return _product(factors)

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
            raise self._refuse()

    def factor(self) -> Node:
        """Read an atom with its factorials, degrees and exponent."""
        return self.raised(self.atom())

    def raised(self, base: Node) -> Node:
        """Read what follows an atom: factorial, degree sign, power."""
        while True:
            kind = self.kinds[self.at]
            if kind == "!":
                if self.kinds[self.at + 1] in {"!", "="}:
                    raise self._refuse()
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
                    raise self._refuse()
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
            self._expect("}")
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
            raise self._refuse()
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
        self._expect("{")
        bars, self.bars = self.bars, 0
        node = self.expression()
        self.bars = bars
        self._expect("}")
        return node

    def argument(self) -> Node:
        r"""Read the argument of a command: a group, or one token as in \frac12."""
        kind = self.kinds[self.at]
        if kind == "{":
            return self.group()
        if kind == "N":
            digits = self.values[self.at]
            if not digits[0].isdigit():
                raise self._refuse()
            if len(digits) == 1:
                self.at += 1
            else:
                self.values[self.at] = digits[1:]
            return ("q", int(digits[0]), 1)
        if kind in {"L", "C"}:
            return self.atom()
        raise self._refuse()

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
            self._expect(")" if kind == "(" else "]")
            return node
        if kind == "|":
            self.at += 1
            self.bars += 1
            node = self.expression()
            self.bars -= 1
            self._expect("|")
            if self.kinds[self.at] in _STARTS and "|" in self.kinds[self.at :]:
                # |2|x|-1| has two readings.
                raise self._refuse()
            return ("f", "abs", (node,))
        raise self._refuse()

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
            raise self._refuse()
        return number(text)

    def _mixed(self, whole: str) -> Node:
        fraction = self.command()
        if fraction[0] == "/" and fraction[1][0] == "q" and fraction[2][0] == "q":
            top, low = fraction[1], fraction[2]
            # 2\frac{3}{2} is a product to some and a mixed number to others.
            if not (0 <= top[1] < low[1] and top[2] == low[2] == 1):
                raise self._refuse()
            return ("+", (number(whole), fraction))
        if self.kinds[self.at] == "^":
            fraction = self.raised(fraction)
        return ("*", (number(whole), fraction))

    def _repeating(self, text: str) -> Node:
        self.at += 1
        self._expect("{")
        cycle = self.values[self.at]
        self._expect("N")
        self._expect("}")
        if not cycle.isdigit() or len(cycle) > 50:
            raise self._refuse()
        decimals = len(text.partition(".")[2])
        tail = ("q", int(cycle), (10 ** len(cycle) - 1) * 10**decimals)
        return ("+", (number(text), tail))

    def _in_base(self, text: str) -> Node:
        self.at += 1
        braced = self.kinds[self.at] == "{"
        self.at += braced
        base = self.values[self.at]
        self._expect("N")
        if braced:
            self._expect("}")
        if not (base.isdigit() and text.isdigit() and len(base) < 3 and 2 <= int(base) <= 36):
            raise self._refuse()
        if len(text) > 400 or any(int(digit) >= int(base) for digit in text):
            raise self._refuse()
        return ("q", int(text, int(base)), 1)

    def symbol(self) -> Node:
        """Read a letter with its subscript and primes; e and i are constants."""
        name = self.values[self.at]
        self.at += 1
        bare = name
        name = self._decorated(name)
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
        self._expect(")")
        return ("u", name, tuple(arguments))

    def _decorated(self, name: str) -> str:
        while True:
            kind = self.kinds[self.at]
            if kind == "_":
                self.at += 1
                name += "_" + self._raw()
            elif kind == "'":
                self.at += 1
                name += "'"
            elif kind == "^" and self.kinds[self.at + 1] in {"'", "{"} and self._primes():
                name += "'"
            else:
                return name

    def _primes(self) -> bool:
        kinds, at = self.kinds, self.at + 1
        if kinds[at] == "'":
            self.at += 2
            return True
        if kinds[at] == "{" and kinds[at + 1] == "'" and kinds[at + 2] == "}":
            self.at += 4
            return True
        return False

    def _raw(self) -> str:
        """Join the tokens of a subscript."""
        kinds, values = self.kinds, self.values
        if kinds[self.at] != "{":
            if kinds[self.at] not in {"N", "L", "C"}:
                raise self._refuse()
            self.at += 1
            return values[self.at - 1]
        depth = 0
        parts: list[str] = []
        while True:
            kind = kinds[self.at]
            if kind == "end":
                raise self._refuse()
            self.at += 1
            if kind == "{":
                depth += 1
            elif kind == "}":
                depth -= 1
                if not depth:
                    break
            elif not (kind == "C" and values[self.at - 1] == "text"):
                parts.append(values[self.at - 1])
        return "".join(parts)

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
            return ("s", self._decorated("\\" + name))
        if name == "infty":
            return INFINITY
        if name == "text":
            return self._text()
        if name == "binom":
            return ("f", "binomial", (self.argument(), self.argument()))
        if name in {"lfloor", "lceil"}:
            node = self.expression()
            if self.kinds[self.at] != "C" or self.values[self.at] != "r" + name[1:]:
                raise self._refuse()
            self.at += 1
            return ("f", name[1:], (node,))
        if name in {"abs", "floor", "ceil"} and self.kinds[self.at] in {"(", "{"}:
            return ("f", name, (self.atom(),))
        if name in _ACCENTS and self.kinds[self.at] in {"{", "L", "C"}:
            return ("s", self._decorated("\\" + name + "{" + self._raw() + "}"))
        if name in {"sum", "prod"}:
            return self._indexed(name)
        raise self._refuse()

    def _text(self) -> Node:
        """Read letters set upright: a constant, a symbol, or a function's name."""
        word = self._raw()
        if word in {"e", "i"}:
            return ("c", word)
        if len(word) == 1 and word.isalpha():
            return ("s", self._decorated(word))
        if word in FUNCTIONS:
            return self._function(word)
        raise self._refuse()

    def _fraction(self) -> Node:
        starts_with_d = self.kinds[self.at] == "{" and self.values[self.at + 1] == "d"
        top = self.argument()
        if starts_with_d and self._is_differential():
            raise self._refuse()
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
            self._expect("]")
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
                    raise self._refuse()
                self.at += 1
                base = self.argument() if self.kinds[self.at] != "N" else self._whole_number()
            else:
                if power is not None:
                    raise self._refuse()
                self.at += 1
                power = self.exponent()
        if power == ("*", (MINUS_ONE, ("q", 1, 1))):
            if name not in _INVERSES:
                raise self._refuse()
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
        raise self._refuse()

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
                kind == "C" and not (value in FUNCTIONS or value in _PRODUCT or value in _CLOSERS)
            ):
                factors.append(self.factor())
            elif kind == "/" and _has_pi(factors):
                # \sin \pi/3: the sine of a third of pi to most, a third of the sine to a parser.
                raise self._refuse()
            else:
                return _product(factors)

    def raised_group(self) -> Node:
        r"""Read a bracketed argument; the power in \sin(x)^2 belongs to the sine and is read later."""
        kind = self.kinds[self.at]
        if kind == "{":
            return self.group()
        self.at += 1
        bars, self.bars = self.bars, 0
        node = self.expression()
        self.bars = bars
        self._expect(")" if kind == "(" else "]")
        return node

    def _indexed(self, name: str) -> Node:
        """Read a sum or product over an index."""
        self._expect("_")
        self._expect("{")
        index = self.values[self.at]
        self._expect("L")
        self._expect("=")
        low = self.expression()
        self._expect("}")
        self._expect("^")
        high = self.argument() if self.kinds[self.at] != "N" else self.numeral()
        body = self.term()
        return ("S", name, index, low, high, body)


def _product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else ("*", tuple(factors))


def _has_pi(factors: list[Node]) -> bool:
    return any(factor == ("c", "pi") for factor in factors)
