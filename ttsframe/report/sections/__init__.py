"""The sections of a page, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ttsframe._typing import SectionName
from ttsframe.report.sections import (
    accuracy,
    compute_optimal,
    cost,
    difficulty,
    loaded,
    selection_gap,
    steps,
    verifier,
    votes,
)
from ttsframe.report.sections.section import Section

WRITERS: Final[Mapping[SectionName, Section]] = MappingProxyType({
    "loaded": loaded.SECTION,
    "votes": votes.SECTION,
    "accuracy": accuracy.SECTION,
    "selection_gap": selection_gap.SECTION,
    "difficulty": difficulty.SECTION,
    "compute_optimal": compute_optimal.SECTION,
    "cost": cost.SECTION,
    "verifier": verifier.SECTION,
    "steps": steps.SECTION,
})
"""How each section of `SECTIONS` is written."""
