"""Contract tests for selectors, reductions and graders of your own."""

from __future__ import annotations

from ttsframe.testing.contracts import check_grader, check_reduction, check_selector

__all__ = ["check_grader", "check_reduction", "check_selector"]
