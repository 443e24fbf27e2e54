"""Levels of difficulty, and curves by level that are not biased by them."""

from __future__ import annotations

from ttsframe.difficulty.halves import halve_attempts
from ttsframe.difficulty.leveled import level_curve
from ttsframe.difficulty.levels import difficulty_levels

__all__ = ["difficulty_levels", "halve_attempts", "level_curve"]
