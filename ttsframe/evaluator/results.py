"""Results of an evaluation: an aggregated instance, and accuracy by complexity at one K."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe import _html
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import DataError
from ttsframe.evaluator._judging import with_reference
from ttsframe.evaluator.tasks import TaskResult
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.expectation import expected_accuracy
from ttsframe.votes.selectors import select_answers

__all__ = [
    "SELECTOR_OF_METHOD",
    "AggregatedResult",
    "AggregationMethod",
    "EvaluationResult",
    "ResultsByK",
    "check_trajectories",
    "expected_problems",
    "max_solved",
    "method_of",
    "problems_of",
]

AggregationMethod: TypeAlias = Literal["majority_vote", "first_valid", "verifier", "oracle"]
Subsets: TypeAlias = Literal["prefix", "all"]

SELECTOR_OF_METHOD: Final[MappingProxyType[AggregationMethod, SelectorName]] = MappingProxyType({
    "majority_vote": "majority_vote",
    "first_valid": "first_valid",
    "verifier": "best_of_n",
    "oracle": "oracle",
})
"""The selector that implements each method."""

ROUNDING: Final = 1e-9
"""A mean this close to a threshold is at the threshold."""


@dataclass
class AggregatedResult:
    """The aggregate of K trajectories of one instance.

    Parameters
    ----------
    selected_response
        The response with the selected answer: the earliest one, or with the method "verifier" the
        one with the highest score. Empty if no response has an answer.
    is_correct
        Whether the selected response verifies; false if none was selected.
    k_trajectories
        Number of responses, K.
    selection_method
        Method of the aggregator.
    individual_results
        Verdict on each response, in their order. A response without an answer is never right.
    agreement_rate
        Votes of the most frequent answer divided by K, for every method; responses that do not parse
        count in K and have no vote.
    any_correct
        Whether at least one of the K responses verifies: one draw of K, pass@K with n = K.
    num_correct
        Number of responses that verify.
    metadata
        ``"attempt"``, the number of the selected response from 0, and ``"answer"``, the selected
        answer as the task parses it; None if none was selected.

    See Also
    --------
    TrajectoryAggregator : Makes these.

    Examples
    --------
    >>> from ttsframe.evaluator import AggregatedResult
    >>> AggregatedResult("It is 5.", True, 3, "majority_vote", agreement_rate=2 / 3).is_correct
    True
    """

    selected_response: str
    is_correct: bool
    k_trajectories: int
    selection_method: str
    individual_results: list[TaskResult] = field(default_factory=list)
    agreement_rate: float = 0.0
    any_correct: bool = False
    num_correct: int = 0
    metadata: dict[str, object] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Return the counts and the response for notebooks."""
        return _html.fragment(
            _html.table(
                pl.DataFrame({
                    "is_correct": self.is_correct,
                    "answer": str(self.metadata.get("answer", "")),
                    "k": self.k_trajectories,
                    "method": self.selection_method,
                    "agreement_rate": self.agreement_rate,
                    "num_correct": self.num_correct,
                })
            ),
            _html.folded("selected response", _html.preformatted(self.selected_response)),
        )


@dataclass
class EvaluationResult:
    """Accuracy of K trajectories by complexity, and the trajectories.

    Parameters
    ----------
    task_name
        Name of the task.
    k_trajectories
        Number of trajectories of an instance that are aggregated, K.
    selection_method
        Method of the aggregator.
    accuracy_by_complexity
        Share of the solved instances of each level; with `reuse`, its mean over all subsets of K
        trajectories.
    max_solved_complexity
        Highest level with an accuracy at or above the threshold of the evaluation, regardless of the
        levels below; 0 if none.
    all_results
        The aggregated instances, by level; with `reuse`, of their first K trajectories.
    oracle_accuracy_by_complexity
        Mean of `any_correct` over the instances of each level, the upper bound of all methods at this
        K; with `reuse`, pass@K of all trajectories.
    trajectories
        One row per response, with `problem_id` (of the instance), `complexity`, `attempt`,
        `completion`, `answer` and `answer_key` (as the task parses them; null: no answer),
        `is_correct`, and with a verifier or a count of tokens also `score` and `n_tokens`. The
        selectors and estimators of the package read this table.
    subsets
        "prefix": the trajectories were drawn for this K; "all": more were drawn, and the result
        averages over every subset of K of them.

    See Also
    --------
    Evaluator : Makes these.

    Examples
    --------
    >>> from ttsframe.evaluator import EvaluationResult
    >>> EvaluationResult("tower_of_hanoi", 5, "majority_vote", {1: 1.0, 2: 0.5}, 2).k_trajectories
    5
    """

    task_name: str
    k_trajectories: int
    selection_method: str
    accuracy_by_complexity: dict[int, float] = field(default_factory=dict)
    max_solved_complexity: int = 0
    all_results: list[AggregatedResult] = field(default_factory=list)
    oracle_accuracy_by_complexity: dict[int, float] = field(default_factory=dict)
    trajectories: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False, compare=False)
    subsets: Subsets = "prefix"

    def _repr_html_(self) -> str:
        """Return a chart and a table of accuracy by complexity for notebooks."""
        title = (
            f"{self.task_name}, K = {self.k_trajectories}, {self.selection_method}: highest "
            f"complexity solved {self.max_solved_complexity}"
        )
        if self.trajectories.is_empty() or self.selection_method not in SELECTOR_OF_METHOD:
            levels = sorted(self.accuracy_by_complexity)
            accuracies = [self.accuracy_by_complexity[level] for level in levels]
            rows = pl.DataFrame({"complexity": levels, "accuracy": accuracies})
            return _html.fragment(_html.heading(title), _html.table(rows))
        from ttsframe.charts import complexity_curve
        from ttsframe.charts.picture import show_chart

        rows = self.to_frame()
        return _html.fragment(
            _html.heading(title),
            show_chart(lambda: complexity_curve(rows)),
            _html.table(rows.drop("task", "k", "selector")),
        )

    def to_frame(self, *, confidence_level: float = 0.95) -> pl.DataFrame:
        """Return accuracy by complexity, with an interval for each level.

        Parameters
        ----------
        confidence_level
            Coverage of each interval, in (0, 1).

        Returns
        -------
        pl.DataFrame
            One row per level, ascending; frames of several K can be joined by `pl.concat`:

            - `task` (String), `k` (UInt32), `selector` (String): a name in `SELECTORS`; the method
              "verifier" is `best_of_n`;
            - `complexity` (Int64);
            - `accuracy` (Float64 in [0, 1]), and `ci_low`, `ci_high`: its interval over instances,
              as in `scaling_curve`, null below two instances;
            - `oracle_accuracy` (Float64 in [0, 1]): as in `oracle_accuracy_by_complexity`;
            - `n_instances` (UInt32).

        Raises
        ------
        ParameterError
            When the confidence level is out of range.
        DataError
            When the result has no trajectories, as one made by hand.
        """
        selector = SELECTOR_OF_METHOD[method_of(self)]
        problems = problems_of(self).lazy()
        curve = scaling_curve(
            problems, by="complexity", confidence_level=confidence_level
        ).collect()
        oracle = curve.filter(selector="oracle").select("complexity", oracle_accuracy="accuracy")
        return (
            curve
            .filter(selector=selector)
            .join(oracle, on="complexity")
            .sort("complexity")
            .select(
                pl.lit(self.task_name).alias("task"),
                pl.lit(self.k_trajectories, pl.UInt32).alias("k"),
                "selector",
                "complexity",
                "accuracy",
                "ci_low",
                "ci_high",
                "oracle_accuracy",
                pl.col("n_problems").alias("n_instances"),
            )
        )


class ResultsByK(dict[int, EvaluationResult]):
    """Results by K, which a notebook shows in one chart."""

    def _repr_html_(self) -> str:
        """Return a chart and a table of all K for notebooks."""
        from ttsframe.charts import complexity_curve
        from ttsframe.charts.picture import show_chart

        rows = pl.concat([result.to_frame() for result in self.values()])
        return _html.fragment(
            show_chart(lambda: complexity_curve(rows)), _html.table(rows.drop("task", "selector"))
        )


def problems_of(result: EvaluationResult, trajectories: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return `problems` of a result, or of other trajectories, under its method and as the oracle."""
    rows = with_reference(check_trajectories(result) if trajectories is None else trajectories)
    method, k = method_of(result), result.k_trajectories
    if result.subsets == "all":
        return expected_problems(rows, method, [k])
    selectors: list[SelectorName] = [SELECTOR_OF_METHOD[method], "oracle"]
    return select_answers(rows, selectors=selectors, budgets=k, by="complexity")


def expected_problems(
    trajectories: pl.DataFrame, method: AggregationMethod, k_values: Sequence[int]
) -> pl.DataFrame:
    """Average a method and the oracle over all subsets of K, once for instances with equal votes."""
    selectors: list[SelectorName] = [SELECTOR_OF_METHOD[method], "oracle"]
    votes = trajectories.group_by("complexity", "problem_id", "answer_key").agg(
        n=pl.len(), right=pl.col("is_correct").sum()
    )
    vote = pl.concat_str(pl.col("answer_key").is_null(), "n", "right", separator=" ")
    ballots = votes.group_by("complexity", "problem_id").agg(ballot=vote.sort().str.join(", "))
    if "best_of_n" in selectors:
        # Attempts with equal votes can have different scores.
        ballots = ballots.with_columns(ballot="problem_id")
    grouped = ballots.with_columns(first=pl.col("problem_id").min().over("ballot"))
    firsts = trajectories.filter(pl.col("problem_id").is_in(grouped["first"].unique().implode()))
    expected = expected_accuracy(firsts, selectors=selectors, budgets=k_values)
    return (
        grouped
        .sort("complexity", "problem_id")
        .join(expected, left_on="first", right_on="problem_id", maintain_order="left_right")
        .drop("ballot", "first")
    )


def check_trajectories(result: EvaluationResult) -> pl.DataFrame:
    """Return the trajectories of a result, which must exist."""
    if result.trajectories.is_empty():
        raise DataError(
            f"the result of K = {result.k_trajectories} has no trajectories, expected one row per "
            "response. Hint: Evaluator.evaluate(...) makes results that have them."
        )
    return result.trajectories


def method_of(result: EvaluationResult) -> AggregationMethod:
    """Return the method of a result, which must be known."""
    for method in SELECTOR_OF_METHOD:
        if result.selection_method == method:
            return method
    raise DataError(
        f"selection_method == {result.selection_method!r}, must be one of {[*SELECTOR_OF_METHOD]}."
    )


def max_solved(accuracy: Mapping[int, float], threshold: float) -> int:
    """Return the highest level at or above a threshold, 0 if none."""
    passed = (level for level, value in accuracy.items() if value >= threshold - ROUNDING)
    return max(passed, default=0)
