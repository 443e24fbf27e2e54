"""Best-of-N: independent solutions, of which none is dropped."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ttsframe.search.policies.policy import Policy

__all__ = ["BestOfN"]


@dataclass(frozen=True)
class BestOfN(Policy):
    """Independent solutions, written step by step.

    Nothing is dropped, so the verifier changes no solution, and any smaller number of solutions is
    a smaller budget of the same run.

    Parameters
    ----------
    width
        Number of solutions.
    **parameters
        Those of `tts.search.Policy`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.BestOfN(4), seed=0)
    >>> nodes.filter(depth=1).height, nodes["dropped_because"].null_count() == nodes.height
    (8, True)
    """

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "best_of_n"

    @property
    def is_exchangeable(self) -> bool:
        """Whether the solutions are independent samples: they are."""
        return True

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Ask for `width` first steps, then for one continuation of each path."""
        return frontier.select(
            n_allocated=pl.when(pl.col("depth") == 0).then(self.width).otherwise(1),
            dropped_because=pl.lit(None, dtype=pl.String),
        )
