"""Aggregation of the trajectories of one instance into one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import polars as pl

from ttsframe._checks import check_choice
from ttsframe.errors import ParameterError
from ttsframe.evaluator._judging import (
    Drawn,
    Judge,
    Verifier,
    check_responses,
    trajectories_of,
    with_reference,
)
from ttsframe.evaluator.results import SELECTOR_OF_METHOD, AggregatedResult, AggregationMethod
from ttsframe.evaluator.tasks import Task, TaskInstance
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.selectors import select_answers

__all__ = ["TrajectoryAggregator", "aggregate_drawn", "pick_responses"]

Pick: TypeAlias = tuple[int | None, str | None, float]
"""The attempt that was selected, its answer, and the agreement of a majority vote."""


class TrajectoryAggregator:
    """Select one of several responses to an instance.

    Parameters
    ----------
    method
        How to select:

        - ``"majority_vote"``: the most common answer; a tie goes to the one that came first;
        - ``"first_valid"``: the first response that has an answer;
        - ``"verifier"``: the response with the highest score of the verifier, the first one in a tie;
          it is wrong if it has no answer;
        - ``"oracle"``: a right response if any, else as ``"first_valid"``. It uses the verdicts, so
          it is the upper bound of all methods, but not usable in practice.
    verifier
        Called with a response and its instance; returns a score, higher is better. The method
        "verifier" needs it; with other methods the scores are only recorded.

    Raises
    ------
    ParameterError
        When the method is unknown, or "verifier" without a verifier.

    See Also
    --------
    select_answers : The same for the instances of a whole run.

    Examples
    --------
    >>> from ttsframe.evaluator import TowerOfHanoi, TrajectoryAggregator
    >>> task = TowerOfHanoi(seed=3)
    >>> instance = task.generate_instance(2)  # two discs, from A to C
    >>> solution = "A -> B, A -> C, B -> C"
    >>> aggregator = TrajectoryAggregator(method="majority_vote")
    >>> result = aggregator.aggregate([solution, "no idea", solution], task, instance)
    >>> result.selected_response, result.is_correct, f"{result.agreement_rate:.1%}"
    ('A -> B, A -> C, B -> C', True, '66.7%')
    """

    def __init__(
        self, method: AggregationMethod = "majority_vote", verifier: Verifier | None = None
    ) -> None:
        check_choice(method, "method", SELECTOR_OF_METHOD)
        if method == "verifier" and verifier is None:
            raise ParameterError(
                "method == 'verifier', must come with a verifier. Hint: verifier=lambda response, "
                "instance: ... returns a score."
            )
        self.method: AggregationMethod = method
        self.verifier = verifier

    def aggregate(
        self, responses: list[str], task: Task, instance: TaskInstance
    ) -> AggregatedResult:
        """Verify the responses to one instance, and select one of them.

        Parameters
        ----------
        responses
            Responses of the model, at least one; their number is K.
        task
            The task, which parses and verifies each distinct response once.
        instance
            The instance.

        Returns
        -------
        AggregatedResult
            The selected response, and the verdicts on all.

        Raises
        ------
        DataError
            When there is no response, or a response is not a string.
        ParameterTypeError
            When the task or the verifier returns a value of the wrong type.
        """
        checked = check_responses(responses, None, "responses")
        judge = Judge(task, self.verifier)
        rows = judge.rows_of(instance, checked, {})
        drawn = Drawn(["instance"], [instance], len(checked), rows)
        picks = pick_responses(trajectories_of([drawn], judge), self.method)
        return aggregate_drawn(drawn, judge, picks, len(checked), self.method)[0]


def pick_responses(
    trajectories: pl.DataFrame, method: AggregationMethod, k_values: Sequence[int] | None = None
) -> dict[tuple[str, int], Pick]:
    """Select by instance and K among the first K responses, or among all `n_drawn` of each draw."""
    selectors: list[SelectorName] = [SELECTOR_OF_METHOD[method], "majority_vote"]
    problems = select_answers(
        with_reference(trajectories),
        selectors=[*dict.fromkeys(selectors)],
        budgets=k_values,
        by="n_drawn",
    )
    picked, voted = (problems.filter(selector=selector) for selector in selectors)
    columns = [picked[name] for name in ("problem_id", "n_attempts", "attempt", "answer")]
    return {
        (problem, k): (attempt, answer, agreement)
        for problem, k, attempt, answer, agreement in zip(*columns, voted["agreement"], strict=True)
    }


def aggregate_drawn(
    drawn: Drawn,
    judge: Judge,
    picks: Mapping[tuple[str, int], Pick],
    k: int,
    method: AggregationMethod,
) -> list[AggregatedResult]:
    """Aggregate the first K responses to each instance."""
    verdicts = [judge.results[row] for row in drawn.rows]
    results = []
    for i, problem_id in enumerate(drawn.problem_ids):
        first = i * drawn.n
        attempt, answer, agreement = picks[problem_id, k]
        individual = verdicts[first : first + k]
        n_correct = sum(result.is_correct for result in individual)
        response = "" if attempt is None else judge.responses[drawn.rows[first + attempt]]
        results.append(
            AggregatedResult(
                selected_response=response,
                is_correct=attempt is not None and individual[attempt].is_correct,
                k_trajectories=k,
                selection_method=method,
                individual_results=individual,
                agreement_rate=agreement,
                any_correct=n_correct > 0,
                num_correct=n_correct,
                metadata={"attempt": attempt, "answer": answer},
            )
        )
    return results
