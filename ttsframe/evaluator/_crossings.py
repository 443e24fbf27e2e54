"""Where accuracies cross a threshold: tests of each level, and what follows for the last solvable one."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ttsframe.evaluator.results import ROUNDING

Floats: TypeAlias = npt.NDArray[np.float64]

_FEW: Final = 5.0
"""Where a level at the threshold has fewer solved instances, or unsolved ones, their spread says too
little."""


class LevelTests(NamedTuple):
    """One-sided p-values of each level, ascending.

    `passes`: that the accuracy is below the threshold, so that a small one shows that the level
    passes; `fails`: that it is not.
    """

    passes: Floats
    fails: Floats


def largest_solvable(means: Sequence[float], levels: Sequence[int], threshold: float) -> int:
    """Return the highest level such that every level up to it passes.

    Parameters
    ----------
    means
        Accuracy of each level.
    levels
        The levels, ascending.
    threshold
        Accuracy from which on a level passes.

    Returns
    -------
    int
        The level; one less than the first where that does not pass.
    """
    highest = levels[0] - 1
    for level, mean in zip(levels, means, strict=True):
        if mean < threshold - ROUNDING:
            break
        highest = level
    return highest


def level_tests(values: Sequence[Floats], threshold: float) -> LevelTests:
    """Test whether each level passes, and whether it fails.

    Parameters
    ----------
    values
        By level, one number in [0, 1] per instance.
    threshold
        Accuracy from which on a level passes.

    Returns
    -------
    LevelTests
        The p-values.
    """
    pairs = np.array([_tests(of_level, threshold) for of_level in values])
    return LevelTests(pairs[:, 0], pairs[:, 1])


def _tests(values: Floats, threshold: float) -> tuple[float, float]:
    """Test one level: by Student's t where values are graded and not few, else binomial."""
    from scipy.special import betainc, stdtr

    n, total = values.size, float(values.sum())
    is_graded = bool(((values > 0.0) & (values < 1.0)).any())
    error = float(values.std(ddof=1)) / sqrt(n) if n > 1 else 0.0
    if is_graded and error > ROUNDING and n * min(threshold, 1.0 - threshold) >= _FEW - ROUNDING:
        below = float(stdtr(n - 1, (total / n - threshold) / error))
        above = float(stdtr(n - 1, (threshold - total / n) / error))
        # No sample of this size says more than n instances that are all on one side.
        return max(above, threshold**n), max(below, (1.0 - threshold) ** n)
    # P(X >= total) and P(X <= total), X binomial, between whole numbers as the beta function has it.
    passes = float(betainc(total, n - total + 1.0, threshold)) if total > 0.0 else 1.0
    fails = float(betainc(n - total, total + 1.0, 1.0 - threshold)) if total < n else 1.0
    return passes, fails


def solvable_interval(tests: LevelTests, levels: Sequence[int], tail: float) -> tuple[int, int]:
    """Return the levels between which the largest solvable one is.

    Parameters
    ----------
    tests
        Tests of each level.
    levels
        The levels, ascending.
    tail
        Chance with which either end may be wrong.

    Returns
    -------
    tuple[int, int]
        The last level up to which all are shown to pass, and the one before the first from which on
        all are shown to fail.
    """
    ends = [levels[0] - 1, *levels]
    n_passed = int(np.count_nonzero(_up_to(tests.passes) <= tail))
    n_failed = int(np.count_nonzero(_from(tests.fails) <= tail))
    return ends[n_passed], ends[len(levels) - n_failed]


def rise_p_value(low: LevelTests, high: LevelTests) -> float:
    """Return the p-value of no rise and no fall between two K.

    Parameters
    ----------
    low, high
        Tests of each level at the smaller and at the larger K.

    Returns
    -------
    float
        In [0, 1]: the least chance of error at which the interval of the rise leaves out 0.
    """
    rise = np.maximum(_up_to(high.passes), _from(low.fails)).min()
    fall = np.maximum(_up_to(low.passes), _from(high.fails)).min()
    return min(1.0, 4.0 * float(min(rise, fall)))


def _up_to(p_values: Floats) -> Floats:
    """Return, for each level, the p-value of all levels up to it: they pass if each test does."""
    largest: Floats = np.maximum.accumulate(p_values)
    return largest


def _from(p_values: Floats) -> Floats:
    """Return, for each level, the p-value of all levels from it on, tested from the last one down."""
    largest: Floats = np.maximum.accumulate(p_values[::-1])[::-1]
    return largest
