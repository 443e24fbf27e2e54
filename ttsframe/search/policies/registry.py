"""Every policy by name.

To add a policy, add its name to `PolicyName` and a row to `SEARCH_POLICIES`. The documentation and the
tests of all policies read this registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from ttsframe.search.policies.beam import DVTS, Beam
from ttsframe.search.policies.best_of_n import BestOfN
from ttsframe.search.policies.dora import Dora
from ttsframe.search.policies.ets import ETS
from ttsframe.search.policies.particle_filter import ParticleFilter
from ttsframe.search.policies.policy import Policy
from ttsframe.search.policies.rebase import Rebase

__all__ = ["SEARCH_POLICIES", "PolicyName", "SearchPolicy"]

PolicyName: TypeAlias = Literal[
    "best_of_n", "beam", "dvts", "rebase", "dora", "ets", "particle_filter"
]


class SearchPolicy(NamedTuple):
    """One row of the registry."""

    summary: str
    policy: type[Policy]
    """Called with the width."""


SEARCH_POLICIES: Final[Mapping[PolicyName, SearchPolicy]] = MappingProxyType({
    "best_of_n": SearchPolicy("independent solutions, none dropped", BestOfN),
    "beam": SearchPolicy("the best paths of a round share the width", Beam),
    "dvts": SearchPolicy("a beam search in each of several subtrees", DVTS),
    "rebase": SearchPolicy("every path has a share that grows with its score", Rebase),
    "dora": SearchPolicy("REBASE's shares, lowered for steps that repeat others", Dora),
    "ets": SearchPolicy("REBASE on the paths that are worth the size of the tree", ETS),
    "particle_filter": SearchPolicy(
        "paths are resampled by the odds of their scores", ParticleFilter
    ),
})
"""The search policies by name."""
