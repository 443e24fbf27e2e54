"""One method best on hard problems, another on easy ones, for a reason that can be taken away.

On hard problems one wrong answer is more popular than the right one, which deceives a majority and not
a verifier; on easy ones the verifier now and then prefers a wrong attempt, which a majority does
not. Where wrong answers are spread over a hundred instead, nothing deceives the majority.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl
import pytest

import ttsframe as tts

N_ATTEMPTS = 16
DECEIVED = {"zipf_exponent": 3.0, "n_wrong_answers": 30}
SPREAD = {"zipf_exponent": 0.0, "n_wrong_answers": 100}


class Study(NamedTuple):
    """What a run shows.

    - `by_level`: the lead of best-of-N over the majority, easiest level first;
    - `choices`: what is chosen on all problems, easiest level first;
    - `lead`: of the compute-optimal line over each method, with its interval.
    """

    by_level: list[float]
    choices: list[str]
    lead: dict[str, tuple[float, float, float]]


def study(how: dict[str, float], *, metric: str = "pass_at_1") -> Study:
    drawn = tts.simulate_trajectories(
        1_500, N_ATTEMPTS + 64, seed=5, keys=True, score_strength=0.4, **how
    )
    is_judged = pl.col("attempt") < N_ATTEMPTS
    levels = tts.difficulty_levels(
        drawn.filter(is_judged), reference=drawn.filter(~is_judged), metric=metric
    )
    selectors = ["majority_vote", "best_of_n"]
    problems = tts.select_answers(drawn.filter(is_judged), selectors=selectors, budgets=N_ATTEMPTS)
    curve = tts.level_curve(problems, levels=levels)
    wide = curve.pivot(on="selector", index="level", values="accuracy").sort("level")
    choices = tts.curves.optimal_choices(problems, levels=levels).filter(
        pl.col("problem_fold").is_null()
    )
    answered = tts.curves.select_optimal(problems, levels=levels).filter(selector="compute_optimal")
    both = pl.concat([problems, answered], how="diagonal")
    paired = [
        tts.compare(both, baseline=name).filter(selector="compute_optimal") for name in selectors
    ]
    return Study(
        (wide["best_of_n"] - wide["majority_vote"]).to_list(),
        choices.sort("level")["selector"].to_list(),
        {
            row["baseline"]: (row["difference"], row["ci_low"], row["ci_high"])
            for table in paired
            for row in table.to_dicts()
        },
    )


@pytest.mark.parametrize("metric", ["pass_at_1", "mean_score"])
def test_where_each_method_is_best_somewhere_the_optimal_line_is_above_both(metric: str) -> None:
    found = study(DECEIVED, metric=metric)
    assert found.by_level[0] < -0.02
    assert found.by_level[-1] > 0.1
    assert (found.choices[0], found.choices[-1]) == ("majority_vote", "best_of_n")
    for name, (_, low, _) in found.lead.items():
        assert low > 0, name


def test_without_the_reason_one_method_is_best_everywhere_and_the_optimal_line_is_its_own() -> None:
    found = study(SPREAD)
    assert max(found.by_level) < 0
    assert found.choices == ["majority_vote"] * 5
    assert abs(found.lead["majority_vote"][0]) < 0.005
    assert found.lead["best_of_n"][1] > 0.05
