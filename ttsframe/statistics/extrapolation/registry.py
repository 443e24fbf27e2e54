"""The registry of models of pass@k, and predictions from a fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import Flags, Floats
from ttsframe.statistics.extrapolation.beta import beta_passes, fit_beta, fit_zero_inflated
from ttsframe.statistics.extrapolation.mixture import fit_nonparametric, nonparametric_passes
from ttsframe.statistics.extrapolation.model import ExtrapolationModel, Fit, Model
from ttsframe.statistics.extrapolation.power_law import fit_power_law, power_law_passes

_MOST_ATTEMPTS: Final = 1e15
_N_BISECTIONS: Final = 60


def _parametric(passes: Callable[[Floats, Floats], Floats]) -> Callable[[Fit, Floats], Floats]:
    """Return pass@k of the estimate, and of the region, to which the estimate belongs."""

    def of_fit(fit: Fit, k: Floats) -> Floats:
        edge = [fit.estimate, fit.edge] if fit.edge.shape[1] else []
        return passes(np.column_stack([fit.estimate, *edge])[:, :, None], k)

    return of_fit


MODELS: Final[Mapping[ExtrapolationModel, Model]] = MappingProxyType({
    "nonparametric": Model(fit_nonparametric, nonparametric_passes),
    "beta_binomial": Model(fit_beta, _parametric(beta_passes)),
    "zero_inflated": Model(fit_zero_inflated, _parametric(beta_passes)),
    "power_law": Model(fit_power_law, _parametric(power_law_passes)),
})
"""Every model by name."""


class Prediction(NamedTuple):
    """Pass@k with its interval, (n_k,) each; NaN without a fit."""

    passes: Floats
    low: Floats
    high: Floats
    is_moved: Flags
    """Whether the model's own value is outside of the interval."""


def predict_range(name: ExtrapolationModel, fit: Fit, k: Floats) -> Prediction:
    """Return pass@k with its interval."""
    values = MODELS[name].passes(fit, k)
    if len(values) == 1:
        unknown = np.full_like(k, np.nan)
        return Prediction(values[0], unknown, unknown, np.zeros(len(k), dtype=np.bool_))
    low, high = values[1:].min(axis=0), values[1:].max(axis=0)
    passes = np.clip(values[0], low, high)
    return Prediction(passes, low, high, passes != values[0])


def attempts_needed(name: ExtrapolationModel, fit: Fit, targets: Floats) -> Floats:
    """Return numbers of attempts at which pass@k reaches targets, with intervals, (3, n_targets)."""
    # NaN without a fit, infinite if 10^15 attempts are not enough.
    if not fit.edge.shape[1]:
        return np.full((3, len(targets)), np.nan)
    passes = MODELS[name].passes
    shape = passes(fit, np.broadcast_to(1.0, len(targets))).shape
    low, high = np.zeros(shape), np.full(shape, math.log(_MOST_ATTEMPTS))
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2.0
        is_enough = passes(fit, np.exp(middle)) >= targets
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    # The tolerances accept a whole number that is too small by rounding only.
    whole = np.maximum(np.floor(np.exp(high) * (1.0 + 1e-9)), 1.0)
    whole += passes(fit, whole) < targets * (1.0 - 1e-12)
    attempts = np.where(passes(fit, np.full(shape, _MOST_ATTEMPTS)) >= targets, whole, np.inf)
    ends = attempts[1:].min(axis=0), attempts[1:].max(axis=0)
    return np.stack([np.clip(attempts[0], *ends), *ends])
