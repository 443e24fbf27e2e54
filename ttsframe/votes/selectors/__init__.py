"""Selectors: which attempt of a problem stands for its answer, at each budget."""

from __future__ import annotations

from ttsframe.votes.engine.registry import SELECTORS
from ttsframe.votes.selectors.plain import best_of_n, first_valid, majority_vote, oracle
from ttsframe.votes.selectors.ranked import borda_vote, majority_of_the_bests, top_fraction_vote
from ttsframe.votes.selectors.select import select_answers
from ttsframe.votes.selectors.weighed import confidence_vote, minimum_bayes_risk, weighted_vote

__all__ = [
    "SELECTORS",
    "best_of_n",
    "borda_vote",
    "confidence_vote",
    "first_valid",
    "majority_of_the_bests",
    "majority_vote",
    "minimum_bayes_risk",
    "oracle",
    "select_answers",
    "top_fraction_vote",
    "weighted_vote",
]
