"""What a comparison of numbers of trajectories returns, and what it says in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

__all__ = ["AccuracyDifference", "KComparison", "KRow", "KScaling", "Rise", "conclude"]


class KRow(TypedDict):
    """What is found at one K.

    Parameters
    ----------
    k
        Number of trajectories.
    n_instances
        Instances, over all levels.
    accuracy
        Mean over levels of their accuracy.
    max_solved_complexity
        Highest level at or above the threshold, whatever the levels below do; 0 if none.
    largest_solvable
        Highest level such that every level up to it is at or above the threshold; one less than
        the first level where that one is not.
    ci_low
        Lower end of the interval of `largest_solvable`.
    ci_high
        Upper end of it.
    is_at_top
        Whether every level passes: a larger range might show a larger `largest_solvable`.
    share_cut
        Share of the trajectories that are longer than the token budget allows, in [0, 1].
    mean_tokens
        Tokens that the trajectories of an instance spend, on average, one that is cut up to there;
        None where tokens were not counted.
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
    """What the largest solvable complexity rises by between the smallest and the largest K.

    Parameters
    ----------
    from_k
        Smallest K.
    to_k
        Largest K.
    rise
        `largest_solvable` at the largest K less that at the smallest.
    ci_low
        Lower end of the interval of the rise.
    ci_high
        Upper end of it.
    p_value
        Of no rise or fall, two-sided.
    """

    from_k: int
    to_k: int
    rise: int
    ci_low: int
    ci_high: int
    p_value: float


class AccuracyDifference(TypedDict):
    """What `compare` finds between a K and the smallest one, over all instances.

    Parameters
    ----------
    k
        Number of trajectories.
    from_k
        Smallest K.
    difference
        Mean over instances of the accuracy at this K less that at the smallest.
    ci_low
        Lower end of its interval; None below two instances.
    ci_high
        Upper end of it.
    p_value
        Two-sided: McNemar's exact test of values 0 and 1, else the paired t.
    p_adjusted
        The same, corrected for the number of K after Holm.
    """

    k: int
    from_k: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_adjusted: float | None


class KComparison(TypedDict):
    """The comparison of all K, free or at one token budget.

    Parameters
    ----------
    token_budget
        Tokens of an instance, shared by its trajectories; None: each as long as it is.
    by_k
        A row for each K, ascending.
    rise
        The answer, in numbers.
    accuracy_differences
        A row for each K but the smallest; empty where the K do not have the same instances.
    conclusion
        The answer, in words.
    """

    token_budget: int | None
    by_k: list[KRow]
    rise: Rise
    accuracy_differences: list[AccuracyDifference]
    conclusion: str


class KScaling(KComparison):
    """What `Evaluator.compare_k_scaling` returns: the free comparison, and those at token budgets.

    It has the keys of `KComparison`, for trajectories of any length, and these:

    Parameters
    ----------
    task_name
        Name of the task.
    selection_method
        Method of the aggregator.
    threshold
        Accuracy from which on a level passes.
    confidence_level
        Coverage of each interval.
    complexities
        The levels, ascending.
    k_values
        The numbers of trajectories, ascending.
    is_paired
        Whether all K have the same instances.
    equal_tokens
        The comparison at each token budget, ascending; empty where tokens were not counted.
    """

    task_name: str
    selection_method: str
    threshold: float
    confidence_level: float
    complexities: list[int]
    k_values: list[int]
    is_paired: bool
    equal_tokens: list[KComparison]


def conclude(
    rise: Rise,
    by_k: Sequence[KRow],
    *,
    budget: int | None,
    lowest: int,
    confidence_level: float,
    is_oracle: bool,
) -> str:
    """Put the rise of the largest solvable complexity into words, and what it leaves open.

    Parameters
    ----------
    rise
        What it rises by.
    by_k
        What is found at each K.
    budget
        Tokens that the trajectories of an instance share; None: as many as they have.
    lowest
        The lowest level.
    confidence_level
        Coverage of the interval.
    is_oracle
        Whether the right answers were known when one was selected.

    Returns
    -------
    str
        A few sentences.
    """
    first, last = by_k[0], by_k[-1]
    low, high = f"K = {rise['from_k']}", f"K = {rise['to_k']}"
    at = (
        "Without a token budget"
        if budget is None
        else f"With {budget:,} tokens an instance at every K"
    )
    if first["is_at_top"] and last["is_at_top"]:
        return (
            f"{at}, every level passes at {low} and at {high}. The range ends before the collapse, so "
            "it cannot show whether K moves it."
        )
    if max(first["largest_solvable"], last["largest_solvable"]) < lowest:
        return (
            f"{at}, complexity {lowest}, the lowest, passes neither at {low} nor at {high}. The range "
            "begins after the collapse, so it cannot show whether K moves it."
        )
    found = (
        f"{at}, the largest solvable complexity {{}} {first['largest_solvable']} at {low} {{}} "
        f"{last['largest_solvable']} at {high} ({100 * confidence_level:g}% interval of the rise: "
        f"{rise['ci_low']} to {rise['ci_high']}, p = {rise['p_value']:.2g})."
    )
    if rise["ci_high"] < 0:
        return found.format("falls from", "to") + _cut_share(last, budget)
    if rise["ci_low"] <= 0:
        most = rise["ci_high"]
        open_end = f"; one of up to {most} is not ruled out." if most > 0 else "."
        return found.format("is", "and") + f" No rise is shown{open_end}" + _cut_share(last, budget)
    parts = [found.format("rises from", "to")]
    if last["is_at_top"]:
        parts.append(f"Every level passes at {high}, so that the rise may be larger.")
    if is_oracle:
        parts.append(
            "The oracle knows the right answers: this bounds what a selection could reach, and shows "
            "none that does."
        )
    elif budget is None:
        parts.append(
            f"{high} spends more than {low}{_times(first, last)}, so this alone does not say that "
            "collapse is a matter of the trajectory; only equal token budgets do."
        )
    else:
        spent = (first["mean_tokens"] or 0.0) / budget
        parts.append(
            "This supports that collapse is a matter of the trajectory, provided that a model could not "
            f"have used the tokens that it leaves: at {low} an instance spends {spent:.0%} of them."
        )
    return " ".join(parts) + _cut_share(last, budget)


def _times(first: KRow, last: KRow) -> str:
    """Say how many times the tokens a K spends, where they were counted."""
    if not first["mean_tokens"] or not last["mean_tokens"]:
        return ""
    return f" ({last['mean_tokens'] / first['mean_tokens']:.1f} times the tokens)"


def _cut_share(row: KRow, budget: int | None) -> str:
    """Say how many trajectories a token budget cuts off."""
    if budget is None:
        return ""
    return f" Its share of the tokens cuts off {row['share_cut']:.0%} of the trajectories at K = {row['k']}."
