"""Votes of several models: the greedy choice against plain Python, and that it sees other problems only."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts

Runs = dict[tuple[str, str], list[str | None]]
"""Answers by model and problem; "a" is right."""


def random_runs(seed: int, n_problems: int = 10, n: int = 6) -> Runs:
    draws = random.Random(seed)
    likes = {
        (model, problem): draws.choices(["a", "b", "c"], k=2)
        for model in ("m1", "m2", "m3")
        for problem in range(n_problems)
    }
    return {
        (model, f"p{problem}"): [draws.choice([*liked, "a", None]) for _ in range(n)]
        for (model, problem), liked in likes.items()
    }


def frame_of(runs: Runs) -> pl.DataFrame:
    rows = [
        (model, problem, attempt, key, key == "a")
        for (model, problem), keys in runs.items()
        for attempt, key in enumerate(keys)
    ]
    schema = ["model", "problem_id", "attempt", "answer_key", "is_correct"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def plain_choice(runs: Runs, problems: list[str], n_steps: int) -> list[str]:
    """Add models one at a time, in exact arithmetic."""
    models = sorted({model for model, _ in runs})

    def result(members: list[str]) -> tuple[Fraction, Fraction]:
        right, weight = Fraction(0), Fraction(0)
        for problem in problems:
            totals: defaultdict[str, Fraction] = defaultdict(Fraction)
            for member in members:
                keys = runs[member, problem]
                for key in keys:
                    if key is not None:
                        totals[key] += Fraction(1, len(keys))
            weight += totals["a"]
            tied = [key for key, total in totals.items() if total and total == max(totals.values())]
            right += Fraction(tied.count("a"), max(len(tied), 1))
        return right, weight

    members: list[str] = []
    results = []
    for _ in range(n_steps):
        best = max(models, key=lambda model: (*result([*members, model]), -models.index(model)))
        members.append(best)
        results.append(result(members)[0])
    return members[: results.index(max(results)) + 1]


def used(found: pl.DataFrame, fold: int, selector: str) -> dict[str, int]:
    rows = found.filter(problem_fold=fold, selector=selector)
    assert rows["models"].n_unique() == 1
    return {row["model"]: row["n_attempts"] for row in rows["models"][0]}


@pytest.mark.parametrize("seed", range(6))
def test_the_choice_is_that_of_plain_python_on_the_other_problems(seed: int) -> None:
    runs = random_runs(seed)
    shuffled = frame_of(runs).sample(fraction=1.0, shuffle=True, seed=seed)
    found = tts.curves.ensemble_vote(shuffled, budget=6, n_steps=7)
    for fold in (0, 1):
        others = sorted(set(found.filter(pl.col("problem_fold") != fold)["problem_id"]))
        chosen = plain_choice(runs, others, 7)
        assert used(found, fold, "best_single") == {chosen[0]: 6}
        counts = Counter(chosen)
        exact = {model: Fraction(6 * n, len(chosen)) for model, n in counts.items()}
        given = used(found, fold, "ensemble")
        assert sum(given.values()) == 6
        assert all(abs(given.get(model, 0) - share) < 1 for model, share in exact.items())


def test_an_ensemble_votes_with_the_first_attempts_of_its_models() -> None:
    runs = random_runs(3)
    found = tts.curves.ensemble_vote(frame_of(runs).lazy(), budget=5).collect()
    assert found.height == 20
    for row in found.iter_rows(named=True):
        votes = Counter(
            key
            for part in row["models"]
            for key in runs[part["model"], row["problem_id"]][: part["n_attempts"]]
            if key is not None
        )
        leading = [key for key, n in votes.items() if n == max(votes.values())]
        assert (row["answer_key"] in leading) or not votes
        assert row["value"] == (row["answer_key"] == "a")
        assert row["n_attempts"] == 5


def test_grades_of_a_problem_have_no_part_in_the_choice_for_it() -> None:
    runs = frame_of(random_runs(5))
    found = tts.curves.ensemble_vote(runs, budget=6)
    fold = set(found.filter(problem_fold=1)["problem_id"])
    is_inside = pl.col("problem_id").is_in(fold)
    turned = runs.with_columns(is_correct=is_inside ^ pl.col("is_correct"))
    again = tts.curves.ensemble_vote(turned, budget=6)
    same = ["problem_id", "selector", "models", "answer_key"]
    assert_frame_equal(
        again.filter(problem_fold=1).select(same), found.filter(problem_fold=1).select(same)
    )


def test_models_that_solve_different_problems_are_better_together() -> None:
    keys = {"m1": ["a", "a", "b", "c"], "m2": ["b", "c", "a", "a"]}
    runs: Runs = {
        (model, f"p{p}"): [*(["a"] * 4 if (p % 2 == 0) == (model == "m1") else keys["m2"])]
        for model in keys
        for p in range(12)
    }
    weak = {key: (["b", "c", "d", "a"] if set(of) != {"a"} else of) for key, of in runs.items()}
    found = tts.curves.ensemble_vote(frame_of(weak), budget=4)
    compared = tts.compare(found, baseline="best_single").row(0, named=True)
    assert compared["accuracy"] == 1.0
    assert compared["baseline_accuracy"] == pytest.approx(0.5)


def test_problems_that_a_model_lacks_are_left_out_and_few_attempts_are_short() -> None:
    runs = random_runs(1, n_problems=6)
    del runs["m1", "p0"]
    found = tts.curves.ensemble_vote(frame_of(runs), budget=30)
    assert "p0" not in set(found["problem_id"])
    assert set(found["status"]) == {"short"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "budget == 0"),
        ({"budget": 4, "n_steps": 0}, "n_steps == 0"),
        ({"budget": 4, "n_folds": 1}, "n_folds == 1"),
        ({"budget": 4, "column": "gone"}, "missing column"),
        ({"budget": 4, "column": "selector"}, "column names"),
    ],
)
def test_what_is_impossible_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(tts.TtsframeError, match=words):
        tts.curves.ensemble_vote(frame_of(random_runs(0)).lazy(), **options)


def test_repeats_and_too_few_problems_are_refused() -> None:
    run = frame_of(random_runs(0, n_problems=1))
    with pytest.raises(tts.TtsframeError, match="1 problems were attempted by all 3 values"):
        tts.curves.ensemble_vote(run, budget=2)
    with pytest.raises(tts.TtsframeError, match=r"model 'm1', problem_id 'p0': an attempt appears"):
        tts.curves.ensemble_vote(pl.concat([run, run]), budget=2)
