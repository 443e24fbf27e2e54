"""Validation of a run: its errors and oddities, as counts and examples."""

from __future__ import annotations

from ttsframe.validation.finding import Finding
from ttsframe.validation.health import run_health
from ttsframe.validation.report import ValidationReport, severity_rank, validate_trajectories

__all__ = ["Finding", "ValidationReport", "run_health", "severity_rank", "validate_trajectories"]
