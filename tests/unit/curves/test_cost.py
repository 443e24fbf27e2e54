"""What answers cost: against plain Python, by hand, and the points that are worth it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError

ENGINES = ("in-memory", "streaming")
SELECTORS: list[Any] = ["majority_vote", "best_of_n"]


def simulated() -> pl.DataFrame:
    return tts.simulate_trajectories(12, 8, seed=4, keys=True)


def tokens_of(run: pl.DataFrame) -> dict[Any, list[int | None]]:
    return dict(run.sort("attempt").group_by("problem_id").agg("n_tokens").iter_rows())


@pytest.mark.parametrize("engine", ENGINES)
def test_tokens_within_the_budget_are_counted(engine: pl.Engine) -> None:
    run = simulated().with_columns(
        n_tokens=pl.when((pl.col("problem_id") != "sim-000002") | (pl.col("attempt") != 3)).then(
            "n_tokens"
        )
    )
    problems = tts.select_answers(run, selectors=SELECTORS, budgets=[1, 3, 8])
    shuffled = run.sample(fraction=1.0, shuffle=True, seed=1)
    plan = tts.curves.add_costs(problems.lazy(), trajectories=shuffled.lazy())
    found = plan.collect(engine=engine)
    tokens = tokens_of(run)
    for row in found.iter_rows(named=True):
        within = tokens[row["problem_id"]][: row["budget"]]
        assert row["cost"] == (None if None in within else sum(t for t in within if t))
        assert (row["verifier_cost"], row["cost_unit"]) in {(0.0, "tokens"), (None, "tokens")}
    assert found["cost"].null_count() == len(SELECTORS)
    assert_frame_equal(found.drop("cost", "verifier_cost", "cost_unit"), problems)


def test_only_selectors_that_read_a_score_pay_the_verifier() -> None:
    run = simulated()
    problems = tts.select_answers(run, selectors=SELECTORS, budgets=[2])
    dear = tts.curves.add_costs(
        problems,
        trajectories=run,
        budget_unit="flops",
        generator_parameters=1e9,
        verifier_parameters=7e9,
    )
    tokens = tokens_of(run)
    for row in dear.iter_rows(named=True):
        count = sum(t for t in tokens[row["problem_id"]][:2] if t)
        of_verifier = 2 * 7e9 * count if row["selector"] == "best_of_n" else 0.0
        assert row["verifier_cost"] == pytest.approx(of_verifier)
        assert row["cost"] == pytest.approx(2 * 1e9 * count + of_verifier)


def test_a_tree_is_paid_for_once_as_soon_as_a_path_is_used() -> None:
    run = pl.DataFrame({
        "problem_id": ["a"] * 4,
        "attempt": [0, 1, 2, 3],
        "answer_key": ["1"] * 4,
        "is_correct": [True] * 4,
        "total_tokens": [100, 100, 30, 30],
        "subtree": ["x", "x", "y", "y"],
        "is_exchangeable": [False] * 4,
    })
    problems = tts.select_answers(run, selectors=["majority_vote"], budgets=[1, 2, 3, 4])
    options: dict[str, Any] = {"trajectories": run, "tree_tokens": "total_tokens"}
    found = tts.curves.add_costs(problems, tree="subtree", **options)
    assert found["cost"].to_list() == [100.0, 100.0, 130.0, 130.0]
    one = {**options, "trajectories": run.with_columns(total_tokens=pl.lit(130))}
    assert tts.curves.add_costs(problems, **one)["cost"].to_list() == [130.0] * 4
    # The verifier scored the tree to guide it, whether or not the vote reads its scores.
    flops = tts.curves.add_costs(
        problems,
        budget_unit="flops",
        generator_parameters=1e9,
        verifier_parameters=7e9,
        tree="subtree",
        **options,
    )
    assert flops["verifier_cost"].to_list() == [14e9 * n for n in (100, 100, 130, 130)]
    assert flops["cost"].to_list() == [16e9 * n for n in (100, 100, 130, 130)]
    with pytest.raises(DataError, match="paths of one tree have different numbers of tokens"):
        tts.curves.add_costs(problems, **options)
    with pytest.raises(ParameterError, match="tree == 'subtree', which needs"):
        tts.curves.add_costs(problems, trajectories=run, tree="subtree")


def test_all_subsets_cost_their_expectation() -> None:
    run = simulated()
    problems = tts.expected_accuracy(run, selectors=["oracle"], budgets=[2, 8])
    found = tts.curves.add_costs(problems, trajectories=run)
    means = {name: sum(t for t in listed if t) / 8 for name, listed in tokens_of(run).items()}
    for row in found.iter_rows(named=True):
        assert row["cost"] == pytest.approx(row["budget"] * means[row["problem_id"]])
    attempts = tts.curves.add_costs(problems, budget_unit="attempts")
    assert attempts["cost"].to_list() == attempts["budget"].to_list()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_curve_is_drawn_over_what_the_same_problems_cost(engine: pl.Engine) -> None:
    run = simulated().filter((pl.col("problem_id") != "sim-000001") | (pl.col("attempt") < 5))
    run = run.with_columns(n_tokens=pl.when(pl.col("problem_id") != "sim-000002").then("n_tokens"))
    problems = tts.select_answers(run, selectors=SELECTORS, budgets=[1, 8])
    curve = tts.cost_curve(tts.curves.add_costs(problems.lazy(), trajectories=run.lazy())).collect(
        engine=engine
    )
    left_out = ["sim-000001", "sim-000002"]
    kept = problems.filter(~pl.col("problem_id").is_in(left_out))
    tokens = {k: v for k, v in tokens_of(run).items() if k not in left_out}
    for row in curve.iter_rows(named=True):
        budget = row["nominal_budget"]
        spent = sum(sum(t for t in listed[:budget] if t) for listed in tokens.values()) / 10
        assert row["budget"] == pytest.approx(spent)
        values = kept.filter(budget=budget, selector=row["selector"])["value"]
        assert row["accuracy"] == pytest.approx(values.mean())
        counts = (row["n_problems"], row["n_short"], row["n_undefined"], row["budget_unit"])
        assert counts == (10, 1, 1, "tokens")


def test_a_curve_by_level_pays_for_its_own_problems() -> None:
    run = tts.simulate_trajectories(40, 16, seed=3, keys=True)
    halves, levels = tts.curves.halve_attempts(run), tts.difficulty_levels(run)
    problems = tts.select_answers(halves, selectors=["oracle"], budgets=[1, 8], by="fold")
    costs = tts.curves.add_costs(problems, trajectories=halves, by="fold")
    curve = tts.cost_curve(costs, levels=levels)
    expected = tts.level_curve(problems, levels=levels)
    assert_frame_equal(
        curve.drop("budget", "budget_unit", "nominal_budget"),
        expected.drop("budget", "budget_unit"),
    )
    paid = costs.join(levels.select("problem_id", "fold", "level"), on=["problem_id", "fold"])
    by_fold = paid.group_by("level", "budget", "fold").agg(pl.col("cost").mean())
    means = by_fold.group_by("level", "budget").agg(pl.col("cost").mean()).sort("level", "budget")
    assert curve["budget"].to_list() == pytest.approx(means["cost"].to_list())


@given(
    points=st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 4.0, None]), st.sampled_from([0.1, 0.2, 0.3, None])),
        min_size=1,
        max_size=9,
    )
)
def test_the_frontier_is_what_no_other_point_beats(
    points: list[tuple[float | None, float | None]],
) -> None:
    schema = {"budget": pl.Float64, "accuracy": pl.Float64}
    found = tts.pareto_frontier(pl.DataFrame(points, schema=schema, orient="row"))
    assert sorted(found.select("budget", "accuracy").rows(), key=str) == sorted(points, key=str)
    for budget, accuracy, is_efficient in found.rows():
        is_beaten = (
            budget is None
            or accuracy is None
            or any(
                b is not None
                and a is not None
                and b <= budget
                and a >= accuracy
                and (b, a) != (budget, accuracy)
                for b, a in points
            )
        )
        assert is_efficient == (not is_beaten)


def test_each_group_and_unit_has_a_frontier_of_its_own() -> None:
    curve = pl.DataFrame({
        "level": [1, 1, 2, 2],
        "budget_unit": ["tokens", "flops", "tokens", "tokens"],
        "budget": [1.0, 2.0, 1.0, 2.0],
        "accuracy": [0.9, 0.1, 0.5, 0.4],
    })
    found = tts.pareto_frontier(curve, by="level")
    assert found.filter("is_efficient").select("level", "budget").rows() == [
        (1, 2.0),
        (1, 1.0),
        (2, 1.0),
    ]
    again = tts.pareto_frontier(found, by="level")
    assert_frame_equal(again, found)


def test_what_is_impossible_is_refused() -> None:
    run = simulated()
    problems = tts.select_answers(run, selectors=["oracle"], budgets=[1])
    with pytest.raises(ParameterError, match="trajectories is None, which budget_unit == 'tokens'"):
        tts.curves.add_costs(problems)
    with pytest.raises(ParameterError, match="verifier_parameters is None"):
        tts.curves.add_costs(
            problems, trajectories=run, budget_unit="flops", generator_parameters=1e9
        )
    with pytest.raises(ParameterError, match="generator_parameters == -1"):
        tts.curves.add_costs(
            problems,
            trajectories=run,
            budget_unit="flops",
            generator_parameters=-1,
            verifier_parameters=0,
        )
    with pytest.raises(ColumnsError, match="'n_tokens'"):
        tts.curves.add_costs(problems, trajectories=run.drop("n_tokens"))
    with pytest.raises(ColumnsError, match="'problem_id' is Int8, must be String"):
        tts.curves.add_costs(problems, trajectories=run.with_columns(problem_id=pl.lit(1, pl.Int8)))
    with pytest.raises(DataError, match="attempt 0 appears twice"):
        tts.curves.add_costs(problems, trajectories=pl.concat([run, run]))
    with pytest.raises(ColumnsError, match=r"'cost', 'cost_unit'.*tts.curves.add_costs"):
        tts.cost_curve(problems)
