"""The worker process: reads one request per line, answers one line each, knows no ttsframe.

`worker` starts this file as a script. It is the only place where sympy and latex2sympy2 are
imported, and it expects to be killed: memory and processor time are limited from inside, wall-clock
time from outside, and after a request that met a limit it leaves, so that no half-done state of a
library reaches the next one.
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
from collections.abc import Callable
from typing import Any, TextIO

MEMORY_BYTES = 1 << 30
SECONDS_OF_GRACE = 2


class LimitError(BaseException):
    """Processor time is used up; not an Exception, because the libraries catch those."""


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    for folder in sys.argv[1:]:
        sys.path.append(folder)
    limit_memory()
    try:
        tasks = load_tasks()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent must be told
        reply(replies, {"ready": False, "reason": f"{type(error).__name__}: {error}"})
        return
    reply(replies, {"ready": True})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        response = run(tasks[request["task"]], request["text"], request["cpu_seconds"])
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
    """Interrupt Python code after so many seconds, and code that does not listen a little later."""

    def interrupt(_signal: int, _frame: types.FrameType | None) -> None:
        raise LimitError

    signal.signal(signal.SIGPROF, interrupt)
    # again and again, in case a library swallows the first
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)
    try:
        import resource
    except ImportError:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    end = int(usage.ru_utime + usage.ru_stime + seconds) + SECONDS_OF_GRACE
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (end, hard))


def run(task: Callable[[str], str | None], text: str, cpu_seconds: float) -> dict[str, Any]:
    """Answer one request: ``done`` with a value or None, or ``limit``."""
    random.seed(0)
    try:
        limit_processor(cpu_seconds)
        value = task(text)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except (LimitError, MemoryError):
        signal.setitimer(signal.ITIMER_PROF, 0)
        return {"status": "limit", "value": None}
    except Exception:  # noqa: BLE001 - a string that the libraries reject has no value, whatever they raise
        signal.setitimer(signal.ITIMER_PROF, 0)
        return {"status": "done", "value": None}
    return {"status": "done", "value": value}


def load_tasks() -> dict[str, Callable[[str], str | None]]:
    """Import the libraries and build the tasks on them."""
    try:
        importlib.import_module("typing.io")
    except ImportError:
        # Python 3.13 removed what the parser's runtime imports
        stand_in = types.ModuleType("typing.io")
        stand_in.TextIO = TextIO  # type: ignore[attr-defined]
        sys.modules["typing.io"] = stand_in
    import latex2sympy2
    import sympy
    from antlr4 import Token
    from sympy.core.random import seed

    names = dict(latex2sympy2.var)
    values = dict(latex2sympy2.variances)
    lenient = latex2sympy2.PSParser

    class Strict(lenient):  # type: ignore[misc,valid-type]
        """The parser for one expression, unable to stop before the end of its input."""

        def math(self) -> object:
            tree = super().math()
            if self.getCurrentToken().type != Token.EOF:
                raise ValueError("text after the expression")
            if tree.relation() is None or tree.relation().expr() is None:
                raise ValueError("a relation or a list")
            return tree

    def parse(text: str, parser: type) -> Any:  # noqa: ANN401 - an expression or a list of them
        seed(0)
        # the parser leaves symbols of one string behind for the next
        latex2sympy2.var = dict(names)
        latex2sympy2.variances = dict(values)
        latex2sympy2.PSParser = parser
        return latex2sympy2.latex2sympy(text)

    def published(text: str) -> str:
        return str(sympy.latex(sympy.simplify(parse(text, lenient))))

    unevaluated = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative)

    def evaluate(text: str) -> str | None:
        expression = parse(text, Strict)
        if not isinstance(expression, sympy.Expr):
            return None
        expression = expression.subs(sympy.Symbol("i"), sympy.I).doit()
        value = sympy.simplify(expression)
        if value.has(*unevaluated) or value.has(sympy.zoo, sympy.nan):
            return None
        return str(sympy.latex(value, ln_notation=True))

    return {"published": published, "evaluate": evaluate}


if __name__ == "__main__":
    main()
