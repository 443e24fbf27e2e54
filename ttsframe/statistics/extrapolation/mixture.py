"""Pass@k without a shape: the chances to solve a problem have any distribution on a fine grid.

The likelihood of such a mixture is concave in its weights. The interval of pass@k is its range over
all mixtures whose log-likelihood is within half a chi-squared quantile of the highest.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import Flags, Floats
from ttsframe.statistics.extrapolation.model import (
    Counts,
    Fit,
    half_quantile,
    no_fit,
    status_of,
)
from ttsframe.statistics.extrapolation.power_law import fit_power_law, power_law_passes

_N_ROUNDS: Final = 80
_N_PRICES: Final = 24
_ERROR: Final = 1e-3
"""Ends of pass@k are found to this error, which tangents of the dual prove."""

_GAP: Final = 1e-4
"""Log-likelihoods are maximized to this gap between primal and dual."""

_BETWEEN: Final = 4.0
"""Ratio between the numbers of attempts at which the ends are searched."""

_BEYOND: Final = 1024.0
"""Ratio of the largest of them to the number of sampled attempts; the ends hardly move beyond."""


class Mixture(NamedTuple):
    """The likelihood of a mixture of chances, as a function of its weights."""

    chances: Floats
    likelihood: Floats
    """(n_counts, n_chances), each row scaled to a maximum of 1."""
    weight: Floats
    """Number of problems with each count."""
    constant: float
    """What the scaling takes from the log-likelihood."""

    @classmethod
    def of(cls, counts: Counts) -> Mixture:
        """Build the likelihood of counts."""
        chances = chance_grid(float(counts.n.max()), float(counts.weight.sum()))
        n, c = counts.n[:, None], counts.c[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(c > 0.0, c * np.log(chances), 0.0)
            logs = right + np.where(n > c, (n - c) * np.log1p(-chances), 0.0)
        highest = logs.max(axis=1, keepdims=True)
        constant = float(counts.weight @ highest[:, 0])
        return cls(chances, np.exp(logs - highest), counts.weight, constant)

    def at(self, weights: Floats) -> Floats:
        """Return the log-likelihood, less the constant, of weights, (..., n_chances)."""
        found: Floats = np.log(weights @ self.likelihood.T) @ self.weight
        return found


def chance_grid(n_attempts: float, n_problems: float) -> Floats:
    """Return chances from 0 to 1, so near that n attempts cannot tell neighbors apart."""
    # Equal steps of arcsin(sqrt(chance)), a third of its standard error each, but at most 240;
    # logarithmic steps near 0 and 1, down to a chance that all attempts together would hardly show.
    edge = 0.5 / n_attempts
    n_angles = int(min(max(40, np.ceil(1.5 * np.pi * np.sqrt(n_attempts))), 240))
    start = np.arcsin(np.sqrt(edge))
    middle = np.sin(np.linspace(start, np.pi / 2.0 - start, n_angles)) ** 2
    lowest = 0.01 * edge / n_problems
    low = np.geomspace(lowest, edge, int(8.0 * np.log10(edge / lowest)), endpoint=False)
    high = 1.0 - np.geomspace(edge, edge / 100.0, 6)[1:]
    return np.concatenate([[0.0], low, middle, high, [1.0]])


def fit_nonparametric(counts: Counts, confidence_level: float) -> Fit:
    """Fit the power law for the estimate, and the mixtures of extreme pass@k for its interval."""
    law = fit_power_law(counts, confidence_level)
    status = status_of(counts)
    if status in {"ungraded", "too_few"}:
        return no_fit(status, 2)
    mixture = Mixture.of(counts)
    best = most_likely(mixture, np.zeros((1, len(mixture.chances))))
    if status in {"all_wrong", "all_correct"}:
        best = (mixture.chances == float(status == "all_correct")).astype(np.float64)[None]
    most = float(counts.n.max())
    steps = np.arange(0.0, np.log(_BEYOND * most) / np.log(_BETWEEN))
    goals = mixture_passes(mixture.chances, _BEYOND * most * _BETWEEN**-steps).T
    ends = extremes(mixture, best[0], half_quantile(confidence_level), np.append(goals, -goals, 0))
    highest = float(mixture.at(best[0])) + mixture.constant
    weights = np.append(best, ends, axis=0).T
    return Fit(status, law.estimate, weights, highest, mixture.chances)


def nonparametric_passes(fit: Fit, k: Floats) -> Floats:
    """Return pass@k of the power law, or else of the likeliest mixture, then of each mixture."""
    if not fit.edge.shape[1]:
        return np.full((1, k.shape[-1]), np.nan)
    points = np.broadcast_to(k, (1 + fit.edge.shape[1], k.shape[-1]))
    mixed = np.einsum(
        "gm,gmk->mk", fit.edge, mixture_passes(fit.chances[:, None, None], points[1:])
    )
    if np.isnan(fit.estimate).any():
        # The likeliest mixture is the first.
        law = np.einsum("g,gk->k", fit.edge[:, 0], mixture_passes(fit.chances[:, None], points[0]))
    else:
        law = power_law_passes(fit.estimate, points[0])
    return np.append(law.reshape(1, -1), mixed, axis=0)


def mixture_passes(chances: Floats, k: Floats) -> Floats:
    """Return pass@k for each chance."""
    if chances.ndim == 1:
        chances = chances[:, None]
    with np.errstate(divide="ignore"):
        passes: Floats = -np.expm1(k * np.log1p(-chances)) + 0.0
    return passes


def most_likely(mixture: Mixture, tilts: Floats) -> Floats:
    """Return the weights that maximize log-likelihood + tilt @ weights, for each row of tilts."""
    # A primal-dual interior-point method, started inside the constraints of the dual:
    # minimize level - weight @ log(slopes), where slack = level - tilt - slopes @ likelihood >= 0.
    likelihood, weight = mixture.likelihood, mixture.weight
    n_chances = tilts.shape[1]
    w = np.full(tilts.shape, 1.0 / n_chances)
    slopes = weight / (w @ likelihood.T)
    height = tilts + slopes @ likelihood
    level = height.max(axis=1, keepdims=True) + weight.sum()
    slack = level - height
    for _ in range(_N_ROUNDS):
        total = w.sum(axis=1, keepdims=True)
        value = (tilts * w / total).sum(axis=1) + mixture.at(w / total)
        gap = level[:, 0] - np.log(slopes / weight) @ weight - weight.sum() - value
        if gap.max() < _GAP:
            break
        products = (w * slack).sum(axis=1)
        # Products that shrink faster than the gap would stop at a wrong corner.
        target = np.maximum(0.1 * products, 0.3 * gap)[:, None] / n_chances
        ratio, near = w / slack, target / slack
        rows = np.sqrt(ratio)[:, :, None] * likelihood.T
        right = np.stack([weight / slopes - near @ likelihood.T, ratio @ likelihood.T], axis=1)
        free, unit = np.moveaxis(_solve(weight / slopes**2, rows, right), 1, 0)
        # The level rises by as much as keeps the sum of the weights 1.
        over = near + ratio * (free @ likelihood)
        fall = ratio - ratio * (unit @ likelihood)
        rise = (over.sum(axis=1, keepdims=True) - 1.0) / fall.sum(axis=1, keepdims=True)
        slope_step = free + rise * unit
        slack_step = rise - slope_step @ likelihood
        step = near - ratio * slack_step - w
        dual = np.minimum(_length(slack, slack_step), _length(slopes, slope_step))
        w = w + _length(w, step) * step
        slopes, slack = slopes + dual * slope_step, slack + dual * slack_step
        level = level + dual * rise
    likely: Floats = w / w.sum(axis=1, keepdims=True)
    return likely


def _solve(diagonal: Floats, rows: Floats, right: Floats) -> Floats:
    """Solve (diag + rows' rows) x = right, (n_runs, n_rights, n), by the smaller of two systems."""
    n_rows, n = rows.shape[1:]
    across = np.swapaxes(rows, 1, 2)
    if n <= n_rows:
        full = across @ rows
        full[:, np.arange(n), np.arange(n)] += diagonal
        return np.swapaxes(np.linalg.solve(full, np.swapaxes(right, 1, 2)), 1, 2)
    scaled = rows / diagonal[:, None, :]
    part = right / diagonal[:, None, :]
    inner = np.eye(n_rows) + scaled @ across
    solved = np.linalg.solve(inner, rows @ np.swapaxes(part, 1, 2)).astype(np.float64)
    return part - np.swapaxes(solved, 1, 2) @ scaled


def _length(values: Floats, step: Floats) -> Floats:
    """Return how much of a step keeps positive values positive, (n_runs, 1), at most 1."""
    ratio = np.divide(-values, step, out=np.full_like(values, np.inf), where=step < 0.0)
    length: Floats = np.minimum(0.99 * ratio.min(axis=1, keepdims=True), 1.0)
    return length


def extremes(mixture: Mixture, best: Floats, fall: float, goals: Floats) -> Floats:
    """Return weights with the highest goal of those at most `fall` less likely, for each goal."""
    # Lagrange's dual: goal + price * log-likelihood, maximized, is convex in the price, and lowest
    # where the likelihood is that of the limit. Tangents at a price below (cheap) and one above (dear)
    # meet at the next price, and bound the lowest value.
    n_goals, n_problems = len(goals), mixture.weight.sum()
    highest = mixture.at(best)
    value = np.abs(goals @ best)
    variance = np.maximum(value * (1.0 - value), 1.0 / n_problems) / n_problems
    price = np.sqrt(variance / (2.0 * fall))
    inside = np.tile(best, (n_goals, 1))
    outside = inside.copy()
    # Per goal: price, dual and its slope.
    cheap, dear = np.full((2, 3, n_goals), np.nan)
    is_open: Flags = np.ones(n_goals, dtype=np.bool_)
    for _ in range(_N_PRICES):
        at = np.flatnonzero(is_open)
        w = most_likely(mixture, goals[at] / price[at, None])
        slope = fall - (highest - mixture.at(w))
        facts = np.stack([price[at], (goals[at] * w).sum(axis=1) + price[at] * slope, slope])
        is_in = slope >= 0.0
        inside[at[is_in]], dear[:, at[is_in]] = w[is_in], facts[:, is_in]
        outside[at[~is_in]], cheap[:, at[~is_in]] = w[~is_in], facts[:, ~is_in]
        is_between = ~np.isnan(cheap[0] + dear[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            meet = cheap[1] - cheap[2] * cheap[0] - dear[1] + dear[2] * dear[0]
            meet /= dear[2] - cheap[2]
            least = dear[1] + dear[2] * (meet - dear[0])
            gap = np.where(is_between, np.fmin(cheap[1], dear[1]) - least, dear[0] * dear[2])
        # The fall is about proportional to the square of 1 / price; a little further, to pass it.
        known = np.where(np.isnan(cheap[2]), dear[2], cheap[2])
        ratio = np.sqrt(np.maximum(1.0 - known / fall, 0.0)) * np.where(known > 0.0, 0.9, 1.1)
        is_open = ~(gap <= _ERROR)
        if not is_open.any():
            break
        following = np.where(is_between, meet, price * np.clip(ratio, 0.1, 10.0))
        price = np.where(is_open, following, price)
    outside = np.where(np.isnan(cheap[0])[:, None], inside, outside)
    share, most = np.zeros((n_goals, 1)), np.ones((n_goals, 1))
    for _ in range(20):
        middle = (share + most) / 2.0
        mixed = inside + middle * (outside - inside)
        is_likely = (highest - mixture.at(mixed) <= fall)[:, None]
        share, most = np.where(is_likely, middle, share), np.where(is_likely, most, middle)
    found: Floats = inside + share * (outside - inside)
    return found
