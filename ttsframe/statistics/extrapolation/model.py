"""What a model of pass@k is: counts per problem in, parameters and what the data allow out.

A fit is one estimate and a cloud of parameters that covers the edge of the region which the data do
not rule out. The interval of anything computed from the parameters is its range over the cloud.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
ExtrapolationModel: TypeAlias = Literal["beta_binomial", "zero_inflated", "power_law"]
FitStatus: TypeAlias = Literal[
    "ok", "equal", "all_or_none", "all_wrong", "all_correct", "too_few", "ungraded"
]


class Counts(NamedTuple):
    """Distinct numbers of attempts and of correct ones, and how many problems have them."""

    n: Floats
    c: Floats
    weight: Floats


class Fit(NamedTuple):
    """The best parameters, (n_parameters, 1), and those on the edge, (n_parameters, n_points)."""

    status: FitStatus
    estimate: Floats
    edge: Floats
    log_likelihood: float


class Model(NamedTuple):
    """One row of the registry."""

    fit: Callable[[Counts, float], Fit]
    """Given counts and a confidence level."""
    passes: Callable[[Floats, Floats], Floats]
    """Given parameters, (n_parameters, ...), and numbers of attempts; pass@k."""


def log_rising(x: Floats, m: Floats) -> Floats:
    """Return log(Gamma(x + m) / Gamma(x)) without the cancellation of their difference."""
    from scipy.special import gammaln

    far = np.maximum(x, 30.0)
    ahead = far + m
    large = (far - 0.5) * np.log1p(m / far) + m * (np.log(ahead) - 1.0)
    for power, divisor in ((1, 12.0), (3, -360.0), (5, 1260.0)):
        large += (ahead**-power - far**-power) / divisor
    near: Floats = gammaln(x + m) - gammaln(x)
    return np.where(x >= 30.0, large, near)


def status_of(counts: Counts) -> FitStatus:
    """Say what keeps counts from being fitted, or from showing where an estimate lies."""
    if not len(counts.n):
        return "ungraded"
    if (counts.n < 2).all():
        return "too_few"
    if not counts.c.any():
        return "all_wrong"
    return "all_correct" if (counts.c == counts.n).all() else "ok"


def no_fit(status: FitStatus, n_parameters: int) -> Fit:
    """Return a fit of nothing."""
    return Fit(status, np.full((n_parameters, 1), np.nan), np.empty((n_parameters, 0)), np.nan)


def half_quantile(confidence_level: float) -> float:
    """Return how far the log-likelihood falls from its maximum to the edge."""
    from scipy.special import ndtri

    return float(ndtri((1.0 + confidence_level) / 2.0)) ** 2 / 2.0
