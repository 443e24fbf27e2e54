"""Search policies: which steps are continued, and how often."""

from __future__ import annotations

from ttsframe.search.policies.beam import DVTS, Beam
from ttsframe.search.policies.best_of_n import BestOfN
from ttsframe.search.policies.dora import Dora
from ttsframe.search.policies.embeddings import word_vectors
from ttsframe.search.policies.ets import ETS
from ttsframe.search.policies.particle_filter import ParticleFilter
from ttsframe.search.policies.policy import FRONTIER_COLUMNS, Policy
from ttsframe.search.policies.presets import PRESETS, PresetName, SearchPreset, preset
from ttsframe.search.policies.rebase import Rebase
from ttsframe.search.policies.registry import SEARCH_POLICIES, PolicyName, SearchPolicy

__all__ = [
    "DVTS",
    "ETS",
    "FRONTIER_COLUMNS",
    "PRESETS",
    "SEARCH_POLICIES",
    "Beam",
    "BestOfN",
    "Dora",
    "ParticleFilter",
    "Policy",
    "PolicyName",
    "PresetName",
    "Rebase",
    "SearchPolicy",
    "SearchPreset",
    "preset",
    "word_vectors",
]
