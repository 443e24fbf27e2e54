"""Particle filtering: paths are resampled in proportion to the odds of their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choice, check_number
from ttsframe._settings import found
from ttsframe._typing import Floats
from ttsframe.errors import DataError, ParameterError
from ttsframe.search.policies.arrays import by_problem, column, reasons, scores_of
from ttsframe.search.policies.kernels import Groups, resample, softmax_weights
from ttsframe.search.policies.policy import Policy

__all__ = ["ParticleFilter"]

Resampling: TypeAlias = Literal["multinomial", "systematic"]

_LEAST: float = 1e-7
"""Scores are probabilities; those nearer to 0 or 1 count as this near, so that odds are finite."""


@dataclass(frozen=True)
class ParticleFilter(Policy):
    """Particle filtering: `width` paths, drawn anew in each round with weights from the verifier.

    A path is drawn with a probability in proportion to the softmax of the logit of its score, so a
    low score can survive and a high one can fail. Finished solutions are drawn as others are: a
    solution that is drawn three times is returned three times.

    Parameters
    ----------
    width
        Number of particles.
    temperature
        Temperature of the softmax over logits.
    resampling
        "multinomial", independent draws; or "systematic", one draw for evenly spaced points, which
        adds less noise.
    resamples_last
        Whether particles are drawn once more when all are finished.
    **parameters
        Those of `tts.search.Policy`.

    References
    ----------
    Puri et al. (2025), Rollout roulette, arXiv:2502.01618.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> policy = tts.search.ParticleFilter(8)
    >>> nodes = tts.search.search(problems, generator, prm, policy, seed=0)
    >>> tts.search.to_trajectories(nodes, policy=policy).group_by("problem_id").len()["len"].to_list()
    [8, 8]
    """

    temperature: float = 1.0
    resampling: Resampling = "multinomial"
    resamples_last: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.resampling, "resampling", get_args(Resampling))
        if check_number(self.temperature, "temperature") <= 0:
            raise ParameterError(f"{found('temperature', self.temperature)}, must be above 0.")

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "particle_filter"

    @property
    def keeps_finished(self) -> bool:
        """Whether finished solutions stay in the frontier: they are resampled."""
        return True

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Draw `width` paths of each problem that has an unfinished one."""
        groups = by_problem(frontier)
        weights = self._weights(groups, scores_of(frontier))
        width = np.full(len(groups.starts), self.width)
        draws = frontier["draw"].to_numpy()[groups.starts]
        drawn = resample(
            groups, weights, width, draws, is_systematic=self.resampling == "systematic"
        )
        if self.resamples_last:
            return reasons(drawn, np.zeros(len(drawn), dtype=np.bool_), "zero_allocation")
        is_finished = frontier["is_terminal"].to_numpy()
        is_over = np.bitwise_and.reduceat(is_finished, groups.starts)[groups.of_row]
        given = np.where(is_over, column(frontier, "n_copies"), drawn)
        return reasons(given, np.zeros(len(given), dtype=np.bool_), "zero_allocation")

    def _weights(self, groups: Groups, scores: Floats) -> Floats:
        if ((scores < 0) | (scores > 1)).any():
            raise DataError(
                "particle_filter: a score is outside 0 to 1; its logit needs a probability. Hint: let the "
                "verifier return probabilities (the sigmoid of a logit)."
            )
        p = np.clip(scores, _LEAST, 1 - _LEAST)
        return softmax_weights(groups, np.log(p) - np.log1p(-p), self.temperature)
