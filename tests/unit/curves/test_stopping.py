"""Rules that stop early, and their thresholds: against plain Python, draws of posteriors, and by hand."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.integrate import quad
from scipy.special import gammainc

import ttsframe as tts
from ttsframe.curves.stopping import STOPPING_RULES

RULES: Any = [*STOPPING_RULES]


def run_of(answers: list[list[str | None]], **columns: Any) -> pl.DataFrame:
    rows = [
        (f"p{p:02}", attempt, answer)
        for p, listed in enumerate(answers)
        for attempt, answer in enumerate(listed)
    ]
    schema = {"problem_id": pl.String, "attempt": pl.UInt32, "answer_key": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(**columns)


def lead_chance(counts: list[int], unseen: float | None) -> float:
    return integrated(tuple(sorted(counts, reverse=True)), unseen)


@cache
def integrated(counts: tuple[int, ...], unseen: float | None) -> float:
    """Integrate over the gamma variable of the leader, by scipy's quadrature."""
    first, *others = counts
    shapes = [n + 1.0 for n in others]
    if unseen is not None:
        shapes.append(unseen)
    elif not others:
        shapes.append(1.0)
    return quad(
        lambda x: x**first * math.exp(-x) / math.factorial(first) * math.prod(gammainc(shapes, x)),
        0,
        80,
    )[0]


def plain_stop(listed: list[str | None], budget: int, rule: str, threshold: float) -> int | None:
    """Return the attempt after which a rule stops, None if it does not."""
    counts: Counter[str] = Counter()
    for seen, answer in enumerate(listed[:budget], start=1):
        counts[answer] += answer is not None  # type: ignore[index]
        votes = [n for n in counts.values() if n]
        if rule == "early_stopping":
            w = int(threshold)
            window = listed[seen - w : seen]
            if seen % w == 0 and None not in window and len({*window}) == 1:
                return seen
        elif not votes:
            continue
        elif rule == "dirichlet":
            if lead_chance(votes, None) > threshold:
                return seen
        else:
            chance = lead_chance(votes, 1.3)
            if (len(votes) + 1) * chance / (1 - chance) >= threshold:
                return seen
    return None


@pytest.mark.parametrize(
    ("rule", "threshold"),
    [
        ("dirichlet", 0.7),
        ("dirichlet", 0.95),
        ("early_stopping", 1),
        ("early_stopping", 2),
        ("early_stopping", 3),
        ("bayes_factor", 3.0),
        ("bayes_factor", 10.0),
    ],
)
def test_every_rule_stops_where_plain_python_does(rule: Any, threshold: float) -> None:
    draws = random.Random(1)
    keys = ["a", "a", "a", "b", "b", "c", "d", None]
    answers = [[draws.choice(keys) for _ in range(draws.randint(1, 12))] for _ in range(12)]
    run = run_of(answers).sample(fraction=1.0, shuffle=True, seed=3)
    found = tts.curves.stopping_points(run, budgets=[5, 12], rule=rule, threshold=threshold)
    assert set(found["policy"]) == {rule}
    for row in found.iter_rows(named=True):
        listed = answers[int(row["problem_id"][1:])]
        stop = plain_stop(listed, row["budget"], rule, threshold)
        expected = (row["budget"], False) if stop is None else (stop, True)
        assert (row["n_attempts"], row["is_decided"]) == expected, (rule, listed)


def test_two_answers_decide_as_their_beta_distribution() -> None:
    answers: list[list[str | None]] = [list(listed) for listed in itertools.product("ab", repeat=7)]
    run = run_of(answers)
    by_beta = tts.curves.stopping_points(run, budgets=7, rule="beta", threshold=0.9)
    by_all = tts.curves.stopping_points(run, budgets=7, rule="dirichlet", threshold=0.9)
    assert_frame_equal(by_beta.drop("policy"), by_all.drop("policy"))


def test_the_chance_to_lead_is_that_of_draws() -> None:
    draws = np.random.default_rng(0)
    for counts in ([3, 2, 2], [6, 1, 1, 1, 1], [2, 2, 2], [9]):
        alphas = [n + 1.0 for n in counts] + ([1.0] if len(counts) == 1 else [])
        drawn = draws.dirichlet(alphas, 200_000)
        assert (drawn.argmax(axis=1) == 0).mean() == pytest.approx(
            lead_chance(counts, None), abs=5e-3
        )


@pytest.mark.parametrize("rule", RULES)
def test_a_stricter_threshold_never_stops_earlier_and_order_does_not_matter(rule: Any) -> None:
    run = tts.simulate_trajectories(40, 16, seed=1, keys=True)
    before = None
    for threshold in STOPPING_RULES[rule].thresholds[::2]:
        found = tts.curves.stopping_points(run, budgets=16, rule=rule, threshold=threshold)
        again = tts.curves.stopping_points(
            run.reverse().lazy(), budgets=16, rule=rule, threshold=threshold
        )
        assert again.collect().equals(found)
        if before is not None and rule != "early_stopping":
            assert (found["n_attempts"] >= before).all()
        before = found["n_attempts"]


def test_thresholds_are_chosen_on_other_problems() -> None:
    run = tts.simulate_trajectories(50, 16, seed=4, keys=True)
    tried = [0.6, 0.8, 0.95]
    found = tts.curves.tune_stopping(run, budget=16, thresholds=tried, max_loss=0.02)
    sizes = found.group_by("problem_fold").len().sort("problem_fold")["len"].to_list()
    assert sizes == [25, 25]
    whole = dict(tts.majority_vote(run, budgets=16).select("problem_id", "value").rows())
    tables = {}
    for threshold in tried:
        points = tts.curves.stopping_points(run, budgets=16, threshold=threshold)
        picked = tts.curves.select_allocated(run, allocation=points)
        value = dict(picked.select("problem_id", "value").rows())
        used = dict(points.select("problem_id", "n_attempts").rows())
        tables[threshold] = {name: (value[name], used[name]) for name in used}
    fold_of = dict(found.select("problem_id", "problem_fold").rows())
    for fold in (0, 1):
        others = [name for name, of in fold_of.items() if of != fold]
        least = sum(whole[name] for name in others) - 0.02 * len(others) - 1e-9
        good = {
            threshold: sum(table[name][1] for name in others)
            for threshold, table in tables.items()
            if sum(table[name][0] for name in others) >= least
        }
        chosen = min(good, key=lambda threshold: good[threshold])
        rows = found.filter(problem_fold=fold)
        assert set(rows["threshold"]) == {chosen}
        for row in rows.iter_rows(named=True):
            assert row["n_attempts"] == tables[chosen][row["problem_id"]][1]


def test_each_run_chooses_for_itself_and_folds_are_shared() -> None:
    easy = run_of([["1"] * 8] * 6, is_correct=True, model=pl.lit("sure"))
    mixed: list[list[str | None]] = [["2", "2", "1", "1", "1", "2", "1", "1"]] * 6
    hard = run_of(mixed, model=pl.lit("torn")).with_columns(is_correct=pl.col("answer_key") == "1")
    run = pl.concat([easy, hard.select(easy.columns)])
    found = tts.curves.tune_stopping(
        run.lazy(), budget=8, rule="early_stopping", thresholds=[2, 3, 8], by="model"
    ).collect()
    assert dict(found.group_by("model").agg(pl.col("threshold").unique().first()).rows()) == {
        "sure": 2.0,
        "torn": 3.0,
    }
    folds = found.group_by("problem_id").agg(pl.col("problem_fold").n_unique())
    assert set(folds["problem_fold"]) == {1}


def plain_looks(right: list[list[int]]) -> list[tuple[float, float, float]]:
    """Return accuracy and interval after 2, 3, ... attempts at every problem."""
    looks = []
    q = len(right)
    for n in range(2, min(map(len, right)) + 1):
        shares = [sum(listed[:n]) / n for listed in right]
        variance = sum(p * (1 - p) / (n - 1) for p in shares) / q**2
        half = 1.959963984540054 * math.sqrt(variance + 1.959963984540054**2 / 4 / (q * n) ** 2)
        mean = statistics.fmean(shares)
        looks.append((mean, max(mean - half, 0.0), min(mean + half, 1.0)))
    return looks


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_run_stops_when_its_interval_is_narrow(engine: Any) -> None:
    draws = random.Random(2)
    right = [[int(draws.random() < p) for _ in range(30)] for p in [0.1, 0.5, 0.7, 0.95] * 3]
    rows = [
        (q, i, bool(x), 10 * q + i) for q, listed in enumerate(right) for i, x in enumerate(listed)
    ]
    run = pl.DataFrame(
        rows, schema=["problem_id", "attempt", "is_correct", "n_tokens"], orient="row"
    ).sample(fraction=1.0, shuffle=True, seed=1)
    looks = plain_looks(right)
    widths = [0.12, 0.2, 0.01]
    found = tts.curves.stop_when_narrow(run.lazy(), width=widths, min_attempts=4).collect(
        engine=engine
    )
    assert found["width"].to_list() == sorted(widths)
    for row in found.iter_rows(named=True):
        narrow = [
            n
            for n, (_, low, high) in enumerate(looks, start=2)
            if n >= 4 and high - low <= row["width"]
        ]
        n = narrow[0] if narrow else 30
        assert (row["n_attempts"], row["is_narrow"]) == (n, bool(narrow))
        ends = (row["accuracy"], row["ci_low"], row["ci_high"])
        assert ends == pytest.approx(looks[n - 2], abs=1e-12)
        tokens = statistics.fmean(sum(10 * q + i for i in range(n)) for q in range(len(right)))
        assert row["tokens_per_problem"] == pytest.approx(tokens)
        assert (row["n_problems"], row["n_available"]) == (12, 30)


def test_what_not_every_problem_has_is_not_used() -> None:
    run = run_of([["1"] * 5, ["1"] * 3], is_correct=True)
    row = tts.curves.stop_when_narrow(run, width=0.1).row(0, named=True)
    assert (row["n_attempts"], row["n_available"], row["is_narrow"]) == (3, 3, False)
    gone = run.with_columns(is_correct=pl.when(pl.col("attempt") != 1).then("is_correct"))
    row = tts.curves.stop_when_narrow(gone, width=0.1).row(0, named=True)
    assert (row["n_available"], row["n_attempts"], row["accuracy"]) == (1, None, None)
    assert row["is_narrow"] in {None, False}


@pytest.mark.parametrize(
    ("call", "options", "words"),
    [
        (
            "stopping_points",
            {"budgets": 2, "rule": "luck"},
            "rule == 'luck', must be one of 'beta'",
        ),
        (
            "stopping_points",
            {"budgets": 2, "rule": "early_stopping", "threshold": 2.5},
            "whole number",
        ),
        (
            "stopping_points",
            {"budgets": 2, "rule": "bayes_factor", "threshold": 0},
            "threshold == 0",
        ),
        (
            "stopping_points",
            {"budgets": 2, "rule": "dirichlet", "threshold": 1.5},
            "threshold == 1.5",
        ),
        ("tune_stopping", {"budget": 2, "thresholds": []}, "thresholds is empty"),
        ("tune_stopping", {"budget": 2, "n_folds": 1}, "n_folds == 1"),
        ("tune_stopping", {"budget": 2, "max_loss": -0.1}, "max_loss == -0.1"),
        ("stop_when_narrow", {"width": 0.0}, "width == 0"),
        ("stop_when_narrow", {"width": []}, "width is empty"),
        ("stop_when_narrow", {"width": 0.1, "min_attempts": 1}, "min_attempts == 1"),
    ],
)
def test_what_is_impossible_is_refused_at_once(
    call: str, options: dict[str, Any], words: str
) -> None:
    run = run_of([["x", "y"]], is_correct=True)
    with pytest.raises(tts.TtsframeError, match=words):
        getattr(tts.curves, call)(run.lazy(), **options)


def test_repeated_attempts_are_refused() -> None:
    run = run_of([["x", "y"]], is_correct=True)
    twice = pl.concat([run, run])
    for call in (
        lambda: tts.curves.stop_when_narrow(twice, width=0.1),
        lambda: tts.curves.tune_stopping(twice, budget=2),
    ):
        with pytest.raises(tts.TtsframeError, match="appears twice"):
            call()
