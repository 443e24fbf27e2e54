"""Curves over budgets: accuracy, selection gap, difficulty levels, cost, optimal and adaptive budgets."""

from __future__ import annotations

from ttsframe.curves.adaptive import allocate_attempts, select_allocated
from ttsframe.curves.at_k import estimator_curve, majority_limit
from ttsframe.curves.bands import simultaneous_curve
from ttsframe.curves.cost import add_costs, cost_curve, pareto_frontier
from ttsframe.curves.efficiency import efficiency_gain
from ttsframe.curves.ensemble import ensemble_vote
from ttsframe.curves.gaps import selection_gap
from ttsframe.curves.levels import difficulty_levels, halve_attempts, level_curve
from ttsframe.curves.narrow import stop_when_narrow
from ttsframe.curves.optimal import (
    optimal_choices,
    optimal_curve,
    select_optimal,
)
from ttsframe.curves.scaling import scaling_curve
from ttsframe.curves.stopping import stopping_points, tune_stopping
from ttsframe.curves.strata import stratified_curve

__all__ = [
    "add_costs",
    "allocate_attempts",
    "cost_curve",
    "difficulty_levels",
    "efficiency_gain",
    "ensemble_vote",
    "estimator_curve",
    "halve_attempts",
    "level_curve",
    "majority_limit",
    "optimal_choices",
    "optimal_curve",
    "pareto_frontier",
    "scaling_curve",
    "select_allocated",
    "select_optimal",
    "selection_gap",
    "simultaneous_curve",
    "stop_when_narrow",
    "stopping_points",
    "stratified_curve",
    "tune_stopping",
]
