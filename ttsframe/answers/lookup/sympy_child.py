"""The worker process: one request per line in, one reply per line out; it imports no ttsframe.

`worker` starts this file as a script. Only here are sympy and latex2sympy2 imported. Memory and
processor time are limited from inside, wall-clock time from outside. After a request that met a limit
the process ends, so that no half-changed state of a library reaches the next request.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeAlias

Tree: TypeAlias = Any
"""An expression tree as nested lists; see `ttsframe.answers.latex.tree`."""
TaskFunction: TypeAlias = Callable[[Any], Any]

MEMORY_BYTES = 1 << 30
SECONDS_OF_GRACE = 2
LARGEST_BITS = 9_000
TOLERANCE = 1e-6
"""Largest relative difference between the value of an integral and its numeric quadrature."""


class LimitError(BaseException):
    """Processor time is used up; not an Exception, because the libraries catch those."""


class NotExpressibleError(Exception):
    """The value is no number or expression of the parent's language."""


# ---- the process --------------------------------------------------------------------------------


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    _, name, *folders = sys.argv
    sys.path.extend(folders)
    limit_memory()
    try:
        task = LOADERS[name]()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent must be told
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        reply(replies, {"status": "unavailable", "value": reason})
        return
    reply(replies, {"status": "ready"})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        response = run(task, request["item"], request["cpu_seconds"])
        reply(replies, response)
        if response["status"] == "limit":
            return


def reply(replies: TextIO, message: dict[str, Any]) -> None:
    """Write one line."""
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def limit_memory() -> None:
    """Set limits that a request cannot outgrow, where the system has them."""
    try:
        import resource
    except ImportError:
        return
    # some systems have the limit and refuse to lower it
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or hard > MEMORY_BYTES:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor(seconds: float) -> None:
    """Interrupt Python code after some seconds, and code that does not listen a little later."""
    if not hasattr(signal, "setitimer"):
        return

    def interrupt(_signal: int, _frame: types.FrameType | None) -> None:
        raise LimitError

    signal.signal(signal.SIGPROF, interrupt)
    # repeatedly, in case a library catches the first
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    end = int(usage.ru_utime + usage.ru_stime + seconds) + SECONDS_OF_GRACE
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (end, hard))


def unlimit_processor() -> None:
    """Stop the interrupts."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, 0)


def run(task: TaskFunction, item: Any, cpu_seconds: float) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Answer one request: `done` with a value or None, or `limit`."""
    random.seed(0)
    try:
        limit_processor(cpu_seconds)
        value = task(item)
        unlimit_processor()
    except (LimitError, MemoryError):
        unlimit_processor()
        return {"status": "limit", "value": None}
    except Exception:  # noqa: BLE001 - an item that the libraries reject has no value, whatever they raise
        unlimit_processor()
        return {"status": "done", "value": None}
    return {"status": "done", "value": value}


# ---- evaluation of trees ------------------------------------------------------------------------


def load_evaluate() -> TaskFunction:
    """Import sympy and return the task that evaluates sums, integrals, limits and derivatives."""
    import sympy
    from sympy.core.random import seed

    def evaluate(tree: Tree) -> Tree:
        seed(0)
        builder = Builder(sympy)
        expression = builder.expression(tree)
        value = expression.doit()
        infinities = (sympy.oo, -sympy.oo)
        if value.has(*infinities, sympy.zoo, sympy.nan) and value not in infinities:
            # simplify may turn a sum of an infinity and a finite part into any number
            return None
        if tree[0] == "S" and tree[1] == "int" and not is_near_quadrature(sympy, expression, value):
            return None
        for form in forms(sympy, value):
            with contextlib.suppress(NotExpressibleError):
                return builder.tree(form)
        return None

    return evaluate


def forms(sympy: Any, value: Any) -> Iterator[Any]:  # noqa: ANN401 - untyped library
    """Yield a value as it is, then in forms with more elementary functions."""
    yield value
    simpler = sympy.simplify(value)
    yield simpler
    yield sympy.simplify(sympy.expand_func(simpler))


def is_near_quadrature(sympy: Any, expression: Any, value: Any) -> bool:  # noqa: ANN401 - untyped library
    """Check the value of a single integral against numeric quadrature, where that converges."""
    if expression.is_Mul:
        # its bounds were exchanged
        expression, value = -expression, -value
    body, (variable, low, high), *outer = expression.args
    if (
        outer
        or not value.is_finite
        or body.has(sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit)
    ):
        return True
    mp = importlib.import_module("mpmath").mp

    def integrand(point: Any) -> Any:  # noqa: ANN401 - numbers of mpmath
        return mp.mpmathify(complex(body.evalf(15, subs={variable: point})))

    try:
        ends = [mp.mpf(float(bound)) for bound in (low, high)]
        quadrature, error = mp.quad(integrand, ends, error=True, maxdegree=6)
        exact = complex(value.evalf(20))
    except (ArithmeticError, TypeError, ValueError):
        return True
    scale = max(1.0, abs(exact))
    return not error <= TOLERANCE * scale or abs(quadrature - exact) <= TOLERANCE * scale + error


class Builder:
    """Builds sympy's objects from one tree, and a tree from the result."""

    def __init__(self, sympy: Any) -> None:  # noqa: ANN401 - untyped library
        self.sympy = sympy
        self.bound: dict[str, Any] = {}
        self.free: dict[str, Any] = {}
        self.n_symbols = 0
        self.constants = {
            "pi": sympy.pi,
            "e": sympy.E,
            "i": sympy.I,
            "oo": sympy.oo,
        }
        self.functions = {
            name: getattr(sympy, FUNCTION_NAMES.get(name, name)) for name in FUNCTIONS
        }

    def symbol(self, **assumptions: bool) -> Any:  # noqa: ANN401 - untyped library
        """Return a new symbol; its name says nothing, so that spelling cannot change a result."""
        self.n_symbols += 1
        return self.sympy.Symbol(f"x{self.n_symbols}", **assumptions)

    def expression(self, tree: Tree) -> Any:  # noqa: ANN401 - untyped library
        """Return the object of a tree, with sums and integrals not yet evaluated."""
        sympy, op = self.sympy, tree[0]
        if op == "q":
            return sympy.Rational(tree[1], tree[2])
        if op == "c":
            return self.constants[tree[1]]
        if op == "s":
            name = tree[1]
            if name not in self.bound and name not in self.free:
                self.free[name] = self.symbol(real=True)
            return self.bound.get(name, self.free.get(name))
        if op == "+":
            return sympy.Add(*map(self.expression, tree[1]))
        if op == "*":
            return sympy.Mul(*map(self.expression, tree[1]))
        if op == "/":
            return self.expression(tree[1]) / self.expression(tree[2])
        if op == "^":
            return self.power(self.expression(tree[1]), self.expression(tree[2]))
        if op == "r":
            return self.power(self.expression(tree[1]), 1 / self.expression(tree[2]))
        if op == "f":
            return self.functions[tree[1]](*map(self.expression, tree[2]))
        if op == "S":
            return self.indexed(*tree[1:])
        if op == "L":
            return self.limit(*tree[1:])
        if op == "D":
            body = self.expression(tree[3])
            return sympy.Derivative(body, self.expression(["s", tree[1]]), tree[2])
        raise NotExpressibleError

    def power(self, base: Any, exponent: Any) -> Any:  # noqa: ANN401 - untyped library
        """Return a power; those of negative numbers with odd denominators are real, as in the keys."""
        if exponent.is_Rational and exponent.q % 2 and exponent.q > 1 and not base.is_nonnegative:
            if not base.is_real:
                raise NotExpressibleError
            size = self.sympy.Abs(base) ** exponent
            return self.sympy.sign(base) * size if exponent.p % 2 else size
        return base**exponent

    def under(self, name: str, symbol: Any, body: Tree) -> Any:  # noqa: ANN401 - untyped library
        """Return the object of a body in which a name is bound."""
        outer = dict(self.bound)
        self.bound[name] = symbol
        expression = self.expression(body)
        self.bound = outer
        return expression

    def indexed(self, kind: str, name: str, low_tree: Tree, high_tree: Tree, body: Tree) -> Any:  # noqa: ANN401
        low, high = self.expression(low_tree), self.expression(high_tree)
        if kind == "int":
            if (low - high).is_positive:
                return -self.indexed(kind, name, high_tree, low_tree, body)
            if low.is_nonnegative:
                variable = self.symbol(positive=True)
            elif high.is_nonpositive:
                variable = self.symbol(negative=True)
            else:
                variable = self.symbol(real=True)
            return self.sympy.Integral(self.under(name, variable, body), (variable, low, high))
        if low.is_positive:
            variable = self.symbol(integer=True, positive=True)
        elif low.is_nonnegative:
            variable = self.symbol(integer=True, nonnegative=True)
        else:
            variable = self.symbol(integer=True)
        term = self.under(name, variable, body)
        if kind == "sum":
            return self.sympy.Sum(term, (variable, low, high))
        if high != self.sympy.oo:
            return self.sympy.Product(term, (variable, low, high))
        last = self.symbol(integer=True, positive=True)
        partial = self.sympy.Product(term, (variable, low, last)).doit()
        return self.sympy.Limit(self.sympy.gammasimp(partial), last, high)

    def limit(self, name: str, side: str, point_tree: Tree, body: Tree) -> Any:  # noqa: ANN401
        point = self.expression(point_tree)
        if point == self.sympy.oo:
            variable, side = self.symbol(positive=True), "-"
        else:
            variable = self.symbol(real=True)
        return self.sympy.Limit(self.under(name, variable, body), variable, point, side)

    def tree(self, value: Any) -> Tree:  # noqa: ANN401 - untyped library
        """Return the tree of a result, or raise NotExpressibleError."""
        if value.is_Rational:
            if max(abs(value.p).bit_length(), value.q.bit_length()) > LARGEST_BITS:
                raise NotExpressibleError
            return ["q", int(value.p), int(value.q)]
        for name, constant in self.constants.items():
            if value == constant:
                return ["c", name]
        if value == -self.sympy.oo:
            return ["*", [["q", -1, 1], ["c", "oo"]]]
        for name, symbol in self.free.items():
            if value == symbol:
                return ["s", name]
        if value.is_Add:
            return ["+", list(map(self.tree, value.args))]
        if value.is_Mul:
            return ["*", list(map(self.tree, value.args))]
        if value.is_Pow:
            return self.power_tree(value.base, value.exp)
        if isinstance(value, self.sympy.exp):
            return ["^", ["c", "e"], self.tree(value.args[0])]
        if value == self.sympy.GoldenRatio:
            return self.tree(value.expand(func=True))
        for name, function in self.functions.items():
            if name not in WRITTEN_ONLY and value.func == function:
                return ["f", name, list(map(self.tree, value.args))]
        raise NotExpressibleError

    def power_tree(self, base: Any, exponent: Any) -> Tree:  # noqa: ANN401 - untyped library
        """Return the tree of a power, which for sympy is a principal value."""
        if base.is_nonnegative or exponent.is_integer:
            return ["^", self.tree(base), self.tree(exponent)]
        logarithm = ["f", "ln", [self.tree(base)]]
        return ["^", ["c", "e"], ["*", [self.tree(exponent), logarithm]]]


FUNCTION_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "ln": "log", "abs": "Abs", "ceil": "ceiling",
}  # fmt: skip
FUNCTIONS = (
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "arcsin", "arccos",
    "arctan", "arccot", "arcsinh", "arccosh", "arctanh", "ln", "abs", "floor", "ceil", "factorial", "gamma", "binomial",
)  # fmt: skip
WRITTEN_ONLY = frozenset({"binomial"})


# ---- the published form -------------------------------------------------------------------------


def load_published() -> TaskFunction:
    """Import sympy and latex2sympy2 and return the task that makes the published form of a text."""
    try:
        importlib.import_module("typing.io")
    except ImportError:
        # Python 3.13 removed what the parser's runtime imports
        stand_in = types.ModuleType("typing.io")
        stand_in.TextIO = TextIO  # type: ignore[attr-defined]
        sys.modules["typing.io"] = stand_in
    import latex2sympy2
    import sympy
    from sympy.core.random import seed

    names = dict(latex2sympy2.var)
    values = dict(latex2sympy2.variances)

    def published(text: str) -> str:
        seed(0)
        # the parser leaves symbols of one string behind for the next
        latex2sympy2.var = dict(names)
        latex2sympy2.variances = dict(values)
        return str(sympy.latex(sympy.simplify(latex2sympy2.latex2sympy(text))))

    return published


LOADERS: dict[str, Callable[[], TaskFunction]] = {
    "evaluate": load_evaluate,
    "published": load_published,
}


if __name__ == "__main__":
    main()
