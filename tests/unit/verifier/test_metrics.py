"""Discrimination and calibration of scores, beside scikit-learn and plain recounts."""

from __future__ import annotations

import itertools
import math
import random
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError

ENGINES = ["in-memory", "streaming"]
NAN = float("nan")


def tied_run(seed: int, n: int = 400, *, n_values: int = 11) -> pl.DataFrame:
    """Return random attempts whose scores take few values, so that most of them tie."""
    draws = random.Random(seed)
    rows = [
        {
            "problem_id": f"p{draws.randrange(max(n // 8, 1))}",
            "is_correct": draws.random() < 0.4,
            "score": draws.randrange(n_values) / (n_values - 1),
        }
        for _ in range(n)
    ]
    return pl.DataFrame(rows)


def plain_auroc(rows: list[tuple[bool, float]]) -> float:
    pairs = [(s > t) + 0.5 * (s == t) for y, s in rows for z, t in rows if y and not z]
    return sum(pairs) / len(pairs)


def plain_ece(rows: list[tuple[bool, float]], n_bins: int, *, by_mass: bool) -> float:
    """Recount the calibration error attempt by attempt."""
    ordered = sorted(score for _, score in rows)
    bins: dict[int, list[tuple[bool, float]]] = {}
    for y, s in rows:
        if by_mass:
            low, high = ordered.index(s), len(ordered) - ordered[::-1].index(s)
            place = (low + high) * n_bins // (2 * len(rows))
        else:
            place = max(next(b for b in range(1, n_bins + 1) if s <= b / n_bins) - 1, 0)
        bins.setdefault(place, []).append((y, s))
    gaps = [
        len(part) * abs(sum(y for y, _ in part) / len(part) - sum(s for _, s in part) / len(part))
        for part in bins.values()
    ]
    return math.fsum(gaps) / len(rows)


def only(frame: pl.DataFrame) -> dict[str, Any]:
    assert frame.height == 1
    return frame.row(0, named=True)


@pytest.mark.parametrize("n_values", [2, 11, 1_000_001])
@pytest.mark.parametrize("seed", range(5))
def test_numbers_equal_scikit_learn(seed: int, n_values: int) -> None:
    run = tied_run(seed, n_values=n_values)
    found = only(tts.verifier_metrics(run))
    graded, scores = run["is_correct"].to_numpy(), run["score"].to_numpy()
    assert found["auroc"] == pytest.approx(roc_auc_score(graded, scores), rel=1e-12)
    precision = average_precision_score(graded, scores)
    assert found["average_precision"] == pytest.approx(precision, rel=1e-12)
    assert found["brier"] == pytest.approx(brier_score_loss(graded, scores), rel=1e-12)
    within = [
        roc_auc_score(part["is_correct"], part["score"])
        for part in run.partition_by("problem_id")
        if part["is_correct"].n_unique() == 2
    ]
    assert found["n_judged"] == len(within)
    assert found["auroc_within"] == pytest.approx(np.mean(within), rel=1e-12)
    error = np.std(within, ddof=1) / math.sqrt(len(within))
    assert found["standard_error"] == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("n_bins", [1, 3, 10, 15])
@pytest.mark.parametrize("seed", range(3))
def test_calibration_errors_equal_a_plain_recount(seed: int, n_bins: int) -> None:
    for n_values in (6, 11, 10_001):
        run = tied_run(seed, 200, n_values=n_values)
        rows = run.select("is_correct", "score").rows()
        found = only(tts.verifier_metrics(run, n_bins=n_bins))
        width, mass = (plain_ece(rows, n_bins, by_mass=by_mass) for by_mass in (False, True))
        assert found["ece_equal_width"] == pytest.approx(width, abs=1e-12)
        assert found["ece_equal_mass"] == pytest.approx(mass, abs=1e-12)


def test_a_tie_counts_one_half_exactly() -> None:
    run = tied_run(0).with_columns(score=pl.lit(0.7))
    found = only(tts.verifier_metrics(run))
    assert found["auroc"] == found["auroc_within"] == 0.5


@pytest.mark.parametrize("engine", ENGINES)
def test_groups_and_reductions_are_what_each_is_alone(engine: Any) -> None:
    run = tts.simulate_trajectories(20, 8, seed=3, keys=True).with_columns(
        level=pl.col("problem_id").str.tail(1).cast(pl.Int64) % 3
    )
    names = list(tts.STEP_REDUCTIONS)
    for function in (
        tts.verifier_metrics,
        tts.verifier.reliability_curve,
        tts.verifier.best_threshold,
        tts.verifier.length_bias,
        tts.verifier.score_distribution,
    ):
        lazy = function(run.lazy(), reductions=names, by="level")
        found = lazy.collect(engine=engine)
        assert lazy.collect_schema() == found.schema
        assert found.columns[:2] == ["level", "reduction"]
        if function in {tts.verifier.best_threshold, tts.verifier.score_distribution}:
            continue  # their halves and their bins are those of all groups together
        for level, name in itertools.product((0, 1, 2), ("last", "prod")):
            alone = function(run.filter(level=level), reductions=name)
            assert_frame_equal(found.filter(level=level, reduction=name).drop("level"), alone)


def test_the_interval_of_the_area_covers_it_with_problems_as_units() -> None:
    # How well scores tell differs between problems by more than attempts could show.
    rng = np.random.default_rng(4)
    shape = n_runs, n_problems, _ = 400, 30, 32
    strength = rng.normal(1.0, 1.0, (n_runs, n_problems, 1))
    is_correct = rng.random(shape) < rng.random((n_runs, n_problems, 1))
    score = strength * is_correct + rng.normal(size=shape)
    run, problem, _ = np.indices(shape)
    found = tts.verifier_metrics(
        pl.DataFrame({
            "run": run.ravel(),
            "problem_id": problem.ravel(),
            "is_correct": is_correct.ravel(),
            "score": score.ravel(),
        }),
        by="run",
    )
    # The area is normal in strength / sqrt 2, of which the mean over N(1, 1) is known.
    truth = NormalDist().cdf(1.0 / math.sqrt(3.0))
    covers = found["ci_low"].le(truth) & found["ci_high"].ge(truth)
    assert 0.92 < covers.mean() < 0.98
    attempts = (found["auroc"] * (1 - found["auroc"]) / found["n_attempts"]).sqrt()
    assert (found["standard_error"] > 2 * attempts).all()


@pytest.mark.parametrize("n_values", [4, 10**9])
def test_what_is_not_scored_or_graded_changes_nothing_else(n_values: int) -> None:
    run = tied_run(7, n_values=n_values).with_columns(n_tokens=pl.int_range(pl.len()) % 37)
    # A tenth of each has neither, in problems of their own and among the others.
    lost = run.sample(80, seed=1)
    more = pl.concat([
        run,
        lost.head(40).with_columns(is_correct=None),
        lost.tail(40).with_columns(score=pl.lit(float("nan"))),
        lost.head(9).with_columns(score=None, problem_id=pl.lit("unscored")),
    ])
    for function in (
        tts.verifier_metrics,
        tts.verifier.reliability_curve,
        tts.verifier.length_bias,
    ):
        found, expected = function(more.sample(fraction=1, shuffle=True, seed=2)), function(run)
        counts = ["n_unscored", "n_ungraded"]
        left = [pl.exclude(counts)]
        assert_frame_equal(found.select(left), expected.select(left), rel_tol=1e-12)
    assert tts.verifier_metrics(more).select(counts).row(0) == (49, 40)


def test_problems_without_pairs_are_counted() -> None:
    run = pl.DataFrame({
        "problem_id": ["right", "right", "wrong", "both", "both", "ungraded", "unscored"],
        "is_correct": [True, True, False, True, False, None, True],
        "score": [0.1, 0.2, 0.9, 0.7, 0.3, 0.5, NAN],
    })
    found = only(tts.verifier_metrics(run))
    counts = ("n_problems", "n_judged", "n_all_right", "n_all_wrong")
    assert [found[name] for name in counts] == [3, 1, 1, 1]
    assert (found["n_attempts"], found["n_right"]) == (5, 3)
    assert (found["n_unscored"], found["n_ungraded"]) == (1, 1)
    assert found["auroc_within"] == 1.0
    assert found["standard_error"] is found["ci_low"] is None
    rows = [(True, 0.1), (True, 0.2), (False, 0.9), (True, 0.7), (False, 0.3)]
    assert found["auroc"] == pytest.approx(plain_auroc(rows))


@pytest.mark.parametrize("grade", [True, False])
def test_one_class_has_no_area(grade: bool) -> None:
    run = tied_run(1).with_columns(is_correct=pl.lit(grade))
    found = only(tts.verifier_metrics(run))
    assert found["auroc"] is found["auroc_within"] is None
    assert found["average_precision"] == (1.0 if grade else None)
    assert found["brier"] is not None


def test_scores_that_are_no_probabilities_are_never_rescaled() -> None:
    run = tied_run(2).with_columns(pl.col("score") * 8 - 4)
    found = only(tts.verifier_metrics(run))
    assert found["calibration_status"] == "out_of_range"
    assert found["n_out_of_range"] == run.filter(~pl.col("score").is_between(0, 1)).height
    assert found["brier"] is found["ece_equal_width"] is found["ece_equal_mass"] is None
    assert found["auroc"] == only(tts.verifier_metrics(tied_run(2)))["auroc"]
    assert tts.verifier.reliability_curve(run).height == 0
    counts = tts.verifier.score_distribution(run, n_bins=4)
    assert counts["bin_low"].to_list()[:4] == [-4.0, -2.0, 0.0, 2.0]
    assert counts["n_attempts"].sum() == run.height


def test_infinite_scores_are_ranked_and_counted() -> None:
    run = pl.DataFrame({
        "problem_id": ["p"] * 4,
        "is_correct": [True, False, True, False],
        "score": [math.inf, -math.inf, math.inf, 0.5],
    })
    found = only(tts.verifier_metrics(run))
    assert (found["auroc"], found["n_out_of_range"]) == (1.0, 3)
    assert tts.verifier.score_distribution(run, n_bins=2)["n_attempts"].to_list() == [2, 0, 0, 2]


@pytest.mark.parametrize("missing", [None, NAN])
def test_without_any_score_nothing_is_measured(missing: float | None) -> None:
    run = tied_run(3, 20).with_columns(score=pl.lit(missing, pl.Float64))
    found = only(tts.verifier_metrics(run))
    assert (found["calibration_status"], found["n_unscored"]) == ("unscored", 20)
    assert found["auroc"] is found["brier"] is None
    assert tts.verifier.reliability_curve(run).height == 0
    assert set(tts.verifier.best_threshold(run)["threshold"]) == {None}
    assert set(tts.verifier.score_distribution(run)["share"]) == {None}


@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
def test_a_reliability_curve_holds_every_attempt_once(binning: Any) -> None:
    run = tied_run(4)
    curve = tts.verifier.reliability_curve(run, binning=binning, n_bins=5)
    assert curve["n_attempts"].sum() == run.height
    weight = curve["n_attempts"] / run.height
    assert (weight * curve["accuracy"]).sum() == pytest.approx(run["is_correct"].mean())
    assert (weight * curve["mean_score"]).sum() == pytest.approx(run["score"].mean())
    error = (weight * (curve["accuracy"] - curve["mean_score"]).abs()).sum()
    metrics = only(tts.verifier_metrics(run, n_bins=5))
    assert error == pytest.approx(metrics[f"ece_{binning}"])
    inside = (curve["mean_score"] >= curve["bin_low"]) & (curve["mean_score"] <= curve["bin_high"])
    assert inside.all()


def test_intervals_of_a_bin_take_problems_as_units() -> None:
    # Every problem is all right or all wrong: 50 attempts say no more than one.
    n_problems = 40
    run = pl.DataFrame({
        "problem_id": [q for q in range(n_problems) for _ in range(50)],
        "is_correct": [q % 2 == 0 for q in range(n_problems) for _ in range(50)],
        "score": 0.5,
    })
    row = only(tts.verifier.reliability_curve(run, n_bins=1))
    assert row["standard_error"] == pytest.approx(0.5 / math.sqrt(n_problems - 1))
    assert row["ci_high"] - row["ci_low"] > 0.3
    pure = only(tts.verifier.reliability_curve(run.filter("is_correct"), n_bins=1))
    # Wilson's of 20 problems, with the quantile of Student's t with 19 degrees of freedom.
    assert (pure["ci_low"], pure["ci_high"]) == pytest.approx((20 / (20 + 2.093024**2), 1.0))
    assert pure["df"] == pytest.approx(19.0)


def test_a_score_of_a_bins_end_is_in_it_and_zero_is_in_the_first() -> None:
    run = pl.DataFrame({
        "problem_id": ["p"] * 4,
        "is_correct": [False, False, True, True],
        "score": [0.0, 0.5, 0.500001, 1.0],
    })
    curve = tts.verifier.reliability_curve(run, n_bins=2)
    assert curve.select("bin_low", "n_attempts").rows() == [(0.0, 2), (0.5, 2)]


def test_the_area_within_problems_shows_the_possible_gain_of_best_of_n() -> None:
    # The scores know which problem is easy and nothing about its attempts.
    easy = pl.DataFrame({"problem_id": "easy", "is_correct": [True] * 9 + [False], "score": 0.9})
    hard = pl.DataFrame({"problem_id": "hard", "is_correct": [True] + [False] * 9, "score": 0.1})
    found = only(tts.verifier_metrics(pl.concat([easy, hard])))
    assert found["auroc"] == pytest.approx(0.9)
    assert found["auroc_within"] == 0.5


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({"is_correct": pl.lit("yes")}, {}, ColumnsError, "'is_correct' is String"),
        ({}, {"n_bins": 0}, ParameterError, "n_bins == 0"),
        ({}, {"by": "auroc"}, ParameterError, "by names .'auroc'."),
        ({}, {"reductions": "last"}, ColumnsError, "'step_scores'"),
        ({}, {"reductions": "best"}, ParameterError, "reductions == 'best'"),
        ({}, {"confidence_level": 1.0}, ParameterError, "confidence_level"),
    ],
)
def test_what_cannot_be_used(
    change: dict[str, pl.Expr], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tts.verifier_metrics(tied_run(0, 9).lazy().with_columns(**change), **options)


def test_a_run_without_scores_is_refused() -> None:
    with pytest.raises(ColumnsError, match=r"'score'.*Hint"):
        tts.verifier_metrics(tied_run(0, 9).drop("score"))


@pytest.mark.parametrize("n_digits", [1, 15])
@pytest.mark.parametrize("seed", range(6))
def test_a_threshold_is_the_best_of_one_half_and_evaluated_on_the_other(
    seed: int, n_digits: int
) -> None:
    run = tts.simulate_trajectories(31, 8, seed=seed, keys=True).with_columns(
        pl.col("score").round(n_digits)
    )
    rows = tts.verifier.best_threshold(run, seed=seed).to_dicts()
    # Which half is which is known from the counts alone, so try to find one that fits both.
    assert [row["metric"] for row in rows] == ["accuracy", "f1"]
    assert rows[0]["n_problems"] + rows[0]["n_fitted_problems"] == 31
    assert rows[0]["n_problems"] == 16
    halves = [
        run.filter(pl.col("problem_id").is_in(half))
        for half in _halves(run["problem_id"].unique().sort().to_list(), seed)
    ]
    fitted, judged = ([*half.select("is_correct", "score").rows()] for half in halves)
    for row in rows:
        plain = _plain_accuracy if row["metric"] == "accuracy" else _plain_f1
        candidates = [*sorted({s for _, s in fitted}), math.inf]
        best = max(candidates, key=lambda t: (plain(fitted, t), -t))
        assert row["threshold"] == best
        assert row["fitted_value"] == pytest.approx(plain(fitted, best), rel=1e-12)
        assert row["value"] == pytest.approx(plain(judged, best), rel=1e-12)
        assert row["accept_all"] == pytest.approx(plain(judged, -1.0), rel=1e-12)
        assert row["accept_none"] == pytest.approx(plain(judged, math.inf), rel=1e-12)


def _halves(problems: list[str], seed: int) -> tuple[list[str], list[str]]:
    from ttsframe.verifier.tables import is_held_out

    is_held = is_held_out(len(problems), seed)
    pairs = list(zip(problems, is_held, strict=True))
    return [p for p, held in pairs if not held], [p for p, held in pairs if held]


def _plain_accuracy(rows: list[tuple[bool, float]], threshold: float) -> float:
    return sum((s >= threshold) == y for y, s in rows) / len(rows)


def _plain_f1(rows: list[tuple[bool, float]], threshold: float) -> float:
    hits = sum(s >= threshold and y for y, s in rows)
    return 2 * hits / (sum(s >= threshold for _, s in rows) + sum(y for y, _ in rows))


def test_a_single_problem_has_nothing_to_choose_from() -> None:
    run = tied_run(0, 6).with_columns(problem_id=pl.lit("only"))
    best = tts.verifier.best_threshold(run)
    assert best["threshold"].to_list() == [None, None]
    assert best["value"].to_list() == [None, None]
    assert best["n_fitted_problems"].to_list() == [0, 0]
    assert best["n_problems"].to_list() == [1, 1]


def test_where_all_are_wrong_the_best_threshold_accepts_none() -> None:
    run = tied_run(0, 80).with_columns(is_correct=pl.lit(value=False))
    accuracy, f1 = tts.verifier.best_threshold(run).to_dicts()
    assert (accuracy["threshold"], accuracy["value"]) == (math.inf, 1.0)
    assert f1["threshold"] is f1["value"] is None


def test_halves_are_of_problems_and_by_seed() -> None:
    run = tts.simulate_trajectories(40, 4, seed=1, keys=True)
    first, again, other = (tts.verifier.best_threshold(run, seed=seed) for seed in (1, 1, 2))
    assert_frame_equal(first, again)
    assert not first.equals(other)
    assert first["n_attempts"].to_list() == [80, 80]


def test_noise_has_a_fitted_value_that_is_too_high() -> None:
    rows = []
    for seed in range(40):
        run = tts.simulate_trajectories(20, 4, seed=seed, keys=True, score_strength=0.0)
        rows.append(tts.verifier.best_threshold(run).row(0, named=True))
    optimism = np.mean([row["fitted_value"] - row["value"] for row in rows])
    assert optimism > 0.03


def plain_spearman(x: list[float], y: list[float]) -> float:
    def ranks(values: list[float]) -> list[float]:
        ordered = sorted(values)
        return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]

    return float(np.corrcoef(ranks(x), ranks(y))[0, 1])


@pytest.mark.parametrize("n_digits", [1, 15])
@pytest.mark.parametrize("seed", range(3))
def test_length_bias_is_spearmans_correlation(seed: int, n_digits: int) -> None:
    run = tts.simulate_trajectories(12, 6, seed=seed, keys=True).with_columns(
        pl.col("score").round(n_digits)
    )
    found = tts.verifier.length_bias(run)
    lengths = {"steps": pl.col("step_scores").list.len(), "tokens": pl.col("n_tokens")}
    parts = {
        "all": run,
        "right": run.filter("is_correct"),
        "wrong": run.filter(~pl.col("is_correct")),
    }
    assert found.height == 6
    for row in found.iter_rows(named=True):
        part = parts[row["outcome"]]
        x, y = part["score"].to_list(), part.select(lengths[row["unit"]]).to_series().to_list()
        assert row["correlation"] == pytest.approx(plain_spearman(x, y), abs=1e-12)
        assert row["n_attempts"] == part.height


def test_the_product_is_biased_towards_few_steps_and_the_mean_is_not() -> None:
    run = tts.simulate_trajectories(200, 8, seed=5, keys=True, score_strength=0.0)
    bias = tts.verifier.length_bias(run, reductions=["prod", "geometric_mean", "min"])
    of_steps = bias.filter(unit="steps", outcome="all")
    found = dict(of_steps.select("reduction", "correlation").iter_rows())
    assert found["prod"] < -0.3
    assert found["min"] < -0.1
    assert abs(found["geometric_mean"]) < 0.1


def test_attempts_without_a_length_are_counted() -> None:
    run = pl.DataFrame({
        "problem_id": ["p"] * 4,
        "is_correct": [True, True, False, True],
        "score": [0.1, 0.2, 0.3, 0.4],
        "n_tokens": [10, 20, None, 2**40],
    })
    row = tts.verifier.length_bias(run).row(0, named=True)
    assert (row["correlation"], row["n_attempts"], row["n_unmeasured"]) == (1.0, 3, 1)
    constant = tts.verifier.length_bias(run.with_columns(n_tokens=pl.lit(7)))
    assert set(constant["correlation"]) == {None}
    with pytest.raises(ColumnsError, match=r"neither 'step_scores' nor 'n_tokens'"):
        tts.verifier.length_bias(run.drop("n_tokens"))
