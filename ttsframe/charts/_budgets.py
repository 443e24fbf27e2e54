"""Budgets on an axis: attempts, tokens or floating-point operations, in numbers that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Final

import altair as alt

from ttsframe.charts._style import axis

_NAMES: Final = {"flops": "FLOPs"}
_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_N_TICKS_MAX: Final = 16
_N_ROUND_MAX: Final = 9


def unit_name(unit: str) -> str:
    """Write a unit of budget as charts show it."""
    return _NAMES.get(unit, unit)


def per_problem(unit: str) -> str:
    """Name the budget in words."""
    return f"{unit_name(unit)} per problem"


def short_number(value: float) -> str:
    """Write a whole number below ten thousand in full, and others to three digits."""
    if value == int(value) and value < 10_000:
        return f"{int(value):,}"
    power = 0 if value < 1000 else min(floor(log10(value) / 3), len(_PREFIXES) - 1)
    # Three digits may round up to the next prefix.
    if float(f"{value / 1000**power:.3g}") >= 1000 and power < len(_PREFIXES) - 1:
        power += 1
    return f"{value / 1000**power:.3g}{_PREFIXES[power]}"


def budget_axis(unit: str, budgets: Sequence[float], *, is_sparse: bool = True) -> alt.Axis:
    """Style the axis of budgets in ascending order: at each of a few, else at round numbers."""
    title = f"{per_problem(unit)[0].upper()}{per_problem(unit)[1:]} (log scale)"
    are_whole = all(budget == int(budget) for budget in budgets)
    if unit == "attempts" and are_whole:
        powers = [2**i for i in range(int(budgets[-1]).bit_length())]
        values = [*budgets] if is_sparse else [b for b in powers if b >= budgets[0]]
        form = ",d"
    else:
        values, form = round_numbers(budgets[0], budgets[-1]), ".3~s"
    return axis(title, values=values, format=form, grid=False, labelOverlap="greedy")


def round_numbers(low: float, high: float) -> list[float]:
    """Return ones, twos and fives of powers of ten within a range, or powers where these are many."""
    exponents = range(floor(log10(low)), floor(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [
            digit * 10.0**exponent
            for exponent in exponents
            for digit in digits
            if low <= digit * 10.0**exponent <= high
        ]
        if len(found) <= _N_ROUND_MAX:
            return found if len(found) > 1 else [low, high]
    return found
