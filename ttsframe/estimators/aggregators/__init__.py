"""Aggregators: from a frame of attempts to one row per problem, column `value`."""

from __future__ import annotations

from ttsframe.estimators.aggregators.definitions import (
    Aggregator,
    AtLeastK,
    GPassAtK,
    IdentifierMean,
    Identity,
    Majority,
    Max,
    Median,
    PassAtK,
    PassHatK,
)

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
