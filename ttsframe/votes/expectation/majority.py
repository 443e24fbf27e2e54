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
from typing import Final

import numpy as np

from ttsframe._typing import Floats, Integers

_TAIL: Final = 40.0
"""Sizes N of probability below exp(-40) may be aliased to the requested size."""

_NEGLIGIBLE: Final = 1e-18
"""Numbers of votes less likely than this are ignored."""

MAX_NODES: Final = 128
"""Largest number of Gauss-Legendre nodes; computing more costs more than sampling subsets."""


class Pool:
    """The answers of one problem: their votes, the correct share of each, and all `n` attempts."""

    def __init__(self, counts: Integers, grades: Floats, n: int) -> None:
        self.n = n
        self.n_abstaining = n - int(counts.sum())
        self.sizes, which, self.repeats = np.unique(counts, return_inverse=True, return_counts=True)
        self.right = np.bincount(which, weights=grades, minlength=len(self.sizes))

    def n_points(self, budget: int) -> int:
        """Return the number of points on the unit circle that separate a size from all others."""
        return min(_reach(self.n, _share(self.n, budget)), self.n + 1) | 1

    def n_nodes(self, votes: Integers, budget: int) -> Integers:
        """Return the number of nodes that integrate exactly over answers that may tie."""
        reaching = np.append(np.cumsum(self.repeats[::-1])[::-1], 0)
        n_rivals = reaching[np.searchsorted(self.sizes, votes)] - 1
        most: Integers = np.minimum(n_rivals, budget // votes - 1)
        return most // 2 + 1

    def cost(self, budget: int) -> float:
        """Return the number of complex numbers that the exact count computes."""
        if budget in {1, self.n}:
            return 0.0
        most, share = int(self.sizes[-1]), _share(self.n, budget)
        middle, reach = round(most * share), _reach(most, share)
        votes = np.arange(max(middle - reach, 1), min(middle + reach, most, budget) + 1)
        nodes = self.n_nodes(votes, budget)
        if nodes.max() > MAX_NODES:
            return math.inf
        n_targets = np.count_nonzero(self.right)
        return float(n_targets * len(self.sizes) * nodes.sum() * (self.n_points(budget) // 2 + 1))


def majority_accuracy(pool: Pool, budget: int) -> float:
    """Return the expected accuracy of a majority vote; a subset without votes counts 0."""
    if budget == 1:
        return float(pool.sizes @ pool.right) / pool.n
    if budget == pool.n:
        return float(pool.right[-1] / pool.repeats[-1])
    share = _share(pool.n, budget)
    chances = _binomials(pool.sizes, share)
    is_likely = chances > _NEGLIGIBLE
    first = is_likely.argmax(axis=1)
    least = max(int(first.max()), 1)
    most = chances.shape[1] - 1 - is_likely[:, ::-1].argmax(axis=1)
    n_points = pool.n_points(budget)
    circle = np.exp(2j * np.pi / n_points * np.arange(n_points // 2 + 1))
    powers = circle ** np.arange((most - first).max() + 1)[:, None]
    log_step = np.log((1.0 - share) + share * circle)
    total = 0.0
    for target in np.flatnonzero(pool.right):
        n_votes = np.arange(least, min(int(most[target]), budget) + 1)
        if not len(n_votes):
            continue
        votes, nodes, shares = _pairs(n_votes, pool.n_nodes(n_votes, budget))
        n_other = np.full(len(votes), pool.n_abstaining)
        result = (chances[target, votes] * shares)[:, None] * powers[votes - least]
        for index, (size, n_equal) in enumerate(zip(pool.sizes, pool.repeats, strict=True)):
            n_rivals = int(n_equal) - (index == target)
            n_reached = int(np.searchsorted(votes, most[index], side="right"))
            n_other[n_reached:] += n_rivals * size
            if not n_rivals or not n_reached:
                continue
            start, stop = int(first[index]), int(votes[n_reached - 1]) + 1
            terms = chances[index, start:stop, None] * powers[: stop - start] * circle**start
            position = votes[:n_reached] - start
            # Fewer votes than the target, plus a share of equally many.
            fewer_or_equal, equal = np.cumsum(terms, axis=0)[position], terms[position]
            factors = fewer_or_equal - (1.0 - nodes[:n_reached, None]) * equal
            result[:n_reached] *= factors if n_rivals == 1 else factors**n_rivals
        result *= np.exp(n_other[:, None] * log_step)
        coefficients = result.sum(axis=0) * circle ** (least - budget)
        total += float(
            pool.right[target] * (coefficients[0].real + 2.0 * coefficients[1:].real.sum())
        )
    size_chance = float(_binomials(np.array([pool.n]), share)[0, budget])
    return min(max(total / (n_points * size_chance), 0.0), 1.0)


def _share(n: int, budget: int) -> float:
    """Return the probability p of an attempt under which the size `budget` is likely."""
    return (budget + 0.5) / (n + 1.0)


def _reach(n: int, share: float) -> int:
    """Return the largest deviation of a binomial from its mean, by Bernstein's bound."""
    spread = n * share * (1.0 - share)
    third = _TAIL / 3.0
    return math.ceil(third + math.sqrt(third * third + 2.0 * _TAIL * spread)) + 1


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
