from __future__ import annotations

import polars as pl
import pytest
from contract_registry import problems
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError


def table(values: dict[str, dict[int, float | None]]) -> pl.DataFrame:
    """Return a table of `problems` from its values by problem and budget."""
    rows = [
        (name, budget, "oracle", None, value, "ok" if value is not None else "ungraded")
        for name, of_problem in values.items()
        for budget, value in of_problem.items()
    ]
    schema = {
        "problem_id": pl.String,
        "budget": pl.UInt32,
        "selector": pl.String,
        "reduction": pl.String,
        "value": pl.Float64,
        "status": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_a_curve_is_sorted_by_selector_reduction_and_budget() -> None:
    curve = tts.scaling_curve(problems())
    assert curve.equals(curve.sort("selector", "reduction", "budget"))


def test_existing_subsets_and_units_are_kept_and_separate_curves() -> None:
    one = table({"a": {1: 1.0}, "b": {1: 0.0}})
    both = pl.concat([
        one.with_columns(subsets=pl.lit("prefix"), budget_unit=pl.lit("attempts")),
        one.with_columns(subsets=pl.lit("all"), budget_unit=pl.lit("attempts")),
        one.with_columns(subsets=pl.lit("prefix"), budget_unit=pl.lit("tokens")),
    ])
    curve = tts.scaling_curve(both)
    assert set(curve.select("subsets", "budget_unit").rows()) == {
        ("prefix", "attempts"),
        ("all", "attempts"),
        ("prefix", "tokens"),
    }
    assert curve["n_problems"].to_list() == [2, 2, 2]


def test_without_them_they_are_filled_in() -> None:
    curve = tts.scaling_curve(table({"a": {1: 1.0}}))
    assert curve.select("subsets", "budget_unit").rows() == [("prefix", "attempts")]


def test_a_budget_of_all_attempts_is_a_point_of_its_own() -> None:
    run = tts.simulate_trajectories(5, 4, seed=3, keys=True)
    curve = tts.scaling_curve(tts.majority_vote(run))
    assert curve.select("budget", "n_problems").rows() == [(None, 5)]


def test_budgets_that_no_two_problems_share_have_no_common_curve() -> None:
    apart = table({"a": {1: 1.0, 2: 1.0}, "b": {1: 1.0, 4: 1.0}})
    with pytest.raises(DataError, match=r"is 1 at budget 2 and 2 at another.*include='available'"):
        tts.scaling_curve(apart)
    available = tts.scaling_curve(apart, include="available")
    assert available.select("budget", "n_problems", "n_short").rows() == [
        (1, 2, 0),
        (2, 1, 1),
        (4, 1, 1),
    ]


def test_a_row_that_comes_twice_is_an_error_that_names_it() -> None:
    twice = pl.concat([table({"a": {1: 1.0}})] * 2)
    with pytest.raises(DataError, match=r"^selector 'oracle', problem_id 'a': 2 rows .*expected 1"):
        tts.scaling_curve(twice)


def test_the_error_names_the_columns_of_the_caller() -> None:
    twice = pl.concat([table({"a": {1: 1.0}})] * 2).with_columns(model=pl.lit("m"))
    with pytest.raises(DataError, match=r"^model 'm', selector 'oracle'.*problem_id 'a'"):
        tts.scaling_curve(twice, by="model")


def test_replicates_may_be_several_columns() -> None:
    rows = pl.concat(
        table({"a": {1: float(seed)}, "b": {1: 1.0}}).with_columns(
            seed=pl.lit(seed), prompt=pl.lit(prompt)
        )
        for seed in (0, 1)
        for prompt in "xyz"
    )
    curve = tts.scaling_curve(rows, replicates=["seed", "prompt"])
    assert curve.select("accuracy", "n_problems").rows() == [(0.75, 2)]
    with pytest.raises(DataError, match="replicates="):
        tts.scaling_curve(rows, replicates=["seed"])


def test_ragged_replicates_are_short_among_common_ones() -> None:
    rows = pl.concat([
        table({"a": {1: 1.0, 2: 1.0}, "b": {1: 1.0, 2: 1.0}}).with_columns(seed=pl.lit(0)),
        table({"a": {1: 0.0}, "b": {1: 0.0, 2: 0.0}}).with_columns(seed=pl.lit(1)),
    ])
    available = tts.scaling_curve(rows, replicates="seed", include="available")
    assert available.select("accuracy", "n_problems").rows() == [(0.5, 2), (0.75, 2)]


def test_values_of_integers_are_averaged() -> None:
    whole = table({"a": {1: 1.0}, "b": {1: 0.0}})
    cast = whole.with_columns(pl.col("value").cast(pl.Int8))
    assert_frame_equal(tts.scaling_curve(cast), tts.scaling_curve(whole))


@pytest.mark.parametrize("column", ["value", "status", "budget", "problem_id", "reduction"])
def test_a_missing_column_comes_with_the_way_out(column: str) -> None:
    with pytest.raises(ColumnsError, match=rf"for problems: '{column}'.*tts\.select_answers"):
        tts.scaling_curve(problems().drop(column).lazy())


def test_an_unknown_set_of_problems_is_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="include == 'all', must be one of 'common', "):
        tts.scaling_curve(problems().lazy(), include="all")  # type: ignore[arg-type]
