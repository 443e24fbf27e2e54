"""Attempts laid out by problem: in blocks, in any order, with keys of any kind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from selection_oracle import pick

import ttsframe as tts
from ttsframe.errors import DataError
from ttsframe.votes.engine import pools as _pools
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.pools import Block

ALL = list(tts.SELECTORS)


@pytest.fixture(scope="module")
def trajectories() -> pl.DataFrame:
    """Return a ragged run with missing answers and tied scores."""
    run = tts.simulate_trajectories(40, 48, seed=3, keys=True, missing_share=0.1)
    n = pl.col("problem_id").str.extract(r"(\d+)").cast(pl.UInt32) % 7 + 42
    return run.filter(pl.col("attempt") < n).with_columns(
        tts.step_last("step_scores").round(1).alias("score")
    )


def selected(frame: pl.DataFrame) -> pl.DataFrame:
    return tts.select_answers(frame, selectors=ALL, budgets=[1, 3, 8, 42, 45])


@pytest.mark.parametrize(("n_rows", "n_cells"), [(1, 1 << 22), (100, 1 << 22), (1 << 17, 300)])
def test_blocks_do_not_show(
    trajectories: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, n_rows: int, n_cells: int
) -> None:
    whole = selected(trajectories)
    votes = tts.tally_votes(trajectories, budgets=[1, 8])
    monkeypatch.setattr(_pools, "_BLOCK_ROWS", n_rows)
    monkeypatch.setattr(_pools, "_BLOCK_CELLS", n_cells)
    assert_frame_equal(selected(trajectories), whole, check_exact=True)
    assert_frame_equal(tts.tally_votes(trajectories, budgets=[1, 8]), votes, check_exact=True)


@pytest.mark.parametrize("order", ["shuffled", "attempts backwards", "problems backwards"])
def test_the_order_of_rows_does_not_show_in_a_single_bit(
    trajectories: pl.DataFrame, order: str
) -> None:
    other = {
        "shuffled": trajectories.sample(fraction=1.0, shuffle=True, seed=1),
        "attempts backwards": trajectories.sort("problem_id", -pl.col("attempt").cast(pl.Int64)),
        "problems backwards": trajectories.sort("problem_id", "attempt", descending=[True, False]),
    }[order]
    assert_frame_equal(selected(other), selected(trajectories), check_exact=True)


def test_keys_with_numbers_too_large_to_be_sorted_beside_their_rows() -> None:
    n = 1 << 17
    rng = np.random.default_rng(0)
    key = rng.integers(1, 3, n, dtype=np.uint32)
    block = Block(
        first_problem=0,
        first_row=0,
        starts=np.arange(0, n + 1, 2),
        attempt=np.tile(np.array([0, 1], np.uint32), n // 2),
        key=key,
        grade=np.zeros(n, np.int8),
        scores=(),
    )
    small = Ballots(block, np.array([1, 2]), "score")
    large = Ballots(block._replace(key=key + np.uint32(2**32 - 5)), np.array([1, 2]), "score")
    np.testing.assert_array_equal(small.votes, large.votes)
    np.testing.assert_array_equal(small.answer, large.answer)


def test_every_number_of_attempts_as_a_budget(trajectories: pl.DataFrame) -> None:
    budgets = list(range(1, 49))
    found = tts.select_answers(trajectories, selectors=ALL, budgets=budgets)
    rows = {
        key: part.to_dicts()
        for (key,), part in trajectories.partition_by("problem_id", as_dict=True).items()
    }
    for row in random.Random(0).sample(found.to_dicts(), 1000):
        expected = pick(rows[row["problem_id"]], row["selector"], row["budget"])
        shown = {name: row[name] for name in ("attempt", "answer_key", "status", "is_correct")}
        assert shown == {name: expected[name] for name in shown}, row


@pytest.mark.parametrize("attempts", [[0, 2, 2], [2, 0, 2], [1, 1, 0]])
def test_a_repeated_number_is_found_behind_a_gap(attempts: list[int]) -> None:
    frame = pl.DataFrame({"problem_id": ["p"] * 3, "attempt": attempts, "answer_key": ["a"] * 3})
    with pytest.raises(DataError, match="problem_id 'p': several rows with the same 'attempt'"):
        tts.select_answers(frame, selectors="majority_vote", budgets=3)
    with pytest.raises(DataError, match="several rows with the same 'attempt'"):
        tts.tally_votes(frame)


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Date, pl.Categorical, pl.Float64])
def test_a_problem_is_named_by_a_column_of_any_kind(dtype: pl.DataType) -> None:
    ids = pl.Series([3, 1, None, 1]).cast(pl.Int32)
    ids = ids.cast(pl.String).cast(dtype) if dtype == pl.Categorical else ids.cast(dtype)
    frame = pl.DataFrame({"problem_id": ids, "attempt": [0, 1, 0, 0], "answer_key": list("abcd")})
    found = tts.select_answers(frame, selectors="first_valid")
    assert found["problem_id"].dtype == dtype
    assert found["problem_id"].to_list() == ids.unique().sort().to_list()
    assert found["answer_key"].to_list() == ["c", "d", "a"]


def test_no_column_is_read_that_is_not_needed(trajectories: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    trajectories.write_parquet(path)
    run = pl.scan_parquet(path)
    votes = tts.majority_vote(run, budgets=[1, 4]).explain()
    assert f"PROJECT 6/{trajectories.width} COLUMNS" in votes  # and not the scores
    many = tts.select_answers(
        run, selectors=ALL, reductions=["last", "min", "mean"], budgets=[1, 2, 4, 8, 16]
    )
    curve = tts.scaling_curve(many).explain()
    assert f"PROJECT 7/{trajectories.width} COLUMNS" in curve
    assert curve.count("Parquet SCAN") == 1


SEVERAL_AT_ONCE = """
import polars as pl
from polars.testing import assert_frame_equal
import ttsframe as tts
run = tts.simulate_trajectories(40, 16, seed=0, keys=True)
run = run.with_columns(tts.step_last("step_scores").alias("score"))
for frame in (run, run.sample(fraction=1.0, shuffle=True, seed=1)):
    plan = tts.scaling_curve(tts.select_answers(frame.lazy(), budgets=[1, 4, 16]))
    alone = plan.collect()
    for engine in ("in-memory", "streaming"):
        for found in pl.collect_all([plan] * 4, engine=engine):
            assert_frame_equal(found, alone)
        together = pl.concat([plan, plan.with_columns(pl.col("budget") + 0)] * 2)
        assert together.collect(engine=engine).height == 4 * alone.height
"""


@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_several_plans_at_once_never_wait_for_each_other(n_threads: str) -> None:
    environment = os.environ | {"POLARS_MAX_THREADS": n_threads}
    command = [sys.executable, "-c", SEVERAL_AT_ONCE]
    subprocess.run(command, env=environment, timeout=300, check=True)
