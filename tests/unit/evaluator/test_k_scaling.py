"""Whether K raises the largest solvable complexity: tests, intervals, budgets and words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from evaluator_oracle import Echo, echoing, score
from scipy import stats

import ttsframe as tts
from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.evaluator import Area, EvaluationResult, Evaluator, TaskInstance, TrajectoryAggregator
from ttsframe.evaluator._area import area_between, instances_needed
from ttsframe.evaluator._crossings import (
    LevelTests,
    largest_solvable,
    level_tests,
    rise_p_value,
    solvable_interval,
)

Results = dict[int, EvaluationResult]


def words(text: str) -> int:
    return len(text.split())


def evaluate(
    model: Callable[[str, int], list[str]],
    levels: tuple[int, int] = (1, 6),
    *,
    task: Echo | None = None,
    method: Any = "majority_vote",
    **options: Any,
) -> tuple[Evaluator, Results]:
    evaluator = Evaluator(task or Echo(), TrajectoryAggregator(method, score))
    given = {"k_values": [1, 5], "trials_per_complexity": 10, "verbose": False} | options
    return evaluator, evaluator.evaluate(model, levels, **given)


def solving(up_to: dict[int, int]) -> Callable[[str, int], list[str]]:
    """Return a model that solves all instances up to a level that depends on K alone."""

    def generate(prompt: str, k: int) -> list[str]:
        answer = prompt.removeprefix("say ")
        return [(answer if int(answer) // 100 <= up_to[k] else "0") + " | so it is"] * k

    return generate


def test_the_report_is_json_and_its_keys_are_documented() -> None:
    evaluator, results = evaluate(echoing(1), count_tokens=words)
    report = evaluator.compare_k_scaling(results, token_budgets=[8, 40])
    assert json.loads(json.dumps(report)) == report
    assert (report["task_name"], report["selection_method"]) == ("echo", "majority_vote")
    assert (report["threshold"], report["confidence_level"]) == (0.5, 0.95)
    assert (report["complexities"], report["k_values"]) == ([1, 2, 3, 4, 5, 6], [1, 5])
    assert report["is_paired"] is True
    assert [one["token_budget"] for one in report["equal_tokens"]] == [8, 40]
    assert report["token_budget"] is None
    assert set(report["by_k"][0]) == {
        "k",
        "n_instances",
        "accuracy",
        "max_solved_complexity",
        "largest_solvable",
        "ci_low",
        "ci_high",
        "is_at_top",
        "share_cut",
        "mean_tokens",
    }
    assert set(report["rise"]) == {"from_k", "to_k", "rise", "ci_low", "ci_high", "p_value"}


def test_levels_above_a_gap_are_solved_and_not_solvable() -> None:
    def model(prompt: str, k: int) -> list[str]:
        level = int(prompt[4:]) // 100
        return [prompt[4:] if level in {1, 2, 4} or k == 5 else "0"] * k

    evaluator, results = evaluate(model)
    one, five = evaluator.compare_k_scaling(results)["by_k"]
    assert (one["max_solved_complexity"], one["largest_solvable"]) == (4, 2)
    assert (five["max_solved_complexity"], five["largest_solvable"]) == (6, 6)
    assert (one["is_at_top"], five["is_at_top"]) == (False, True)
    assert (one["accuracy"], five["accuracy"]) == (0.5, 1.0)
    assert one["max_solved_complexity"] == results[1].max_solved_complexity


def test_below_the_range_is_one_less_than_its_first_level() -> None:
    evaluator, results = evaluate(solving({1: 2, 5: 4}), (3, 6))
    report = evaluator.compare_k_scaling(results)
    assert [row["largest_solvable"] for row in report["by_k"]] == [2, 4]
    assert [row["max_solved_complexity"] for row in report["by_k"]] == [0, 4]
    assert report["rise"]["rise"] == 2


def test_a_rise_that_all_instances_agree_on_is_found_and_equality_is_not() -> None:
    evaluator, results = evaluate(solving({1: 2, 5: 4}))
    rise = evaluator.compare_k_scaling(results)["rise"]
    assert (rise["from_k"], rise["to_k"], rise["rise"]) == (1, 5, 2)
    assert (rise["ci_low"], rise["ci_high"]) == (2, 2)
    assert rise["p_value"] < 0.01
    evaluator, results = evaluate(solving({1: 3, 5: 3}))
    rise = evaluator.compare_k_scaling(results)["rise"]
    assert (rise["rise"], rise["p_value"]) == (0, 1.0)
    assert rise["ci_low"] <= 0 <= rise["ci_high"]


def test_two_instances_of_a_level_prove_nothing() -> None:
    evaluator, results = evaluate(solving({1: 2, 5: 4}), trials_per_complexity=2)
    rise = evaluator.compare_k_scaling(results)["rise"]
    assert rise["rise"] == 2
    assert rise["ci_low"] < 0
    assert rise["p_value"] > 0.05


def test_the_threshold_is_a_parameter() -> None:
    evaluator, results = evaluate(echoing(3), trials_per_complexity=30)
    found = [
        evaluator.compare_k_scaling(results, threshold=threshold)["by_k"][1]["largest_solvable"]
        for threshold in (0.2, 0.5, 0.95)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[2]


@pytest.mark.parametrize("reuse", [False, True])
def test_differences_of_accuracy_are_those_of_compare(*, reuse: bool) -> None:
    evaluator, results = evaluate(echoing(2), k_values=[5, 1, 3], reuse=reuse)
    found = evaluator.compare_k_scaling(results)
    means = {row["k"]: row["accuracy"] for row in found["by_k"]}
    assert [*means] == found["k_values"] == [1, 3, 5]
    for row in found["accuracy_differences"]:
        assert row["difference"] == pytest.approx(means[row["k"]] - means[1])
        assert row["from_k"] == 1
    if not reuse:
        right = {
            k: np.array([one.is_correct for one in result.all_results])
            for k, result in results.items()
        }
        wins, losses = (int((right[5] & ~right[1]).sum()), int((right[1] & ~right[5]).sum()))
        ways = [math.comb(wins + losses, i) for i in range(min(wins, losses) + 1)]
        # The mid-p value counts half of what was found.
        p_value = min(1.0, (2.0 * sum(ways) - ways[-1]) / 2 ** (wins + losses))
        assert found["accuracy_differences"][1]["p_value"] == pytest.approx(p_value)


def test_other_instances_are_not_paired() -> None:
    class Later(Echo):
        def generate_instance(self, complexity: int) -> TaskInstance:
            one = super().generate_instance(complexity)
            answer = str(int(str(one.ground_truth)) + 50)
            return TaskInstance(f"say {answer}", complexity, answer)

    evaluator, once = evaluate(echoing(1), k_values=[1])
    _, again = evaluate(echoing(2), k_values=[5], task=Later())
    report = evaluator.compare_k_scaling(once | again)
    assert report["is_paired"] is False
    assert report["accuracy_differences"] == []
    assert report["rise"]["ci_low"] <= report["rise"]["rise"] <= report["rise"]["ci_high"]


# --- token budgets


def replayed(results: Results, budget: int, levels: range) -> dict[int, dict[int, float]]:
    """Return accuracies under a token budget, by loops: each trajectory may have B / K tokens."""
    accuracy: dict[int, dict[int, float]] = {}
    for k, result in results.items():
        accuracy[k] = {}
        for level in levels:
            of_level = [
                one for one in result.all_results if one.individual_results[0].complexity == level
            ]
            n_right = 0
            for one in of_level:
                kept = [
                    each for each in one.individual_results if words(each.response) * k <= budget
                ]
                answers = [(each.response.split("|")[0].strip(), each) for each in kept]
                votes = Counter(answer for answer, _ in answers if answer)
                if votes:
                    most = max(votes.values())
                    winner = next(each for answer, each in answers if votes[answer] == most)
                    n_right += winner.is_correct
            accuracy[k][level] = n_right / len(of_level)
    return accuracy


def test_a_token_budget_is_shared_and_what_is_longer_is_cut() -> None:
    evaluator, results = evaluate(echoing(4, 9.0), k_values=[1, 2, 5], count_tokens=words)
    report = evaluator.compare_k_scaling(results, token_budgets=[1, 12, 30, 1000])
    for comparison in report["equal_tokens"]:
        budget = comparison["token_budget"]
        assert budget is not None
        plain = replayed(results, budget, range(1, 7))
        for row in comparison["by_k"]:
            k = row["k"]
            assert row["accuracy"] == pytest.approx(sum(plain[k].values()) / 6)
            texts = results[k].trajectories["completion"].to_list()
            assert row["share_cut"] == pytest.approx(
                sum(words(text) * k > budget for text in texts) / len(texts)
            )
            spent = sum(min(words(text), budget / k) for text in texts) / (10 * 6)
            assert row["mean_tokens"] == pytest.approx(spent)
    assert [row["accuracy"] for row in report["equal_tokens"][0]["by_k"]] == [0.0, 0.0, 0.0]
    free = {**report["equal_tokens"][3], "token_budget": None, "conclusion": ""}
    assert free == {key: report[key] for key in free} | {"conclusion": ""}  # type: ignore[literal-required]


def test_by_default_the_budget_does_not_cut_the_smallest_k() -> None:
    evaluator, results = evaluate(echoing(4), count_tokens=words)
    (comparison,) = evaluator.compare_k_scaling(results)["equal_tokens"]
    longest = max(words(text) for text in results[1].trajectories["completion"])
    assert comparison["token_budget"] == longest
    one, five = comparison["by_k"]
    assert one["share_cut"] == 0.0
    assert five["share_cut"] > 0.5
    assert one["accuracy"] == evaluator.compare_k_scaling(results)["by_k"][0]["accuracy"]


@pytest.mark.parametrize("reuse", [False, True])
def test_a_text_that_was_cut_is_not_scored(*, reuse: bool) -> None:
    # The longest response is the right one and has the best score.
    def model(prompt: str, k: int) -> list[str]:
        return [f"{prompt[4:]} | {'long ' * 20}", *["5 | short"] * (k - 1)]

    evaluator, results = evaluate(model, method="verifier", reuse=reuse, count_tokens=words)
    report = evaluator.compare_k_scaling(results, token_budgets=60)
    assert report["by_k"][1]["accuracy"] == 1.0
    assert report["equal_tokens"][0]["by_k"][1]["accuracy"] == 0.0


def test_budgets_need_counted_tokens() -> None:
    evaluator, results = evaluate(echoing(1))
    assert evaluator.compare_k_scaling(results)["equal_tokens"] == []
    with pytest.raises(ParameterError, match=r"token_budgets == \[9\], but trajectories have no"):
        evaluator.compare_k_scaling(results, token_budgets=9)


# --- words


def concluded(up_to: dict[int, int], **options: Any) -> str:
    evaluator, results = evaluate(solving(up_to), (2, 6), **options)
    report = evaluator.compare_k_scaling(results)
    if "count_tokens" in options:
        return report["equal_tokens"][0]["conclusion"]
    return report["conclusion"]


def test_a_rise_is_called_one_and_what_it_cost_is_said() -> None:
    said = concluded({1: 2, 5: 4})
    assert "largest solvable complexity rises from 2 at K = 1 to 4 at K = 5" in said
    assert "95% interval of the rise: 2 to 2" in said
    assert "K = 5 uses more tokens than K = 1" in said
    assert "supports" not in said
    assert "times the tokens" not in said
    assert "may be larger" in concluded({1: 2, 5: 6})
    assert "The oracle knows" in concluded({1: 2, 5: 4}, method="oracle")


def test_only_equal_tokens_support_the_hypothesis() -> None:
    # A trajectory is as long as K leaves it.
    said = concluded({1: 2, 5: 4}, count_tokens=lambda _: 1)
    assert "supports" not in said
    evaluator, results = evaluate(solving({1: 2, 5: 4}), count_tokens=words)
    report = evaluator.compare_k_scaling(results, token_budgets=100)
    said = report["equal_tokens"][0]["conclusion"]
    assert said.startswith("With 100 tokens per instance at every K, the largest solvable")
    assert (
        "This supports that the collapse is a property of the single trajectory, provided" in said
    )
    assert "at K = 1 an instance uses 5% of them" in said
    assert "(5.0 times the tokens)" in report["conclusion"]
    assert "truncates 0% of the trajectories at K = 5" in said


def test_no_change_a_fall_and_a_range_that_shows_nothing_are_called_what_they_are() -> None:
    assert "No rise is shown" in concluded({1: 3, 5: 3})
    assert "falls from 5 at K = 1 to 3 at K = 5" in concluded({1: 5, 5: 3})
    top = concluded({1: 6, 5: 6})
    assert "every level passes at K = 1 and at K = 5" in top
    assert "cannot show" in top
    bottom = concluded({1: 1, 5: 1})
    assert "complexity 2, the lowest, passes neither at K = 1 nor at K = 5" in bottom
    assert "cannot show" in bottom
    few = concluded({1: 2, 5: 4}, trials_per_complexity=2)
    assert "No rise is shown; one of up to" in few


# --- the area between the curves


def area_of(low: list[Any], high: list[Any], levels: list[int], gamma: float = 0.95) -> Area:
    values = [[np.asarray(of_level, float) for of_level in of_k] for of_k in (low, high)]
    return area_between(*values, levels, of_k=(1, 5), confidence_level=gamma)


def test_the_area_is_the_integral_of_the_gain_over_the_levels() -> None:
    draws = np.random.default_rng(1)
    levels = [1, 2, 5, 6, 10]
    low, high = draws.random((2, 5, 7))
    gain = (high - low).mean(axis=1)
    found = area_of([*low], [*high], levels)
    steps = zip(levels, levels[1:], gain, gain[1:], strict=False)
    trapezoids = [(b - a) * (left + right) / 2 for a, b, left, right in steps]
    assert found["area"] == pytest.approx(math.fsum(trapezoids))
    assert found["ci_low"] is not None
    assert found["ci_high"] is not None
    assert found["ci_low"] + found["ci_high"] == pytest.approx(2 * found["area"])
    backwards = area_of([*high], [*low], levels)
    assert backwards["area"] == pytest.approx(-found["area"])
    assert backwards["p_value"] == pytest.approx(found["p_value"])


@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_at_two_levels_it_is_welchs_test_of_one_gain_against_the_other_turned(gamma: float) -> None:
    draws = np.random.default_rng(2)
    for n in (2, 3, 20):
        first, last = draws.normal(0.3, 0.2, n), draws.normal(0.1, 0.5, n + 3)
        found = area_of([first * 0, last * 0], [first, last], [1, 5], gamma)
        welch = stats.ttest_ind(first, -last, equal_var=False)
        assert found["p_value"] == pytest.approx(welch.pvalue)
        ends = [max(-4.0, min(4.0, 2.0 * end)) for end in welch.confidence_interval(gamma)]
        assert [found["ci_low"], found["ci_high"]] == pytest.approx(ends)


def test_an_area_needs_two_levels_of_two_pairs() -> None:
    for low, high in (([[0, 0]], [[1, 1]]), ([[0], [0, 1]], [[1], [1, 1]])):
        found = area_of(low, high, [1, 2][: len(low)])
        assert (found["ci_low"], found["ci_high"], found["p_value"]) == (None, None, None)
    # Pairs that all agree leave an interval of positive width.
    found = area_of([[1, 1], [0, 0]], [[1, 1], [0, 0]], [1, 2])
    assert found["area"] == 0.0
    assert found["ci_low"] is not None
    assert found["ci_low"] < 0.0 < (found["ci_high"] or 0.0)


def test_only_curves_that_are_seen_whole_show_a_rise_of_the_complexity() -> None:
    evaluator, results = evaluate(solving({1: 3, 5: 5}), (2, 6))
    report = evaluator.compare_k_scaling(results)
    assert report["area"] is not None
    assert (report["area"]["area"], report["area"]["is_whole"]) == (2.0, True)
    assert "The area between the curves is a rise of the solved complexity" in report["conclusion"]
    evaluator, results = evaluate(solving({1: 3, 5: 6}), (2, 6))
    report = evaluator.compare_k_scaling(results)
    assert report["area"] is not None
    assert (report["area"]["area"], report["area"]["is_whole"]) == (2.5, False)
    assert "Accuracy gained within the levels tested" in report["conclusion"]
    assert "does not show that harder levels became solvable" in report["conclusion"]
    assert "shows no gain or loss" in concluded({1: 3, 5: 3})
    assert "Accuracy lost" in concluded({1: 6, 5: 3})
    assert "is a fall of the solved complexity" in concluded({1: 5, 5: 3})


def test_the_conclusion_says_how_many_instances_would_show_a_rise() -> None:
    # All solved or none: 4 / 2^n is at most .05 from 7 instances on.
    shares = [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]
    assert instances_needed(*shares, 0.5, 0.05) == 7
    assert instances_needed(*reversed(shares), 0.5, 0.05) == 7
    assert instances_needed(shares[0], shares[0], 0.5, 0.05) is None
    said = concluded({1: 2, 5: 4}, trials_per_complexity=4)
    assert "7 instances a level would show a rise; the smallest level has 4." in said
    assert "would show a rise" not in concluded({1: 2, 5: 4})
    assert "would show a rise" not in concluded({1: 3, 5: 3})
    evaluator, results = evaluate(solving({1: 2, 5: 4}), (2, 6), trials_per_complexity=7)
    report = evaluator.compare_k_scaling(results)
    assert report["n_instances_needed"] == 7
    assert report["rise"]["p_value"] <= 0.05


# --- tests of levels


def binomial_tail(n: int, least: int, chance: float) -> float:
    return math.fsum(
        math.comb(n, i) * chance**i * (1.0 - chance) ** (n - i) for i in range(least, n + 1)
    )


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_solved_or_not_is_tested_by_binomial_tails(threshold: float) -> None:
    for n in (1, 4, 30):
        for n_solved in range(n + 1):
            values = np.array([1.0] * n_solved + [0.0] * (n - n_solved))
            tests = level_tests([values], threshold)
            assert tests.passes[0] == pytest.approx(binomial_tail(n, n_solved, threshold))
            tail = binomial_tail(n, n - n_solved, 1.0 - threshold)
            assert tests.fails[0] == pytest.approx(tail)


def test_values_in_between_are_tested_by_students_t_where_there_are_enough() -> None:
    from scipy.stats import ttest_1samp

    values = np.array([0.3, 0.5, 0.6, 0.2, 0.4, 0.7, 0.1, 0.4, 0.5, 0.6, 0.3, 0.2])
    tests = level_tests([values], 0.5)
    assert tests.passes[0] == pytest.approx(ttest_1samp(values, 0.5, alternative="greater").pvalue)
    assert tests.fails[0] == pytest.approx(ttest_1samp(values, 0.5, alternative="less").pvalue)
    # Nine values are too few for it, and so are twelve at a threshold near 1.
    few = level_tests([values[:9]], 0.5).passes[0]
    assert binomial_tail(9, 4, 0.5) < few < binomial_tail(9, 3, 0.5)
    near = level_tests([values], 0.9).passes[0]
    assert binomial_tail(12, 5, 0.9) < near <= binomial_tail(12, 4, 0.9)


def test_no_sample_says_more_than_one_of_equal_instances() -> None:
    values = np.linspace(0.97, 0.98, 12)
    assert level_tests([values], 0.5).passes[0] == 0.5**12
    assert level_tests([1.0 - values], 0.5).fails[0] == 0.5**12
    same = level_tests([np.full(12, 0.98)], 0.5)
    assert binomial_tail(12, 12, 0.5) < same.passes[0] < binomial_tail(12, 11, 0.5)


def test_a_threshold_at_either_end_is_a_limit() -> None:
    half = np.array([0.0, 1.0])
    assert level_tests([half, np.ones(2)], 1.0).fails.tolist() == [0.0, 1.0]
    assert level_tests([half, np.ones(2)], 1.0).passes.tolist() == [1.0, 1.0]
    assert level_tests([half, np.zeros(2)], 0.0).fails.tolist() == [1.0, 1.0]


def test_the_largest_solvable_level_ends_before_the_first_that_fails() -> None:
    levels = [2, 3, 5]
    assert largest_solvable([0.9, 0.5, 0.7], levels, 0.5) == 5
    assert largest_solvable([0.4, 0.9, 0.9], levels, 0.5) == 1
    assert largest_solvable([0.9, 0.49, 0.9], levels, 0.5) == 2
    assert largest_solvable([1.0, 0.5 - 1e-12, 0.2], levels, 0.5) == 3


def test_levels_are_shown_to_pass_upwards_and_to_fail_downwards() -> None:
    tests = LevelTests(
        np.array([0.001, 0.01, 0.2, 0.001, 0.9, 1.0]), np.array([1.0, 0.001, 0.8, 0.04, 0.01, 0.02])
    )
    levels = [1, 2, 3, 4, 5, 6]
    assert solvable_interval(tests, levels, 0.025) == (2, 4)
    assert solvable_interval(tests, levels, 0.05) == (2, 3)
    assert solvable_interval(tests, levels, 0.001) == (1, 6)
    nothing = LevelTests(np.ones(3), np.zeros(3))
    assert solvable_interval(nothing, [4, 5, 6], 0.01) == (3, 3)


def test_the_p_value_is_the_error_at_which_the_interval_leaves_out_no_rise() -> None:
    rng = np.random.default_rng(3)
    levels = [1, 2, 3, 4, 5]
    found = set()
    for _ in range(300):
        shift = rng.integers(-2, 3)
        low, high = (
            level_tests(
                [
                    (rng.random(12) < 1.0 / (1.0 + math.exp(3.0 * (level - centre)))).astype(float)
                    for level in levels
                ],
                0.5,
            )
            for centre in (3.0, 3.0 + shift)
        )
        p_value = rise_p_value(low, high)
        assert p_value == rise_p_value(high, low)
        for error in (0.001, 0.05, 0.3, min(p_value * 1.0001, 0.99), p_value * 0.9999):
            first, last = (solvable_interval(each, levels, error / 4.0) for each in (low, high))
            leaves_out = last[0] - first[1] > 0 or last[1] - first[0] < 0
            assert leaves_out == (p_value <= error)
        found.add(p_value < 0.05)
    assert found == {True, False}


def test_the_report_does_not_depend_on_the_order_of_rows() -> None:
    evaluator, results = evaluate(echoing(5), reuse=True, count_tokens=words)
    shuffled = {
        k: replace(
            results[k],
            trajectories=results[k].trajectories.sample(fraction=1.0, shuffle=True, seed=k),
        )
        for k in (5, 1)
    }
    first, again = (
        json.loads(
            json.dumps(evaluator.compare_k_scaling(each)), parse_float=lambda x: round(float(x), 9)
        )
        for each in (results, shuffled)
    )
    assert first == again


# --- refusals


def test_results_that_cannot_be_compared_are_refused() -> None:
    evaluator, results = evaluate(echoing(1), (1, 2))
    _, longer = evaluate(echoing(1), (1, 3), k_values=[9])
    compare = evaluator.compare_k_scaling
    with pytest.raises(ParameterTypeError, match="results must be a dict"):
        compare([*results.values()])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="results has 1 K, must have at least two"):
        compare({1: results[1]})
    with pytest.raises(DataError, match=r"results\[7\] has k_trajectories == 5"):
        compare({1: results[1], 7: results[5]})
    with pytest.raises(DataError, match=r"levels \[1, 2\] at K = 1 and \[1, 2, 3\] at K = 9"):
        compare(results | longer)
    with pytest.raises(DataError, match="several values of task_name: "):
        compare({1: results[1], 5: replace(results[5], task_name="other")})
    with pytest.raises(DataError, match="K = 5 has no trajectories"):
        compare({1: results[1], 5: replace(results[5], trajectories=pl.DataFrame())})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": -0.1}, "threshold"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"token_budgets": 0}, "budgets == 0"),
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    evaluator, results = evaluate(echoing(1), (1, 2), trials_per_complexity=2)
    with pytest.raises(tts.TtsframeError, match=message):
        evaluator.compare_k_scaling(results, **options)
