"""A bounded parser for the LaTeX in which answers are written: recursive descent over the tokens.

It knows arithmetic, roots, powers, elementary functions, named symbols, and calculus with bounds. It
reads each string to its end and refuses what has two readings.
"""

from __future__ import annotations

import re
from math import factorial, gcd, lcm, prod
from typing import Final

from ttsframe.answers.latex.exact import (
    exact_function,
    exact_power,
    exact_root,
    exact_value,
    number_node,
    value_in_base,
)
from ttsframe.answers.latex.tokens import FUNCTIONS, TRIGONOMETRIC, Unreadable, scan
from ttsframe.answers.latex.tree import INFINITY, MINUS_ONE, ONE, Node, symbols_of

__all__ = ["parse"]

DEEPEST: Final = 40
LONGEST_NUMBER: Final = 3_000
HIGHEST_DERIVATIVE: Final = 10
LARGEST_DOUBLE: Final = 300
"""Largest number whose double factorial is read."""

_ONE_DEGREE: Final[Node] = ("/", ("c", "pi"), ("q", 180, 1))
_UNKNOWN_FUNCTIONS: Final = frozenset("fghFGH")
_STARTS: Final = frozenset("LC({[")
"""Kinds of tokens that begin a factor."""
_OPENING: Final = frozenset({"(", "[", "{", "\\{"})
_CLOSING: Final = frozenset({")", "]", "}", "\\}"})
_AFTER_ATOM: Final = frozenset("!^")
_CLOSERS: Final = frozenset({"rfloor", "rceil"})
_SELECTIONS: Final = frozenset({"gcd", "lcm", "min", "max"})
_SELECTIONS_BY_INITIALS: Final = {
    "GCD": "gcd",
    "HCF": "gcd",
    "GCF": "gcd",
    "hcf": "gcd",
    "LCM": "lcm",
}
"""Functions of several numbers, in any order."""
MOST_SELECTED: Final = 20
LARGEST_COMMON: Final = 10**300
"""Largest argument of a greatest common divisor or least common multiple."""
_NABLA: Final = ("s", "\\nabla")
_ABSOLUTE: Final = ("f", "abs")
_PRODUCT: Final = frozenset({"cdot", "times", "div"})
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
_BOLD_CAPITAL: Final = re.compile(r"\\mathbf\{[A-Z]")
_CAPITAL: Final = re.compile(r"(?:\\mathbf\{)?[A-Z]")
_INVERSE: Final = re.compile(r"[A-Z] ?\^ ?(?:\{ ?)?(?:- ?1|T|\\top)(?![0-9A-Za-z])")
"""A capital with a sign of matrices: then all capitals may be matrices."""
_VECTORS: Final = ("\\vec{", "\\overrightarrow{", "\\hat{", "\\mathbf{", "\\boldsymbol{", "\\bm{")


def parse(text: str) -> Node:
    """Return the tree of one scalar in normalized LaTeX; raise `Unreadable` where there is none."""
    parser = _Parser(text)
    node = parser.expression()
    if parser.kinds[parser.position] != "end":
        raise Unreadable(text)
    return node


def _has_vector(node: Node) -> bool:
    """Tell whether a tree holds a symbol with an arrow, with a hat or in bold type."""
    return any(name.startswith(_VECTORS) for name in symbols_of(node))


class _Parser:
    """A position in the tokens of one string, and the brackets and operators open at it."""

    __slots__ = (
        "bars",
        "bound",
        "degrees",
        "depth",
        "differential",
        "has_absolutes",
        "integral_depth",
        "kinds",
        "loose_end",
        "matrices",
        "position",
        "values",
    )

    def __init__(self, text: str) -> None:
        self.kinds, self.values = scan(text)
        self.position = 0
        self.depth = 0
        self.bars = 0
        """Absolute values that are open inside the current brackets."""
        self.has_absolutes = False
        self.matrices: re.Pattern[str] | None = None
        """Names of symbols that may be matrices."""
        if "^" in text and _INVERSE.search(text):
            self.matrices = _CAPITAL
        elif "\\mathbf" in text:
            self.matrices = _BOLD_CAPITAL
        self.degrees = 0
        """Trigonometric functions that are open: there, a degree sign changes the value."""
        self.bound: list[str] = []
        """Variables of the open sums, products and limits."""
        self.integral_depth = 0
        """Depth of the innermost integral that is open inside the current brackets; 0 for none."""
        self.differential: str | None = None
        r"""Variable of an integral whose dx was found in a numerator, as in \frac{dx}{x}."""
        self.loose_end = 0
        """Position after a function's argument without brackets, which a number could continue."""

    # ---- tokens ---------------------------------------------------------------------------------

    def refuse(self) -> Unreadable:
        """Return the exception that names the current token."""
        return Unreadable(self.values[self.position])

    def expect(self, kind: str) -> None:
        """Pass a token of one kind."""
        if self.kinds[self.position] != kind:
            raise self.refuse()
        self.position += 1

    def descend(self) -> None:
        """Count one level; every recursion passes here."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refuse()

    def bracketed(self, closer: str) -> Node:
        """Read an expression up to its closing bracket."""
        outside = self.bars, self.integral_depth
        self.bars = self.integral_depth = 0
        node = self.expression()
        self.bars, self.integral_depth = outside
        self.expect(closer)
        return node

    def decorated_name(self, name: str) -> str:
        """Read the subscripts and primes after a name."""
        while True:
            kind = self.kinds[self.position]
            if kind == "_":
                self.position += 1
                name += "_" + self.joined_tokens()
            elif kind == "'":
                self.position += 1
                name += "'"
            elif (
                kind == "^"
                and self.kinds[self.position + 1] in {"'", "{"}
                and self.skips_raised_prime()
            ):
                name += "'"
            else:
                return name

    def skips_raised_prime(self) -> bool:
        """Pass a prime that is written as an exponent, if there is one."""
        kinds, at = self.kinds, self.position + 1
        if kinds[at] == "'":
            self.position += 2
            return True
        if kinds[at] == "{" and kinds[at + 1] == "'" and kinds[at + 2] == "}":
            self.position += 4
            return True
        return False

    def joined_tokens(self) -> str:
        """Read one token or one group as plain characters, as in a subscript."""
        kinds, values = self.kinds, self.values
        if kinds[self.position] != "{":
            if kinds[self.position] not in {"N", "L", "C"}:
                raise self.refuse()
            self.position += 1
            return values[self.position - 1]
        depth = 0
        parts: list[str] = []
        while True:
            kind = kinds[self.position]
            if kind == "end":
                raise self.refuse()
            self.position += 1
            if kind == "{":
                depth += 1
            elif kind == "}":
                depth -= 1
                if not depth:
                    break
            elif not (kind == "C" and values[self.position - 1] == "text"):
                parts.append(values[self.position - 1])
        return "".join(parts)

    # ---- sums, products, powers -----------------------------------------------------------------

    def expression(self) -> Node:
        """Read a sum of terms."""
        terms: list[Node] = []
        sign = self.kinds[self.position]
        if sign in {"+", "-"}:
            self.position += 1
        while True:
            term = self.term()
            terms.append(("*", (MINUS_ONE, term)) if sign == "-" else term)
            sign = self.kinds[self.position]
            if sign not in {"+", "-"} or self.differential is not None:
                break
            self.position += 1
        if len(terms) == 1:
            return terms[0]
        if self.differential is not None:
            raise self.refuse()
        return ("+", tuple(terms))

    def term(self) -> Node:
        """Read a product of factors, written or implied."""
        factors = [self.factor()]
        while self.differential is None:
            kind = self.kinds[self.position]
            if kind == "*" or (kind == "C" and self.values[self.position] in _PRODUCT):
                sign = self.values[self.position]
                if factors[-1] == _NABLA:
                    # the divergence and the curl are not the gradient
                    raise self.refuse()
                self.position += 1
                if self.integral_depth and self.at_differential():
                    break
                factor = self.signed_factor()
                if sign == "times" and _has_vector(factor) and any(map(_has_vector, factors)):
                    # a cross product changes its sign when its factors change places
                    raise self.refuse()
                if sign == "div":
                    factors = [("/", _product(factors), factor)]
                else:
                    factors.append(factor)
            elif kind == "/":
                self.position += 1
                factors = [("/", _product(factors), self.signed_factor())]
            elif (kind in _STARTS and self.values[self.position] not in _CLOSERS) or (
                (kind == "|" and not self.bars) or (kind == "N" and self.multiplies())
            ):
                if self.integral_depth and self.at_differential():
                    break
                factors.append(self.factor())
            elif kind in {"\\%", "%"}:
                self.position += 1
                factors.append(("f", "percent", ()))
            else:
                break
        if self.matrices is not None and len(factors) > 1:
            names = (filter(self.matrices.match, symbols_of(factor)) for factor in factors)
            matrices = [found for found in map(frozenset, names) if found]
            if len(matrices) > 1 and len(frozenset().union(*matrices)) > 1:
                # a product of matrices changes when its factors change places
                raise self.refuse()
        return _product(_joined_absolutes(factors) if self.has_absolutes else factors)

    def multiplies(self) -> bool:
        """Tell whether the number that follows a factor is a factor, unlike the 2 of x2 or (1)2."""
        kinds, values, at = self.kinds, self.values, self.position
        before = kinds[at - 1]
        if before == "!":
            return True
        if not values[at][0].isdigit() or at == self.loose_end:
            return False
        if kinds[at + 1] == "^" and not self.at_degree_after(at + 1):
            # the base of a power, as in n2^{n-1}
            return before in {"L", ")", "]", "}"} or (
                before == "C" and (values[at - 1] in _GREEK or values[at - 1] == "pi")
            )
        return before in {")", "]"} and self.closes_variable(at - 1)

    def closes_variable(self, end: int) -> bool:
        """Tell whether brackets hold a variable, but not only letters: (n-2), unlike (a) or (B)."""
        kinds = self.kinds
        depth, start = 1, end
        while start and depth:
            start -= 1
            depth += (kinds[start] in {")", "]"}) - (kinds[start] in {"(", "["})
        inside = range(start + 1, end)
        return any(
            kinds[index] == "L" or (kinds[index] == "C" and self.values[index] in _GREEK)
            for index in inside
        ) and not all(kinds[index] == "L" for index in inside)

    def signed_factor(self) -> Node:
        """Read a factor that may carry its own sign, as in 2 * -3."""
        sign = self.kinds[self.position]
        if sign in {"+", "-"}:
            self.position += 1
            factor = self.factor()
            return ("*", (MINUS_ONE, factor)) if sign == "-" else factor
        return self.factor()

    def factor(self) -> Node:
        """Read an atom with its factorials, degrees and exponent."""
        base = self.atom()
        return self.with_exponents(base) if self.kinds[self.position] in _AFTER_ATOM else base

    def with_exponents(self, base: Node) -> Node:
        """Read what follows an atom: factorial, degree sign, power."""
        is_raised = False
        while True:
            kind = self.kinds[self.position]
            if kind == "!":
                if is_raised:
                    # 2^3! has two readings
                    raise self.refuse()
                if self.kinds[self.position + 1] == "!":
                    base = self.double_factorial(base)
                    continue
                if self.kinds[self.position + 1] == "=":
                    raise self.refuse()
                self.position += 1
                base = ("f", "factorial", (base,))
            elif kind == "^":
                if self.skips_degree():
                    if self.degrees:
                        base = ("*", (base, _ONE_DEGREE))
                    continue
                self.position += 1
                exponent = self.exponent()
                base = exact_power(base, exponent) or ("^", base, exponent)
                is_raised = True
                if self.kinds[self.position] == "^" and not self.at_degree():
                    raise self.refuse()
            else:
                return base

    def double_factorial(self, base: Node) -> Node:
        """Read 7!!, the product of 7, 5, 3 and 1; only of a number as written, because (3!)! is another."""
        at = self.position
        is_number = self.kinds[at - 1] == "N" and base[0] == "q" and base[2] == 1
        if not is_number or base[1] > LARGEST_DOUBLE or self.kinds[at + 2] in {"!", "=", "^"}:
            raise self.refuse()
        self.position += 2
        return ("q", prod(range(int(base[1]), 0, -2)), 1)

    def at_degree(self) -> bool:
        """Tell whether a degree sign follows, with or without braces."""
        return self.at_degree_after(self.position)

    def at_degree_after(self, at: int) -> bool:
        """Tell whether the caret at a position raises a degree sign."""
        kinds, values = self.kinds, self.values
        if kinds[at + 1] == "{":
            at += 1
        return kinds[at + 1] == "C" and values[at + 1] == "circ"

    def skips_degree(self) -> bool:
        """Pass a degree sign, if there is one."""
        if not self.at_degree():
            return False
        braced = self.kinds[self.position + 1] == "{"
        self.position += 3 if braced else 2
        if braced:
            self.expect("}")
        return True

    def exponent(self) -> Node:
        """Read what stands after a caret: a group, or one signed atom without braces."""
        kind = self.kinds[self.position]
        if kind == "{":
            return self.group()
        sign = kind
        if sign in {"+", "-"}:
            self.position += 1
        # Without braces LaTeX raises one digit, but 2^10 in plain text means the number 10.
        if self.kinds[self.position] not in {"N", "L", "(", "C"}:
            raise self.refuse()
        if self.kinds[self.position] == "N":
            self.position += 1
            node = _number(self.values[self.position - 1])
        else:
            node = self.atom()
        if self.kinds[self.position] == "^" and not self.at_degree():
            self.descend()
            self.position += 1
            node = ("^", node, self.exponent())
            self.depth -= 1
        return ("*", (MINUS_ONE, node)) if sign == "-" else node

    # ---- atoms ----------------------------------------------------------------------------------

    def group(self) -> Node:
        """Read an expression in braces."""
        self.expect("{")
        return self.bracketed("}")

    def argument(self) -> Node:
        r"""Read the argument of a command: a group, or one token as in \frac12."""
        kind = self.kinds[self.position]
        if kind == "{":
            return self.group()
        if kind == "N":
            digits = self.values[self.position]
            if not digits[0].isdigit():
                raise self.refuse()
            if len(digits) == 1:
                self.position += 1
            else:
                self.values[self.position] = digits[1:]
            return ("q", int(digits[0]), 1)
        if kind in {"L", "C"}:
            return self.atom()
        raise self.refuse()

    def atom(self) -> Node:
        """Read a number, symbol, group, or command with its arguments."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refuse()
        kind = self.kinds[self.position]
        if kind == "N":
            node = self.numeral()
        elif kind == "L":
            node = self.symbol()
        elif kind == "C":
            node = self.command()
        elif kind in {"_", "^"} or (kind == "{" and self.skips_empty_group()):
            node = self.selections()
        elif kind == "{":
            node = self.group()
        elif kind == "(" or (kind == "[" and self.position):
            node = self.in_brackets(")" if kind == "(" else "]")
        elif kind == "|":
            node = self.absolute()
        else:
            raise self.refuse()
        self.depth -= 1
        return node

    def skips_empty_group(self) -> bool:
        """Pass the braces before a script that stands at the left, as in {}_{5}C_{2}."""
        kinds, at = self.kinds, self.position
        is_empty = kinds[at + 1] == "}" and kinds[at + 2] in {"_", "^"}
        self.position += 2 * is_empty
        return is_empty

    def selections(self) -> Node:
        """Read the number of combinations or of permutations, as in {}_{5}C_{2} and ^{5}P_{2}."""
        whole = self.script()
        if self.values[self.position] == "text":
            self.position += 1
        name = self.joined_tokens()
        if name not in {"C", "P"} or self.kinds[self.position] != "_":
            raise self.refuse()
        part = self.script()
        kind, value = self.kinds[self.position], self.values[self.position]
        if kind in {"^", "_"} or (kind == "L" and value.isupper()):
            # ^{13}C_6H_{12}O_6 is a molecule
            raise self.refuse()
        are_numbers = whole[0] == part[0] == "q"
        node = _known_function("binomial", whole, part)
        if (are_numbers and node[0] != "q") or (name == "P" and not are_numbers):
            raise self.refuse()
        return node if name == "C" else ("q", node[1] * factorial(part[1]), 1)

    def script(self) -> Node:
        """Read a subscript or exponent that is a group, a number or a letter."""
        self.position += 1
        kind, value = self.kinds[self.position], self.values[self.position]
        if kind == "{":
            return self.group()
        self.position += 1
        if kind == "N" and value.isdigit():
            return _number(value)
        if kind == "L":
            return ("s", value)
        raise self.refuse()

    def in_brackets(self, closer: str) -> Node:
        """Read an expression in brackets; (101)_2 is a number in a base."""
        kinds, at = self.kinds, self.position + 1
        if closer == ")" and kinds[at] == "N" and kinds[at + 1] == ")" and kinds[at + 2] == "_":
            self.position += 3
            return self.number_in_base(self.values[at])
        self.position = at
        return self.bracketed(closer)

    def absolute(self) -> Node:
        """Read an absolute value between bars."""
        self.position += 1
        self.bars += 1
        node = self.expression()
        self.bars -= 1
        self.has_absolutes = True
        self.expect("|")
        is_sign = self.values[self.position] in _PRODUCT
        if not is_sign and self.kinds[self.position] in _STARTS and self.bar_follows():
            # |2|x|-1| has two readings.
            raise self.refuse()
        return _known_function("abs", node)

    def bar_follows(self) -> bool:
        """Tell whether another bar follows inside the current brackets."""
        depth = 0
        for kind in self.kinds[self.position :]:
            if kind == "|" and not depth:
                return True
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth < 0:
                break
        return False

    def numeral(self) -> Node:
        """Read a number: decimal, repeating, in a base, or mixed with a fraction."""
        text = self.values[self.position]
        self.position += 1
        kind, value = self.kinds[self.position], self.values[self.position]
        if kind == "C":
            if value == "frac" and text.isdigit():
                return self.mixed_number(text)
            if value in {"overline", "bar"} and "." in text:
                return self.repeating_decimal(text)
        elif kind == "_":
            return self.number_in_base(text)
        elif kind == "N":
            raise self.refuse()
        return _number(text)

    def mixed_number(self, whole: str) -> Node:
        fraction = self.command()
        if self.differential is not None:
            return ("*", (_number(whole), fraction))
        if fraction[0] == "/" and fraction[1][0] == "q" and fraction[2][0] == "q":
            top, low = fraction[1], fraction[2]
            # 2\frac{3}{2} may be a product or a mixed number.
            if not (0 <= top[1] < low[1] and top[2] == low[2] == 1):
                raise self.refuse()
            return ("+", (_number(whole), fraction))
        if self.kinds[self.position] == "^":
            fraction = self.with_exponents(fraction)
        return ("*", (_number(whole), fraction))

    def repeating_decimal(self, text: str) -> Node:
        self.position += 1
        self.expect("{")
        cycle = self.values[self.position]
        self.expect("N")
        self.expect("}")
        if not cycle.isdigit() or len(cycle) > 50:
            raise self.refuse()
        decimals = len(text.partition(".")[2])
        tail = ("q", int(cycle), (10 ** len(cycle) - 1) * 10**decimals)
        return ("+", (_number(text), tail))

    def number_in_base(self, text: str) -> Node:
        self.position += 1
        closers: list[str] = []
        while len(closers) < 2 and self.kinds[self.position] in ("{(" if closers else "{"):
            closers.append("}" if self.kinds[self.position] == "{" else ")")
            self.position += 1
        base = self.values[self.position]
        self.expect("N")
        for closer in reversed(closers):
            self.expect(closer)
        if not base.isdigit():
            raise self.refuse()
        value = value_in_base(text, int(base)) if len(base) < 3 else None
        if value is None:
            raise self.refuse()
        return number_node(value)

    def symbol(self) -> Node:
        """Read a letter with its subscript and primes; e and i are constants where nothing binds them."""
        bare = self.values[self.position]
        self.position += 1
        name = self.decorated_name(bare)
        if name in {"e", "i"} and name not in self.bound:
            return ("c", name)
        if self.kinds[self.position] == "(" and (
            bare in _UNKNOWN_FUNCTIONS or self.at_number_in_parentheses()
        ):
            return self.unknown_function(name)
        return ("s", name)

    def at_number_in_parentheses(self) -> bool:
        """Tell whether a value such as (0) follows: y(0) is a value of y, not a product."""
        return self.kinds[self.position + 1] == "N" and self.kinds[self.position + 2] == ")"

    def unknown_function(self, name: str) -> Node:
        self.position += 1
        arguments = [self.expression()]
        while self.kinds[self.position] == ",":
            self.position += 1
            arguments.append(self.expression())
        self.expect(")")
        return ("u", name, tuple(arguments))

    # ---- commands -------------------------------------------------------------------------------

    def command(self) -> Node:
        """Read a backslash command with its arguments."""
        name = self.values[self.position]
        self.position += 1
        if name == "frac":
            return self.fraction()
        if name in {"sqrt", "cbrt"}:
            return self.root(name)
        if name == "pi":
            return ("c", "pi")
        if name in FUNCTIONS:
            return self.function(name)
        if name in _GREEK:
            if name == "Gamma" and self.kinds[self.position] == "(":
                return ("f", "gamma", (self.atom(),))
            return ("s", self.decorated_name("\\" + name))
        if name == "infty":
            return INFINITY
        if name == "text":
            return self.upright_letters()
        if name == "binom":
            return _known_function("binomial", self.argument(), self.argument())
        if name in {"lfloor", "lceil"}:
            node = self.expression()
            if self.kinds[self.position] != "C" or self.values[self.position] != "r" + name[1:]:
                raise self.refuse()
            self.position += 1
            return _known_function(name[1:], node)
        if name in {"abs", "floor", "ceil"} and self.kinds[self.position] in {"(", "{"}:
            return _known_function(name, self.atom())
        if name in _SELECTIONS:
            return self.selection(name)
        if name in _ACCENTS and self.kinds[self.position] in {"{", "L", "C"}:
            return ("s", self.decorated_name("\\" + name + "{" + self.joined_tokens() + "}"))
        if name in {"sum", "prod"}:
            return self.indexed(name)
        if name == "int":
            return self.integral()
        if name == "lim":
            return self.limit()
        raise self.refuse()

    def upright_letters(self) -> Node:
        """Read letters set upright: a constant, a symbol, or the name of a function."""
        word = self.joined_tokens()
        if word in {"e", "i"}:
            return ("c", word)
        if len(word) == 1 and word.isalpha():
            return ("s", self.decorated_name(word))
        if word in FUNCTIONS:
            return self.function(word)
        word = _SELECTIONS_BY_INITIALS.get(word, word)
        if word in _SELECTIONS:
            return self.selection(word)
        raise self.refuse()

    def selection(self, name: str) -> Node:
        r"""Read \gcd(12, 18) and its like; only of numbers, because the order of symbols is unknown."""
        closer = {"(": ")", "[": "]", "\\{": "\\}", "{": "}"}.get(self.kinds[self.position])
        if closer is None:
            raise self.refuse()
        self.position += 1
        arguments = [self.expression()]
        while self.kinds[self.position] == ",":
            self.position += 1
            arguments.append(self.expression())
        self.expect(closer)
        values = [value for value in map(exact_value, arguments) if value is not None]
        if len(values) < len(arguments) or not 2 <= len(values) <= MOST_SELECTED:
            raise self.refuse()
        if name in {"min", "max"}:
            return number_node(min(values) if name == "min" else max(values))
        if any(value.denominator > 1 or abs(value) > LARGEST_COMMON for value in values):
            raise self.refuse()
        whole = [value.numerator for value in values]
        return ("q", gcd(*whole) if name == "gcd" else lcm(*whole), 1)

    def fraction(self) -> Node:
        """Read a fraction, or the differential operator that is written as one."""
        starts_with_d = self.kinds[self.position] == "{" and (
            self.values[self.position + 1] in {"d", "partial"}
        )
        if starts_with_d and self.at_derivative():
            return self.derivative()
        if self.kinds[self.position] == "{" and self.depth == self.integral_depth + 1 > 1:
            top = self.numerator_in_integral()
        else:
            top = self.argument()
        if starts_with_d and self.at_differential_group(self.position):
            raise self.refuse()
        differential, self.differential = self.differential, None
        low = self.argument()
        self.differential = differential
        if differential is not None and self.kinds[self.position] in {"^", "!"}:
            raise self.refuse()
        return ("/", top, low)

    def root(self, name: str) -> Node:
        degree: Node = ("q", 3 if name == "cbrt" else 2, 1)
        if self.kinds[self.position] == "[":
            self.position += 1
            degree = self.expression()
            self.expect("]")
        kind = self.kinds[self.position]
        if kind == "N":
            # \sqrt12 prints as the root of 1 followed by 2, but means the root of 12.
            self.position += 1
            inner = _number(self.values[self.position - 1])
        else:
            inner = self.atom() if kind == "(" else self.argument()
        return exact_root(inner, degree) or ("r", inner, degree)

    def function(self, name: str) -> Node:
        """Read the base, the exponent and the argument of a named function."""
        base: Node | None = None
        power: Node | None = None
        while self.kinds[self.position] in {"_", "^"}:
            if self.kinds[self.position] == "_":
                if name != "log" or base is not None:
                    raise self.refuse()
                self.position += 1
                is_bare = self.kinds[self.position] == "N"
                base = self.unbraced_base() if is_bare else self.argument()
            else:
                if power is not None:
                    raise self.refuse()
                self.position += 1
                power = self.exponent()
        if power == ("*", (MINUS_ONE, ONE)):
            if name not in _INVERSES:
                raise self.refuse()
            name, power = _INVERSES[name], None
        node: Node
        has_angle = name in TRIGONOMETRIC or name == "cis"
        self.degrees += has_angle
        argument = self.operand()
        self.degrees -= has_angle
        if base is not None:
            node = ("/", ("f", "ln", (argument,)), ("f", "ln", (base,)))
        elif name == "exp":
            node = ("^", ("c", "e"), argument)
        elif name == "cis":
            # cos x + i sin x
            node = ("^", ("c", "e"), ("*", (("c", "i"), argument)))
        else:
            node = ("f", name, (argument,))
        return ("^", node, power) if power is not None else node

    def unbraced_base(self) -> Node:
        # \log_28 may be the logarithm of 8 to base 2: only one digit is safe without braces.
        digits = self.values[self.position]
        if len(digits) == 1 or (digits == "10" and self.kinds[self.position + 1] != "end"):
            self.position += 1
            return _number(digits)
        raise self.refuse()

    def operand(self) -> Node:
        """Read the argument of a function: a bracketed expression, or the product that follows."""
        kind = self.kinds[self.position]
        if kind == "{":
            return self.group()
        if kind in {"(", "["}:
            # The power in \sin(x)^2 belongs to the sine and is read later.
            self.position += 1
            return self.bracketed(")" if kind == "(" else "]")
        if kind == "|":
            return self.atom()
        if kind == "-":
            self.position += 1
            return ("*", (MINUS_ONE, self.factor()))
        node = self.bare_operand()
        self.loose_end = self.position
        return node

    def bare_operand(self) -> Node:
        """Read an argument without brackets: the product that follows, up to a number or function."""
        factors = [self.factor()]
        while True:
            kind = self.kinds[self.position]
            value = self.values[self.position]
            if kind == "L" or (
                kind == "C" and not (value in FUNCTIONS or value in _PRODUCT or value in _CLOSERS)
            ):
                if self.integral_depth and self.at_differential():
                    return _product(factors)
                factors.append(self.factor())
            elif kind == "/" and ("c", "pi") in factors:
                # \sin \pi/3 may be the sine of a third of pi, or a third of the sine.
                raise self.refuse()
            else:
                return _product(factors)

    # ---- calculus -------------------------------------------------------------------------------

    def indexed(self, name: str) -> Node:
        """Read a sum or product over an index."""
        self.expect("_")
        self.expect("{")
        index = self.values[self.position]
        self.expect("L")
        self.expect("=")
        low = self.expression()
        self.expect("}")
        self.expect("^")
        if self.kinds[self.position] == "N":
            high = _number(self.values[self.position])
            self.position += 1
        else:
            high = self.argument()
        self.bound.append(index)
        body = self.term()
        self.bound.pop()
        return ("S", name, index, low, high, body)

    def integral(self) -> Node:
        """Read a definite integral: its bounds, its integrand, and the variable after the d."""
        self.expect("_")
        low = self.integral_bound()
        self.expect("^")
        high = self.integral_bound()
        outer, self.integral_depth = self.integral_depth, self.depth
        body = ONE if self.at_differential() else self.expression()
        variable, self.differential = self.differential, None
        if variable is None:
            if not self.at_differential():
                raise self.refuse()
            self.position += 1
            variable = self.variable()
        self.integral_depth = outer
        kind = self.kinds[self.position]
        continues = kind in {"^", "!", "'", "_", "N"} or (kind == "|" and not self.bars) or (
            kind in _STARTS and self.values[self.position] not in _CLOSERS | _PRODUCT
        )  # fmt: skip
        if continues and not (outer and self.at_differential()):
            # A factor after the dx may or may not belong to the integrand.
            raise self.refuse()
        return ("S", "int", variable, low, high, body)

    def integral_bound(self) -> Node:
        """Read a bound, which without braces is one token."""
        if self.kinds[self.position] == "N" and len(self.values[self.position]) > 1:
            raise self.refuse()
        return self.argument()

    def at_differential(self) -> bool:
        """Tell whether a differential such as dx stands here."""
        kinds, values, at = self.kinds, self.values, self.position
        return values[at] == "d" and kinds[at] == "L" and (
            kinds[at + 1] == "L" or (kinds[at + 1] == "C" and values[at + 1] in _GREEK)
        )  # fmt: skip

    def numerator_in_integral(self) -> Node:
        r"""Read a numerator that may hold the differential, as in \int \frac{x dx}{x + 1}."""
        self.position += 1
        bars, self.bars = self.bars, 0
        top = ONE if self.at_differential() else self.expression()
        if self.differential is None and self.at_differential():
            self.position += 1
            self.differential = self.variable()
        self.bars = bars
        self.expect("}")
        return top

    def variable(self) -> str:
        """Read the variable of an integral, limit or derivative."""
        kind, name = self.kinds[self.position], self.values[self.position]
        if name in {"e", "i"} or not (kind == "L" or (kind == "C" and name in _GREEK)):
            raise self.refuse()
        self.position += 1
        return self.decorated_name(name if kind == "L" else "\\" + name)

    def limit(self) -> Node:
        """Read a limit; a sign above the point gives the side."""
        self.expect("_")
        self.expect("{")
        variable = self.variable()
        if self.values[self.position] not in {"to", "rightarrow"}:
            raise self.refuse()
        self.position += 1
        side = self.cut_side()
        point = self.expression()
        self.expect("}")
        return ("L", variable, side, point, self.term())

    def cut_side(self) -> str:
        """Remove the sign above the point of a limit from the tokens, and return it."""
        kinds = self.kinds
        end, depth = self.position, 0
        while kinds[end] != "end" and (depth or kinds[end] != "}"):
            depth += (kinds[end] == "{") - (kinds[end] == "}")
            end += 1
        for opening, closing in ((["^"], []), (["^", "{"], ["}"])):
            start = end - len(opening) - 1 - len(closing)
            side = kinds[start + len(opening)]
            if (
                start > self.position
                and side in {"+", "-"}
                and kinds[start : start + len(opening)] == opening
                and kinds[end - len(closing) : end] == closing
            ):
                del kinds[start:end]
                del self.values[start:end]
                return side
        return "+-"

    def at_derivative(self) -> bool:
        r"""Tell whether an operator such as \frac{d}{dx} or \frac{d^2}{dx^2} stands here."""
        kinds, values, at = self.kinds, self.values, self.position
        end = at + 2
        if kinds[end] == "^":
            end += 4 if kinds[end + 1] == "{" else 2
        return (
            kinds[end : end + 1] == ["}"]
            and self.at_differential_group(end + 1)
            and values[end + 2] == values[at + 1]
        )

    def at_differential_group(self, at: int) -> bool:
        """Tell whether a group such as {dx} or {dx^2} begins at a position."""
        kinds = self.kinds
        return (
            kinds[at : at + 1] == ["{"]
            and self.values[at + 1] in {"d", "partial"}
            and kinds[at + 2] in {"L", "C"}
            and kinds[at + 3] in {"}", "^"}
        )

    def derivative(self) -> Node:
        """Read a differential operator and what it is applied to."""
        self.position += 2
        order = self.derivative_order()
        self.position += 3
        variable = self.variable()
        if self.derivative_order() != order:
            raise self.refuse()
        self.expect("}")
        body = self.term()
        if self.kinds[self.position] in {"+", "-"}:
            # The next term may or may not be differentiated.
            raise self.refuse()
        return ("D", variable, order, body)

    def derivative_order(self) -> int:
        """Read the exponent of a differential operator."""
        if self.kinds[self.position] != "^":
            return 1
        self.position += 1
        order = self.argument()
        if order[0] != "q" or not 1 <= order[1] <= HIGHEST_DERIVATIVE:
            raise self.refuse()
        return int(order[1])


def _number(text: str) -> Node:
    """Return the node of a decimal number."""
    if len(text) > LONGEST_NUMBER:
        raise Unreadable
    whole, _, decimals = text.partition(".")
    if not decimals:
        return ("q", int(whole or "0"), 1)
    return ("q", int((whole + decimals) or "0"), 10 ** len(decimals))


def _known_function(name: str, *arguments: Node) -> Node:
    """Return the value of a function of numbers where it is exact, else its node."""
    return exact_function(name, arguments) or ("f", name, arguments)


def _joined_absolutes(factors: list[Node]) -> list[Node]:
    """Write a product of absolute values as the absolute value of a product."""
    inside = [factor[2][0] for factor in factors if factor[:2] == _ABSOLUTE]
    if len(inside) < 2:
        return factors
    others = [factor for factor in factors if factor[:2] != _ABSOLUTE]
    return [*others, ("f", "abs", (("*", tuple(inside)),))]


def _product(factors: list[Node]) -> Node:
    """Return the product of factors, or the only factor."""
    return factors[0] if len(factors) == 1 else ("*", tuple(factors))
