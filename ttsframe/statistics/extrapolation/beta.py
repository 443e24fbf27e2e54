"""The beta-binomial model, with and without problems that are never solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import Flags, Floats
from ttsframe.statistics.extrapolation.model import (
    Counts,
    Fit,
    FitStatus,
    half_quantile,
    log_rising,
    no_fit,
    status_of,
)

_LOWEST: Final = float(np.log(1e-6))
_HIGHEST: Final = float(np.log(1e8))
"""Range of log concentrations that is searched; its ends stand for 0 and infinity."""

_MOST: Final = 40.0
"""Logit of the mean that stands for 1; its negative stands for 0."""

_FLAT: Final = 1e-6
"""Log-likelihoods closer than this are equal."""

_N_COARSE: Final = 49
_N_FINE: Final = 17
_N_EDGE: Final = 65
_N_SHARES: Final = 9
_N_ROUNDS: Final = 5
_N_BISECTIONS: Final = 34
_N_HALVINGS: Final = 14


def beta_passes(parameters: Floats, k: Floats) -> Floats:
    """Return pass@k if the chances to solve a problem have a Beta distribution."""
    # The parameters are its mean, its concentration alpha + beta, and the share of problems that are
    # never solved. Concentration 0: each problem is always or never solved; infinity: equal chances.
    mean, concentration, never = parameters
    is_spread = (concentration > 0.0) & np.isfinite(concentration) & (mean > 0.0) & (mean < 1.0)
    scale, middle = np.where(is_spread, concentration, 1.0), np.where(is_spread, mean, 0.5)
    right, wrong = scale * middle, scale * (1.0 - middle)
    few, many = np.minimum(right, k), np.maximum(right, k)
    spread = log_rising(wrong, few) - log_rising(wrong + many, few)
    with np.errstate(divide="ignore"):
        limit = np.log1p(-mean) * np.where(concentration > 0.0, k, 1.0)
    passes: Floats = (1.0 - never) * -np.expm1(np.where(is_spread, spread, limit)) + 0.0
    return passes


class _Tally(NamedTuple):
    """Distinct positive numbers, and the number of problems that have each."""

    values: Floats
    weight: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats) -> _Tally:
        distinct, index = np.unique(values, return_inverse=True)
        total: Floats = np.zeros(len(distinct))
        np.add.at(total, index.ravel(), weight)
        return cls(distinct[distinct > 0], total[distinct > 0])

    def rises(self, x: Floats) -> Floats:
        """Sum log(Gamma(x + value) / Gamma(x)) over problems, for each x."""
        rises: Floats = log_rising(x[:, None], self.values) @ self.weight
        return rises

    def slopes(self, x: Floats) -> Floats:
        """Differentiate `rises`."""
        slopes: Floats = _digammas(x, self.values) @ self.weight
        return slopes


def _digammas(x: Floats, m: Floats) -> Floats:
    from scipy.special import digamma

    differences: Floats = digamma(x[:, None] + m) - digamma(x)[:, None]
    return differences


class _Likelihood:
    """The likelihood of the logit of the mean and the log of the concentration.

    The share of problems that are never solved is given. If it is 0, the likelihood is log-concave in
    the mean at each concentration.
    """

    def __init__(self, counts: Counts, never: float = 0.0) -> None:
        is_apart = (counts.c == 0) & (never > 0.0)
        n, c, weight = (column[~is_apart] for column in counts)
        self.never = never
        self.right = _Tally.of(c, weight)
        self.wrong = _Tally.of(n - c, weight)
        self.both = _Tally.of(n, weight)
        self.unsolved = _Tally.of(counts.n[is_apart], counts.weight[is_apart])
        self.constant = float(np.log1p(-never) * weight.sum())

    def at(self, logit: Floats, log_scale: Floats) -> Floats:
        """Return the log-likelihood."""
        scale = np.exp(log_scale)
        right, wrong = scale * _expit(logit), scale * _expit(-logit)
        solved = self.right.rises(right) + self.wrong.rises(wrong) - self.both.rises(scale)
        return solved + self.constant + np.log(self._unsolved(wrong, scale)) @ self.unsolved.weight

    def best_logit(self, log_scale: Floats) -> Floats:
        """Return the most likely logit at each concentration."""
        scale = np.exp(log_scale)

        def is_below(logit: Floats) -> Flags:
            wrong = scale * _expit(-logit)
            fall = self.wrong.slopes(wrong)
            if self.never:
                is_luck = 1.0 - self.never / self._unsolved(wrong, scale)
                luck = is_luck * _digammas(wrong, self.unsolved.values)
                fall += luck @ self.unsolved.weight
            return self.right.slopes(scale * _expit(logit)) > fall

        ends = np.full_like(scale, _MOST)
        return _bisect(is_below, -ends, ends)

    def profile(self, log_scale: Floats) -> Floats:
        """Return the highest log-likelihood at each concentration."""
        return self.at(self.best_logit(log_scale), log_scale)

    def _unsolved(self, wrong: Floats, scale: Floats) -> Floats:
        n = self.unsolved.values
        miss = np.exp(log_rising(wrong[:, None], n) - log_rising(scale[:, None], n))
        return self.never + (1.0 - self.never) * miss


def _expit(logit: Floats) -> Floats:
    expit: Floats = 1.0 / (1.0 + np.exp(-logit))
    return expit


def _bisect(
    is_below: Callable[[Floats], Flags],
    low: Floats,
    high: Floats,
    n_halvings: int = _N_BISECTIONS,
) -> Floats:
    """Return where each condition turns from true to false, or an end if it never does."""
    start, end = low, high
    for _ in range(n_halvings):
        middle = (low + high) / 2.0
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(low == start, start, np.where(high == end, end, (low + high) / 2.0))


def _climb(profile: Callable[[Floats], Floats], grid: Floats) -> tuple[float, float]:
    """Return the highest point of a profile, and its height; prefers an end of equal height."""
    ends = grid[[0, -1]]
    for _ in range(_N_ROUNDS):
        top = int(profile(grid).argmax())
        grid = np.linspace(grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)], _N_FINE)
    points = np.append(grid, ends)
    values = profile(points)
    highest = float(values.max())
    is_end = values[-2:] >= highest - _FLAT
    return float(ends[is_end][0] if is_end.any() else points[values.argmax()]), highest


def _edge(
    profile: Callable[[Floats], Floats],
    floor: float,
    inside: float,
    outside: float,
) -> float:
    """Return where a profile falls to the floor, or the end if it never does."""
    for _ in range(_N_ROUNDS - 1):
        grid = np.linspace(inside, outside, _N_FINE)
        above = np.flatnonzero(profile(grid) >= floor)
        last = int(above.max()) if above.size else 0
        inside, outside = float(grid[last]), float(grid[min(last + 1, _N_FINE - 1)])
    return inside


def _edge_of_region(likelihood: _Likelihood, floor: float) -> Floats:
    """Return parameters, (3, n_points), on the edge of the region above the floor."""
    grid = np.linspace(_LOWEST, _HIGHEST, _N_COARSE)
    peak, highest = _climb(likelihood.profile, grid)
    if highest < floor:
        return np.empty((3, 0))
    inside = np.append(grid[likelihood.profile(grid) >= floor], peak)
    low = _edge(likelihood.profile, floor, float(inside.min()), _LOWEST)
    high = _edge(likelihood.profile, floor, float(inside.max()), _HIGHEST)
    scales = np.append(np.linspace(low, high, _N_EDGE), peak)
    logits = likelihood.best_logit(scales)
    is_inside = likelihood.at(logits, scales) >= floor
    scales, logits = scales[is_inside], logits[is_inside]
    ends = np.full_like(logits, _MOST)
    lower = _bisect(lambda logit: likelihood.at(logit, scales) < floor, -ends, logits)
    upper = _bisect(lambda logit: likelihood.at(logit, scales) >= floor, logits, ends)
    return _as_parameters(np.append(lower, upper), np.append(scales, scales), likelihood.never)


def _as_parameters(logit: Floats, log_scale: Floats, never: float) -> Floats:
    """Return mean, concentration and share, with the ends of the search as 0, 1 or infinity."""
    mean = np.where(logit <= -_MOST, 0.0, np.where(logit >= _MOST, 1.0, _expit(logit)))
    scale = np.where(log_scale >= _HIGHEST, np.inf, np.exp(log_scale))
    return np.stack([
        mean,
        np.where(log_scale <= _LOWEST, 0.0, scale),
        np.full_like(mean, never),
    ])


def fit_beta(counts: Counts, confidence_level: float) -> Fit:
    """Fit the Beta distribution of chances by maximum likelihood."""
    status = status_of(counts)
    if status in {"ungraded", "too_few"}:
        return no_fit(status, 3)
    estimate, highest = _most_likely(counts, 0.0)
    edge = _edge_of_region(_Likelihood(counts), highest - half_quantile(confidence_level))
    return Fit(_status_of_estimate(counts, estimate), estimate, edge, highest)


def fit_zero_inflated(counts: Counts, confidence_level: float) -> Fit:
    """Fit a Beta distribution and a share of problems that are never solved."""
    if status_of(counts) in {"ungraded", "too_few", "all_wrong"}:
        return fit_beta(counts, confidence_level)
    is_unsolved = counts.c == 0
    n, weight = counts.n[is_unsolved], counts.weight[is_unsolved]
    n_solved = counts.weight.sum() - weight.sum()

    def is_rising(share: Floats) -> Flags:
        # The slope of the profile is that at the best of the other parameters.
        (mean, concentration, _), _ = _most_likely(counts, share.item())
        passes = beta_passes(np.array([mean.item(), concentration.item(), 0.0]), n)
        gain = weight @ (passes / (share + (1.0 - share) * (1.0 - passes)))
        return np.array([gain * (1.0 - share.item()) > n_solved])

    none, most = np.zeros(1), np.array([1.0 - n_solved / (2.0 * counts.weight.sum())])
    never = _bisect(is_rising, none, most, _N_HALVINGS)
    estimate, highest = _most_likely(counts, never.item())
    floor = highest - half_quantile(confidence_level)

    def is_inside(share: Floats) -> Flags:
        return np.array([_most_likely(counts, share.item())[1] >= floor])

    low = _bisect(lambda share: ~is_inside(share), none, never, _N_HALVINGS)
    high = _bisect(is_inside, never, most, _N_HALVINGS)
    # Slightly inside both ends, where the region is not empty.
    shares = never + (np.linspace(low, high, _N_SHARES) - never) * (1.0 - 1e-3)
    shares = np.append(shares, never)
    edge = [_edge_of_region(_Likelihood(counts, share), floor) for share in shares.tolist()]
    return Fit(
        _status_of_estimate(counts, estimate), estimate, np.concatenate(edge, axis=1), highest
    )


def _most_likely(counts: Counts, never: float) -> tuple[Floats, float]:
    """Return the best parameters for a given share, and their log-likelihood."""
    likelihood = _Likelihood(counts, never)
    peak, highest = _climb(likelihood.profile, np.linspace(_LOWEST, _HIGHEST, _N_COARSE))
    scale = np.array([peak])
    return _as_parameters(likelihood.best_logit(scale), scale, never), highest


def _status_of_estimate(counts: Counts, estimate: Floats) -> FitStatus:
    """Return the status of the counts, or of an estimate at an end of the search."""
    status = status_of(counts)
    if status != "ok":
        return status
    concentration = float(estimate[1, 0])
    return "equal" if concentration == np.inf else "ok" if concentration else "all_or_none"
