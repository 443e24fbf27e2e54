"""The evaluation of a task as its documentation describes it: plain loops over plain lists."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import mean

from ttsframe.evaluator import Task, TaskInstance, TaskResult

WRONG = ("11", "13", "17")


class Echo(Task):
    """What is asked is in the prompt; an answer is what stands before the bar, if anything does."""

    name = "echo"

    def __init__(self) -> None:
        self.n_verified = 0
        self.n_made = 0

    def generate_instance(self, complexity: int) -> TaskInstance:
        self.n_made += 1
        answer = str(100 * complexity + self.n_made)
        return TaskInstance(f"say {answer}", complexity, answer)

    def generate_batch(
        self, complexity_range: tuple[int, int], instances_per_level: int = 1
    ) -> list[TaskInstance]:
        self.n_made = 0
        return super().generate_batch(complexity_range, instances_per_level)

    def parse(self, response: str) -> str | None:
        return response.split("|", maxsplit=1)[0].strip() or None

    def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
        self.n_verified += 1
        is_correct = self.parse(response) == instance.ground_truth
        return TaskResult(response, is_correct, instance.complexity, None if is_correct else "no.")


def echoing(seed: int, collapse_at: float = 4.0) -> Callable[[str, int], list[str]]:
    """Return a model of the task: right less often at higher levels, its length at random."""
    rng = random.Random(seed)

    def generate(prompt: str, k: int) -> list[str]:
        answer = prompt.removeprefix("say ")
        chance = 1.0 / (1.0 + 2.0 ** (int(answer) // 100 - collapse_at))
        return [
            (answer if rng.random() < chance else rng.choice([*WRONG, ""]))
            + " | "
            + "word " * rng.randint(1, 12)
            for _ in range(k)
        ]

    return generate


def score(response: str, instance: TaskInstance) -> float:
    """Score a response: a verifier that tells right from wrong, with noise and ties."""
    is_right = response.split("|", maxsplit=1)[0].strip() == instance.ground_truth
    return round(len(response) / 40.0 + 0.5 * is_right, 1)


def selected(
    method: str, responses: Sequence[str], task: Task, instance: TaskInstance
) -> int | None:
    """Return which response a method selects, None for none."""
    answers = [task.parse(response) for response in responses]
    valid = [i for i, answer in enumerate(answers) if answer is not None]
    if method == "verifier":
        scores = [score(response, instance) for response in responses]
        return scores.index(max(scores))
    right = [i for i in valid if task.verify_solution(instance, responses[i]).is_correct]
    if method == "oracle" and right:
        return right[0]
    if not valid:
        return None
    if method == "majority_vote":
        votes = Counter(answers[i] for i in valid)
        most = max(votes.values())
        return next(i for i in valid if votes[answers[i]] == most)
    return valid[0]


def evaluated(
    task: Task,
    generate: Callable[[str, int], list[str]],
    method: str,
    levels: Sequence[int],
    k_values: Sequence[int],
    n_trials: int,
) -> dict[int, dict[int, list[tuple[list[str], int | None, list[bool]]]]]:
    """For each complexity make instances; for each K draw, aggregate, verify: by K and level."""
    found: dict[int, dict[int, list[tuple[list[str], int | None, list[bool]]]]] = {
        k: {} for k in k_values
    }
    for level in levels:
        instances = task.generate_batch((level, level), n_trials)
        for k in k_values:
            found[k][level] = []
            for instance in instances:
                responses = generate(instance.prompt, k)
                verdicts = [
                    task.verify_solution(instance, response).is_correct for response in responses
                ]
                winner = selected(method, responses, task, instance)
                found[k][level].append((responses, winner, verdicts))
    return found


def expected(
    method: str, responses: Sequence[str], k: int, task: Task, instance: TaskInstance
) -> float:
    """Average a method over all subsets of K responses, equal ones sharing what a tie gives."""
    values = []
    for subset in combinations(responses, k):
        answers = [task.parse(response) for response in subset]
        right = [task.verify_solution(instance, response).is_correct for response in subset]
        valid = [i for i, answer in enumerate(answers) if answer is not None]
        if method == "oracle":
            values.append(float(any(right)))
        elif method == "first_valid":
            values.append(mean(right[i] for i in valid) if valid else 0.0)
        elif method == "verifier":
            scores = [score(response, instance) for response in subset]
            values.append(mean(r for r, s in zip(right, scores, strict=True) if s == max(scores)))
        else:
            votes = Counter(answers[i] for i in valid)
            most = [answer for answer, n in votes.items() if n == max(votes.values())]
            values.append(
                mean(float(answer == instance.ground_truth) for answer in most) if most else 0.0
            )
    return mean(values)
