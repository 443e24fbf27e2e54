"""The best strategy for each level and budget, chosen on other problems than it is judged on."""

from __future__ import annotations

from ttsframe.curves.optimal.chosen import compute_optimal_choices
from ttsframe.curves.optimal.curve import compute_optimal_curve, select_compute_optimal

__all__ = ["compute_optimal_choices", "compute_optimal_curve", "select_compute_optimal"]
