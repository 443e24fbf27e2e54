"""The expected accuracy of a selector by going through every subset, in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Attempt(NamedTuple):
    key: str | None
    is_right: bool
    score: float | None = None


def majority_vote(subset: Sequence[Attempt]) -> float:
    return _vote([(attempt, 1.0) for attempt in subset])


def weighted_vote(subset: Sequence[Attempt]) -> float:
    return _vote([(attempt, attempt.score) for attempt in subset if attempt.score is not None])


def softmax_vote(subset: Sequence[Attempt]) -> float:
    scores = [attempt.score for attempt in subset if attempt.score is not None]
    return _vote([
        (attempt, math.exp(attempt.score - max(scores)))
        for attempt in subset
        if attempt.score is not None
    ])


def _vote(weighed: Sequence[tuple[Attempt, float]]) -> float:
    totals: defaultdict[str, float] = defaultdict(float)
    voters: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt, weight in weighed:
        if attempt.key is not None:
            totals[attempt.key] += weight
            voters[attempt.key].append(attempt)
    if not totals:
        return 0.0
    least = max(totals.values()) - 1e-9 * math.fsum(totals.values())
    leading = [voters[key] for key, total in totals.items() if total >= least]
    return math.fsum(_rate(attempts) for attempts in leading) / len(leading)


def best_of_n(subset: Sequence[Attempt]) -> float:
    scores = [attempt.score for attempt in subset if attempt.score is not None]
    return _rate([a for a in subset if a.score is not None and a.score == max(scores)])


def first_valid(subset: Sequence[Attempt]) -> float:
    return _rate([attempt for attempt in subset if attempt.key is not None])


def oracle(subset: Sequence[Attempt]) -> float:
    return float(any(attempt.is_right for attempt in subset))


def _rate(attempts: Sequence[Attempt]) -> float:
    return sum(a.is_right for a in attempts) / len(attempts) if attempts else 0.0


EXACT: dict[str, Callable[[Sequence[Attempt]], float]] = {
    "majority_vote": majority_vote,
    "best_of_n": best_of_n,
    "first_valid": first_valid,
    "oracle": oracle,
}


def over_all_subsets(
    attempts: Sequence[Attempt], budget: int, accuracy: Callable[[Sequence[Attempt]], float]
) -> float:
    """Average over every subset of a size."""
    found = [accuracy(subset) for subset in itertools.combinations(attempts, budget)]
    return math.fsum(found) / len(found)
