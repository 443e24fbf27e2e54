"""DORA: REBASE's shares, lowered for steps that say the same as others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import check_number
from ttsframe._settings import found
from ttsframe.errors import ParameterError
from ttsframe.search.policies.arrays import by_problem, left_of, reasons, scores_of
from ttsframe.search.policies.embeddings import (
    check_embedder,
    embedded,
    uniqueness,
    word_vectors,
)
from ttsframe.search.policies.kernels import (
    allocate_round,
    make_groups,
    ranks,
    softmax_weights,
)
from ttsframe.search.policies.policy import Policy

__all__ = ["Dora"]


@dataclass(frozen=True)
class Dora(Policy):
    """DORA: direction-oriented resource allocation.

    Paths that get a share of the width by REBASE are weighed once more, by their score times how unlike the
    others their last step is, so that many copies of one idea do not take the width of one each.

    Parameters
    ----------
    width
        Number of solutions.
    embed
        A function from a polars Series of texts, the last steps, to a matrix with one row per text.
    temperature
        Temperature of the softmax over the scores of a round.
    similarity_temperature
        Temperature of the softmax over cosines of embeddings.
    finished_reduce_width
        Whether a finished solution takes one from the width. If not, a search ends when `width`
        solutions are finished.
    **parameters
        Those of `tts.search.Policy`.

    References
    ----------
    Wang et al. (2025), Every rollout counts, arXiv:2506.15707.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> policy = tts.search.Dora(8)
    >>> nodes = tts.search.search(problems, generator, prm, policy, seed=0)
    >>> nodes.filter(round=0).group_by("problem_id").agg("n_allocated")["n_allocated"].list.sum().to_list()
    [8, 8]
    """

    embed: Callable[[pl.Series], npt.ArrayLike] = word_vectors
    temperature: float = 0.1
    similarity_temperature: float = 0.01
    finished_reduce_width: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_embedder(self.embed)
        for name in ("temperature", "similarity_temperature"):
            if check_number(getattr(self, name), name) <= 0:
                raise ParameterError(f"{found(name, getattr(self, name))}, must be above 0.")

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "dora"

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Share the width that each problem has left by quality times uniqueness."""
        groups, scores = by_problem(frontier), scores_of(frontier)
        left = left_of(frontier, groups, self.width)
        if not self.finished_reduce_width:
            left[left > 0] = self.width
        weights = softmax_weights(groups, scores, self.temperature)
        first = allocate_round(groups, weights, ranks(groups, scores), left)
        rows = np.flatnonzero(first > 0)
        given = np.zeros(len(scores), dtype=np.int64)
        if len(rows):
            vectors = embedded(self.embed, frontier["text"].gather(rows))
            kept = make_groups(groups.of_row[rows])
            quality = softmax_weights(kept, scores[rows], self.temperature)
            unique = np.concatenate([
                uniqueness(vectors[start : start + size], self.similarity_temperature)
                for start, size in zip(kept.starts.tolist(), kept.sizes.tolist(), strict=True)
            ])
            widths = left[groups.of_row[rows]][kept.starts]
            order = ranks(kept, quality * unique)
            given[rows] = allocate_round(kept, quality * unique, order, widths)
        return reasons(given, left[groups.of_row] == 0, "zero_allocation")
