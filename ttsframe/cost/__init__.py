"""What attempts cost in tokens and FLOPs, and which budgets are worth it."""

from __future__ import annotations

from ttsframe.cost.curve import cost_curve, with_costs
from ttsframe.cost.efficiency import efficiency_gain
from ttsframe.cost.frontier import pareto_frontier

__all__ = ["cost_curve", "efficiency_gain", "pareto_frontier", "with_costs"]
