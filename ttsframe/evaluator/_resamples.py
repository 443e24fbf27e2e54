"""Resamples of instances, and the largest solvable complexity in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ttsframe.evaluator.results import ROUNDING

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_BATCH: Final = 1 << 21
"""Weights held in memory at a time."""


def largest_solvable(means: Floats, levels: Sequence[int], threshold: float) -> Ints:
    """Return the highest level such that every level up to it passes.

    Parameters
    ----------
    means
        Accuracies, (..., level).
    levels
        The levels, ascending.
    threshold
        Accuracy from which on a level passes.

    Returns
    -------
    Ints
        (...,); one less than the first level where that does not pass.
    """
    n_passed = np.cumprod(means >= threshold - ROUNDING, axis=-1).sum(axis=-1)
    highest: Ints = np.array([levels[0] - 1, *levels])[n_passed]
    return highest


def resampled_means(
    values: Sequence[Sequence[Floats]], *, is_paired: bool, n_resamples: int, seed: int
) -> Floats:
    """Average the instances of each level with random weights, many times.

    One more instance takes part that has not been seen: solved or not, with equal chance, by each
    K on its own.

    Parameters
    ----------
    values
        By K and level, one number in [0, 1] per instance.
    is_paired
        Whether all K have the same instances, in the same order, which then have the same weights.
    n_resamples
        Number of resamples.
    seed
        Seed of the weights.

    Returns
    -------
    Floats
        (K, resample, level).
    """
    rng = np.random.default_rng(seed)
    means = np.empty((len(values), n_resamples, len(values[0])))
    for level, of_level in enumerate(zip(*values, strict=True)):
        together = [np.stack(of_level)] if is_paired else [known[None, :] for known in of_level]
        means[:, :, level] = np.concatenate([
            _weighed(known, n_resamples, rng) for known in together
        ])
    return means


def _weighed(known: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Average instances, (K, instance), with the same weights for every K."""
    means = np.empty((len(known), n_resamples))
    step = max(1, _BATCH // (known.shape[1] + 1))
    for start in range(0, n_resamples, step):
        part = means[:, start : start + step]
        weights = rng.dirichlet(np.ones(known.shape[1] + 1), size=part.shape[1])
        unseen = rng.integers(0, 2, part.shape)
        part[:] = known @ weights[:, :-1].T + unseen * weights[:, -1]
    return means


def ends_of(draws: Ints, confidence_level: float) -> tuple[int, int]:
    """Return both ends of the interval that the middle of the resamples lies in.

    Parameters
    ----------
    draws
        One number per resample.
    confidence_level
        Share of the resamples in the middle.

    Returns
    -------
    tuple[int, int]
        Both ends.
    """
    tails = [(1.0 - confidence_level) / 2.0, (1.0 + confidence_level) / 2.0]
    low, high = np.quantile(draws, tails, method="inverted_cdf")
    return int(low), int(high)


def p_value_of(rises: Ints) -> float:
    """Return twice the smaller share of resamples without a rise or without a fall.

    Parameters
    ----------
    rises
        One number per resample.

    Returns
    -------
    float
        The p-value, in (0, 1].
    """
    n_least = min(int((rises <= 0).sum()), int((rises >= 0).sum()))
    return min(1.0, 2.0 * (n_least + 1) / (rises.size + 1))
