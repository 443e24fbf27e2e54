"""The area between two paired curves of accuracy, and how many instances would show a rise."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

import numpy as np

from ttsframe._typing import Floats
from ttsframe.evaluator._crossings import LevelTests, rise_p_value
from ttsframe.evaluator.k_report import Area

_BEGINS, _ENDS = 0.95, 0.05
"""Accuracies between which a curve falls that is seen whole."""

_MOST_INSTANCES: Final = 100_000


def area_between(
    low: Sequence[Floats],
    high: Sequence[Floats],
    levels: Sequence[int],
    *,
    of_k: tuple[int, int],
    confidence_level: float,
) -> Area:
    """Return the area between the curves of two K, from the values of each level's instances."""
    from scipy.special import stdtr, stdtrit

    edges = np.array([levels[0], *levels, levels[-1]], dtype=np.float64)
    weights = (edges[2:] - edges[:-2]) / 2.0
    pairs = [after - before for before, after in zip(low, high, strict=True)]
    area = float(weights @ [of_level.mean() for of_level in pairs])
    n = np.array([of_level.size for of_level in pairs])
    found = Area(
        from_k=of_k[0],
        to_k=of_k[1],
        area=area,
        ci_low=None,
        ci_high=None,
        p_value=None,
        is_whole=all(
            values[0].mean() > _BEGINS and values[-1].mean() < _ENDS for values in (low, high)
        ),
    )
    if n.min() < 2 or len(levels) < 2:
        return found
    spread = np.array([of_level.var(ddof=1) for of_level in pairs])
    # Pairs that all agree show no spread, which does not mean that there is none.
    variances = weights**2 * np.where(spread > 1e-12, spread / n, 2.0 / (n + 2.0) ** 2)
    total = float(variances.sum())
    df = total**2 / float((variances**2 / (n - 1)).sum())
    half = float(stdtrit(df, (1.0 + confidence_level) / 2.0)) * sqrt(total)
    most = float(levels[-1] - levels[0])
    found["ci_low"], found["ci_high"] = max(area - half, -most), min(area + half, most)
    found["p_value"] = 2.0 * float(stdtr(df, -abs(area) / sqrt(total)))
    return found


def instances_needed(
    low: Sequence[float], high: Sequence[float], threshold: float, error: float
) -> int | None:
    """Return how many instances a level show a rise at these accuracies; None if none do."""
    if not _is_shown(low, high, threshold, error, _MOST_INSTANCES):
        return None
    few, many = 0, _MOST_INSTANCES
    while many - few > 1:
        middle = (few + many) // 2
        if _is_shown(low, high, threshold, error, middle):
            many = middle
        else:
            few = middle
    return many


def _is_shown(
    low: Sequence[float], high: Sequence[float], threshold: float, error: float, n: int
) -> bool:
    """Return whether n solved or unsolved instances a level, of these shares, show a rise."""
    tests = [_expected_tests(np.array(means), threshold, n) for means in (low, high)]
    return rise_p_value(*tests) <= error


def _expected_tests(means: Floats, threshold: float, n: int) -> LevelTests:
    """Return the tests of levels that solve exactly these shares of n instances."""
    from scipy.special import betainc

    solved = n * means
    with np.errstate(invalid="ignore"):
        passes = np.where(solved > 0.0, betainc(solved, n - solved + 1.0, threshold), 1.0)
        fails = np.where(solved < n, betainc(n - solved, solved + 1.0, 1.0 - threshold), 1.0)
    return LevelTests(passes, fails)
