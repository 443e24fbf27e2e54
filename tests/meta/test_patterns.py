"""No regular expression of the package takes exponential time on a repeated piece of text."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import ttsframe

PIECES = [
    *"aA1 \t\n$\\{}()[]|*_`'\",.;:=+-/^<>!?#~&%°中é½²−…",
    *("bo", "12", "\\,", "\\text{a}", "and ", "or ", "A, ", "(a)", "1,", "1/", "x=1, ", "$1$ ", "\\frac", "{,}", "the "),
    *("is ", "A and ", "**a**", "\\quad ", "the answer is ", "- a\n", "1. a\n", "a b ", "option A ", "Step 1: "),
]  # fmt: skip
BEFORE = ["", "2 ", "\\", "{", "A "]
AFTER = ["!", "}", "x="]
N_REPEATS = 40
N_MIXED = 100
MOST_SECONDS = 600


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns of texts that modules and their tables hold."""
    for module in pkgutil.walk_packages(ttsframe.__path__, "ttsframe."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            held = value if isinstance(value, tuple | list) else (value,)
            for each in itertools.chain.from_iterable(
                one if isinstance(one, tuple | list) else (one,) for one in held
            ):
                if isinstance(each, re.Pattern) and isinstance(each.pattern, str):
                    yield f"{module.name}.{name}", each


def main() -> None:
    """Match every pattern against every text."""
    rng = Random(0)
    mixed = ["".join(rng.choices(PIECES, k=rng.choice([2, 3]))) for _ in range(N_MIXED)]
    texts = [
        before + piece * N_REPEATS + after
        for pieces, starts in ((PIECES, BEFORE), (mixed, BEFORE[:2]))
        for before, piece, after in itertools.product(starts, pieces, AFTER)
    ]
    for name, pattern in patterns():
        print(name, flush=True)  # noqa: T201 - the last one printed is the slow one
        for text in texts:
            pattern.match(text)
            pattern.fullmatch(text)
            pattern.search(text)


def test_no_pattern_takes_exponential_time() -> None:
    # In a process of its own, which can be stopped. It takes seconds; an exponential pattern, years.
    done = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 300


if __name__ == "__main__":
    main()
