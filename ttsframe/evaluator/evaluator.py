"""Evaluation of a model on a task: accuracy by complexity and number of trajectories."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import fsum
from typing import NamedTuple, TypeAlias

import polars as pl

from ttsframe._checks import check_between, check_positive
from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator._judging import (
    CountTokens,
    Drawn,
    Judge,
    check_responses,
    trajectories_of,
    with_reference,
)
from ttsframe.evaluator.aggregator import (
    TrajectoryAggregator,
    aggregate_drawn,
    pick_responses,
)
from ttsframe.evaluator.k_report import KScaling
from ttsframe.evaluator.k_scaling import scale_with_k
from ttsframe.evaluator.results import (
    SELECTOR_OF_METHOD,
    AggregatedResult,
    AggregationMethod,
    EvaluationResult,
    ResultsByK,
    expected_problems,
    max_solved,
)
from ttsframe.evaluator.tasks import Task, TaskInstance
from ttsframe.evaluator.tasks.task import check_levels

__all__ = ["Evaluator"]

GenerateFn: TypeAlias = Callable[[str, int], list[str]]


class _Problem(NamedTuple):
    """An instance with its id, and the judge's rows of its distinct responses so far."""

    problem_id: str
    instance: TaskInstance
    known: dict[str, int]


class Evaluator:
    """Evaluate a model on a task across levels of complexity, with K trajectories per instance.

    If K > 1 trajectories solve levels that one trajectory does not, the collapse of reasoning with
    complexity is a property of the single trajectory, not of the model.

    The names of this class (`method`, `k_trajectories`, `num_correct`, `generate_fn`, a positional
    `verbose`) are those of a fixed interface. The rest of the package says `selector`, `budget` and
    `n_correct` instead.

    Parameters
    ----------
    task
        The task.
    aggregator
        Selects one of K trajectories; None is the majority vote.

    See Also
    --------
    ttsframe.charts.complexity_curve : Draws the table of `EvaluationResult.to_frame`.

    Examples
    --------
    >>> from ttsframe.evaluator import ArithmeticSequence, Evaluator
    >>> task = ArithmeticSequence(seed=0)
    >>> answers = {item.prompt: item.ground_truth for item in task.generate_batch((1, 2), 10)}
    >>> def model(prompt, k):  # every second answer is right
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

        For each level the task makes the instances, which are the same for every K. For each K and
        each instance the model gives K trajectories, which are verified and aggregated.

        Parameters
        ----------
        generate_fn
            The model: called with a prompt and a number, returns as many independent responses. The
            calls are ordered by level, then K, then instance.
        complexity_range
            First and last level, both included.
        k_values
            Numbers of trajectories that are aggregated.
        trials_per_complexity
            Instances of each level. Equal instances, such as towers on the same two pegs, count as
            separate trials.
        verbose
            Write a line to standard error after each level.
        reuse
            False draws new trajectories for each K. True draws as many trajectories per instance as
            the largest K, once, and uses them for every K: the accuracy is the mean over all subsets
            of K of them, which is unbiased and less noisy for smaller K.
        count_tokens
            Called with a response, returns its length in tokens, for `compare_k_scaling` under
            equal token budgets.
        threshold
            Accuracy at which a level counts as solved in `max_solved_complexity`, in [0, 1].

        Returns
        -------
        dict[int, EvaluationResult]
            The result of each K, in the order of `k_values`. With `reuse` they share one table of
            trajectories.

        Raises
        ------
        ParameterTypeError
            When a parameter has the wrong type, or a callable returns a value of the wrong type.
        ParameterError
            When a parameter is out of range, or the task has no such level.
        DataError
            When `generate_fn` does not return the requested number of strings; the message names
            the instance and K. Errors of `generate_fn` and of the task pass through, with a note
            that names them.

        Notes
        -----
        With c right answers in n trajectories, the oracle at K under `reuse` is pass@K,
        :math:`1 - \binom{n-c}{K} / \binom{n}{K}`; majority vote, first valid and verifier are exact
        too (see `expected_accuracy`). For K of 1, 5 and 10 that takes 10 trajectories instead of 16.

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
        method = self.aggregator.method
        results = ResultsByK({
            k: EvaluationResult(self.task.name, k, method, subsets="all" if reuse else "prefix")
            for k in numbers
        })
        n_of_draws = (max(numbers),) if reuse else numbers
        tables = []
        for level in levels:
            problems = self._problems(level, n_trials)
            judge = Judge(self.task, self.aggregator.verifier, count_tokens)
            drawn = {n: _draw_all(generate_fn, problems, n, judge) for n in n_of_draws}
            table = trajectories_of([*drawn.values()], judge)
            tables.append(table)
            picks = pick_responses(table, method, numbers if reuse else None)
            for k, result in results.items():
                of_k = drawn[max(numbers) if reuse else k]
                aggregated = aggregate_drawn(of_k, judge, picks, k, method)
                result.all_results += aggregated
                _add_accuracies(result, level, aggregated)
            if reuse:
                _average_over_subsets(results, level, table, method)
            if verbose:
                sys.stderr.write(_progress(self.task.name, level, results))
        trajectories = {
            n: table.drop("n_drawn")
            for (n,), table in pl.concat(tables).partition_by("n_drawn", as_dict=True).items()
        }
        for k, result in results.items():
            result.trajectories = trajectories[max(numbers) if reuse else k]
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
        r"""Test whether the largest solvable complexity rises with K, also under equal token budgets.

        The largest solvable complexity is the highest level such that every level up to it has an
        accuracy at or above the threshold. If it rises with K although all K use the same number of
        tokens, the collapse is a property of the single trajectory.

        Parameters
        ----------
        results
            Results of `evaluate`, of at least two K on the same levels; or results of several
            evaluations by one method, on other instances of one task.
        threshold
            Accuracy at which a level counts as solved, in [0, 1].
        token_budgets
            Tokens per instance, shared equally among its K trajectories; all K are compared at each
            budget. None is the length of the longest trajectory at the smallest K, so that K = 1 is
            not truncated. Needs trajectories with counted tokens (`count_tokens`).
        confidence_level
            Coverage of each interval, in (0, 1).

        Returns
        -------
        KScaling
            A dict that can be written as JSON; `KScaling` documents its keys. The key
            ``"conclusion"`` is a text.

        Raises
        ------
        ParameterTypeError
            When a parameter has the wrong type.
        ParameterError
            When a parameter is out of range, there are fewer than two K, or token budgets are given
            and tokens were not counted.
        DataError
            When the results are not of one task, method and set of levels, or have no trajectories.

        Notes
        -----
        A one-sided test compares the values of a level's instances with the threshold, to show that
        the level passes or that it fails. It is the exact binomial test; for values between 0 and 1,
        as `reuse` gives them, it is Student's t if at least 5 of n instances would be solved, and 5
        unsolved, at the threshold (p is never below that of n instances that are all on one side).
        With :math:`p^+_j` and :math:`p^-_j` the p-values of level j and an error probability
        :math:`\alpha` at either end, the largest solvable level is at least the last c with
        :math:`p^+_j \le \alpha` for all :math:`j \le c`, and less than the first c with
        :math:`p^-_j \le \alpha` for all :math:`j \ge c`. Levels are tested upwards until one is not
        shown to pass, and downwards until one is not shown to fail, so no test needs a correction for
        the others. The interval of the rise is the difference of two such intervals, each with half of
        the error, and

        .. math::

            p = 4 \min_c \max \Bigl( \max_{j \le c} p^+_j(K_2), \;
            \max_{j \ge c} p^-_j(K_1) \Bigr)

        for a rise, or with both K exchanged for a fall, whichever is smaller. p is at most
        :math:`1 - \gamma` if the interval of level :math:`\gamma` excludes 0. Using the same instances
        at both K does not narrow this interval, because the position of a level depends on each K
        alone; it narrows ``accuracy_differences``.

        ``area`` asks less: whether accuracy was gained at all, in levels. With :math:`\bar d_j` the mean
        over the n instances of level :math:`x_j` of the value at the largest K minus that at the
        smallest, and :math:`w_j` half the distance between the levels beside it (a half at the first and
        the last of consecutive levels), the area is :math:`\sum_j w_j \bar d_j`, with the variance
        :math:`\sum_j w_j^2 s_j^2 / n_j` and Student's t with Satterthwaite's degrees of freedom. A level
        whose pairs all agree has :math:`2 / (n + 2)^2` in the place of :math:`s^2 / n`. If both curves fall
        from above .95 to below .05, this is the rise of the mean of the levels at which instances begin
        to fail, the estimate of Spearman and Kaerber. Otherwise it is accuracy gained within the levels
        tested, and never shows that harder levels became solvable. Its coverage and power are in
        ``benchmarks/results/k_area.txt``.

        The test of the largest solvable level is conservative, above all with few instances: 9 of 10 instances must be solved to
        show that a level passes one half, and 9 unsolved to show that it fails. A bootstrap of the
        instances is not conservative: it sees rises where accuracy grows on levels that are solved
        already. The repository's ``benchmarks/results/k_scaling.txt`` has the size of the test, the
        coverage and the power.

        Under a token budget B a trajectory may have B / K tokens. A longer one would have been
        truncated, and counts as one without an answer. This is a replay: a model that knew its budget
        might write less.

        References
        ----------
        Berger (1982), Multiparameter Hypothesis Testing and Acceptance Sampling, Technometrics 24,
        295-300, on passing all tests. Maurer, Hothorn and Lehmacher (1995), Multiple Comparisons in
        Drug Clinical Trials and Preclinical Assays: A-Priori Ordered Hypotheses, in Vollmar (ed.),
        Biometrie in der chemisch-pharmazeutischen Industrie 6, 3-18, on testing in order. Clopper and
        Pearson (1934), The Use of Confidence or Fiducial Limits Illustrated in the Case of the
        Binomial, Biometrika 26, 404-413. Finney (1978), Statistical Method in Biological Assay, on the
        estimate of Spearman and Kaerber. Satterthwaite (1946), An Approximate Distribution of Estimates of
        Variance Components, Biometrics Bulletin 2, 110-114.
        """
        return scale_with_k(
            results,
            threshold=threshold,
            token_budgets=token_budgets,
            confidence_level=confidence_level,
        )

    def _problems(self, level: int, n_trials: int) -> list[_Problem]:
        """Make the instances of a level, with ids that depend only on their prompts."""
        instances = self.task.generate_batch((level, level), n_trials)
        complexities = [instance.complexity for instance in instances]
        if complexities != [level] * n_trials:
            raise DataError(
                f"{self.task.name}.generate_batch(({level}, {level}), {n_trials}) made instances of "
                f"complexity {complexities}, expected {n_trials} of {level}."
            )
        n_repeats: Counter[str] = Counter()
        problems = []
        for instance in instances:
            text = instance.prompt.encode("utf-8", "backslashreplace")
            digest = blake2b(text, digest_size=8).hexdigest()
            # Equal prompts are independent trials.
            problems.append(_Problem(f"{level}-{digest}-{n_repeats[digest]}", instance, {}))
            n_repeats[digest] += 1
        return problems


def _check_k_values(k_values: object) -> tuple[int, ...]:
    """Check the numbers of trajectories, and drop repeated ones."""
    if not isinstance(k_values, Sequence) or isinstance(k_values, str):
        raise ParameterTypeError(
            f"k_values is a {type(k_values).__name__}, must be a list of integers."
        )
    if not k_values:
        raise ParameterError("k_values is empty, must contain at least one number.")
    return tuple(dict.fromkeys(check_positive(k, "k_values") for k in k_values))


def _draw_all(generate_fn: GenerateFn, problems: Sequence[_Problem], k: int, judge: Judge) -> Drawn:
    """Get K responses of the model to each instance, and judge them."""
    names, instances, _ = zip(*problems, strict=True)
    rows = [row for problem in problems for row in _draw(generate_fn, problem, k, judge)]
    return Drawn(names, instances, k, rows)


def _draw(generate_fn: GenerateFn, problem: _Problem, k: int, judge: Judge) -> list[int]:
    """Get the responses of the model to an instance, and judge them."""
    problem_id, instance, known = problem
    where = f"complexity {instance.complexity}, instance {problem_id}, K = {k}"
    try:
        responses = generate_fn(instance.prompt, k)
        checked = check_responses(responses, k, f"generate_fn at {where}")
        return judge.rows_of(instance, checked, known)
    except DataError:
        raise
    except Exception as error:
        error.add_note(f"At {where}.")
        raise


def _add_accuracies(
    result: EvaluationResult, level: int, aggregated: Sequence[AggregatedResult]
) -> None:
    """Add the shares of the instances of a level that are solved, and that could be."""
    n = len(aggregated)
    result.accuracy_by_complexity[level] = sum(one.is_correct for one in aggregated) / n
    result.oracle_accuracy_by_complexity[level] = sum(one.any_correct for one in aggregated) / n


def _average_over_subsets(
    results: Mapping[int, EvaluationResult],
    level: int,
    trajectories: pl.DataFrame,
    method: AggregationMethod,
) -> None:
    """Replace the accuracies of a level by means over all subsets of K responses."""
    problems = expected_problems(with_reference(trajectories), method, [*results])
    for k, result in results.items():
        for accuracy, selector in (
            (result.accuracy_by_complexity, SELECTOR_OF_METHOD[method]),
            (result.oracle_accuracy_by_complexity, "oracle"),
        ):
            values = problems.filter(selector=selector, budget=k)["value"]
            accuracy[level] = fsum(values) / len(values)


def _progress(task_name: str, level: int, results: Mapping[int, EvaluationResult]) -> str:
    """Return the progress line of a level."""
    accuracies = [
        f"{result.accuracy_by_complexity[level]:.1%} at K = {k}" for k, result in results.items()
    ]
    return f"{task_name}, complexity {level}: {', '.join(accuracies)}\n"
