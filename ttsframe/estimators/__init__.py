"""Estimators per problem: pass@k, pass^k, G-Pass@k, best-of-k, and the aggregators."""

from __future__ import annotations

from ttsframe.estimators import aggregators
from ttsframe.estimators.aggregators import Aggregator, IdentifierMean, Identity, PassAtK
from ttsframe.estimators.failures import grade_failures
from ttsframe.estimators.passk import (
    best_of_k,
    closed_form_passatk,
    g_pass_at_k,
    mean_g_pass_at_k,
    pass_at_k,
    pass_hat_k,
)

__all__ = [
    "Aggregator",
    "IdentifierMean",
    "Identity",
    "PassAtK",
    "aggregators",
    "best_of_k",
    "closed_form_passatk",
    "g_pass_at_k",
    "grade_failures",
    "mean_g_pass_at_k",
    "pass_at_k",
    "pass_hat_k",
]
