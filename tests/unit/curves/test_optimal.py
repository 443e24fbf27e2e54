"""Compute-optimal curves and choices: against the plain oracle, by hand, and what is refused."""

from __future__ import annotations

import random
import warnings
from typing import Any

import optimal_oracle
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

NO_INTERVAL = ("standard_error", "ci_low", "ci_high")
ENGINES: list[pl.Engine] = ["in-memory", "streaming"]
STRATEGIES = [
    ("majority_vote", None),
    ("best_of_n", "last"),
    ("best_of_n", "min"),
    ("oracle", None),
]
STATUSES = ["ok"] * 12 + ["short", "unscored", "undefined", "ungraded"]


def problem_rows(
    draws: random.Random,
    *,
    n_problems: int = 14,
    statuses: list[str] | None = None,
    halves: tuple[int | None, ...] = (None,),
    missing: float = 0.0,
) -> list[dict[str, Any]]:
    """Return rows of `problems` in which values, statuses and costs are drawn."""
    rows = []
    for problem in range(n_problems):
        known = draws.choice(statuses or ["ok"])
        for half in halves:
            for budget in (1, 4):
                for selector, reduction in STRATEGIES:
                    status = known if draws.random() < 0.5 else "ok"
                    value = draws.choice([0.0, 0.25, 0.5, 1.0]) if status == "ok" else None
                    row = {
                        "problem_id": f"p{problem}",
                        "fold": half,
                        "budget": budget,
                        "selector": selector,
                        "reduction": reduction,
                        "value": value,
                        "status": status,
                        "tokens": draws.choice([10, 20]),
                    }
                    if draws.random() >= missing:
                        rows.append(row)
    return rows


def problem_levels(
    draws: random.Random, *, n_problems: int = 14, halves: tuple[int | None, ...] = (None,)
) -> dict[Any, int | None]:
    """Return levels by (problem, half), some of them null, and one problem without a level."""
    return {
        (f"p{problem}", half): draws.choice([1, 1, 1, 2, 2, 2, 2, 3, None])
        for problem in range(1, n_problems)
        for half in halves
    }


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {
        "problem_id": pl.String,
        "fold": pl.UInt32,
        "budget": pl.UInt32,
        "selector": pl.String,
        "reduction": pl.String,
        "value": pl.Float64,
        "status": pl.String,
        "tokens": pl.Int64,
    }
    frame = pl.DataFrame(rows, schema=schema)
    return frame.drop("fold") if frame["fold"].is_null().all() else frame


def levels_frame(levels: dict[Any, int | None]) -> pl.DataFrame:
    return pl.DataFrame(
        [(name, half, level) for (name, half), level in levels.items()],
        schema={"problem_id": pl.String, "fold": pl.UInt32, "level": pl.UInt32},
        orient="row",
    )


def check(
    rows: list[dict[str, Any]], levels: dict[Any, int | None], engine: pl.Engine, **options: Any
) -> None:
    expected, chosen = optimal_oracle.optimal(
        rows,
        levels,
        common=options.get("include", "common") == "common",
        **{name: options[name] for name in ("n_folds", "seed") if name in options},
    )
    frame, of_levels = frame_of(rows).lazy(), levels_frame(levels).lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        curve = tts.optimal_curve(frame, levels=of_levels, cost="tokens", **options)
    found = {
        (row["selector"], row["reduction"], row["budget"]): row
        for row in curve.collect(engine=engine).iter_rows(named=True)
    }
    assert found.keys() == expected.keys()
    for cell, wanted in expected.items():
        for name, value in wanted.items():
            if (
                cell[0] == "compute_optimal"
                and options.get("n_folds", 2) > 2
                and name in NO_INTERVAL
            ):
                assert found[cell][name] is None
                continue
            close = None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)
            assert found[cell][name] == close, (cell, name)
    choices = tts.curves.optimal_choices(frame, levels=of_levels, cost="tokens", **options)
    table = choices.collect(engine=engine)
    keys = table.select("level", "budget", "problem_fold").rows()
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(chosen)
    for key, row in zip(keys, table.iter_rows(named=True), strict=True):
        wanted = chosen[key]
        assert (row["selector"], row["reduction"]) == wanted["strategy"], key
        for name in ("n_seen", "n_problems", "n_strategies", "n_tied"):
            assert row[name] == wanted[name], (key, name)
        for name in ("accuracy_seen", "accuracy", "cost"):
            assert row[name] == pytest.approx(wanted[name], rel=1e-9), (key, name)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_folds", [2, 3])
@pytest.mark.parametrize("choice", ["common", "available"])
def test_curve_and_choices_agree_with_the_plain_oracle(
    choice: str, n_folds: int, engine: pl.Engine
) -> None:
    for seed in range(6):
        draws = random.Random(seed)
        rows = problem_rows(draws, statuses=STATUSES, missing=0.002 * (seed % 2))
        check(rows, problem_levels(draws), engine, include=choice, n_folds=n_folds, seed=seed)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("level_halves", [(0, 1), (None,)])
@pytest.mark.parametrize("choice", ["common", "available"])
def test_halves_of_attempts_have_levels_of_their_own(
    choice: str, level_halves: tuple[int | None, ...], engine: pl.Engine
) -> None:
    for seed in range(4):
        draws = random.Random(seed)
        rows = problem_rows(draws, statuses=STATUSES, halves=(0, 1))
        check(rows, problem_levels(draws, halves=level_halves), engine, include=choice)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_small_tables_agree_with_the_plain_oracle(data: st.DataObject) -> None:
    n_problems = data.draw(st.integers(1, 5))
    rows = [
        {
            "problem_id": f"p{problem}",
            "budget": budget,
            "selector": selector,
            "reduction": None,
            "status": (
                status := data.draw(st.sampled_from(["ok", "ok", "ok", "short", "ungraded"]))
            ),
            "value": data.draw(st.sampled_from([0.0, 1.0, 0.1])) if status == "ok" else None,
            "tokens": data.draw(st.sampled_from([1, 2])),
        }
        for problem in range(n_problems)
        for budget in (1, 2)
        for selector in ("a", "b")
    ]
    levels = {
        (f"p{problem}", None): data.draw(st.sampled_from([1, 2, None]))
        for problem in range(n_problems)
    }
    check(rows, levels, data.draw(st.sampled_from(ENGINES)), seed=data.draw(st.integers(0, 3)))


def table(values: dict[str, list[float]], **columns: Any) -> pl.DataFrame:
    """Return one budget of `problems`: a value of each problem per selector."""
    return pl.concat([
        pl.DataFrame({
            "problem_id": [f"p{i}" for i in range(len(each))],
            "budget": 8,
            "selector": name,
            "reduction": pl.Series([None] * len(each), dtype=pl.String),
            "value": each,
            "status": "ok",
        }).with_columns(**{column: pl.lit(value) for column, value in columns.items()})
        for name, each in values.items()
    ])


def one_level(n_problems: int) -> pl.DataFrame:
    return pl.DataFrame({
        "problem_id": [f"p{i}" for i in range(n_problems)],
        "level": [1] * n_problems,
    })


def test_a_problem_has_no_say_in_the_strategy_that_answers_it() -> None:
    draws = random.Random(1)
    values = {name: [float(draws.random() < 0.5) for _ in range(40)] for name in "abc"}
    levels = one_level(40)
    before = tts.curves.optimal_choices(table(values), levels=levels)
    folds = optimal_oracle.folds_of({(f"p{i}", None): 1 for i in range(40)}, n_folds=2, seed=0)
    assert sorted(folds.values()) == [0] * 20 + [1] * 20
    other = {
        name: [1.0 - value if folds[f"p{i}"] == 0 else value for i, value in enumerate(each)]
        for name, each in values.items()
    }
    after = tts.curves.optimal_choices(table(other), levels=levels)
    seen = ["selector", "accuracy_seen", "n_seen"]
    assert (
        before.filter(problem_fold=0).select(seen).equals(after.filter(problem_fold=0).select(seen))
    )
    assert (
        before.filter(problem_fold=0)["accuracy"].item()
        != after.filter(problem_fold=0)["accuracy"].item()
    )


def test_folds_follow_from_the_levels_and_the_seed_alone() -> None:
    draws = random.Random(2)
    names = [f"p{i}" for i in range(60)]
    values = {name: [float(draws.random() < 0.5) for _ in names] for name in "ab"}
    levels = pl.DataFrame({"problem_id": names, "level": [i % 3 for i in range(60)]})

    def found(seed: int) -> pl.DataFrame:
        return tts.curves.optimal_choices(table(values), levels=levels, seed=seed)

    shuffled = tts.curves.optimal_choices(
        table(values).sample(fraction=1.0, shuffle=True, seed=3).lazy(),
        levels=levels.sample(fraction=1.0, shuffle=True, seed=4),
        seed=5,
    )
    assert_frame_equal(shuffled.collect(), found(5))
    assert len({tuple(found(seed)["accuracy"]) for seed in range(5)}) == 5
    assert set(found(0).filter(pl.col("problem_fold").is_not_null())["n_problems"]) == {10}


def test_ties_go_to_the_cheaper_then_to_the_one_without_a_verifier() -> None:
    scored = table({"a_scored": [1.0] * 4}, tokens=10).with_columns(reduction=pl.lit("last"))
    plain = table({"b_plain": [1.0] * 4, "c_plain": [1.0] * 4}, tokens=20)
    worse = table({"worst": [0.0] * 4}, tokens=1)
    frame, levels = pl.concat([scored, plain, worse]), one_level(4)

    def chosen(**options: Any) -> set[str]:
        table = tts.curves.optimal_choices(frame, levels=levels, **options)
        assert set(table["n_tied"]) == {3}
        assert set(table["n_strategies"]) == {4}
        return set(table["selector"])

    assert chosen() == {"b_plain"}
    assert chosen(cost="tokens") == {"a_scored"}
    unknown = frame.with_columns(tokens=pl.when(pl.col("selector") != "a_scored").then("tokens"))
    costs = tts.curves.optimal_choices(unknown, levels=levels, cost="tokens")
    assert set(costs["selector"]) == {"b_plain"}
    assert set(costs["cost"]) == {20.0}


def test_rounding_breaks_no_tie() -> None:
    thirds = [0.1, 0.2, 0.3] * 20
    frame = table({"a": thirds, "b": thirds[::-1]})
    found = tts.curves.optimal_choices(frame, levels=one_level(60).with_columns(level=1))
    assert set(found.filter(pl.col("problem_fold").is_null())["n_tied"]) == {2}


def test_replicates_are_averaged_first() -> None:
    draws = random.Random(3)
    seeds = [
        table({name: [float(draws.random() < 0.5) for _ in range(20)] for name in "ab"}, seed=seed)
        for seed in range(3)
    ]
    both, levels = pl.concat(seeds), one_level(20)
    keys = ["problem_id", "budget", "selector", "reduction"]
    averaged = both.group_by(keys).agg(pl.col("value").mean(), pl.col("status").first())
    assert_frame_equal(
        tts.optimal_curve(both, levels=levels, replicates="seed"),
        tts.optimal_curve(averaged, levels=levels),
    )
    with pytest.raises(
        DataError, match=r"3 rows of one strategy, expected 1.*in strategy=\(\.\.\.\)"
    ):
        tts.optimal_curve(both, levels=levels)


def test_models_and_searches_are_strategies_or_runs() -> None:
    small, large = table({"a": [1.0, 1.0, 0.0, 0.0]}), table({"a": [0.0, 0.0, 1.0, 1.0]})
    both = pl.concat([
        small.with_columns(model=pl.lit("1B")),
        large.with_columns(model=pl.lit("8B")),
    ])
    levels = one_level(4).with_columns(level=pl.Series([1, 1, 2, 2]))
    strategy = ("selector", "reduction", "model")
    mixed = tts.optimal_curve(both, levels=levels, strategy=strategy)
    assert mixed["accuracy"].to_list() == [1.0, 1.0]
    choices = tts.curves.optimal_choices(both, levels=levels, strategy=strategy)
    assert dict(choices.select("level", "model").rows()) == {1: "1B", 2: "8B"}
    apart = tts.optimal_curve(both, levels=levels, by="model")
    assert apart.columns[0] == "model"
    assert apart["accuracy"].to_list() == [0.5] * 4


def test_models_compete_at_equal_flops_where_budgets_are_flops() -> None:
    # Eight attempts of the small model cost what one of the large one does, and are worth more.
    names = [f"p{i}" for i in range(8)]
    rows = [
        (name, model, n, value)
        for name in names
        for model, points in {"1B": {1: 0.2, 8: 0.9}, "8B": {1: 0.5, 8: 1.0}}.items()
        for n, value in points.items()
    ]
    attempts = pl.DataFrame(rows, ["problem_id", "model", "budget", "value"], orient="row")
    attempts = attempts.with_columns(status=pl.lit("ok"))
    parameters = pl.col("model").replace_strict({"1B": 1e9, "8B": 8e9})
    flops = attempts.with_columns(
        budget=2 * parameters * 500 * pl.col("budget"), budget_unit=pl.lit("flops")
    )
    levels = pl.DataFrame({"problem_id": names, "level": [1] * 8})
    same = {"levels": levels, "strategy": "model"}
    chosen = tts.curves.optimal_choices(attempts, **same).filter(problem_fold=0)
    assert chosen.select("budget", "model").rows() == [(1, "8B"), (8, "8B")]
    chosen = tts.curves.optimal_choices(flops, **same).filter(problem_fold=0)
    assert chosen.select("budget", "model").rows() == [(1e12, "1B"), (8e12, "1B"), (64e12, "8B")]
    curve = tts.optimal_curve(flops, **same).filter(selector="compute_optimal")
    assert curve.select("budget", "budget_unit", "accuracy").rows() == [
        (1e12, "flops", pytest.approx(0.2)),
        (8e12, "flops", pytest.approx(0.9)),
        (64e12, "flops", pytest.approx(1.0)),
    ]


def test_levels_of_each_run_are_matched() -> None:
    run = table({"a": [1.0, 1.0, 0.0, 0.0], "b": [0.0, 0.0, 1.0, 1.0]})
    both = pl.concat([run.with_columns(model=pl.lit(name)) for name in ("x", "y")])
    sorted_out, mixed_up = [1, 1, 2, 2], [1, 2, 1, 2]
    levels = pl.concat([
        one_level(4).with_columns(level=pl.Series(level), model=pl.lit(name))
        for name, level in (("x", sorted_out), ("y", mixed_up))
    ])
    found = tts.optimal_curve(both, levels=levels, by="model", name="mine")
    assert found.filter(pl.col("selector") == "mine").select("model", "accuracy").rows()[0] == (
        "x",
        1.0,
    )
    assert set(found["selector"]) == {"mine", "mine_in_sample"}
    assert found.filter(model="y", selector="mine_in_sample")["accuracy"].item() == 0.5
    with pytest.raises(DataError, match=r"problem_id 'p\d': 2 rows of levels, expected 1"):
        tts.optimal_curve(both, levels=levels, strategy=("selector", "model"))


def test_the_cost_of_what_was_chosen_goes_along() -> None:
    draws = random.Random(4)
    rows = frame_of(problem_rows(draws, statuses=STATUSES)).with_columns(cost_unit=pl.lit("tokens"))
    levels = levels_frame(problem_levels(draws)).drop("fold")
    found = tts.curves.select_optimal(rows, levels=levels, cost="tokens")
    assert found.select("problem_id", "budget", "selector").is_unique().all()
    assert set(found["cost_unit"]) == {"tokens"}
    is_ok = pl.col("status") == "ok"
    assert found.filter(is_ok).select(pl.col("value", "cost").null_count()).row(0) == (0, 0)
    assert found.filter(~is_ok).select(pl.col("value", "cost").count()).row(0) == (0, 0)
    choices = tts.curves.optimal_choices(rows, levels=levels, cost="tokens")
    weighted = (pl.col("cost") * pl.col("n_problems")).sum() / pl.col("n_problems").sum()
    spent = choices.drop_nulls("problem_fold").group_by("budget").agg(cost=weighted).sort("budget")
    curve = tts.cost_curve(found.filter(selector="compute_optimal"))
    assert_frame_equal(
        curve.sort("nominal_budget").select(budget="nominal_budget", cost="budget"), spent
    )
    assert set(curve["budget_unit"]) == {"tokens"}
    assert_frame_equal(
        tts.scaling_curve(found),
        tts.optimal_curve(rows, levels=levels, cost="tokens").drop("basis", "caveat"),
    )


def test_more_than_two_folds_have_no_interval_and_say_why() -> None:
    frame = table({"a": [1.0, 0.0, 1.0, 0.0] * 3, "b": [0.0, 1.0, 1.0, 0.0] * 3})
    levels = one_level(12)
    with pytest.warns(UserWarning, match=r"no interval with n_folds == 3.*Hint: n_folds=2"):
        found = tts.optimal_curve(frame, levels=levels, n_folds=3)
    held_out, in_sample = found.select(*NO_INTERVAL).rows()
    assert held_out == (None, None, None)
    assert None not in in_sample
    assert found["accuracy"].null_count() == 0


def test_the_basis_and_the_worst_caveat_of_levels_go_along() -> None:
    frame = table({"a": [1.0, 0.0, 1.0, 0.0], "b": [0.0, 1.0, 1.0, 0.0]})
    levels = one_level(4)
    assert tts.optimal_curve(frame, levels=levels)["basis"].to_list() == [None, None]
    caveats = pl.Series(["few_attempts", None, "not_exchangeable", None])
    known = levels.with_columns(basis=pl.lit("same_sample"), caveat=caveats)
    found = tts.optimal_curve(frame.lazy(), levels=known.lazy()).collect()
    assert found.select("basis", "caveat").unique().row(0) == ("same_sample", "not_exchangeable")


def test_a_curve_of_each_level() -> None:
    frame = table({"a": [1.0, 1.0, 0.0, 0.0], "b": [0.0, 0.0, 1.0, 0.0]})
    levels = one_level(4).with_columns(level=pl.Series(["easy", "easy", "hard", "hard"]))
    found = tts.optimal_curve(frame, levels=levels, by="level")
    assert found.columns[:2] == ["level", "selector"]
    in_sample = found.filter(selector="compute_optimal_in_sample")
    assert in_sample.select("level", "accuracy", "n_problems").rows() == [
        ("easy", 1.0, 2),
        ("hard", 0.5, 2),
    ]


def test_problems_without_a_choice_are_counted() -> None:
    frame = table({"a": [1.0] * 6, "b": [0.0] * 6})
    levels = one_level(5).with_columns(level=pl.Series([1, 1, 1, 2, None]))
    found = tts.optimal_curve(frame, levels=levels)
    # p3 is alone in its level, p4 has none, p5 is not in the table of levels.
    assert found.select("n_problems", "n_undefined", "accuracy").rows() == [(3, 3, 1.0)] * 2
    choices = tts.curves.optimal_choices(frame, levels=levels)
    assert set(choices["level"]) == {1}


def test_subsets_may_be_a_part_of_the_strategy() -> None:
    frame = pl.concat([
        table({"a": [1.0, 0.0, 1.0, 0.0]}, subsets="all"),
        table({"a": [0.0, 0.0, 1.0, 0.0]}, subsets="prefix"),
    ])
    levels = one_level(4)
    apart = tts.optimal_curve(frame, levels=levels)
    assert apart.filter(selector="compute_optimal").select("subsets", "accuracy").rows() == [
        ("all", 0.5),
        ("prefix", 0.25),
    ]
    strategy = ("selector", "subsets")
    mixed = tts.optimal_curve(frame, levels=levels, strategy=strategy)
    assert mixed.select("subsets", "accuracy").rows()[1] == (None, 0.5)
    assert set(tts.curves.optimal_choices(frame, levels=levels, strategy=strategy)["subsets"]) <= {
        "all",
        "prefix",
    }


def test_what_does_not_fit_is_refused_at_once() -> None:
    frame, levels = table({"a": [1.0] * 4}, tokens="many").lazy(), one_level(4)
    for function in (
        tts.optimal_curve,
        tts.curves.optimal_choices,
        tts.curves.select_optimal,
    ):
        with pytest.raises(
            ColumnsError, match=r"1 missing column for problems: 'search'.*strategy="
        ):
            function(frame, levels=levels, strategy=("selector", "search"))
        with pytest.raises(
            ColumnsError, match=r"missing column for levels: 'level'.*difficulty_lev"
        ):
            function(frame, levels=levels.drop("level"))
        with pytest.raises(
            ColumnsError, match=r"levels: 'problem_id' is Int32, must be String as in"
        ):
            function(frame, levels=levels.with_columns(problem_id=1))
        with pytest.raises(ColumnsError, match=r"problems: 'tokens' is String, must be a number"):
            function(frame, levels=levels, cost="tokens")
        with pytest.raises(
            ParameterError, match=r"strategy and replicates both name \['reduction'\]"
        ):
            function(frame, levels=levels, replicates="reduction")
        with pytest.raises(ParameterError, match="n_folds == 1, must be at least 2"):
            function(frame, levels=levels, n_folds=1)
        with pytest.raises(ParameterTypeError, match="n_folds must be an int, got float"):
            function(frame, levels=levels, n_folds=2.0)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="strategy is empty"):
            function(frame, levels=levels, strategy=())
        with pytest.raises(ParameterError, match=r"strategy names \['level'\]"):
            function(frame, levels=levels, strategy="level")
        with pytest.raises(ParameterError, match="include == 'some'"):
            function(frame, levels=levels, include="some")  # type: ignore[arg-type]
        with pytest.raises(ParameterTypeError, match=r"levels must be .*, got dict"):
            function(frame, levels={})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="name is empty"):
        tts.optimal_curve(frame, levels=levels, name="")
    with pytest.raises(ParameterError, match="confidence_level"):
        tts.optimal_curve(frame, levels=levels, confidence_level=95)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_only_rows_show_is_refused_on_collection(engine: pl.Engine) -> None:
    frame, levels = table({"a": [1.0] * 4, "b": [1.0] * 4}), one_level(4)
    halved = levels.with_columns(fold=pl.lit(0, pl.UInt32))
    plan = tts.optimal_curve(frame.lazy(), levels=halved)
    with pytest.raises(
        DataError, match=r"problem_id 'p\d': its levels are cross-fitted.*halve_attempts"
    ):
        plan.collect(engine=engine)
    twice = tts.optimal_curve(frame.lazy(), levels=pl.concat([levels, levels]))
    with pytest.raises(DataError, match=r"2 rows of levels, expected 1"):
        twice.collect(engine=engine)


def test_strategies_are_compared_on_the_same_problems_alone() -> None:
    frame, levels = table({"a": [1.0] * 20, "b": [0.0] * 20}), one_level(20)
    is_early = pl.col("problem_id").is_in([f"p{i}" for i in range(10)])
    is_one = (pl.col("selector") == "a") == is_early
    crossed = frame.with_columns(budget=pl.when(is_one).then(1).otherwise(2))
    partly = pl.concat([
        frame,
        frame.with_columns(budget=16).filter((pl.col("selector") == "a") | is_early),
    ])
    for choice in ("common", "available"):
        nothing = tts.optimal_curve(crossed, levels=levels, include=choice)
        assert nothing["n_problems"].to_list() == [0] * 4
        assert nothing["accuracy"].to_list() == [None] * 4
        some = tts.optimal_curve(partly, levels=levels, include=choice)
        honest = some.filter(selector="compute_optimal")
        assert honest["n_problems"].to_list() == [10 if choice == "common" else 20, 10]
        assert honest["n_short"].to_list() == [10 if choice == "common" else 0, 10]
