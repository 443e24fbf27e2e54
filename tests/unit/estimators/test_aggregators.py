"""Aggregators against another tool's output, and their rules for rows and columns."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars._typing import EngineType
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe._typing import FrameT
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError
from ttsframe.estimators.aggregators import AtLeastK, GPassAtK, Majority, Max, Median, PassHatK

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")
AGGREGATORS = [
    tts.Identity(),
    tts.IdentifierMean(),
    tts.PassAtK(),
    tts.PassAtK(k=3),
    PassHatK(k=2),
    GPassAtK(k=2, tau=0.75),
    AtLeastK(k=2),
    Majority(),
    Max(),
    Median(),
]
by_name = pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda found: found.name)


def eval_framework_tables() -> list[str]:
    return ["plain", "ragged_n_lt_k", "null_values", "null_key"]


@pytest.mark.parametrize("table", eval_framework_tables())
def test_equals_eval_framework(shared_data: Path, table: str) -> None:
    cases = json.loads((shared_data / "eval_framework_expected.json").read_text())["tables"]
    assert [case["name"] for case in cases] == eval_framework_tables()
    case = next(case for case in cases if case["name"] == table)
    # That tool drops attempts without an identifier; here a null identifies like any value.
    frame = pl.DataFrame(case["input"], infer_schema_length=None).drop_nulls("prompt")
    aggregators: dict[str, tts.Aggregator] = {
        "IdentifierMean": tts.IdentifierMean(),
        **{f"Pass@{k}": tts.PassAtK(k, n_below_k="any_correct") for k in (1, 2, 3, 5, 8)},
    }
    assert set(aggregators) == set(case["out"])
    for name, aggregator in aggregators.items():
        assert aggregator.name == name
        expected = pl.DataFrame(case["out"][name], infer_schema_length=None)
        assert_frame_equal(
            aggregator(frame, ["prompt"]),
            expected,
            check_row_order=False,
            check_column_order=False,
            check_dtypes=False,
            rel_tol=0.0,
            abs_tol=1e-12,
        )


def test_fewer_than_k_is_null_unless_named() -> None:
    frame = pl.DataFrame({
        "problem_id": ["right", "wrong", "ungraded", "enough", "enough"],
        "value": [1.0, 0.0, None, 1.0, 0.0],
    })
    by_default = tts.PassAtK(2)(frame, ["problem_id"])
    assert dict(by_default.iter_rows()) == {
        "right": None, "wrong": None, "ungraded": None, "enough": 1.0,
    }  # fmt: skip
    named = tts.PassAtK(2, n_below_k="any_correct")(frame, ["problem_id"])
    assert dict(named.iter_rows()) == {
        "right": 1.0, "wrong": 0.0, "ungraded": 0.0, "enough": 1.0,
    }  # fmt: skip


def test_several_identifiers_and_a_null_one() -> None:
    frame = pl.DataFrame({
        "run": ["x", "x", "y", None, None],
        "problem_id": [1, 1, 1, 1, 1],
        "value": [True, False, True, None, True],
    })
    found = tts.IdentifierMean()(frame, ("run", "problem_id"))
    assert sorted(found.rows(), key=str) == [("x", 1, 0.5), ("y", 1, 1.0), (None, 1, 1.0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_other_columns_keep_their_first_value_that_is_not_null(engine: EngineType) -> None:
    n_problems, n_attempts = 500, 40
    n_rows = n_problems * n_attempts
    order = np.random.default_rng(3).permutation(n_rows)
    frame = pl.DataFrame({
        "extra": np.where(order % 3 == 0, None, order).tolist(),
        "value": order % 2 == 0,
        "problem_id": order % n_problems,
        "scores": [[float(row)] for row in order],
    })
    first: dict[int, int] = {}
    scores: dict[int, list[float]] = {}
    for extra, _, problem, row in frame.iter_rows():
        scores.setdefault(problem, row)
        if extra is not None:
            first.setdefault(problem, extra)
    found = tts.PassAtK()(frame.lazy(), ["problem_id"]).collect(engine=engine)
    assert found.columns == frame.columns
    assert dict(found.select("problem_id", "extra").iter_rows()) == first
    assert dict(found.select("problem_id", "scores").iter_rows()) == scores


@by_name
def test_lazy_in_lazy_out_and_columns_stay(aggregator: tts.Aggregator) -> None:
    frame = pl.DataFrame({
        "note": ["p", "q", "p", "q", "p"],
        "value": [1.0, 0.0, None, 1.0, 1.0],
        "problem_id": [1, 1, 1, 1, 2],
    })
    eager = aggregator(frame, ["problem_id"])
    lazy = aggregator(frame.lazy(), ["problem_id"])
    assert isinstance(eager, pl.DataFrame)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == eager.schema == frame.schema
    for engine in ENGINES:
        assert_frame_equal(lazy.collect(engine=engine), eager, check_row_order=False)
    shuffled = frame.select("value", "problem_id").sample(fraction=1.0, shuffle=True, seed=5)
    assert_frame_equal(
        aggregator(shuffled, ["problem_id"]), eager.drop("note"),
        check_row_order=False, check_column_order=False, abs_tol=1e-12,
    )  # fmt: skip
    empty = aggregator(frame.clear(), ["problem_id"])
    assert empty.height == 0
    assert empty.schema == frame.schema


@by_name
def test_what_is_missing_is_named(aggregator: tts.Aggregator) -> None:
    frame = pl.DataFrame({"problem_id": [1], "is_correct": [True]})
    with pytest.raises(ColumnsError, match="1 missing column for an aggregator: 'value'"):
        aggregator(frame, ["problem_id"])
    frame = frame.rename({"is_correct": "value"})
    with pytest.raises(ColumnsError, match="'prompt'"):
        aggregator(frame.lazy(), ["prompt"])
    with pytest.raises(ParameterError, match="identifier_columns is empty"):
        aggregator(frame, [])
    with pytest.raises(ParameterError, match="names 'value'"):
        aggregator(frame, ["value"])
    with pytest.raises(ParameterTypeError, match=r"frame must be .*, got dict"):
        aggregator({"value": [1]}, ["problem_id"])  # type: ignore[type-var]


def test_parameters_are_checked() -> None:
    with pytest.raises(ParameterError, match="k == 0"):
        tts.PassAtK(k=0)
    with pytest.raises(ParameterError, match="n_below_k == 'one'"):
        tts.PassAtK(n_below_k="one")  # type: ignore[arg-type]
    for aggregator in (PassHatK, GPassAtK, AtLeastK):
        with pytest.raises(ParameterError, match="k == 0"):
            aggregator(k=0)
        with pytest.raises(ParameterError, match="n_below_k == 'any_correct'"):
            aggregator(n_below_k="any_correct")
    with pytest.raises(ParameterError, match="tau == 2"):
        GPassAtK(k=2, tau=2)


def test_a_users_own_aggregator_is_one() -> None:
    class Spread:
        name = "Spread"

        def __call__(self, frame: FrameT, identifier_columns: Sequence[str], /) -> FrameT:
            value: Any = pl.col("value").max() - pl.col("value").min()
            plan = frame.lazy().group_by(*identifier_columns).agg(value)
            return plan.collect() if isinstance(frame, pl.DataFrame) else plan

    assert isinstance(Spread(), tts.Aggregator)
    assert not isinstance(object(), tts.Aggregator)
    frame = pl.DataFrame({"problem_id": [1, 1], "value": [0.25, 1.0]})
    assert math.isclose(Spread()(frame, ["problem_id"])["value"].item(), 0.75)


def test_aggregators_are_values() -> None:
    assert tts.PassAtK(4) == tts.PassAtK(k=4)
    assert len({tts.PassAtK(4), tts.PassAtK(4), tts.PassAtK(8), tts.Identity()}) == 3
    assert len({PassHatK(4), GPassAtK(4), AtLeastK(4), Max(), Max(), Median(), Majority()}) == 6
    assert GPassAtK(4, 0.5) == GPassAtK(k=4)
    assert repr(tts.PassAtK(4)) == "PassAtK(k=4, n_below_k='null')"


def random_values() -> pl.DataFrame:
    """Return ragged problems, whose values tie, with some of them null and one problem all null."""
    draws = np.random.default_rng(11)
    problem = draws.integers(0, 400, 4_000)
    value = draws.choice([0.0, 0.25, 0.5, 1.0, None], 4_000).tolist()
    frame = pl.DataFrame(
        {"problem_id": problem, "value": value}, schema_overrides={"value": pl.Float64}
    )
    return frame.with_columns(value=pl.when(pl.col("problem_id") != 7).then("value"))


def modes(values: list[float]) -> float:
    return statistics.fmean(statistics.multimode(values))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("aggregator", "summary"),
    [
        (Max(), max),
        (Median(), statistics.median),
        (Majority(), modes),
        (tts.IdentifierMean(), statistics.fmean),
        (AtLeastK(2), lambda v: float(sum(x >= 1 for x in v) >= 2) if len(v) >= 2 else None),
        (AtLeastK(3, threshold=0.5), lambda v: of_threshold(v, 3)),
    ],
    ids=lambda found: getattr(found, "name", None),
)
def test_equals_plain_python(
    aggregator: tts.Aggregator,
    summary: Callable[[list[float]], float | None],
    engine: EngineType,
) -> None:
    frame = random_values()
    attempts: dict[int, list[float]] = {}
    for problem, value in frame.rows():
        attempts.setdefault(problem, []).extend([] if value is None else [value])
    found = dict(aggregator(frame.lazy(), ["problem_id"]).collect(engine=engine).rows())
    assert found.keys() == attempts.keys()
    assert not attempts[7]
    for problem, values in attempts.items():
        expected = summary(values) if values else None
        assert found[problem] == (
            expected if expected is None else pytest.approx(expected, abs=1e-15)
        )


def of_threshold(values: list[float], k: int) -> float | None:
    return float(sum(value >= 0.5 for value in values) >= k) if len(values) >= k else None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tie_of_modes_is_their_mean_in_any_order(engine: EngineType) -> None:
    frame = pl.DataFrame({
        "problem_id": ["a"] * 4 + ["b"] * 5 + ["c"] * 3 + ["d"],
        "value": [1.0, 0.0, 0.0, 1.0, 0.1, 0.2, 0.3, 0.7, None, 1.0, 0.5, 0.5, None],
    })
    for seed in range(4):
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=seed).lazy()
        found = Majority()(shuffled, ["problem_id"]).collect(engine=engine)
        assert dict(found.rows()) == {"a": 0.5, "b": pytest.approx(0.325), "c": 0.5, "d": None}


def test_estimators_are_those_of_the_expressions() -> None:
    frame = random_values().with_columns(value=pl.col("value") >= 0.5)
    for aggregator, estimate in [
        (PassHatK(5), tts.pass_hat_k("value", 5)),
        (GPassAtK(5, 0.6), tts.g_pass_at_k("value", 5, tau=0.6)),
    ]:
        found = aggregator(frame, ["problem_id"]).sort("problem_id")
        assert found.equals(frame.group_by("problem_id").agg(estimate).sort("problem_id"))
        zeros = type(aggregator)(**{**aggregator.__dict__, "n_below_k": "zero"})
        filled = zeros(frame, ["problem_id"]).sort("problem_id")
        assert found["value"].null_count() > 0
        assert filled.equals(found.fill_null(0.0))


def test_fewer_than_k_are_zero_by_name() -> None:
    frame = pl.DataFrame({"problem_id": ["a", "a", "b"], "value": [1, 1, None]})
    for aggregator in (AtLeastK(3), PassHatK(3), GPassAtK(3)):
        assert set(aggregator(frame, ["problem_id"])["value"]) == {None}
        zeros = type(aggregator)(k=3, n_below_k="zero")
        assert zeros(frame, ["problem_id"])["value"].to_list() == [0.0, 0.0]


@pytest.mark.parametrize("engine", ENGINES)
@by_name
def test_a_value_that_is_no_number_is_carried_on(
    aggregator: tts.Aggregator, engine: EngineType
) -> None:
    frame = pl.DataFrame({"problem_id": [1, 1, 1, 2, 2, 2], "value": [1.0, math.nan, 0.0, 1, 1, 1]})
    found = aggregator(frame.lazy(), ["problem_id"]).collect(engine=engine)
    of_first = found.filter(pl.col("problem_id") == 1)["value"]
    assert of_first.is_nan().any()
    assert set(found.filter(pl.col("problem_id") == 2)["value"]) == {1.0}


def test_names_are_those_of_the_papers() -> None:
    aggregators = (PassHatK(8), GPassAtK(8, 0.25), AtLeastK(4), Majority(), Max(), Median())
    names = [aggregator.name for aggregator in aggregators]
    assert names == ["Pass^8", "G-Pass@8_0.25", "AtLeast4", "Majority", "Max", "Median"]
