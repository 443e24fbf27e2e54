"""Normal and bootstrap intervals and standard errors, against scipy and plain loops."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars._typing import EngineType
from scipy import stats

import ttsframe as tts
from ttsframe.errors import ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")
METHODS = {"percentile": "percentile", "bca": "BCa"}


def draws(n: int, seed: int = 0) -> list[float]:
    return random.Random(seed).choices([0.0, 0.25, 0.5, 0.75, 1.0], [4, 1, 1, 2, 9], k=n)


def interval(
    values: Sequence[float | None], clusters: Sequence[object] | None = None, **options: object
) -> tuple[float, float]:
    frame = pl.DataFrame({"value": values}, schema={"value": pl.Float64})
    if clusters is not None:
        frame = frame.with_columns(pl.Series("cluster", clusters))
        options["cluster"] = "cluster"
    ends = frame.select(tts.bootstrap_interval("value", **options))  # type: ignore[arg-type]
    low, high = ends.unnest("value").row(0)
    return low, high


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("method", METHODS)
def test_a_bootstrap_of_the_same_draws_is_scipys(method: str, level: float) -> None:
    # Distinct values: units are drawn one by one, as scipy draws them, from the sorted values.
    values = np.random.default_rng(1).beta(2, 1, 40)
    expected = stats.bootstrap(
        (np.sort(values),),
        np.mean,
        n_resamples=3_000,
        confidence_level=level,
        method=METHODS[method],
        random_state=np.random.default_rng(7),
    ).confidence_interval
    found = interval(
        values.tolist(), method=method, n_resamples=3_000, confidence_level=level, seed=7
    )
    assert found == pytest.approx(tuple(expected), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_bootstrap_by_counts_of_equal_values_is_scipys_up_to_chance(method: str) -> None:
    values = draws(300)
    ends = [
        stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=20_000,
            batch=2_000,
            method=METHODS[method],
            random_state=np.random.default_rng(seed),
        ).confidence_interval
        for seed in range(3)
    ]
    expected = np.mean(ends, axis=0)
    found = interval(values, method=method, n_resamples=50_000, seed=3)
    # The mean is a multiple of 1/1200; one step, and the noise of the quantiles.
    assert found == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("method", METHODS)
def test_clusters_are_drawn_whole(method: str) -> None:
    values = draws(120, seed=2)
    clusters = [f"c{i * i % 17 % 6}{i % 5}" for i in range(120)]
    groups = defaultdict(list)
    for name, value in zip(clusters, values, strict=True):
        groups[name].append(value)
    sums = np.array([math.fsum(group) for group in groups.values()])
    sizes = np.array([len(group) for group in groups.values()], dtype=float)
    assert len(set(sizes)) > 2
    expected = stats.bootstrap(
        (sums, sizes),
        lambda s, n, axis=-1: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        n_resamples=40_000,
        batch=4_000,
        method=METHODS[method],
        random_state=np.random.default_rng(0),
    ).confidence_interval
    found = interval(values, clusters, method=method, n_resamples=40_000)
    assert found == pytest.approx(tuple(expected), abs=4e-3)


def test_clusters_of_one_are_no_clusters() -> None:
    values = draws(50)
    assert interval(values, list(range(50))) == interval(values)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_group_gets_what_it_gets_alone_in_any_order(engine: EngineType) -> None:
    frame = pl.DataFrame({
        "run": ["a"] * 40 + ["b"] * 60,
        "value": draws(100, seed=4),
        "cluster": [i % 9 for i in range(100)],
    })
    for cluster in (None, "cluster"):
        expression = tts.bootstrap_interval("value", cluster=cluster, n_resamples=500, seed=2)
        alone = [
            part.select(expression)["value"].item()
            for part in frame.partition_by("run", maintain_order=True)
        ]
        for seed in range(3):
            shuffled = frame.sample(fraction=1, shuffle=True, seed=seed).lazy()
            found = shuffled.group_by("run").agg(expression).sort("run").collect(engine=engine)
            assert found["value"].to_list() == alone


def test_the_seed_decides_and_nothing_else() -> None:
    values = draws(30)
    assert interval(values, seed=1, n_resamples=200) == interval(values, seed=1, n_resamples=200)
    assert interval(values, seed=1, n_resamples=200) != interval(values, seed=2, n_resamples=200)


def test_draws_in_several_batches_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).random(25).tolist()
    whole = interval(values, n_resamples=1_000)
    monkeypatch.setattr("ttsframe.statistics.resampling._BATCH", 700)
    assert interval(values, n_resamples=1_000) == pytest.approx(whole, abs=1e-12)


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=2, max_size=30), st.data())
def test_ends_lie_among_the_values_and_move_with_them(
    values: list[float], data: st.DataObject
) -> None:
    assume(len(set(values)) > 1)
    method = data.draw(st.sampled_from(list(METHODS)))
    low, high = interval(values, method=method, n_resamples=200)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    shift = data.draw(st.sampled_from([-3.0, 0.5, 10.0]))
    moved = interval([value + shift for value in values], method=method, n_resamples=200)
    assert moved == pytest.approx((low + shift, high + shift), abs=1e-9)


def test_equal_values_get_the_interval_of_as_many_problems() -> None:
    for method in METHODS:
        for value, n in ((1.0, 20), (0.0, 3), (0.1, 7)):
            flat = tts.student_t_interval(pl.lit(value), pl.lit(0.0), pl.lit(n))
            expected = pl.select(flat.struct.unnest()).row(0)
            assert expected[1] - expected[0] > 0.1
            assert interval([value] * n, method=method) == pytest.approx(expected)
        of_two = interval([0.5] * 4, ["a", "a", "b", "b"], method=method)
        assert of_two == interval([0.5] * 2, method=method)
        assert interval([3.0] * 20, method=method) == (None, None)


def test_the_mean_is_in_its_interval_at_any_level_of_confidence() -> None:
    for method in METHODS:
        for values in ([0.0] * 30 + [1.0], draws(9), [0.0, 0.0, 0.1, 1.0]):
            for level in (0.01, 0.3, 0.95):
                low, high = interval(values, method=method, confidence_level=level, n_resamples=99)
                mean = math.fsum(v for v in values if v is not None) / len(values)
                assert low <= mean + 1e-12
                assert mean - 1e-12 <= high


def test_what_cannot_be_resampled_is_null_and_nan_is_nan() -> None:
    assert interval([]) == (None, None)
    assert interval([None, None]) == (None, None)
    assert interval([0.5, None]) == (None, None)
    assert interval([0.5, 1.0], ["a", "a"]) == (None, None)
    assert all(map(math.isnan, interval([0.5, math.nan, 1.0])))
    assert interval([None, *draws(9), None]) == interval(draws(9))
    assert interval(draws(4), [None, None, "a", "b"]) == interval(draws(4), ["c", "c", "a", "b"])


def test_booleans_are_zeros_and_ones() -> None:
    frame = pl.DataFrame({"value": [True, False, True, True]})
    found = frame.select(tts.bootstrap_interval("value")).unnest("value").row(0)
    assert found == interval([1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "basic"}, ParameterError, "method == 'basic', must be one of"),
        ({"n_resamples": 0}, ParameterError, "n_resamples == 0"),
        ({"n_resamples": 10.0}, ParameterTypeError, "n_resamples must be an int, got float"),
        ({"confidence_level": 95}, ParameterError, "confidence_level == 95"),
        ({"seed": -1}, ParameterError, "seed == -1"),
        ({"cluster": 3}, ParameterTypeError, "cluster must be a column name"),
    ],
)
def test_impossible_options_are_refused_at_once(
    options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        tts.bootstrap_interval("value", **options)  # type: ignore[arg-type]


def error(values: Sequence[float | None], clusters: Sequence[object] | None = None) -> float | None:
    frame = pl.DataFrame({"value": values}, schema={"value": pl.Float64})
    if clusters is None:
        return frame.select(tts.standard_error("value")).item()
    named = frame.with_columns(pl.Series("cluster", clusters))
    return named.select(tts.standard_error("value", cluster="cluster")).item()


def plain_clustered_error(values: Sequence[float], clusters: Sequence[object]) -> float:
    """Write Bell and McCaffrey's CR2, as loops."""
    mean = statistics.fmean(values)
    sums: dict[object, float] = defaultdict(float)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value - mean
    n = len(values)
    sizes = Counter(clusters)
    return math.sqrt(math.fsum(s * s / (1 - sizes[g] / n) for g, s in sums.items())) / n


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=2, max_size=40))
def test_standard_errors_are_those_of_plain_loops(rows: list[tuple[float, int]]) -> None:
    values, clusters = map(list, zip(*rows, strict=True))
    n = len(values)
    assert error(values) == pytest.approx(statistics.stdev(values) / math.sqrt(n), abs=1e-12)
    assert error(values, range(n)) == pytest.approx(error(values), abs=1e-12)
    if len(set(clusters)) > 1:
        expected = plain_clustered_error(values, clusters)
        assert error(values, clusters) == pytest.approx(expected, abs=1e-12)
    else:
        assert error(values, clusters) is None


def test_standard_errors_of_little_are_null() -> None:
    assert error([]) is None
    assert error([0.5]) is None
    assert error([0.5, None]) is None
    assert error([0.5, 1.0, None], ["a", "a", "b"]) is None
    assert math.isnan(error([0.5, math.nan, 1.0], ["a", "b", "b"]) or 0.0)
    assert error([1.0, 0.0, 1.0], [None, None, 3]) == error([1.0, 0.0, 1.0], [1, 1, 3])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_normal_intervals_are_scipys(level: float) -> None:
    frame = pl.DataFrame({"m": [0.5, 0.3, 0.98], "e": [0.01, 0.1, 0.02]})
    ends = frame.select(tts.normal_interval("m", "e", confidence_level=level, bounds=None))
    for (mean, spread), found in zip(frame.rows(), ends["m"], strict=True):
        expected = stats.norm.interval(level, mean, spread)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx(expected, abs=1e-12)
    clipped = frame.select(tts.normal_interval("m", "e", confidence_level=0.99))["m"]
    assert clipped[2]["ci_high"] == 1.0


def test_normal_intervals_of_nothing_are_null() -> None:
    frame = pl.DataFrame({"m": [None, 0.5, 0.5], "e": [0.1, None, 0.0]})
    ends = frame.select(tts.normal_interval("m", "e"))["m"].to_list()
    assert [tuple(row.values()) for row in ends] == [(None, None)] * 3
