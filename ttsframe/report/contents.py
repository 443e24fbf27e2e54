"""The sections of a report, in the order in which data flows to them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ttsframe._typing import SectionName

SECTIONS: Final[Mapping[SectionName, str]] = MappingProxyType({
    "loaded": "what was read, and what its validation found",
    "votes": "how one problem was voted on",
    "accuracy": "accuracy, or agreement, by number of attempts",
    "selection_gap": "what is lost by choosing wrongly, and what before there is a choice",
    "difficulty": "accuracy by level of difficulty",
    "compute_optimal": "the best strategy for each level, chosen on other problems",
    "cost": "accuracy by tokens, and what is worth its cost",
    "verifier": "what the scores are worth",
    "steps": "step scores along the attempt, right against wrong",
})
"""What each section shows. "loaded" and "accuracy" are in every report."""
