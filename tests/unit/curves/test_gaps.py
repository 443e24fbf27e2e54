from __future__ import annotations

import math
from collections import defaultdict
from statistics import mean, stdev
from typing import Any

import polars as pl
import pytest
from contract_registry import ENGINES, problems
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

PARTS = ["accuracy", "selection_gap", "generation_gap"]
SCHEMA = {
    "problem_id": pl.String,
    "budget": pl.UInt32,
    "selector": pl.String,
    "reduction": pl.String,
    "value": pl.Float64,
    "status": pl.String,
}


def table(values: dict[str, dict[str, float | None]], *, budget: int = 4) -> pl.DataFrame:
    """Return `problems` at one budget from values by selector and problem."""
    rows = [
        (name, budget, selector, None, value, "short" if value is None else "ok")
        for selector, of_problem in values.items()
        for name, value in of_problem.items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def gaps_in_python(rows: list[dict[str, Any]]) -> dict[Any, tuple[float, ...]]:
    """Compute the parts over the problems that are ok for selector and oracle at all budgets."""
    values: dict[Any, dict[Any, float | None]] = defaultdict(dict)
    for row in rows:
        line = (row["selector"], row["reduction"])
        is_ok = row["status"] == "ok"
        values[line][row["problem_id"], row["budget"]] = row["value"] if is_ok else None
    oracle = values.pop(("oracle", None))
    budgets = sorted({budget for _, budget in oracle})
    found = {}
    for line, chosen in values.items():
        names = sorted({
            name
            for name, _ in chosen
            if all(
                chosen[name, budget] is not None and oracle[name, budget] is not None
                for budget in budgets
            )
        })
        for budget in budgets:
            ours = [chosen[name, budget] for name in names]
            best = [oracle[name, budget] for name in names]
            lost = [b - a for a, b in zip(ours, best, strict=True)]
            error = stdev(lost) / math.sqrt(len(lost)) if len(lost) > 1 else math.nan
            found[*line, budget] = (mean(ours), mean(lost), 1 - mean(best), error, len(names))
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_the_parts_are_those_of_a_loop_over_problems(engine: pl.Engine) -> None:
    expected = gaps_in_python(problems().to_dicts())
    gap = tts.selection_gap(problems().lazy()).collect(engine=engine)
    assert gap.height == len(expected)
    for row in gap.rows(named=True):
        found = [row[name] for name in (*PARTS, "standard_error", "n_problems")]
        wanted = expected[row["selector"], row["reduction"], row["budget"]]
        assert found == pytest.approx(list(wanted), abs=1e-12)
        assert sum(found[:3]) == pytest.approx(1.0, abs=1e-12)
    assert gap.equals(gap.sort("selector", "reduction", "budget"))


def test_accuracy_and_counts_are_those_of_the_curve_where_the_oracle_leaves_out_no_more() -> None:
    curve = tts.scaling_curve(problems()).filter(pl.col("selector") != "oracle")
    gap = tts.selection_gap(problems())
    shared = ["selector", "reduction", "budget", "subsets", "accuracy", "n_problems", "n_short"]
    assert_frame_equal(gap.select(shared), curve.select(shared), rel_tol=1e-12)


def test_fractional_values_split_the_expectation_over_all_subsets() -> None:
    best = {f"p{i}": (i % 5) / 4 for i in range(40)}
    chosen = {name: value * (0.25 if name < "p2" else 0.5) for name, value in best.items()}
    found = tts.selection_gap(table({"oracle": best, "majority_vote": chosen})).row(0, named=True)
    lost = [best[name] - chosen[name] for name in best]
    expected = [mean(chosen.values()), mean(lost), 1 - mean(best.values())]
    assert [found[name] for name in PARTS] == pytest.approx(expected)
    error = stdev(lost) / math.sqrt(40)
    assert found["standard_error"] == pytest.approx(error)
    interval = pl.DataFrame({"m": [mean(lost)], "e": [error], "n": [40]}).select(
        tts.student_t_interval("m", "e", "n").struct.unnest()
    )
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(interval.row(0))


def test_picks_have_wilson_intervals_of_the_paired_difference() -> None:
    values = {f"p{i}": float(i < 12) for i in range(20)}
    chosen = {name: value * float(name != "p3") for name, value in values.items()}
    found = tts.selection_gap(table({"oracle": values, "best_of_n": chosen})).row(0, named=True)
    interval = pl.DataFrame({"c": [1], "n": [20]}).select(
        tts.wilson_interval("c", "n").struct.unnest()
    )
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(interval.row(0))
    # Pairing pays: the gap is known far better than either accuracy.
    curve = tts.scaling_curve(table({"oracle": values, "best_of_n": chosen}))
    assert found["standard_error"] < curve["standard_error"].min() / 2


def test_a_problem_that_either_leaves_out_is_left_out_of_both() -> None:
    found = tts.selection_gap(
        table({
            "oracle": {"a": 1.0, "b": None, "c": 0.0},
            "best_of_n": {"a": 1.0, "b": 1.0, "c": None},
        })
    ).row(0, named=True)
    assert (found["n_problems"], found["n_short"]) == (1, 2)
    assert [found[name] for name in PARTS] == [1.0, 0.0, 0.0]
    assert found["ci_low"] is None


def test_replicates_are_averaged_per_problem_first() -> None:
    seeds = [
        table({
            "oracle": {"a": 1.0, "b": 1.0},
            "best_of_n": {"a": float(seed), "b": 1.0},
        }).with_columns(seed=pl.lit(seed))
        for seed in (0, 1)
    ]
    found = tts.selection_gap(pl.concat(seeds), replicates="seed").row(0, named=True)
    assert (found["n_problems"], found["selection_gap"]) == (2, 0.25)
    by_seed = tts.selection_gap(pl.concat(seeds), by="seed")
    assert by_seed.select("seed", "selection_gap").rows() == [(0, 0.5), (1, 0.0)]


def test_available_problems_are_taken_at_each_budget() -> None:
    few = table({"oracle": {"a": 1.0}, "best_of_n": {"a": 0.0}}, budget=8)
    many = table({"oracle": {"a": 1.0, "b": 1.0}, "best_of_n": {"a": 0.0, "b": 1.0}}, budget=4)
    both = pl.concat([many, few])
    gap = tts.selection_gap(both, include="available")
    assert gap.select("budget", "selection_gap", "n_problems", "n_short").rows() == [
        (4, 0.5, 2, 0),
        (8, 1.0, 1, 1),
    ]


def test_all_attempts_are_a_budget_too() -> None:
    run = tts.simulate_trajectories(30, 8, seed=0, keys=True)
    gap = tts.selection_gap(tts.select_answers(run, selectors=["majority_vote", "oracle"]))
    assert gap["budget"].to_list() == [None]
    assert gap.select(pl.sum_horizontal(PARTS)).item() == pytest.approx(1.0)


def test_a_missing_oracle_is_an_error() -> None:
    alone = problems().filter(pl.col("selector") != "oracle")
    with pytest.raises(
        DataError, match=r"no row of 'oracle', which the gap of .*selectors=\[..., 'oracle'\]"
    ):
        tts.selection_gap(alone)
    plan = tts.selection_gap(alone.lazy())
    with pytest.raises(DataError, match="no row of 'oracle'"):
        plan.collect()


def test_a_forgotten_by_is_an_error_and_impossible_parameters_are_refused() -> None:
    with pytest.raises(DataError, match=r"rows on one curve, expected .* by=\(...\)"):
        tts.selection_gap(pl.concat([problems(), problems()]))
    with pytest.raises(ColumnsError, match=r"1 missing column for problems: 'status'"):
        tts.selection_gap(problems().drop("status"))
    with pytest.raises(ParameterError, match="include == 'all'"):
        tts.selection_gap(problems(), include="all")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"by names \['selection_gap'\]"):
        tts.selection_gap(problems(), by="selection_gap")
    with pytest.raises(ParameterTypeError, match="must be a polars DataFrame or LazyFrame"):
        tts.selection_gap(problems().to_dict())  # type: ignore[type-var]
