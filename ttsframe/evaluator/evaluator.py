"""The experiment: accuracy across levels of complexity at several numbers of trajectories."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

import polars as pl

from ttsframe._checks import check_between, check_positive
from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator._judging import (
    CountTokens,
    Drawn,
    Judge,
    check_responses,
    trajectories_of,
)
from ttsframe.evaluator.aggregator import TrajectoryAggregator, aggregate_drawn
from ttsframe.evaluator.k_report import KScaling
from ttsframe.evaluator.k_scaling import scale_with_k
from ttsframe.evaluator.results import (
    SELECTOR_OF_METHOD,
    EvaluationResult,
    max_solved,
    method_of,
    problems_of,
)
from ttsframe.evaluator.tasks import Task
from ttsframe.evaluator.tasks.task import check_levels

__all__ = ["Evaluator"]

GenerateFn: TypeAlias = Callable[[str, int], list[str]]


class Evaluator:
    """Evaluate a model on a task across levels of complexity, with K trajectories of each instance.

    If K > 1 trajectories solve what one does not, level after level, the collapse of reasoning with
    complexity is one of the trajectory, not of the model.

    Parameters
    ----------
    task
        The task.
    aggregator
        How K trajectories become one answer; None is the majority vote.

    See Also
    --------
    ttsframe.charts.complexity_curve : Draws what `EvaluationResult.to_frame` gives.

    Examples
    --------
    >>> from ttsframe.evaluator import ArithmeticSequence, Evaluator
    >>> task = ArithmeticSequence(seed=0)
    >>> answers = {one.prompt: one.ground_truth for one in task.generate_batch((1, 2), 10)}
    >>> def model(prompt, k):  # right every second time
    ...     return [answers[prompt] if i % 2 else "no idea" for i in range(k)]
    >>> evaluator = Evaluator(task)
    >>> results = evaluator.evaluate(model, (1, 2), k_values=[1, 5], verbose=False)
    >>> results[1].accuracy_by_complexity, results[5].accuracy_by_complexity
    ({1: 0.0, 2: 0.0}, {1: 1.0, 2: 1.0})
    >>> report = evaluator.compare_k_scaling(results)
    >>> report["rise"]["rise"], report["by_k"][1]["is_at_top"]
    (2, True)
    """

    def __init__(self, task: Task, aggregator: TrajectoryAggregator | None = None) -> None:
        if not isinstance(task, Task):
            raise ParameterTypeError(f"task is a {type(task).__name__}, must be a Task.")
        self.task = task
        self.aggregator = TrajectoryAggregator() if aggregator is None else aggregator

    def evaluate(
        self,
        generate_fn: GenerateFn,
        complexity_range: tuple[int, int],
        k_values: Sequence[int] = (1, 5, 10),
        trials_per_complexity: int = 10,
        verbose: bool = True,
        *,
        reuse: bool = False,
        count_tokens: CountTokens | None = None,
        threshold: float = 0.5,
    ) -> dict[int, EvaluationResult]:
        r"""Measure accuracy at each level of complexity and each K.

        For each level the task makes the instances, the same for every K. For each K and each
        instance the model gives K trajectories, which are verified and aggregated.

        Parameters
        ----------
        generate_fn
            The model: called with a prompt and a number, returns as many independent responses. It
            is called level by level, within a level K by K, within K instance by instance.
        complexity_range
            First and last level, both included.
        k_values
            Numbers of trajectories that are aggregated.
        trials_per_complexity
            Instances of each level. One that a task makes twice, such as the tower on the same two
            pegs, counts as two trials.
        verbose
            Write a line to standard error when a level is done.
        reuse
            False draws anew for each K. True draws as many trajectories of an instance as the
            largest K says, once, and every K reads them: its accuracy is the mean over all subsets
            of K of them, which is unbiased, and smaller K are less noisy than draws of their own.
        count_tokens
            Called with a response, returns its length in tokens, for `compare_k_scaling` under
            equal token budgets.
        threshold
            Accuracy from which on a level counts as solved in `max_solved_complexity`, in [0, 1].

        Returns
        -------
        dict[int, EvaluationResult]
            The result of each K, in the order of `k_values`. With `reuse` they share one table of
            trajectories.

        Raises
        ------
        ParameterTypeError
            When a parameter has the wrong type, or a callable returns what it must not.
        ParameterError
            When a parameter is impossible, or the task has no such level.
        DataError
            When `generate_fn` does not return as many strings as it was asked for; the message
            names the instance and K. What `generate_fn` or the task raise themselves passes
            through, with a note that does.

        Notes
        -----
        With a right answer in c of n trajectories, the oracle at K under `reuse` is pass@K,
        :math:`1 - \binom{n-c}{K} / \binom{n}{K}`; majority vote, first valid and verifier are exact
        too (see `expected_accuracy`). For K of 1, 5 and 10 that is 10 trajectories in place of 16.

        References
        ----------
        Shojaee et al. (2025), The Illusion of Thinking: Understanding the Strengths and Limitations
        of Reasoning Models via the Lens of Problem Complexity, arXiv:2506.06941, which reports the
        collapse.
        """
        if not callable(generate_fn):
            raise ParameterTypeError(
                f"generate_fn is a {type(generate_fn).__name__}, must be callable with a prompt and "
                "a number of responses."
            )
        levels = check_levels(complexity_range)
        numbers = _check_k_values(k_values)
        n_trials = check_positive(trials_per_complexity, "trials_per_complexity")
        check_between(threshold, "threshold", 0.0, 1.0)
        judge = Judge(self.task, self.aggregator.verifier, count_tokens)
        results = {
            k: EvaluationResult(
                self.task.name, k, self.aggregator.method, subsets="all" if reuse else "prefix"
            )
            for k in numbers
        }
        tables: dict[int, list[pl.DataFrame]] = {k: [] for k in numbers}
        for level in levels:
            instances = self._instances(level, n_trials)
            drawn = trajectories = None
            for k, result in results.items():
                if drawn is None or trajectories is None or not reuse:
                    n = max(numbers) if reuse else k
                    drawn = [_draw(generate_fn, one, n, judge) for one in instances]
                    trajectories = trajectories_of(drawn, judge)
                tables[k].append(trajectories)
                _add_level(result, level, drawn, trajectories)
            if verbose:
                sys.stderr.write(_progress(self.task.name, level, results))
        shared = pl.concat(tables[numbers[0]]) if reuse else None
        for k, result in results.items():
            result.trajectories = pl.concat(tables[k]) if shared is None else shared
            result.max_solved_complexity = max_solved(result.accuracy_by_complexity, threshold)
        return results

    def compare_k_scaling(
        self,
        results: Mapping[int, EvaluationResult],
        *,
        threshold: float = 0.5,
        token_budgets: int | Sequence[int] | None = None,
        confidence_level: float = 0.95,
    ) -> KScaling:
        r"""Say whether the largest solvable complexity rises with K, also under equal token budgets.

        The largest solvable complexity is the highest level such that every level up to it has an
        accuracy at or above the threshold. If it rises with K although all K spend the same number
        of tokens, collapse is a matter of the trajectory.

        Parameters
        ----------
        results
            What `evaluate` returns, of at least two K on the same levels; or results of several
            evaluations by one method, on other instances of one task.
        threshold
            Accuracy from which on a level counts as solved, in [0, 1].
        token_budgets
            Tokens for an instance, shared equally among its K trajectories, at each of which all K
            are compared; None is the length of the longest trajectory at the smallest K, so that
            K = 1 is not cut. It takes trajectories that were counted (`count_tokens`).
        confidence_level
            Coverage of each interval, in (0, 1).

        Returns
        -------
        KScaling
            A dict that can be written as JSON; `KScaling` says what is under each key, and
            ``"conclusion"`` in words.

        Raises
        ------
        ParameterTypeError
            When a parameter has the wrong type.
        ParameterError
            When a parameter is impossible, there are fewer than two K, or token budgets are given
            and tokens were not counted.
        DataError
            When the results are not of one task, method and set of levels, or have no trajectories.

        Notes
        -----
        A level is shown to pass, or to fail, by a one-sided test of its instances' values against the
        threshold: the exact binomial test; for values between 0 and 1, as `reuse` gives them,
        Student's t, where at least 5 of n instances would be solved, and 5 unsolved, at the threshold
        (p is never below that of n instances that are all on one side). With :math:`p^+_j` and
        :math:`p^-_j` the p-values of level j and a chance of error :math:`\alpha` at either end, the
        largest solvable level is at least the last c with :math:`p^+_j \le \alpha` for all
        :math:`j \le c`, and less than the first c with :math:`p^-_j \le \alpha` for all
        :math:`j \ge c`: levels are tested upwards until one is not shown to pass, and downwards until
        one is not shown to fail, so no test needs a correction for the others. The interval of the
        rise is the difference of two such intervals, each with half of the error, and

        .. math::

            p = 4 \min_c \max \Bigl( \max_{j \le c} p^+_j(K_2), \;
            \max_{j \ge c} p^-_j(K_1) \Bigr)

        for a rise, or with both K exchanged for a fall, whichever is smaller: p is at most
        :math:`1 - \gamma` where the interval of level :math:`\gamma` does not hold 0. Having the same
        instances at both K does not help here, since where a level lies is a matter of each K alone;
        it does in ``accuracy_differences``.

        This is cautious, with few instances above all: of 10 instances 9 must be solved to show that a
        level passes one half, and 9 unsolved to show that it fails. A bootstrap of the instances is
        not: it sees rises where accuracy grows on levels that are solved already. The repository's
        ``benchmarks/results/k_scaling.txt`` has the size of the test, the coverage and the power.

        Under a token budget B a trajectory may have B / K tokens. A longer one would have been cut
        off, and counts as one without an answer. This is a replay: a model that knew its budget
        might write less.

        References
        ----------
        Berger (1982), Multiparameter Hypothesis Testing and Acceptance Sampling, Technometrics 24,
        295-300, on passing all tests. Maurer, Hothorn and Lehmacher (1995), Multiple Comparisons in
        Drug Clinical Trials and Preclinical Assays: A-Priori Ordered Hypotheses, in Vollmar (ed.),
        Biometrie in der chemisch-pharmazeutischen Industrie 6, 3-18, on testing in order. Clopper and
        Pearson (1934), The Use of Confidence or Fiducial Limits Illustrated in the Case of the
        Binomial, Biometrika 26, 404-413.
        """
        return scale_with_k(
            results,
            threshold=threshold,
            token_budgets=token_budgets,
            confidence_level=confidence_level,
        )

    def _instances(self, level: int, n_trials: int) -> list[Drawn]:
        """Make the instances of a level, each with an id that is its prompt's."""
        made = self.task.generate_batch((level, level), n_trials)
        if len(made) != n_trials or any(one.complexity != level for one in made):
            raise DataError(
                f"{self.task.name}.generate_batch(({level}, {level}), {n_trials}) made instances of "
                f"complexity {[one.complexity for one in made]}, expected {n_trials} of {level}."
            )
        seen: Counter[str] = Counter()
        instances = []
        for one in made:
            text = one.prompt.encode("utf-8", "backslashreplace")
            digest = blake2b(text, digest_size=8).hexdigest()
            # The same prompt may come several times, as independent trials.
            instances.append(Drawn(f"{level}-{digest}-{seen[digest]}", one))
            seen[digest] += 1
        return instances


def _check_k_values(k_values: object) -> tuple[int, ...]:
    """Return the numbers of trajectories, each once."""
    if not isinstance(k_values, Sequence) or isinstance(k_values, str):
        raise ParameterTypeError(
            f"k_values is a {type(k_values).__name__}, must be a list of whole numbers."
        )
    if not k_values:
        raise ParameterError("k_values is empty, must hold at least one number of trajectories.")
    return tuple(dict.fromkeys(check_positive(k, "k_values") for k in k_values))


def _draw(generate_fn: GenerateFn, instance: Drawn, k: int, judge: Judge) -> Drawn:
    """Let the model respond to an instance, and judge what it wrote."""
    prompt = instance.instance.prompt
    where = f"complexity {instance.instance.complexity}, instance {instance.problem_id}, K = {k}"
    try:
        responses = check_responses(generate_fn(prompt, k), k, f"generate_fn at {where}")
        return instance.with_responses(responses, judge)
    except DataError:
        raise
    except Exception as error:
        error.add_note(f"At {where}.")
        raise


def _add_level(
    result: EvaluationResult, level: int, drawn: Sequence[Drawn], trajectories: pl.DataFrame
) -> None:
    """Add what a level's trajectories come to."""
    method, k = method_of(result), result.k_trajectories
    problems = problems_of(result, trajectories)
    for accuracy, selector in (
        (result.accuracy_by_complexity, SELECTOR_OF_METHOD[method]),
        (result.oracle_accuracy_by_complexity, "oracle"),
    ):
        accuracy[level] = problems.filter(selector=selector).select(pl.col("value").mean()).item()
    result.all_results += aggregate_drawn(drawn, trajectories, k, method)


def _progress(task_name: str, level: int, results: Mapping[int, EvaluationResult]) -> str:
    """Say how a level went."""
    found = [f"{one.accuracy_by_complexity[level]:.1%} at K = {k}" for k, one in results.items()]
    return f"{task_name}, complexity {level}: {', '.join(found)}\n"
