"""Selectors: which attempt of a problem stands for its answer, at each budget."""

from __future__ import annotations

from ttsframe._ballots.registry import SELECTORS
from ttsframe.selectors.plain import best_of_n, first_valid, majority_vote, oracle
from ttsframe.selectors.ranked import borda_vote, majority_of_the_bests, top_fraction_vote
from ttsframe.selectors.select import select_answers
from ttsframe.selectors.weighed import confidence_vote, minimum_bayes_risk, weighted_vote

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
