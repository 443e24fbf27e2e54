"""Result of a comparison of numbers of trajectories, and its conclusion in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import polars as pl

from ttsframe import _html

__all__ = [
    "AccuracyDifference",
    "Area",
    "KComparison",
    "KRow",
    "KScaling",
    "Rise",
    "ScalingView",
    "conclude",
    "describe_area",
    "describe_need",
]


class KRow(TypedDict):
    """Findings at one K.

    Parameters
    ----------
    k
        Number of trajectories.
    n_instances
        Instances, over all levels.
    accuracy
        Mean over levels of their accuracy.
    max_solved_complexity
        Highest level at or above the threshold, regardless of the levels below; 0 if none.
    largest_solvable
        Highest level such that every level up to it is at or above the threshold; one less than
        the first level if that fails.
    ci_low
        Lower end of the interval of `largest_solvable`.
    ci_high
        Upper end of that interval.
    is_at_top
        Whether every level passes, so that a larger range could give a larger `largest_solvable`.
    share_cut
        Share of the trajectories that are longer than the token budget allows, in [0, 1].
    mean_tokens
        Mean number of tokens that the trajectories of an instance use, up to the truncation; None if
        tokens were not counted.
    """

    k: int
    n_instances: int
    accuracy: float
    max_solved_complexity: int
    largest_solvable: int
    ci_low: int
    ci_high: int
    is_at_top: bool
    share_cut: float
    mean_tokens: float | None


class Rise(TypedDict):
    """Rise of the largest solvable complexity from the smallest to the largest K.

    Parameters
    ----------
    from_k
        Smallest K.
    to_k
        Largest K.
    rise
        `largest_solvable` at the largest K minus that at the smallest.
    ci_low
        Lower end of the interval of the rise.
    ci_high
        Upper end of that interval.
    p_value
        Two-sided p-value of no rise or fall.
    """

    from_k: int
    to_k: int
    rise: int
    ci_low: int
    ci_high: int
    p_value: float


class Area(TypedDict):
    """Area between the accuracy curves of the smallest and the largest K, in levels.

    Parameters
    ----------
    from_k
        Smallest K.
    to_k
        Largest K.
    area
        The accuracy gained at each level, times the width of the level, summed; the first and the
        last level count half.
    ci_low
        Lower end of its interval; None with a single level, or below two instances a level.
    ci_high
        Upper end of that interval.
    p_value
        Two-sided p-value of no gain or loss.
    is_whole
        Whether both curves are above 0.95 at the first level and below 0.05 at the last. Only then
        is the area a rise of the solved complexity, by the estimate of Spearman and Kaerber.
    """

    from_k: int
    to_k: int
    area: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    is_whole: bool


class AccuracyDifference(TypedDict):
    """Difference in accuracy between a K and the smallest one over all instances, by `compare`.

    Parameters
    ----------
    k
        Number of trajectories.
    from_k
        Smallest K.
    difference
        Mean over instances of the accuracy at this K minus that at the smallest.
    ci_low
        Lower end of its interval; None below two instances.
    ci_high
        Upper end of that interval.
    p_value
        Two-sided: McNemar's mid-p test of values 0 and 1, else the paired t.
    p_adjusted
        The same, with Holm's correction for the number of K.
    """

    k: int
    from_k: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_adjusted: float | None


class KComparison(TypedDict):
    """Comparison of all K, without or with a token budget.

    Parameters
    ----------
    token_budget
        Tokens per instance, shared by its trajectories; None: no budget.
    by_k
        One row per K, ascending.
    rise
        The result in numbers.
    area
        The area between the curves; None if the K do not have the same instances.
    n_instances_needed
        Instances a level, each solved or not, that would show the rise of `largest_solvable` at the
        accuracies found; None without a rise, or if no number up to 100,000 would show it.
    accuracy_differences
        One row per K except the smallest; empty if the K do not have the same instances.
    conclusion
        The result in words.
    """

    token_budget: int | None
    by_k: list[KRow]
    rise: Rise
    area: Area | None
    n_instances_needed: int | None
    accuracy_differences: list[AccuracyDifference]
    conclusion: str


class KScaling(KComparison):
    """Result of `Evaluator.compare_k_scaling`: comparisons without and with token budgets.

    It has the keys of `KComparison`, without a token budget, and these:

    Parameters
    ----------
    task_name
        Name of the task.
    selection_method
        Method of the aggregator.
    threshold
        Accuracy at which a level passes.
    confidence_level
        Coverage of each interval.
    complexities
        The levels, ascending.
    k_values
        The numbers of trajectories, ascending.
    is_paired
        Whether all K have the same instances.
    equal_tokens
        The comparison at each token budget, ascending; empty if tokens were not counted.
    """

    task_name: str
    selection_method: str
    threshold: float
    confidence_level: float
    complexities: list[int]
    k_values: list[int]
    is_paired: bool
    equal_tokens: list[KComparison]


class ScalingView(dict[str, Any]):
    """A `KScaling` that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        """Return the conclusion and a table of all K for notebooks."""
        return _html.fragment(
            _html.paragraph(self["conclusion"]), _html.table(pl.DataFrame(self["by_k"]))
        )


def describe_area(area: Area) -> str:
    """Say what the area between the curves shows, and what it does not."""
    low, high = area["ci_low"], area["ci_high"]
    if low is None or high is None:
        return ""
    numbers = (
        f"{area['area']:+.2f} levels from K = {area['from_k']} to K = {area['to_k']} "
        f"(interval {low:+.2f} to {high:+.2f}, p = {area['p_value']:.2g})"
    )
    if low <= 0.0 <= high:
        return f" The area between the curves, {numbers}, shows no gain or loss."
    if area["is_whole"]:
        change = "rise" if area["area"] > 0.0 else "fall"
        return f" The area between the curves is a {change} of the solved complexity: {numbers}."
    change = "gained" if area["area"] > 0.0 else "lost"
    return (
        f" Accuracy {change} within the levels tested: {numbers}. The levels do not hold both curves whole, "
        "from above 95% to below 5%, so the area alone does not show that harder levels became solvable."
    )


def describe_need(n_needed: int | None, n_per_level: int) -> str:
    """Say how many instances would show the rise that was found and not shown."""
    if n_needed is None or n_needed <= n_per_level:
        return ""
    return (
        f" At the accuracies found, {n_needed:,} instances a level would show a rise; the smallest level "
        f"has {n_per_level:,}."
    )


def conclude(
    rise: Rise,
    by_k: Sequence[KRow],
    *,
    budget: int | None,
    lowest: int,
    confidence_level: float,
    is_oracle: bool,
) -> str:
    """Describe the rise of the largest solvable complexity, and what it leaves open."""
    first, last = by_k[0], by_k[-1]
    low, high = f"K = {rise['from_k']}", f"K = {rise['to_k']}"
    budgeted = (
        "Without a token budget"
        if budget is None
        else f"With {budget:,} tokens per instance at every K"
    )
    if first["is_at_top"] and last["is_at_top"]:
        return (
            f"{budgeted}, every level passes at {low} and at {high}. The range ends before the collapse, so "
            "it cannot show whether K moves it."
        )
    if max(first["largest_solvable"], last["largest_solvable"]) < lowest:
        return (
            f"{budgeted}, complexity {lowest}, the lowest, passes neither at {low} nor at {high}. The range "
            "begins after the collapse, so it cannot show whether K moves it."
        )
    summary = (
        f"{budgeted}, the largest solvable complexity {{}} {first['largest_solvable']} at {low} {{}} "
        f"{last['largest_solvable']} at {high} ({100 * confidence_level:g}% interval of the rise: "
        f"{rise['ci_low']} to {rise['ci_high']}, p = {rise['p_value']:.2g})."
    )
    if rise["ci_high"] < 0:
        return summary.format("falls from", "to") + _cut_share(last, budget)
    if rise["ci_low"] <= 0:
        most = rise["ci_high"]
        open_end = f"; one of up to {most} is not ruled out." if most > 0 else "."
        return (
            summary.format("is", "and") + f" No rise is shown{open_end}" + _cut_share(last, budget)
        )
    parts = [summary.format("rises from", "to")]
    if last["is_at_top"]:
        parts.append(f"Every level passes at {high}, so the rise may be larger.")
    if is_oracle:
        parts.append(
            "The oracle knows the right answers: this is an upper bound for selection methods, and does "
            "not show that any of them reaches it."
        )
    elif budget is None:
        parts.append(
            f"{high} uses more tokens than {low}{_times(first, last)}, so this alone does not show that "
            "the collapse is a property of the single trajectory; only equal token budgets do."
        )
    else:
        used = (first["mean_tokens"] or 0.0) / budget
        parts.append(
            "This supports that the collapse is a property of the single trajectory, provided that a "
            f"model could not have used more of the tokens: at {low} an instance uses {used:.0%} of them."
        )
    return " ".join(parts) + _cut_share(last, budget)


def _times(first: KRow, last: KRow) -> str:
    """Return the ratio of the tokens, if they were counted."""
    if not first["mean_tokens"] or not last["mean_tokens"]:
        return ""
    return f" ({last['mean_tokens'] / first['mean_tokens']:.1f} times the tokens)"


def _cut_share(row: KRow, budget: int | None) -> str:
    """Return the sentence about trajectories that a token budget truncates."""
    if budget is None:
        return ""
    return (
        f" The token budget truncates {row['share_cut']:.0%} of the trajectories at K = {row['k']}."
    )
