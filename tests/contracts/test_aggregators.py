"""Whatever aggregates attempts per problem keeps the protocol: names, columns, one row each."""

from __future__ import annotations

import polars as pl
import pytest
from contract_registry import AGGREGATORS, ENGINES, run, values
from polars.testing import assert_frame_equal

import ttsframe as tts


def name_of(aggregator: tts.Aggregator) -> str:
    return aggregator.name


@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=name_of)
def test_it_is_an_aggregator_with_a_name(aggregator: tts.Aggregator) -> None:
    assert isinstance(aggregator, tts.Aggregator)
    assert aggregator.name
    assert aggregator == type(aggregator)(**getattr(aggregator, "__dict__", {}))
    assert hash(aggregator) == hash(type(aggregator)(**aggregator.__dict__))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=name_of)
def test_columns_stay_and_problems_are_kept_apart(
    aggregator: tts.Aggregator, engine: pl.Engine
) -> None:
    both = pl.concat(values().with_columns(seed=pl.lit(seed), note=pl.lit("x")) for seed in (1, 2))
    found = aggregator(both.lazy(), ["seed", "problem_id"]).collect(engine=engine)
    assert found.columns == both.columns
    alone = aggregator(values(), ["problem_id"])
    for seed in (1, 2):
        part = found.filter(pl.col("seed") == seed).select(alone.columns)
        assert_frame_equal(part, alone, check_row_order=False, rel_tol=1e-12)


@pytest.mark.parametrize("aggregator", AGGREGATORS[1:], ids=name_of)
def test_there_is_one_row_per_problem_even_where_nothing_is_graded(
    aggregator: tts.Aggregator,
) -> None:
    found = aggregator(values(), ["problem_id"])
    assert found["problem_id"].to_list() != []
    assert set(found["problem_id"]) == set(run()["problem_id"])
    assert found["problem_id"].is_unique().all()
    ungraded = found.filter(pl.col("problem_id") == "sim-000010")
    assert ungraded["value"].to_list() == [None]


@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=name_of)
def test_identifiers_must_be_named_and_present(aggregator: tts.Aggregator) -> None:
    for identifiers, words in (
        ([], "identifier_columns is empty"),
        (["value"], "identifier_columns names 'value'"),
        (["gone"], r"1 missing column .*: 'gone'"),
        (["problem_id", "problem_id"], "names a column twice"),
    ):
        with pytest.raises(tts.TtsframeError, match=words):
            aggregator(values().lazy(), identifiers)
