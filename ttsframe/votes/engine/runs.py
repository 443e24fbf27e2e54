"""Runs of equal labels in sorted arrays, and stable orders."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ttsframe._typing import Floats, Integers


def run_starts(labels: Integers | Floats) -> Integers:
    """Return the first row of each run of equal labels."""
    if not len(labels):
        return np.empty(0, np.int64)
    return np.append(0, np.flatnonzero(labels[1:] != labels[:-1]) + 1)


def run_lengths(starts: Integers, n: int) -> Integers:
    """Return the lengths of runs in `n` rows, from their first rows."""
    return np.diff(starts, append=n)


def attempt_order(problem: Integers, attempt: npt.NDArray[np.integer]) -> Integers:
    """Return the order of rows by problem, then by attempt; both are numbered from 0."""
    return stable_order(problem << int(attempt.max(initial=0)).bit_length() | attempt)


def stable_order(labels: Integers) -> Integers:
    """Return the order of rows by label, earlier rows first; labels are integers from 0."""
    bits = len(labels).bit_length()
    if int(labels.max(initial=0)).bit_length() + bits >= 64:
        return np.argsort(labels, kind="stable")
    # Sorting row numbers packed behind their labels is several times faster than an argsort.
    packed = labels << bits | np.arange(len(labels))
    packed.sort()
    return packed & ((1 << bits) - 1)
