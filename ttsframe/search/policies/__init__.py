"""Search policies: which steps are continued, and how often."""

from __future__ import annotations

from ttsframe.search.policies.beam import DVTS, Beam
from ttsframe.search.policies.best_of_n import BestOfN
from ttsframe.search.policies.particle_filter import ParticleFilter
from ttsframe.search.policies.policy import FRONTIER_COLUMNS, Policy
from ttsframe.search.policies.rebase import Rebase
from ttsframe.search.policies.registry import SEARCH_POLICIES, PolicyName, SearchPolicy

__all__ = [
    "DVTS",
    "FRONTIER_COLUMNS",
    "SEARCH_POLICIES",
    "Beam",
    "BestOfN",
    "ParticleFilter",
    "Policy",
    "PolicyName",
    "Rebase",
    "SearchPolicy",
]
