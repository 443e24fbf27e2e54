"""Estimators over k in one call, and the limit of votes: against enumeration and real majorities."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import beta

import ttsframe as tts


def ragged(seed: int, n_problems: int = 12) -> pl.DataFrame:
    draws = random.Random(seed)
    rows = []
    for problem in range(n_problems):
        for attempt in range(draws.randint(5, 7)):
            key = draws.choice(["a", "a", "b", "c", None])
            rows.append((f"p{problem}", attempt, key, key == "a"))
    schema = ["problem_id", "attempt", "answer_key", "is_correct"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def votes_right(subset: tuple[tuple[str | None, bool], ...]) -> Fraction:
    counts = Counter(key for key, _ in subset if key is not None)
    if not counts:
        return Fraction(0)
    leading = [key for key, n in counts.items() if n == max(counts.values())]
    return Fraction(leading.count("a"), len(leading))


def by_enumeration(attempts: list[tuple[str | None, bool]], k: int, tau: float) -> dict[str, float]:
    subsets = [*combinations(attempts, k)]
    n_right = [sum(right for _, right in subset) for subset in subsets]
    found = {
        "pass@k": [Fraction(n > 0) for n in n_right],
        "pass^k": [Fraction(n == k) for n in n_right],
        "g_pass@k": [Fraction(n >= max(math.ceil(Fraction(str(tau)) * k), 1)) for n in n_right],
        "maj@k": [votes_right(subset) for subset in subsets],
    }
    return {name: float(sum(values) / len(values)) for name, values in found.items()}


@pytest.mark.parametrize("tau", [0.5, 0.75])
def test_each_estimator_is_its_mean_over_all_subsets(tau: float) -> None:
    run = ragged(3)
    curve = tts.curves.estimator_curve(run, k=[1, 2, 4], tau=tau)
    grouped = run.group_by("problem_id").agg(pl.struct("answer_key", "is_correct").alias("rows"))
    for k in (1, 2, 4):
        each = [
            by_enumeration([tuple(row.values()) for row in rows], k, tau)
            for rows in grouped["rows"].to_list()
        ]
        for name in each[0]:
            row = curve.row(
                by_predicate=(pl.col("selector") == name) & (pl.col("budget") == k), named=True
            )
            values = [problem[name] for problem in each]
            mean = math.fsum(values) / len(values)
            error = math.sqrt(
                math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)
            )
            assert row["accuracy"] == pytest.approx(mean, abs=1e-12)
            assert row["standard_error"] == pytest.approx(error, abs=1e-12)
            assert row["ci_low"] <= mean <= row["ci_high"]


def test_counts_give_the_same_and_votes_say_why_not() -> None:
    run = ragged(4)
    counts = run.group_by("problem_id").agg(
        n_attempts=pl.len(), n_correct=pl.col("is_correct").sum()
    )
    names: Any = ["pass@k", "pass^k", "g_pass@k"]
    of_run = tts.curves.estimator_curve(run, estimators=names, k=[1, 3])
    assert_frame_equal(tts.curves.estimator_curve(counts, estimators=names, k=[1, 3]), of_run)
    with pytest.raises(tts.TtsframeError, match="names 'maj@k', which counts"):
        tts.curves.estimator_curve(counts, k=2)


def test_too_few_attempts_are_short_and_clusters_widen() -> None:
    run = ragged(5).with_columns(text=pl.col("problem_id").str.slice(1).cast(pl.Int64) // 3)
    short = tts.curves.estimator_curve(run.lazy(), k=[1, 7]).collect()
    assert (short["n_short"] > 0).all()
    assert short["n_problems"].n_unique() == 1
    found = tts.curves.estimator_curve(run, estimators="pass^k", k=2, cluster="text")
    assert found.select("n_clusters", "n_problems").row(0) == (4, 12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "k == 0"),
        ({"k": 2, "estimators": "pass"}, "estimators == 'pass', must be one of 'pass@k'"),
        ({"k": 2, "estimators": []}, "estimators is empty"),
        ({"k": 2, "tau": 1.5}, "tau == 1.5"),
        ({"k": 2, "by": "gone"}, "missing column"),
    ],
)
def test_what_is_impossible_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(tts.TtsframeError, match=words):
        tts.curves.estimator_curve(ragged(0).lazy(), **options)


@pytest.mark.parametrize("posterior", [0.6, 0.95])
def test_the_limit_agrees_with_plain_python(posterior: float) -> None:
    run = pl.concat([ragged(seed).with_columns(model=pl.lit(f"m{seed}")) for seed in (1, 2)])
    shuffled = run.sample(fraction=1.0, shuffle=True, seed=1)
    found = tts.curves.majority_limit(shuffled, by="model", posterior=posterior)
    for row in found.iter_rows(named=True):
        values, n_tied, undecided = [], 0, []
        for _, part in run.filter(model=row["model"]).group_by("problem_id"):
            attempts = tuple(part.select("answer_key", "is_correct").rows())
            counts = Counter(key for key, _ in attempts if key is not None)
            first, second, *_ = sorted([*counts.values(), 0, 0], reverse=True)
            n_tied += first == second > 0
            values.append(votes_right(attempts))
            undecided.append(not beta.sf(0.5, first + 1, second + 1) > posterior)
        sure = sum(v for v, is_open in zip(values, undecided, strict=True) if not is_open)
        assert row["accuracy"] == pytest.approx(float(sum(values) / len(values)), abs=1e-12)
        assert (row["n_tied"], row["n_undecided"]) == (n_tied, sum(undecided))
        assert row["accuracy_if_undecided_wrong"] == pytest.approx(float(sure / len(values)))
        high = float((sure + sum(undecided)) / len(values))
        assert row["accuracy_if_undecided_right"] == pytest.approx(high)


@pytest.mark.parametrize("cluster", [None, "text"])
def test_the_limit_is_the_vote_of_all_attempts(cluster: str | None) -> None:
    run = tts.simulate_trajectories(40, 9, seed=2, keys=True)
    run = run.with_columns(text=pl.col("problem_id").str.slice(-1))
    limit = tts.curves.majority_limit(run, cluster=cluster).row(0, named=True)
    votes = tts.expected_accuracy(run, selectors="majority_vote", budgets=9, by="text")
    curve = tts.scaling_curve(votes, cluster=cluster).row(0, named=True)
    clustered = ("n_clusters", "df") if cluster else ()
    for name in ("accuracy", "standard_error", "ci_low", "ci_high", "n_problems", *clustered):
        assert limit[name] == pytest.approx(curve[name], abs=1e-12)


def test_problems_without_a_grade_are_left_out_and_repeats_refused() -> None:
    run = pl.DataFrame({
        "problem_id": ["a", "a", "b"],
        "attempt": [0, 1, 0],
        "answer_key": ["1", "1", "2"],
        "is_correct": [True, True, None],
    })
    found = tts.curves.majority_limit(run)
    assert found.select("accuracy", "n_problems", "n_left_out", "ci_low").row(0) == (
        1.0,
        1,
        1,
        None,
    )
    with pytest.raises(tts.TtsframeError, match="several rows with the same 'attempt'"):
        tts.curves.majority_limit(run.with_columns(attempt=0))
    assert tts.curves.majority_limit(run.clear()).height == 0


def test_modes_of_a_real_run_are_those_that_its_source_recorded(shared_data: Path) -> None:
    path = min((shared_data / "boinf").glob("*Qwen3-4B.jsonl"))
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    right = 0
    n_tied = 0
    for problem in recorded:
        counts = sorted(problem["answer_counts"].values(), reverse=True)
        n_tied += len(counts) > 1 and counts[0] == counts[1]
        right += problem["majority_answer"] == problem["gold_answer"]
    run = tts.score_trajectories(tts.read_trajectories(path))
    found = tts.curves.majority_limit(run).row(0, named=True)
    assert n_tied == found["n_tied"] == 0
    assert found["accuracy"] == pytest.approx(right / len(recorded))
