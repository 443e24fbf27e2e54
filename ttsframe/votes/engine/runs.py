"""Runs of equal labels in sorted arrays, and sums of them that are kept from overflowing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def run_starts(labels: Integers | Floats) -> Integers:
    """Return where runs of equal labels begin.

    Parameters
    ----------
    labels
        One per row.

    Returns
    -------
    Integers
        First rows.
    """
    if not len(labels):
        return np.empty(0, np.int64)
    return np.append(0, np.flatnonzero(labels[1:] != labels[:-1]) + 1)


def run_lengths(starts: Integers, n: int) -> Integers:
    """Return the lengths of runs.

    Parameters
    ----------
    starts
        Where each begins.
    n
        Number of all rows.

    Returns
    -------
    Integers
        One per run.
    """
    return np.diff(starts, append=n)


def cumulate_scaled(matrix: Floats, shift: Floats, temperature: float) -> Floats:
    """Cumulate sums of powers of e, each of which was divided by a highest power of its own.

    Parameters
    ----------
    matrix
        Sums, to be cumulated over the first axis.
    shift
        What was taken off the exponents before they were divided, of the same shape; NaN where
        nothing was added.
    temperature
        What the exponents were divided by.

    Returns
    -------
    Floats
        Of the same shape, each row relative to its highest power.
    """
    total, highest = np.zeros(matrix.shape[1]), np.full(matrix.shape[1], np.nan)
    cumulated = np.empty_like(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        for row, (added, of_row) in enumerate(zip(matrix, shift, strict=True)):
            higher = np.fmax(highest, of_row)
            total = _scaled(total, (highest - higher) / temperature)
            total += _scaled(added, (of_row - higher) / temperature)
            cumulated[row], highest = total, higher
    return cumulated


def _scaled(value: Floats, exponent: Floats) -> Floats:
    """Multiply by a power of e; nothing stays nothing, whatever it is multiplied by."""
    return np.where(value == 0, 0.0, value * np.exp(exponent))


def attempt_order(problem: Integers, attempt: npt.NDArray[np.integer]) -> Integers:
    """Return the order of attempts by problem and, within it, by number.

    Parameters
    ----------
    problem
        Number of the problem of each row, from 0.
    attempt
        Number of the attempt, from 0; equal ones keep their order.

    Returns
    -------
    Integers
        Positions.
    """
    return stable_order(problem << int(attempt.max(initial=0)).bit_length() | attempt)


def stable_order(labels: Integers) -> Integers:
    """Return the order that brings equal labels together, earlier ones first.

    Parameters
    ----------
    labels
        Integers from 0.

    Returns
    -------
    Integers
        Positions, by ascending label.
    """
    bits = len(labels).bit_length()
    if int(labels.max(initial=0)).bit_length() + bits >= 64:
        return np.argsort(labels, kind="stable")
    # Sorting positions along with their labels is several times faster than an argsort.
    packed = labels << bits | np.arange(len(labels))
    packed.sort()
    return packed & ((1 << bits) - 1)
