"""What attempts cost in tokens and FLOPs, and which budgets are worth it."""

from __future__ import annotations

from ttsframe.curves.cost.curve import add_costs, cost_curve
from ttsframe.curves.cost.efficiency import efficiency_gain
from ttsframe.curves.cost.frontier import pareto_frontier

__all__ = ["add_costs", "cost_curve", "efficiency_gain", "pareto_frontier"]
