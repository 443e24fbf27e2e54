from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.optimize import minimize
from scipy.special import betaln
from scipy.stats import betabinom, chi2

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError
from ttsframe.statistics.extrapolation.beta import _Likelihood, beta_passes
from ttsframe.statistics.extrapolation.model import Counts, log_rising
from ttsframe.statistics.extrapolation.power_law import unbiased_passes
from ttsframe.statistics.extrapolation.registry import MODELS

MODEL_NAMES = list(MODELS)


def graded(counts: Sequence[tuple[int, int]], **more: object) -> pl.DataFrame:
    """Return a run with n attempts, c of them correct, at each problem."""
    n, c = np.array(counts, dtype=np.int64).reshape(-1, 2).T
    attempt = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return pl.DataFrame(
        {
            "problem_id": np.repeat(np.array([f"p{i}" for i in range(len(n))], dtype=object), n),
            "attempt": attempt.astype(np.uint32),
            "is_correct": attempt < np.repeat(c, n),
        },
        schema_overrides={"problem_id": pl.String},
    ).with_columns(**{name: pl.lit(value) for name, value in more.items()})


def drawn(
    alpha: float, beta: float, n_problems: int, n_attempts: int, *, seed: int, never: float = 0.0
) -> list[tuple[int, int]]:
    draws = np.random.default_rng(seed)
    chance = draws.beta(alpha, beta, n_problems) * (draws.random(n_problems) >= never)
    return [(n_attempts, int(c)) for c in draws.binomial(n_attempts, chance)]


def counts_of(counts: Sequence[tuple[int, int]]) -> Counts:
    n, c = np.array(counts, dtype=float).T
    return Counts(n, c, np.ones(len(n)))


def row(frame: pl.DataFrame) -> dict[str, float]:
    assert frame.height == 1
    return frame.row(0, named=True)


RAGGED = [(1, 0), (3, 1), (8, 7), (5, 0), (9, 9), (16, 2), (16, 0), (16, 1), (12, 5)]


@pytest.mark.parametrize("x", [1e-9, 0.3, 5.0, 29.999, 30.0, 31.0, 100.0, 1e4, 1e8])
@pytest.mark.parametrize("m", [1e-6, 0.2, 1.0, 16.0, 1e3, 1e6, 1e12])
def test_rising_factorials_are_exact_where_their_terms_cancel(x: float, m: float) -> None:
    with mpmath.workdps(60):
        expected = mpmath.loggamma(mpmath.mpf(x) + mpmath.mpf(m)) - mpmath.loggamma(x)
    assert log_rising(np.array(x), np.array(m)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (0.2, 2.0), (8.0, 2.0), (300.0, 900.0)])
def test_the_likelihood_is_that_of_scipy(alpha: float, beta: float) -> None:
    n, c = np.array(RAGGED).T
    expected = betabinom.logpmf(c, n, alpha, beta).sum()
    # scipy counts the orders of the attempts too, which no parameter changes.
    orders = -(np.log(n + 1) + betaln(c + 1, n - c + 1)).sum()
    logit, log_scale = math.log(alpha / beta), math.log(alpha + beta)
    found = _Likelihood(counts_of(RAGGED)).at(np.array([logit]), np.array([log_scale]))
    assert found[0] + orders == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("never", [0.05, 0.3])
def test_the_likelihood_with_problems_never_solved_is_the_mixture(never: float) -> None:
    n, c = np.array(RAGGED).T
    alpha, beta = 0.7, 1.9
    orders = -(np.log(n + 1) + betaln(c + 1, n - c + 1))
    chance = np.exp(betabinom.logpmf(c, n, alpha, beta) - orders)
    expected = np.log(never * (c == 0) + (1 - never) * chance).sum()
    logit, log_scale = math.log(alpha / beta), math.log(alpha + beta)
    found = _Likelihood(counts_of(RAGGED), never).at(np.array([logit]), np.array([log_scale]))
    assert found[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "counts",
    [RAGGED, *[drawn(*shape, 80, 16, seed=3) for shape in ((0.5, 0.5), (0.2, 2.0), (8.0, 2.0))]],
    ids=["ragged", "u", "hard", "easy"],
)
def test_the_fit_is_the_maximum_that_an_optimiser_finds(counts: list[tuple[int, int]]) -> None:
    n, c = np.array(counts).T
    best = minimize(
        lambda x: -betabinom.logpmf(c, n, *np.exp(x)).sum(),
        [0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-11},
    )
    found = row(tts.fit_pass_at_k(graded(counts), model="beta_binomial").parameters)
    assert found["status"] == "ok"
    np.testing.assert_allclose([found["alpha"], found["beta"]], np.exp(best.x), rtol=1e-3)
    height = betabinom.logpmf(c, n, found["alpha"], found["beta"]).sum()
    assert height == pytest.approx(-best.fun, abs=1e-6)


def test_the_interval_is_the_range_over_the_likelihood_region() -> None:
    counts = drawn(0.4, 1.5, 60, 12, seed=5)
    n, c = np.array(counts).T
    fit = tts.fit_pass_at_k(graded(counts), model="beta_binomial", confidence_level=0.9)
    found = row(fit.parameters)
    best = betabinom.logpmf(c, n, found["alpha"], found["beta"]).sum()
    grid = np.exp(np.linspace(-4.5, 4.0, 700))
    alpha, beta = np.meshgrid(grid, grid)
    values, weights = np.unique(c, return_counts=True)
    height = sum(
        weight * betabinom.logpmf(value, 12, alpha, beta)
        for value, weight in zip(values, weights, strict=True)
    )
    is_inside = height >= best - chi2.ppf(0.9, 1) / 2
    for k in (1, 12, 500):
        passes = -np.expm1(betaln(alpha, beta + k) - betaln(alpha, beta))[is_inside]
        at = row(fit.predict(k))
        assert at["ci_low"] == pytest.approx(passes.min(), abs=2e-3)
        assert at["ci_high"] == pytest.approx(passes.max(), abs=2e-3)


@pytest.mark.parametrize("never", [0.0, 0.3])
def test_many_problems_give_back_what_was_put_in(never: float) -> None:
    run = graded(drawn(1.0, 2.0, 3000, 16, seed=1, never=never))
    fit = tts.fit_pass_at_k(run, model="zero_inflated")
    found = row(fit.parameters)
    assert found["alpha"] == pytest.approx(1.0, rel=0.25)
    assert found["beta"] == pytest.approx(2.0, rel=0.25)
    assert found["never_solved"] == pytest.approx(never, abs=0.05)
    truth = (1 - never) * (1 - 2.0 / (2.0 + 1600))
    at = row(fit.predict(1600))
    assert at["ci_low"] < truth < at["ci_high"]
    plain = row(tts.fit_pass_at_k(run, model="beta_binomial").parameters)
    gain = 2 * (found["log_likelihood"] - plain["log_likelihood"])
    assert gain > 20 if never else -1e-3 < gain < 5


def test_the_simulation_is_recovered_and_extrapolated() -> None:
    run = tts.simulate_trajectories(
        2000, 32, seed=2, accuracy=(0.5, 2.0), keys=True, missing_share=0.0
    )
    found = row(tts.fit_pass_at_k(run, model="beta_binomial").parameters)
    assert found["alpha"] == pytest.approx(0.5, rel=0.1)
    assert found["beta"] == pytest.approx(2.0, rel=0.15)


def test_the_scalar_is_the_ratio_of_beta_functions() -> None:
    for alpha, beta, k in ((0.5, 0.5, 1), (0.2, 2.0, 64), (8.0, 2.0, 100_000), (1e6, 1e7, 3)):
        with mpmath.workdps(50):
            expected = 1 - mpmath.beta(alpha, beta + k) / mpmath.beta(alpha, beta)
        assert tts.statistics.PassAtKFit.beta_binomial(alpha, beta, k) == pytest.approx(
            float(expected), rel=1e-9
        )
    assert tts.statistics.PassAtKFit.beta_binomial(1, 1, 3) == pytest.approx(0.75, rel=1e-14)


@pytest.mark.parametrize(
    ("alpha", "beta", "k", "error"),
    [
        (0.0, 1.0, 1, ParameterError),
        (1.0, -1.0, 1, ParameterError),
        (math.nan, 1.0, 1, ParameterError),
        (math.inf, 1.0, 1, ParameterError),
        (1.0, 1.0, 0, ParameterError),
        (1.0, 1.0, 1.5, ParameterTypeError),
    ],
)
def test_the_scalar_refuses_what_is_no_distribution(
    alpha: float, beta: float, k: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        tts.statistics.PassAtKFit.beta_binomial(alpha, beta, k)


@pytest.mark.parametrize("model", ["beta_binomial", "zero_inflated"])
@pytest.mark.parametrize(
    ("counts", "status", "alpha", "beta"),
    [
        ([(8, 4)] * 20, "equal", math.inf, math.inf),
        ([(8, 0)] * 20, "all_wrong", None, None),
        ([(8, 8)] * 20, "all_correct", None, None),
        ([(8, 0)] * 10 + [(8, 8)] * 10, "all_or_none", 0.0, 0.0),
        ([(1, 0)] * 10 + [(1, 1)] * 10, "too_few", None, None),
    ],
)
def test_ends_are_named(
    model: str, counts: list[tuple[int, int]], status: str, alpha: float, beta: float
) -> None:
    found = row(tts.fit_pass_at_k(graded(counts), model=model).parameters)  # type: ignore[arg-type]
    assert (found["status"], found["alpha"], found["beta"]) == (status, alpha, beta)


def test_ends_are_extrapolated_by_what_they_stand_for() -> None:
    equal = tts.fit_pass_at_k(graded([(8, 4)] * 20), model="beta_binomial").predict([1, 3, 10**9])
    np.testing.assert_allclose(equal["accuracy"], [0.5, 0.875, 1.0], atol=1e-7)
    either = tts.fit_pass_at_k(
        graded([(8, 0)] * 10 + [(8, 8)] * 10), model="beta_binomial"
    ).predict([1, 10**9])
    np.testing.assert_allclose(either["accuracy"], [0.5, 0.5], atol=1e-6)
    right = tts.fit_pass_at_k(graded([(8, 8)] * 20), model="beta_binomial").predict([1, 10**9])
    assert right["accuracy"].to_list() == right["ci_high"].to_list() == [1.0, 1.0]
    # Where problems are always or never solved, 20 right ones leave exp(-1.92 / 20) possible.
    np.testing.assert_allclose(right["ci_low"], np.exp(-chi2.ppf(0.95, 1) / 40), rtol=1e-4)
    wrong = tts.fit_pass_at_k(graded([(8, 0)] * 20), model="beta_binomial").predict([1, 8, 800])
    assert wrong["accuracy"].to_list() == wrong["ci_low"].to_list() == [0.0, 0.0, 0.0]
    unseen = 1 - np.exp(-chi2.ppf(0.95, 1) / 40)
    np.testing.assert_allclose(wrong["ci_high"][:2], [unseen, unseen], rtol=1e-4)
    assert wrong["ci_high"][2] > 0.99


def test_nothing_is_said_where_nothing_is_known() -> None:
    one = graded([(1, 0), (1, 1)])
    for fit in (
        tts.fit_pass_at_k(one),
        tts.fit_pass_at_k(one.clear()),
        tts.fit_pass_at_k(one.with_columns(is_correct=pl.lit(None, pl.Boolean))),
        tts.fit_pass_at_k(one, model="power_law"),
    ):
        assert set(fit.predict([2, 4]).select("accuracy", "ci_low", "ci_high").rows()) == {
            (None, None, None)
        }
        assert fit.attempts_for(0.5).row(0)[1:] == (None, None, None)


@pytest.mark.parametrize("model", ["beta_binomial", "power_law"])
def test_ungraded_attempts_are_outside_n(model: str) -> None:
    run = graded(RAGGED[1:])
    more = pl.concat([
        run,
        run.with_columns(pl.col("attempt") + 100, is_correct=pl.lit(None, pl.Boolean)),
        run.head(3).with_columns(problem_id=pl.lit("q"), is_correct=pl.lit(None, pl.Boolean)),
    ])
    expected = tts.fit_pass_at_k(run, model=model).parameters  # type: ignore[arg-type]
    found = tts.fit_pass_at_k(more, model=model).parameters  # type: ignore[arg-type]
    assert found["n_ungraded"].to_list() == [1]
    assert_frame_equal(found.drop("n_ungraded"), expected.drop("n_ungraded"))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("model", ["beta_binomial", "power_law"])
def test_a_fit_does_not_depend_on_the_order_of_rows_or_the_engine(
    model: str, engine: pl.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ENGINE_AFFINITY", engine)
    run = graded(drawn(0.5, 2.0, 60, 16, seed=8))
    expected = tts.fit_pass_at_k(run, model=model)  # type: ignore[arg-type]
    for seed in range(2):
        shuffled = run.sample(fraction=1.0, shuffle=True, seed=seed).lazy()
        found = tts.fit_pass_at_k(shuffled, model=model)  # type: ignore[arg-type]
        assert found.parameters.equals(expected.parameters)
        assert found.predict([4, 400]).equals(expected.predict([4, 400]))
        assert found.attempts_for([0.3, 0.9]).equals(expected.attempts_for([0.3, 0.9]))


def test_groups_are_fitted_alone_and_come_in_order() -> None:
    one, two = graded(drawn(0.5, 2.0, 60, 16, seed=8)), graded(drawn(3.0, 2.0, 40, 8, seed=9))
    both = pl.concat([
        one.with_columns(model=pl.lit("x", pl.Categorical), seed=pl.lit(2)),
        two.with_columns(model=pl.lit(None, pl.Categorical), seed=pl.lit(1)),
    ])
    fit = tts.fit_pass_at_k(both, by=["model", "seed"])
    assert fit.by == ("model", "seed")
    for table, alone in (
        (fit.parameters, [tts.fit_pass_at_k(run).parameters for run in (two, one)]),
        (fit.predict([1, 64]), [tts.fit_pass_at_k(run).predict([1, 64]) for run in (two, one)]),
        (
            fit.attempts_for([0.2, 0.9]),
            [tts.fit_pass_at_k(run).attempts_for([0.2, 0.9]) for run in (two, one)],
        ),
    ):
        assert table.schema["model"] == pl.Categorical
        assert_frame_equal(table.drop("model", "seed"), pl.concat(alone))
        assert table["seed"].to_list() == sorted(table["seed"].to_list())
    empty = tts.fit_pass_at_k(both.clear(), by="model")
    assert empty.parameters.height == empty.predict(3).height == empty.attempts_for(0.5).height == 0
    assert empty.predict(3).schema == tts.fit_pass_at_k(both, by="model").predict(3).schema


def test_a_prediction_is_a_curve_that_the_chart_draws_beside_the_measured_one() -> None:
    run = tts.simulate_trajectories(60, 16, seed=1, keys=True)
    curve = tts.scaling_curve(tts.oracle(run, budgets=[1, 4, 16]))
    predicted = tts.fit_pass_at_k(run).predict([1, 4, 16, 64, 256])
    assert [*predicted.columns] == [*curve.columns, "interval_for", "is_moved"]
    assert set(predicted["interval_for"]) == {"new_problems"}
    assert predicted["budget"].to_list() == [1, 4, 16, 64, 256]
    assert predicted["n_problems"].to_list() == [60] * 5
    measured = curve.with_columns(subsets=pl.lit("all"))
    together = pl.concat([measured, predicted], how="diagonal")
    text = str(charts.scaling_curve(together).to_dict())
    assert "nonparametric" in text
    for name in ("accuracy", "ci_low", "ci_high"):
        assert predicted[name].is_sorted()
    assert (predicted["ci_low"] < predicted["accuracy"]).all()
    assert (predicted["accuracy"] < predicted["ci_high"]).all()


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_attempts_for_a_target_are_the_fewest_that_reach_it(model: str) -> None:
    fit = tts.fit_pass_at_k(graded(drawn(0.5, 1.0, 100, 16, seed=4)), model=model)  # type: ignore[arg-type]
    targets = [0.05, 0.5, 0.7, 0.9]
    answers = fit.attempts_for(targets)
    assert answers["target"].to_list() == targets
    for target, n_attempts, low, high in answers.rows():
        assert 1 <= low <= n_attempts <= high
        for column, needed in (("accuracy", n_attempts), ("ci_high", low), ("ci_low", high)):
            if needed == math.inf:
                continue
            assert needed == int(needed)
            # With the interval's ends reversed: what is surely reached takes more attempts.
            assert row(fit.predict(int(needed)))[column] >= target - 1e-9
            if needed > 1:
                assert row(fit.predict(int(needed) - 1))[column] < target


def test_whole_numbers_of_attempts_are_not_missed_by_rounding() -> None:
    fit = tts.fit_pass_at_k(graded([(8, 4)] * 20), model="beta_binomial")
    # One chance of a half for all, known to 1e-8: a little above and below 1 - 2^-k.
    found = fit.attempts_for([1 - 2.0**-k - 1e-6 for k in range(1, 6)])["n_attempts"]
    assert found.to_list() == [1.0, 2.0, 3.0, 4.0, 5.0]
    found = fit.attempts_for([1 - 2.0**-k + 1e-6 for k in range(1, 6)])["n_attempts"]
    assert found.to_list() == [2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_target_above_what_is_ever_solved_is_never_reached() -> None:
    run = graded(drawn(1.0, 2.0, 1000, 32, seed=1, never=0.4))
    answers = tts.fit_pass_at_k(run, model="zero_inflated").attempts_for([0.3, 0.8])
    assert answers["n_attempts"].is_infinite().to_list() == [False, True]
    assert answers["ci_low"].to_list()[1] == math.inf
    beta = tts.fit_pass_at_k(run, model="beta_binomial")
    assert beta.attempts_for(0.8)["n_attempts"].is_finite().all()


def test_the_power_law_is_fitted_to_the_unbiased_curve() -> None:
    run = graded(drawn(0.5, 1.0, 400, 64, seed=6))
    fit = tts.fit_pass_at_k(run, model="power_law")
    found = row(fit.parameters)
    by_problem = run.group_by("problem_id").agg(tts.pass_at_k("is_correct", [1, 8, 64]))
    unbiased = by_problem.unnest("is_correct").select(pl.exclude("problem_id").mean()).row(0)
    predicted = fit.predict([1, 8, 64])["accuracy"]
    np.testing.assert_allclose(predicted, unbiased, atol=0.03)
    law = [math.exp(found["scale"] * k ** found["exponent"]) for k in (1, 8, 64)]
    np.testing.assert_allclose(predicted, law, rtol=1e-12)
    assert found["scale"] < 0
    assert found["exponent"] < 0


def test_the_errors_of_the_power_law_are_those_of_a_bootstrap_over_problems() -> None:
    counts = np.array(drawn(0.5, 1.0, 300, 32, seed=6))
    fit = MODELS["power_law"].fit(counts_of([tuple(c) for c in counts]), 0.95)
    draws = np.random.default_rng(0)
    again = np.stack([
        MODELS["power_law"]
        .fit(counts_of([tuple(c) for c in counts[draws.integers(300, size=300)]]), 0.95)
        .estimate[:, 0]
        for _ in range(300)
    ])
    half = (fit.edge.max(axis=1) - fit.edge.min(axis=1)) / 2 / 1.96
    np.testing.assert_allclose(half, again.std(axis=0), rtol=0.2)


def test_unbiased_passes_are_those_of_the_estimator() -> None:
    counts = Counts(np.array([9.0, 9.0, 12.0]), np.array([0.0, 4.0, 11.0]), np.ones(3))
    found = unbiased_passes(counts, np.arange(1.0, 10.0))
    expected = [
        [tts.closed_form_passatk(int(n), int(c), k) for k in range(1, 10)]
        for n, c in zip(counts.n, counts.c, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_the_check_predicts_from_the_first_attempts_what_all_of_them_show() -> None:
    run = tts.simulate_trajectories(80, 16, seed=3, accuracy=(0.5, 2.0), keys=True)
    shuffled = run.sample(fraction=1.0, shuffle=True, seed=0).lazy()
    check = tts.statistics.check_extrapolation(
        shuffled, n_fitted=[4, 8], models=["power_law", "beta_binomial"]
    )
    assert check.select("model", "n_fitted", "budget").rows() == [
        (model, *sizes)
        for model in ("power_law", "beta_binomial")
        for sizes in ((4, 8), (4, 16), (8, 16))
    ]
    assert check["ratio"].to_list() == [2.0, 4.0, 2.0] * 2
    assert check["n_problems"].to_list() == [80] * 6
    for at in check.rows(named=True):
        first = run.filter(pl.col("attempt") < at["n_fitted"])
        fit = tts.fit_pass_at_k(first, model=at["model"])
        expected = row(fit.predict(at["budget"]))
        assert at["predicted"] == pytest.approx(expected["accuracy"], rel=1e-12)
        assert at["ci_low"] == pytest.approx(expected["ci_low"], rel=1e-12)
        passes = run.group_by("problem_id").agg(tts.pass_at_k("is_correct", at["budget"]))
        assert at["observed"] == pytest.approx(passes["is_correct"].mean(), rel=1e-12)
        assert at["error"] == pytest.approx(at["predicted"] - at["observed"], abs=1e-15)
        assert at["is_covered"] == (at["ci_low"] <= at["observed"] <= at["ci_high"])


def test_the_check_leaves_out_and_counts_problems_with_too_few_attempts() -> None:
    counts = drawn(0.5, 1.0, 40, 16, seed=2)
    run = graded([*counts, (3, 1), (5, 0), (2, 2)])
    check = tts.statistics.check_extrapolation(run, n_attempts=16, models="beta_binomial")
    assert set(check.select("n_problems", "n_short").rows()) == {(40, 3)}
    assert check["n_fitted"].unique().sort().to_list() == [2, 4, 8]
    whole = tts.statistics.check_extrapolation(graded(counts), models="beta_binomial")
    assert_frame_equal(check.drop("n_short"), whole.drop("n_short"))


def test_the_check_sees_that_a_beta_fit_takes_the_unsolvable_for_hard() -> None:
    run = graded(drawn(2.0, 3.0, 1500, 64, seed=2, never=0.3))
    # Attempts in a random order, not the correct ones first.
    place = pl.Series("place", np.random.default_rng(1).random(run.height))
    run = run.with_columns(attempt=place).with_columns(
        (pl.col("attempt").rank().over("problem_id") - 1).cast(pl.UInt32)
    )
    check = tts.statistics.check_extrapolation(
        run, n_fitted=4, models=["beta_binomial", "zero_inflated"]
    )
    last = check.filter(pl.col("budget") == 64)
    plain, inflated = (last.filter(pl.col("model") == name) for name in last["model"])
    assert row(plain)["error"] > 0.1
    assert not row(plain)["is_covered"]
    assert abs(row(inflated)["error"]) < 0.05
    assert row(inflated)["is_covered"]


def test_the_check_is_made_by_group() -> None:
    run = tts.simulate_trajectories(30, 8, seed=3, keys=True)
    both = pl.concat([
        run.with_columns(model_name=pl.lit("b")),
        run.filter(pl.col("attempt") < 4).with_columns(model_name=pl.lit("a")),
    ])
    check = tts.statistics.check_extrapolation(
        both, n_fitted=2, models="power_law", by="model_name"
    )
    assert check.select("model_name", "budget").rows() == [("a", 4), ("b", 4), ("b", 8)]
    alone = tts.statistics.check_extrapolation(run, n_fitted=2, models="power_law")
    assert_frame_equal(check.filter(pl.col("model_name") == "b").drop("model_name"), alone)


@pytest.mark.parametrize(
    "function",
    [tts.fit_pass_at_k, partial(tts.statistics.check_extrapolation, models="power_law")],
    ids=["fit_pass_at_k", "check_extrapolation"],
)
def test_runs_that_cannot_be_extrapolated_are_refused(function: object) -> None:
    run = graded(drawn(0.5, 1.0, 10, 8, seed=1))
    call = function  # type: ignore[assignment]
    with pytest.raises(DataError, match=r"is_exchangeable.*independent"):
        call(run.with_columns(is_exchangeable=pl.col("attempt") > 0))  # type: ignore[operator]
    call(run.with_columns(is_exchangeable=pl.lit(value=True)))  # type: ignore[operator]
    with pytest.raises(DataError, match=r"problem_id 'p0': attempt 0 appears twice.*by="):
        call(pl.concat([run, run]))  # type: ignore[operator]
    with pytest.raises(ColumnsError, match="'is_correct' is Int8, must be Boolean"):
        call(run.with_columns(pl.col("is_correct").cast(pl.Int8)))  # type: ignore[operator]
    with pytest.raises(ColumnsError, match="1 missing column for trajectories: 'is_correct'"):
        call(run.drop("is_correct"))  # type: ignore[operator]
    with pytest.raises(ParameterTypeError, match="must be a polars DataFrame or LazyFrame"):
        call(run.to_dict())  # type: ignore[operator]
    with pytest.raises(ParameterError, match=r"confidence_level == 1.0"):
        call(run, confidence_level=1.0)  # type: ignore[operator]


def test_impossible_parameters_are_refused() -> None:
    run = graded(drawn(0.5, 1.0, 10, 8, seed=1))
    fit = tts.fit_pass_at_k(run)
    with pytest.raises(
        ParameterError, match="model == 'weibull', must be one of 'nonparametric', 'beta_binomial'"
    ):
        tts.fit_pass_at_k(run, model="weibull")  # type: ignore[arg-type]
    for targets in (0.0, 1.0, [0.5, 1.5], []):
        with pytest.raises(ParameterError, match="target"):
            fit.attempts_for(targets)
    for draws in (0, [], [3, 0], 2**32):
        with pytest.raises(ParameterError):
            fit.predict(draws)
    with pytest.raises(ParameterTypeError, match="k is None"):
        fit.predict(None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="n_fitted == 1, must be at least 2"):
        tts.statistics.check_extrapolation(run, n_fitted=1)
    with pytest.raises(DataError, match=r"10 problems, 10 with at least 8 .* fit on \[5\]"):
        tts.statistics.check_extrapolation(run, n_fitted=5)
    with pytest.raises(DataError, match=r"10 problems, 0 with at least 99 graded attempts"):
        tts.statistics.check_extrapolation(run, n_attempts=99)
    with pytest.raises(ColumnsError, match="'attempt'"):
        tts.statistics.check_extrapolation(run.drop("attempt"))
    assert tts.fit_pass_at_k(run.drop("attempt")).parameters.equals(fit.parameters)


def test_a_beta_fit_is_fast_for_many_problems() -> None:
    n = np.full(20_000, 64.0)
    chance = np.random.default_rng(0).beta(0.5, 1.0, 20_000)
    c = np.random.default_rng(1).binomial(64, chance).astype(float)
    distinct, weight = np.unique(c, return_counts=True)
    grouped = Counts(n[: len(distinct)], distinct, weight.astype(float))
    one_by_one = Counts(n, c, np.ones(20_000))
    a, b = (MODELS["beta_binomial"].fit(counts, 0.95).estimate for counts in (grouped, one_by_one))
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_the_game_of_24_is_predicted_from_a_quarter_of_its_samples(shared_data: Path) -> None:
    # 100 puzzles, 100 samples each: pass@100 is 49 %; from 25 samples it would have been taken for
    # 42 or 43 %, within the intervals.
    file = "game24_gpt-4_0.7_naive_cot_sample_100_start900_end1000.json"
    games = json.loads((shared_data / "tree_of_thought" / file).read_text(encoding="utf-8"))
    grades = [(game["idx"], bool(info["r"])) for game in games for info in game["infos"]]
    run = pl.DataFrame(grades, schema=["problem_id", "is_correct"], orient="row").pipe(
        tts.renumber_attempts
    )
    check = tts.statistics.check_extrapolation(
        run, n_fitted=25, models=["beta_binomial", "power_law"]
    )
    last = check.filter(pl.col("budget") == 100)
    assert set(last["observed"].round(12)) == {0.49}
    assert last["is_covered"].all()
    assert last["error"].is_between(-0.08, -0.05).all()
    fit = tts.fit_pass_at_k(run, model="beta_binomial")
    found = row(fit.parameters)
    assert found["n_problems"] == 100
    assert 0.1 < found["alpha"] < 1.0
    at = beta_passes(fit.fits[0].estimate, np.array(100.0))[0]
    assert at == pytest.approx(0.49, abs=0.03)
