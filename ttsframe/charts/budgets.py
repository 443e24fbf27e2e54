"""The axis of budgets: attempts, tokens or floating-point operations, in readable numbers."""

from __future__ import annotations

from math import floor, log10
from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from ttsframe.charts.style import axis

_NAMES: Final = {"flops": "FLOPs"}
_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_N_TICKS_MAX: Final = 16
_N_ROUND_MAX: Final = 9


class BudgetAxis(NamedTuple):
    """The horizontal axis of budgets that all panels of a chart share."""

    unit: str
    budgets: list[float]
    """The budgets that are drawn, ascending."""
    is_all: bool
    """Whether the only budget is all attempts, however many these are."""

    @classmethod
    def of(cls, drawn: pl.DataFrame) -> BudgetAxis:
        """Take the budgets and their unit from the rows that are drawn."""
        is_all = "of_budget" in drawn.columns and drawn["of_budget"][0] == "all"
        return cls(drawn["budget_unit"][0], drawn["budget"].unique().sort().to_list(), is_all)

    @property
    def ends(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        first, last = self.budgets[0], self.budgets[-1]
        return (first, last) if last > first else (first / 2, first * 3 / 2)

    @property
    def largest(self) -> str:
        """The largest budget in words."""
        if self.is_all:
            return "all attempts of each"
        # Not "attempts each": a curve may be extrapolated beyond what any problem has.
        largest = count_units(self.budgets[-1], self.unit)
        return f"budget: {largest}" if len(self.budgets) == 1 else f"budgets up to {largest}"

    @property
    def tooltip_title(self) -> str:
        """What tooltips call a budget."""
        return f"Budget ({unit_name(self.unit)})"

    def is_sparse(self, n_ticks_max: int = _N_TICKS_MAX) -> bool:
        """Return whether every budget can have a tick."""
        return len(self.budgets) <= n_ticks_max

    def x(
        self,
        field: str = "budget",
        *,
        n_ticks_max: int = _N_TICKS_MAX,
        has_title: bool = True,
        **options: Any,  # noqa: ANN401  (Altair's own options)
    ) -> alt.X:
        """Return the axis for a column: a tick at each of a few budgets, else at round numbers."""
        if self.is_all:
            style = axis("All attempts" if has_title else None, values=[], grid=False, **options)
        else:
            values, number_format = self._ticks(n_ticks_max)
            scale_name = " (log scale)" if len(self.budgets) > 1 else ""
            title = f"{sentence(per_problem(self.unit))}{scale_name}" if has_title else None
            options = {"grid": False, "labelOverlap": "greedy", "labelSeparation": 5, **options}
            style = axis(title, values=values, format=number_format, **options)
        # One budget stands in the middle: a scale would say that there is something to compare.
        kind = {"type": "log", "base": 2} if len(self.budgets) > 1 else {"type": "linear"}
        scale = alt.Scale(domain=[*self.ends], nice=False, **kind)
        return alt.X(f"{field}:Q", axis=style, scale=scale)

    def _ticks(self, n_ticks_max: int) -> tuple[list[float], str]:
        """Return the positions of ticks and the format of their labels."""
        budgets = self.budgets
        if self.unit == "attempts" and all(budget == int(budget) for budget in budgets):
            powers = [2.0**i for i in range(int(budgets[-1]).bit_length())]
            within = [power for power in powers if power >= budgets[0]]
            return ([*budgets] if self.is_sparse(n_ticks_max) else within), ",d"
        if len(budgets) == 1:
            return [*budgets], ".3~s"
        return round_numbers(budgets[0], budgets[-1]), ".3~s"


def unit_name(unit: str) -> str:
    """Write a unit of budget as charts show it."""
    return _NAMES.get(unit, unit)


def count_units(value: float, unit: str) -> str:
    """Write a budget with its unit: "1 attempt", "16 attempts"."""
    name = unit_name(unit)
    return f"{short_number(value)} {name.removesuffix('s') if value == 1 else name}"


def per_problem(unit: str) -> str:
    """Name the budget in words."""
    return f"{unit_name(unit)} per problem"


def sentence(text: str) -> str:
    """Begin a text with a capital letter and leave the other letters as they are."""
    return f"{text[0].upper()}{text[1:]}"


def short_number(value: float) -> str:
    """Write a whole number below ten thousand in full, and others to three digits."""
    if value == int(value) and value < 10_000:
        return f"{int(value):,}"
    power = 0 if value < 1000 else min(floor(log10(value) / 3), len(_PREFIXES) - 1)
    # Three digits may round up to the next prefix.
    if float(f"{value / 1000**power:.3g}") >= 1000 and power < len(_PREFIXES) - 1:
        power += 1
    return f"{value / 1000**power:.3g}{_PREFIXES[power]}"


def round_numbers(low: float, high: float) -> list[float]:
    """Return ones, twos and fives of powers of ten within a range, or powers where these are many."""
    exponents = range(floor(log10(low)), floor(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        numbers = [
            digit * 10.0**exponent
            for exponent in exponents
            for digit in digits
            if low <= digit * 10.0**exponent <= high
        ]
        if len(numbers) <= _N_ROUND_MAX:
            return numbers if len(numbers) > 1 else [low, high]
    return numbers
