"""Selectors written out as slow, obvious Python: what the tally must agree with."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Attempt = dict[str, Any]


READ_SCORES = {
    "weighted_vote",
    "best_of_n",
    "borda_vote",
    "confidence_vote",
    "top_fraction_vote",
    "majority_of_the_bests",
    "best_of_majority",
}


def pick(
    attempts: Sequence[Attempt],
    selector: str,
    budget: int | None,
    weights: str = "score",
    **options: Any,
) -> dict[str, Any]:
    """Pick the answer of one problem; an attempt has attempt, answer_key, is_correct, score, gold_key."""
    is_gradable = any(a["is_correct"] is not None for a in attempts)
    is_answerless = all(a["answer_key"] is a.get("gold_key") is None for a in attempts)
    attempts = [a | {"is_correct": settled(a, is_gradable=is_gradable)} for a in attempts]
    within = sorted(
        (a for a in attempts if budget is None or a["attempt"] < budget),
        key=lambda a: a["attempt"],
    )
    n_valid = sum(a["answer_key"] is not None for a in within)
    result: dict[str, Any] = {"n_attempts": len(within), "n_valid": n_valid}
    nothing = dict.fromkeys([
        "attempt",
        "answer_key",
        "is_correct",
        "value",
        "n_votes",
        "agreement",
        "weight",
    ])
    if len(within) < (budget or 1):
        return result | nothing | {"status": "short"}
    scored = [a for a in within if a["score"] is not None and not math.isnan(a["score"])]
    if selector in READ_SCORES and not scored:
        return result | nothing | {"status": "unscored"}
    found = share(scored, selector, weights, options)
    if found is None:
        return result | nothing | {"status": "undefined"}
    voters = [a | {"weight": weight} for a, weight in found]

    winner, weight = choose(within, scored, voters, selector, options)
    needs_answer = selector not in {"oracle", "best_of_n"}
    is_elsewhere = is_answerless or any(a["is_correct"] for a in within)
    if n_valid == 0 and needs_answer and is_gradable and is_elsewhere:
        return result | nothing | {"status": "undefined"}
    is_gradable = any(a["is_correct"] is not None for a in within)
    if winner is None:
        is_correct = False if is_gradable else None
        key = None
    else:
        is_correct, key = winner["is_correct"], winner["answer_key"]
    n_votes = sum(key is not None and a["answer_key"] == key for a in within)
    return result | {
        "attempt": None if winner is None else winner["attempt"],
        "answer_key": key,
        "is_correct": is_correct,
        "value": None if is_correct is None else float(is_correct),
        "status": "ungraded" if is_correct is None else "ok",
        "n_votes": n_votes,
        "agreement": n_votes / len(within),
        "weight": weight,
    }


def settled(attempt: Attempt, *, is_gradable: bool) -> bool | None:
    """Return the grade; no answer is wrong where there is a gold answer, or nothing but other grades."""
    if attempt["answer_key"] is None and attempt["is_correct"] is not None:
        return attempt["is_correct"] and attempt.get("gold_key") is None
    is_failure = attempt["answer_key"] is None and is_gradable
    return False if is_failure else attempt["is_correct"]


def weigh(scores: Sequence[float], weights: str) -> list[float] | None:
    """Turn scores into weights; None where they are not defined."""
    if weights == "sigmoid":
        return [1 / (1 + math.exp(-s)) if s > -700 else 0.0 for s in scores]
    if weights == "logit":
        if not all(0 <= s <= 1 for s in scores):
            return None
        chances = [min(s, 0.999) for s in scores]
        return [math.log(p / (1 - p)) if p > 0.5 else 0.0 for p in chances]
    if weights == "softmax":
        if not all(map(math.isfinite, scores)):
            return None
        top = max(scores)
        shares = [math.exp(s - top) for s in scores]
        return [share / math.fsum(shares) for share in shares]
    return list(scores) if all(s >= 0 and math.isfinite(s) for s in scores) else None


def share(
    scored: Sequence[Attempt], selector: str, weights: str, options: dict[str, Any]
) -> list[tuple[Attempt, float]] | None:
    """Return the attempts whose scores vote, with their weights; None where these are not defined."""
    scores = [a["score"] for a in scored]
    n = len(scores)
    if selector in {"weighted_vote", "top_fraction_vote"}:
        found = weigh(scores, weights)
        if found is None:
            return None
        kept = list(zip(scored, found, strict=True))
        if selector == "top_fraction_vote":
            kept = [(a, weight) for a, weight in kept if a["answer_key"] is not None]
            fraction = options.get("fraction", 0.1)
            least = percentile([a["score"] for a, _ in kept], 1 - fraction) if kept else 0.0
            kept = [(a, weight) for a, weight in kept if a["score"] >= least]
            again = weigh([a["score"] for a, _ in kept], weights) if kept else []
            kept = [(a, weight) for (a, _), weight in zip(kept, again or [], strict=True)]
        return kept
    if selector == "confidence_vote":
        temperature = options.get("temperature", 1.0)
        if not all(map(math.isfinite, scores)):
            return None
        softmax = weigh([s / temperature for s in scores], "softmax")
        return list(zip(scored, softmax or [], strict=True))
    if selector in {"borda_vote", "majority_of_the_bests"}:
        # The place of an attempt, from 0 for the worst; equal scores take any of theirs.
        ranked = sorted(scores)
        m = options.get("subset_size") or math.isqrt(n)
        by_place = [
            (place + 1) ** options.get("power", 0.5)
            if selector == "borda_vote"
            else float(Fraction(place + 1, n) ** m - Fraction(place, n) ** m)
            for place in range(n)
        ]
        return [
            (
                a,
                statistics.fmean(
                    v for v, s in zip(by_place, ranked, strict=True) if s == a["score"]
                ),
            )
            for a in scored
        ]
    return []


def percentile(scores: Sequence[float], q: float) -> float:
    """Interpolate linearly between the scores on both sides, in exact arithmetic."""
    ranked = sorted(map(Fraction, scores))
    position = (len(ranked) - 1) * Fraction(str(round(q, 9)))
    below = math.floor(position)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (position - below) * (ranked[above] - ranked[below])


def token_f1(one: str, other: str) -> float:
    """Compare two texts by their tokens, each as often as it occurs in both."""
    left, right = (
        Counter(re.findall(r"\\[A-Za-z]+|[^\W\d_]+|\d+(?:\.\d+)?|\S", text))
        for text in (one, other)
    )
    return 2 * (left & right).total() / (left.total() + right.total())


def choose(
    within: Sequence[Attempt],
    scored: Sequence[Attempt],
    weighed: Sequence[Attempt],
    selector: str,
    options: dict[str, Any],
) -> tuple[Attempt | None, float | None]:
    """Return the attempt that stands for the winner, and the winner's total."""
    valid = [a for a in within if a["answer_key"] is not None]
    first = valid[0] if valid else None
    if selector == "first_valid":
        return first, None
    if selector == "oracle":
        return next((a for a in within if a["is_correct"]), first), None
    if selector == "best_of_n":
        best = max(scored, key=lambda a: (a["score"], -a["attempt"]))
        return best, best["score"]
    if selector == "best_of_majority":
        shares = {
            a["answer_key"]: Fraction(
                sum(b["answer_key"] == a["answer_key"] for b in within), len(within)
            )
            for a in scored
            if a["answer_key"] is not None
        }
        least = min([options.get("least_share", 0.1), *([max(shares.values())] if shares else [])])
        kept = [a for a in scored if shares.get(a["answer_key"], -1) >= Fraction(str(float(least)))]
        best = max(kept, key=lambda a: (a["score"], -a["attempt"]), default=None)
        return best, best and best["score"]
    counts_heads = selector in {"majority_vote", "minimum_bayes_risk"}
    voters = valid if counts_heads else [a for a in weighed if a["answer_key"] is not None]
    if not voters:
        return None, None
    votes: dict[str, list[float]] = {}
    for a in voters:
        votes.setdefault(a["answer_key"], []).append(1.0 if counts_heads else a["weight"])
    totals = {key: math.fsum(parts) for key, parts in votes.items()}
    if selector == "minimum_bayes_risk" and options.get("utility") != "equality":
        text: dict[str, str] = {}
        for a in valid:
            text.setdefault(a["answer_key"], a.get("answer") or a["answer_key"])
        totals = {
            key: math.fsum(n * token_f1(text[key], text[other]) for other, n in totals.items())
            for key in totals
        }
    tolerance = 0.0 if selector == "majority_vote" else 1e-9 * math.fsum(totals.values())
    tied = {key for key, total in totals.items() if total >= max(totals.values()) - tolerance}
    winner = next(a for a in voters if a["answer_key"] in tied)
    return winner, totals[winner["answer_key"]]
