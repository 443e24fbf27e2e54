"""The largest solvable level: tests of each level against a threshold, and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import Floats
from ttsframe.evaluator.results import ROUNDING

_FEW: Final = 5.0
"""Expected solved and unsolved instances at the threshold below which Student's t is not used."""


class LevelTests(NamedTuple):
    """One-sided p-values of each level, ascending: small if it is shown to pass, or to fail."""

    passes: Floats
    fails: Floats


def largest_solvable(means: Sequence[float], levels: Sequence[int], threshold: float) -> int:
    """Return the highest level up to which all levels pass; one below the first if that fails."""
    highest = levels[0] - 1
    for level, mean in zip(levels, means, strict=True):
        if mean < threshold - ROUNDING:
            break
        highest = level
    return highest


def level_tests(values: Sequence[Floats], threshold: float) -> LevelTests:
    """Test whether each level, with values in [0, 1], passes and whether it fails."""
    pairs = np.array([_tests(of_level, threshold) for of_level in values])
    return LevelTests(pairs[:, 0], pairs[:, 1])


def _tests(values: Floats, threshold: float) -> tuple[float, float]:
    """Test one level: by Student's t if values are graded and not few, else by the binomial."""
    from scipy.special import betainc, stdtr

    n, total = values.size, float(values.sum())
    is_graded = bool(((values > 0.0) & (values < 1.0)).any())
    error = float(values.std(ddof=1)) / sqrt(n) if n > 1 else 0.0
    if is_graded and error > ROUNDING and n * min(threshold, 1.0 - threshold) >= _FEW - ROUNDING:
        below = float(stdtr(n - 1, (total / n - threshold) / error))
        above = float(stdtr(n - 1, (threshold - total / n) / error))
        # No sample of n instances is stronger evidence than n instances on one side.
        return max(above, threshold**n), max(below, (1.0 - threshold) ** n)
    # P(X >= total) and P(X <= total) of a binomial X, interpolated by the beta function.
    passes = float(betainc(total, n - total + 1.0, threshold)) if total > 0.0 else 1.0
    fails = float(betainc(n - total, total + 1.0, 1.0 - threshold)) if total < n else 1.0
    return passes, fails


def solvable_interval(tests: LevelTests, levels: Sequence[int], tail: float) -> tuple[int, int]:
    """Return the last level shown to pass and the last not shown to fail, each with error `tail`."""
    ends = [levels[0] - 1, *levels]
    n_passed = int(np.count_nonzero(_up_to(tests.passes) <= tail))
    n_failed = int(np.count_nonzero(_from(tests.fails) <= tail))
    return ends[n_passed], ends[len(levels) - n_failed]


def rise_p_value(low: LevelTests, high: LevelTests) -> float:
    """Return the smallest error probability at which the interval of the rise excludes 0."""
    rise = np.maximum(_up_to(high.passes), _from(low.fails)).min()
    fall = np.maximum(_up_to(low.passes), _from(high.fails)).min()
    return min(1.0, 4.0 * float(min(rise, fall)))


def _up_to(p_values: Floats) -> Floats:
    """Return the p-value of all levels up to each one, which pass if each test does."""
    largest: Floats = np.maximum.accumulate(p_values)
    return largest


def _from(p_values: Floats) -> Floats:
    """Return the p-value of all levels from each one to the last."""
    largest: Floats = np.maximum.accumulate(p_values[::-1])[::-1]
    return largest
