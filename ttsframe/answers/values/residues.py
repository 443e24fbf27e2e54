"""Residues of exact numbers and rational expressions that are too large to evaluate.

Two different integers agree modulo both primes with a probability of 2^-234, so 10^20000 and 10^20000 + 1
have different keys, and 3^2025 needs no digits. Symbols, and the constants e and pi, which satisfy no
polynomial, have fixed residues.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha512
from itertools import accumulate
from typing import Final

from ttsframe.answers.latex.tree import Node
from ttsframe.answers.policy import AnswerPolicy

__all__ = ["residue_key"]

PRIMES: Final = (2**127 - 1, 2**107 - 1)
LARGEST_EXPONENT_BITS: Final = 20_000
LARGEST_FACTORIAL: Final = 6_000


def residue_key(node: Node, policy: AnswerPolicy) -> str | None:
    """Return a key made of residues, or None where the expression is not rational."""
    residues = [_residue(node, prime, policy) for prime in PRIMES]
    if None in residues:
        return None
    return "m" + ".".join(f"{residue:x}" for residue in residues)


def _residue(node: Node, prime: int, policy: AnswerPolicy) -> int | None:
    op = node[0]
    if op == "q":
        low = node[2] % prime
        return node[1] % prime * pow(low, -1, prime) % prime if low else None
    if op == "s" or (op == "c" and node[1] in {"pi", "e"}):
        return _symbol_residue(op + node[1], prime)
    if op in {"+", "*"}:
        total = 0 if op == "+" else 1
        for part in node[1]:
            value = _residue(part, prime, policy)
            if value is None:
                return None
            total = (total + value if op == "+" else total * value) % prime
        return total
    if op == "/":
        top, low = _residue(node[1], prime, policy), _residue(node[2], prime, policy)
        return top * pow(low, -1, prime) % prime if top is not None and low else None
    if op == "^":
        base, exponent = _residue(node[1], prime, policy), _exact_integer(node[2])
        # A power of e is the exponential function, which has no residue.
        if not base or exponent is None or node[1] == ("c", "e"):
            return None
        return pow(base, exponent % (prime - 1), prime)
    if op == "f" and node[1] == "factorial":
        whole = _exact_integer(node[2][0])
        if whole is None or not 0 <= whole <= LARGEST_FACTORIAL:
            return None
        return _factorials(prime)[whole]
    if op == "f" and node[1] == "percent" and policy.percent != "kept":
        return pow(100, -1, prime) if policy.percent == "fraction" else 1
    return None


@lru_cache(maxsize=len(PRIMES))
def _factorials(prime: int) -> list[int]:
    steps = range(1, LARGEST_FACTORIAL + 1)
    return list(accumulate(steps, lambda product, factor: product * factor % prime, initial=1))


@lru_cache(maxsize=4_096)
def _symbol_residue(name: str, prime: int) -> int:
    digest = sha512(f"residue:{name}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest, "big") % prime


def _exact_integer(node: Node) -> int | None:
    """Return the exact value of an exponent that is an integer of moderate size."""
    op = node[0]
    if op == "q":
        return node[1] // node[2] if node[1] % node[2] == 0 else None
    if op in {"+", "*"}:
        total = 0 if op == "+" else 1
        for part in node[1]:
            value = _exact_integer(part)
            if value is None:
                return None
            total = total + value if op == "+" else total * value
            if total.bit_length() > LARGEST_EXPONENT_BITS:
                return None
        return total
    if op == "^":
        base, exponent = _exact_integer(node[1]), _exact_integer(node[2])
        if base is None or exponent is None or exponent < 0:
            return None
        if base.bit_length() * exponent > LARGEST_EXPONENT_BITS:
            return None
        return int(base**exponent)
    return None
