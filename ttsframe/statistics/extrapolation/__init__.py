"""Extrapolation: pass@k beyond the sampled attempts, and a check of it."""

from __future__ import annotations

from ttsframe.statistics.extrapolation.check import check_extrapolation
from ttsframe.statistics.extrapolation.fit import PassAtKFit, fit_pass_at_k

__all__ = ["PassAtKFit", "check_extrapolation", "fit_pass_at_k"]
