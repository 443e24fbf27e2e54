"""Votes over all subsets of a size: counted exactly where that is fast, else on sampled subsets.

The first k attempts of a shuffle are a subset of size k drawn without replacement, and the subsets
of one shuffle are nested. So one pass over a shuffle adds up the votes of all budgets, and all
selectors of a problem are compared on the same subsets.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from ttsframe._draws import bits_at
from ttsframe._typing import Flags, Floats, Integers, Weights
from ttsframe.votes.engine.ballots import Ballots, weigh
from ttsframe.votes.engine.pools import Block
from ttsframe.votes.engine.registry import Pick
from ttsframe.votes.engine.winners import TIE_TOLERANCE, share_right
from ttsframe.votes.expectation.majority import Pool, majority_accuracy

_BLOCK: Final = 1 << 19
"""Number of attempts that are shuffled at once."""

_WORTHWHILE: Final = 8.0
"""Complex numbers that an exact count may compute per attempt that a sample would shuffle. Such a
count took at most about as long as 200 subsets (benchmarks/bench_expected.py) and has no error."""


class Sampling(NamedTuple):
    """How subsets are drawn."""

    n_subsets: int
    seed: int


PollKind: TypeAlias = Literal["equal", "weights", "logarithms"]


class Poll(NamedTuple):
    """The votes of the attempts at one problem, (n,) each."""

    answer: Integers
    """Numbers the answers from 0; `n_answers` for an attempt that does not vote."""
    n_answers: int
    weight: Floats
    """Weight of the vote, or its logarithm, up to a common factor."""
    grade: Floats
    """1.0 for a correct attempt, else 0.0."""
    kind: PollKind


def vote_accuracies(
    attempts: Block,
    name: object,
    picks: Sequence[Pick],
    budgets: Integers,
    *,
    weights: Weights,
    sampling: Sampling,
) -> tuple[Floats, Floats]:
    """Return (n_picks, n_budgets) expected accuracies of one problem, and Monte-Carlo errors."""
    # `attempts` is a block of one problem, sorted by attempt and graded. Subsets depend on the `repr`
    # of `name` and on the seed only. `budgets` are ascending and at most the number of attempts.
    n = len(attempts.key)
    values = np.full((len(picks), len(budgets)), np.nan)
    errors = np.zeros_like(values)
    attempts = _with_one_text(attempts)
    polls = [_poll(attempts, pick, weights) for pick in picks]
    for index, (pick, poll) in enumerate(zip(picks, polls, strict=True)):
        if poll is not None:
            values[index] = _counted(poll, budgets, sampling.n_subsets)
        else:
            values[index] = _of_all_attempts(attempts, pick, budgets, weights)
    missing = [np.flatnonzero(np.isnan(of_pick)) for of_pick in values]
    if not any(map(len, missing)):
        return values, errors
    drawn: list[list[Floats]] = [[] for _ in picks]
    for order in shuffles(sampling, name, n):
        for pick, poll, left, of_pick in zip(picks, polls, missing, drawn, strict=True):
            if not len(left):
                continue
            if poll is None:
                of_pick.append(pick_in_subsets(attempts, pick, order, budgets[left], weights))
            else:
                of_pick.append(vote_in_subsets(poll, order, budgets[left]))
    for index, (left, of_pick) in enumerate(zip(missing, drawn, strict=True)):
        if len(left):
            sample = np.concatenate(of_pick)
            values[index, left] = sample.mean(axis=0)
            errors[index, left] = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
    return values, errors


def _poll(attempts: Block, pick: Pick, weights: Weights) -> Poll | None:
    """Return the votes that decide a subset, or None if the selector is no count of votes."""
    selector = pick.selector
    if not selector.counts_votes:
        return None
    is_voting = attempts.key > 0
    weight = np.ones(len(is_voting))
    kind: PollKind = "equal"
    no_weight = 0.0
    if selector.weighs_votes:
        score = attempts.scores[pick.number]
        is_voting &= ~np.isnan(score)
        if weights == "softmax":
            weight, kind, no_weight = score, "logarithms", -np.inf
        else:
            weight, kind = weigh(score, weights), "weights"
    keys, number = np.unique(attempts.key[is_voting], return_inverse=True)
    answer = np.full(len(is_voting), len(keys))
    answer[is_voting] = number
    weight = np.where(is_voting, weight, no_weight)
    return Poll(answer, len(keys), weight, attempts.grade.astype(np.float64), kind)


def _counted(poll: Poll, budgets: Integers, n_subsets: int) -> Floats:
    """Return the accuracies that need no sampling, NaN for the others."""
    n = len(poll.answer)
    result = np.full(len(budgets), np.nan)
    if poll.n_answers == 0:
        return np.zeros(len(budgets))
    if poll.kind != "equal":
        # Only one subset has all attempts.
        if budgets[-1] == n:
            result[-1] = vote_in_subsets(poll, np.arange(n)[None, :], budgets[-1:])[0, 0]
        return result
    counts = np.bincount(poll.answer, minlength=poll.n_answers + 1)[:-1]
    right = np.bincount(poll.answer, poll.grade, minlength=poll.n_answers + 1)[:-1]
    pool = Pool(counts, right / counts, n)
    for index, budget in enumerate(budgets.tolist()):
        result[index] = majority_accuracy(pool, budget, most=_WORTHWHILE * n_subsets * n)
    return result


def shuffles(sampling: Sampling, name: object, n: int) -> Iterator[Integers]:
    """Yield blocks of permutations of a problem's attempts, one row per subset to draw."""
    digest = hashlib.blake2b(f"{sampling.seed} {name!r}".encode(), digest_size=8).digest()
    key = np.array([int.from_bytes(digest, "little")], dtype=np.uint64)
    # The attempt is in the low bits, so sorting the numbers shuffles the attempts.
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
        yield bits.view(np.int64)


def vote_in_subsets(poll: Poll, order: Integers, budgets: Integers) -> Floats:
    """Return the chance that the winner is correct: (n_subsets, n_budgets), ties shared equally."""
    # The first `budget` attempts of each shuffle in `order` vote; without a vote the chance is 0.
    order = np.ascontiguousarray(order[:, : int(budgets[-1])])
    # An attempt is added up at the first budget that includes it. Reductions over answers and
    # budgets are fastest where subsets are the last axis.
    added_at = np.searchsorted(budgets, np.arange(order.shape[1]), side="right")
    shape = poll.n_answers + 1, len(budgets), len(order)
    of_answer = np.arange(shape[0]) * (shape[1] * shape[2])
    cells = of_answer[poll.answer][order]
    cells += added_at * shape[2]
    cells += np.arange(shape[2])[:, None]
    cells = cells.ravel()

    def added(values: Floats | None) -> Floats:
        sums = np.bincount(cells, values if values is None else values.ravel(), math.prod(shape))
        return sums.reshape(shape).astype(np.float64, copy=False)

    weight = poll.weight[order]
    if poll.kind == "logarithms":
        weights = _added_logarithms(weight, added_at, added)
    else:
        weights = _add_up(added(weight))
    rates = _rates(poll)
    if rates is not None:
        shares = _share_of_rates(weights[:-1], rates)
    else:
        votes, right = _add_up(added(None)), _add_up(added(poll.grade[order]))
        shares = _share_right(weights[:-1], votes[:-1], right[:-1])
    return np.ascontiguousarray(shares.T)


def _add_up(totals: Floats) -> Floats:
    """Add to the totals of each budget those of the smaller ones, in place."""
    # `np.cumsum` over this axis takes several times as long.
    for index in range(1, totals.shape[1]):
        totals[:, index] += totals[:, index - 1]
    return totals


def _added_logarithms(
    weight: Floats, added_at: Integers, added: Callable[[Floats], Floats]
) -> Floats:
    """Return totals of weights given as logarithms, relative to the highest of each subset."""
    # So only negligible weights underflow.
    first = np.searchsorted(added_at, np.arange(added_at[-1] + 1))
    highest = np.maximum.accumulate(np.maximum.reduceat(weight, first, axis=1), axis=1)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    totals = added(np.exp(weight - shift[:, added_at]))
    fall = np.exp(np.diff(shift, axis=1, prepend=shift[:, :1]) * -1.0)
    for index in range(1, totals.shape[1]):
        totals[:, index] += totals[:, index - 1] * fall[:, index]
    return totals


def _rates(poll: Poll) -> Floats | None:
    """Return the grade of each answer, or None where it or a tie depends on who votes."""
    # A vote of no weight would be needed to tell a tie at zero from answers without votes.
    n_votes = np.bincount(poll.answer, minlength=poll.n_answers + 1)[:-1]
    n_right = np.bincount(poll.answer, poll.grade, poll.n_answers + 1)[:-1]
    is_equal = np.all((n_right == 0) | (n_right == n_votes))
    has_weight = poll.kind == "logarithms" or np.all(poll.weight[poll.answer < poll.n_answers] > 0)
    return n_right / n_votes if is_equal and has_weight else None


def _share_of_rates(weights: Floats, rates: Floats) -> Floats:
    """Return the chance that a winner is correct, where all votes for an answer have one grade."""
    is_tied = _is_tied(weights) & (weights > 0.0)
    n_right = is_tied[rates > 0.0].sum(axis=0)
    result: Floats = n_right / np.maximum(is_tied.sum(axis=0), 1)
    return result


def _share_right(weights: Floats, votes: Floats, right: Floats) -> Floats:
    """Return the chance that a winner is correct, from totals of (answer, budget, subset)."""
    is_tied = (votes > 0) & _is_tied(weights)
    rate = np.divide(right, votes, out=np.zeros_like(right), where=is_tied)
    result: Floats = rate.sum(axis=0) / np.maximum(is_tied.sum(axis=0), 1)
    return result


def _is_tied(weights: Floats) -> Flags:
    """Return which answers have the highest weight of their subset, up to rounding."""
    deficit = weights.max(axis=0) - weights
    tied: Flags = deficit <= TIE_TOLERANCE * weights.sum(axis=0)
    return tied


def _of_all_attempts(attempts: Block, pick: Pick, budgets: Integers, weights: Weights) -> Floats:
    """Return the accuracy where a subset has all attempts, NaN for the other budgets."""
    n = len(attempts.key)
    result = np.full(len(budgets), np.nan)
    # A function of the user may read the order of the attempts.
    if budgets[-1] == n and not pick.selector.is_own:
        result[-1:] = pick_in_subsets(attempts, pick, np.arange(n)[None], budgets[-1:], weights)[0]
    return result


def _with_one_text(attempts: Block) -> Block:
    """Give each answer the text of its earliest attempt, so that the order of a subset has no effect."""
    if attempts.texts is None:
        return attempts
    _, first, number = np.unique(attempts.key, return_index=True, return_inverse=True)
    return attempts._replace(texts=attempts.texts.take(first[number]))


def pick_in_subsets(
    attempts: Block, pick: Pick, order: Integers, budgets: Integers, weights: Weights
) -> Floats:
    """Return the chance that any selector is right on the first attempts of each shuffle."""
    n_subsets, n = order.shape
    row = order.ravel()
    shuffled = attempts.take(row, np.arange(n_subsets + 1) * n)._replace(
        attempt=np.tile(np.arange(n, dtype=np.uint32), n_subsets)
    )
    ballots = Ballots(shuffled, budgets, weights)
    return share_right(ballots, pick.winners(ballots)).T
