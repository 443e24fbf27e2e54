"""A seeded part of ``benchmarks/hostile_responses.py``."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.hostile_responses import AGREES, right, run, run_attacks, tasks


def test_hostile_responses_are_right_only_where_a_plain_checker_agrees() -> None:
    report = run(2_400, seed=1)
    assert report.problems == []
    assert report.n_right["controls"] == 60
    assert report.n_right["mutated answers"] > 50


@pytest.mark.parametrize("index", range(3))
def test_long_attacks_are_read_in_linear_time(index: int) -> None:
    task = tasks(2)[index]
    problems: list[str] = []
    n_attacks, _, _ = run_attacks(task, problems, scale=0.02)
    assert problems == []
    assert n_attacks > 60


@pytest.mark.parametrize("index", range(3))
def test_the_plain_checkers_object_to_wrong_answers(index: int) -> None:
    task = tasks(3)[index]
    rng = Random(0)
    for level in (2, 3, 5):
        instance = task.generate_instance(level)
        assert not AGREES[task.name](task, instance, right(task, instance, rng))
        for number in range(10):
            wrong = f"Final answer: {task.wrong_answer(instance, number)}"
            assert AGREES[task.name](task, instance, wrong)
