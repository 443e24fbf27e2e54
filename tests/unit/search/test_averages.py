"""Means of measures over problems, against plain Python."""

from __future__ import annotations

import statistics

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError


@pytest.fixture(scope="module")
def nodes() -> pl.DataFrame:
    problems, generator, prm = tts.search.simulate(15, seed=0)
    return pl.concat([
        tts.search.search(problems, generator, prm, policy, seed=0).with_columns(
            policy=pl.lit(policy.name)
        )
        for policy in (tts.search.Beam(8), tts.search.DVTS(8))
    ])


def test_means_are_those_of_plain_python(nodes: pl.DataFrame) -> None:
    widths = tts.search.diversity_by_depth(nodes, by="policy")
    means = tts.search.average_measures(widths, by="policy")
    for row in means.iter_rows(named=True):
        values = [
            each[row["measure"]]
            for each in widths.to_dicts()
            if (each["policy"], each["depth"]) == (row["policy"], row["depth"])
        ]
        assert row["n_problems"] == len(values)
        assert row["mean"] == pytest.approx(statistics.mean(values))
        if len(set(values)) > 1:
            assert row["ci_low"] < row["mean"] < row["ci_high"]
    assert_frame_equal(tts.search.average_measures(widths.lazy(), by="policy").collect(), means)


def test_unknown_values_are_left_out_and_a_share_has_an_interval_within_0_and_1() -> None:
    table = pl.DataFrame({
        "problem_id": ["a", "b", "c"],
        "round": [0, 0, 0],
        "regret": [0.5, None, 0.0],
        "is_lost": [True, False, False],
    })
    rows = {row["measure"]: row for row in tts.search.average_measures(table).to_dicts()}
    assert (rows["regret"]["mean"], rows["regret"]["n_problems"]) == (0.25, 2)
    assert rows["is_lost"]["mean"] == pytest.approx(1 / 3)
    assert 0 < rows["is_lost"]["ci_low"] < rows["is_lost"]["ci_high"] < 1


def test_every_table_of_a_search_by_depth_or_round_is_averaged(nodes: pl.DataFrame) -> None:
    caches = tts.search.average_measures(tts.search.cache_by_round(nodes, by="policy"), by="policy")
    assert {"cache_tokens", "sharing"} <= set(caches["measure"])
    with pytest.raises(ColumnsError, match=r"missing column for table: 'depth'.*cache_by_round"):
        tts.search.average_measures(tts.search.search_costs(nodes, by="policy"), by="policy")
    with pytest.raises(ParameterError, match="confidence_level"):
        tts.search.average_measures(
            tts.search.diversity_by_depth(nodes, by="policy"), by="policy", confidence_level=95
        )
