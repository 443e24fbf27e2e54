"""Votes: tallies of answers, selectors, expected accuracy over subsets, curation."""

from __future__ import annotations

from ttsframe.votes.curation import best_trajectories
from ttsframe.votes.expectation import expected_accuracy
from ttsframe.votes.selectors import (
    SELECTORS,
    best_of_majority,
    best_of_n,
    borda_vote,
    confidence_vote,
    first_valid,
    majority_of_the_bests,
    majority_vote,
    minimum_bayes_risk,
    oracle,
    select_answers,
    top_fraction_vote,
    weighted_vote,
)
from ttsframe.votes.tally import tally_votes

__all__ = [
    "SELECTORS",
    "best_of_majority",
    "best_of_n",
    "best_trajectories",
    "borda_vote",
    "confidence_vote",
    "expected_accuracy",
    "first_valid",
    "majority_of_the_bests",
    "majority_vote",
    "minimum_bayes_risk",
    "oracle",
    "select_answers",
    "tally_votes",
    "top_fraction_vote",
    "weighted_vote",
]
