"""A simulated model whose reasoning collapses at a known complexity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import comb, exp, inf, isfinite
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ttsframe._checks import (
    check_between,
    check_choice,
    check_not_negative,
    check_positive,
    check_seed,
)
from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator._stream import Stream
from ttsframe.evaluator.tasks import SeededTask, TaskInstance

__all__ = ["SimulatedReasoner"]

KnownMethod: TypeAlias = Literal["majority_vote", "first_valid", "oracle"]

_MOST_WRONG: Final = 10
_MOST_DRAWS: Final = 256
_LARGEST_EXPONENT: Final = 700.0
_THOUGHT: Final = re.compile(r"<think>\(([0-9]{1,12}) tokens\)")


class SimulatedReasoner:
    r"""Simulate a model whose accuracy on a task collapses with complexity in a known way.

    It replaces a model in an experiment, from the prompts to the test of whether more trajectories
    move the collapse, and the outcome can be compared with a closed form.

    Parameters
    ----------
    task
        The task whose prompts it answers. This object must have made the instances.
    collapse_at
        Complexity at which the probability of a right answer is half of `ceiling`.
    steepness
        How steeply the probability falls there, per level; positive.
    ceiling
        Probability of a right answer far below the collapse, in (0, 1].
    wrong_weights
        Weights of the distinct wrong answers, 1 to 10 numbers, not negative, in any unit. If one is
        large, wrong votes agree; if they are equal, voting helps.
    no_answer_share
        Share of failures without an answer, in [0, 1]: half of them give up, half are cut off.
    tokens_per_level
        Tokens of thinking per level of complexity, on average.
    seed
        Seed of the responses, 0 to 2^64 - 1.

    Raises
    ------
    ParameterTypeError
        When the task is not a `SeededTask`, or a parameter is not a number.
    ParameterError
        When a parameter is outside its range.

    See Also
    --------
    TowerOfHanoi : A task to simulate.

    Notes
    -----
    At complexity :math:`c` a response is right with probability

    .. math:: p_c = \frac{\text{ceiling}}{1 + e^{s (c - c_0)}},

    where :math:`s` is `steepness` and :math:`c_0` is `collapse_at`; otherwise it has no answer with
    probability `no_answer_share`, else the task's `wrong_answer` number :math:`j` with probability
    :math:`w_j`. Responses are independent, so pass@K is :math:`1 - (1 - p_c)^K`, and the first valid
    answer is right with probability :math:`p_c (1 - u^K) / (1 - u)`, with :math:`u` the probability
    of no answer. A majority is right if no wrong answer has more votes; of :math:`t` answers with
    equally many votes the first one wins, which each is with probability :math:`1/t`.

    `response_at` is a function of seed, prompt and position alone. A call of the object has state: it
    returns the responses at the next positions of the prompt, so calls are independent, and a new
    object repeats them.

    Examples
    --------
    >>> from ttsframe.evaluator import SimulatedReasoner, TowerOfHanoi
    >>> task = TowerOfHanoi()
    >>> reasoner = SimulatedReasoner(task, collapse_at=2)
    >>> instance = task.generate_instance(2)
    >>> responses = reasoner(instance.prompt, 1000)
    >>> sum(task.verify_solution(instance, response).is_correct for response in responses)
    477
    >>> print(responses[0])
    <think>(219 tokens)</think>
    Final answer: 1:B>A 2:B>C 1:A>B
    >>> [round(reasoner.expected_accuracy(2, k), 3) for k in (1, 10, 100)]
    [0.5, 0.854, 1.0]
    >>> [round(reasoner.expected_accuracy(3, k), 3) for k in (1, 10, 100)]
    [0.182, 0.166, 0.033]
    """

    def __init__(
        self,
        task: SeededTask,
        *,
        collapse_at: float = 5.0,
        steepness: float = 1.5,
        ceiling: float = 1.0,
        wrong_weights: Sequence[float] = (0.4, 0.3, 0.2, 0.1),
        no_answer_share: float = 0.1,
        tokens_per_level: int = 100,
        seed: int = 0,
    ) -> None:
        if not isinstance(task, SeededTask):
            raise ParameterTypeError(
                f"task is a {type(task).__name__}, must be one whose instances can be found by their "
                "prompt. Hint: TowerOfHanoi, ArithmeticSequence or LogicalDeduction."
            )
        if not isfinite(collapse_at):
            raise ParameterError(f"collapse_at == {collapse_at}, must be finite.")
        if not 0.0 < steepness < inf:
            raise ParameterError(f"steepness == {steepness}, must be positive and finite.")
        if not 0.0 < ceiling <= 1.0:
            raise ParameterError(f"ceiling == {ceiling}, must be above 0 and at most 1.")
        weights = [check_between(weight, "wrong_weights", 0.0, 1e9) for weight in wrong_weights]
        if not 1 <= len(weights) <= _MOST_WRONG or not sum(weights):
            raise ParameterError(
                f"wrong_weights == {weights}, must be 1 to {_MOST_WRONG} numbers that are not all 0."
            )
        self.task = task
        self.collapse_at = collapse_at
        self.steepness = steepness
        self.ceiling = ceiling
        self.wrong_shares = tuple(weight / sum(weights) for weight in weights)
        self.no_answer_share = check_between(no_answer_share, "no_answer_share", 0.0, 1.0)
        self.tokens_per_level = check_positive(tokens_per_level, "tokens_per_level")
        self.seed = check_seed(seed)
        self._n_drawn: Counter[str] = Counter()

    def __call__(self, prompt: str, k: int) -> list[str]:
        """Return the next responses to a prompt, which this object has not returned before.

        Parameters
        ----------
        prompt
            Prompt of an instance made by the task.
        k
            Number of responses.

        Returns
        -------
        list[str]
            The responses.

        Raises
        ------
        ParameterTypeError
            When `k` is not an int.
        ParameterError
            When it is below 1.
        DataError
            When the task has made no instance with this prompt.
        """
        count = check_positive(k, "k")
        instance = self._instance(prompt)
        first = self._n_drawn[prompt]
        self._n_drawn[prompt] += count
        return [self._respond(instance, draw) for draw in range(first, first + count)]

    def response_at(self, prompt: str, draw: int) -> str:
        """Return the response at a position.

        Parameters
        ----------
        prompt
            Prompt of an instance made by the task.
        draw
            Position from 0.

        Returns
        -------
        str
            The response.

        Raises
        ------
        ParameterTypeError
            When the position is not an int.
        ParameterError
            When it is negative.
        DataError
            When the task has made no instance with this prompt.
        """
        number = check_not_negative(draw, "draw")
        return self._respond(self._instance(prompt), number)

    def success_probability(self, complexity: int) -> float:
        """Return the probability that one response is right.

        Parameters
        ----------
        complexity
            Level of difficulty.

        Returns
        -------
        float
            From 0 to `ceiling`.
        """
        exponent = self.steepness * (complexity - self.collapse_at)
        return self.ceiling / (1.0 + exp(min(exponent, _LARGEST_EXPONENT)))

    def expected_accuracy(
        self, complexity: int, k: int, method: KnownMethod = "majority_vote"
    ) -> float:
        """Return the probability that the response selected among `k` is right.

        Parameters
        ----------
        complexity
            Level of difficulty.
        k
            Number of responses, 1 to 256.
        method
            Selection: "majority_vote" (ties go to the answer that came first), "first_valid" or
            "oracle", which is pass@k.

        Returns
        -------
        float
            The probability, exact up to rounding.

        Raises
        ------
        ParameterTypeError
            When `k` is not an int.
        ParameterError
            When `k` is outside its range, or the method unknown.
        """
        check_choice(method, "method", get_args(KnownMethod))
        check_positive(k, "k")
        check_between(k, "k", 1, _MOST_DRAWS)
        right = self.success_probability(complexity)
        none = (1.0 - right) * self.no_answer_share
        if method == "oracle":
            return 1.0 - (1.0 - right) ** k
        if method == "first_valid":
            return right * sum(none**i for i in range(k))
        failed = (1.0 - right) * (1.0 - self.no_answer_share)
        return _majority(right, [failed * share for share in self.wrong_shares], none, k)

    @staticmethod
    def count_tokens(response: str) -> int:
        """Count the tokens of a response: the stated tokens of thinking, and its words.

        Parameters
        ----------
        response
            A response of a simulated reasoner.

        Returns
        -------
        int
            The number of tokens.
        """
        thought = _THOUGHT.match(response)
        written = response if thought is None else response[thought.end() :]
        return len(written.split()) + (0 if thought is None else int(thought[1]))

    def _instance(self, prompt: str) -> TaskInstance:
        """Return the instance of a prompt."""
        instance = self.task.find_instance(prompt)
        if instance is None:
            raise DataError(
                f"no instance of {self.task.name} has the prompt {prompt[:60]!r}... "
                "Hint: pass the reasoner the same task object that makes the instances."
            )
        return instance

    def _respond(self, instance: TaskInstance, draw: int) -> str:
        """Draw the kind of a response, then write it."""
        stream = Stream("reasoner", self.seed, instance.prompt, draw)
        chance = stream.uniform()
        level_tokens = self.tokens_per_level * instance.complexity
        least_tokens = level_tokens // 2
        n_tokens = stream.between(least_tokens, 2 * level_tokens - least_tokens)
        right = self.success_probability(instance.complexity)
        if chance < right:
            answer = instance.ground_truth
        elif stream.uniform() < self.no_answer_share:
            if stream.below(2):
                return f"<think>({n_tokens} tokens)</think>\nI could not work this out."
            return f"<think>({2 * level_tokens} tokens) So far so good; the next thing to see is"
        else:
            number = stream.chosen(self.wrong_shares)
            answer = self.task.wrong_answer(instance, number)
        return f"<think>({n_tokens} tokens)</think>\nFinal answer: {answer}"


def _majority(right: float, wrong: Sequence[float], none: float, k: int) -> float:
    """Return the probability that the right answer wins a vote among k independent responses."""
    # Responses are drawn with replacement, so this is not the count over the subsets of a run in
    # `votes.expectation`. For each number of right votes, the wrong answers take their votes in turn:
    # table[n, t] is the probability, of n votes in any order, that t wrong answers tie.
    votes = np.arange(k + 1)
    gaps = votes[:, None] - votes[None, :]
    ways = np.array([[float(comb(n, m)) for m in range(k + 1)] for n in range(k + 1)])

    def transitions(chance: float) -> npt.NDArray[np.float64]:
        return np.where(gaps >= 0, ways * chance ** np.maximum(gaps, 0), 0.0)

    steps = [transitions(chance) for chance in wrong]
    abstaining = transitions(none)[k]
    shares = 1.0 / np.arange(1, len(wrong) + 2)
    total = 0.0
    for n_right in range(1, k + 1):
        table = np.zeros((k + 1, len(wrong) + 1))
        table[n_right, 0] = right**n_right
        for step in steps:
            tied = np.where(gaps == n_right, step, 0.0) @ table[:, :-1]
            table = np.where(gaps < n_right, step, 0.0) @ table
            table[:, 1:] += tied
        total += float(abstaining @ table @ shares)
    return min(total, 1.0)
