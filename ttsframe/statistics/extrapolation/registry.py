"""The registry of models of pass@k, and predictions from a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ttsframe._typing import Floats
from ttsframe.statistics.extrapolation.beta import beta_passes, fit_beta, fit_zero_inflated
from ttsframe.statistics.extrapolation.model import ExtrapolationModel, Fit, Model
from ttsframe.statistics.extrapolation.power_law import fit_power_law, power_law_passes

_MOST_ATTEMPTS: Final = 1e15
_N_BISECTIONS: Final = 60

MODELS: Final[Mapping[ExtrapolationModel, Model]] = MappingProxyType({
    "beta_binomial": Model(fit_beta, beta_passes),
    "zero_inflated": Model(fit_zero_inflated, beta_passes),
    "power_law": Model(fit_power_law, power_law_passes),
})
"""Every model by name."""


def predict_range(name: ExtrapolationModel, fit: Fit, k: Floats) -> Floats:
    """Return pass@k with its interval, (3, n_k); NaN without a fit."""
    passes = MODELS[name].passes
    estimate = passes(fit.estimate, k)
    if not fit.edge.shape[1]:
        return np.stack([estimate, np.full_like(k, np.nan), np.full_like(k, np.nan)])
    in_region = passes(np.column_stack([fit.edge, fit.estimate])[:, :, None], k)
    return np.stack([estimate, in_region.min(axis=0), in_region.max(axis=0)])


def attempts_needed(name: ExtrapolationModel, fit: Fit, targets: Floats) -> Floats:
    """Return numbers of attempts at which pass@k reaches targets, with intervals, (3, n_targets)."""
    # NaN without a fit, infinite if 10^15 attempts are not enough.
    passes = MODELS[name].passes
    parameters = np.column_stack([fit.estimate, fit.edge])[:, :, None]
    shape = (parameters.shape[1], len(targets))
    low, high = np.zeros(shape), np.full(shape, math.log(_MOST_ATTEMPTS))
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2.0
        is_enough = passes(parameters, np.exp(middle)) >= targets
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    # The tolerances accept a whole number that is too small by rounding only.
    whole = np.maximum(np.floor(np.exp(high) * (1.0 + 1e-9)), 1.0)
    whole += passes(parameters, whole) < targets * (1.0 - 1e-12)
    attempts = np.where(passes(parameters, np.array(_MOST_ATTEMPTS)) >= targets, whole, np.inf)
    if not fit.edge.shape[1]:
        return np.full((3, len(targets)), np.nan)
    return np.stack([attempts[0], attempts.min(axis=0), attempts.max(axis=0)])
