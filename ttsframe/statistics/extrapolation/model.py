"""Models of pass@k: counts per problem in, an estimate and a confidence region out.

A fit is an estimate and points on the edge of a confidence region of the parameters. The interval of
a number computed from the parameters is its range over these points. An estimate outside of it is
moved to the nearer end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ttsframe._typing import Floats

ExtrapolationModel: TypeAlias = Literal[
    "nonparametric", "beta_binomial", "zero_inflated", "power_law"
]
FitStatus: TypeAlias = Literal[
    "ok", "equal", "all_or_none", "all_wrong", "all_correct", "too_few", "ungraded"
]


class Counts(NamedTuple):
    """Distinct numbers of attempts `n` and correct ones `c`; `weight` is the number of problems."""

    n: Floats
    c: Floats
    weight: Floats


class Fit(NamedTuple):
    """The estimate, (n_parameters, 1), and the edge of its region, (n_parameters, n_points)."""

    status: FitStatus
    estimate: Floats
    edge: Floats
    log_likelihood: float
    chances: Floats = np.empty(0)
    """The grid of a mixture, whose `edge` has a weight per chance."""


class Model(NamedTuple):
    """One row of the registry."""

    fit: Callable[[Counts, float], Fit]
    """Fits counts at a confidence level."""
    passes: Callable[[Fit, Floats], Floats]
    """Returns pass@k, (1 + n_members, n_k): of the estimate, then of each member of the region.

    The numbers of attempts are (n_k,), or (1 + n_members, n_k).
    """


def log_rising(x: Floats, m: Floats) -> Floats:
    """Return log(Gamma(x + m) / Gamma(x)), for x >= 0 and m > 0, without cancellation."""
    # A difference of betaln would lose 4e-9 here.
    from scipy.special import gammaln

    far = np.maximum(x, 30.0)
    ahead = far + m
    large = (far - 0.5) * np.log1p(m / far) + m * (np.log(ahead) - 1.0)
    for power, divisor in ((1, 12.0), (3, -360.0), (5, 1260.0)):
        large += (ahead**-power - far**-power) / divisor
    near: Floats = gammaln(x + m) - gammaln(x)
    return np.where(x >= 30.0, large, near)


def status_of(counts: Counts) -> FitStatus:
    """Return the status of a fit as far as counts decide it, else "ok"."""
    if not len(counts.n):
        return "ungraded"
    if (counts.n < 2).all():
        return "too_few"
    if not counts.c.any():
        return "all_wrong"
    return "all_correct" if (counts.c == counts.n).all() else "ok"


def no_fit(status: FitStatus, n_parameters: int) -> Fit:
    """Return a fit without an estimate, for a reason."""
    return Fit(status, np.full((n_parameters, 1), np.nan), np.empty((n_parameters, 0)), np.nan)


def half_quantile(confidence_level: float) -> float:
    """Return the fall of the log-likelihood from its maximum to the edge of the region."""
    from scipy.special import ndtri

    return float(ndtri((1.0 + confidence_level) / 2.0)) ** 2 / 2.0
