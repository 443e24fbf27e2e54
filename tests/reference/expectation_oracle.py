"""The expected accuracy of a selector by going through every subset, in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import selection_oracle


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


def ranked_vote(selector: str) -> Callable[[Sequence[Attempt]], float]:
    """Return the rule of a selector that weighs votes by their place among the scores."""

    def vote(subset: Sequence[Attempt]) -> float:
        numbered = dict(enumerate(subset))
        scored = [
            {"attempt": i, "answer_key": a.key, "score": a.score}
            for i, a in numbered.items()
            if a.score is not None
        ]
        if not scored:
            return 0.0
        weighed = selection_oracle.share(scored, selector, "score", {})
        return _vote([(numbered[row["attempt"]], weight) for row, weight in weighed or []])

    return vote


def minimum_bayes_risk(subset: Sequence[Attempt]) -> float:
    keys = [attempt.key for attempt in subset if attempt.key is not None]
    # An answer's vote weighs its mean similarity to all answers, so its total is their sum.
    gain = {key: math.fsum(selection_oracle.token_f1(key, other) for other in keys) for key in keys}
    return _vote([(a, gain[a.key] / keys.count(a.key)) for a in subset if a.key is not None])


def best_of_n(subset: Sequence[Attempt]) -> float:
    scores = [attempt.score for attempt in subset if attempt.score is not None]
    return _rate([a for a in subset if a.score is not None and a.score == max(scores)])


def best_of_majority(subset: Sequence[Attempt]) -> float:
    counts = Counter(attempt.key for attempt in subset)
    scored = [a for a in subset if a.key is not None and a.score is not None]
    most = max((counts[a.key] for a in scored), default=0)
    kept = [a for a in scored if counts[a.key] >= min(most, 0.1 * len(subset))]
    highest = max((a.score for a in kept), default=0.0)
    return _vote([
        (a, 1.0 / sum(b.key == a.key for b in kept if b.score == highest))
        for a in kept
        if a.score == highest
    ])


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


RANKED: dict[str, Callable[[Sequence[Attempt]], float]] = {
    **{
        name: ranked_vote(name)
        for name in (
            "borda_vote",
            "confidence_vote",
            "top_fraction_vote",
            "majority_of_the_bests",
        )
    },
    "minimum_bayes_risk": minimum_bayes_risk,
    "best_of_majority": best_of_majority,
}


def over_all_subsets(
    attempts: Sequence[Attempt], budget: int, accuracy: Callable[[Sequence[Attempt]], float]
) -> float:
    """Average over every subset of a size."""
    found = [accuracy(subset) for subset in itertools.combinations(attempts, budget)]
    return math.fsum(found) / len(found)
