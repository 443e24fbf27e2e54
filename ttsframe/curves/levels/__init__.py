"""Levels of difficulty, and curves by level that are not biased by them."""

from __future__ import annotations

from ttsframe.curves.levels.halves import halve_attempts
from ttsframe.curves.levels.leveled import level_curve
from ttsframe.curves.levels.levels import difficulty_levels

__all__ = ["difficulty_levels", "halve_attempts", "level_curve"]
