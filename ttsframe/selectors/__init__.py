"""Selectors: which attempt of a problem stands for its answer, at each budget."""

from __future__ import annotations

from ttsframe._selection import SELECTORS
from ttsframe.selectors.plain import best_of_n, first_valid, majority_vote, oracle
from ttsframe.selectors.select import select_answers
from ttsframe.selectors.weighed import weighted_vote

__all__ = [
    "SELECTORS",
    "best_of_n",
    "first_valid",
    "majority_vote",
    "oracle",
    "select_answers",
    "weighted_vote",
]
