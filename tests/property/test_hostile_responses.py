"""A seeded part of ``benchmarks/hostile_responses.py``."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import ModuleType

import pytest

from benchmarks.hostile_responses import AGREES, right, run, run_attacks, tasks
from ttsframe.evaluator.tasks import deduction, hanoi, sequences


def test_hostile_responses_are_right_only_where_a_plain_checker_agrees() -> None:
    report = run(800, seed=1)
    assert report.problems == []
    assert report.n_right["controls"] == 20
    assert report.n_right["mutated answers"] > 15


@pytest.mark.parametrize("index", range(3))
def test_long_attacks_are_read_in_linear_time(index: int) -> None:
    task = tasks(2)[index]
    problems: list[str] = []
    n_attacks, _, _ = run_attacks(task, problems, scale=0.01)
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


FAULTS = {
    "a larger disc on a smaller one": (hanoi, "_illegal", lambda move, pegs: "" if pegs[move.source] else "empty"),
    "a tower that is elsewhere": (hanoi, "_unsolved", lambda *_: ""),
    "clues that are not read": (deduction, "holds", lambda *_: True),
    "a number that begins right": (sequences, "_integer", lambda answer: answer.strip()[:1]),
}  # fmt: skip


@pytest.mark.parametrize(("module", "name", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_a_verifier_would_be_seen(
    module: ModuleType, name: str, fault: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fault)
    assert run(600, seed=2).problems
