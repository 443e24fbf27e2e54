"""Selectors written out as slow, obvious Python: what the tally must agree with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Attempt = dict[str, Any]


def pick(
    attempts: Sequence[Attempt], selector: str, budget: int | None, weights: str = "score"
) -> dict[str, Any]:
    """Pick the answer of one problem; an attempt has attempt, answer_key, is_correct, score."""
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
    if selector in {"weighted_vote", "best_of_n"} and not scored:
        return result | nothing | {"status": "unscored"}
    if selector == "weighted_vote":
        found = weigh([a["score"] for a in scored], weights)
        if found is None:
            return result | nothing | {"status": "undefined"}
        for attempt, weight in zip(scored, found, strict=True):
            attempt["weight"] = weight

    winner, weight = choose(within, scored, selector)
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


def weigh(scores: Sequence[float], weights: str) -> list[float] | None:
    """Turn scores into weights; None where they are not defined."""
    if weights == "sigmoid":
        return [1 / (1 + math.exp(-s)) if s > -700 else 0.0 for s in scores]
    if weights == "softmax":
        if not all(map(math.isfinite, scores)):
            return None
        top = max(scores)
        shares = [math.exp(s - top) for s in scores]
        return [share / math.fsum(shares) for share in shares]
    return list(scores) if all(s >= 0 and math.isfinite(s) for s in scores) else None


def choose(
    within: Sequence[Attempt], scored: Sequence[Attempt], selector: str
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
    voters = valid if selector == "majority_vote" else [a for a in scored if a in valid]
    if not voters:
        return None, None
    votes: dict[str, list[float]] = {}
    for a in voters:
        votes.setdefault(a["answer_key"], []).append(
            1.0 if selector == "majority_vote" else a["weight"]
        )
    totals = {key: math.fsum(parts) for key, parts in votes.items()}
    tolerance = 1e-9 * math.fsum(totals.values()) if selector == "weighted_vote" else 0.0
    tied = {key for key, total in totals.items() if total >= max(totals.values()) - tolerance}
    winner = next(a for a in voters if a["answer_key"] in tied)
    return winner, totals[winner["answer_key"]]
