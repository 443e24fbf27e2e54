"""What published programs do, by name: policies with their choices instead of the sane ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from ttsframe._checks import check_choice, check_positive
from ttsframe._settings import found
from ttsframe.errors import ParameterError
from ttsframe.search.policies.beam import DVTS, Beam
from ttsframe.search.policies.best_of_n import BestOfN
from ttsframe.search.policies.dora import Dora
from ttsframe.search.policies.ets import ETS
from ttsframe.search.policies.particle_filter import ParticleFilter
from ttsframe.search.policies.policy import Policy
from ttsframe.search.policies.pooled_beam import HeldBeam, PooledBeam
from ttsframe.search.policies.rebase import Rebase

__all__ = ["PRESETS", "PresetName", "SearchPreset", "preset"]

PresetName: TypeAlias = Literal[
    "search_and_learn_best_of_n",
    "search_and_learn_beam",
    "search_and_learn_dvts",
    "rebase",
    "dora_rebase",
    "dora",
    "ets",
    "ets_beam",
    "ets_dvts",
    "compute_optimal_tts",
    "its_hub_beam",
    "its_hub_particle",
]

_M: Final = 4
_ETS_DIVERSITY: Final = {16: 1.5, 64: 1.4, 256: 1.45}
_LEAF: Final = "The answer is"
"""Text by which REBASE's and ETS's code knows the end of a solution."""
_BOXED: Final = "\\boxed"
"""Text by which its_hub's examples know it."""


class SearchPreset(NamedTuple):
    """One row of the registry."""

    reproduces: str
    """What the program does that the policy of this package does not do by itself."""
    make: Callable[[int], Policy]


def preset(name: PresetName, width: int) -> Policy:
    """Return the policy of a published program.

    Programs of the same name differ in what they keep, when they stop and what they return. A preset makes
    the choices of one of them; `tts.search.PRESETS` says which. What is not reproduced are crashes,
    unstable sorts and sums that miss the width.

    Parameters
    ----------
    name
        A name in `tts.search.PRESETS`.
    width
        Number of solutions.

    Returns
    -------
    Policy
        A policy of this package with the parameters of that program.

    Raises
    ------
    ParameterError
        When there is no such preset, or the width does not suit it.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.search.preset("search_and_learn_beam", 16).finished_reduce_width
    False
    """
    check_choice(name, "name", PRESETS)
    return PRESETS[name].make(check_positive(width, "width"))


def _sal_best_of_n(width: int) -> Policy:
    return BestOfN(width, max_rounds=1, last_round="finish", truncated="end")


def _sal_beam(width: int) -> Policy:
    return Beam(
        width,
        beam_width=_M,
        keep=max(width // _M, 1),
        finished_reduce_width=False,
        extras="first",
        prefers_later=True,
        child_order="tiled",
        last_round="finish",
        truncated="end",
        empty_ends=True,
        returned="first",
        pads_returned=True,
    )


def _sal_dvts(width: int) -> Policy:
    return DVTS(
        width,
        beam_width=_M,
        ends="best",
        last_round="finish",
        truncated="end",
        empty_ends=True,
        ends_at="boxed{",
    )


def _rebase(width: int) -> Policy:
    return Rebase(width, temperature=0.2, prefers_later=True, max_rounds=25, ends_at=_LEAF)


def _dora_rebase(width: int) -> Policy:
    return Rebase(width, temperature=0.1, rounding="round", finished_reduce_width=False)


def _dora(width: int) -> Policy:
    return Dora(width, temperature=0.1, similarity_temperature=0.01, finished_reduce_width=False)


def _ets(width: int) -> Policy:
    return ETS(
        width,
        cost_weight=1.0,
        diversity_weight=_ETS_DIVERSITY.get(width, 1.45),
        temperature=0.2,
        node_cost="nodes",
        max_rounds=25,
        ends_at=_LEAF,
    )


def _ets_beam(width: int) -> Policy:
    return Beam(width, keep="sqrt", shares="ceil", max_rounds=25, ends_at=_LEAF)


def _ets_dvts(width: int) -> Policy:
    return DVTS(width, beam_width="sqrt", max_rounds=25, ends_at=_LEAF)


def _compute_optimal_tts(width: int) -> Policy:
    n_kept = max(width // _M, 1)
    return HeldBeam(
        width,
        n_first=width,
        n_kept=n_kept,
        n_each=width // n_kept,
        truncated="retry",
        last_round="return",
    )


def _its_hub_beam(width: int) -> Policy:
    if width % _M:
        raise ParameterError(
            f"{found('width', width)}, must be a multiple of {_M} for its_hub_beam. Hint: it keeps {_M} paths and "
            f"continues each width / {_M} times."
        )
    return PooledBeam(
        width,
        n_first=width // _M,
        n_kept=_M,
        n_each=width // _M,
        child_order="tiled",
        truncated="continue",
        last_round="return",
        max_rounds=32,
        ends_at=_BOXED,
    )


def _its_hub_particle(width: int) -> Policy:
    return ParticleFilter(
        width,
        resamples_last=True,
        truncated="continue",
        last_round="return",
        max_rounds=32,
        ends_at=_BOXED,
    )


PRESETS: Final[Mapping[PresetName, SearchPreset]] = MappingProxyType({
    "search_and_learn_best_of_n": SearchPreset(
        "whole solutions at once; one cut by the limit of length counts as finished", _sal_best_of_n
    ),
    "search_and_learn_beam": SearchPreset(
        "width steps in every round until no path is unfinished; a step cut by the limit, or an empty one, "
        "counts as finished; of equal scores the later path; what is over goes to the first; the first "
        "to finish are returned, padded with copies; a lookahead was never scored, so there is none",
        _sal_beam,
    ),
    "search_and_learn_dvts": SearchPreset(
        "a subtree ends as soon as its best candidate does, and all its candidates are returned, unfinished "
        "ones too; boxed{ ends a solution; a step cut by the limit, or an empty one, counts as finished",
        _sal_dvts,
    ),
    "rebase": SearchPreset(
        "temperature 0.2, shares rounded up, of equal scores the later path; The answer is ends a solution; "
        "25 rounds, then unfinished paths are lost",
        _rebase,
    ),
    "dora_rebase": SearchPreset(
        "temperature 0.1, shares rounded to the nearest; finished solutions do not reduce the width; ends "
        "when as many are finished",
        _dora_rebase,
    ),
    "dora": SearchPreset(
        "quality times uniqueness after a round of dora_rebase; embeddings are those of words unless "
        "Dora is given others",
        _dora,
    ),
    "ets": SearchPreset(
        "cost weight 1, diversity weight 1.5, 1.4 or 1.45 at width 16, 64 or 256; every node costs the same; "
        "embeddings are those of words unless ETS is given others",
        _ets,
    ),
    "ets_beam": SearchPreset(
        "the square root of the width is kept, each share of the width rounded up", _ets_beam
    ),
    "ets_dvts": SearchPreset("as many subtrees as the square root of the width", _ets_dvts),
    "compute_optimal_tts": SearchPreset(
        "a quarter of the width is kept and returned, each with four continuations; finished paths compete for "
        "these places and hold them; equal siblings are merged; empty and cut steps are dropped, and a path is "
        "tried three times if all are cut; a list of scores of the wrong length counts as 0; after 40 rounds "
        "unfinished paths are returned. Not reproduced: a path that failed three times is returned too",
        _compute_optimal_tts,
    ),
    "its_hub_beam": SearchPreset(
        "a quarter of the width as first steps; then four paths, each continued a quarter of the width times; "
        "finished paths compete in every round, with all their copies, and are multiplied too; \\boxed ends a "
        "solution, a cut step does not; after 32 rounds unfinished paths are returned. Not reproduced: a text that "
        "the model ended without \\boxed is continued",
        _its_hub_beam,
    ),
    "its_hub_particle": SearchPreset(
        "weights are the softmax of logits; finished particles are drawn as others, and once more at the end; "
        "\\boxed ends a solution, a cut step does not; after 32 rounds unfinished particles are returned. Not "
        "reproduced: a text that the model ended without \\boxed is continued",
        _its_hub_particle,
    ),
})
"""Published programs by name, with what is reproduced of each."""
