"""The expected accuracy of a majority vote over all subsets of a size, exactly.

Put each attempt into the subset independently with probability p, and let N be the subset's size.
Given N = k, all subsets of size k are equally likely for any p. The votes of different answers are
then independent binomials, so the generating function of N, over the event that an answer gets v
votes and beats every other, is a product over answers of

    P(fewer than v votes) + y P(v votes),

and the integral over y from 0 to 1 turns y^t, for t other answers with v votes, into the equal share
1 / (t + 1). A Gauss-Legendre rule with enough nodes integrates a polynomial exactly. The coefficient
of N = k comes from values on the unit circle. With p near k / n almost no other N is possible, so a
few dozen points suffice for hundreds of attempts, and nothing can overflow.

This is the polynomial count of ordinary combinatorics with each binomial coefficient C(c, u) scaled
to the probability C(c, u) p^u (1 - p)^(c - u), which keeps each coefficient's share of the total.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ttsframe._typing import Flags, Floats, Integers

Complexes: TypeAlias = npt.NDArray[np.complex128]

_NEGLIGIBLE: Final = 1e-16
"""Numbers of votes with which an answer is less likely to win than this are ignored."""

_ALIASED: Final = 1e-15
"""Sizes N less likely than this, relative to the requested size, may be aliased to it."""

_LARGEST_TABLE: Final = 1 << 17
"""Numbers in the largest table that is kept for further problems."""

_NUMBERS_AT_ONCE: Final = 1 << 14
"""Complex numbers that are computed at once, so that they stay in the cache."""

MAX_NODES: Final = 128
"""Largest number of Gauss-Legendre nodes; computing more costs more than sampling subsets."""


class Pool:
    """The answers of one problem: their votes, the correct share of each, and all `n` attempts."""

    def __init__(self, counts: Integers, grades: Floats, n: int) -> None:
        self.n = n
        self.n_abstaining = n - int(counts.sum())
        self.sizes, which, self.repeats = np.unique(counts, return_inverse=True, return_counts=True)
        self.right = np.bincount(which, weights=grades, minlength=len(self.sizes))
        self.reaching = np.append(np.cumsum(self.repeats[::-1])[::-1], 0)

    def n_nodes(self, budget: int, stop: int) -> Integers:
        """Return how many nodes integrate exactly over the answers that may tie, for 0..stop-1 votes."""
        votes = np.arange(stop)
        n_rivals = self.reaching[np.searchsorted(self.sizes, votes)] - 1
        most: Integers = np.minimum(n_rivals, budget // np.maximum(votes, 1) - 1)
        return np.maximum(most, 0) // 2 + 1

    def all_abstain(self, budget: int) -> float:
        """Return the probability of a subset without votes."""
        return math.comb(self.n_abstaining, budget) / math.comb(self.n, budget)


class _Circle:
    """Points on the unit circle that separate subsets of one size from all others."""

    def __init__(self, n: int, budget: int) -> None:
        self.budget = budget
        self.share = (budget + 0.5) / (n + 1.0)
        chances = _binomials(np.array([n]), self.share)[0]
        self.size_chance = float(chances[budget])
        # Sizes in steps of `n_points` from the requested one look the same on the circle.
        outside = np.cumsum(chances)[max(budget - 1, 0) :: -1][:n]
        above = np.cumsum(chances[::-1])[::-1][budget + 1 :]
        tail = np.zeros(n + 1)
        tail[: len(outside)] += outside
        tail[: len(above)] += above
        is_enough = tail <= _ALIASED * self.size_chance
        self.n_points = (int(is_enough.argmax()) + 1) | 1
        self.n_half = self.n_points // 2 + 1
        self._roots = np.exp(2j * np.pi / self.n_points * np.arange(self.n_points))
        is_small = self.n_points * self.n_half <= _LARGEST_TABLE
        self._table = self._raise(np.arange(self.n_points)) if is_small else None
        is_small = (n + 1) ** 2 <= _LARGEST_TABLE
        self._chances = _binomials(np.arange(n + 1), self.share) if is_small else None
        self.log_step = np.log((1.0 - self.share) + self.share * self._roots[: self.n_half])

    def powers(self, start: int, stop: int) -> Complexes:
        """Return the points on the upper half, raised to integers: (stop - start, n_half)."""
        first = start % self.n_points
        if self._table is not None and first + stop - start <= self.n_points:
            return self._table[first : first + stop - start]
        exponents = np.arange(start, stop) % self.n_points
        return self._raise(exponents) if self._table is None else self._table[exponents]

    def chances(self, sizes: Integers) -> Floats:
        """Return the probability of each number of votes, one row per size."""
        if self._chances is None:
            return _binomials(sizes, self.share)
        return self._chances[sizes, : int(sizes[-1]) + 1]

    def _raise(self, exponents: Integers) -> Complexes:
        powers: Complexes = self._roots[exponents[:, None] * np.arange(self.n_half) % self.n_points]
        return powers


@lru_cache(maxsize=32)
def _circle(n: int, budget: int) -> _Circle:
    return _Circle(n, budget)


def majority_accuracy(pool: Pool, budget: int, *, most: float = math.inf) -> float:
    """Return the expected accuracy of a majority vote; NaN if it takes more than `most` numbers."""
    # A subset without votes counts 0. `most` limits the complex numbers that are computed.
    if budget == 1:
        return float(pool.sizes @ pool.right) / pool.n
    if budget == pool.n:
        return float(pool.right[-1] / pool.repeats[-1])
    circle = _circle(pool.n, budget)
    chances = circle.chances(pool.sizes)
    may_win = _may_win(pool, chances)
    may_win[:, 0] = may_win[:, budget + 1 :] = False
    n_nodes = pool.n_nodes(budget, may_win.shape[1])
    if n_nodes[may_win.any(axis=0)].max(initial=1) > MAX_NODES:
        return math.nan
    n_rows = may_win @ n_nodes
    # What no wrong answer wins is won by a right one.
    wrong = pool.repeats - pool.right
    is_complement = n_rows[wrong > 0].sum() < n_rows[pool.right > 0].sum()
    shares = wrong if is_complement else pool.right
    targets = np.flatnonzero((shares > 0) & (n_rows > 0))
    if len(pool.sizes) * circle.n_half * n_rows[targets].sum() > most:
        return math.nan
    total = 0.0
    for target in targets.tolist():
        votes = np.flatnonzero(may_win[target])
        chance = _win_chance(pool, target, _pairs(votes, n_nodes[votes]), circle, chances)
        total += float(shares[target]) * chance
    if is_complement:
        total = 1.0 - pool.all_abstain(budget) - total
    return min(max(total, 0.0), 1.0)


def _may_win(pool: Pool, chances: Floats) -> Flags:
    """Return with which numbers of votes an answer may have as many as any other: (size, votes)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.cumsum(chances, axis=1))
        result: Flags = chances * np.exp(pool.repeats @ logs - logs) > _NEGLIGIBLE
    return result


def _win_chance(
    pool: Pool,
    target: int,
    pairs: tuple[Integers, Floats, Floats],
    circle: _Circle,
    chances: Floats,
) -> float:
    """Return the probability that an answer wins a subset with these votes, ties shared."""
    votes, nodes, weights = pairs
    low, high = int(votes[0]), int(votes[-1]) + 1
    n_rivals = pool.repeats.copy()
    n_rivals[target] -= 1
    # Smaller answers cannot reach the target, so they count as abstentions.
    n_other = pool.n_abstaining + int((n_rivals * pool.sizes)[pool.sizes < low].sum())
    rivals = np.flatnonzero((n_rivals > 0) & (pool.sizes >= low))
    powers = circle.powers(low, high)
    fewer = chances[rivals, :low] @ circle.powers(0, low)
    row, is_single = votes - low, len(votes) == high - low
    result = (chances[target, votes] * weights)[:, None] * powers[row]
    at_once = max(_NUMBERS_AT_ONCE // powers.size, 1)
    for start in range(0, len(rivals), at_once):
        part = rivals[start : start + at_once]
        equal = chances[part, low:high, None] * powers
        # Fewer votes than the target, plus a share of equally many.
        factors = np.cumsum(equal, axis=1)
        factors += fewer[start : start + at_once, None]
        if not is_single:
            factors, equal = factors[:, row], equal[:, row]
        equal *= (1.0 - nodes)[:, None]
        factors -= equal
        for index in np.flatnonzero(n_rivals[part] > 1).tolist():
            factors[index] = _power(factors[index], int(n_rivals[part[index]]))
        result *= factors.prod(axis=0)
    coefficients = result.sum(axis=0)
    coefficients *= (
        np.exp(n_other * circle.log_step) * circle.powers(-circle.budget, 1 - circle.budget)[0]
    )
    total = float(coefficients[0].real + 2.0 * coefficients[1:].real.sum())
    return total / (circle.n_points * circle.size_chance)


def _power(values: Complexes, exponent: int) -> Complexes:
    """Return values raised to a positive integer by products, which is faster than `**`."""
    result = values
    for bit in f"{exponent:b}"[1:]:
        result = result * result
        if bit == "1":
            result *= values
    return result


def _pairs(votes: Integers, n_nodes: Integers) -> tuple[Integers, Floats, Floats]:
    """Return each number of votes with each node of its rule, and the weight of the node."""
    rules = [_rule(int(number)) for number in n_nodes]
    return (
        np.repeat(votes, n_nodes),
        np.concatenate([nodes for nodes, _ in rules]),
        np.concatenate([weights for _, weights in rules]),
    )


@lru_cache(maxsize=MAX_NODES)
def _rule(n_nodes: int) -> tuple[Floats, Floats]:
    """Return the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (nodes + 1.0) / 2.0, weights / 2.0


def _binomials(sizes: Integers, share: float) -> Floats:
    """Return the probability of each number of votes, one row per size."""
    votes = np.arange(int(sizes.max()) + 1)
    odds = share / (1.0 - share)
    columns = sizes[:, None]
    mode = np.minimum(((columns + 1) * share).astype(np.int64), columns)
    rising = np.maximum(columns - votes + 1, 0) * odds
    ratio = rising / np.maximum(votes, 1)
    # Products of ratios run outwards from the mode, so they only fall.
    upward = np.cumprod(np.where(votes > mode, ratio, 1.0), axis=1)
    with np.errstate(divide="ignore"):
        inverse = np.where((votes <= mode) & (votes > 0), 1.0 / ratio, 1.0)
    downward = np.ones_like(upward)
    downward[:, :-1] = np.cumprod(inverse[:, :0:-1], axis=1)[:, ::-1]
    chances = np.where(votes <= columns, upward * downward, 0.0)
    result: Floats = chances / chances.sum(axis=1, keepdims=True)
    return result
