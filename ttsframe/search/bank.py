"""Simulated banks: trees in which every node has the same number of children, and no score chose any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_positive
from ttsframe._settings import found
from ttsframe.errors import ParameterError
from ttsframe.search.driver import search
from ttsframe.search.policies import Policy
from ttsframe.search.simulation import VerifierFaults, simulate

__all__ = ["Bank", "simulate_bank"]


class Bank(NamedTuple):
    """A simulated bank."""

    problems: pl.DataFrame
    """The problems, as `tts.search.simulate` returns them."""
    nodes: pl.DataFrame
    """The table `nodes`."""


@dataclass(frozen=True)
class _EveryNode(Policy):
    """Continues every node, by depth, as often."""

    n_children: tuple[int, ...] = ()

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Ask for all children."""
        numbers = np.array(self.n_children)
        depth = np.minimum(frontier["depth"].to_numpy(), len(numbers) - 1)
        return pl.DataFrame({"n_allocated": numbers[depth]}).with_columns(
            dropped_because=pl.lit(None, pl.String)
        )


def simulate_bank(
    n_problems: int,
    *,
    n_children: int | Sequence[int],
    seed: int,
    accuracy: float = 0.4,
    spread: float = 1.0,
    n_steps: int = 3,
    recovery: float = 0.02,
    faults: VerifierFaults | None = None,
) -> Bank:
    """Make a bank of simulated steps, on which every policy can be replayed.

    Parameters
    ----------
    n_problems
        Number of problems.
    n_children
        Continuations of each node; or of the problem itself, of a first step, and so on, one number for
        each of `n_steps` steps. A bank has about their product of nodes per problem.
    seed
        Seed of everything.
    accuracy, spread
        How hard the problems are, as in `tts.search.simulate`.
    n_steps
        Number of steps of every solution; with several numbers in `n_children`, it is how many they are.
    recovery, faults
        How wrong paths and the verifier behave, as in `tts.search.simulate`.

    Returns
    -------
    Bank
        `problems` and `nodes`.

    Raises
    ------
    ParameterError
        When a parameter has an impossible value.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, bank = tts.search.simulate_bank(10, n_children=(4, 3, 2), seed=0)
    >>> bank.group_by("depth", maintain_order=True).len().rows()
    [(1, 40), (2, 120), (3, 240)]
    """
    if isinstance(n_children, Sequence):
        numbers = tuple(check_positive(number, "n_children") for number in n_children)
        if not numbers:
            raise ParameterError(f"{found('n_children', n_children)}, must hold a number per step.")
    else:
        numbers = (check_positive(n_children, "n_children"),) * check_positive(n_steps, "n_steps")
    world = simulate(
        n_problems,
        seed=seed,
        accuracy=accuracy,
        spread=spread,
        n_steps=(len(numbers), len(numbers)),
        step_spread=0,
        recovery=recovery,
        faults=faults,
    )
    everything = _EveryNode(numbers[0], max_rounds=len(numbers) + 1, n_children=numbers)
    return Bank(world.problems, search(*world, everything, seed=seed))
