from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution

import ttsframe as tts
from ttsframe.statistics.extrapolation.mixture import (
    Mixture,
    extremes,
    mixture_passes,
    most_likely,
)
from ttsframe.statistics.extrapolation.model import Counts, half_quantile
from ttsframe.statistics.extrapolation.power_law import unbiased_passes
from ttsframe.statistics.extrapolation.registry import MODELS, predict_range

FALL = half_quantile(0.95)


def tally(n: np.ndarray | int, c: np.ndarray) -> Counts:
    pairs, weight = np.unique(np.stack(np.broadcast_arrays(n, c)), axis=1, return_counts=True)
    return Counts(*pairs.astype(float), weight.astype(float))


def drawn(
    alpha: float, beta: float, n_problems: int, n: int, seed: int, never: float = 0.0
) -> Counts:
    draws = np.random.default_rng(seed)
    chance = draws.beta(alpha, beta, n_problems) * (draws.random(n_problems) >= never)
    return tally(n, draws.binomial(n, chance))


def attempts_of(counts: Counts) -> pl.DataFrame:
    """Return the attempts of a run with these counts."""
    n, c = (np.repeat(column, counts.weight.astype(int)).astype(int) for column in counts[:2])
    table = pl.DataFrame({"n": n, "c": c}).with_row_index("problem_id")
    attempts = table.select("problem_id", "c", attempt=pl.int_ranges("n")).explode("attempt")
    return attempts.select("problem_id", "attempt", is_correct=pl.col("attempt") < pl.col("c"))


RAGGED = tally(np.array([1, 3, 8, 5, 9, 16, 16, 16, 12]), np.array([0, 1, 7, 0, 9, 2, 0, 1, 5]))
WORLDS = {
    "ragged": RAGGED,
    "u": drawn(0.5, 0.5, 60, 16, 1),
    "hard": drawn(0.2, 2.0, 40, 64, 2),
    "never": drawn(2.0, 3.0, 300, 8, 3, never=0.3),
    "few": drawn(0.5, 0.5, 3, 2, 8),
}


@pytest.mark.parametrize("world", WORLDS)
def test_no_direction_improves_the_likeliest_mixture(world: str) -> None:
    # The optimum of a concave likelihood: no single chance has a slope above the number of problems.
    mixture = Mixture.of(WORLDS[world])
    weights = most_likely(mixture, np.zeros((1, len(mixture.chances))))[0]
    assert (weights >= 0.0).all()
    assert weights.sum() == pytest.approx(1.0)
    slopes = (mixture.weight / (mixture.likelihood @ weights)) @ mixture.likelihood
    assert slopes.max() <= mixture.weight.sum() + 2e-4


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("k", [2.0, 40.0, 400.0])
def test_the_ends_are_those_of_a_general_optimiser(sign: float, k: float) -> None:
    whole = Mixture.of(drawn(0.3, 1.0, 40, 8, 5))
    coarse = np.linspace(0, len(whole.chances) - 1, 14).astype(int)
    mixture = Mixture(
        whole.chances[coarse], whole.likelihood[:, coarse], whole.weight, whole.constant
    )
    goal = sign * mixture_passes(mixture.chances, np.array([k]))[:, 0]
    best = most_likely(mixture, np.zeros((1, 14)))[0]
    floor = mixture.at(best) - FALL
    found = extremes(mixture, best, FALL, goal[None])[0]
    assert mixture.at(found) >= floor - 1e-9
    even = np.full(14, 1 / 14)
    expected = minimize(
        lambda w: -goal @ w,
        0.9 * best + 0.1 * even,
        jac=lambda _: -goal,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * 14,
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like},
            {
                "type": "ineq",
                "fun": lambda w: mixture.at(w) - floor,
                "jac": lambda w: (mixture.weight / (mixture.likelihood @ w)) @ mixture.likelihood,
            },
        ],
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert goal @ found == pytest.approx(-expected.fun, abs=1.5e-3)


def test_every_likely_beta_distribution_is_inside() -> None:
    counts = WORLDS["u"]
    fit = MODELS["nonparametric"].fit(counts, 0.95)
    assert fit.log_likelihood >= MODELS["beta_binomial"].fit(counts, 0.95).log_likelihood - 0.01
    mixture = Mixture.of(counts)
    middles = np.append(0.0, (mixture.chances[1:] + mixture.chances[:-1]) / 2)
    for alpha in (0.2, 0.4, 0.6, 1.0):
        for beta in (0.2, 0.4, 0.6, 1.0):
            weights = np.diff(np.append(beta_distribution.cdf(middles, alpha, beta), 1.0))
            if mixture.at(weights) + mixture.constant < fit.log_likelihood - FALL:
                continue
            k = np.array([1.0, 10.0, 300.0])
            passes = weights @ mixture_passes(mixture.chances, k)
            found = predict_range("nonparametric", fit, k)
            assert (found.low - 2e-3 <= passes).all()
            assert (passes <= found.high + 2e-3).all()


def test_ends_between_the_searched_numbers_of_attempts_are_near_those_searched_there() -> None:
    counts = WORLDS["hard"]
    fit = MODELS["nonparametric"].fit(counts, 0.95)
    k = np.array([3.0, 100.0, 500.0, 2000.0])
    mixture = Mixture.of(counts)
    goals = mixture_passes(mixture.chances, k).T
    best = most_likely(mixture, np.zeros((1, len(mixture.chances))))[0]
    ends = (extremes(mixture, best, FALL, np.append(goals, -goals, 0)) @ goals.T).T
    found = predict_range("nonparametric", fit, k)
    np.testing.assert_allclose(found.high, np.diag(ends[:, :4]), atol=0.015)
    np.testing.assert_allclose(found.low, np.diag(ends[:, 4:]), atol=0.015)


def test_the_estimate_is_the_power_law_and_moved_where_no_distribution_allows_it() -> None:
    # Half of the problems have a chance of .3, the others none: pass@k stays at a half.
    counts = Counts(*np.array([[64.0, 64.0, 64.0], [0.0, 17.0, 22.0], [600.0, 300.0, 300.0]]))
    run = attempts_of(counts)
    k = [1, 8, 64, 96, 128]
    default = tts.fit_pass_at_k(run).predict(k)
    law = tts.fit_pass_at_k(run, model="power_law").predict(k)
    is_out = (law["accuracy"] < default["ci_low"]) | (law["accuracy"] > default["ci_high"])
    assert default["is_moved"].to_list() == is_out.to_list()
    assert is_out.any()
    expected = law["accuracy"].clip(default["ci_low"], default["ci_high"])
    np.testing.assert_allclose(default["accuracy"], expected, rtol=1e-12)
    assert not law["is_moved"].any()
    for name in ("accuracy", "ci_low", "ci_high"):
        assert default[name].is_sorted()
    usual = tts.fit_pass_at_k(attempts_of(WORLDS["u"])).predict(k)
    assert not usual["is_moved"].any()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_wrong_and_all_right_leave_the_other_end_open(share: float) -> None:
    counts = Counts(np.array([8.0]), np.array([8.0 * share]), np.array([20.0]))
    fit = tts.fit_pass_at_k(attempts_of(counts))
    found = fit.predict([1, 8, 800])
    assert found["accuracy"].to_list() == [share] * 3
    assert found["ci_low" if share == 0.0 else "ci_high"].to_list() == [share] * 3
    # The likelihood at pass@8 = x is (1 - x)^20, whatever the distribution, and the mirror image.
    unseen = 1 - np.exp(-FALL / 20)
    if share == 0.0:
        assert found["ci_high"][1] == pytest.approx(unseen, abs=2e-3)
        assert found["ci_high"][2] > 0.9
    else:
        assert 0.0 < 1.0 - found["ci_low"][0] < 0.1
    assert not found["is_moved"].any()


def test_real_models_are_held_from_64_of_1100_attempts(shared_data: Path) -> None:
    source = pl.read_csv(shared_data / "noises" / "human_eval_plus.csv")
    tables = source.partition_by("model", maintain_order=True)
    tables = [table for table in tables if table["n"].min() >= 1024][::9]
    assert len(tables) > 4
    widths = []
    for table in tables:
        n, c = table["n"].to_numpy(), table["c"].to_numpy()
        whole = tally(n, c)
        k = np.array([256.0, 1024.0])
        truth = whole.weight @ unbiased_passes(whole, k) / len(n)
        thinned = np.random.default_rng(4).hypergeometric(c, n - c, 64)
        fit = MODELS["nonparametric"].fit(tally(64, thinned), 0.95)
        found = predict_range("nonparametric", fit, k)
        assert ((found.low <= truth) & (truth <= found.high)).all()
        widths.append(found.high - found.low)
    assert (np.mean(widths, axis=0) < [0.25, 0.4]).all()
