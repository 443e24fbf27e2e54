"""The task: a number of d digits times one digit, column by column, and how it is written in tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
DIGITS = (2, 3, 4, 5, 6, 7)
SEPARATOR, END, PAD = "\n\n", "<end>", "<pad>"
VOCABULARY = [*"0123456789*+=", SEPARATOR, r"\boxed{", "}", END, PAD]
IDS = {token: number for number, token in enumerate(VOCABULARY)}
HEAD = DIGITS[-1] + 3
"""Tokens of a problem: number, times, digit, separator. Numbers are padded on the left."""
MOST = HEAD + 9 * DIGITS[-1] + 1 + (DIGITS[-1] + 1) + 2
"""Tokens of the longest problem with its solution."""
_TOKEN = re.compile(r"\n\n|\\boxed\{|[0-9*+=}]")


def numbers(draw: np.random.Generator, n: int, digits: int, *, held_out: bool) -> tuple[Ids, Ids]:
    """Draw factors; one tenth of all problems is held out, by a hash."""
    found: list[tuple[int, int]] = []
    while len(found) < n:
        a = draw.integers(10 ** (digits - 1), 10**digits, size=4 * n)
        b = draw.integers(2, 10, size=4 * n)
        is_out = (((a * 10 + b) * 2_654_435_761) % 2**32 >> 16) % 10 == 0
        is_wanted = is_out == held_out
        found += zip(a[is_wanted].tolist(), b[is_wanted].tolist(), strict=True)
    a, b = np.array(found[:n]).T
    return a, b


def solutions(a: Ids, b: Ids, digits: int) -> Ids:
    """Return the tokens of problems of one length, each with its solution and the end."""
    n = len(a)
    columns = [np.full(n, IDS[PAD])] * (DIGITS[-1] - digits)
    columns += [a // 10**place % 10 for place in reversed(range(digits))]
    columns += [np.full(n, IDS["*"]), b, np.full(n, IDS[SEPARATOR])]
    carry = np.zeros_like(a)
    for place in range(digits):
        digit = a // 10**place % 10
        total = digit * b + carry
        for column in (digit, "*", b, "+", carry, "=", total // 10, total % 10, SEPARATOR):
            columns.append(np.full(n, IDS[column]) if isinstance(column, str) else column)
        carry = total // 10
    product = a * b
    n_digits = np.where(product >= 10**digits, digits + 1, digits)
    rows = np.full((n, digits + 4), IDS[END])
    rows[:, 0] = IDS[r"\boxed{"]
    for place in range(digits + 1):
        at = n_digits - place
        is_there = at >= 1
        rows[is_there, at[is_there]] = (product // 10**place % 10)[is_there]
    rows[np.arange(n), n_digits + 1] = IDS["}"]
    return np.concatenate([np.stack(columns, axis=1), rows], axis=1)


def encode(text: str) -> list[int]:
    """Return the tokens of a problem and what follows it."""
    ids = [IDS[token] for token in _TOKEN.findall(text)]
    n_pads = HEAD - 1 - len(text.partition(SEPARATOR)[0])
    return [IDS[PAD]] * n_pads + ids


def decode(ids: Iterable[int]) -> str:
    return "".join(VOCABULARY[i] for i in ids)
