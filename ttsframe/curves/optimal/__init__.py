"""The best strategy for each level and budget, chosen on other problems than it is judged on."""

from __future__ import annotations

from ttsframe.curves.optimal.chosen import optimal_choices
from ttsframe.curves.optimal.curve import optimal_curve, select_optimal

__all__ = ["optimal_choices", "optimal_curve", "select_optimal"]
