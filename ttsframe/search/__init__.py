"""Search against a verifier: policies, the tree as a table, simulation."""

from __future__ import annotations

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
    FRONTIER_COLUMNS,
    SEARCH_POLICIES,
    Beam,
    BestOfN,
    ParticleFilter,
    Policy,
    Rebase,
)
from ttsframe.search.simulation import (
    SimulatedGenerator,
    SimulatedVerifier,
    Simulation,
    VerifierFaults,
    simulate,
)
from ttsframe.search.solutions import to_trajectories

__all__ = [
    "DVTS",
    "FRONTIER_COLUMNS",
    "NODE_COLUMNS",
    "PREFIX_COLUMNS",
    "REQUEST_COLUMNS",
    "SEARCH_POLICIES",
    "Beam",
    "BestOfN",
    "Generator",
    "ParticleFilter",
    "Policy",
    "ProcessRewardModel",
    "Rebase",
    "SimulatedGenerator",
    "SimulatedVerifier",
    "Simulation",
    "VerifierFaults",
    "search",
    "simulate",
    "to_trajectories",
]
