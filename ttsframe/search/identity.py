"""Names and draws of nodes: both are hashes of a node's path, so no order of arrival changes them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np
import polars as pl

from ttsframe._draws import Bits, Ints, bits_at, one_bits_at

LOOKAHEAD: Final = 1 << 32
"""Child index from which the nodes of a lookahead count; children of a search are below it."""

_CHILDREN: Final = 0
_ROUND: Final = 1 << 33


def root_ids(problem_ids: pl.Series) -> Bits:
    """Return the node of each problem itself, the parent of its first steps."""
    # Arrow and numpy hash strings differently in different versions, BLAKE2 does not.
    found = [
        int.from_bytes(
            blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        for value in problem_ids.to_list()
    ]
    return np.array(found, dtype=np.uint64)


def child_ids(parents: Bits, children: Ints) -> Bits:
    """Return the identifiers of children from those of their parents and their index there."""
    return bits_at(parents, children)


def request_draws(seed: int, nodes: Bits) -> Bits:
    """Return the 64 bits from which the children of each node are drawn; child i takes position i."""
    return _drawn(seed, nodes, _CHILDREN)


def round_draws(seed: int, roots: Bits, rounds: Ints) -> Bits:
    """Return 64 bits for what a policy draws once for a problem and round."""
    start = _drawn(seed, roots, _ROUND)
    return bits_at(start, rounds)


def _drawn(seed: int, nodes: Bits, purpose: int) -> Bits:
    key = np.uint64(one_bits_at(seed, 0))
    return bits_at(bits_at(nodes ^ key, np.array([0])), np.array([purpose]))
