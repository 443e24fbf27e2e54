"""Aggregators: from a frame of attempts to one row per problem, column `value`."""

from __future__ import annotations

from ttsframe.estimators.aggregators.draws import AtLeastK, GPassAtK, PassAtK, PassHatK
from ttsframe.estimators.aggregators.protocol import Aggregator, Identity
from ttsframe.estimators.aggregators.summaries import IdentifierMean, Majority, Max, Median

__all__ = [
    "Aggregator",
    "AtLeastK",
    "GPassAtK",
    "IdentifierMean",
    "Identity",
    "Majority",
    "Max",
    "Median",
    "PassAtK",
    "PassHatK",
]
