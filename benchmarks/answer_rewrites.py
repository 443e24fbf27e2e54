"""Rewritings of answers that must keep the key, and neighbours that must change it.

Each kind builds pairs of expressions as trees of its own, prints them as LaTeX, and confirms the
pair with arithmetic that is not the code under test: fractions where the trees are rational, mpmath at
60 digits and three random points elsewhere. Run as a script it checks all kinds in full and writes
``benchmarks/results/answer_rewrites.txt``; the test suite runs a seeded tenth.

    python benchmarks/answer_rewrites.py [pairs per kind]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import mpmath

from ttsframe.answers.engine import canonicalize
from ttsframe.answers.policy import AnswerPolicy

Tree = tuple[Any, ...]
PAIRS = 10_000
RESULT = Path(__file__).parent / "results" / "answer_rewrites.txt"
X, Y, PI = ("sym", "x"), ("sym", "y"), ("pi",)


class Pair(NamedTuple):
    """Two spellings, and whether they are the same answer."""

    first: str
    second: str
    is_same: bool


# ---- trees ------------------------------------------------------------------------------------------


def num(value: int | Fraction) -> Tree:
    return ("num", Fraction(value))


def add(*terms: Tree) -> Tree:
    return ("add", *terms)


def mul(*factors: Tree) -> Tree:
    return ("mul", *factors)


def power(base: Tree, exponent: int) -> Tree:
    return ("pow", base, exponent)


def div(top: Tree, low: Tree) -> Tree:
    return ("div", top, low)


def root(inside: Tree, degree: int = 2) -> Tree:
    return ("root", inside, degree)


def fun(name: str, inside: Tree) -> Tree:
    return ("fun", name, inside)


def exact(tree: Tree, at: dict[str, Fraction]) -> Fraction:
    """Evaluate a rational tree in fractions."""
    op, *parts = tree
    if op == "num":
        return parts[0]
    if op == "sym":
        return at[parts[0]]
    if op == "add":
        return sum((exact(part, at) for part in parts), Fraction(0))
    if op == "mul":
        product = Fraction(1)
        for part in parts:
            product *= exact(part, at)
        return product
    if op == "pow":
        return exact(parts[0], at) ** parts[1]
    if op == "div":
        return exact(parts[0], at) / exact(parts[1], at)
    raise TypeError(op)


def approximate(tree: Tree, at: dict[str, Any]) -> Any:  # noqa: ANN401, PLR0911 (an mpf or mpc; a case per node)
    """Evaluate any tree in mpmath."""
    op, *parts = tree
    if op == "num":
        return mpmath.mpf(parts[0].numerator) / parts[0].denominator
    if op == "sym":
        return at[parts[0]]
    if op == "pi":
        return +mpmath.pi
    if op == "i":
        return mpmath.mpc(0, 1)
    if op == "add":
        return mpmath.fsum(approximate(part, at) for part in parts)
    if op == "mul":
        return mpmath.fprod(approximate(part, at) for part in parts)
    if op == "pow":
        return approximate(parts[0], at) ** parts[1]
    if op == "div":
        return approximate(parts[0], at) / approximate(parts[1], at)
    if op == "root":
        return mpmath.root(approximate(parts[0], at), parts[1])
    return getattr(mpmath, parts[0])(approximate(parts[1], at))


def is_rational(tree: Tree) -> bool:
    return tree[0] in {"num", "sym"} or (
        tree[0] in {"add", "mul", "div", "pow"}
        and all(is_rational(part) for part in tree[1:] if isinstance(part, tuple))
    )


def agree(first: Tree, second: Tree, rng: Random) -> bool:
    """Tell whether two trees have the same value: the oracle."""
    if is_rational(first) and is_rational(second):
        for _ in range(12):
            at = {name: Fraction(rng.randint(10**6, 10**8), 997) for name in "xyn"}
            if exact(first, at) != exact(second, at):
                return False
        return True
    with mpmath.workdps(60):
        for _ in range(3):
            at = {name: mpmath.mpf(rng.randint(10**40, 10**42)) / 10**42 for name in "xyn"}
            one, two = approximate(first, at), approximate(second, at)
            if abs(one - two) > mpmath.mpf(10) ** -45 * (1 + abs(one)):
                return False
    return True


# ---- printing ---------------------------------------------------------------------------------------


def latex(tree: Tree, rng: Random | None = None) -> str:
    """Print a tree; with a generator, in one of its many spellings."""
    return _printed(tree, 0, rng)


def _chosen(rng: Random | None, *choices: str) -> str:
    return rng.choice(choices) if rng else choices[0]


def _bracketed(text: str, rng: Random | None) -> str:
    opening, closing = ("(", ")") if rng is None or rng.random() < 0.6 else ("\\left(", "\\right)")
    return opening + text + closing


def _printed(tree: Tree, level: int, rng: Random | None) -> str:  # noqa: PLR0911 (a case per node)
    """Levels: 0 sum, 1 term, 2 factor, 3 base of a power."""
    op, *parts = tree
    space = _chosen(rng, " ", "", " ") if rng else ""
    if op == "num":
        value: Fraction = parts[0]
        text = _number(abs(value), rng)
        if value < 0:
            return _bracketed("-" + text, rng) if level else "-" + text
        return _bracketed(text, rng) if level == 3 and value.denominator > 1 else text
    if op == "sym":
        return str(parts[0])
    if op == "pi":
        return _chosen(rng, "\\pi ", "\\pi{}", "{\\pi}", "π") if rng else "\\pi "
    if op == "i":
        return "i"
    if op == "add":
        text = ""
        for part in parts:
            printed = _printed(part, 0, rng)
            glue = "" if not text else "" if printed.startswith("-") else "+"
            text += (space + glue + space + printed) if text else printed
        return _bracketed(text, rng) if level > 0 and len(parts) > 1 else text
    if op == "mul":
        return _printed_product(tuple(parts), level, rng)
    if op == "pow":
        base, exponent = parts
        return f"{_printed(base, 3, rng)}^{_braced(str(exponent), rng)}"
    if op == "div":
        return _printed_quotient(parts[0], parts[1], level, rng)
    if op == "root":
        inside = _printed(parts[0], 0, rng)
        if parts[1] == 2:
            return "\\sqrt" + (
                inside if rng and len(inside) == 1 and inside.isdigit() else "{" + inside + "}"
            )
        return f"\\sqrt[{parts[1]}]{{{inside}}}"
    inside = _printed(parts[1], 0, rng)
    printed = f"\\{parts[0]}{_bracketed(inside, rng)}"
    return _bracketed(printed, rng) if level == 3 else printed


def _braced(text: str, rng: Random | None) -> str:
    return text if rng and len(text) == 1 and rng.random() < 0.4 else "{" + text + "}"


def _number(value: Fraction, rng: Random | None) -> str:
    if value.denominator == 1:
        digits = str(value.numerator)
        if rng and len(digits) > 4 and rng.random() < 0.3:
            return f"{value.numerator:,}".replace(",", _chosen(rng, "{,}", "\\,", "{,}\\!"))
        return digits
    top, low = str(value.numerator), str(value.denominator)
    if rng and len(top) == len(low) == 1 and rng.random() < 0.2:
        return f"\\frac{top}{low}"
    command = _chosen(rng, "\\frac", "\\dfrac", "\\tfrac")
    pad = " " if rng and rng.random() < 0.3 else ""
    return f"{command}{{{pad}{top}{pad}}}{{{pad}{low}{pad}}}"


def _printed_product(factors: tuple[Tree, ...], level: int, rng: Random | None) -> str:
    if factors[0] == num(-1) and len(factors) > 1:
        text = "-" + _printed_product(factors[1:], 1, rng)
        return _bracketed(text, rng) if level > 0 else text
    text = ""
    for index, factor in enumerate(factors):
        leads = not index and not level and factor[0] == "num"
        printed = _printed(factor, 0 if leads else 1, rng)
        if factor[0] == "mul":
            printed = _bracketed(printed, rng)
        if index and (
            printed[0].isdigit()
            or (printed[0] == "\\" and text[-1:].isdigit() and "frac" in printed[:6])
        ):
            text += _chosen(rng, "\\cdot ", "\\times ", "*") if rng else "\\cdot "
        elif index:
            text += _chosen(rng, " ", "", " \\cdot ", "\\,") if rng else " "
        text += printed
    return _bracketed(text, rng) if level == 3 else text


def _printed_quotient(top: Tree, low: Tree, level: int, rng: Random | None) -> str:
    if rng and rng.random() < 0.25:
        text = f"{_bracketed(_printed(top, 0, rng), rng)}{_chosen(rng, '/', ' / ')}{_bracketed(_printed(low, 0, rng), rng)}"
        return _bracketed(text, rng) if level else text
    command = _chosen(rng, "\\frac", "\\dfrac", "\\tfrac", "\\cfrac")
    text = f"{command}{{{_printed(top, 0, rng)}}}{{{_printed(low, 0, rng)}}}"
    return _bracketed(text, rng) if level == 3 else text


# ---- random expressions -----------------------------------------------------------------------------


def coefficient(rng: Random, largest: int = 12) -> int:
    return rng.choice((-1, 1)) * rng.randint(1, largest)


def squarefree(rng: Random, largest: int = 40) -> int:
    while True:
        value = rng.randint(2, largest)
        if all(value % (factor * factor) for factor in range(2, isqrt(value) + 1)):
            return value


def monomial(rng: Random) -> Tree:
    parts: list[Tree] = []
    for symbol in rng.sample((X, Y), rng.randint(1, 2)):
        exponent = rng.randint(1, 5)
        parts.append(symbol if exponent == 1 else power(symbol, exponent))
    return mul(*parts) if len(parts) > 1 else parts[0]


def piece(rng: Random) -> Tree:
    """Something to be multiplied by a coefficient."""
    kind = rng.randrange(6)
    if kind < 2:
        return monomial(rng)
    if kind == 2:
        return root(num(squarefree(rng)))
    if kind == 3:
        return PI
    if kind == 4:
        return fun(rng.choice(("sin", "cos", "ln")), add(X, num(rng.randint(2, 9))))
    return power(add(X, num(coefficient(rng))), rng.randint(2, 3))


def terms(rng: Random, count: int) -> list[Tree]:
    found = [mul(num(coefficient(rng)), piece(rng)) for _ in range(count)]
    return [*found, num(Fraction(coefficient(rng, 30), rng.randint(1, 9)))]


def polynomial(coefficients: list[int]) -> Tree:
    parts = [
        num(value) if not degree else mul(num(value), X if degree == 1 else power(X, degree))
        for degree, value in enumerate(coefficients)
        if value
    ]
    return add(*reversed(parts)) if parts else num(0)


def multiplied(first: list[int], second: list[int]) -> list[int]:
    product = [0] * (len(first) + len(second) - 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            product[i + j] += a * b
    return product


# ---- rewritings that keep the value -----------------------------------------------------------------


def commuted_sums(rng: Random) -> tuple[Tree, Tree]:
    found = terms(rng, rng.randint(2, 4))
    shuffled = [
        ("mul", *rng.sample(term[1:], len(term) - 1)) if term[0] == "mul" else term
        for term in found
    ]
    rng.shuffle(shuffled)
    return add(*found), add(*shuffled)


def rescaled_fractions(rng: Random) -> tuple[Tree, Tree]:
    if rng.random() < 0.4:
        top, low = coefficient(rng, 10**6), rng.randint(2, 10**6)
        factor = rng.randint(2, 999)
        return div(num(top), num(low)), div(num(top * factor), num(low * factor))
    top_tree, low_tree = add(*terms(rng, 2)), add(*terms(rng, 1))
    scale = rng.choice((
        num(rng.randint(2, 30)),
        add(X, num(rng.randint(1, 9))),
        root(num(squarefree(rng))),
    ))
    return div(top_tree, low_tree), div(mul(scale, top_tree), mul(scale, low_tree))


def expanded_products(rng: Random) -> tuple[Tree, Tree]:
    factors = [
        [coefficient(rng) for _ in range(rng.randint(2, 3))] for _ in range(rng.randint(2, 3))
    ]
    product = [1]
    for factor in factors:
        product = multiplied(product, factor)
    return mul(*(polynomial(factor) for factor in factors)), polynomial(product)


def rationalised_denominators(rng: Random) -> tuple[Tree, Tree]:
    a, b, c = coefficient(rng), coefficient(rng), squarefree(rng)
    surd = root(num(c))
    if rng.random() < 0.3:
        return div(num(a), mul(num(b), surd)), div(mul(num(a), surd), num(b * c))
    if rng.random() < 0.3:
        low = b * b + c * c
        return div(num(a), add(num(b), mul(num(c), ("i",)))), add(
            num(Fraction(a * b, low)), mul(num(Fraction(-a * c, low)), ("i",))
        )
    d = squarefree(rng)
    while d == c:
        d = squarefree(rng)
    if rng.random() < 0.5:
        low = b * b - c
        return div(num(a), add(num(b), surd)), div(
            mul(num(a), add(num(b), mul(num(-1), surd))), num(low)
        )
    other = root(num(d))
    return div(num(a), add(surd, other)), div(
        mul(num(a), add(surd, mul(num(-1), other))), num(c - d)
    )


def nested_radicals(rng: Random) -> tuple[Tree, Tree]:
    a, b = sorted(rng.sample(range(2, 90), 2), reverse=True)
    choice = rng.randrange(5)
    if choice == 0:
        return root(add(num(a + b), mul(num(2), root(num(a * b))))), add(root(num(a)), root(num(b)))
    if choice == 1:
        return root(add(num(a + b), mul(num(-2), root(num(a * b))))), add(
            root(num(a)), mul(num(-1), root(num(b)))
        )
    if choice == 2:
        p, q = rng.randint(2, 30), squarefree(rng)
        return root(num(p * p * q)), mul(num(p), root(num(q)))
    if choice == 3:
        p, q = rng.randint(2, 12), squarefree(rng)
        return root(num(p**3 * q), 3), mul(num(p), root(num(q), 3))
    q, degree = squarefree(rng), rng.randint(2, 4)
    return root(root(num(q)), degree), root(num(q), 2 * degree)


def trigonometric_identities(rng: Random) -> tuple[Tree, Tree]:
    u = rng.choice((X, mul(num(rng.randint(2, 5)), X), add(X, num(rng.randint(1, 5))), add(X, Y)))
    sin, cos, tan = fun("sin", u), fun("cos", u), fun("tan", u)
    double = mul(num(2), u)
    other = rng.choice((Y, num(rng.randint(1, 4))))
    identities: list[tuple[Tree, Tree]] = [
        (add(power(sin, 2), power(cos, 2)), num(1)),
        (fun("sin", double), mul(num(2), sin, cos)),
        (fun("cos", double), add(power(cos, 2), mul(num(-1), power(sin, 2)))),
        (fun("cos", double), add(num(1), mul(num(-2), power(sin, 2)))),
        (add(num(1), power(tan, 2)), power(fun("sec", u), 2)),
        (tan, div(sin, cos)),
        (fun("cot", u), div(num(1), tan)),
        (
            fun("sin", add(u, other)),
            add(mul(sin, fun("cos", other)), mul(cos, fun("sin", other))),
        ),
        (
            mul(num(2), sin, fun("sin", other)),
            add(fun("cos", add(u, mul(num(-1), other))), mul(num(-1), fun("cos", add(u, other)))),
        ),
        (fun("sin", mul(num(3), u)), add(mul(num(3), sin), mul(num(-4), power(sin, 3)))),
        (fun("sin", div(PI, num(6))), num(Fraction(1, 2))),
        (fun("cos", div(PI, num(12))), div(add(root(num(6)), root(num(2))), num(4))),
        (fun("tan", div(PI, num(8))), add(root(num(2)), num(-1))),
    ]
    first, second = rng.choice(identities)
    factor, rest = num(coefficient(rng)), mul(num(coefficient(rng)), piece(rng))
    return add(mul(factor, first), rest), add(mul(factor, second), rest)


def respelt(rng: Random) -> tuple[Tree, Tree]:
    tree = rng.choice((
        lambda: add(*terms(rng, rng.randint(1, 3))),
        lambda: div(add(*terms(rng, 1)), num(rng.randint(2, 99))),
        lambda: num(Fraction(coefficient(rng, 10**6), rng.choice((1, 1, 7, 9, 12)))),
        lambda: div(mul(num(coefficient(rng)), root(num(squarefree(rng)))), num(rng.randint(2, 9))),
    ))()
    return tree, tree


# ---- neighbours -------------------------------------------------------------------------------------


def numbers_in(tree: Tree) -> int:
    if tree[0] == "num":
        return 1
    return sum(numbers_in(part) for part in tree[1:] if isinstance(part, tuple))


def with_number(tree: Tree, index: int, change: Callable[[Fraction], Fraction]) -> Tree:
    """Change the number of that index, in reading order."""
    counter = iter(range(10**6))

    def walk(node: Tree) -> Tree:
        if node[0] == "num":
            return num(change(node[1])) if next(counter) == index else node
        return tuple(walk(part) if isinstance(part, tuple) else part for part in node)

    return walk(tree)


def scalar(rng: Random) -> Tree:
    return rng.choice((
        commuted_sums,
        expanded_products,
        nested_radicals,
        rationalised_denominators,
    ))(rng)[0]


def one_coefficient(rng: Random) -> tuple[Tree, Tree]:
    tree = scalar(rng)
    index, step = rng.randrange(numbers_in(tree)), rng.choice((-1, 1))
    return tree, with_number(tree, index, lambda value: value + step)


def one_sign(rng: Random) -> tuple[Tree, Tree]:
    tree = scalar(rng)
    return tree, with_number(tree, rng.randrange(numbers_in(tree)), lambda value: -value)


def one_digit(rng: Random) -> tuple[Tree, Tree]:
    value = rng.randint(10**29, 10**30 - 1)
    place = 10 ** rng.randrange(29)
    digit = value // place % 10
    other = value + (rng.choice([d for d in range(10) if d != digit]) - digit) * place
    frame = rng.choice((
        lambda n: n,
        lambda n: add(n, X),
        lambda n: mul(n, root(num(3))),
        lambda n: div(n, num(7)),
        lambda n: add(mul(n, power(X, 2)), num(1)),
        root,
    ))
    return frame(num(value)), frame(num(other))


def one_exponent(rng: Random) -> tuple[Tree, Tree]:
    exponent = rng.randint(2, 40)
    other = exponent + rng.choice((-1, 1))
    frame = rng.choice((
        lambda k: power(num(rng_base), k),
        lambda k: add(power(X, k), num(1)),
        lambda k: mul(num(3), power(X, k), Y),
        lambda k: div(num(1), power(add(X, num(rng_base)), k)),
        lambda k: mul(power(num(rng_base), k), root(num(3))),
        lambda k: root(num(rng_base), k),
    ))
    rng_base = rng.randint(2, 99)
    return frame(exponent), frame(other)


def one_fraction(rng: Random) -> tuple[Tree, Tree]:
    """A rational number beside its negative, its reciprocal, its numerator, and another denominator."""
    largest = rng.choice((12, 10**4, 10**30))
    value = Fraction(coefficient(rng, largest), rng.randint(2, largest))
    other = rng.choice((
        -value,
        1 / value,
        Fraction(value.numerator),
        value * Fraction(value.denominator, value.denominator + 1),
    ))
    frame = rng.choice((
        num,
        lambda n: div(num(n.numerator), num(n.denominator)),
        lambda n: add(num(n), num(3)),
        lambda n: mul(num(n), num(Fraction(2, 7))),
    ))
    return frame(value), frame(other)


def bracket_pairs(rng: Random) -> Iterator[Pair]:
    """Intervals, tuples and sets that differ in one bracket; the kinds are different by definition."""
    while True:
        low = Fraction(coefficient(rng, 50), rng.randint(1, 6))
        high = low + rng.randint(1, 40)
        ends = [_number(abs(end), rng) for end in (low, high)]
        ends = [
            ("-" if end < 0 else "") + text for end, text in zip((low, high), ends, strict=True)
        ]
        body = _chosen(rng, ",", ", ").join(ends)
        kinds = [("(", ")"), ("[", "]"), ("[", ")"), ("(", "]"), ("\\{", "\\}")]
        one, two = rng.sample(kinds, 2)
        first, second = (
            _bracketed_kind(opening, body, closing, rng) for opening, closing in (one, two)
        )
        yield Pair(first, second, is_same=False)


def _bracketed_kind(opening: str, body: str, closing: str, rng: Random) -> str:
    if rng.random() < 0.4:
        return f"\\left{opening}{body}\\right{closing}"
    return f"{opening}{body}{closing}"


REWRITINGS: dict[str, Callable[[Random], tuple[Tree, Tree]]] = {
    "commuted sums": commuted_sums,
    "rescaled fractions": rescaled_fractions,
    "expanded products": expanded_products,
    "rationalised denominators": rationalised_denominators,
    "nested radicals": nested_radicals,
    "trigonometric identities": trigonometric_identities,
    "respelt LaTeX": respelt,
}
NEIGHBOURS: dict[str, Callable[[Random], tuple[Tree, Tree]]] = {
    "one coefficient": one_coefficient,
    "one sign": one_sign,
    "one digit of 30": one_digit,
    "one exponent": one_exponent,
    "one fraction": one_fraction,
}


def pairs_of(kind: str, seed: int) -> Iterator[Pair]:
    """Yield endless confirmed pairs of a kind."""
    rng = Random(f"{kind}:{seed}")
    if kind == "one bracket":
        yield from bracket_pairs(rng)
        return
    is_same = kind in REWRITINGS
    build = REWRITINGS.get(kind) or NEIGHBOURS[kind]
    while True:
        try:
            first, second = build(rng)
            if agree(first, second, rng) != is_same:
                # A neighbour can be equal by chance (the sign of a zero); a rewriting never may differ.
                if is_same:
                    raise AssertionError(f"the generator is wrong: {first} {second}")
                continue
        except ZeroDivisionError:
            continue
        yield Pair(
            latex(first, rng if rng.random() < 0.7 or kind == "respelt LaTeX" else None),
            latex(second, rng),
            is_same,
        )


KINDS = (*REWRITINGS, *NEIGHBOURS, "one bracket")


def failures(kind: str, count: int, seed: int = 0) -> list[Pair]:
    """Return the pairs whose keys are not what the oracle says."""
    policy = AnswerPolicy()
    found = []
    pairs = pairs_of(kind, seed)
    for _ in range(count):
        pair = next(pairs)
        same = canonicalize(pair.first, policy).key == canonicalize(pair.second, policy).key
        if same != pair.is_same:
            found.append(pair)
    return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    lines = [f"{'kind':<28}{'pairs':>8}{'expected':>12}{'failures':>10}{'seconds':>9}"]
    worst = 0
    for kind in KINDS:
        start = time.perf_counter()
        wrong = failures(kind, count)
        worst = max(worst, len(wrong))
        expected = "same key" if kind in REWRITINGS else "new key"
        lines.append(
            f"{kind:<28}{count:>8}{expected:>12}{len(wrong):>10}{time.perf_counter() - start:>9.1f}"
        )
        print(lines[-1], flush=True)
        for pair in wrong[:5]:
            print("   ", pair)
    if count >= PAIRS:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n")
    sys.exit(worst > 0)


if __name__ == "__main__":
    main()
