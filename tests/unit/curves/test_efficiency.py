"""Ratios of budgets at equal accuracy: by hand, against plain Python, and their intervals."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import DataError, ParameterError

BUDGETS = (1, 4, 16, 64)


def curves(**lines: list[float]) -> pl.DataFrame:
    """Return two problems that both have the value of each curve."""
    return pl.DataFrame([
        {
            "problem_id": problem,
            "selector": selector,
            "reduction": None,
            "budget": budget,
            "value": value,
            "status": "ok",
        }
        for selector, values in lines.items()
        for budget, value in zip(BUDGETS, values, strict=False)
        for problem in ("a", "b")
    ]).with_columns(pl.col("reduction").cast(pl.String))


def only(problems: pl.DataFrame, **options: Any) -> dict[str, Any]:
    found = tts.curves.efficiency_gain(problems, baseline="base", **options)
    assert found.height == 1
    return found.row(0, named=True)


def test_the_budget_is_interpolated_on_its_logarithm() -> None:
    row = only(curves(base=[0.2, 0.3, 0.4, 0.5], other=[0.3, 0.45, 0.55, 0.6]))
    # Half-way from 0.45 at 4 to 0.55 at 16 is 8.
    assert (row["accuracy"], row["baseline_budget"], row["status"]) == (0.5, 64.0, "ok")
    assert row["budget"] == pytest.approx(8.0)
    assert row["gain"] == pytest.approx(8.0)
    assert (row["bound"], row["n_problems"], row["n_left_out"]) == (None, 2, 0)


def test_the_baseline_is_taken_where_it_first_is_highest() -> None:
    row = only(curves(base=[0.2, 0.4, 0.3, 0.1], other=[0.2, 0.3, 0.4, 0.4]))
    assert (row["accuracy"], row["baseline_budget"], row["budget"]) == (0.4, 4.0, 16.0)
    assert row["gain"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("base", "other", "accuracy", "status", "bound"),
    [
        # The other needs more than 64 attempts for what takes 16.
        ([0.2, 0.3, 0.5, 0.5], [0.1, 0.2, 0.3, 0.4], None, "at_most", 16 / 64),
        # The other needs at most 1 attempt for what takes 64.
        ([0.2, 0.3, 0.4, 0.5], [0.6, 0.7, 0.8, 0.9], None, "at_least", 64.0),
        # The baseline needs more than 64 for what the other does with 16.
        ([0.2, 0.3, 0.4, 0.5], [0.2, 0.4, 0.7, 0.9], 0.7, "at_least", 64 / 16),
        # The baseline needs at most 1 for what the other does with 4.
        ([0.2, 0.3, 0.4, 0.5], [0.05, 0.1, 0.2, 0.3], 0.1, "at_most", 1 / 4),
        ([0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6], 0.9, "unknown", None),
        ([0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6], 0.1, "unknown", None),
        # Both are there at once, and no better than asked.
        ([0.2, 0.2, 0.2, 0.2], [0.2, 0.3, 0.4, 0.5], None, "ok", None),
    ],
)
def test_what_is_never_reached_is_bounded(
    base: list[float], other: list[float], accuracy: float | None, status: str, bound: float | None
) -> None:
    row = only(curves(base=base, other=other), accuracy=accuracy)
    assert (row["status"], row["bound"]) == (status, pytest.approx(bound))
    assert (row["gain"] is None) == (status != "ok")


def plain_gain(base: list[float], other: list[float]) -> float | None:
    height, reached = max(base), []
    for curve in (base, other):
        for i, value in enumerate(curve):
            if value >= height:
                if i == 0:
                    reached.append(math.log(BUDGETS[0]))
                    break
                low, high = math.log(BUDGETS[i - 1]), math.log(BUDGETS[i])
                share = (height - curve[i - 1]) / (value - curve[i - 1])
                reached.append(low + share * (high - low))
                break
    return math.exp(reached[0] - reached[1]) if len(reached) == 2 else None


def test_gain_and_interval_are_those_of_plain_python() -> None:
    rng = np.random.default_rng(0)
    n = 30
    chances = {"base": [0.2, 0.3, 0.45, 0.5], "other": [0.2, 0.45, 0.6, 0.7]}
    luck = rng.random(n)
    values = {name: (luck[:, None] < np.array(p)).astype(float) for name, p in chances.items()}
    problems = pl.DataFrame([
        {"problem_id": q, "selector": name, "budget": b, "value": value, "status": "ok"}
        for name, rows in values.items()
        for q, row in enumerate(rows)
        for b, value in zip(BUDGETS, row, strict=True)
    ])
    shuffled = problems.sample(fraction=1.0, shuffle=True, seed=1)
    row = only(shuffled, n_resamples=500, seed=7)
    base, other = (list(values[name].mean(axis=0)) for name in ("base", "other"))
    assert row["gain"] == pytest.approx(plain_gain(base, other))
    weights = np.random.default_rng(7).multinomial(n, np.full(n, 1 / n), 500)
    gains = []
    for weight in weights:
        means = [list(weight @ values[name] / n) for name in ("base", "other")]
        gain = plain_gain(*means)
        assert gain is not None
        gains.append(gain)
    gains.sort()
    assert row["ci_low"] == pytest.approx(gains[int(0.025 * 499)])
    assert row["ci_high"] == pytest.approx(gains[math.ceil(0.975 * 499)])


def test_the_interval_covers_the_true_gain() -> None:
    # Curves are linear in the logarithm of the budget; the other is four times cheaper.
    rng = np.random.default_rng(5)
    n, n_runs, hits, n_open = 150, 120, 0, 0
    for _ in range(n_runs):
        luck = rng.random((n, 1))
        other_luck = np.where(rng.random((n, 1)) < 0.5, luck, rng.random((n, 1)))
        base = (luck < np.array([0.1, 0.3, 0.5, 0.7])).astype(float)
        other = (other_luck < np.array([0.3, 0.5, 0.7, 0.9])).astype(float)
        problems = pl.DataFrame({
            "problem_id": np.tile(np.repeat(np.arange(n), 4), 2),
            "selector": ["base"] * 4 * n + ["other"] * 4 * n,
            "budget": [*BUDGETS] * 2 * n,
            "value": np.concatenate([base.ravel(), other.ravel()]),
            "status": "ok",
        })
        row = only(problems, accuracy=0.45, n_resamples=300)
        # An end that is null is no bound.
        hits += (row["ci_low"] or 0.0) <= 4.0 <= (row["ci_high"] or math.inf)
        n_open += row["ci_low"] is None or row["ci_high"] is None
    assert 0.89 <= hits / n_runs <= 0.99
    assert n_open / n_runs < 0.2


def test_ends_that_resamples_only_bound_are_null() -> None:
    rng = np.random.default_rng(1)
    luck = rng.random(40)
    rows = {
        "base": (luck[:, None] < np.array([0.2, 0.3, 0.4, 0.5])).astype(float),
        # About as good at its best, so that many resamples never reach the baseline.
        "other": (rng.random(40)[:, None] < np.array([0.1, 0.2, 0.4, 0.55])).astype(float),
    }
    problems = pl.DataFrame([
        {"problem_id": q, "selector": name, "budget": b, "value": value, "status": "ok"}
        for name, matrix in rows.items()
        for q, row in enumerate(matrix)
        for b, value in zip(BUDGETS, row, strict=True)
    ])
    found = only(problems)
    assert found["ci_low"] is None
    assert found["ci_high"] is not None


def test_costs_are_the_budget_where_they_are_known() -> None:
    problems = curves(base=[0.2, 0.3, 0.4, 0.5], other=[0.2, 0.3, 0.4, 0.5]).with_columns(
        cost=pl.col("budget") * pl.when(pl.col("selector") == "base").then(100.0).otherwise(50.0),
        cost_unit=pl.lit("tokens"),
    )
    row = only(problems)
    assert row["gain"] == pytest.approx(2.0)
    assert (row["budget_unit"], row["baseline_budget"]) == ("tokens", 6400.0)
    without = problems.with_columns(cost=pl.when(pl.col("problem_id") == "a").then("cost"))
    assert only(without)["n_left_out"] == 1


def test_models_are_compared_within_their_selector() -> None:
    run = tts.simulate_trajectories(40, 8, seed=0, keys=True)
    problems = pl.concat(
        tts.select_answers(
            run, selectors=["majority_vote", "oracle"], budgets=[1, 2, 4, 8]
        ).with_columns(model=pl.lit(model), budget=pl.col("budget") * factor)
        for model, factor in (("small", 2), ("large", 1))
    )
    found = tts.curves.efficiency_gain(problems, column="model", baseline="small", n_resamples=20)
    assert found.select("model", "selector", "gain").rows() == [
        ("large", "majority_vote", 2.0),
        ("large", "oracle", 2.0),
    ]
    # All resamples agree, which is no interval.
    assert found.select("ci_low", "ci_high").rows() == [(None, None)] * 2
    again = tts.curves.efficiency_gain(
        problems.lazy(), column="model", baseline="small", n_resamples=20
    ).collect(engine="streaming")
    assert_frame_equal(again, found)


def test_clusters_are_drawn_whole() -> None:
    draws = random.Random(6)
    chance = [draws.random() for _ in range(12)]
    lines = {
        name: [[min(1.0, p * height + 0.1 * draws.random()) for height in heights] for p in chance]
        for name, heights in {
            "majority_vote": (0.4, 0.6, 0.8),
            "best_of_n": (0.5, 0.8, 0.9),
        }.items()
    }
    rows = [
        (p, name, budget, value)
        for name, of_line in lines.items()
        for p, values in enumerate(of_line)
        for budget, value in zip((1, 4, 16), values, strict=True)
    ]
    schema = ["problem_id", "selector", "budget", "value"]
    problems = pl.DataFrame(rows, schema=schema, orient="row").with_columns(status=pl.lit("ok"))
    alone = tts.curves.efficiency_gain(problems)
    each = problems.with_columns(text=pl.col("problem_id").cast(pl.String))
    found = tts.curves.efficiency_gain(each, cluster="text")
    # A cluster a problem: another order of the same problems.
    assert found.drop("n_clusters", "ci_low", "ci_high").equals(alone.drop("ci_low", "ci_high"))
    assert found["n_clusters"].item() == 12
    texts = problems.with_columns(text=pl.col("problem_id") // 3)
    once = tts.curves.efficiency_gain(texts, cluster="text").row(0, named=True)
    # Copies of a cluster's problems in the same cluster change no resample's mean.
    twice = pl.concat([texts, texts.with_columns(pl.col("problem_id") + 100)])
    again = tts.curves.efficiency_gain(twice, cluster="text").row(0, named=True)
    assert (once["n_clusters"], again["n_clusters"]) == (4, 4)
    for end in ("gain", "ci_low", "ci_high"):
        assert again[end] == pytest.approx(once[end])
    split = texts.with_columns(text=pl.col("text") + (pl.col("budget") > 1).cast(pl.Int64))
    with pytest.raises(tts.TtsframeError, match="in 2 values of 'text', expected one"):
        tts.curves.efficiency_gain(split, cluster="text")


def test_what_is_impossible_is_refused() -> None:
    problems = curves(base=[0.2, 0.3], other=[0.3, 0.4])
    with pytest.raises(DataError, match="no row with selector 'majority_vote' to compare it with"):
        tts.curves.efficiency_gain(problems)
    with pytest.raises(DataError, match=r"problem_id 'a': 4 rows at 2 budgets"):
        only(pl.concat([problems, problems]))
    with pytest.raises(DataError, match="not positive"):
        only(problems.with_columns(budget=pl.col("budget") - 1))
    with pytest.raises(ParameterError, match="by names 'selector'"):
        only(problems, by="selector")
    with pytest.raises(ParameterError, match="accuracy == 50"):
        only(problems, accuracy=50)
    ungraded = problems.with_columns(status=pl.lit("ungraded"), value=pl.lit(None, pl.Float64))
    row = only(ungraded)
    assert (row["status"], row["n_problems"], row["n_left_out"], row["gain"]) == (
        "unknown",
        0,
        2,
        None,
    )
