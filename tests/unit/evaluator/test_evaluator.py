"""The experiment: against plain loops, with and without reuse, and what it refuses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from evaluator_oracle import Echo, echoing, evaluated, expected, score

from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator import Evaluator, TaskInstance, TrajectoryAggregator

METHODS = ("majority_vote", "first_valid", "verifier", "oracle")


def evaluator(method: Any = "majority_vote") -> Evaluator:
    return Evaluator(Echo(), TrajectoryAggregator(method, score))


@pytest.mark.parametrize("method", METHODS)
def test_the_plain_loop_finds_the_same(method: Any) -> None:
    levels, ks, n = (1, 6), [1, 5, 3], 7
    plain = evaluated(Echo(), echoing(8), method, range(1, 7), ks, n)

    results = evaluator(method).evaluate(echoing(8), levels, ks, n, verbose=False)

    assert [*results] == ks
    for k, result in results.items():
        assert (result.task_name, result.k_trajectories, result.selection_method) == (
            "echo",
            k,
            method,
        )
        right = {
            level: sum(winner is not None and verdicts[winner] for _, winner, verdicts in found) / n
            for level, found in plain[k].items()
        }
        some = {level: sum(any(v) for *_, v in found) / n for level, found in plain[k].items()}
        assert result.accuracy_by_complexity == pytest.approx(right)
        assert result.oracle_accuracy_by_complexity == pytest.approx(some)
        solved = [level for level, accuracy in right.items() if accuracy >= 0.5]
        assert result.max_solved_complexity == max(solved, default=0)
        flat = [one for found in plain[k].values() for one in found]
        assert len(result.all_results) == len(flat) == 6 * n
        for one, (responses, winner, verdicts) in zip(result.all_results, flat, strict=True):
            assert one.metadata["attempt"] == winner
            assert [each.response for each in one.individual_results] == responses
            assert one.num_correct == sum(verdicts)
        assert result.trajectories["completion"].to_list() == [r for rs, *_ in flat for r in rs]


@pytest.mark.parametrize("method", METHODS)
def test_reuse_averages_over_all_subsets(method: Any) -> None:
    task, ks, n = Echo(), [1, 2, 4, 5], 3
    results = evaluator(method).evaluate(echoing(3), (2, 5), ks, n, verbose=False, reuse=True)
    draws = evaluated(Echo(), echoing(3), method, range(2, 6), [5], n)[5]
    for level, found in draws.items():
        instances = task.generate_batch((level, level), n)
        for k in ks:
            for kind, accuracy in (
                (method, results[k].accuracy_by_complexity),
                ("oracle", results[k].oracle_accuracy_by_complexity),
            ):
                means = [
                    expected(kind, responses, k, task, instance)
                    for (responses, *_), instance in zip(found, instances, strict=True)
                ]
                assert accuracy[level] == pytest.approx(sum(means) / n), (level, k, kind)


def test_reuse_draws_the_largest_k_once_and_shows_its_first_k() -> None:
    calls: Counter[int] = Counter()
    model = echoing(5)

    def counting(prompt: str, k: int) -> list[str]:
        calls[k] += 1
        return model(prompt, k)

    results = evaluator().evaluate(counting, (1, 2), verbose=False, reuse=True)
    assert calls == {10: 20}
    shown = [one.individual_results for one in results[10].all_results]
    for k, result in results.items():
        assert result.trajectories is results[10].trajectories
        assert [one.individual_results for one in result.all_results] == [
            each[:k] for each in shown
        ]
    calls.clear()
    evaluator().evaluate(counting, (1, 2), verbose=False)
    per_instance = sum(k * n for k, n in calls.items()) / 20
    assert calls == {1: 20, 5: 20, 10: 20}
    assert per_instance == 16


def test_instances_are_the_same_for_every_k() -> None:
    results = evaluator().evaluate(echoing(1), (1, 3), [1, 4], 5, verbose=False)
    one, four = (results[k].trajectories["problem_id"].unique().sort() for k in (1, 4))
    assert one.equals(four)
    assert len(one) == 15
    assert results[4].trajectories.group_by("problem_id").len()["len"].to_list() == [4] * 15


def test_equal_prompts_are_separate_trials() -> None:
    class Same(Echo):
        def generate_instance(self, complexity: int) -> TaskInstance:
            return TaskInstance("say 4", complexity, "4")

    results = Evaluator(Same()).evaluate(lambda *_: ["4"], (1, 2), [1], 3, verbose=False)
    assert results[1].trajectories["problem_id"].n_unique() == 6


def test_a_response_is_verified_once_per_instance_whatever_k() -> None:
    task = Echo()
    Evaluator(task).evaluate(lambda _, k: ["7"] * k, (1, 2), [1, 5], 4, verbose=False)
    assert task.n_verified == 8


def test_tokens_and_scores_are_kept() -> None:
    results = evaluator().evaluate(
        echoing(1), (1, 1), [2], 2, verbose=False, count_tokens=lambda text: len(text.split())
    )
    table = results[2].trajectories
    assert table["n_tokens"].to_list() == [len(text.split()) for text in table["completion"]]
    assert table["score"].dtype == pl.Float64
    assert table["attempt"].to_list() == [0, 1, 0, 1]
    assert table["answer"].equals(table["answer_key"])


def test_a_line_per_level_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    evaluator().evaluate(lambda prompt, k: [prompt[4:]] * k, (1, 2), [1, 3], 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "echo, complexity 1: 100.0% at K = 1, 100.0% at K = 3",
        "echo, complexity 2: 100.0% at K = 1, 100.0% at K = 3",
    ]
    evaluator().evaluate(lambda prompt, k: [prompt[4:]] * k, (1, 2), [1], 2, verbose=False)
    assert capsys.readouterr() == ("", "")


def test_the_threshold_decides_what_is_solved() -> None:
    def half(prompt: str, k: int) -> list[str]:
        answer = int(prompt[4:])
        return [prompt[4:] if answer % 2 or answer < 200 else "0"] * k

    for threshold, level in ((0.5, 3), (0.51, 1), (0.0, 3), (1.0, 1)):
        results = evaluator().evaluate(half, (1, 3), [1], 2, verbose=False, threshold=threshold)
        assert results[1].max_solved_complexity == level
    none = evaluator().evaluate(lambda _, k: ["0"] * k, (1, 3), [1], 2, verbose=False)
    assert none[1].max_solved_complexity == 0


BAD: list[tuple[Callable[[str, int], Any], str]] = [
    (lambda _, k: ["7"] * (k - 1), "2 responses, expected 3 strings"),
    (lambda _, k: ["7"] * (k + 1), "4 responses, expected 3 strings"),
    (lambda *_: "777", "a str, expected a list of 3 strings"),
    (lambda *_: None, "a NoneType, expected a list"),
    (lambda _, k: [None] * k, "response 0 is a NoneType"),
    (lambda _, k: iter(["7"] * k), "a list_iterator, expected a list"),
]


@pytest.mark.parametrize(("model", "message"), BAD)
def test_a_model_that_returns_something_else_is_refused(
    model: Callable[[str, int], Any], message: str
) -> None:
    where = r"generate_fn at complexity 2, instance 2-\w{16}-0, K = 3: "
    with pytest.raises(DataError, match=where + message):
        evaluator().evaluate(model, (2, 3), [3], 2, verbose=False)


def test_an_error_of_the_model_passes_with_a_note_that_says_where() -> None:
    model = echoing(0)
    calls: list[int] = []

    def failing(prompt: str, k: int) -> list[str]:
        calls.append(k)
        if len(calls) == 5:
            raise ConnectionError("gone")
        return model(prompt, k)

    with pytest.raises(ConnectionError, match="gone") as error:
        evaluator().evaluate(failing, (1, 3), [1, 2], 2, verbose=False)
    assert str(error.value) == "gone"
    assert error.value.__notes__[0].startswith("At complexity 2, instance 2-")
    assert error.value.__notes__[0].endswith("K = 1.")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"complexity_range": (3, 1)}, ParameterError, "complexity_range"),
        ({"complexity_range": 3}, ParameterTypeError, "complexity_range"),
        ({"k_values": []}, ParameterError, "k_values is empty"),
        ({"k_values": 5}, ParameterTypeError, "k_values is a int"),
        ({"k_values": [0]}, ParameterError, "k_values == 0"),
        ({"k_values": [1.0]}, ParameterTypeError, "k_values must be an int, got float"),
        ({"trials_per_complexity": 0}, ParameterError, "trials_per_complexity"),
        ({"threshold": 1.5}, ParameterError, "threshold"),
        ({"generate_fn": "model"}, ParameterTypeError, "generate_fn is a str"),
        ({"count_tokens": lambda _: -1}, ParameterTypeError, "count_tokens returned -1"),
        ({"count_tokens": len, "generate_fn": lambda *_: []}, DataError, "0 responses"),
    ],
)
def test_impossible_parameters_are_refused(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    given = {"generate_fn": echoing(0), "complexity_range": (1, 2), "verbose": False} | options
    with pytest.raises(kind, match=message):
        evaluator().evaluate(**given)


def test_a_task_that_makes_other_instances_is_refused() -> None:
    stuck = Echo()
    first = stuck.generate_instance(1)
    stuck.generate_instance = lambda _: first  # type: ignore[method-assign]
    with pytest.raises(DataError, match=r"generate_batch\(\(2, 2\), 10\) made instances"):
        Evaluator(stuck).evaluate(echoing(0), (1, 2), verbose=False)
    with pytest.raises(ParameterTypeError, match="task is a str"):
        Evaluator("hanoi")  # type: ignore[arg-type]


def test_many_instances_whose_votes_are_alike_are_counted_alike() -> None:
    # Instances share their count in `evaluate`; alone, each gets the same number.
    rng = random.Random(2)
    texts = {n: [rng.choice(["", "1", "2", "9"]) for _ in range(6)] for n in range(101, 141)}

    def stored(prompt: str, k: int) -> list[str]:
        number = int(prompt[4:])
        return [prompt[4:] if text == "9" else text for text in texts[number]][:k]

    task = Echo()
    results = evaluator().evaluate(stored, (1, 1), [3, 6], 40, verbose=False, reuse=True)
    instances = task.generate_batch((1, 1), 40)
    means = [expected("majority_vote", stored(one.prompt, 6), 3, task, one) for one in instances]
    assert results[3].accuracy_by_complexity[1] == pytest.approx(sum(means) / 40)
