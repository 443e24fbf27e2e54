from __future__ import annotations

from math import comb, sqrt

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, norm

import ttsframe as tts
from ttsframe.errors import ParameterError
from ttsframe.statistics.these_problems import _variances

Z = norm.ppf(0.975)


def passes(n: int, c: int, k: int) -> float:
    return 1.0 - comb(n - c, k) / comb(n, k)


def jackknife(n: int, c: int, k: int) -> float:
    """Return the jackknife's variance of pass@k, leaving out one attempt after the other."""
    left = [passes(n - 1, c - (i < c), k) for i in range(n)]
    mean = sum(left) / n
    return (n - 1) / n * sum((value - mean) ** 2 for value in left)


def run_of(counts: list[int], n: int, **more: object) -> pl.DataFrame:
    rows = [
        {"problem_id": f"p{q}", "attempt": i, "answer_key": str(i < c), "is_correct": i < c}
        for q, c in enumerate(counts)
        for i in range(n)
    ]
    return pl.DataFrame(rows).with_columns(**{name: pl.lit(value) for name, value in more.items()})


def expected(run: pl.DataFrame, budgets: list[int], **more: object) -> pl.DataFrame:
    return tts.expected_accuracy(
        run, selectors=["oracle", "majority_vote"], budgets=budgets, **more
    )


@pytest.mark.parametrize(("n", "k"), [(2, 1), (8, 1), (8, 3), (8, 4), (16, 8)])
def test_variances_are_those_of_leaving_out_single_attempts(n: int, k: int) -> None:
    rows = [{"value": passes(n, c, k), "n": float(n), "k": float(k)} for c in range(n + 1)]
    found = _variances(pl.Series(rows))
    np.testing.assert_allclose(found, [jackknife(n, c, k) for c in range(n + 1)], atol=1e-14)
    if k == 1:
        p = np.arange(n + 1) / n
        np.testing.assert_allclose(found, p * (1 - p) / (n - 1), atol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.8])
def test_the_expected_variance_is_that_of_the_estimate_or_above(k: int, p: float) -> None:
    n = 8
    c = np.arange(n + 1)
    chance = binom.pmf(c, n, p)
    estimate = np.array([passes(n, i, k) for i in c])
    truth = chance @ (estimate - chance @ estimate) ** 2
    mean = chance @ np.array([jackknife(n, i, k) for i in c])
    if k == 1:
        assert mean == pytest.approx(truth, rel=1e-9)
    else:
        assert mean > truth


def test_a_curve_for_these_problems_has_the_error_of_sampling_alone() -> None:
    counts = [0, 1, 3, 4, 7, 8]
    problems = expected(run_of(counts, 8), [1, 4])
    curve = tts.scaling_curve(problems, target="these_problems")
    usual = tts.scaling_curve(problems)
    assert curve["accuracy"].equals(usual["accuracy"])
    for row, new in zip(curve.rows(named=True), usual.rows(named=True), strict=True):
        k = row["budget"]
        if row["selector"] == "majority_vote" and k > 1:
            assert row["reason"].startswith("known for pass@k")
            assert row["standard_error"] is row["ci_low"] is row["share_from_samples"] is None
            continue
        error = sqrt(sum(jackknife(8, c, k) for c in counts)) / 6
        half = Z * sqrt(error**2 + Z**2 / 4 / (6 * 8 / k) ** 2)
        assert row["reason"] is None
        assert row["interval_for"] == "these_problems"
        assert row["standard_error"] == pytest.approx(error, rel=1e-9)
        assert row["ci_low"] == pytest.approx(max(row["accuracy"] - half, 0.0), rel=1e-9)
        assert row["ci_high"] == pytest.approx(min(row["accuracy"] + half, 1.0), rel=1e-9)
        share = (error / new["standard_error"]) ** 2
        assert row["share_from_samples"] == pytest.approx(share, rel=1e-9)
    assert curve.select(usual.columns).schema == usual.schema


def test_the_split_is_that_of_the_variance_components() -> None:
    run = tts.simulate_trajectories(40, 16, seed=3, keys=True, missing_share=0.0)
    split = tts.statistics.variance_components(run).row(0, named=True)
    lazy = tts.expected_accuracy(run.lazy(), selectors="oracle", budgets=1)
    curve = tts.scaling_curve(lazy, target="these_problems").collect().row(0, named=True)
    between = split["standard_error_all_attempts"] ** 2 / split["standard_error"] ** 2
    assert curve["share_from_samples"] == pytest.approx(1 - between, rel=1e-9)


@pytest.mark.parametrize("c", [0, 4])
def test_all_right_and_all_wrong_have_a_width(c: int) -> None:
    curve = tts.scaling_curve(expected(run_of([c] * 10, 4), [1, 2]), target="these_problems")
    known = curve.filter(pl.col("reason").is_null())
    assert known.height == 3
    assert (known["ci_high"] - known["ci_low"] > 0.02).all()
    assert (known["standard_error"] == 0.0).all()


def test_reasons_say_what_is_missing() -> None:
    run = run_of([1, 2, 0], 4)

    def reason(problems: pl.DataFrame) -> list[str]:
        curve = tts.scaling_curve(problems, target="these_problems")
        assert curve["ci_low"].null_count() == curve.height
        return curve["reason"].to_list()

    assert reason(expected(run, [3]).filter(selector="oracle")) == [
        "budget above half of the attempts at a problem"
    ]
    assert reason(expected(run.filter(pl.col("attempt") < 1), [1]))[0] == "one attempt at a problem"
    picked = tts.select_answers(run, selectors="oracle", budgets=[1, 2])
    assert set(reason(picked)) == {
        "the first attempts are one subset; expected_accuracy averages all"
    }
    seeds = pl.concat([picked.with_columns(seed=pl.lit(i)) for i in range(2)])
    with pytest.raises(ParameterError, match="replicates are averaged"):
        tts.scaling_curve(seeds, replicates="seed", target="these_problems")
    with pytest.raises(ParameterError, match="target == 'mine', must be one of"):
        tts.scaling_curve(picked, target="mine")  # type: ignore[arg-type]


def test_a_comparison_for_these_problems_adds_both_sides_variances() -> None:
    both = pl.concat([
        run_of([0, 1, 3, 8, 8], 8, model="a"),
        run_of([2, 2, 6, 8, 7], 8, model="b"),
    ])
    problems = expected(both, [1, 2], by="model")
    table = tts.compare(problems, column="model", baseline="a", target="these_problems")
    usual = tts.compare(problems, column="model", baseline="a")
    assert table["difference"].equals(usual["difference"])
    curves = tts.scaling_curve(problems, by="model", target="these_problems")
    for row in table.filter(pl.col("reason").is_null()).rows(named=True):
        sides = curves.filter(budget=row["budget"], selector=row["selector"])
        error = sqrt((sides["standard_error"] ** 2).sum())
        assert row["standard_error"] == pytest.approx(error, rel=1e-9)
        wide = sqrt(error**2 + 2 * Z**2 / 4 / (5 * 8 / row["budget"]) ** 2)
        assert row["ci_low"] == pytest.approx(row["difference"] - Z * wide, rel=1e-9)
        assert row["p_value"] == pytest.approx(2 * norm.sf(abs(row["difference"]) / wide), rel=1e-9)
        assert row["test"] == "sampling_z"
        assert (row["p_value"] < 0.05) == (not row["ci_low"] <= 0.0 <= row["ci_high"])
    votes = table.filter(selector="majority_vote", budget=2).row(0, named=True)
    assert votes["p_value"] is None
    assert votes["reason"].startswith("known for pass@k")
    same = tts.compare(problems, baseline="majority_vote", by="model", target="these_problems")
    assert set(same["reason"]) == {"both sides read the same attempts"}
    assert same["p_adjusted"].null_count() == same.height
    with pytest.raises(ParameterError, match="must be without them"):
        tts.compare(
            problems, column="model", baseline="a", replicates="answer", target="these_problems"
        )
