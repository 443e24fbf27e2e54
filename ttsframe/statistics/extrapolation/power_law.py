"""The power law of coverage: log(pass@k) = a k^b."""

from __future__ import annotations

from typing import Final

import numpy as np

from ttsframe._typing import Floats
from ttsframe.statistics.extrapolation.model import (
    Counts,
    Fit,
    half_quantile,
    log_rising,
    no_fit,
    status_of,
)

_N_DRAWS: Final = 32
_N_DIRECTIONS: Final = 128


def power_law_passes(parameters: Floats, k: Floats) -> Floats:
    """Return pass@k = exp(a k^b), from log(-a) and b."""
    intercept, slope = parameters
    with np.errstate(over="ignore"):
        passes: Floats = np.exp(-np.exp(intercept + slope * np.log(k)))
    return passes


def fit_power_law(counts: Counts, confidence_level: float) -> Fit:
    """Fit log(-log pass@k) as a line in log k, by weighted least squares."""
    # The edge is the ellipse of the covariance of both parameters. It comes from the linear effect of
    # each problem on them, since the values at different k are of the same problems.
    status = status_of(counts)
    if status != "ok":
        return no_fit(status, 2)
    draws = np.unique(np.geomspace(1.0, counts.n.min(), _N_DRAWS).round())
    n_problems = counts.weight.sum()
    passes = unbiased_passes(counts, draws)
    mean = counts.weight @ passes / n_problems
    variance = counts.weight @ (passes - mean) ** 2 / (n_problems * max(n_problems - 1.0, 1.0))
    is_usable = (variance > 0.0) & (mean > 0.0) & (mean < 1.0)
    if is_usable.sum() < 2:
        return no_fit("too_few", 2)
    mean, variance, passes = mean[is_usable], variance[is_usable], passes[:, is_usable]
    slope = 1.0 / (mean * np.log(mean))
    design = np.stack([np.ones_like(mean), np.log(draws[is_usable])])
    weighted = design / (slope**2 * variance)
    solve = np.linalg.solve(weighted @ design.T, weighted)
    estimate = solve @ np.log(-np.log(mean))
    effects = solve @ (slope * (passes - mean)).T
    covariance = (counts.weight * effects) @ effects.T / (n_problems * (n_problems - 1.0))
    values, vectors = np.linalg.eigh(covariance)
    radii = np.sqrt(2.0 * half_quantile(confidence_level) * np.maximum(values, 0.0))
    angles = np.linspace(0.0, 2.0 * np.pi, _N_DIRECTIONS, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    edge = estimate[:, None] + vectors @ (radii[:, None] * circle)
    return Fit("ok", estimate[:, None], edge, np.nan)


def unbiased_passes(counts: Counts, k: Floats) -> Floats:
    """Return the unbiased pass@k of problems, (n_counts, n_k), for k up to the smallest n."""
    n, wrong = counts.n[:, None], (counts.n - counts.c)[:, None]
    is_open = wrong >= k
    miss = log_rising(np.where(is_open, wrong - k, 0.0) + 1.0, k) - log_rising(n - k + 1.0, k)
    return np.where(is_open, -np.expm1(miss), 1.0)
