"""Clustered errors against dense matrices, and the intervals made from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ttsframe as tts
from benchmarks.cluster_coverage import coverage, size
from ttsframe.errors import ColumnsError, DataError, ParameterError

AGGREGATORS = (
    tts.PassAtK(k=4),
    tts.aggregators.PassHatK(k=2),
    tts.aggregators.GPassAtK(k=4, tau=0.5),
)


def dense_cr2(values: Sequence[float], clusters: Sequence[object]) -> tuple[float, float]:
    """Return CR2 and Bell and McCaffrey's degrees of freedom of a mean, by matrices of all values."""
    y, ones = np.array(values), np.ones((len(values), 1))
    n = len(y)
    inverse = np.linalg.inv(ones.T @ ones)
    residual_maker = np.eye(n) - ones @ inverse @ ones.T
    residuals = residual_maker @ y
    meat, columns = 0.0, []
    for cluster in dict.fromkeys(clusters):
        rows = [i for i, own in enumerate(clusters) if own == cluster]
        own = residual_maker[np.ix_(rows, rows)]
        roots, vectors = np.linalg.eigh(own)
        adjust = vectors @ np.diag(1.0 / np.sqrt(roots)) @ vectors.T
        x = ones[rows]
        meat += float((inverse @ x.T @ adjust @ residuals[rows])[0]) ** 2
        columns.append((residual_maker[:, rows] @ adjust @ x @ inverse)[:, 0])
    spread = np.linalg.eigvalsh(np.array(columns) @ np.array(columns).T)
    return math.sqrt(meat), float(spread.sum() ** 2 / (spread**2).sum())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=3, max_size=30).filter(
        lambda rows: len({cluster for _, cluster in rows}) > 1
    )
)
def test_cr2_and_its_degrees_of_freedom_are_those_of_dense_matrices(
    rows: list[tuple[float, int]],
) -> None:
    values, clusters = map(list, zip(*rows, strict=True))
    frame = pl.DataFrame({"value": values, "text": clusters})
    error, df = frame.select(
        tts.standard_error("value", cluster="text"),
        tts.statistics.degrees_of_freedom("value", cluster="text").alias("df"),
    ).row(0)
    wanted, wanted_df = dense_cr2(values, clusters)
    assert error == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert df == pytest.approx(wanted_df, rel=1e-6)
    curve = tts.scaling_curve(
        frame.with_columns(problem_id=pl.int_range(pl.len())), cluster="text"
    ).row(0, named=True)
    assert (curve["standard_error"], curve["df"]) == pytest.approx((error, df), abs=1e-12)
    assert curve["n_clusters"] == len(set(clusters))
    assert curve["ci_low"] <= curve["accuracy"] <= curve["ci_high"]


def test_clusters_of_one_are_student() -> None:
    """Student (1908), Biometrika 6, table of ten patients' sleep: t = 4.0621, p = 0.002833."""
    gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    frame = pl.DataFrame({"gain": gains, "patient": range(10)})
    error, df = frame.select(
        tts.standard_error("gain", cluster="patient"),
        tts.statistics.degrees_of_freedom("gain", cluster="patient").alias("df"),
    ).row(0)
    assert sum(gains) / 10 / error == pytest.approx(4.0621, abs=5e-5)
    assert df == pytest.approx(9.0)
    assert 2 * stats.t.sf(4.062127683, df) == pytest.approx(0.002833, abs=5e-7)


def test_equal_clusters_have_one_degree_of_freedom_less() -> None:
    frame = pl.DataFrame({"value": [0.0, 1.0, 0.25] * 8, "text": list(range(8)) * 3})
    df = frame.select(tts.statistics.degrees_of_freedom("value", cluster="text")).item()
    assert df == pytest.approx(7.0)
    alone = frame.select(tts.statistics.degrees_of_freedom("value")).item()
    assert alone == 23.0
    nothing = (
        frame.head(1).select(tts.statistics.degrees_of_freedom("value", cluster="text")).item()
    )
    assert nothing is None


def test_a_curve_of_equal_values_in_clusters_has_a_width() -> None:
    frame = pl.DataFrame({
        "problem_id": range(40),
        "value": [1.0] * 40,
        "text": [i // 10 for i in range(40)],
    })
    row = tts.scaling_curve(frame, cluster="text").row(0, named=True)
    assert row["ci_high"] == 1.0
    # As four values, with the quantile of t with 3 degrees of freedom.
    t = stats.t.ppf(0.975, 3)
    assert row["ci_low"] == pytest.approx(4 / (4 + t * t))


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    run = tts.simulate_trajectories(30, 8, seed=2, keys=True)
    return run.with_columns(text=pl.col("problem_id").str.slice(-1).str.to_integer() % 6)


def test_clusters_go_through_every_table(run: pl.DataFrame) -> None:
    problems = tts.select_answers(
        run, selectors=["majority_vote", "best_of_n", "oracle"], budgets=[1, 8], by="text"
    )
    halves = tts.select_answers(
        tts.curves.halve_attempts(run), selectors="majority_vote", budgets=4, by=["fold", "text"]
    )
    levels = tts.difficulty_levels(run, n_levels=2)
    costs = tts.curves.add_costs(problems, trajectories=run)
    tables = {
        "curve": tts.scaling_curve(problems, cluster="text"),
        "gap": tts.selection_gap(problems, cluster="text"),
        "levels": tts.level_curve(halves, levels=levels, cluster="text"),
        "cost": tts.cost_curve(costs, cluster="text"),
        "optimal": tts.optimal_curve(halves, levels=levels, cluster="text"),
        "turns": tts.verifier.over_optimization(
            problems.filter(selector="best_of_n"), cluster="text"
        ),
        "metrics": tts.verifier_metrics(run, cluster="text"),
        "reliability": tts.verifier.reliability_curve(run, cluster="text", n_bins=3),
        "profile": tts.verifier.step_profile(run, cluster="text", n_bins=2),
        "comparison": tts.compare(problems, cluster="text"),
    }
    for name, table in tables.items():
        assert table["n_clusters"].max() == 6, name
        assert table["df"].is_between(1.0, 5.0 + 1e-9).all(), name
    # The same problems, so the same degrees of freedom.
    assert tables["curve"]["df"].n_unique() == 1
    means = problems.filter(selector="oracle", budget=8)
    expected = dense_cr2(means["value"].to_list(), means["text"].to_list())
    found = tables["curve"].filter(selector="oracle", budget=8).row(0, named=True)
    assert (found["standard_error"], found["df"]) == pytest.approx(expected)
    areas = tables["metrics"].row(0, named=True)
    assert areas["auroc_within"] == tts.verifier_metrics(run)["auroc_within"][0]
    report = tts.verifier_report(run, cluster="text")
    assert report.metrics.equals(tables["metrics"])
    assert report.over_optimization is not None
    assert "n_clusters" in report.over_optimization.columns


def test_single_problems_as_clusters_keep_the_errors(run: pl.DataFrame) -> None:
    run = run.with_columns(own=pl.col("problem_id"))
    halves = tts.select_answers(
        tts.curves.halve_attempts(run), selectors="majority_vote", budgets=4, by=["fold", "own"]
    )
    levels = tts.difficulty_levels(run, n_levels=2)
    plain = tts.level_curve(halves, levels=levels)["standard_error"].to_list()
    clustered = tts.level_curve(halves, levels=levels, cluster="own")["standard_error"].to_list()
    # Halves of different numbers of problems make problems of different weights.
    assert clustered == pytest.approx(plain, rel=0.03)
    metrics = [tts.verifier_metrics(run, **more) for more in ({}, {"cluster": "own"})]
    errors = [table["standard_error"][0] for table in metrics]
    assert errors[0] == pytest.approx(errors[1])


def test_what_is_no_column_of_clusters_is_refused(run: pl.DataFrame) -> None:
    problems = tts.select_answers(run, selectors="majority_vote", budgets=8, by="text")
    with pytest.raises(ColumnsError, match="'texts'"):
        tts.scaling_curve(problems, cluster="texts")
    with pytest.raises(ParameterError, match="cluster names 'text'"):
        tts.scaling_curve(problems, by="text", cluster="text")
    broken = problems.with_columns(text=pl.int_range(pl.len()))
    twice = pl.concat(
        [problems.with_columns(budget=pl.lit(1, pl.UInt32)), broken], how="diagonal_relaxed"
    )
    with pytest.raises(DataError, match=r"in 2 values of 'text', expected one"):
        tts.scaling_curve(twice, cluster="text")
    with pytest.raises(DataError, match=r"in 2 values of 'text', expected one"):
        tts.curves.simultaneous_curve(twice, cluster="text")
    keyed = run.with_columns(text="attempt", answer_key=pl.lit("1"))
    with pytest.raises(DataError, match=r"problem_id .*: in 8 values of 'text', expected one"):
        tts.curves.majority_limit(keyed, cluster="text")
    with pytest.raises(DataError, match=r"problem_id .*: in 8 values of 'text', expected one"):
        tts.verifier_metrics(run.with_columns(text="attempt"), cluster="text")


def test_the_table_of_an_aggregator_is_averaged(run: pl.DataFrame) -> None:
    attempts = run.select("problem_id", "text", value=pl.col("is_correct").cast(pl.Float64))
    for aggregator in AGGREGATORS:
        table = aggregator(attempts, ["problem_id"])
        row = tts.scaling_curve(table).row(0, named=True)
        assert row["accuracy"] == pytest.approx(table["value"].mean())
        assert row["n_problems"] == 30
        assert row["ci_low"] < row["accuracy"] < row["ci_high"]
    few = tts.PassAtK(k=9)(attempts, ["problem_id"])
    row = tts.scaling_curve(few).row(0, named=True)
    assert (row["accuracy"], row["n_problems"], row["n_ungraded"]) == (None, 0, 30)


@pytest.mark.parametrize(
    ("n_clusters", "p", "icc"), [(10, 0.5, 0.1), (20, 0.1, 0.3), (40, 0.1, 0.3)]
)
def test_a_seeded_part_of_the_coverage(n_clusters: int, p: float, icc: float) -> None:
    found = coverage(500, n_clusters, 1.0, p, icc)
    assert found["named"] > 93.0 - 400.0 * math.sqrt(0.93 * 0.07 / 500) / 2
    assert found["not named"] < 85.0


def test_a_seeded_part_of_the_size() -> None:
    found = size(500, 20, 1.0, 0.4)
    assert found["CR2"] < 6.5 + 2 * 100.0 * math.sqrt(0.065 * 0.935 / 500)
    assert found["CR2"] < found["CR1"]
    assert found["df"] < 19.0
