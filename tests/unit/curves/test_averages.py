"""Averages over subjects, and bands that hold at all budgets."""

from __future__ import annotations

import math
import statistics

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from benchmarks.average_coverage import auroc, bands, profile, strata
from ttsframe.errors import ColumnsError, DataError, FewProblemsWarning, ParameterError


@pytest.fixture(scope="module")
def problems() -> pl.DataFrame:
    run = tts.simulate_trajectories(60, 8, seed=4, keys=True)
    subject = pl.col("problem_id").str.slice(-1).str.to_integer()
    run = run.with_columns(subject=pl.when(subject < 6).then(pl.lit("a")).otherwise(pl.lit("b")))
    return tts.expected_accuracy(
        run, selectors=["majority_vote", "oracle"], budgets=[1, 2, 4], by="subject"
    )


def test_both_averages_are_those_of_plain_loops(problems: pl.DataFrame) -> None:
    curve = tts.curves.stratified_curve(problems, strata="subject")
    for row in curve.iter_rows(named=True):
        of_line = problems.filter(selector=row["selector"], budget=row["budget"])
        values = [part["value"].to_list() for part in of_line.partition_by("subject")]
        n = sum(map(len, values))
        weights = [0.5, 0.5] if row["average"] == "macro" else [len(own) / n for own in values]
        mean = sum(w * statistics.fmean(own) for w, own in zip(weights, values, strict=True))
        parts = [
            w * w * statistics.variance(own) / len(own)
            for w, own in zip(weights, values, strict=True)
        ]
        assert row["accuracy"] == pytest.approx(mean)
        assert row["standard_error"] == pytest.approx(math.sqrt(sum(parts)))
        spread = sum(p * p / (len(own) - 1) for p, own in zip(parts, values, strict=True))
        assert row["df"] == pytest.approx(sum(parts) ** 2 / spread)
        assert (row["n_strata"], row["n_problems"]) == (2, 60)
        assert row["ci_low"] < mean < row["ci_high"]
    micro = curve.filter(average="micro")
    alone = tts.scaling_curve(problems)
    assert micro["accuracy"].to_list() == pytest.approx(alone["accuracy"].to_list())
    assert (micro["standard_error"] <= alone["standard_error"] * 1.02).all()
    lazy = tts.curves.stratified_curve(problems.lazy(), strata="subject")
    assert_frame_equal(lazy.collect(), curve)
    assert lazy.collect_schema() == curve.schema


def test_subjects_of_equal_values_keep_a_width() -> None:
    frame = pl.DataFrame({
        "problem_id": range(9),
        "subject": ["a"] * 4 + ["b"] * 4 + ["c"],
        "value": [1.0] * 9,
    }).with_columns(
        budget=pl.lit(1, pl.UInt32),
        selector=pl.lit("x"),
        reduction=pl.lit(None, pl.String),
        status=pl.lit("ok"),
    )
    for row in tts.curves.stratified_curve(frame, strata="subject").iter_rows(named=True):
        assert (row["accuracy"], row["ci_high"]) == (1.0, 1.0)
        assert row["ci_low"] < 0.75
        assert row["standard_error"] > 0.0
    with pytest.raises(ColumnsError, match="'topic'"):
        tts.curves.stratified_curve(frame, strata="topic")


def clustered() -> pl.DataFrame:
    """Two subjects of unequal clusters, and a third subject of one cluster."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(13), [1, 9, 4, 2, 7, 3, 5, 12, 2, 6, 1, 8, 4])
    return pl.concat(
        pl.DataFrame({
            "problem_id": np.arange(len(cluster)),
            "text": cluster,
            "subject": np.minimum(cluster // 6, 2),
            "value": (rng.random(len(cluster)) < 0.1 * (cluster % 7) + 0.05 * budget).astype(float),
        }).with_columns(
            budget=pl.lit(budget, pl.UInt32),
            selector=pl.lit("x"),
            reduction=pl.lit(None, pl.String),
            status=pl.lit("ok"),
        )
        for budget in (1, 4)
    )


def test_clusters_inside_subjects_are_the_units_of_both_averages() -> None:
    frame = clustered()
    curve = tts.curves.stratified_curve(frame, strata="subject", cluster="text")
    for row in curve.iter_rows(named=True):
        parts, dfs, mean = [], [], 0.0
        for part in frame.filter(budget=row["budget"]).partition_by("subject"):
            weight = 1 / 3 if row["average"] == "macro" else len(part) / 64
            own = part["value"].mean()
            mean += weight * own
            error, df = part.select(
                tts.standard_error("value", cluster="text"),
                tts.statistics.degrees_of_freedom("value", cluster="text").alias("df"),
            ).row(0)
            # One cluster: as many values, alike, of a mean drawn towards a half.
            alone = (own + 1) / 3
            parts.append(weight**2 * (alone * (1 - alone) if error is None else error**2))
            dfs.append(df or 1.0)
        assert row["accuracy"] == pytest.approx(mean)
        assert row["standard_error"] == pytest.approx(math.sqrt(sum(parts)))
        spread = sum(p * p / df for p, df in zip(parts, dfs, strict=True))
        assert row["df"] == pytest.approx(sum(parts) ** 2 / spread)
        assert (row["n_strata"], row["n_problems"], row["n_clusters"]) == (3, 64, 13)
    with pytest.raises(DataError, match="text 1: in 2 values of 'subject'"):
        tts.curves.stratified_curve(
            frame.with_columns(subject=pl.col("problem_id") % 2), strata="subject", cluster="text"
        )


def test_a_band_of_clusters_is_wider_than_their_single_intervals() -> None:
    frame = clustered()
    band = tts.curves.simultaneous_curve(frame, cluster="text")
    single = tts.scaling_curve(frame, cluster="text")
    names = ["accuracy", "standard_error", "n_clusters", "df"]
    assert_frame_equal(band.select(names), single.select(names))
    assert (band["ci_low"] < single["ci_low"]).all()
    assert (band["ci_high"] > single["ci_high"]).all()
    assert band["quantile"].n_unique() == 1
    # A single budget has no other to hold, so that its band is its interval.
    one = frame.filter(budget=1)
    assert_frame_equal(
        tts.curves.simultaneous_curve(one, cluster="text", n_draws=200_000).drop("quantile"),
        tts.scaling_curve(one, cluster="text"),
        abs_tol=0.01,
    )
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=2)
    assert_frame_equal(tts.curves.simultaneous_curve(shuffled, cluster="text"), band)


def test_bands_are_wider_than_single_intervals(problems: pl.DataFrame) -> None:
    band = tts.curves.simultaneous_curve(problems, seed=1)
    single = tts.scaling_curve(problems)
    names = ["selector", "budget", "accuracy", "standard_error", "n_problems"]
    assert_frame_equal(band.select(names), single.select(names))
    assert (band["ci_low"] <= single["ci_low"]).all()
    assert (band["ci_high"] >= single["ci_high"]).all()
    assert band["quantile"].is_between(2.0, 3.5).all()
    assert_frame_equal(tts.curves.simultaneous_curve(problems.lazy(), seed=1).collect(), band)
    shuffled = problems.sample(fraction=1.0, shuffle=True, seed=2)
    assert_frame_equal(tts.curves.simultaneous_curve(shuffled, seed=1), band)
    by = tts.curves.simultaneous_curve(problems, by="subject")
    assert by.columns[0] == "subject"
    with pytest.raises(ParameterError, match="n_draws"):
        tts.curves.simultaneous_curve(problems, n_draws=0)


def test_one_budget_has_the_quantile_of_student(problems: pl.DataFrame) -> None:
    one = problems.filter(budget=2, selector="oracle")
    from scipy.stats import t

    # The largest of one is that of a normal resampling, times t / z.
    quantile = tts.curves.simultaneous_curve(one, n_draws=40_000)["quantile"][0]
    assert quantile == pytest.approx(t.ppf(0.975, 59), rel=0.06)
    assert quantile >= t.ppf(0.975, 59)


def test_a_seeded_part_of_the_coverage() -> None:
    margin = 300.0 * math.sqrt(0.05 * 0.95 / 200)
    both, single, _ = bands(200, 100, is_fractional=False)
    assert both > 95.0 - margin
    assert single < 93.0
    found = strata(200, [40, 20, 10], [0.9, 0.5, 0.2], 1)
    assert min(found.values()) > 95.0 - margin
    # Where Student's t knows too little of the few problems that make the difference.
    held, by_t = profile(300, 20, 0.98)
    assert held > 93.0
    assert by_t < 70.0
    _, held, _ = auroc(200, 20, 4, 3.5)
    assert held >= 98.0


def test_ten_ordered_problems_do_not_make_a_perfect_verifier() -> None:
    frame = pl.DataFrame({
        "problem_id": np.repeat(np.arange(10), 2),
        "is_correct": [True, False] * 10,
        "score": [0.9, 0.1] * 10,
    })
    row = tts.verifier_metrics(frame).row(0, named=True)
    assert (row["auroc_within"], row["ci_high"]) == (1.0, 1.0)
    assert row["ci_low"] == pytest.approx(0.7224672)


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        ({"score": -1.0}, "weights='sigmoid'"),
        ({"is_correct": pl.lit(None, pl.Boolean)}, "gold answers"),
    ],
)
def test_the_warning_of_few_problems_names_the_remedy_of_its_reason(
    changed: dict[str, pl.Expr | float], hint: str
) -> None:
    run = tts.simulate_trajectories(6, 4, seed=1, keys=True)
    run = run.with_columns(**{
        k: pl.lit(v) if isinstance(v, float) else v for k, v in changed.items()
    })
    problems = tts.select_answers(run, selectors="weighted_vote", budgets=4)
    with pytest.warns(FewProblemsWarning, match=hint):
        tts.scaling_curve(problems)
