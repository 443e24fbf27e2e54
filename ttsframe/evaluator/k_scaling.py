"""Test whether the largest solvable complexity rises with the number of trajectories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import polars as pl

from ttsframe._checks import check_between, check_budgets, check_fraction
from ttsframe._typing import Floats
from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator._area import area_between, instances_needed
from ttsframe.evaluator._crossings import (
    LevelTests,
    largest_solvable,
    level_tests,
    rise_p_value,
    solvable_interval,
)
from ttsframe.evaluator.k_report import (
    AccuracyDifference,
    KComparison,
    KRow,
    KScaling,
    Rise,
    ScalingView,
    conclude,
    describe_area,
    describe_need,
)
from ttsframe.evaluator.results import (
    SELECTOR_OF_METHOD,
    EvaluationResult,
    check_trajectories,
    max_solved,
    method_of,
    problems_of,
)
from ttsframe.statistics.comparison import compare

__all__ = ["scale_with_k"]


class _Settings(NamedTuple):
    """The settings that all token budgets share."""

    results: Mapping[int, EvaluationResult]
    levels: list[int]
    is_paired: bool
    threshold: float
    confidence_level: float


def scale_with_k(
    results: Mapping[int, EvaluationResult],
    *,
    threshold: float,
    token_budgets: int | Sequence[int] | None,
    confidence_level: float,
) -> KScaling:
    """Compare all K, as `Evaluator.compare_k_scaling` documents."""
    checked = _check_results(results)
    budgets = _token_budgets(checked, check_budgets(token_budgets))
    levels, is_paired = _instances(checked)
    settings = _Settings(
        checked,
        levels,
        is_paired,
        check_between(threshold, "threshold", 0.0, 1.0),
        check_fraction(confidence_level, "confidence_level"),
    )
    first = next(iter(checked.values()))
    scaling = KScaling(
        **_compared(settings, None),
        task_name=first.task_name,
        selection_method=first.selection_method,
        threshold=settings.threshold,
        confidence_level=settings.confidence_level,
        complexities=levels,
        k_values=[*checked],
        is_paired=is_paired,
        equal_tokens=[_compared(settings, budget) for budget in budgets],
    )
    return cast("KScaling", ScalingView(scaling))


def _check_results(results: object) -> dict[int, EvaluationResult]:
    """Check that results are comparable, and sort them by K."""
    if not isinstance(results, Mapping) or not all(
        isinstance(result, EvaluationResult) for result in results.values()
    ):
        raise ParameterTypeError(
            "results must be a dict of EvaluationResult, as returned by evaluate."
        )
    if len(results) < 2:
        raise ParameterError(
            f"results has {len(results)} K, must have at least two to be compared. Hint: "
            "evaluate(..., k_values=[1, 5, 10])."
        )
    for k, result in results.items():
        if k != result.k_trajectories:
            raise DataError(f"results[{k!r}] has k_trajectories == {result.k_trajectories}.")
        check_trajectories(result)
    for name in ("task_name", "selection_method"):
        values = sorted({getattr(result, name) for result in results.values()})
        if len(values) > 1:
            raise DataError(f"results have several values of {name}: {values}, expected one.")
    return {k: results[k] for k in sorted(results)}


def _token_budgets(
    results: Mapping[int, EvaluationResult], asked: tuple[int, ...] | None
) -> tuple[int, ...]:
    """Return the token budgets to compare at, none if tokens were not counted."""
    tables = [result.trajectories for result in results.values()]
    if any("n_tokens" not in table.columns for table in tables):
        if asked is not None:
            raise ParameterError(
                f"token_budgets == {[*asked]}, but trajectories have no n_tokens. Hint: "
                "evaluate(..., count_tokens=lambda response: ...) counts them."
            )
        return ()
    return asked or (max(1, *tables[0]["n_tokens"].to_list()),)


def _instances(results: Mapping[int, EvaluationResult]) -> tuple[list[int], bool]:
    """Return the levels, and whether all K have the same instances."""
    of_k = {
        k: result.trajectories.select("complexity", "problem_id").unique().sort(pl.all())
        for k, result in results.items()
    }
    levels = {k: table["complexity"].unique().sort().to_list() for k, table in of_k.items()}
    k, *others = results
    for other in others:
        if levels[other] != levels[k]:
            raise DataError(
                f"results have levels {levels[k]} at K = {k} and {levels[other]} at K = {other}, "
                "expected the same. Hint: evaluate all K on one complexity_range."
            )
    return levels[k], all(of_k[other].equals(of_k[k]) for other in others)


def _compared(settings: _Settings, budget: int | None) -> KComparison:
    """Compare all K, each trajectory truncated to its share of a token budget."""
    problems = pl.concat(_problems(result, budget) for result in settings.results.values())
    values = [
        [of_level["value"].to_numpy() for of_level in of_k.partition_by("complexity")]
        for of_k in problems.partition_by("k")
    ]
    tests = [level_tests(of_k, settings.threshold) for of_k in values]
    by_k = [
        _row(result, of_k, of_tests, settings, budget)
        for result, of_k, of_tests in zip(settings.results.values(), values, tests, strict=True)
    ]
    # Two intervals with half the error each hold simultaneously.
    tail = (1.0 - settings.confidence_level) / 4.0
    first, last = (
        solvable_interval(of_tests, settings.levels, tail) for of_tests in (tests[0], tests[-1])
    )
    rise = Rise(
        from_k=by_k[0]["k"],
        to_k=by_k[-1]["k"],
        rise=by_k[-1]["largest_solvable"] - by_k[0]["largest_solvable"],
        ci_low=last[0] - first[1],
        ci_high=last[1] - first[0],
        p_value=rise_p_value(tests[0], tests[-1]),
    )
    conclusion = conclude(
        rise,
        by_k,
        budget=budget,
        lowest=settings.levels[0],
        confidence_level=settings.confidence_level,
        is_oracle=method_of(next(iter(settings.results.values()))) == "oracle",
    )
    area = None
    if settings.is_paired:
        area = area_between(
            values[0],
            values[-1],
            settings.levels,
            of_k=(rise["from_k"], rise["to_k"]),
            confidence_level=settings.confidence_level,
        )
        conclusion += describe_area(area)
    n_needed = None
    if rise["rise"] > 0:
        least, most = (
            [float(of_level.mean()) for of_level in of_k] for of_k in (values[0], values[-1])
        )
        error = 1.0 - settings.confidence_level
        n_needed = instances_needed(least, most, settings.threshold, error)
    if rise["ci_low"] <= 0:
        fewest = min(of_level.size for of_k in (values[0], values[-1]) for of_level in of_k)
        conclusion += describe_need(n_needed, fewest)
    return KComparison(
        token_budget=budget,
        by_k=by_k,
        rise=rise,
        area=area,
        n_instances_needed=n_needed,
        accuracy_differences=_differences(problems, settings),
        conclusion=conclusion,
    )


def _problems(result: EvaluationResult, budget: int | None) -> pl.DataFrame:
    """Return the instances of one K, in the same order for every K."""
    selector = SELECTOR_OF_METHOD[method_of(result)]
    return (
        problems_of(result, _cut(result, budget))
        .filter(selector=selector)
        .sort("complexity", "problem_id")
        .select("complexity", "problem_id", "selector", "value", "status", k=result.k_trajectories)
    )


def _is_cut(k: int, budget: int | None) -> pl.Expr:
    """Return whether a trajectory is longer than its share of a token budget."""
    return pl.lit(value=False) if budget is None else pl.col("n_tokens") * k > budget


def _cut(result: EvaluationResult, budget: int | None) -> pl.DataFrame:
    """Return trajectories without the answers that lie beyond a token budget."""
    rows = result.trajectories
    if budget is None:
        return rows
    is_cut = _is_cut(result.k_trajectories, budget)
    # An unfinished text has no score; it stays an attempt, and ranks last.
    scores = {"score": pl.when(is_cut).then(-math.inf).otherwise("score")}
    return rows.with_columns(
        pl.when(~is_cut).then(pl.col("answer", "answer_key")),
        pl.col("is_correct") & ~is_cut,
        **(scores if "score" in rows.columns else {}),
    )


def _row(
    result: EvaluationResult,
    values: Sequence[Floats],
    tests: LevelTests,
    settings: _Settings,
    budget: int | None,
) -> KRow:
    """Return the row of one K."""
    means = [float(of_level.mean()) for of_level in values]
    solvable = largest_solvable(means, settings.levels, settings.threshold)
    tail = (1.0 - settings.confidence_level) / 2.0
    low, high = solvable_interval(tests, settings.levels, tail)
    k, rows = result.k_trajectories, result.trajectories
    n_tokens = pl.col("n_tokens") if budget is None else pl.min_horizontal("n_tokens", budget / k)
    is_counted = "n_tokens" in rows.columns
    return KRow(
        k=k,
        n_instances=sum(of_level.size for of_level in values),
        accuracy=math.fsum(means) / len(means),
        max_solved_complexity=max_solved(
            dict(zip(settings.levels, means, strict=True)), settings.threshold
        ),
        largest_solvable=solvable,
        ci_low=low,
        ci_high=high,
        is_at_top=solvable == settings.levels[-1],
        share_cut=float(rows.select(_is_cut(k, budget).mean()).item()),
        mean_tokens=k * float(rows.select(n_tokens.mean()).item()) if is_counted else None,
    )


def _differences(problems: pl.DataFrame, settings: _Settings) -> list[AccuracyDifference]:
    """Compare accuracies with the smallest K, instance by instance."""
    if not settings.is_paired:
        return []
    smallest = min(settings.results)
    table = compare(
        problems,
        column="k",
        baseline=smallest,
        by=(),
        confidence_level=settings.confidence_level,
    )
    columns = ("k", "difference", "ci_low", "ci_high", "p_value", "p_adjusted")
    return [
        AccuracyDifference(
            k=k,
            from_k=smallest,
            difference=difference,
            ci_low=ci_low,
            ci_high=ci_high,
            p_value=p_value,
            p_adjusted=p_adjusted,
        )
        for k, difference, ci_low, ci_high, p_value, p_adjusted in table
        .sort("k")
        .select(columns)
        .rows()
    ]
