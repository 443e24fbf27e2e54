"""Search against a verifier: policies, the tree as a table, simulation."""

from __future__ import annotations

from ttsframe.search import servers
from ttsframe.search.bank import Bank, simulate_bank
from ttsframe.search.cache import cache_by_round
from ttsframe.search.diversity import diversity_by_depth
from ttsframe.search.driver import search
from ttsframe.search.generators import (
    PREFIX_COLUMNS,
    REQUEST_COLUMNS,
    Generator,
    ProcessRewardModel,
)
from ttsframe.search.nodes import NODE_COLUMNS
from ttsframe.search.policies import (
    DVTS,
    ETS,
    FRONTIER_COLUMNS,
    PRESETS,
    SEARCH_POLICIES,
    Beam,
    BestOfN,
    Dora,
    ParticleFilter,
    Policy,
    Rebase,
    preset,
    word_vectors,
)
from ttsframe.search.regret import node_values, pruning_regret
from ttsframe.search.replay import Replay, accuracy_bounds, replay
from ttsframe.search.simulation import (
    SimulatedGenerator,
    SimulatedVerifier,
    Simulation,
    VerifierFaults,
    simulate,
)
from ttsframe.search.solutions import to_trajectories
from ttsframe.search.spending import search_costs
from ttsframe.search.widths import select_by_width

__all__ = [
    "DVTS",
    "ETS",
    "FRONTIER_COLUMNS",
    "NODE_COLUMNS",
    "PREFIX_COLUMNS",
    "PRESETS",
    "REQUEST_COLUMNS",
    "SEARCH_POLICIES",
    "Bank",
    "Beam",
    "BestOfN",
    "Dora",
    "Generator",
    "ParticleFilter",
    "Policy",
    "ProcessRewardModel",
    "Rebase",
    "Replay",
    "SimulatedGenerator",
    "SimulatedVerifier",
    "Simulation",
    "VerifierFaults",
    "accuracy_bounds",
    "cache_by_round",
    "diversity_by_depth",
    "node_values",
    "preset",
    "pruning_regret",
    "replay",
    "search",
    "search_costs",
    "select_by_width",
    "servers",
    "simulate",
    "simulate_bank",
    "to_trajectories",
    "word_vectors",
]
