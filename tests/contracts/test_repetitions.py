"""The same rows give the same bytes: on every repetition, and in any order where sums are sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import ttsframe as tts


def attempts() -> pl.DataFrame:
    """Return two models with fractional values, whose sums differ in the last bits by their order."""
    run = tts.simulate_trajectories(400, 6, seed=3, keys=True)
    value = pl.col("step_scores").list.last() / 3.0 + pl.col("is_correct").cast(pl.Float64) / 7.0
    two = [
        run.with_columns(model=pl.lit(name), value=value * scale)
        for name, scale in (("a", 1.0), ("b", 0.9))
    ]
    return pl.concat(two)


def problems(run: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts as values of problems, with a seed each."""
    return run.select(
        "problem_id",
        "model",
        "value",
        seed="attempt",
        budget=pl.lit(1),
        selector=pl.lit("own"),
        reduction=pl.lit(None, pl.String),
        status=pl.lit("ok"),
    )


CALLS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "variance_components": lambda run: tts.statistics.variance_components(
        run, value="value", by="model"
    ).rows(),
    "PairedDesign": lambda run: tts.statistics.PairedDesign.from_attempts(
        run, column="model", contender="a", baseline="b", value="value"
    ),
    "replicates": lambda run: tts.scaling_curve(
        problems(run), by="model", replicates="seed"
    ).rows(),
    "rank": lambda run: tts.rank(
        problems(run), column="model", replicates="seed", n_resamples=20
    ).rows(),
    "bayes_at_n": lambda run: tts.statistics.bayes_at_n(run, by="model").rows(),
    "majority_limit": lambda run: tts.curves.majority_limit(run, by="model").rows(),
    "stop_when_narrow": lambda run: tts.curves.stop_when_narrow(run, width=0.05, by="model").rows(),
    "estimator_curve": lambda run: tts.curves.estimator_curve(run, k=[1, 3], by="model").rows(),
}


@pytest.mark.parametrize("name", CALLS)
def test_repetitions_and_orders_give_equal_numbers(name: str) -> None:
    run = attempts()
    first = CALLS[name](run)
    for seed in range(4):
        assert CALLS[name](run) == first
        assert CALLS[name](run.sample(fraction=1.0, shuffle=True, seed=seed)) == first
