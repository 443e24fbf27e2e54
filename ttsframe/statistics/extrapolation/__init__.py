"""Extrapolation: pass@k beyond the sampled attempts, and how far to trust it."""

from __future__ import annotations

from ttsframe.statistics.extrapolation.check import check_extrapolation
from ttsframe.statistics.extrapolation.fit import PassAtKFit, beta_binomial_passatk, fit_pass_at_k

__all__ = ["PassAtKFit", "beta_binomial_passatk", "check_extrapolation", "fit_pass_at_k"]
