"""Tasks: instances of graded complexity, and answers that are verified."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from ttsframe._checks import check_not_negative, check_positive, check_seed
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.evaluator._stream import Stream

__all__ = ["SeededTask", "Task", "TaskInstance", "TaskResult", "check_levels"]


@dataclass
class TaskInstance:
    """One problem of a task.

    Parameters
    ----------
    prompt
        What the model reads.
    complexity
        Level of difficulty, as the task defines it.
    ground_truth
        A right answer in the form of `Task.parse`, or None if none is known. Other right answers may
        exist.
    metadata
        Further data of the verifier, by name: strings, numbers and lists of them, so that an instance
        can be written as JSON.

    Examples
    --------
    >>> from ttsframe.evaluator import TaskInstance
    >>> TaskInstance("What is 2 + 3?", 1, "5")
    TaskInstance(prompt='What is 2 + 3?', complexity=1, ground_truth='5', metadata={})
    """

    prompt: str
    complexity: int
    ground_truth: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass
class TaskResult:
    """Verdict on one response.

    Parameters
    ----------
    response
        The response, unchanged.
    is_correct
        Whether its answer is right.
    complexity
        Complexity of the instance.
    error_message
        The first error and its place; None for a right answer.
    metadata
        Further findings of the verifier, by name.

    Examples
    --------
    >>> from ttsframe.evaluator import TaskResult
    >>> TaskResult("It is 6.", False, 1, "the answer is 6, must be 5.").is_correct
    False
    """

    response: str
    is_correct: bool
    complexity: int
    error_message: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)


class Task(ABC):
    """A family of problems of graded complexity that can be generated and verified.

    A subclass has a `name` and implements the three abstract methods.

    Examples
    --------
    >>> from ttsframe.evaluator import Task, TaskInstance, TaskResult
    >>> class Doubling(Task):
    ...     name = "doubling"
    ...
    ...     def generate_instance(self, complexity):
    ...         return TaskInstance(f"What is 2**{complexity}?", complexity, str(2**complexity))
    ...
    ...     def parse(self, response):
    ...         answer = response.strip()
    ...         return answer if answer.isdecimal() else None
    ...
    ...     def verify_solution(self, instance, response):
    ...         is_correct = self.parse(response) == instance.ground_truth
    ...         message = None if is_correct else f"must be {instance.ground_truth}."
    ...         return TaskResult(response, is_correct, instance.complexity, message)
    >>> task = Doubling()
    >>> [instance.ground_truth for instance in task.generate_batch((3, 5))]
    ['8', '16', '32']
    """

    name: str

    @abstractmethod
    def generate_instance(self, complexity: int) -> TaskInstance:
        """Make the next instance of a level.

        Parameters
        ----------
        complexity
            Level of difficulty.

        Returns
        -------
        TaskInstance
            The instance.
        """

    @abstractmethod
    def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
        """Verify a response; no response raises an error.

        Parameters
        ----------
        instance
            The instance to solve.
        response
            Response of the model, of any length and content.

        Returns
        -------
        TaskResult
            Whether it is right, and if not, the reason.
        """

    @abstractmethod
    def parse(self, response: str) -> str | None:
        """Read the answer of a response; equal answers are equal strings, so they can vote.

        Parameters
        ----------
        response
            Response of the model, of any length and content.

        Returns
        -------
        str or None
            The answer in canonical form; None without a valid answer.
        """

    def generate_batch(
        self, complexity_range: tuple[int, int], instances_per_level: int = 1
    ) -> list[TaskInstance]:
        """Make instances of each level of a range.

        Parameters
        ----------
        complexity_range
            First and last level, both included.
        instances_per_level
            Instances of each level.

        Returns
        -------
        list[TaskInstance]
            The instances, by ascending level.

        Raises
        ------
        ParameterTypeError
            When a level or the number of instances is not an int.
        ParameterError
            When the range is not a pair of ascending levels, or the number is below 1.
        """
        levels = check_levels(complexity_range)
        count = check_positive(instances_per_level, "instances_per_level")
        return [self.generate_instance(level) for level in levels for _ in range(count)]


Findings: TypeAlias = tuple[str | None, dict[str, object]]
"""The first error of a response, None if it is right, and further findings by name."""


class SeededTask(Task):
    """A task whose instances are functions of a seed, a level and an index alone.

    Parameters
    ----------
    seed
        Seed of the instances, 0 to 2^64 - 1.

    See Also
    --------
    Task : What every task offers.

    Notes
    -----
    `instance_at` and `generate_batch` are functions of their arguments. An object has two pieces of
    state: `generate_instance` counts the instances of each level and returns index 0, 1, 2, ..., and
    `find_instance` knows the prompts of all instances that the object has made.

    Examples
    --------
    >>> from ttsframe.evaluator import TowerOfHanoi
    >>> task = TowerOfHanoi(seed=7)
    >>> first, second = task.generate_instance(3), task.generate_instance(3)
    >>> task.generate_batch((3, 3), 2) == [first, second]
    True
    """

    complexities: ClassVar[tuple[int, int]]
    """Smallest and largest complexity."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = check_seed(seed)
        self._n_made: Counter[int] = Counter()
        self._made: dict[int, tuple[int, int]] = {}

    def instance_at(self, complexity: int, index: int) -> TaskInstance:
        """Return one instance.

        Parameters
        ----------
        complexity
            Level of difficulty.
        index
            Number of the instance within its level, from 0.

        Returns
        -------
        TaskInstance
            The instance; `metadata` includes the `index`.

        Raises
        ------
        ParameterTypeError
            When an argument is not an int.
        ParameterError
            When the task has no such level, or the index is negative.
        """
        self._check_level(complexity)
        instance = self._make(complexity, check_not_negative(index, "index"))
        instance.metadata["index"] = index
        self._made[Stream(instance.prompt).bits()] = complexity, index
        return instance

    def find_instance(self, prompt: str) -> TaskInstance | None:
        """Return the instance that has a prompt, for simulations.

        Parameters
        ----------
        prompt
            The prompt.

        Returns
        -------
        TaskInstance or None
            The latest instance with this prompt; None if this object has made none.
        """
        arguments = self._made.get(Stream(prompt).bits())
        return None if arguments is None else self.instance_at(*arguments)

    @abstractmethod
    def wrong_answer(self, instance: TaskInstance, number: int) -> str:
        """Return one of the wrong answers that a simulation gives.

        Parameters
        ----------
        instance
            An instance of this task.
        number
            Number of the wrong answer, from 0 to 9.

        Returns
        -------
        str
            An answer in the form of `parse`; different numbers give different answers.
        """

    def generate_instance(self, complexity: int) -> TaskInstance:
        """Make the next instance of a level, whose index is the number made by this method so far."""
        self._check_level(complexity)
        instance = self.instance_at(complexity, self._n_made[complexity])
        self._n_made[complexity] += 1
        return instance

    def generate_batch(
        self, complexity_range: tuple[int, int], instances_per_level: int = 1
    ) -> list[TaskInstance]:
        """Make the instances with index 0, 1, 2, ... of each level, the same at every call."""
        levels = check_levels(complexity_range)
        count = check_positive(instances_per_level, "instances_per_level")
        return [self.instance_at(level, index) for level in levels for index in range(count)]

    def verify_solution(self, instance: TaskInstance, response: str) -> TaskResult:
        """Verify a response; no response raises an error.

        Parameters
        ----------
        instance
            An instance of this task.
        response
            Response of the model, of any length and content.

        Returns
        -------
        TaskResult
            Whether it is right; what `error_message` and `metadata` contain is in the notes of the task.

        Raises
        ------
        DataError
            When the instance is of another task.
        """
        error, findings = self._verify(instance, response)
        return TaskResult(response, error is None, instance.complexity, error, findings)

    @abstractmethod
    def _verify(self, instance: TaskInstance, response: str) -> Findings:
        """Verify a response."""

    def _check_level(self, complexity: int) -> None:
        """Check that the task has instances of a level."""
        least, most = self.complexities
        check_positive(complexity, "complexity")
        if not least <= complexity <= most:
            raise ParameterError(
                f"complexity == {complexity}, must be from {least} to {most} for {self.name}."
            )

    def _stream(self, *parts: int) -> Stream:
        """Return the random numbers of a level, or of an instance."""
        return Stream(self.name, self.seed, *parts)

    @abstractmethod
    def _make(self, complexity: int, index: int) -> TaskInstance:
        """Make an instance that depends only on the seed, the level and the index."""


def check_levels(complexity_range: object) -> range:
    """Check an inclusive range, and return its levels."""
    if not isinstance(complexity_range, tuple | list) or len(complexity_range) != 2:
        raise ParameterTypeError(
            f"complexity_range is {complexity_range!r}, must be a pair: the first and the last "
            "level, both included."
        )
    first, last = (check_positive(level, "complexity_range") for level in complexity_range)
    if first > last:
        raise ParameterError(f"complexity_range == {(first, last)}, must not begin above its end.")
    return range(first, last + 1)
