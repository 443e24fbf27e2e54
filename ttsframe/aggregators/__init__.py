"""Aggregators: from a frame of attempts to one row per problem, column `value`."""

from __future__ import annotations

from ttsframe.aggregators.draws import AtLeastK, GPassAtK, PassAtK, PassHatK
from ttsframe.aggregators.protocol import Aggregator, Identity
from ttsframe.aggregators.summaries import IdentifierMean, Majority, Max, Median

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
