"""Votes over all subsets of a size: counted where that is worth its time, else of sampled subsets.

The first k attempts of a shuffle are a subset of size k drawn without replacement, and the subsets
of one shuffle are nested. So one pass over it adds up votes between budgets, which cumulate, and
all selectors of a problem are compared on the same subsets.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from ttsframe._draws import bits_at
from ttsframe._typing import Weights
from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.pools import Block, Floats, Integers
from ttsframe.votes.engine.registry import Pick
from ttsframe.votes.engine.winners import TIE_TOLERANCE
from ttsframe.votes.expectation.majority import Pool, majority_accuracy

_BLOCK: Final = 1 << 19
"""Attempts that are shuffled at once."""

_WORTHWHILE: Final = 8.0
"""How many complex numbers an exact count may go through for each attempt that a sample would
shuffle. A count then took .5 to 2 times as long as 200 subsets (benchmarks/bench_expected.py), and
it leaves no error."""


class Sampling(NamedTuple):
    """How subsets are drawn."""

    n_subsets: int
    seed: int


class Poll(NamedTuple):
    """What the attempts of one problem vote, (n,) each.

    `answer` numbers the answers from 0, and is `n_answers` for attempts that do not vote; `weight`
    is what a vote weighs, up to a factor, or the logarithm of it; `grade` is 1.0 for a correct one.
    """

    answer: Integers
    n_answers: int
    weight: Floats
    grade: Floats
    kind: Literal["heads", "weights", "logarithms"]


def vote_accuracies(
    attempts: Block,
    name: object,
    picks: Sequence[Pick],
    budgets: Integers,
    *,
    weights: Weights,
    sampling: Sampling,
) -> tuple[Floats, Floats]:
    """Return expected accuracies of one problem.

    Parameters
    ----------
    attempts
        A block of one problem, by rising attempt, all graded.
    name
        What names the problem; its subsets depend on its `repr` and the seed alone.
    picks
        Selectors, of which none is known to have no result on this problem.
    budgets
        Sizes of the subsets, ascending, at most those of all attempts.
    weights
        What a vote weighs.
    sampling
        How subsets are drawn.

    Returns
    -------
    tuple[Floats, Floats]
        (n_picks, n_budgets) accuracies, and their Monte-Carlo errors.
    """
    n = len(attempts.key)
    values = np.full((len(picks), len(budgets)), np.nan)
    errors = np.zeros_like(values)
    polls = [_poll(attempts, pick, weights) for pick in picks]
    for index, poll in enumerate(polls):
        if poll is not None:
            values[index] = _counted(poll, budgets, sampling.n_subsets)
    missing = [np.flatnonzero(np.isnan(of_pick)) for of_pick in values]
    if not any(map(len, missing)):
        return values, errors
    drawn: list[list[Floats]] = [[] for _ in picks]
    for order in shuffles(sampling, name, n):
        for pick, poll, left, of_pick in zip(picks, polls, missing, drawn, strict=True):
            if not len(left):
                continue
            if poll is None:
                of_pick.append(_picked(attempts, pick, order, budgets[left], weights))
            else:
                of_pick.append(hold(poll, order, budgets[left]))
    for index, (left, of_pick) in enumerate(zip(missing, drawn, strict=True)):
        if len(left):
            sample = np.concatenate(of_pick)
            values[index, left] = sample.mean(axis=0)
            errors[index, left] = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
    return values, errors


def _poll(attempts: Block, pick: Pick, weights: Weights) -> Poll | None:
    """Return what is voted, or None where the selector is not a vote."""
    if pick.selector not in {"majority_vote", "weighted_vote"}:
        return None
    is_voting = attempts.key > 0
    weight = np.ones(len(is_voting))
    kind: Literal["heads", "weights", "logarithms"] = "heads"
    nothing = 0.0
    if pick.selector == "weighted_vote":
        weight, kind = attempts.scores[pick.number], "weights"
        is_voting &= ~np.isnan(weight)
        if weights == "sigmoid":
            with np.errstate(over="ignore"):
                weight = 1.0 / (1.0 + np.exp(-weight))
        elif weights == "softmax":
            kind, nothing = "logarithms", -np.inf
    keys, number = np.unique(attempts.key[is_voting], return_inverse=True)
    answer = np.full(len(is_voting), len(keys))
    answer[is_voting] = number
    weight = np.where(is_voting, weight, nothing)
    return Poll(answer, len(keys), weight, attempts.grade.astype(np.float64), kind)


def _counted(poll: Poll, budgets: Integers, n_subsets: int) -> Floats:
    """Return the accuracies that are known without sampling, NaN for the others."""
    n = len(poll.answer)
    result = np.full(len(budgets), np.nan)
    if poll.n_answers == 0:
        return np.zeros(len(budgets))
    if poll.kind != "heads":
        # There is but one subset of all attempts.
        if budgets[-1] == n:
            result[-1] = hold(poll, np.arange(n)[None, :], budgets[-1:])[0, 0]
        return result
    counts = np.bincount(poll.answer, minlength=poll.n_answers + 1)[:-1]
    right = np.bincount(poll.answer, poll.grade, minlength=poll.n_answers + 1)[:-1]
    pool = Pool(counts, right / counts, n)
    for index, budget in enumerate(budgets.tolist()):
        if pool.cost(budget) <= _WORTHWHILE * n_subsets * n:
            result[index] = majority_accuracy(pool, budget)
    return result


def shuffles(sampling: Sampling, name: object, n: int) -> Iterator[Integers]:
    """Shuffle the attempts of a problem, as often as there are subsets to draw.

    Parameters
    ----------
    sampling
        How many shuffles, and the seed of them all.
    name
        What names the problem.
    n
        Attempts of the problem.

    Yields
    ------
    Integers
        Blocks of rows, each a permutation of 0..n-1.
    """
    digest = hashlib.blake2b(f"{sampling.seed} {name!r}".encode(), digest_size=8).digest()
    key = np.array([int.from_bytes(digest, "little")], dtype=np.uint64)
    # The low bits hold the attempt, so that sorting the numbers sorts the attempts with them.
    low = np.uint64((1 << n.bit_length()) - 1)
    attempts = np.arange(n, dtype=np.uint64)
    n_rows = max(_BLOCK // n, 1)
    for start in range(0, sampling.n_subsets, n_rows):
        stop = min(start + n_rows, sampling.n_subsets)
        bits = bits_at(key, np.arange(start * n, stop * n)).reshape(stop - start, n)
        bits &= ~low
        bits |= attempts
        bits.sort(axis=1)
        bits &= low
        yield bits.astype(np.int64)


def hold(poll: Poll, order: Integers, budgets: Integers) -> Floats:
    """Hold a vote among the first attempts of each shuffle.

    Parameters
    ----------
    poll
        What each attempt votes.
    order
        (n_subsets, n) permutations.
    budgets
        How many of the first attempts vote, ascending.

    Returns
    -------
    Floats
        (n_subsets, n_budgets): the chance that the winner is right, ties being shared equally; 0
        where nobody votes.
    """
    shape = (len(order), poll.n_answers + 1)
    rows = np.arange(shape[0])[:, None] * shape[1]
    weights, votes, right = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    highest = np.full((shape[0], 1), -np.inf)
    result = np.empty((shape[0], len(budgets)))
    stops = budgets.tolist()
    for index, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        drawn = order[:, start:stop]
        cells = (rows + poll.answer[drawn]).ravel()
        weight = poll.weight[drawn]
        if poll.kind == "logarithms":
            # Relative to the highest of the subset, beside which nothing that matters vanishes.
            before, highest = highest, np.maximum(highest, weight.max(axis=1, keepdims=True))
            shift = np.where(np.isfinite(highest), highest, 0.0)
            weights *= np.exp(before - shift)
            weight = np.exp(weight - shift)
        weights += np.bincount(cells, weight.ravel(), weights.size).reshape(shape)
        votes += np.bincount(cells, minlength=votes.size).reshape(shape)
        right += np.bincount(cells, poll.grade[drawn].ravel(), right.size).reshape(shape)
        result[:, index] = _share_right(weights[:, :-1], votes[:, :-1], right[:, :-1])
    return result


def _share_right(weights: Floats, votes: Floats, right: Floats) -> Floats:
    """Return the chance that a winner is right, from totals of (subset, answer)."""
    behind = weights.max(axis=1, keepdims=True) - weights
    is_leading = (votes > 0) & (behind <= TIE_TOLERANCE * weights.sum(axis=1, keepdims=True))
    rate = np.divide(right, votes, out=np.zeros_like(right), where=is_leading)
    result: Floats = rate.sum(axis=1) / np.maximum(is_leading.sum(axis=1), 1)
    return result


def _picked(
    attempts: Block, pick: Pick, order: Integers, budgets: Integers, weights: Weights
) -> Floats:
    """Let any selector pick from the first attempts of each shuffle, as problems of their own."""
    n_subsets, n = order.shape
    row = order.ravel()
    shuffled = Block(
        first_problem=0,
        first_row=0,
        starts=np.arange(n_subsets + 1) * n,
        attempt=np.tile(np.arange(n, dtype=np.uint32), n_subsets),
        key=attempts.key[row],
        grade=attempts.grade[row],
        scores=tuple(score[row] for score in attempts.scores),
        texts=attempts.texts and attempts.texts.take(row),
    )
    ballots = Ballots(shuffled, budgets, weights)
    # Ties go to what comes first, which in a shuffle shares them equally.
    winner = pick.winners(ballots).row
    is_right = (winner != NONE) & (ballots.grade[np.where(winner == NONE, 0, winner)] == 1)
    result: Floats = is_right.T.astype(np.float64)
    return result
