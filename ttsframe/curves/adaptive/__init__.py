"""Budgets that depend on the problem, replayed on stored attempts."""

from __future__ import annotations

from ttsframe.curves.adaptive.allocation import allocate_attempts, select_allocated
from ttsframe.curves.adaptive.stopping import stopping_points

__all__ = ["allocate_attempts", "select_allocated", "stopping_points"]
